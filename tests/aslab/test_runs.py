import hashlib
import json
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import torch

from aslab import chains, identity, parameters, provenance, rundir, runs
from asutil.data import claims
from asutil.io import disk, hub

CELL = """
objective: str = "psd"  # what is learnt; one of: ssp, sp, psd
budget: str = "laptop"  # one of: laptop, small, gpu
model: str = None  # backbone
steps: int = None  # how long
peak_lr: float = 0.1  # rate
keep_head: bool = True  # go on with it
seed: int = 0  # seed
runs_dir: str = "runs"  # where
"""

ENTRIES = [
    {"set": {"model": "tiny", "steps": 5}},
    {"when": {"budget": "small"}, "set": {"steps": 9}},
    {"when": {"budget": "small", "objective": ["ssp", "sp"], "model": "tiny"}, "set": {"steps": 7}},
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one notebook, away from this one."""
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": CELL.strip().splitlines(True)}
    for name in ("pretrain", "finetune"):
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}))
    monkeypatch.setenv("ASUTIL_PROJECT", str(tmp_path))
    monkeypatch.setattr(parameters, "_budgets", lambda: {"pretrain": ENTRIES})
    return tmp_path


def finished(folder, **record):
    folder.mkdir(parents=True, exist_ok=True)
    disk.write_json(folder / "record.json", {"notebook": "pretrain", "budget": "laptop", "seed": 0, **record} | runs.hashes(folder))


def test_parameters_are_read_from_the_cell(project):
    known = parameters.parameters("pretrain")
    assert list(known) == ["objective", "budget", "model", "steps", "peak_lr", "keep_head", "seed", "runs_dir"]
    said = "what is learnt; one of: ssp, sp, psd"
    assert known["objective"] == parameters.Parameter("objective", "psd", "str", said, ("ssp", "sp", "psd"))
    assert known["steps"].default is None and known["keep_head"].default is True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objectve": "ssp"}, r"no parameter 'objectve'; did you mean 'objective'\?"),
        ({"objective": "sssp"}, r"one of ssp, sp, psd; got 'sssp'; did you mean 'ssp'\?"),
        ({"objective": None}, r"objective of pretrain is .*got None"),
        ({"steps": "many"}, r"steps of pretrain is int, got 'many'"),
        ({"steps": 1.5}, r"steps of pretrain is int, got 1.5"),
        ({"steps": True}, r"steps of pretrain is int, got True"),
        ({"peak_lr": float("nan")}, r"must be finite, got nan"),
        ({"keep_head": "yes"}, r"keep_head of pretrain is True or False, got .yes."),
        ({"a b": 1}, r"'a b' is not a parameter name"),
        ({"model": "runs/nothing-0123456789ab"}, r"nothing-0123456789ab is not a finished run"),
        ({"model": "../elsewhere"}, r"model: ../elsewhere does not exist"),
    ],
)
def test_wrong_parameters_are_refused_with_the_nearest_name(project, given, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        identity.folder_for("pretrain", given)


def test_an_integer_is_a_float_and_none_is_the_budgets(project):
    assert parameters.settings("pretrain", {"peak_lr": 1})["peak_lr"] == 1
    assert parameters.settings("pretrain", {"steps": None})["steps"] == 5
    with pytest.raises(ValueError, match="steps: None leaves it to the budget, which sets 5: expected a value"):
        parameters.require_no_none("pretrain", {"steps": None})
    parameters.require_no_none("pretrain", {"steps": 3, "no_parameter": None})


def test_what_reads_a_run_later_finds_its_paths_from_any_folder(project, monkeypatch):
    """A published name is no path, whatever the working folder has."""
    here = project / "here"
    for name in ("my model", "my data", "wikiqa", "bm25"):
        (here / name).mkdir(parents=True)
    monkeypatch.chdir(here)
    given = {"model": "my model", "dataset": "my data", "teacher": "bm25", "corpus": "pydocs", "steps": 3}
    assert runs.whole_paths(given) == {"model": str(here / "my model"), "dataset": str(here / "my data")}
    assert runs.whole_paths({"dataset": "wikiqa", "model": "owner/name"}) == {}
    shown = identity.shown({"dataset": "wikiqa", "teacher": "bm25", "model": "my model"})
    assert shown == {"dataset": "wikiqa", "teacher": "bm25", "model": "own:my model"}


def test_budgets_fill_what_is_not_given_and_may_depend_on_another_parameter(project):
    assert parameters.settings("pretrain", {})["steps"] == 5
    assert parameters.settings("pretrain", {"budget": "small"})["steps"] == 9
    assert parameters.settings("pretrain", {"budget": "small", "objective": "ssp"})["steps"] == 7
    assert parameters.settings("pretrain", {"budget": "small", "objective": "ssp", "model": "mini"})["steps"] == 9
    assert parameters.settings("pretrain", {"budget": "small", "steps": 1})["steps"] == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"set": {"step": 3}}, r"pretrain has no parameter 'step'; did you mean 'steps'\?"),
        ({"when": {"objectve": "ssp"}, "set": {}}, r"no parameter 'objectve'; did you mean 'objective'\?"),
        ({"when": {"objective": ["psd", "sssp"]}, "set": {}}, r"one of ssp, sp, psd; got 'sssp'; did you mean 'ssp'\?"),
        ({"set": {"steps": "many"}}, "steps of pretrain is int, got 'many'"),
        ({"set": {"peak_lr": 0.2}}, "peak_lr has a default in the notebook"),
        ({"when": {"budget": "small"}}, r"`set: {...}`, with or without `when: {...}`, is expected, got {'when'"),
        ({"sets": {}, "set": {}}, "`set: {...}`, with"),
        ({"set": ["steps"]}, r"set: a mapping of parameters is expected, got \['steps'\]"),
        ("steps", "is expected, got 'steps'"),
    ],
)
def test_a_wrong_entry_of_the_budgets_is_named(project, monkeypatch, entry, message):
    monkeypatch.setattr(parameters, "_budgets", lambda: {"pretrain": [*ENTRIES, entry]})
    with pytest.raises(ValueError, match=f"budgets.yml, pretrain, entry 4: .*{message}"):
        parameters.settings("pretrain", {})


def test_the_same_run_has_the_same_folder_however_it_is_asked_for(project):
    plain = identity.folder_for("pretrain", {})
    assert plain == identity.folder_for("pretrain", {"objective": "psd", "seed": 0, "steps": 5, "model": "tiny", "budget": "laptop"})
    assert plain.parent == project / "runs" and re.fullmatch(r"pretrain-psd-[0-9a-f]{12}", plain.name)
    assert identity.folder_for("pretrain", {"runs_dir": "other"}) == project / "other" / plain.name


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"steps": 6}, {"objective": "sp"}, {"peak_lr": 0.2}, {"keep_head": False}, {"budget": "small"}]
)
def test_every_parameter_is_in_the_hash(project, change):
    assert identity.folder_for("pretrain", change).name[-12:] != identity.folder_for("pretrain", {}).name[-12:]


def test_the_first_runs_keep_their_hash(project):
    run = runs.start("pretrain", {"seed": 3})
    settings = {name: value for name, value in run.settings.items() if name not in ("budget", "runs_dir") and value is not None}
    content = json.dumps(["pretrain", settings | {"rung": "laptop"} | run.identity["inputs"]], sort_keys=True)
    assert hashlib.sha256(content.encode()).hexdigest()[:12] == run.identity["hash"]


def test_inputs_are_in_the_hash_by_content_not_by_place(project):
    for place in ("one", "two"):
        (project / place).mkdir()
        (project / place / "config.json").write_text("{}")
    one, two = (identity.of_run("pretrain", {"model": str(project / place)}) for place in ("one", "two"))
    assert one["hash"] == two["hash"]
    (project / "two" / "config.json").write_text('{"changed": 1}')
    assert identity.of_run("pretrain", {"model": str(project / "two")})["hash"] != one["hash"]
    assert str(project) not in json.dumps(one)


def test_a_run_as_a_model_is_known_by_its_own_hash(project):
    before = identity.folder_for("pretrain", {})
    planned = identity.folder_for("finetune", {"model": str(before)}, must_exist=False)
    finished(before)
    assert all(identity.folder_for("finetune", {"model": name}) == planned for name in (before.name, f"runs/{before.name}"))
    assert identity.of_run("finetune", {"model": str(before)})["inputs"]["model"] == before.name[-12:]


def test_a_chain_is_followed_to_the_backbone_that_it_began_with(project):
    """Of three runs in a row; by default, too, where the first was given no model."""
    chain = {"pretrain-a-0123456789ab": {"model": "owner/name"}, "pretrain-b-0123456789ac": {"model": "pretrain-a-0123456789ab"}}
    chain |= {"pretrain-c-0123456789ad": {"model": "runs/pretrain-b-0123456789ac"}, "pretrain-d-0123456789ae": {}}
    for name, given in chain.items():
        (project / "runs" / name).mkdir(parents=True)
        disk.write_json(project / "runs" / name / "run.json", {"notebook": "pretrain", "given": given})
    assert chains.started_from("pretrain-c-0123456789ad") == chains.started_from("owner/name") == "owner/name"
    assert chains.started_from("pretrain-d-0123456789ae") == "tiny"
    assert chains.started_from("pretrain-e-0123456789af") is None  # there is no such run to ask


def test_of_the_processes_of_one_training_the_first_alone_writes_run_json(project, monkeypatch):
    """Those of another node do not see its process numbers, and would take its file for one that was left."""
    for rank, written in (("1", False), ("0", True)):
        monkeypatch.setenv("RANK", rank)
        assert (runs.start("pretrain", {"objective": "ssp"}).folder / "run.json").is_file() == written


def test_start_finds_its_folder_and_finish_writes_the_record_last(project, capsys):
    run = runs.start("pretrain", {"objective": "ssp", "steps": 3, "unrelated": object()})
    assert run.folder == identity.folder_for("pretrain", {"objective": "ssp", "steps": 3}) and run.folder.is_dir()
    assert run.options.steps == 3 and run.options.model == "tiny" and not run.finished
    run.write("scores.parquet", pd.DataFrame({"score": [1.0]}))
    record = run.finish(metrics={"validation": {"accuracy": 0.5}}, figures={"examples": 1})
    assert run.finished and record == rundir.read_record(run.folder)
    assert record["given"] == {"objective": "ssp", "steps": 3} and record["settings"]["peak_lr"] == 0.1
    assert {"versions", "hardware", "commit", "sources_sha256", "seconds", "peak_memory_bytes", "created"} <= set(record)
    text = (run.folder / "record.json").read_text()
    assert str(project) not in text and str(Path.home()) not in text
    assert "is finished already" not in capsys.readouterr().out
    again = runs.start("pretrain", {"objective": "ssp", "steps": 3})
    assert "is finished already" in capsys.readouterr().out
    # Its cells, executed again, give the same figures: the record stays that of what trained. Other figures are another run.
    before = record | {"created": "2020-01-01T00:00:00+00:00", "seconds": 3600.0, "commit": "a" * 40}
    disk.write_json(run.folder / "record.json", before)
    assert again.finish(metrics={"validation": {"accuracy": 0.5}}, figures={"examples": 1}) == before
    other = again.finish(metrics={"validation": {"accuracy": 0.25}}, figures={"examples": 1})
    assert other["seconds"] < 3600 and other["created"] > before["created"]


def test_a_run_that_continues_with_other_code_says_so(project, monkeypatch, caplog):
    """Not before anything was trained, and not when a finished one is executed again."""
    start = lambda: runs.start("pretrain", {"objective": "ssp"})
    code = lambda sha256: monkeypatch.setattr(runs, "sources_sha256", lambda: sha256)
    code("0" * 64)
    folder = start().folder
    code("1" * 64)
    (start().folder / "checkpoints" / "checkpoint-1").mkdir(parents=True)
    monkeypatch.setattr(runs, "provenance", lambda: {"sources_sha256": "1" * 64})
    assert not caplog.messages and "begun_with_sources_sha256" not in start().finish(metrics={})
    (folder / "record.json").unlink()
    code("2" * 64)
    monkeypatch.setattr(runs, "provenance", lambda: {"sources_sha256": "2" * 64})
    assert start().finish(metrics={})["begun_with_sources_sha256"] == "1" * 64
    assert caplog.messages == [f"{folder.name} continues what other code of asutil or aslab began: delete it to begin anew"]
    code("3" * 64)
    monkeypatch.setattr(runs, "provenance", lambda: {"sources_sha256": "3" * 64})
    assert start().finish(metrics={})["begun_with_sources_sha256"] == "1" * 64 and len(caplog.messages) == 1


def test_a_path_with_a_comma_is_one_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a, b", "c", "c,d", "e,f,"):
        (tmp_path / name).mkdir()
    for names in (["bm25", f"{tmp_path}/a, b"], ["a, b"], ["c,d", "c"], ["c", "x", "a, b"], ["e,f,", "owner/name"], ["x", "y", "x"]):
        assert parameters.names_of(",".join(names)) == parameters.names_of(" , ".join(names)) == names
        assert identity.models(" ,".join(names), "laptop") == names
    for empty in ("", "a,,b", "bm25,", ",bm25"):
        with pytest.raises(ValueError, match="models: expected names joined by commas, one is empty"):
            identity.models(empty, "laptop")
    assert identity.shown({"models": f"bm25,{tmp_path}/a, b"})["models"] == "bm25,own:a, b"


OTHERS = {"In": [""], "Out": {}, "_": 1, "__name__": "__main__", "_dh": ["/"], "PAPERMILL_INPUT_PATH": "a.ipynb", "pd": pd, "print": print}


@pytest.mark.parametrize("value", ["ssp", 1, 0.5, True, None, ["ssp"], ("ssp",), {"a": 1}])
def test_a_plain_variable_that_is_no_parameter_is_refused(project, value):
    """As papermill's Python API and JupyterLab set it, which know nothing of the parameters that there are."""
    with pytest.raises(ValueError, match=r"pretrain has no parameter 'objectiv'; did you mean 'objective'\?.* begins with _"):
        runs.start("pretrain", OTHERS | {"seed": 3, "objectiv": value})
    assert not (project / "runs").exists()
    assert runs.start("pretrain", OTHERS | {"_objectiv": value, "seed": 3}).given == {"seed": 3}


def test_a_kernel_that_starts_its_run_again_may_have_the_later_cells_variables(project):
    path = project / "notebooks" / "pretrain.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"] += [{"cell_type": "code", "metadata": {}, "source": "losses: dict = {}\nfor step, _ in (): pass\n[x for x in ()]"}]
    path.write_text(json.dumps(notebook))
    left = OTHERS | {"losses": {}, "step": 1}
    with pytest.raises(ValueError, match="no parameter 'losses'"):
        runs.start("pretrain", left)
    run = runs.start("pretrain", OTHERS)
    assert runs.start("pretrain", left | {"run": run}).folder == run.folder
    with pytest.raises(ValueError, match="did you mean 'steps'"):
        runs.start("pretrain", left | {"run": run, "stepz": 1})


def test_a_run_that_is_meant_for_a_gpu_says_that_there_is_none(project, monkeypatch, capsys):
    for gpu, budget, said in ((False, "gpu", True), (False, "laptop", False), (True, "gpu", False)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpu=gpu: gpu)
        runs.start("pretrain", {"objective": "ssp", "budget": budget})
        assert ("torch finds no GPU" in capsys.readouterr().out) == said


def test_a_record_has_the_gpu_and_its_memory(monkeypatch):
    made = provenance.of_project(Path(__file__).parent)
    assert made["hardware"]["gpu"] is None and "peak_gpu_memory_bytes" not in made
    for name, value in {"is_available": True, "get_device_name": "H100", "device_count": 2, "max_memory_allocated": 7}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    made = provenance.of_project(Path(__file__).parent)
    assert (made["hardware"]["gpu"], made["hardware"]["gpus"], made["peak_gpu_memory_bytes"]) == ("H100", 2, 7)


def test_a_record_names_the_commits_of_what_was_read_from_the_hub(project, monkeypatch):
    monkeypatch.setattr(hub, "commits", {})
    assert "hub_commits" not in runs.start("pretrain", {"objective": "ssp"}).finish(metrics={})
    hub.commits["owner/name"] = "0123abc"
    assert runs.start("pretrain", {"objective": "psd"}).finish(metrics={})["hub_commits"] == {"owner/name": "0123abc"}


def test_a_record_with_nan_is_not_written(project):
    run = runs.start("pretrain", {})
    with pytest.raises(ValueError, match="JSON"):
        run.finish(metrics={"validation": {"accuracy": float("nan")}})
    assert not run.finished and not list(run.folder.glob(".*.part"))


def test_read_all_gives_one_row_a_run(project):
    finished(project / "runs" / "pretrain-psd-0123456789ab", metrics={"validation": {"accuracy": 0.75}})
    (project / "runs" / "finetune-wikiqa-ba9876543210").mkdir()
    (project / "runs" / "shared").mkdir()
    table = runs.read_all()
    assert table.name.tolist() == ["finetune-wikiqa-ba9876543210", "pretrain-psd-0123456789ab"]
    assert table.finished.tolist() == [False, True] and table.notebook.tolist() == ["finetune", "pretrain"]
    assert table.accuracy.tolist()[1] == 0.75
    for damaged in ("{", "{}", "[1]", '{"metrics": 1}', "[" * 100_000):
        (project / "runs" / "pretrain-psd-0123456789ab" / "record.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"pretrain-psd-0123456789ab/record.json is damaged"):
            runs.read_all()


def test_a_link_in_the_folder_of_runs_is_no_run(project):
    name = "pretrain-psd-0123456789ab"
    finished(project / "elsewhere" / name)
    (project / "runs").mkdir()
    (project / "runs" / name).symlink_to(project / "elsewhere" / name)
    with pytest.raises(ValueError, match=rf"{name} is a link, which may lead out of runs/"):
        rundir.find(name)
    assert not len(runs.read_all()) and rundir.find(str(project / "elsewhere" / name)) == project / "elsewhere" / name
    mine = identity.folder_for("pretrain", {})
    mine.symlink_to(project / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        runs.start("pretrain", {})
    assert [path.name for path in (project / "elsewhere").iterdir()] == [name]


@pytest.mark.parametrize("name", ["<img src=x>", 'a"b', "a\n", "n" * 300, "a'b", "a&b", "%2e%2e"])
def test_a_name_that_no_run_can_have_is_no_run(project, name):
    assert rundir.find(f"{name}-0123456789ab") is None and rundir.find(f"{name}-0123456789ab\n") is None
    if len(name) < 100:
        finished(project / "runs" / f"{name}-0123456789ab")
    assert not len(runs.read_all())


def test_a_file_or_folder_that_ends_in_a_time_stamp_is_no_run(tmp_path):
    names = {name: tmp_path / f"{name}-202401011230" for name in ("model", "questions", "table")}
    names["model"].mkdir()
    (names["model"] / "config.json").write_text("{}")
    names["questions"].mkdir()
    for split in ("train", "dev", "test"):
        (names["questions"] / f"{split}.tsv").write_text("question\tanswer\tlabel\nq\ta\t1\n")
    names["table"].write_text("question\tanswer\tlabel\n")
    assert [rundir.find(str(path)) for path in names.values()] == [None] * 3
    given = {"model": str(names["model"]), "dataset": str(names["questions"])}
    described = identity.of_run("finetune", given)
    assert described["inputs"]["model"] == hub.sha256(names["model"])
    own = {"model": "own:model-202401011230", "dataset": "own:questions-202401011230"}
    assert {name: described["settings"][name] for name in own} == own
    assert identity.shown({"dataset": str(names["table"])}) == {"dataset": "own:table-202401011230"}
    for file in ("run.json", "record.json"):  # begun, and finished
        folder = tmp_path / "elsewhere" / f"finetune-{file[:3]}-202401011230"
        folder.mkdir(parents=True)
        (folder / file).touch()
        assert rundir.find(str(folder)) == folder


@pytest.mark.parametrize(("notebook", "name", "most"), [("verify_claims", "k", claims.MOST), ("pretrain", "mlm_share", 1)])
def test_a_value_above_the_most_is_refused(notebook, name, most):
    parameters.check(notebook, {name: most})
    with pytest.raises(ValueError, match=f"{name} of {notebook} is at most {most}, got {most + 1}"):
        parameters.check(notebook, {name: most + 1})


def test_a_long_value_is_not_shown_whole():
    with pytest.raises(ValueError, match=r"peak_lr of finetune is float, got 'x{299}… \(100,002 characters\)") as refused:
        parameters.check("finetune", {"peak_lr": "x" * 100_000})
    assert len(str(refused.value)) < 600


def test_the_sources_have_one_hash_of_their_places_and_contents(tmp_path, monkeypatch):
    for name in ("asutil/b.py", "asutil/a/c.py", "asutil/a/notes.md", "aslab/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(provenance.asutil, "__file__", str(tmp_path / "asutil/__init__.py"))
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "aslab/provenance.py"))
    hashes = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("asutil/a/c.py", "asutil/b.py", "aslab/__init__.py")}
    text = "".join(f"{name}\0{own}\n" for name, own in hashes.items())
    assert provenance.sources_sha256() == hashlib.sha256(text.encode()).hexdigest()


def test_a_commit_has_changes_where_code_differs_from_it_not_where_results_do(tmp_path):
    def git(*words):
        return subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True).stdout.strip()

    for name in ("code.py", "results/one.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    git("init")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "results/one.json").write_text("2")
    (tmp_path / "own.tsv").write_text("questions of the user's own")
    assert provenance.of_project(tmp_path)["commit"] == commit
    (tmp_path / "asutil").mkdir()
    (tmp_path / "asutil" / "objective.py").write_text("new")
    assert provenance.of_project(tmp_path)["commit"] == f"{commit}+changes"
    (tmp_path / "asutil" / "objective.py").unlink()
    (tmp_path / "code.py").write_text("2")
    assert provenance.of_project(tmp_path)["commit"] == f"{commit}+changes"


@pytest.mark.parametrize("name", ["runs/pretrain-ssp-0123", "pretrain-ssp-0123", "runs/nope"])
def test_a_run_that_is_not_there_is_not_asked_of_the_hub(project, name):
    (project / "runs" / "pretrain-ssp-0123456789ab").mkdir(parents=True)
    near = "; did you mean 'pretrain-ssp-0123456789ab'?" * ("ssp" in name)
    with pytest.raises(ValueError, match=re.escape(f"model: no run {name!r}{near}")):
        runs.start("finetune", {"model": name})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "listwise", "architecture": "joint"}, "a joint model reads candidates together"),
        ({"loss": "listwise", "k": 1}, "k: listwise compares the candidates of a list, at least 2 expected, got 1"),
        ({"loss": "distillation"}, "got None with loss distillation"),
        ({"teacher": "bm25"}, "got 'bm25' with loss None"),
        ({"loss": "listwise", "teacher": "bm25"}, "got 'bm25' with loss listwise"),
        ({"loss": "distillation", "teacher": "bm25+owner/name"}, "teacher: expected one ranker, got 'bm25.owner/name': fused ranks"),
        ({"loss": "distillation", "teacher": "bm26"}, "teacher: no folder or run 'bm26'; did you mean 'bm25'"),
    ],
)
def test_a_loss_on_lists_takes_pairs_and_a_teacher_is_of_distillation(given, message):
    with pytest.raises(ValueError, match=message):
        identity.of_run("finetune", given)


def test_a_teacher_may_have_a_plus_sign_in_its_name_in_any_runs_folder(tmp_path):
    (tmp_path / "finetune-c++-0123456789ab").mkdir()
    given = {"loss": "distillation", "teacher": "finetune-c++-0123456789ab", "runs_dir": str(tmp_path)}
    assert identity.of_run("finetune", given, must_exist=False)["inputs"]["teacher"] == "0123456789ab"


@pytest.mark.parametrize("budget", rundir.BUDGETS)
@pytest.mark.parametrize(
    ("notebook", "given"),
    [("finetune", {"architecture": "joint"}), ("verify_claims", {"head": "ie_1"}), ("verify_claims", {"head": "ae_1"})],
)
def test_slots_share_the_tokens_of_a_joint_input_of_ones_own_data(budget, notebook, given):
    made = parameters.settings(notebook, {"budget": budget, "dataset": "my data", **given})
    assert made["max_tokens"] % (made["k"] + 1) == 0
    if made["model"] in hub.EMBEDDED:
        positions = json.loads(Path(hub.model_path(made["model"]), "config.json").read_text())["max_position_embeddings"]
        assert made["max_tokens"] <= positions - 2  # those of a RoBERTa begin after its padding index


def test_a_run_on_lists_has_lists_of_sixteen_and_one_of_pairs_has_no_size():
    settings = [parameters.settings("finetune", {"budget": "small", "loss": loss}) for loss in (None, "listwise", "distillation")]
    assert [(s["k"], s["batch_size"], s["warmup_steps"]) for s in settings] == [(None, 32, 81), (16, 8, 38), (16, 8, 38)]
    assert [s["train_questions"] for s in settings] == ["with_positive", "with_positive", "all"], "a student reads no labels"
    assert identity.of_run("finetune", {"loss": "distillation", "teacher": "bm25"})["inputs"]["teacher"] == "bm25"
