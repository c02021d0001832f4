"""The Makefile's book: built once, again after a change of anything that it is made from, and never taken as built after a failure."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from asutil.data.data_sets import ANSWERS, LONG
from asutil.io import hub

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("asutil", "aslab", "experiments", "notebooks", "book", "data_cards", "results")
STAND_IN = """#!/bin/sh
[ ! -e broken ] || exit 1
[ ! -e edited_meanwhile ] || { sleep 1.1; touch book/inner/file; }
mkdir -p book/_build/html book/runs && touch book/_build/html/index.html && echo built >> builds
"""
SNAKEMAKE = """#!/bin/sh
mkdir -p runs/finetune-pydocs-0123456789ab && touch runs/finetune-pydocs-0123456789ab/record.json
"""
BENCHMARKS = set(
    "sampling index metrics scoring training_step cpu_step start book latency search encoding contention own_questions".split()
)
NEEDS_MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def project(tmp_path):
    """A checkout with one file in each folder, all an hour old, and a command in place of jupyter-book that counts its calls."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in FOLDERS:
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").touch()
        (tmp_path / name / "file").touch()
    for name in ("README.md", "CITATION.cff", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name, text in {"jupyter-book": STAND_IN, "snakemake": SNAKEMAKE}.items():
        command = tmp_path / ".venv" / "bin" / name
        command.write_text(text)
        command.chmod(0o755)
    for path in [*tmp_path.rglob("*"), tmp_path]:
        age(path, 3600)
    (tmp_path / ".venv" / ".ready").touch()
    age(tmp_path / ".venv" / ".ready", 1800)
    return tmp_path


def age(path, seconds):
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def make(project, *targets, **environment):
    """Exit code, and how often the book has been built."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "AS2_", "ASUTIL_", "VENV"))}
    command = ["make", "-s", *(targets or ("book",))]
    code = subprocess.run(command, cwd=project, capture_output=True, env=own | environment).returncode
    builds = project / "builds"
    return code, len(builds.read_text().splitlines()) if builds.exists() else 0


def later(project):
    """What was built lies ten minutes back, so that a change of now is newer on every file system."""
    for path in [*project.rglob("*")]:
        age(path, 600)


CHANGES = {
    "changed": Path.touch,
    "added": lambda path: path.with_name("more").touch(),
    "removed": Path.unlink,
    "renamed": lambda path: path.with_name("more").rename(path.with_name("other")),
}


@pytest.mark.slow
@NEEDS_MAKE
@pytest.mark.parametrize("place", ["file", "inner/file"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_book_is_built_again_after_every_change_and_only_then(project, folder, place):
    assert make(project) == (0, 1) and make(project) == (0, 1)
    for builds, change in enumerate(CHANGES.values(), 2):
        later(project)
        change(project / folder / place)
        assert make(project) == (0, builds) and make(project) == (0, builds)


@NEEDS_MAKE
def test_other_sources_of_the_book(project):
    make(project)
    later(project)
    for builds, name in enumerate(("README.md", "CITATION.cff"), 2):
        (project / name).touch()
        assert make(project) == (0, builds)
        later(project)
    for name in ("asutil/inner/__pycache__", "notebooks/.ipynb_checkpoints", "book/gallery"):
        (project / name).mkdir()
        (project / name / "file").touch()
    assert make(project) == (0, 3)
    assert make(project, AS2_SITE="https://example.org/") == (0, 4) and make(project, AS2_SITE="https://example.org/") == (0, 4)
    assert make(project, ASUTIL_MIRROR="a folder") == (0, 5)


@NEEDS_MAKE
def test_a_run_that_ends_or_is_deleted_builds_the_book_again_and_one_that_goes_on_does_not(project):
    make(project)
    later(project)
    run = project / "runs" / "finetune-pydocs-0123456789ab"
    run.mkdir(parents=True)
    (run / "log.jsonl").touch()
    assert make(project) == (0, 1)
    (run / "record.json").touch()
    assert make(project) == (0, 2)
    later(project)
    shutil.rmtree(run)
    assert make(project) == (0, 3)


@NEEDS_MAKE
def test_the_demonstration_is_in_the_book_that_is_built_after_it(project):
    make(project)
    later(project)
    assert make(project, "demo", "book") == (0, 2)


@NEEDS_MAKE
def test_what_changes_during_a_build_is_built_by_the_next_call(project):
    (project / "edited_meanwhile").touch()
    make(project)
    (project / "edited_meanwhile").unlink()
    assert make(project) == (0, 2) and make(project) == (0, 2)


@NEEDS_MAKE
def test_a_build_that_failed_is_made_again(project):
    (project / "broken").touch()
    assert make(project) == (2, 0) and make(project) == (2, 0)
    (project / "broken").unlink()
    assert make(project) == (0, 1)
    shutil.rmtree(project / "book" / "_build")
    assert make(project) == (0, 2)


@NEEDS_MAKE
@pytest.mark.parametrize(("given", "rounds"), [((), []), (("ROUNDS=2",), ["--arguments=--rounds 2"])])
def test_benchmarks_take_a_number_of_rounds(project, given, rounds):
    python = project / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    python.chmod(0o755)
    assert make(project, "bench", *given) == (0, 0)
    script, *asked = (project / "asked").read_text().splitlines()
    assert script == "benchmarks/record.py" and asked[: -len(BENCHMARKS)] == rounds and set(asked[-len(BENCHMARKS) :]) == BENCHMARKS


FETCHING = """#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --local-dir|--to) folder=$2;; esac; last=$1; shift; done
[ -n "$folder" ] || folder=$last
mkdir -p $folder && touch $folder/file && case $folder in *qasper|*selqa) exit 1;; esac
"""


def test_the_workflow_of_the_book_goes_on_without_data_sets_that_it_cannot_fetch(tmp_path, monkeypatch):
    """One of each kind fails half way: the mirror has the other ones, whole, where the loaders look for them, and not the broken ones."""
    steps = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text("utf-8"))["jobs"]["build"]["steps"]
    (fetch,) = (step["run"] for step in steps if "open data sets" in step.get("name", ""))
    for name in ("hf", "asutil", "git"):
        command = tmp_path / ".venv" / "bin" / name
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(FETCHING)
        command.chmod(0o755)
    own = {"PATH": f"{tmp_path}/.venv/bin:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(tmp_path / "env")}
    assert subprocess.run(["bash", "-e", "-c", fetch], cwd=tmp_path, env=os.environ | own).returncode == 0
    variable, _, mirror = (tmp_path / "env").read_text().strip().partition("=")
    monkeypatch.setenv(hub.MIRROR, mirror)
    assert variable == hub.MIRROR
    fetched = {name for name in (LONG["hotpotqa"].hub_id, LONG["qasper"].hub_id) if hub.mirror(name)}
    fetched |= {name for name in (ANSWERS["nq_sentences"].hub_id, ANSWERS["selqa"].hub_id) if hub.mirror(name)}
    assert fetched == {"hotpotqa/hotpot_qa", "local/nq_sentences"}


@pytest.mark.parametrize("tag", ["v0.1.0", "v0.2.0"])
def test_a_release_names_its_repository_in_the_citation_and_in_the_wheel(tmp_path, tag):
    for name in ("CITATION.cff", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]["release"]["steps"]
    (fill,) = (step["run"] for step in steps if "CITATION" in step.get("run", "") and "gh release" not in step["run"])
    own = {"GITHUB_REF_NAME": tag, "GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "owner/name"}
    done = subprocess.run(["bash", "-e", "-c", fill], cwd=tmp_path, env=os.environ | own)
    before, after = (tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"] for folder in (ROOT, tmp_path))
    if tag != f"v{before['version']}":
        assert done.returncode and after == before
        return
    urls = after.pop("urls")
    assert done.returncode == 0 and after == before
    assert urls["Repository"] == "https://host/owner/name" and all(url.startswith(urls["Repository"]) for url in urls.values())
    assert yaml.safe_load((tmp_path / "CITATION.cff").read_text("utf-8"))["repository-code"] == urls["Repository"]
