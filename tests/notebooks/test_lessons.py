"""The lessons: how they are written, and that every solution passes its assertions where a wrong one fails."""

import ast
import json
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks" / "lessons").glob("*.ipynb"))
MODULES = {"asutil", "numpy", "pandas", "matplotlib", "torch"} | sys.stdlib_module_names
WITHOUT_TORCH = ("ranking", "significance")
SECONDS = 120  # of one core
WRONG = {
    "ranking": {
        "exercise-average-precision": ("count / rank", "1 / rank"),
        "exercise-ties": ("min(best)", "max(best)"),
        "exercise-shared-words": ("set(baselines.words(question))", "set(baselines.words(question)) - {'rebuilt'}"),
    },
    "significance": {
        "exercise-bootstrap": ("[2.5, 97.5]", "[5, 75]"),
        "exercise-holm": ("(len(p_values) - place)", "len(p_values)"),
        "exercise-questions-needed": (" - gain**2  #", " + gain  #"),
    },
    "objectives": {
        "exercise-following": ("formulas.span(at + 1, at + 2), p", "formulas.span(start + 1, start + 2), p"),
        "exercise-length-shortcut": ("(positive > negative)", "(positive < negative)"),
        "exercise-close-shortcut": ("formulas.span(start + 1, start + n)", "formulas.span(start + 1, start + 2)"),
    },
    "encoders": {
        "exercise-pay-off": (" + 1\n", "\n"),
        "exercise-triplet-loss": ("np.maximum(0, to_right - to_wrong + margin)", "(to_right - to_wrong + margin)"),
        "exercise-re-rank": ("np.asarray(second)[best]", "np.asarray(first)[best]"),
    },
    "benchmarks": {
        "exercise-exchange": ("texts[1:] + texts[:1]", "texts"),
        "exercise-candidates-only": ("np.mean(values)", "np.sum(values)"),
        "exercise-contamination": ("len(words) - n + 1", "len(words) - n"),
    },
}


def cells_of(path: Path, kind: str) -> list[tuple[str, dict]]:
    """Source and metadata of the cells of one kind."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [("".join(cell["source"]), cell["metadata"]) for cell in cells if cell["cell_type"] == kind]


def test_there_are_five_lessons():
    assert {path.stem for path in LESSONS} == set(WRONG) and len(LESSONS) == 5


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_outputs_and_imports_the_core_alone(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    code = [source for source, _ in cells_of(path, "code")]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= MODULES
    assert max(len(source.splitlines()) for source in code) <= 15
    assert code[0] == cells_of(LESSONS[0], "code")[0][0]  # the cell that installs, which test_install.py runs


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_begins_with_three_abilities_and_has_an_answer_to_every_exercise(path):
    prose = [source for source, _ in cells_of(path, "markdown")]
    assert re.match(r"# \d\. ", prose[0]) and prose[0].count("\n- ") == 3
    asked = re.findall(r":label: ([\w-]+)", "\n".join(prose))
    answered = re.findall(r"\{solution-start\} ([\w-]+)\n:class: dropdown", "\n".join(prose))
    assert asked == answered == list(WRONG[path.stem]) and len(asked) == 3
    tags = [tag for _, metadata in cells_of(path, "code") for tag in metadata.get("tags", ())]
    in_order = [tag for tag, _ in groupby(tags)]  # a solution may have several cells
    assert in_order == ["install", "parameters", *["exercise", "solution"] * len(asked)] and tags.count("parameters") == 1
    assert all(metadata["jupyter"]["source_hidden"] for _, metadata in cells_of(path, "code") if metadata.get("tags") == ["solution"])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_figure_has_a_message_labelled_axes_and_words(path):
    drawn = [(source, metadata) for source, metadata in cells_of(path, "code") if "plt.show()" in source]
    assert drawn
    for source, metadata in drawn:
        title = re.search(r"set_title\(f?\"([^\"]*)\"|title=message", source)
        assert title and (title[1] is None or len(title[1].split()) >= 5)
        assert all(re.search(rf"set_{axis}\(|{axis}=", source) for axis in ("xlabel", "ylabel"))
        assert len(metadata["alt"].split()) >= 10


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_solution_passes_and_a_wrong_one_fails(path, tmp_path):
    made = run(path, {}, tmp_path)
    assert made["solved"] == list(WRONG[path.stem])
    assert made["seconds"] < SECONDS
    assert not (made["torch"] and path.stem in WITHOUT_TORCH)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_with_the_smallest_values_of_its_parameters(path, tmp_path):
    cell = next(source for source, metadata in cells_of(path, "code") if metadata.get("tags") == ["parameters"])
    smallest = {name: int(value) for name, value in re.findall(r"^(\w+): int = \d+  # .* at least (\d+)$", cell, re.MULTILINE)}
    assert len(smallest) == len(cell.splitlines())
    others = [ast.parse(source) for source, _ in cells_of(path, "code") if source != cell]
    assert set(smallest) <= {node.id for tree in others for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert run(path, smallest, tmp_path)["solved"] == list(WRONG[path.stem])


def run(path: Path, parameters: dict, folder: Path) -> dict:
    """What `lesson.py` prints of a lesson with some parameters."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("lesson.py")), str(path)]
    command += [json.dumps(WRONG[path.stem]), json.dumps(parameters)]
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])
