"""What the tour and the lessons install where the project is not installed."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def install():
    spec = importlib.util.spec_from_file_location("install", FOLDER / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_code_cell(name: str) -> str:
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])


def test_every_package_but_those_that_run_the_notebook_is_pinned(install):
    names = {install.name_of(line) for line in install.needed()}
    pinned = {install.name_of(line): line for line in install.pins(set())}
    assert {"torch", "transformers", "bm25s"} <= names <= set(pinned)
    assert not names & {"ipykernel", "ipywidgets", "papermill"}
    assert re.fullmatch(r"torch==[\d.]+", pinned["torch"]) and "jupyter-core" in pinned


def test_packages_that_are_installed_get_no_pin(install):
    every = install.pins(set())
    left = install.pins({"torch", "jupyter-core"})
    assert {install.name_of(line) for line in set(every) - set(left)} == {"torch", "jupyter-core"}


@pytest.mark.parametrize("name", ["tour", "lessons/ranking"])  # all lessons begin with the same cell (test_lessons.py)
def test_the_first_cell_installs_nothing_where_the_project_is_installed(name, monkeypatch):
    ran = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    monkeypatch.setenv("AS2_REPOSITORY", "https://github.com/owner/name")
    exec(first_code_cell(name), {})
    assert ran == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(first_code_cell(name), {})
    (clone, script) = ran
    assert clone[:2] == ["git", "clone"] and clone[-2:] == ["https://github.com/owner/name", "as2"]
    assert script[-1] == "as2/notebooks/install.py" and (FOLDER / Path(script[-1]).name).is_file()
