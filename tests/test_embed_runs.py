"""The notebook that embeds: a trained run and an untrained one, what they leave, and their ranker."""

import json

import numpy as np
import pandas as pd
import pytest

from asutil import encoders, metrics, nearest, runs

from .conftest import WORDS
from .test_notebooks import papermill, questions_file  # noqa: F401


@pytest.fixture(scope="module")
def made(tmp_path_factory, questions_file):  # noqa: F811
    """A triplet network from scratch, and averaged word vectors of the same questions."""
    folder = tmp_path_factory.mktemp("runs")
    papermill("embed", folder, dataset=questions_file, epochs=2, max_tokens=24)
    draw = np.random.default_rng(0)
    lines = (f"{word} {' '.join(f'{x:.3f}' for x in draw.normal(size=8))}\n" for word in ("where", "stands", *WORDS))
    vectors = tmp_path_factory.mktemp("vectors") / "made_up.txt"
    vectors.write_text("".join(lines))
    papermill("embed", folder, dataset=questions_file, architecture="untrained", encoder="word_vectors", model=vectors)
    return {runs.read_record(path)["settings"]["architecture"]: path for path in folder.glob("embed-*")}


@pytest.mark.parametrize("architecture", ["triplet", "untrained"])
def test_a_record_follows_from_the_scores(made, architecture):
    run = made[architecture]
    record, scores = runs.read_record(run), pd.read_parquet(run / "scores.parquet")
    assert scores["score"].dtype == "float32"
    assert metrics.of(scores).record() == record["metrics"]["test"]
    assert metrics.of(pd.read_parquet(run / "scores_dev.parquet")).record() == record["metrics"]["dev"]
    for side, name in (("test", "per_question"), ("dev", "per_question_dev")):
        assert pd.read_parquet(run / f"{name}.parquet")["average_precision"].mean() == pytest.approx(record["metrics"][side]["map"])
    panels = {"before", "after"} if architecture == "triplet" else {"before"}
    assert panels == {"before", "after"} & set(record["pca"]) and len(record["pca"]["roles"]) == 3 * record["metrics"]["test"]["questions"]
    assert str(run.parent) not in json.dumps(record), "no path of this machine"
    assert (run / "model").is_dir() == (architecture == "triplet") and not (run / "scoring").exists()
    assert record["figures"]["dimensions"] == {"triplet": 128, "untrained": 8}[architecture]


def test_the_ranker_of_a_run_gives_its_scores(made, questions_file):  # noqa: F811
    from asutil import questions

    ranker, scores = encoders.load_ranker(made["triplet"], "cpu"), pd.read_parquet(made["triplet"] / "scores.parquet")
    question = questions.load(str(questions_file))["test"][0]
    kept = scores.loc[scores["question_id"] == question.id, "score"].to_numpy()
    ranked = ranker.rank(question.text, [candidate.text for candidate in question.candidates])
    assert isinstance(ranker, nearest.Nearest) and ranker.by == "distance"
    assert [score for _, score in sorted(ranked)] == pytest.approx(kept.tolist(), abs=1e-5)


def test_a_run_says_what_it_is(made):
    assert all(f"-{architecture}" in path.name for architecture, path in made.items())
    record = runs.read_record(made["untrained"])
    assert record["settings"]["model"] == "own:made_up.txt" and record["settings"]["epochs"] is None
    with pytest.raises(ValueError, match="untrained"):
        encoders.load_ranker(made["untrained"])
