"""Directives that show the package's own source, read with `ast`: nothing is imported."""

import ast
import difflib
from typing import ClassVar

from as2_api import without_docstring
from as2_names import addresses
from as2_pages import ROOT
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

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
        file = nodes.literal("", path.relative_to(ROOT).as_posix())
        name = self.arguments[0]
        while name not in addresses():  # a private function is part of its module
            name = name.rpartition(".")[0]
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", "", file, refuri=f"{up}{addresses()[name]}", internal=True)
        caption += [link, nodes.Text(f", line {first}")]
        return [block, caption]


DIRECTIVES = {"excerpt": Excerpt}
