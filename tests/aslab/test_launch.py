"""papermill's own command line in a subprocess, on a small project in a temporary folder."""

import base64
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import click
import nbformat
import pytest
from click.testing import CliRunner
from papermill import PapermillExecutionError, execute_notebook

from aslab import launch, provenance, rundir
from asutil.io import disk

from ..nodes import on_node

pytestmark = pytest.mark.slow

PARAMETERS = """\
objective: str = "psd"  # the pre-training objective; one of: ssp, sp, psd
steps: int = None  # optimiser steps
peak_lr: float = 1e-4  # highest learning rate
fail: bool = False  # stop in the last cell
budget: str = "laptop"  # one of: laptop, small
seed: int = 0  # of everything random
runs_dir: str = "runs"  # where runs are kept
"""
WORK = """\
import sys, time
from aslab import runs
run = runs.start("demo", globals())
print("cell printed", objective, steps, peak_lr)
from tqdm.auto import tqdm
for _ in tqdm(range(3), desc="working", ncols=40, mininterval=0):
    time.sleep(0.05)
"""
FINISH = """\
assert not fail, "asked to fail"
record = run.finish(metrics={"validation": {"accuracy": 0.625, "f1": 0.5}})
"""


def write_notebook(path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in (PARAMETERS, WORK, FINISH)]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with one notebook, run once with `-p steps 3`; the tests below look at that run and at refusals."""
    root = tmp_path_factory.mktemp("project")
    (root / "book").mkdir()
    write_notebook(root / "notebooks" / "demo.ipynb")
    return root


def papermill(project, *arguments, cwd=None):
    environment = {**os.environ, "ASUTIL_PROJECT": str(project)}
    command = [sys.executable, "-m", "papermill", *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, cwd=cwd or project, env=environment, timeout=120, **pipes)


def invoke(notebook, *arguments):
    """papermill in this process, on a notebook of the project itself."""
    from papermill.cli import papermill as command

    return CliRunner().invoke(command, [str(rundir.root() / "notebooks" / f"{notebook}.ipynb"), *map(str, arguments)])


@pytest.fixture(scope="module")
def first_run(project):
    return papermill(project, "notebooks/demo.ipynb", "-p", "steps", 3)


def run_folders(project):
    return sorted(path.name for path in (project / "runs").glob("*")) if (project / "runs").exists() else []


def test_redirected_run_lands_in_its_folder_and_shows_its_output(project, first_run):
    assert first_run.returncode == 0, first_run.stderr
    (folder,) = (project / "runs").iterdir()
    assert folder.name.startswith("demo-")
    assert (folder / "record.json").is_file()
    assert "cell printed psd 3 0.0001\n" in first_run.stdout
    lines = first_run.stderr.split("\n")
    assert [line[:13] for line in lines if "working" in line] == ["working: 100%"]  # a pipe gets a bar's last state, once


def test_stored_notebook_keeps_progress_bars_in_their_last_state(project, first_run):
    (path,) = (project / "runs").glob("*/notebook.ipynb")
    texts = [output.text for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", []) if output.get("name") == "stderr"]
    assert "".join(texts).strip().startswith("working: 100%")


def test_the_figures_of_rankers_are_announced_by_ranker_and_split():
    record = {"metrics": {"bm25": {"test": {"map": 0.5, "questions": 3}}, "own": {"test": {"map": 0.25}}}}
    assert launch.announce(Path("runs/a"), record).splitlines()[1:3] == ["  bm25, test: map 0.5", "  own, test: map 0.25"]
    assert "other code of asutil or aslab" in launch.announce(Path("runs/a"), record)
    same = launch.announce(Path("runs/a"), record | {"sources_sha256": provenance.sources_sha256()})
    assert same.splitlines()[-1] == "The same parameters give the same run. To run it again, delete runs/a."


@pytest.mark.parametrize("given", ["{}", "bm25,{}", "bm25,bm25+{}"])
def test_a_run_whose_start_was_made_again_says_so(tmp_path, given):
    run, start = (tmp_path / f"{name}-0123456789ab" for name in ("finetune", "pretrain-sp"))
    name = "models" if "," in given else "model"
    record = {"given": {name: given.format(start.name)}, "created": "2026-01-02T00:00:00+00:00"}
    assert "earlier" not in launch.announce(run, record)
    start.mkdir()
    for created, again in {"2026-01-01T23:59:59+00:00": False, "2026-01-02T00:00:01+00:00": True}.items():
        disk.write_json(start / "record.json", {"created": created})
        assert (f"{start.name} was made again since: this run used an earlier one." in launch.announce(run, record)) == again


def test_a_folder_that_cannot_be_written_is_named(project, tmp_path):
    (tmp_path / "a_file").touch()
    wrong = papermill(project, "notebooks/demo.ipynb", "-p", "runs_dir", tmp_path / "a_file")
    assert wrong.returncode == 2 and re.search(r"runs_dir: \S*a_file/demo-\S+ cannot be written: Not a directory", wrong.stderr)


def test_finished_run_is_announced_and_not_run_again(project, first_run):
    (record,) = (project / "runs").glob("*/record.json")
    before = record.stat().st_mtime_ns
    again = papermill(project, project / "notebooks" / "demo.ipynb", "-y", "{steps: 3}", cwd=project.parent)
    assert again.returncode == 0, again.stderr
    assert "Already finished" in again.stdout
    assert record.parent.name in again.stdout
    assert "validation: accuracy 0.625, f1 0.5" in again.stdout
    assert re.search(r"To run it again, delete \S*runs/demo-", again.stdout)
    assert record.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "objectiv", "ssp"], "did you mean 'objective'?"),
        (["-p", "objective", "pds"], "did you mean 'psd'?"),
        (["-r", "steps", "5"], "steps of demo is int"),
        (["-p", "steps", "many"], "steps of demo is int"),
        (["-y", "{seeds: 3}"], "did you mean 'seed'?"),
        (["-p", "objective", "PSD"], "did you mean 'psd'?"),
        (["-p", "Objective", "psd"], "did you mean 'objective'?"),
        (["-p", "learning_rate", "1"], "did you mean 'peak_lr'?"),
        (["-p", "LR", "1"], "did you mean 'peak_lr'?"),
        (["-p", "max_steps", "1"], "did you mean 'steps'?"),
        (["-p", "train_batch_size", "1"], "has no parameter 'train_batch_size' (it has"),
        (["-p", "runs_dir", ""], "runs_dir of demo is empty"),
        (["-p", "fail", "maybe"], "fail of demo is True or False, got 'maybe'"),
        (["-r", "peak_lr", "2e-5"], "peak_lr of demo is float"),
        (["-y", "{peak_lr: nan}"], "peak_lr of demo must be finite"),
        (["-b", base64.b64encode(b"stepz: 3").decode()], "did you mean 'steps'?"),
        (["-p", "steps=1; import os; x", "1"], "Python identifier"),
        (["-p", "class", "1"], "Python identifier"),
        (["-y", "{' steps': 3}"], "Python identifier"),
        (["-y", "[" * 2_000], "maximum recursion depth"),
        (["-y", "[1, 2]"], "pairs"),
        (["-y", "{steps: "], "-y"),
        (["-f", "absent.yml"], "absent.yml"),
    ],
)
def test_wrong_parameters_stop_before_any_cell(project, first_run, monkeypatch, arguments, expected):
    from papermill.cli import papermill as command

    monkeypatch.setenv("ASUTIL_PROJECT", str(project))
    monkeypatch.chdir(project)
    before = run_folders(project)
    done = CliRunner().invoke(command, ["notebooks/demo.ipynb", *arguments])
    assert done.exit_code == 2, done.output
    assert expected in done.output
    assert run_folders(project) == before


@pytest.mark.parametrize(("rate", "word"), [("2e-5", "false"), ("2.0e-5", "FALSE"), ("0.00002", "no"), ("2E-05", "False")])
@pytest.mark.parametrize("option", ["-p", "-y", "-f", "-b"])
def test_a_number_and_a_truth_value_are_what_they_mean(project, tmp_path, monkeypatch, option, rate, word):
    """YAML makes text of 2e-5, and papermill's command line of false."""
    monkeypatch.setenv("ASUTIL_PROJECT", str(project))
    text = f"{{peak_lr: {rate}, fail: '{word}'}}"
    (tmp_path / "p.yaml").write_text(text)
    words = {"-p": ["peak_lr", rate, "-p", "fail", word], "-y": [text], "-f": [tmp_path / "p.yaml"]}
    words |= {"-b": [base64.b64encode(text.encode()).decode()]}
    out = tmp_path / "out.ipynb"
    done = invoke("demo", out, option, *words[option], "-p", "runs_dir", tmp_path, "--prepare-only")
    assert done.exit_code == 0, done.output
    (injected,) = [cell.source for cell in nbformat.read(out, 4).cells if "injected-parameters" in cell.metadata.get("tags", [])]
    values = {}
    exec(injected, values)
    assert values["peak_lr"] == 2e-5 and values["fail"] is False


@pytest.mark.parametrize("extra", [[], ["--help-notebook"], ["out.ipynb"]])
@pytest.mark.parametrize("name", ["dmo.ipynb", "demo", "Demo.ipynb"])
def test_a_misspelt_notebook_is_told_in_one_line(project, monkeypatch, name, extra):
    from papermill.cli import papermill as command

    monkeypatch.setenv("ASUTIL_PROJECT", str(project))
    done = CliRunner().invoke(command, [str(project / "notebooks" / name), *extra])
    assert done.exit_code == 2 and done.output.splitlines()[-1] == f"Error: no notebook {name!r} in notebooks/; did you mean 'demo.ipynb'?"


def test_an_interrupted_run_says_how_it_goes_on(project, tmp_path):
    """Ctrl-C reaches all processes of a terminal; a kernel has a session of its own."""
    path = project / "notebooks" / "slow.ipynb"
    write_notebook(path)
    path.write_text(
        path.read_text()
        .replace('\\"demo\\"', '\\"slow\\"')
        .replace("assert not fail", "print('waits', flush=True); time.sleep(100); assert not fail")
    )
    command = [sys.executable, "-m", "papermill", str(path), "-p", "runs_dir", str(tmp_path)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": (tmp_path / "errors").open("w")}
    process = subprocess.Popen(command, env={**os.environ, "ASUTIL_PROJECT": str(project)}, text=True, start_new_session=True, **streams)
    assert "waits\n" in iter(process.stdout.readline, "")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    errors = (tmp_path / "errors").read_text()
    assert errors.endswith("\nstopped: the same command continues it\n")
    assert not any(word in errors for word in ("Aborted", "Task exception", "Traceback", "Exception"))
    assert not list(tmp_path.glob("slow-*/record.json"))


def test_a_node_that_waits_for_a_run_goes_on_where_the_other_one_dies(project, tmp_path, nodes):
    path = project / "notebooks" / "nodes.ipynb"
    write_notebook(path)
    waits = "path = run.folder / 'journal'; seconds = 0 if path.exists() else 100"
    waits += "; path.open('a').write('in '); time.sleep(seconds); path.open('a').write('out ')"
    path.write_text(path.read_text().replace('\\"demo\\"', '\\"nodes\\"').replace("assert not fail", f"{waits}; assert not fail"))
    command = [sys.executable, "-m", "papermill", str(path), "-p", "runs_dir", str(tmp_path)]
    start = lambda name: on_node(name, command, stdin=subprocess.DEVNULL, env={**os.environ, "ASUTIL_PROJECT": str(project)})
    first = start("node-1")
    while not (journals := list(tmp_path.glob("nodes-*/journal"))):
        assert first.poll() is None, first.stdout.read()
        time.sleep(0.02)
    second = start("node-2")
    assert any("is open in another process" in line for line in iter(second.stdout.readline, ""))
    first.kill()
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 0 and journals[0].read_text() == "in in out ", said
    assert (journals[0].parent / "record.json").is_file() and not list(tmp_path.rglob("*.part"))


def test_a_parameter_of_text_stays_text():
    """papermill makes a number of 0.6 and of a folder that is called 2024."""
    given = (("temperatures", "0.6"), ("seed", "1"), ("projection_size", "None"), ("loss_weight", "0.4"))
    options = dict.fromkeys(["parameters_base64", "parameters_file", "parameters_yaml"], ())
    options |= {"notebook_path": str(rundir.root() / "notebooks" / "find_evidence.ipynb"), "output_path": "mine.ipynb", "engine": None}
    options |= {"kernel": None, "language": None}
    options |= {"parameters": given, "parameters_raw": (), "log_output": False}
    launch.prepare(options)
    assert options["parameters_raw"] == given[:1] and options["parameters"] == given[1:]
    known = launch.given_parameters(options)
    assert known == {"temperatures": "0.6", "seed": 1, "projection_size": None, "loss_weight": 0.4}


def test_papermills_python_interface_is_strict_too(project, first_run, monkeypatch, tmp_path):
    monkeypatch.setenv("ASUTIL_PROJECT", str(project))
    before = run_folders(project)
    for wrong, message in (({"stepz": 3}, "did you mean 'steps'?"), ({"steps": 3.5}, "steps of demo is int, got 3.5")):
        with pytest.raises(PapermillExecutionError, match=re.escape(message)):
            execute_notebook(project / "notebooks" / "demo.ipynb", tmp_path / "mine.ipynb", wrong, cwd=project, progress_bar=False)
    assert run_folders(project) == before


def test_help_explains_every_parameter(project):
    done = papermill(project, "notebooks/demo.ipynb", "--help-notebook")
    assert done.returncode == 0, done.stderr
    for line in PARAMETERS.splitlines():
        assert line.split("#", 1)[1].strip() in done.stdout


def test_terminal_inside_notebooks_and_a_failing_cell(project):
    """A pseudo-terminal, from inside notebooks/: default output, live text, and an exit code for the cell that fails."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    command = [sys.executable, "-m", "papermill", "demo.ipynb", "-p", "fail", "True"]
    own = {"cwd": project / "notebooks", "env": {**os.environ, "ASUTIL_PROJECT": str(project), "TERM": "xterm"}}
    process = subprocess.Popen(command, **own, stdin=secondary, stdout=secondary, stderr=secondary)
    os.close(secondary)
    seen = b""
    while True:
        try:
            block = os.read(primary, 4096)
        except OSError:
            break
        if not block:
            break
        seen += block
    assert process.wait(timeout=60) == 1
    assert b"cell printed psd None 0.0001\r\n" in seen
    assert b"\rworking:  33%" in seen  # moves in place on a terminal
    assert b"asked to fail" in seen
    assert b"Executing:" in seen  # papermill's own bar
    (folder,) = (project / "runs").glob("demo-*fail*")
    assert not (folder / "record.json").exists()


def test_other_notebooks_keep_papermills_behaviour(project, tmp_path):
    write_notebook(tmp_path / "notebooks" / "demo.ipynb")
    piped = papermill(project, tmp_path / "notebooks" / "demo.ipynb", "--prepare-only", "-p", "anything", "1")
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout)["nbformat"] == 4  # papermill writes the notebook itself to a pipe
    assert not (tmp_path / "runs").exists()


def test_a_notebook_is_another_projects_where_there_is_no_project(project, monkeypatch):
    def nowhere():
        raise FileNotFoundError("no project here")

    monkeypatch.setenv("ASUTIL_PROJECT", str(project))
    assert launch.is_ours(project / "notebooks" / "demo.ipynb")
    assert not launch.is_ours(project / "elsewhere" / "demo.ipynb") and not launch.is_ours(project / "notebooks" / "install.py")
    monkeypatch.setattr(rundir, "root", nowhere)
    assert not launch.is_ours(project / "notebooks" / "demo.ipynb")


def test_papermills_command_alone_is_wrapped():
    from papermill.cli import papermill as command

    assert command.callback.__module__ == "papermill.cli" and command.callback.__wrapped__.__module__ == "papermill.cli"
    assert click.Command.parse_args.__module__ == click.Command.invoke.__module__ == "click.core"
    assert not [finder for finder in sys.meta_path if isinstance(finder, launch.WhenImported)]


def test_importing_the_hook_is_cheap():
    code = "import sys, aslab.launch; print([m for m in ('pandas', 'torch', 'numpy', 'papermill') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
