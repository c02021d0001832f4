"""Directives that show the package's own source, read with `ast`: nothing is imported."""

import ast
import difflib
import re
from html import escape
from typing import ClassVar

from as2_pages import ROOT, Shown, module_files
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PARAGRAPH = "\n\n"
PACKAGES = ("asutil", "aslab")


def find_definition(name: str):
    """File, node, source lines and first line number of `asutil.folder.module.name`, read with `ast`: nothing is
    imported.
    """
    package, *inner = name.split(".")
    path = ROOT / package
    while inner and path.is_dir():
        part = inner.pop(0)
        path = path / part if (path / part).is_dir() else path / f"{part}.py"
    if package not in PACKAGES or not inner or not path.is_file():
        raise ValueError(f"expected asutil.folder.module.function, got {name!r}")
    text = path.read_text("utf-8")
    node = ast.parse(text)
    for part in inner:
        children = {child.name: child for child in node.body if isinstance(child, ast.FunctionDef | ast.ClassDef)}
        if part not in children:
            close = difflib.get_close_matches(part, children, 1)
            raise ValueError(f"{path.name} has no {part!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        node = children[part]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return path, node, text.split("\n")[first - 1 : node.end_lineno], first


def without_docstring(node, lines: list[str], first: int) -> list[str]:
    """The lines of a definition without its docstring, unless it has nothing else, and without empty lines after it."""
    docstring, *rest = node.body
    if ast.get_docstring(node) is None or not rest:
        return lines
    before, after = lines[: docstring.lineno - first], lines[docstring.end_lineno - first + 1 :]
    text = "\n".join(after).strip("\n").rstrip()
    return [*before, *text.split("\n")]


class Excerpt(SphinxDirective):
    """One function of the package, from its source, with its file and line."""

    required_arguments = 1
    option_spec: ClassVar = {"docstring": lambda _: True}

    def run(self):
        try:
            path, node, lines, first = find_definition(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        self.env.note_dependency(str(path))
        if "docstring" not in self.options:
            lines = without_docstring(node, lines, first)
        block = nodes.literal_block("\n".join(lines), "\n".join(lines), language="python")
        caption = nodes.paragraph("", "", classes=["as2-source"])
        caption += [nodes.literal("", path.relative_to(ROOT).as_posix()), nodes.Text(f", line {first}")]
        return [block, caption]


class Api(Shown):
    """Every module with its public functions and classes, from the sources alone; the modules in the arguments
    come first.
    """

    kind = "modules"
    required_arguments = 0
    optional_arguments = 99

    def show(self, *first):
        paths = {dotted(path): path for path in module_files("") if path.stem != "__init__"}
        unknown = [name for name in first if name not in paths]
        if unknown:
            raise ValueError(f"no module {unknown[0]} (there are: {', '.join(paths)})")
        return [module(paths[name]) for name in (*first, *(name for name in paths if name not in first))]


def dotted(path) -> str:
    """The name by which a module of the project is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def module(path) -> nodes.section:
    tree, name = ast.parse(path.read_text("utf-8")), dotted(path)
    section = nodes.section(ids=[name.replace(".", "-").replace("_", "-")], names=[name])
    section += nodes.title("", "", nodes.literal("", name))
    items = [public(node) for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    html = f"<p>{inline((ast.get_docstring(tree) or '').split(PARAGRAPH)[0])}</p>" + "".join(items)
    section += nodes.raw("", html, format="html")
    return section


def inline(text: str) -> str:
    """One line of a docstring as HTML: escaped, with its `code` as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split())))


def public(node) -> str:
    """A public definition: its signature, its first line, and the rest of its docstring folded away; "" for a
    private one.
    """
    text = ast.get_docstring(node)
    if node.name.startswith("_") or not text:
        return ""
    function = node
    if isinstance(node, ast.ClassDef):
        function = next((child for child in node.body if getattr(child, "name", "") == "__init__"), None)
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ") if function else ""
    summary, _, rest = text.partition(PARAGRAPH)
    more = f"<details><summary>details</summary><pre>{escape(rest)}</pre></details>" if rest.strip() else ""
    signature = f"<code><b>{escape(node.name)}</b>({escape(arguments)})</code>"
    return f'<div class="as2-api">{signature}<p>{inline(summary)}</p>{more}</div>'


DIRECTIVES = {"api": Api, "excerpt": Excerpt}
