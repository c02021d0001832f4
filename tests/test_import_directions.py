"""Imports go one way: every folder imports what stands below it, and no module imports itself by way of others. Local imports count."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# folder -> the folders that its modules may import, besides its own
LOWEST = ("asutil.draws", "asutil.plugins", "asutil.io")
READ = ("asutil.draws", "asutil.io", "asutil.corpus", "asutil.data")
BELOW = {
    **dict.fromkeys(("asutil.draws", "asutil.lazy", "asutil.registry", "asutil.plugins"), ()),
    "asutil.losses": ("asutil.io",),
    "asutil.heads": ("asutil.registry", "asutil.io"),
    "asutil.io": ("asutil.draws", "asutil.plugins"),
    "asutil.corpus": LOWEST,
    "asutil.data": (*LOWEST, "asutil.corpus"),
    "asutil.inputs": READ,
    "asutil.sampling": (*READ, "asutil.registry", "asutil.inputs"),
    "asutil.models": (*READ, "asutil.plugins", "asutil.inputs", "asutil.losses", "asutil.heads"),
    "asutil.metrics": ("asutil.draws", "asutil.registry", "asutil.io"),
}
BELOW["asutil.training"] = tuple(name for name in BELOW if name != "asutil.lazy")
BELOW["asutil.tasks"] = (*BELOW["asutil.training"], "asutil.training")
BELOW["asutil.pydocs"] = (*BELOW["asutil.tasks"], "asutil.tasks")
BELOW["aslab"] = (*BELOW["asutil.pydocs"], "asutil.pydocs", "asutil.lazy", "asutil")
# `python -m asutil`, which nothing imports.
BELOW["asutil.__main__"] = ("asutil.plugins",)
BELOW["pages"] = (*BELOW["aslab"], "aslab")
OF_A_RUN = re.compile(r"record\.json|\brundir\b|\bruns/|\bBUDGETS\b|run\.json|\baslab\b")


def files() -> dict[str, Path]:
    """Dotted name -> file of every module of both packages and of the tables of the book; a package has the name of its folder."""
    found = {}
    for top in (ROOT / "asutil", ROOT / "aslab", ROOT / "book" / "_ext" / "pages"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known) -> Iterator[str]:
    """What a module imports of these modules, at its top and inside its functions."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                target = f"{base}.{alias.name}"
                if target in known or base in known:
                    yield target if target in known else base


def folder_of(name: str) -> str:
    """The folder that a module belongs to, by the names of `BELOW`; the name itself where it belongs to none."""
    return next((folder for folder in BELOW if name == folder or name.startswith(f"{folder}.")), name)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = files()
    return {name: {target for target in imported(name, path, known) if target != name} for name, path in known.items()}


def test_every_module_belongs_to_a_folder(graph):
    outside = [name for name in graph if folder_of(name) not in BELOW and name != "asutil"]
    assert not outside, f"no direction is known for {', '.join(outside)}: put them into a folder of BELOW"


def test_imports_go_one_way(graph):
    wrong, paths = [], files()
    for name, targets in graph.items():
        own = folder_of(name)
        allowed = {own, *BELOW.get(own, ()), *(["asutil.lazy"] if paths[name].name == "__init__.py" else [])}
        for target in sorted(targets):
            if folder_of(target) not in allowed:
                may = ", ".join(BELOW.get(own, ())) or "nothing of the project"
                wrong.append(f"{paths[name].relative_to(ROOT)} imports {target}: {own} may import {may}")
    assert not wrong, "imports against the directions:\n" + "\n".join(wrong)


def test_asutil_knows_nothing_of_runs():
    lines = (
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "asutil").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if OF_A_RUN.search(line)
    )
    assert not (found := list(lines)), "words of a run, which belong into aslab:\n" + "\n".join(found)


def test_no_module_imports_itself_by_way_of_others(graph):
    done, cycles = set(), []

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            cycles.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in sorted(graph[name]):
                visit(target, [*path, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    assert not cycles, "cycles of imports:\n" + "\n".join(cycles)


def test_a_wrong_import_is_found(tmp_path):
    path = tmp_path / "disk.py"
    path.write_text("def late():\n    from ..models import loading\n    from . import hub\n    import aslab.runs\n")
    known = {"asutil.models.loading", "asutil.io.hub", "aslab.runs", "asutil.models"}
    assert list(imported("asutil.io.disk", path, known)) == ["asutil.models.loading", "asutil.io.hub", "aslab.runs"]
    assert folder_of("asutil.models.loading") not in BELOW["asutil.io"] and folder_of("aslab.runs") == "aslab"


# ------------------------------------------------------------------ size

# A change that needs more lines raises the number in the same commit, and its message says why.
LINES = {
    **{"asutil/*.py": 539, "asutil/heads": 270, "asutil/corpus": 1_292, "asutil/sampling": 1_359, "asutil/inputs": 1_639},
    **{"asutil/metrics": 1_630, "asutil/io": 1_479, "asutil/data": 2_903, "asutil/models": 2_421, "asutil/training": 981},
    **{"asutil/tasks": 2_373, "asutil/pydocs": 861, "aslab/*.py": 5_796, "aslab/analysis": 1_910, "aslab/show": 902},
    **{"book/_ext/*.py": 3_323, "book/_ext/pages": 1_423, "tests": 44_456},
}


def test_no_folder_has_more_lines_than_its_budget():
    size = runpy.run_path(str(ROOT / "benchmarks" / "size.py"))
    count = lambda path: path.read_text("utf-8").count("\n")
    counts = {folder: sum(map(count, paths)) for folder, paths in size["rooms"](ROOT).items()}
    assert LINES.keys() == counts.keys() - set(size["PROGRAM"]) - {"benchmarks"}
    assert not {folder: (counts[folder], most) for folder, most in LINES.items() if counts[folder] > most}
