"""The notebook that embeds: a trained run and an untrained one, what they leave, and their ranker."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from aslab import rundir
from asutil import metrics
from asutil.data.answers import load_answers
from asutil.io import disk
from asutil.tasks import nearest, rankers

from ..conftest import WORDS
from .test_notebooks import papermill, questions_file  # noqa: F401
from .test_transfer_runs import assert_follows_from_scores, other_file  # noqa: F401

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory, tokenizer_of_pydocs, questions_file, other_file):  # noqa: F811
    """A triplet and a siamese network from scratch, the latter ranks other questions too, and averaged word vectors."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(tokenizer_of_pydocs, folder / "shared")
    papermill("embed", folder, model="tiny", dataset=questions_file, epochs=2, max_tokens=24, triplets_per_question=2)
    siamese = {"architecture": "siamese", "epochs": 1, "max_tokens": 24, "also_rank": other_file}
    papermill("embed", folder, model="tiny", dataset=questions_file, **siamese)
    draw = np.random.default_rng(0)
    lines = (f"{word} {' '.join(f'{x:.3f}' for x in draw.normal(size=8))}\n" for word in ("where", "stands", *WORDS))
    vectors = tmp_path_factory.mktemp("vectors") / "made_up.txt"
    vectors.write_text("".join(lines))
    papermill("embed", folder, dataset=questions_file, architecture="untrained", encoder="word_vectors", model=vectors)
    return {rundir.read_record(path)["settings"]["architecture"]: path for path in folder.glob("embed-*")}


@pytest.mark.parametrize("architecture", ["triplet", "siamese", "untrained"])
def test_a_record_follows_from_the_scores(made, architecture):
    run = made[architecture]
    record, scores = rundir.read_record(run), pd.read_parquet(run / "scores.parquet")
    assert scores["score"].dtype == "float32"
    assert metrics.of(scores).record() == record["metrics"]["test"]
    assert metrics.of(pd.read_parquet(run / "scores_dev.parquet")).record() == record["metrics"]["dev"]
    for side, name in (("test", "per_question"), ("dev", "per_question_dev")):
        assert pd.read_parquet(run / f"{name}.parquet")["average_precision"].mean() == pytest.approx(record["metrics"][side]["map"])
    panels = {"before"} if architecture == "untrained" else {"before", "after"}
    assert panels == {"before", "after"} & set(record["pca"]) and len(record["pca"]["roles"]) == 3 * record["metrics"]["test"]["questions"]
    assert str(run.parent) not in json.dumps(record), "no path of this machine"
    assert (run / "model").is_dir() == (architecture != "untrained") and not (run / "scoring").exists()
    assert record["figures"]["dimensions"] == (8 if architecture == "untrained" else 128)


@pytest.mark.parametrize(("architecture", "ranks"), [("triplet", "distance"), ("siamese", "distance"), ("untrained", "cosine")])
def test_a_record_has_the_metrics_of_every_readout(made, architecture, ranks):
    record = rundir.read_record(made[architecture])
    expected = ["distance", "cosine", "dot", *["probability"] * (architecture == "siamese")]
    assert list(record["readouts"]) == expected and record["settings"]["rank_by"] == ranks
    assert record["readouts"][ranks] == record["metrics"]
    for side, name in (("test", "scores"), ("dev", "scores_dev")):
        scores = pd.read_parquet(made[architecture] / f"{name}.parquet")
        for by in expected:
            right = scores.sort_values(["question_id", by, "label"], ascending=[True, False, True], kind="stable")
            first = right.groupby("question_id")["label"].first().mean()
            assert record["readouts"][by][side]["p@1"] == pytest.approx(first), (by, side)


def test_the_ranker_of_a_run_gives_its_scores(made, questions_file):  # noqa: F811
    ranker, scores = rankers.load_ranker(made["triplet"], "cpu"), pd.read_parquet(made["triplet"] / "scores.parquet")
    splits, record = load_answers(questions_file), rundir.read_record(made["triplet"])  # one right and three wrong candidates each
    assert record["settings"]["triplets_per_question"] == 2 and record["figures"]["examples"] == 2 * 2 * len(splits["train"])
    question = splits["test"][0]
    kept = scores.loc[scores["question_id"] == question.id, "score"].to_numpy()
    ranked = ranker.rank(question.text, [candidate.text for candidate in question.candidates])
    assert isinstance(ranker, nearest.Nearest) and ranker.by == "distance"
    assert [score for _, score in sorted(ranked)] == pytest.approx(kept.tolist(), abs=1e-5)


def test_a_ranker_ranks_by_what_its_run_ranked_by(made, tmp_path):
    folder = shutil.copytree(made["siamese"], tmp_path / made["siamese"].name)
    record = rundir.read_record(folder)
    disk.write_json(folder / "record.json", record | {"settings": record["settings"] | {"rank_by": "probability"}})
    assert rankers.load_ranker(folder, "cpu").by == "probability" != rankers.load_ranker(made["siamese"], "cpu").by
    assert rankers.load_ranker(shutil.copytree(folder / "model", tmp_path / "copied"), "cpu").by == "distance"


def test_other_questions_are_ranked_by_the_ranker_of_the_run(made, other_file):  # noqa: F811
    assert_follows_from_scores(made["siamese"], other_file)


def test_a_run_says_what_it_is(made):
    assert all(f"-{architecture}" in path.name for architecture, path in made.items())
    record = rundir.read_record(made["untrained"])
    assert record["settings"]["model"] == "own:made_up.txt" and record["settings"]["epochs"] is None
    with pytest.raises(ValueError, match="kept no model, because nothing was trained: asutil vectors takes its encoder"):
        rankers.load_ranker(made["untrained"])
