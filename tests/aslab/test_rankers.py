"""What `experiments/rankers.yml` lists: runs of `rank`, and what is known of models."""

from types import SimpleNamespace

import pandas as pd
import pytest

from aslab import identity, parameters, rankers
from asutil.io import disk

from .. import made_up


def test_every_budget_has_a_run_for_each_data_set_and_no_other_has_any(tmp_path):
    listed = rankers.read()["budgets"]
    for budget, own in listed.items():
        made = rankers.jobs(budget, tmp_path)
        assert [job.dataset for job in made] == own["datasets"] and len({job.folder for job in made}) == len(made)
        for job in made:
            settings = parameters.settings("rank", job.parameters)
            assert settings["protocol"] == "clean" and settings["models"].split(",") == own["rankers"]
            assert job.folder.parent == tmp_path and job.folder.name.startswith(f"rank-{job.dataset}-")
    assert rankers.jobs("laptop") == []
    assert all(job.parameters["test_limit"] == 5 for job in rankers.jobs("small", tmp_path, {"test_limit": 5, "epochs": 1}))


@pytest.mark.parametrize(
    ("name", "seen"),
    [("bm25", "no"), ("cross-encoder/ms-marco-MiniLM-L6-v2", "yes"), ("nobody/nothing", "not known"), ("all-MiniLM-L6-v2", "yes")],
)
def test_whether_a_model_was_trained_on_questions(name, seen):
    assert rankers.pairs_before(name) == seen


def test_only_listed_models_are_described():
    content = rankers.read()
    listed = {name.rsplit("/", 1)[-1] for budget in content["budgets"].values() for name in budget["rankers"]}
    assert set(content["pairs_before"]) - listed == {"glove-6b-50d", "usem3"}  # rows of asbert
    assert set(content["pairs_before"].values()) <= {"yes", "no", "likely"}


def finished(folder, created, settings, rank):
    """A finished run of `rank`: the right candidate of q1 is first, that of q2 has the rank."""
    rows = [
        ("bm25", question, f"{question}-{n}", int(n == right), -n) for question, right in (("q1", 1), ("q2", rank)) for n in range(1, 11)
    ]
    scores = pd.DataFrame(rows, columns=["ranker", "question_id", "candidate_id", "label", "score"])
    record = {"notebook": "rank", "created": str(created), "settings": settings, "metrics": {}}
    made_up.finished(folder / f"rank-wikiqa-{created:012d}", record, scores_of_rankers=scores)


def test_two_rankers_of_one_name_are_refused(tmp_path, monkeypatch):
    opened = SimpleNamespace(options=SimpleNamespace(models="", budget="laptop", runs_dir="runs"), given={}, shared=tmp_path)
    monkeypatch.setattr(rankers.identity, "models", lambda *given: ["/a/model", "/b/model"])
    monkeypatch.setattr(rankers.identity, "of_run", lambda notebook, given: {"hash": given["models"][1]})
    monkeypatch.setattr("asutil.tasks.rankers.scored", lambda name, splits, folder: pytest.fail("scored before the names were looked at"))
    with pytest.raises(ValueError, match="models: two rankers are called own:model"):
        rankers.scored(opened, {})


def test_kept_scores_are_of_the_weights_and_the_code_that_are_there(tmp_path, monkeypatch):
    """A run that was deleted and made again has its name and its settings."""
    options = SimpleNamespace(models="", budget="laptop", runs_dir=str(tmp_path), dataset="mine.tsv")
    opened = SimpleNamespace(options=options, given={}, shared=tmp_path / "shared", identity={"inputs": {"dataset": "0"}})
    folders = []
    monkeypatch.setattr("asutil.tasks.rankers.scored", lambda name, splits, folder: folders.append(folder) or ({}, {}))
    monkeypatch.setattr(rankers.identity, "of_run", lambda notebook, given: {"hash": given["models"]})
    (path := tmp_path / "finetune-mine-0123456789ab").mkdir()
    monkeypatch.setattr(rankers.identity, "models", lambda *given: [str(path)])
    record = {"notebook": "finetune", "settings": {"dataset": "own:mine.tsv", "architecture": "pair"}, "inputs": {"dataset": "0"}}
    for weights, code in (("1", "a"), ("1", "a"), ("2", "a"), ("2", "b")):
        disk.write_json(path / "record.json", record | {"name": path.name, "weights_sha256": weights})
        monkeypatch.setattr(rankers.provenance, "sources_sha256", lambda code=code: code)
        rankers.scored(opened, {})
    assert folders[0] == folders[1] and len({*folders}) == 3


def test_a_run_that_learnt_from_other_data_is_named(tmp_path, monkeypatch, caplog):
    """By the files, whatever their names; a pre-training and an untrained encoder learnt from no questions.

    A data set of the hub has its id in place of a hash: that says nothing of another data set."""
    names = []
    trained = [("finetune", "0", "pair"), ("finetune", "1", "pair"), ("embed", "1", "triplet")]
    for notebook, sha256, architecture in [*trained, ("embed", "1", "untrained"), ("pretrain", None, None)]:
        settings = {"dataset": "own:mine.tsv", "architecture": architecture}
        record = {"notebook": notebook, "settings": settings, "inputs": {"dataset": sha256}}
        names.append(str(made_up.finished(tmp_path / f"{notebook}-mine-{len(names):012x}", record)))
    of_hub = {"notebook": "finetune", "settings": {"dataset": "wikiqa"}, "inputs": {"dataset": "microsoft/wiki_qa"}}
    public = made_up.finished(tmp_path / "finetune-wikiqa-0000000000ff", of_hub).name
    other, embedded = names[1:3]
    names.append(str(tmp_path / public))
    options = SimpleNamespace(models="", budget="laptop", runs_dir="runs", dataset="mine.tsv")
    opened = SimpleNamespace(options=options, given={}, shared=tmp_path)
    opened.identity = {"inputs": {"dataset": "0"}}
    monkeypatch.setattr(rankers.identity, "models", lambda *given: [*names, f"bm25+{other}"])
    monkeypatch.setattr(rankers.identity, "of_run", lambda notebook, given: {"hash": given["models"][-12:]})
    monkeypatch.setattr("asutil.tasks.rankers.scored", lambda name, splits, folder: ({}, {}))
    _, figures = rankers.scored(opened, {})
    short = [name.rsplit("/")[-1] for name in (other, embedded)]
    said = "models {}: trained on own:mine.tsv, whose training questions may be among these"
    wikiqa = said.replace("own:mine.tsv", "wikiqa").format(public)
    assert caplog.messages == [*map(said.format, short), wikiqa, said.format(f"bm25+{short[0]}")]
    assert [own["pairs_before"] for own in figures.values()] == ["not known"] * len(figures)


def test_the_newest_run_of_what_is_listed_is_published(tmp_path):
    results, made = tmp_path / "results", tmp_path / "runs"
    assert rankers.publish(results, made) == []
    (job,) = (job for job in rankers.jobs("small", made) if job.dataset == "wikiqa")
    settings = identity.shown(parameters.settings("rank", job.parameters))
    finished(made, 2, settings, 2)
    finished(made, 1, settings, 10)
    finished(made, 3, settings | {"models": "bm25"}, 5)
    assert rankers.publish(results, made) == [results / "rankers" / "wikiqa-small.json"]
    record = rankers.committed(results)["wikiqa"]
    assert record["created"] == "2" and record["per_question"] == {"bm25": [["q1", 1.0, 1.0, 1.0], ["q2", 0.0, 0.5, 0.5]]}
    assert rankers.questions_of(record)["bm25"].average_precision.tolist() == [1.0, 0.5]
