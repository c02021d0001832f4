import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from aslab import identity, papers, plan, publish, records, rundir, runs
from aslab.analysis import equal_runs, examples
from asutil import draws
from asutil.io import disk

from ..book.tables import results_table


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project with runs and results of its own."""
    for name in ("book", "notebooks", "experiments", "asutil", "aslab"):
        (tmp_path / name).symlink_to(rundir.root() / name)
    monkeypatch.setenv("ASUTIL_PROJECT", str(tmp_path))
    return tmp_path


def finish(job, value, day="01"):
    """A finished run of a job, with a ranking of three questions whose scores a hand can check."""
    who = identity.of_run(job.notebook, job.parameters, must_exist=False)
    (job.folder / "model").mkdir(parents=True, exist_ok=True)
    record = {name: who[name] for name in ("hash", "settings", "inputs")}
    record |= {"notebook": job.notebook, "name": job.folder.name, "budget": job.budget, "seed": job.seed}
    record |= {"figures": {"slot_cosines": SLOTS, "tokens": 7} if job.notebook == "pretrain" else {}}
    record |= {"metrics": {"test": {"p@1": value, "map": value, "mrr": value, "questions": 3}}}
    record["created"] = f"2026-01-{day}T00:00:00+00:00"
    scores = [3, 2, 1] * 3 if job.row == "roberta_psd" else [1, 2, 3] * 3  # the baseline turns every order around
    table = {"question_id": list("aaabbbccc"), "candidate_id": [f"{q}{n}" for q in "abc" for n in range(3)]}
    table |= {"label": np.array([1, 0, 0, 0, 1, 0, 0, 0, 1], np.int8), "score": np.array(scores, np.float32)}
    table = pd.DataFrame(table)
    (job.folder / "model/model.safetensors").write_bytes(job.folder.name.encode())
    table.to_parquet(job.folder / "scores.parquet")
    table[table.question_id != "b"].to_parquet(job.folder / "scores_dev.parquet")
    disk.write_json(job.folder / "record.json", record | runs.hashes(job.folder))


SLOTS = {"first": [0.1, 0.2], "mean": [0.1, 0.3], "pooling": "first"}
SMALL = plan.jobs("sentence_objectives", "small", ["roberta_psd"], [0])


@pytest.fixture
def published(project):
    for job in plan.jobs("sentence_objectives", "small", ["roberta_psd"], [0]):
        finish(job, 0.5)
    for job in plan.jobs("sentence_objectives", "laptop", ["roberta_base"], [0]):
        finish(job, 0.25)
    return list(publish.publish("sentence_objectives"))


def test_records_of_rows_are_written_where_they_belong(project, published):
    places = [str(path.relative_to(project)) for path in published]
    assert "pretraining" in {job.dataset for job in SMALL} and "wikiqa" in {job.dataset for job in SMALL}
    assert sorted(places) == sorted(f"results/sentence_objectives/roberta_psd/{job.dataset}-small-seed0.json" for job in SMALL)


def test_a_record_has_numbers_by_question_and_no_text(project, published):
    record = json.loads((project / "results/sentence_objectives/roberta_psd/wikiqa-small-seed0.json").read_text())
    assert record["per_question"] == [["a", 1.0, 1.0, 1.0], ["b", 0.0, 0.5, 0.5], ["c", 0.0, pytest.approx(1 / 3), pytest.approx(1 / 3)]]
    assert [chosen["question_id"] for chosen in record["chosen"]] == draws.choose("abc", 3)
    assert next(chosen for chosen in record["chosen"] if chosen["question_id"] == "c") == {
        "question_id": "c",
        "candidates": [["c0", 0, 3.0, 1], ["c1", 0, 2.0, 2], ["c2", 1, 1.0, 3]],
    }
    assert record["per_question_dev"] == [record["per_question"][0], record["per_question"][2]]  # dev chose nothing at this budget
    assert record["earlier"][0]["settings"]["objective"] == "psd" and record["earlier"][0]["figures"] == {"slot_cosines": SLOTS}
    weights = hashlib.sha256(record["earlier"][0]["name"].encode()).hexdigest()  # of what `finish` writes as weights
    assert record["earlier"][0]["weights_sha256"] == {"model.safetensors": weights}
    assert (record["earlier"][0]["name"], record["earlier"][0]["seed"]) == (SMALL[0].folder.name, 0)
    assert record["earlier"][0]["created"] == "2026-01-01T00:00:00+00:00"  # with equal settings the time tells two runs apart
    assert str(project) not in json.dumps(record)


def test_chosen_questions_can_be_compared_across_rows(project, published):
    """Every row has the same questions; beside the baseline's run a row also shows what it rescues and loses, with both lists."""
    for job in plan.jobs("sentence_objectives", "small", ["roberta_base"], [0]):
        finish(job, 0.25)
    list(publish.publish("sentence_objectives"))
    base, psd = (
        json.loads((project / f"results/sentence_objectives/{row}/wikiqa-small-seed0.json").read_text())["chosen"]
        for row in ("roberta_base", "roberta_psd")
    )
    assert [entry["question_id"] for entry in psd[:3]] == [entry["question_id"] for entry in base]
    assert [(entry["question_id"], entry["baseline"]["candidates"][0]) for entry in psd[3:]] == [
        ("a", ["a2", 0, 3.0, 1]),  # rescued: only the row has a right one first
        ("c", ["c2", 1, 3.0, 1]),  # lost
    ]
    assert psd[3]["baseline"]["row"] == "roberta_base"
    found = records.records("sentence_objectives", runs_dir="nowhere")
    data, rows = papers.read("sentence_objectives"), ("roberta_base", "roberta_psd")
    pair = next(pair for pair in examples.best_pairs(data, found, *rows) if pair.dataset == "wikiqa")
    assert [(one.fate, one.question) for one in examples.of_pair(data, pair, rows)] == [("rescued", "a"), ("lost", "c")]


def test_published_records_are_read_back_into_tables(project, published):
    found = records.records("sentence_objectives", runs_dir="nowhere")
    assert set(found.source) == {records.COMMITTED} and len(found) == len(SMALL)
    table = results_table("sentence_objectives", "table_1", found)
    assert "50.0" in table and "reduced budget" in table


def test_publishing_twice_changes_nothing(project, published):
    before = {path: path.read_bytes() for path in published}
    assert {path: path.read_bytes() for path in publish.publish("sentence_objectives")} == before


FINETUNE = next(job for job in SMALL if job.dataset == "wikiqa")
REPEAT = "results/repeats/sentence_objectives/roberta_psd/wikiqa-small-seed0-20260102T000000.json"


def in_other_precision(day="02"):
    """The same run on another day in another precision: its folder has another name, since precision is part of the hash."""
    again = plan.jobs("sentence_objectives", "small", ["roberta_psd"], [0], more={"precision": "fp32"})
    for job in again:
        finish(job, 0.75, day)
    return next(job.folder.name for job in again if job.dataset == "wikiqa")


def test_another_run_with_equal_settings_is_kept_as_a_repeat(project, published):
    """Other pre-training and fine-tuning, equal settings: both records stay, however often both are published."""
    before = {path: path.read_bytes() for path in published}
    name = in_other_precision()
    written = [str(path.relative_to(project)) for path in publish.publish("sentence_objectives")]
    assert REPEAT in written and not set(map(project.joinpath, written)) & set(before)
    assert {path: path.read_bytes() for path in before} == before
    repeat = json.loads((project / REPEAT).read_text())
    assert (repeat["name"], repeat["settings"]["precision"], repeat["metrics"]["test"]["map"]) == (name, "fp32", 0.75)
    after = {path: path.read_bytes() for path in (project / "results").rglob("*.json")}
    list(publish.publish("sentence_objectives"))
    assert {path: path.read_bytes() for path in (project / "results").rglob("*.json")} == after
    (pair,) = (pair for pair in equal_runs.pairs("sentence_objectives") if pair.dataset == "wikiqa")
    assert [list(lines.name) for lines in (pair.later, pair.before)] == [[name], [FINETUNE.folder.name]]
    assert list(records.records("sentence_objectives", runs_dir="nowhere").name) == [
        json.loads(path.read_text())["name"] for path in sorted(before)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"versions": {"torch": "1.0"}, "commit": "0" * 40}, True),
        ({"settings": {"epochs": 9}}, False),  # the row has other settings now
        ({"inputs": {"dataset": "0" * 64}}, False),  # the data set has changed
        ({"created": "2026-01-02T00:00:00+00:00"}, False),  # this very run, published by an earlier version
    ],
)
def test_a_record_of_other_settings_or_data_is_replaced(project, change, kept):
    """A row has one record in `results/<paper>/`: that of its settings and data of today."""
    for job in plan.jobs("sentence_objectives", "small", ["roberta_base"], [0]):
        finish(job, 0.5)
    path = next(path for path in list(publish.publish("sentence_objectives")) if path.name == "wikiqa-small-seed0.json")
    there = disk.read_json(path)
    for key, value in change.items():
        there[key] = there[key] | value if key in ("settings", "inputs") else value
    disk.write_json(path, there)
    for job in plan.jobs("sentence_objectives", "small", ["roberta_base"], [0]):
        finish(job, 0.75, "02")
    list(publish.publish("sentence_objectives"))
    assert (disk.read_json(path)["metrics"]["test"]["map"] == 0.5) is kept
    assert bool(list(project.glob("results/repeats/*/*/wikiqa-*"))) is kept
