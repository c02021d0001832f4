"""Several processes: the weights of one, resumed on another number of them, started from a notebook, and refused where they are alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from aslab import processes as lab_processes
from asutil import training
from asutil.io import disk
from asutil.training import checkpoints
from asutil.training import processes as ranks

from .test_loop import USUAL, Batches, new_model, rows
from .worker import STEPS, work

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def start(folder, processes, stop=0, save_seconds=(120, 120)):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.training.worker", str(folder), str(processes), str(stop), *map(str, save_seconds)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def final(folder):
    return load_file(folder / "final.safetensors")


def seen(folder) -> dict[int, list[str]]:
    """Step -> the examples that its processes took together; of a step that was done twice the last time counts."""
    found = {}
    for path in sorted(folder.glob("seen-*.jsonl")):
        of_process = dict(json.loads(line) for line in path.read_text().splitlines())
        for step, names in of_process.items():
            found.setdefault(step, []).extend(names)
    return {step: sorted(names) for step, names in found.items()}


def apart(one: dict, other: dict) -> float:
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "alone"
    work(folder)
    return folder


def test_two_processes_end_in_the_weights_of_one(alone, tmp_path):
    """With dropout: each micro-batch draws its own, whoever takes it."""
    found = start(tmp_path / "two", 2)
    assert found.returncode == 0, found.stderr
    assert {array.dtype for array in final(alone).values()} == {np.dtype("float64")}
    assert apart(final(alone), final(tmp_path / "two")) < 1e-9
    assert seen(alone) == seen(tmp_path / "two") and len(seen(alone)) == STEPS
    each = [path.read_text() for path in sorted((tmp_path / "two").glob("seen-*"))]
    assert len(each) == 2 and each[0] != each[1]
    logged = [[{name: value for name, value in row.items() if name != "seconds"} for row in rows(f)] for f in (alone, tmp_path / "two")]
    for ours, theirs in zip(*logged, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)  # losses, tokens and evaluations are those of all processes


@pytest.mark.parametrize(("save_seconds", "saved"), [((120, 120), {20}), ((0, 10**6), {26, 27}), ((10**6, 0), {20})])
def test_killed_on_two_processes_a_run_goes_on_on_one_from_what_the_clock_of_the_first_saved(alone, tmp_path, save_seconds, saved):
    folder = tmp_path / "killed"
    assert start(folder, 2, stop=27, save_seconds=save_seconds).returncode != 0 and not (folder / "final.safetensors").exists()
    at = int(checkpoints.newest_checkpoint(folder / "checkpoints").name.split("-")[1])
    before = (folder / "seen-0.jsonl").read_text()
    work(folder)
    again = (folder / "seen-0.jsonl").read_text().removeprefix(before).splitlines()
    assert at in saved and (json.loads(again[0])[0], len(again)) == (at, STEPS - at)
    assert apart(final(alone), final(folder)) < 1e-9


# ------------------------------------------------------------------ who takes what


@given(st.lists(st.integers(1, 500), min_size=1, max_size=20), st.integers(1, 8))
def test_every_micro_batch_is_taken_once_and_loads_are_near(sizes, processes):
    micros = [{"input_ids": torch.zeros(1, n)} for n in sizes]
    found = ranks.assigned(micros, processes)
    assert sorted(number for numbers in found for number in numbers) == list(range(len(sizes))) and len(found) == processes
    loads = [sum(sizes[number] for number in numbers) for numbers in found]
    assert max(loads) - min(loads) <= max(sizes)
    assert found == ranks.assigned(micros, processes)
    assert ranks.share(micros, 10**6, processes) * processes >= sum(sizes) and ranks.share(micros, 3, processes) <= 3


# ------------------------------------------------------------------ memory


class Cut(Batches):
    """As many micro-batches as their tokens ask for."""

    micro_tokens = 120

    def __getitem__(self, step):
        self.micro = min(12, -(-120 // self.micro_tokens))
        return super().__getitem__(step)


def test_too_large_micro_batches_are_halved_and_no_example_is_lost(tmp_path, monkeypatch, caplog):
    plain = [new_model(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0) for _ in range(2)]
    small = Cut()
    small.micro_tokens = 30
    training.train(plain[0], small, tmp_path / "small", **USUAL)
    forward = type(plain[1]).forward

    def full(self, micro, *rest):
        if micro["input_ids"].numel() > 40:
            raise torch.OutOfMemoryError("made up")
        return forward(self, micro, *rest)

    monkeypatch.setattr(type(plain[1]), "forward", full)
    training.train(plain[1], Cut(), tmp_path / "halved", **USUAL)
    assert [record.getMessage() for record in caplog.records if "out of memory" in record.getMessage()] == [
        "out of memory with micro-batches of 120 tokens: going on with 60",
        "out of memory with micro-batches of 60 tokens: going on with 30",
    ]
    for ours, theirs in zip(plain[0].parameters(), plain[1].parameters()):
        assert torch.equal(ours, theirs)


def test_what_does_not_fit_at_all_is_said(tmp_path, monkeypatch):
    def full(self, micro, *rest):
        raise torch.OutOfMemoryError("made up")

    model = new_model()
    monkeypatch.setattr(type(model), "forward", full)
    with pytest.raises(torch.OutOfMemoryError, match="do not fit into memory: give a smaller micro_tokens"):
        training.train(model, Cut(), tmp_path, **USUAL)


# ------------------------------------------------------------------ started, and refused


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1"}, None),
        ({"ACCELERATE_MIXED_PRECISION": "no", "MASTER_PORT": "29500"}, "several processes were asked for and one was started"),
        ({"ACCELERATE_MIXED_PRECISION": "no"}, None),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2 but RANK is not set"),
    ],
)
def test_a_process_that_should_not_be_alone_is_refused(environment, expected, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if expected is None:
        assert ranks.check() is None
    else:
        with pytest.raises(RuntimeError, match=expected):
            ranks.check()


def test_accelerate_launch_on_a_cpu_is_refused(tmp_path):
    """By what it really leaves in the environment of its one process."""
    script = tmp_path / "one.py"
    script.write_text("from asutil.io import disk\nfrom asutil.training import processes\nprocesses.check()\n", encoding="utf-8")
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", str(script)]
    found = subprocess.run([sys.executable, *launch], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert found.returncode and "several processes were asked for and one was started" in found.stderr


NOTEBOOK = {
    "first": "# not code",
    "parameters": "steps: int = 2  # at least 1\nmodel: str = 'none'  # a name",
    "more": "print('before', steps, model)\nkept.append(steps)",
    "train": "import types\ntraining = types.SimpleNamespace(train=kept.append)\ntraining.train('trained')",
    "after": "raise AssertionError('not to be run')",
}


def test_cells_run_up_to_the_training(tmp_path, capsys):
    kept = []
    kinds, tags = {"first": "markdown"}, {name: {"tags": [name]} for name in ("parameters", "train")}
    about = lambda name: {"cell_type": kinds.get(name, "code"), "metadata": tags.get(name, {"tags": []})}
    cells = [about(name) | {"source": source} for name, source in NOTEBOOK.items()]
    path = tmp_path / "made_up.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    lab_processes.run(path, {"steps": 7, "kept": kept})
    assert kept == [7, "trained"] and capsys.readouterr().out == "before 7 none\n"
    path.write_text(json.dumps({"cells": cells[:3]}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"made_up.ipynb does not train: it has no code cell tagged `train`"):
        lab_processes.run(path, {})


@pytest.mark.parametrize("notebook", ["pretrain", "finetune", "verify_claims", "embed", "find_evidence"])
def test_every_notebook_that_trains_has_such_a_cell(notebook):
    found = lab_processes.cells(ROOT / "notebooks" / f"{notebook}.ipynb")
    assert sum("parameters" in tags for _, tags in found) == 1 and "training.train(" in found[-1][0]
    assert "run.finish(" not in "".join(source for source, _ in found)


def test_processes_are_started_for_the_run_of_a_notebook_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv(lab_processes.PROCESSES, "2")
    assert lab_processes.launcher(tmp_path) is None
    (tmp_path / lab_processes.PLAN).write_text("{}", encoding="utf-8")
    assert lab_processes.launcher(tmp_path)
    monkeypatch.setenv("RANK", "0")
    assert lab_processes.launcher(tmp_path) is None
    monkeypatch.delenv("RANK")
    monkeypatch.setenv(lab_processes.PROCESSES, "1")
    assert lab_processes.launcher(tmp_path) is None
    monkeypatch.delenv(lab_processes.PROCESSES)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert lab_processes.launcher(tmp_path)
    (tmp_path / "record.json").write_text("{}", encoding="utf-8")
    assert lab_processes.launcher(tmp_path) is None  # a finished run takes its weights from its checkpoint


def test_more_processes_than_gpus_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv(lab_processes.PROCESSES, "3")
    (tmp_path / lab_processes.PLAN).write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="ASUTIL_PROCESSES: at most 2 expected, one for each GPU, got 3"):
        lab_processes.launcher(tmp_path)()


def test_as_many_files_may_be_open_as_the_system_allows():
    resource = pytest.importorskip("resource")
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
        ranks.open_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


TRAINS = """
from pathlib import Path
from asutil import training
from tests.training.test_loop import USUAL, Batches, new_model
print("steps", steps)
training.train(new_model(), Batches(steps), Path(folder), **USUAL | {"progress": True})
"""


def test_a_run_of_a_notebook_is_trained_in_two_processes_and_taken_up(tmp_path, monkeypatch, capsys):
    """For real: torchrun, two processes that run the notebook's cells, and the weights that this process ends with."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    own = {"ASUTIL_PROJECT": str(tmp_path), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", lab_processes.PROCESSES: "2"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    sources = {"parameters": "steps: int = 2  # at least 1\nfolder: str = '.'  # of the run", "train": TRAINS}
    cells = [{"cell_type": "code", "metadata": {"tags": [name]}, "source": source} for name, source in sources.items()]
    folder = tmp_path / "runs" / "made_up-0123456789ab"
    for path in (tmp_path / "book", tmp_path / "notebooks", folder):
        path.mkdir(parents=True)
    (tmp_path / "notebooks" / "made_up.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    disk.write_json(folder / lab_processes.PLAN, {"notebook": "made_up", "given": {"steps": 6, "folder": str(folder)}})
    model, result = train(folder, Batches(6))
    shown = capsys.readouterr().out
    assert result["steps"] == 6 and shown.count("steps 6") == 1 and "6/6" in shown  # what the first process prints, and its bar
    monkeypatch.setenv(lab_processes.PROCESSES, "1")
    one, _ = train(tmp_path / "alone", Batches(6))
    for ours, theirs in zip(model.parameters(), one.parameters()):
        assert torch.allclose(ours, theirs, atol=1e-5)
    (folder / lab_processes.PLAN).write_text("{}", encoding="utf-8")
    monkeypatch.setenv(lab_processes.PROCESSES, "2")
    with pytest.raises(RuntimeError, match="training in 2 processes failed"):
        train(folder, Batches(6), peak_lr=1.0)


def train(folder, batches, **options):
    folder.mkdir(exist_ok=True)
    model = new_model()
    return model, training.train(model, batches, folder, **USUAL | options, launch=lab_processes.launcher(folder))


def test_the_module_explains_its_parameters(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["processes", "--help"])
    with pytest.raises(SystemExit, match="0"):
        lab_processes.main()
    shown = capsys.readouterr().out
    assert shown.startswith("usage: torchrun ... -m aslab.processes [-h] [-p NAME VALUE] run") and "as for papermill" in shown
