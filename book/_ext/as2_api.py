"""The pages on the package: every public name with its signature, its docstring, links between names, and its source."""

import ast
from collections.abc import Callable
from html import escape
from pathlib import Path

import as2_names
from as2_names import Definition, Place, described, dotted, linked, public, tree
from as2_pages import ROOT, watch
from docutils import nodes
from pages import row, table
from sphinx.util.docutils import SphinxDirective, SphinxRole

from aslab.commands import COMMANDS
from aslab.show.markup import Html

WIDTH = 77  # of a signature in one line


# ------------------------------------------------------------------ definitions


def parameters(function: ast.FunctionDef) -> list[str]:
    """The parameters of a function as they are written, without `self`."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    shown = [_parameter(*each) for each in zip(plain, defaults)]
    if arguments.vararg or arguments.kwonlyargs:
        shown.append(f"*{ast.unparse(arguments.vararg) if arguments.vararg else ''}")
    shown += [_parameter(*each) for each in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        shown.append(f"**{ast.unparse(arguments.kwarg)}")
    return shown[1:] if shown[:1] in (["self"], ["cls"]) else shown


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return ast.unparse(argument)
    return ast.unparse(argument) + (" = " if argument.annotation else "=") + ast.unparse(default)


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The fields of a dataclass or a named tuple."""
    made = [ast.unparse(one) for one in (*node.decorator_list, *node.bases)]
    if not any(text.startswith("dataclass") or text == "NamedTuple" for text in made):
        return []
    return [one for one in node.body if isinstance(one, ast.AnnAssign)]


def signature(node: Definition) -> str:
    """`name(parameters) -> result`, a parameter a line where one line is too short."""
    if isinstance(node, ast.FunctionDef):
        wanted, returns = parameters(node), f" -> {ast.unparse(node.returns)}" if node.returns else ""
    else:
        start = next((child for child in node.body if getattr(child, "name", "") == "__init__"), None)
        wanted, returns = parameters(start) if start else [ast.unparse(one) for one in fields(node)], ""
    if isinstance(node, ast.FunctionDef) and "property" in str([ast.unparse(one) for one in node.decorator_list]):
        return f"{node.name}{returns}"
    line = f"{node.name}({', '.join(wanted)}){returns}"
    return line if len(line) <= WIDTH else f"{node.name}(\n    " + ",\n    ".join(wanted) + f",\n){returns}"


def remarks(node: ast.ClassDef, lines: list[str], place: Place) -> str:
    """The fields of a class that have a comment in the source, with it."""
    said = [(ast.unparse(one.target), lines[one.lineno - 1].partition("  # ")[2]) for one in fields(node)]
    shown = "".join(f"<p><code>{escape(name)}</code>: {linked(text, place)}</p>" for name, text in said if text)
    return f"<dl><dt>Fields</dt><dd>{shown}</dd></dl>" if shown else ""


def without_docstring(node: Definition, lines: list[str], first: int) -> list[str]:
    """The lines of a definition without `docstring_lines` and the empty ones that follow them."""
    dropped, kept = as2_names.docstring_lines(node), []
    for number, line in enumerate(lines, first):
        if number - 1 in dropped and not line.strip():
            dropped.add(number)
        elif number not in dropped:
            kept.append(line)
    return kept


class Source(nodes.General, nodes.Element):
    """HTML of a source, which the search does not index."""


def visit_source(self, node: Source):
    self.body.append(node["html"])
    raise nodes.SkipNode


def definition(node: Definition, path: Path, highlight: Callable[[str, str], str]) -> nodes.section:
    """A public function or class, with the public methods of a class, and its source folded away."""
    module, lines = dotted(path), path.read_text("utf-8").split("\n")
    name = f"{module}.{node.name}"
    function = isinstance(node, ast.FunctionDef)
    place = Place(module, node.name, _names(node))
    html = highlight(signature(node), "python") + described(ast.get_docstring(node) or "", place, highlight)
    if not function:
        bases = ", ".join(linked(f"`{ast.unparse(one)}`", Place(module)) for one in node.bases)
        html += f"<dl><dt>Based on</dt><dd>{bases}</dd></dl>" if bases else ""
        html += remarks(node, lines, place)
        for method in public(node.body):
            shown = described(ast.get_docstring(method) or "", place._replace(parameters=_names(method)), highlight)
            html += f'<div class="as2-method" id="{name}.{method.name}">{highlight(signature(method), "python")}{shown}</div>'
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    source = lines[first - 1 : node.end_lineno]
    source = "\n".join(without_docstring(node, source, first))
    where = f"<code>{path.relative_to(ROOT).as_posix()}</code>, line {first}"
    details = f"<details><summary>Source: {where}</summary>{highlight(source, 'python')}</details>"
    section = nodes.section(ids=[name], names=[name])
    section += nodes.title("", "", nodes.literal("", node.name))
    section += nodes.raw("", f'<div class="as2-api">{html}</div>', format="html")
    section += Source(html=f'<div class="as2-api">{details}</div>')
    return section


def _names(node: Definition) -> tuple[str, ...]:
    """Names of parameters or fields: in a docstring they are no other names."""
    functions = [node]
    if isinstance(node, ast.ClassDef):
        functions = [one for one in node.body if getattr(one, "name", "") == "__init__"]
    arguments = [one.arg for function in functions for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    return (*arguments, *(ast.unparse(one.target) for one in (fields(node) if isinstance(node, ast.ClassDef) else ())))


def module_section(path: Path, highlight: Callable[[str, str], str]) -> nodes.section:
    name = dotted(path)
    section = nodes.section(ids=[name], names=[name])
    section += nodes.title("", "", nodes.literal("", name))
    html = described(ast.get_docstring(tree(path)) or "", Place(name), highlight)
    own = [words for words, (place, _) in COMMANDS.items() if place.partition(":")[0] == name]
    html += "".join(f"<p>Also a command: <code>asutil {words} --help</code>.</p>" for words in own)
    section += nodes.raw("", html, format="html")
    section += [definition(node, path, highlight) for node in public(tree(path).body)]
    return section


# ------------------------------------------------------------------ directives


class Api(SphinxDirective):
    """The modules and packages in the arguments, in this order, with what their packages pass on as a table above them."""

    required_arguments = 1
    optional_arguments = 99

    def run(self):
        watch(self.env, "modules")
        highlighter = self.env.app.builder.highlighter
        highlight = lambda text, language: highlighter.highlight_block(text, language)
        paths = as2_names.modules_of(*self.arguments)
        packages = dict.fromkeys(dotted(path).rpartition(".")[0] for path in paths)
        modules = {dotted(path) for path in paths}
        names = [name for package in packages for name in as2_names.exported(package)]
        body = [_overview(name) for name in names if name.rpartition(".")[0] in modules]
        title = "What most programs need; the modules below have the rest."
        html = table(title, ["Import", "What it is"], body) if body else ""
        return [nodes.raw("", html, format="html"), *(module_section(path, highlight) for path in paths)]


def _overview(name: str) -> str:
    """A line of the table of what a package passes on; "" for a constant."""
    source = as2_names.defined(name, as2_names.addresses())
    if not source:
        return ""
    module, _, last = source.rpartition(".")
    path = ROOT / f"{module.replace('.', '/')}.py"
    node = next(one for one in public(tree(path).body) if one.name == last)
    summary = (ast.get_docstring(node) or "").partition(as2_names.PARAGRAPH)[0]
    package = name.rpartition(".")[0].rpartition(".")[0]
    link = Html(f'<a href="../{as2_names.addresses()[source]}"><code>{package}.{last}</code></a>')
    return row(link, Html(linked(summary, Place(module))))


class Name(SphinxRole):
    """A public name of the package, with a link to where it is described; any other name is an error."""

    def run(self):
        if self.text not in as2_names.addresses():
            return [], [self.inliner.reporter.error(f"as2-name: no public name {self.text!r}", line=self.lineno)]
        up = "../" * self.env.docname.count("/")
        target = f"{up}{as2_names.addresses()[self.text]}"
        return [nodes.reference("", "", nodes.literal("", self.text), refuri=target, internal=True)], []
