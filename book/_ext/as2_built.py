"""The folders of the project and what each imports, from the sources with `ast`."""

import ast
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from as2_pages import BOOK, ROOT, SOURCES
from pages import register, row, table

from aslab.show.markup import Html

# They import modules of every folder when these are first used, and stand above none.
LEFT_OUT = ("asutil", "asutil/lazy", "asutil/plugins", "asutil/__main__")


def folder_of(path: Path) -> str:
    """The box of a file: its folder, one below `asutil` at most; the file itself where it lies on top of `asutil`."""
    name = path.relative_to(ROOT)
    on_top = name.parent == Path("asutil") and name.stem != "__init__"
    folder = name.with_suffix("") if on_top else name.parent
    return "/".join(folder.parts[:2] if folder.parts[0] == "asutil" else folder.parts)


def imported(path: Path) -> Iterator[Path]:
    """The files of the project that a module may import, at its top and inside its functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names, folders = [alias.name for alias in node.names], (ROOT, BOOK / "_ext")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
            folders = [path.parents[node.level - 1]] if node.level else (ROOT, BOOK / "_ext")
        else:
            continue
        stems = [folder.joinpath(*name.split(".")) for folder in folders for name in names if name]
        files = (file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py"))
        yield from filter(Path.is_file, files)


def folders() -> dict[str, set[str]]:
    """Folder -> the folders that its modules import."""
    edges = {}
    for path in SOURCES["sources"](""):
        edges.setdefault(folder_of(path), set()).update(map(folder_of, imported(path)))
    return {name: targets - {name, *LEFT_OUT} for name, targets in edges.items() if name not in LEFT_OUT}


def reachable(edges: dict[str, set[str]], name: str) -> set[str]:
    return edges[name].union(*(reachable(edges, target) for target in edges[name]))


@register("folders", "sources")
def folder_table() -> str:
    """Every folder above what it imports."""
    edges = folders()
    body = []
    for name in sorted(edges, key=lambda name: (-len(reachable(edges, name)), name)):
        below = ", ".join(sorted(edges[name])) or "nothing of the project"
        body.append(row(Html(f'<code class="as2-folder">{name}</code>'), summary(name), below))
    title = "Every folder of the two packages and of the book's extension, above all folders that it imports."
    return table(title, ["Folder", "What lives there", "Imports"], body)


def summary(folder: str) -> Html:
    """The first paragraph of the docstring of a folder's package; for the extension, of `as2.py`."""
    path = ROOT / folder
    files = (path.with_suffix(".py"), path / "__init__.py", path / "as2.py")
    docstring = ast.get_docstring(ast.parse(next(file for file in files if file.is_file()).read_text("utf-8")))
    return Html(re.sub("`([^`]+)`", r"<code>\1</code>", escape(" ".join(docstring.partition("\n\n")[0].split()))))
