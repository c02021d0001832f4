"""Names for editors and type checkers: stubs list every module, and mypy knows what a user's calls return."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CALLS = """
from typing import assert_type

import pandas as pd

import asutil
from asutil import corpus, data, metrics, sampling
from asutil.tasks import BaseRanker, Ranker

measured = metrics.ranking(["q"], [1], [0.5])
assert_type(measured, metrics.Ranking)
assert_type(measured.p_at_1, float)
assert_type(measured.per_question, pd.DataFrame)
assert_type(metrics.paired_bootstrap([1.0], [0.5]), metrics.Comparison)
assert_type(metrics.significance.randomisation([1.0], [0.5]), float)
assert_type(data.load_answers("pydocs"), dict[str, data.Split])
assert_type(data.load_claims("pydocs_claims"), dict[str, data.Claims])
assert_type(asutil.load_ranker("bm25"), BaseRanker)
assert_type(asutil.load_ranker("bm25").calibration, metrics.calibration.Calibration | None)
assert_type(sampling.Sampler(corpus.Corpus.open("index"), "ssp"), sampling.base.BaseSampler)
metrics.rankin(["q"], [1], [0.5])
metrics.ranking(["q"], [1], [0.5], tie="pessimistic")
"""


def packages() -> list[Path]:
    """The folders of packages whose names are imported when they are first used."""
    made = (path for top in ("asutil", "aslab") for path in sorted((ROOT / top).rglob("__init__.py")))
    return [path.parent for path in made if "names_of" in path.read_text("utf-8")]


@pytest.mark.parametrize("folder", packages(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_stub_lists_all_modules_and_names_that_are_there(folder):
    imports = ast.parse((folder / "__init__.pyi").read_text("utf-8")).body
    modules = {alias.name for node in imports if not node.module for alias in node.names}
    there = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules == there - {"__init__", "__main__"}
    for node in imports:
        if node.module:
            path = folder.joinpath(*node.module.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            body = ast.parse(path.read_text("utf-8")).body
            defined = {getattr(part, "name", None) for part in body}
            defined |= {
                target.id for part in body if isinstance(part, ast.Assign) for target in part.targets if isinstance(target, ast.Name)
            }
            defined |= {alias.asname or alias.name for part in body if isinstance(part, ast.ImportFrom) for alias in part.names}
            assert {alias.name for alias in node.names} <= defined, node.module


@pytest.mark.slow
def test_mypy_knows_what_calls_return_and_finds_a_misspelt_name(tmp_path):
    pytest.importorskip("mypy", reason="needs mypy, which is for developers")
    assert (ROOT / "asutil" / "py.typed").is_file()
    (tmp_path / "calls.py").write_text(CALLS, "utf-8")
    options = ["--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}"]
    command = [sys.executable, "-m", "mypy", *options, "calls.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"MYPYPATH": str(ROOT)}, check=False)
    lines = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(lines) == 2, done.stdout + done.stderr
    assert 'Module has no attribute "rankin"; maybe "ranking"' in lines[0]
    assert 'Unexpected keyword argument "tie" for "ranking"' in lines[1]
