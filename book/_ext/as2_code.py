"""The package's own source on a page, read with `ast`: nothing is imported."""

import ast
import copy
import subprocess
import sys
import textwrap

from as2_names import addresses, docstring_lines
from as2_pages import ROOT
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from asutil.io import spelling

PACKAGES = ("asutil", "aslab")
COLUMNS = 77


def find_definition(name: str):
    """File, node, source lines and first line number of `asutil.folder.module.name`; nothing is imported."""
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
            raise ValueError(f"{path.name} has no {part!r}{spelling.nearest(part, children)}")
        node = children[part]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return path, node, text.split("\n")[first - 1 : node.end_lineno], first


def idea(node, lines: list[str], first: int) -> str:
    """A definition as a page shows it: without docstrings, types, checks that only raise, and decorators of methods, in short lines."""
    left_out, signatures = docstring_lines(node), {}
    functions = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef)]
    for one in functions:
        checks = [part for part in one.body if _is_check(part)]
        if len(checks) < len(one.body):
            left_out |= {line for part in checks for line in range(part.lineno, part.end_lineno + 1)}
        left_out |= {decorator.lineno for decorator in one.decorator_list if ast.unparse(decorator) == "staticmethod"}
        signatures[one.lineno] = " " * one.col_offset + f"def {one.name}({_without_types(one.args)}):"
        left_out |= set(range(one.lineno, one.body[0].lineno))
    kept = {first + number: line for number, line in enumerate(lines) if first + number not in left_out} | signatures
    text = textwrap.dedent("\n".join(kept[number] for number in sorted(kept)))
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", str(COLUMNS), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()


def _is_check(part) -> bool:
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        return ast.unparse(part.value.func).rpartition(".")[2].lstrip("_").startswith(("check", "require"))
    return isinstance(part, ast.If) and isinstance(part.body[-1], ast.Raise) and not part.orelse


def _without_types(arguments: ast.arguments) -> str:
    bare = copy.deepcopy(arguments)
    for one in ast.walk(bare):
        if isinstance(one, ast.arg):
            one.annotation = None
    return ast.unparse(bare)


class Excerpt(SphinxDirective):
    """The idea of one function or class of the package, from its source, with its file and line."""

    required_arguments = 1

    def run(self):
        try:
            path, node, lines, first = find_definition(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        self.env.note_dependency(str(path))
        text = idea(node, lines, first)
        block = nodes.literal_block(text, text, language="python")
        caption = nodes.paragraph("", "", classes=["as2-source"])
        file = nodes.literal("", path.relative_to(ROOT).as_posix())
        name = self.arguments[0]
        while name not in addresses():  # a private function is part of its module
            name = name.rpartition(".")[0]
        up = "../" * self.env.docname.count("/")
        link = nodes.reference("", "", file, refuri=f"{up}{addresses()[name]}", internal=True)
        caption += [link, nodes.Text(f", line {first}, here without types and checks")]
        return [block, caption]
