"""The verdicts on claims, computed once more by a script that knows nothing of the project."""

import ast
import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("recompute_claims.py")


def ran(*arguments) -> tuple[int, list[str], str]:
    """Exit status, the lines of claims, and the last line."""
    command = [sys.executable, "-m", "tests.trust.recompute_claims", *map(str, arguments)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert made.returncode in (0, 1) and not made.stderr, made.stderr
    header, *lines, last = made.stdout.splitlines()
    assert header == "claim | ours | recomputed | equal"
    return made.returncode, lines, last


def test_it_imports_nothing_of_the_project():
    text = SCRIPT.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    modules = {name for node in nodes if isinstance(node, ast.Import) for name in (alias.name for alias in node.names)}
    assert not re.search(r"from \.|import_module|__import__", text)
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in modules} <= {*sys.stdlib_module_names, "numpy", "scipy"}


def test_every_claim_that_was_tested_comes_out_the_same():
    status, lines, last = ran()
    with (ROOT / "results" / "claims.csv").open(encoding="utf-8", newline="") as file:
        tested = [line for line in csv.DictReader(file) if line["p"]]
    assert status == 0 and len(lines) == len(tested) and last == f"{len(tested)} claims of 5 papers, 0 not equal"
    assert all(line.endswith("| yes") for line in lines)
    assert len([line for line in tested if line["p_holm"]]) >= 10


def test_another_digit_or_word_of_the_file_is_noticed(tmp_path):
    with (ROOT / "results" / "claims.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    tested = [line for line in lines if line["p_holm"]]
    changes = {"difference": "0.001", "low": "-9", "p": "0.5", "p_holm": "0.1234", "smallest_effect": "2", "verdict": "reversed"}
    for line, (name, other) in zip(tested, changes.items()):
        line[name] = other
    with (tmp_path / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    status, shown, last = ran(tmp_path / "claims.csv")
    wrong = [line.split(" | ")[0] for line in shown if line.endswith("| NO")]
    assert status == 1 and last.endswith(f", {len(changes)} not equal")
    assert wrong == [f"{line['paper']} {line['claim']} {line['family']}" for line in tested[: len(changes)]]
