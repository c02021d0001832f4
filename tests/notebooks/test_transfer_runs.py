"""Notebooks that rank other data sets after their training: the same model, the same figures, one more part in the record."""

import json

import pandas as pd
import pytest

from aslab import rundir
from asutil.data.answers import load_answers
from asutil.tasks import rankers

from .test_notebooks import papermill, questions_file  # noqa: F401

pytestmark = pytest.mark.slow

TINY = {"model": "tiny", "max_tokens": 32, "epochs": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def other_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "other.tsv"
    rows = [f"what is number {n}?\tnumber {n} is {'odd' if k else 'old'} {k}\t{int(k == n % 3)}" for n in range(40) for k in range(3)]
    path.write_text("question\tanswer\tlabel\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory, tokenizer_of_pydocs, questions_file, other_file):  # noqa: F811
    """A fine-tuning with and without another data set."""
    import shutil

    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(tokenizer_of_pydocs, folder / "shared")
    papermill("finetune", folder, dataset=questions_file, **TINY)
    papermill("finetune", folder, dataset=questions_file, also_rank=other_file, **TINY)
    return {"transfer" in rundir.read_record(path.parent): path.parent for path in folder.glob("finetune-*/record.json")}


def test_the_own_figures_and_weights_are_those_of_a_run_without_others(made):
    alone, both = (rundir.read_record(made[transfer]) for transfer in (False, True))
    for key in ("metrics", "baselines", "calibration", "weights_sha256"):
        assert alone[key] == both[key], key
    assert alone["hash"] != both["hash"]
    tables = {name: value for name, value in both["tables_sha256"].items() if "other" not in name}
    assert tables == alone["tables_sha256"] and len(both["tables_sha256"]) == len(tables) + 2


def test_the_record_follows_from_scores_that_the_runs_ranker_gives_again(made, other_file):
    assert_follows_from_scores(made[True], other_file)


def assert_follows_from_scores(run, other_file):
    record = rundir.read_record(run)
    splits, ranker = load_answers(other_file), rankers.load_ranker(run, "cpu")
    (name, part), *more = record["transfer"].items()
    assert (name, more) == ("own:other.tsv", []) and str(other_file.parent) not in json.dumps(record)
    for split, file in (("test", "scores_own-other.tsv.parquet"), ("dev", "scores_own-other.tsv_dev.parquet")):
        kept = rundir.read_table(run, file)
        again = ranker.score(splits[split])
        assert kept["candidate_id"].tolist() == again["candidate_id"].tolist() and len(kept) == 12
        assert kept["score"].tolist() == pytest.approx(again["score"].tolist(), abs=1e-5)
        by_hand = [average_precision(rows) for _, rows in kept.groupby("question_id")]
        assert part["metrics"][split]["map"] == pytest.approx(sum(by_hand) / len(by_hand))
    assert {"random", "bm25"} == set(part["baselines"]) and not (run / "scoring_others").exists()
    text = (run / "notebook.ipynb").read_text()
    assert "Other data sets" in text and "own:other.tsv" in text


def average_precision(rows: pd.DataFrame) -> float:
    """Of a question with one right candidate: 1 / its rank, the last of candidates with its score."""
    (right,) = rows.loc[rows["label"] == 1, "score"]
    return 1 / int((rows["score"] >= right).sum())
