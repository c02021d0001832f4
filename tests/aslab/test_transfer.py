"""Data sets that a run also ranks: which run that is, what is refused before a kernel starts, and what is published."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from papermill.exceptions import PapermillException

from aslab import identity, publish, runs, transfer
from asutil.data import answers
from asutil.data.data_sets import ANSWERS
from asutil.io import disk, hub

from ..made_up import finished
from .test_launch import invoke

pytestmark = pytest.mark.slow

TABLE = "question\tanswer\tlabel\n" + "".join(f"{{0}} q{n // 2}\ta{n}\t{n % 2}\n" for n in range(80))


@pytest.fixture
def tables(tmp_path):
    """Three tables of questions, by name."""
    paths = {name: tmp_path / f"{name}.tsv" for name in ("first", "second", "third")}
    for name, path in paths.items():
        path.write_text(TABLE.format(name))
    return paths


def given(tables, others, **more):
    return {"dataset": str(tables["first"]), "also_rank": others, **more}


# ------------------------------------------------------------------ identity


@pytest.mark.parametrize("notebook", ["finetune", "embed"])
def test_other_data_sets_are_known_by_content_in_any_order_and_without_their_paths(tables, tmp_path, notebook):
    second, third = tables["second"], tables["third"]
    run = identity.of_run(notebook, given(tables, f"{second},{third}"))
    assert identity.of_run(notebook, given(tables, f"{third} , {second}")) == run
    assert run["settings"]["also_rank"] == "own:second.tsv,own:third.tsv" and str(tmp_path) not in json.dumps(run)
    assert set(run["inputs"]["also_rank"]) == {"own:second.tsv", "own:third.tsv"}
    assert identity.of_run(notebook, given(tables, str(second)))["hash"] != run["hash"]
    third.write_text(TABLE.format("changed"))
    assert identity.of_run(notebook, given(tables, f"{second},{third}"))["hash"] != run["hash"]


@pytest.mark.parametrize("notebook", ["finetune", "embed"])
def test_a_run_without_others_keeps_its_hash(tables, notebook):
    own = {"dataset": str(tables["first"])}
    assert identity.of_run(notebook, own | {"also_rank": None}) == identity.of_run(notebook, own)
    assert "also_rank" not in identity.of_run(notebook, own)["inputs"]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ("{second},{second}", "different data sets joined by commas, none of them the run's own, got 'own:second.tsv'"),
        ("{first}", "none of them the run's own, got 'own:first.tsv'"),
        ("{second},,{third}", "got 'an empty name'"),
        ("{second}.tsv", "second.tsv.tsv does not exist"),
        ("selqua", f"(and no such file or folder): one of {', '.join(ANSWERS)} expected, got 'selqua'; did you mean 'selqa'?"),
        ("nq_sentences", "asutil build nq_sentences RELEASE --to"),
        ("{wrong}", "maybe"),
    ],
)
@pytest.mark.parametrize("notebook", ["finetune", "embed"])
def test_what_is_wrong_with_another_data_set_is_said_before_a_kernel_starts(tables, tmp_path, monkeypatch, notebook, others, message):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    (tmp_path / "wrong.tsv").write_text(TABLE.format("wrong") + "q\ta\tmaybe\n")
    others = others.format(**tables, wrong=tmp_path / "wrong.tsv")
    words = [word for name, value in given(tables, others).items() for word in ("-p", name, value)]
    refused = invoke(notebook, *words, "-p", "runs_dir", tmp_path / "runs", "--engine", "none")
    assert refused.exit_code == 2 and message in " ".join(refused.output.split()), refused.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("context", [False, True])
def test_another_data_set_without_an_order_has_no_context(tables, tmp_path, context):
    (tmp_path / "own.tsv").write_text(
        "".join(f"{line}\tT\n" for line in TABLE.format("own").splitlines()).replace("label\tT", "label\tdocument_title")
    )
    given = {"dataset": tmp_path / "own.tsv", "also_rank": tables["second"], "architecture": "context" if context else "pair"}
    words = [word for name, value in given.items() for word in ("-p", name, value)]
    started = invoke("finetune", *words, "-p", "runs_dir", tmp_path / "runs", "--engine", "none")
    if context:
        assert started.exit_code == 2 and "also_rank: " in started.output and "document_title" in started.output
    else:
        assert isinstance(started.exception, PapermillException) and list((tmp_path / "runs").glob("finetune-*"))


def test_a_folder_with_a_test_file_alone_is_ranked_too(tables, tmp_path):
    (tmp_path / "test.tsv").write_text(TABLE.format("own"))
    (splits,) = transfer.load("finetune", given(tables, f"{tmp_path}")).values()
    assert list(splits) == ["test"] and len(splits["test"]) == 40
    words = ["-p", "dataset", tmp_path, "-p", "runs_dir", tmp_path / "runs", "--engine", "none"]
    assert invoke("finetune", *words).exit_code == 2 and not (tmp_path / "runs").exists()
    started = invoke("rank", *words)
    assert isinstance(started.exception, PapermillException), started.output


def test_questions_that_a_model_was_trained_on_are_no_transfer(tables, tmp_path):
    """By the run itself, and by a run that its model came from or learnt from; a pre-training saw none."""
    chain = {"finetune-a-0123456789ab": {"dataset": "trecqa"}, "finetune-b-0123456789ac": {"model": "finetune-a-0123456789ab"}}
    student = {"finetune-c-0123456789ad": {"loss": "distillation", "teacher": "finetune-a-0123456789ab"}}
    for name, parameters in (chain | student | {"pretrain-a-0123456789ab": {"objective": "sp"}}).items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        disk.write_json(tmp_path / "runs" / name / "run.json", {"notebook": name.partition("-")[0], "given": parameters})
    pre_trained = {"model": "pretrain-a-0123456789ab", "runs_dir": str(tmp_path / "runs")}
    assert list(transfer.load("finetune", given(tables, f"{tables['second']}") | pre_trained)) == ["own:second.tsv"]
    mined = tmp_path / "mined"
    mined.mkdir()
    for split in ("train", "dev", "test"):
        (mined / f"{split}.tsv").write_text(TABLE.format(split))
    disk.write_json(mined / disk.MINED, {"dataset": {"name": "trecqa"}})
    taught = {"loss": "distillation", "teacher": "finetune-b-0123456789ac"}
    starts = [*({"model": name} for name in chain), taught, {"model": "finetune-c-0123456789ad"}]
    trained = [{"dataset": "trecqa"}, {"dataset": str(mined)}, *({"dataset": "wikiqa", **start} for start in starts)]
    for own in trained:
        with pytest.raises(ValueError, match="trecqa_transfer are the training questions of trecqa, which this model was fine-tuned on"):
            transfer.load("finetune", own | {"also_rank": "trecqa_transfer", "runs_dir": str(tmp_path / "runs")})
    with pytest.raises(ValueError, match="trecqa_transfer has only test questions, those that trecqa trains on: name it in also_rank"):
        identity.of_run("finetune", {"dataset": "trecqa_transfer"})


def test_test_questions_that_the_run_is_trained_on_are_counted(tmp_path, caplog):
    """Seven of nine test questions are training questions in capitals and with two marks; a limit leaves some of them out."""
    rows = lambda questions: "question\tanswer\tlabel\n" + "".join(f"{q}\tyes {q}\t1\n{q}\tno {q}\t0\n" for q in questions)
    mine = {"train": [f"When was {n} built?" for n in range(8)], "dev": ["dev?"], "test": ["test?"]}
    more = {"train": ["x?"], "dev": ["y?"], "test": [f"WHEN was {n} built ??" for n in range(1, 10)]}
    for folder, splits in {"mine": mine, "more": more}.items():
        (tmp_path / folder).mkdir()
        for split, questions in splits.items():
            (tmp_path / folder / f"{split}.tsv").write_text(rows(questions))
    both = {"dataset": str(tmp_path / "mine"), "also_rank": str(tmp_path / "more")}
    told = "also_rank own:more: {} of 9 test questions are training questions of this run"
    seen = [told.format(7)]
    for notebook, options, messages in [("finetune", {}, seen), ("embed", {}, seen), ("embed", {"architecture": "untrained"}, [])]:
        caplog.clear()
        transfer.load(notebook, both | options)
        assert caplog.messages == messages, options
    kept = answers.load_answers(tmp_path / "mine", train_limit=3)["train"]
    count = sum(q.text != "When was 0 built?" for q in kept)
    caplog.clear()
    transfer.load("finetune", both | {"train_limit": 3})
    assert caplog.messages == [told.format(count)]


def test_two_data_sets_never_share_a_file_of_scores(tables, tmp_path):
    for name in ("my_a.tsv", "my-a.tsv"):
        (tmp_path / name).write_text(TABLE.format(name))
    others = ",".join(str(tmp_path / name) for name in ("my_a.tsv", "my-a.tsv"))
    with pytest.raises(ValueError, match="own:my_a.tsv and own:my-a.tsv would share the file scores_own-my-a.tsv.parquet: rename one"):
        transfer.load("finetune", given(tables, others))


# ------------------------------------------------------------------ which questions


def test_the_questions_are_those_of_a_run_of_the_same_budget_on_that_data_set(tables):
    """The limits and the protocol of the run's own data set hold for it alone, but what is given for all of them."""
    loaded = transfer.load("finetune", given(tables, f"pydocs,{tables['second']}", protocol="asbert", train_limit=1))
    assert {name: {split: len(of) for split, of in splits.items()} for name, splits in loaded.items()} == {
        "pydocs": {"dev": 240, "test": 240},
        "own:second.tsv": {"dev": 4, "test": 4},
    }
    own = answers.load_answers(tables["second"])
    assert [q.id for q in loaded["own:second.tsv"]["test"]] == [q.id for q in own["test"]]
    loaded = transfer.load("finetune", given(tables, f"{tables['second']}", test_limit=3))
    assert {split: len(of) for split, of in loaded["own:second.tsv"].items()} == {"dev": 3, "test": 3}


# ------------------------------------------------------------------ ranking, and what is published


class Stopped(Exception):
    pass


def scored(questions, folder):
    """Every wrong candidate before every right one, in the order of the questions."""
    frame = questions.frame()
    return frame.assign(score=-frame["label"].astype(np.float32))


def test_a_stopped_ranking_goes_on_after_its_finished_windows(tables, tmp_path):
    loaded = transfer.load("finetune", given(tables, f"{tables['second']},{tables['third']}"))
    (tmp_path / "runs").mkdir()
    run = runs.start("finetune", given(tables, f"{tables['second']},{tables['third']}", runs_dir=str(tmp_path / "runs")))
    folders = []

    def score(questions, folder):
        folders.append(folder)
        folder.mkdir(exist_ok=True)
        if len(folders) == 3:
            raise Stopped
        return scored(questions, folder)

    with pytest.raises(Stopped):
        transfer.ranked(run, loaded, score)
    assert folders[0].is_dir() and set(folders) == {run.folder / "scoring_others"}
    record = transfer.ranked(run, loaded, score)
    assert list(record["transfer"]) == ["own:second.tsv", "own:third.tsv"] and not folders[0].exists()
    assert record["transfer"]["own:third.tsv"]["metrics"]["test"]["map"] == 0.5
    assert record["transfer"]["own:third.tsv"]["fingerprint"] == answers.fingerprint_of_answers(tables["third"])
    assert sorted(path.name for path in run.folder.glob("*.parquet")) == [
        f"scores_own-{name}.tsv{split}.parquet" for name in ("second", "third") for split in ("", "_dev")
    ]
    shown = transfer.table(record)
    assert shown.loc[("own:second.tsv", "this run"), "MAP"] == "50.0" and shown.loc[("own:second.tsv", "random order"), "MAP"] == "75.0"
    assert transfer.ranked(run, {}, score) == {} and transfer.table({}) is None


def test_the_transfer_part_is_published_with_values_of_questions_and_without_text(tables, tmp_path):
    (tmp_path / "runs").mkdir()
    run = runs.start("finetune", given(tables, str(tables["second"]), runs_dir=str(tmp_path / "runs")))
    part = transfer.ranked(run, transfer.load("finetune", run.given), scored)
    run.write("scores.parquet", scored(answers.load_answers(tables["first"])["test"], None))
    record = run.finish(metrics={"test": {"map": 0.5}}, **part)
    line = SimpleNamespace(record=record, row="row", dataset="first", budget="laptop", seed=0, folder=run.folder, earlier=[])
    data = {"slug": "paper", "budgets": {"laptop": {"seeds": [0]}}, "rows": {"row": {}}}
    published = publish._published(data, line, None)
    values = pd.DataFrame(published["transfer"]["own:second.tsv"].pop("per_question"))
    assert published["transfer"] == record["transfer"] and "per_question" not in record["transfer"]["own:second.tsv"]
    test = answers.load_answers(tables["second"])["test"]
    assert values[0].tolist() == [q.id for q in test] and set(values[2]) == {0.5}
    assert "second q" not in json.dumps(published) and str(tmp_path) not in json.dumps(published)


@pytest.mark.parametrize("parameter", ["model", "teacher"])
def test_a_start_that_learnt_from_other_questions_is_named(tables, tmp_path, caplog, parameter):
    """Not one that learnt from the same files or from published ones; what it came from counts as well."""
    own = str(tables["first"])
    here = identity.of_run("finetune", {"dataset": own})["inputs"]["dataset"]

    def run(name, dataset, fingerprint, **start):
        settings = {"dataset": dataset, "architecture": "pair"}
        folder = finished(tmp_path / "runs" / name, {"notebook": "finetune", "settings": settings, "inputs": {"dataset": fingerprint}})
        disk.write_json(folder / "run.json", {"notebook": "finetune", "given": {"dataset": dataset, **start}})
        return str(folder)

    same, other = run("finetune-a-000000000001", "own:first.tsv", here), run("finetune-b-000000000002", "own:first.tsv", "0" * 64)
    after = run("finetune-c-000000000003", "own:first.tsv", here, model=other)
    public = run("finetune-d-000000000004", "wikiqa", "1" * 64)
    for start, warned in [(same, 0), (other, 1), (after, 1), (public, 0)]:
        caplog.clear()
        given = {"dataset": own, parameter: start, "runs_dir": str(tmp_path / "runs")}
        runs.start("finetune", given | ({"loss": "distillation"} if parameter == "teacher" else {}))
        name = start.rsplit("/", 1)[-1]
        said = f"{parameter} {name}: trained on own:first.tsv, whose training questions may be among these"
        assert caplog.messages == [said] * warned
