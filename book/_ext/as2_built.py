"""The folders of the project and what each imports, from the sources with `ast`, and links to files of the project."""

import ast
from collections.abc import Iterator
from pathlib import Path

from as2_names import PARAGRAPH, addresses, dotted, inline
from as2_pages import BOOK, ROOT, SOURCES
from docutils import nodes
from pages import register, row, table
from sphinx.util.docutils import SphinxRole

from aslab.show.markup import Html

# They import modules of every folder when these are first used, and stand above none.
LEFT_OUT = ("asutil", "asutil/lazy", "asutil/plugins", "asutil/__main__")


def folder_of(path: Path) -> str:
    """The box of a file: its folder, one below `asutil` at most; the file itself where it lies on top of `asutil`."""
    name = path.relative_to(ROOT)
    on_top = name.parent == Path("asutil") and name.stem != "__init__"
    folder = name.with_suffix("") if on_top else name.parent
    return "/".join(folder.parts[:2] if folder.parts[0] == "asutil" else folder.parts)


def modules(paths) -> dict[str, Path]:
    """Dotted name, as it is imported -> file."""
    found = {}
    for path in paths:
        extension = path.is_relative_to(BOOK / "_ext")
        parts = path.relative_to(BOOK / "_ext" if extension else ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path) -> Iterator[str]:
    """Every dotted name that a module may import, at its top and inside its functions."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base


def folders(paths=None) -> dict[str, set[str]]:
    """Folder -> the folders that its modules import."""
    known = modules(SOURCES["sources"]("") if paths is None else paths)
    edges = {folder_of(path): set() for path in known.values()}
    for name, path in known.items():
        targets = {folder_of(known[target]) for target in imported(name, path) if target in known}
        edges[folder_of(path)] |= targets - {folder_of(path)}
    return {name: targets - set(LEFT_OUT) for name, targets in edges.items() if name not in LEFT_OUT}


def reachable(edges: dict[str, set[str]], name: str) -> set[str]:
    return edges[name].union(*(reachable(edges, target) for target in edges[name]))


@register("folders", "sources")
def folder_table() -> str:
    """Every folder above what it imports."""
    edges = folders()
    body = []
    for name in sorted(edges, key=lambda name: (-len(reachable(edges, name)), name)):
        below = ", ".join(sorted(edges[name])) or "nothing of the project"
        body.append(row(Html(f'<code class="as2-folder">{name}</code>'), Html(inline(summary(name))), below))
    title = "Every folder of the two packages and of the book's extension, above all folders that it imports."
    return table(title, ["Folder", "What lives there", "Imports"], body)


def summary(folder: str) -> str:
    """The first paragraph of the docstring of a folder's package; for the extension, of `as2.py`."""
    path = ROOT / folder
    files = (path.with_suffix(".py"), path / "__init__.py", path / "as2.py")
    docstring = ast.get_docstring(ast.parse(next(file for file in files if file.is_file()).read_text("utf-8")))
    return docstring.partition(PARAGRAPH)[0]


def described_at(path: Path) -> str | None:
    """The address of a module, or of the first one of a folder; None for any other path."""
    within = f"{dotted(path)}." if path.is_dir() or path.suffix == ".py" else None
    return within and next((place for name, place in addresses().items() if f"{name}.".startswith(within)), None)


class File(SphinxRole):
    """A file or folder of the project, a link where its modules are described; a path that does not exist is an error."""

    def run(self):
        path = ROOT / self.text
        if not path.exists():
            return [], [self.inliner.reporter.error(f"as2-src: no file {self.text} in the project", line=self.lineno)]
        literal = nodes.literal("", self.text)
        target = described_at(path)
        up = "../" * self.env.docname.count("/")
        return [nodes.reference("", "", literal, refuri=f"{up}{target}", internal=True) if target else literal], []
