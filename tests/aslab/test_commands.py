"""The command `asutil`: its help, its errors, what it prints, completion, and the old names of its commands."""

import contextlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from aslab import commands, hours
from aslab.commands import asutil
from asutil.io import hub

ROOT = Path(__file__).parents[2]
OLD = {f"aslab.{name}": name for name in "blind calibration compare export gallery gpus hours mined own publish slots".split()}
OLD |= {f"aslab.analysis.{name}": name for name in ("claims", "overlap")} | {"aslab.pipeline": "index", "aslab.slot_cosines": "slots"}
OLD |= {f"asutil.data.{name}": f"build {name}" for name in ("nq_sentences", "selqa")}
OLD |= {"asutil.corpus.sources": "fetch", "asutil.corpus.index": "index", "asutil.metrics.trec": "trec"}
OLD |= {"asutil.models.embedded": "embedded", "asutil.tasks.mine": "mine", "asutil.tasks.vectors": "vectors"}


def ended(*words: str):
    return CliRunner().invoke(asutil, list(words))


def test_help_names_every_command_and_imports_none():
    code = "import sys; from aslab.commands import asutil; asutil.main(['--help']); print(sorted(sys.modules))"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    for words, (_, does) in commands.COMMANDS.items():
        group = words.split()[0]
        assert f"  {group} " in shown and (does in shown or group in commands.GROUPS)
    assert "_ASUTIL_COMPLETE=bash_source" in shown
    assert not any(f"'{name}'" in shown for name in ("torch", "numpy", "pandas", "aslab.compare"))


@pytest.mark.parametrize("words", commands.COMMANDS)
def test_each_command_explains_every_parameter_and_has_an_example(words):
    done = ended(*words.split(), "--help")
    assert done.exit_code == 0, done.output
    assert commands.COMMANDS[words][1] in done.output
    assert f"Example:\n    asutil {words} " in done.output
    *groups, name = words.split()
    _, command, _ = (commands.Group(*groups) if groups else asutil).resolve_command(asutil.make_context("asutil", ["x"]), [name])
    assert all(parameter.help for parameter in command.params)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("module", OLD)
def test_an_old_name_of_a_module_is_the_command(module, monkeypatch, capsys):
    """As `python -m` runs it."""
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with contextlib.suppress(SystemExit):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: asutil {OLD[module]} [OPTIONS]")
    # Lines are as long as the terminal is wide.
    assert "".join(shown.split()) == "".join(ended(*OLD[module].split(), "--help").output.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compair"], r"asutil: No such command 'compair'"),
        (["index"], r"asutil index: Missing command\."),
        (["compare", "a", "b", "--metric", "ndcg"], "asutil compare: ndcg: expected a measure of ir_measures, such as nDCG@10"),
        (["hours", "joint_inferense", "small"], "asutil hours: .*did you mean 'joint_inference'"),
        (["publish", "asbret"], "asutil publish: .*did you mean 'asbert'"),
        (["trec"], r"asutil trec: Missing argument 'RUN'"),
        (["slots", "a", "--init", "0.02,wide"], r"asutil slots: Invalid value for '--init': .*'wide'"),
        (
            ["mine", "wikiqa", "none.txt", "--model", "bm25", "--to", "new", "--depth", "0"],
            "asutil mine: depth: at least 5 expected, got 0",
        ),
        (["mine", "wikiqa", "none.txt", "--model", "bm25", "--to", "."], r"asutil mine: \. exists: expected a new folder"),
    ],
)
def test_a_wrong_input_is_told_in_one_line(words, message):
    done = ended(*words)
    assert done.exit_code == 2 and done.stdout == ""
    assert re.match(message, done.stderr) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "broken"),
    [
        (["hours", "a paper", "small"], (hours.command, "callback")),
        (["fetch", "owner/texts", "--limit", "3", "--out", "w.parquet"], (hub, "stream")),
    ],
)
@pytest.mark.parametrize(("kind", "status"), [(FileNotFoundError, 2), (ValueError, 2), (OSError, 1), (ImportError, 1)])
def test_a_command_that_fails_says_why_in_a_line(monkeypatch, words, broken, kind, status):
    def failing(*_, **__):
        raise kind("it could not be loaded from the hub")

    monkeypatch.setattr(*broken, failing)
    done = ended(*words)
    assert (done.exit_code, done.stderr) == (status, f"asutil {words[0]}: it could not be loaded from the hub\n")


def test_a_fault_of_the_program_is_no_wrong_input(monkeypatch):
    def failing(**_):
        raise KeyError("a name")

    monkeypatch.setattr(hours.command, "callback", failing)
    assert isinstance(ended("hours", "a paper", "small").exception, KeyError)


def test_a_command_whose_module_lacks_a_package_says_so_in_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delitem(sys.modules, "aslab.export", raising=False)
    done = ended("export", "--help")
    assert done.exit_code == 1 and done.stdout == ""
    assert re.match(r"asutil export: import of huggingface_hub halted", done.stderr) and done.stderr.count("\n") == 1


def test_the_script_says_how_click_is_installed():
    code = "import sys; sys.modules['click'] = None; from aslab import console; console.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "asutil needs click: pip install 'asutil[lab]'\n")
    assert '"aslab.commands:main"' not in (ROOT / "pyproject.toml").read_text("utf-8")


def test_what_was_written_is_printed_before_a_failure(monkeypatch):
    def writing(**_):
        yield "first.json"
        raise OSError("the disk is full")

    monkeypatch.setattr(hours.command, "callback", writing)
    done = ended("hours", "a paper", "small")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "first.json\n", "asutil hours: the disk is full\n")


def test_words_are_completed_by_the_shell():
    environment = {"COMP_WORDS": "asutil vectors s", "COMP_CWORD": "2", "_ASUTIL_COMPLETE": "bash_complete"}
    done = CliRunner(env=environment).invoke(asutil, [])
    assert done.output == "plain,search\n"


def test_every_command_that_the_texts_name_is_there():
    texts = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")]
    texts += [*(ROOT / "book").glob("**/*.md"), *(ROOT / "data_cards").glob("*.md")]
    named = set()
    for path in texts:
        if "_build" not in path.parts:
            named |= set(re.findall(r"(?:^\$ |`|BIN\)/)asutil ((?:(?:build|index|vectors) )?\w+)", path.read_text("utf-8"), re.MULTILINE))
    assert named and named <= {*commands.COMMANDS, *commands.GROUPS}
