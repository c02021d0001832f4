"""The pages on the package, by autodoc: sections of docstrings as fields, names as links to their entries, sources folded away."""

import importlib
import inspect
import pkgutil
import re
from contextlib import suppress
from pathlib import Path

from as2_code import PACKAGES, docstring_lines, find_definition, link
from as2_pages import ROOT, module_files, watch
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.inspect import isproperty

from aslab import papers
from aslab.commands import COMMANDS

LABELS = {  # sections of a docstring
    "Paper": "Paper",
    "Shapes": "Shapes",
    "Args": "Arguments",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Errors",
    "Deviation": "Deviation",
    "Example": "Example",
}
FORMULA = [".. code-block:: none", "    :class: as2-formula", ""]
SECTION = re.compile(rf"({'|'.join(LABELS)}):\s*(.*)")
ARGUMENT = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")
MARKED = re.compile(rf"`([^`]+)`|\b(D-\d+)\b|\b(?<!/)({'|'.join(papers.papers())})\b|[\\*|]|_\b")
COMMENTED = re.compile(r"^    (\w+): .*?  # (.*)$", re.MULTILINE)  # a field of a class
UNLISTED = ("__init__", "__main__", "lazy")  # modules without an entry


# ------------------------------------------------------------------ docstrings


def marked(text: str, own: tuple[str, ...] = ()) -> str:
    """Words of a docstring as reStructuredText: code, deviations and papers are links; names of `own` are code alone."""

    def mark(match: re.Match) -> str:
        code, deviation, paper = match.groups()
        if code in own:
            return rf"\ ``{code}``\ "
        if code:
            escaped = code.replace("\\", r"\\")
            return rf"\ :py:obj:`{escaped}`\ "
        if deviation:
            return rf"\ `{deviation} <../deviations.html#{deviation.lower()}>`__\ "
        return rf"\ :doc:`{paper} </papers/{paper}>`\ " if paper else f"\\{match[0]}"

    return MARKED.sub(mark, text)


def with_fields(lines: list[str], own: tuple[str, ...]) -> list[str]:
    """A docstring as reStructuredText: its sections as fields; equations, which end without a full stop, and indented lines as blocks."""
    made, section = [], ""
    for line in lines:
        if start := SECTION.fullmatch(line):
            section, words = start.groups()
            made += ["", f":{LABELS[section]}: {marked(words, own)}", *([""] if section == "Example" else [])]
        elif section == "Example" and line.startswith(" "):
            made.append(line)
        elif section == "Args" and re.match(" {4}[^ ]", line):
            words = ARGUMENT.sub(r"`\1`: ", line.strip(), count=1)
            made += ["", f"    {marked(words, own)}"]
        elif section in LABELS and line.startswith(" "):
            made.append(f"    {marked(line.strip(), own)}")
        elif (" = " in line and not line.endswith(".")) or line.startswith("    "):
            made += [f"    {line}"] if section == "formula" else ["", *FORMULA, f"    {line}"]
            section = "formula"
        else:
            made += ["", marked(line, own)] if section else [marked(line, own)]
            section = ""
    return made


def describe(app, what: str, name: str, thing, options, lines: list[str]) -> None:
    """Writes a docstring as fields, with the commands of a module, the bases and fields of a class, and the source."""
    own = ()
    with suppress(TypeError, ValueError):  # a module, a property and a method of C have no signature
        own = tuple(inspect.signature(thing).parameters)
    lines[:] = with_fields(lines, own)
    if what == "module":
        commands = [words for words, (place, _) in COMMANDS.items() if place.partition(":")[0] == name]
        lines += [line for words in commands for line in ("", f"Also a command: ``asutil {words} --help``.")]
    if what == "class":
        bases = [f"`{base.__name__}`" for base in thing.__bases__ if base is not object]
        lines += ["", f":Based on: {marked(', '.join(bases))}"] if bases else []
        comments = COMMENTED.findall(inspect.getsource(thing)) if own else []
        lines += ["", ":Fields:"] if comments else []
        lines += [line for field, words in comments for line in ("", f"    ``{field}``: {marked(words, own)}")]
    if what in ("function", "class"):
        lines += ["", f".. as2-source:: {thing.__module__}.{thing.__qualname__}"]


def skip(app, what: str, name: str, thing, skipped: bool, options) -> bool | None:
    """No entries for private names, for `main`, which is a command, and for fields and aliases, which signatures and sources have."""
    ours = inspect.isroutine(thing) or isinstance(thing, type)
    ours = ours and (thing.__module__ or "").startswith(PACKAGES) and thing.__name__ == name
    return True if name.startswith("_") or name == "main" or not (ours or isproperty(thing)) else None


class Source(nodes.General, nodes.Element):
    """HTML of a source, which the search does not index."""


def visit_source(self, node: Source):
    self.body.append(node["html"])
    raise nodes.SkipNode


class FoldedSource(SphinxDirective):
    """The source of a function or class without its docstrings, folded away."""

    required_arguments = 1

    def run(self):
        path, node, lines, first = find_definition(self.arguments[0])
        left_out = docstring_lines(node)
        text = "\n".join(line for number, line in enumerate(lines, first) if number not in left_out)
        where = f"<code>{path.relative_to(ROOT).as_posix()}</code>, line {first}"
        code = self.env.app.builder.highlighter.highlight_block(text, "python")
        return [Source(html=f'<details class="as2-code"><summary>Source: {where}</summary>{code}</details>')]


# ------------------------------------------------------------------ links


def defined(name: str) -> str:
    """The dotted name under which a name that a package passes on is defined."""
    try:
        thing = pkgutil.resolve_name(name)
    except (AttributeError, ImportError, ValueError):
        return name
    return f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__qualname__") else name


def resolve(app, env, node, contnode):
    """A link from a name in a docstring: one of the same package or of the project, or the only one that ends so."""
    name, domain = node["reftarget"].partition("(")[0], env.get_domain("py")
    if node.get("refdomain") != "py" or not re.fullmatch(r"[\w.]+", name):
        return None
    module = node.get("py:module") or ""
    scopes = dict.fromkeys(("", module, module.rpartition(".")[0], "asutil", "aslab"))
    wanted = (defined(f"{scope}.{name}".lstrip(".")) for scope in scopes)
    known = [one for one in wanted if one in domain.objects]
    if not known and ("." in name or name[0].isupper()):
        alike = [one for one in domain.objects if one.endswith(f".{name}")]
        known = alike if len(alike) == 1 else []
    if not known:
        return None
    place = domain.objects[known[0]]
    uri = app.builder.get_relative_uri(node["refdoc"], place.docname)
    return nodes.reference("", "", contnode, refuri=f"{uri}#{place.node_id}", internal=True)


def module_of(path: Path) -> str | None:
    """The module of a file with an entry, or the first one in a folder; None for another path."""
    return next((dotted(module) for module in listed() if path in (module, *module.parents)), None)


class Name(SphinxRole):
    """A public name of the package, with a link to where it is described; any other name is an error."""

    def run(self):
        return [link(self.text, self.text, self.env.docname)], []


class File(SphinxRole):
    """A file or folder of the project, a link to its module or its first one; a path that does not exist is an error."""

    def run(self):
        path = ROOT / self.text
        if not path.exists():
            return [], [self.inliner.reporter.error(f"as2-src: no file {self.text} in the project", line=self.lineno)]
        name = module_of(path)
        return [link(name, self.text, self.env.docname) if name else nodes.literal("", self.text)], []


# ------------------------------------------------------------------ pages


def dotted(path: Path) -> str:
    """The name by which a module of the project is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def listed() -> list[Path]:
    return [path for path in module_files() if path.stem not in UNLISTED]


def modules_of(*names: str) -> list[str]:
    """Modules and packages in this order; a package gives the rest of its own. Raises: ValueError for another name."""
    known, chosen = [dotted(path) for path in listed()], {}
    for name in names:
        members = [one for one in known if one == name or one.rpartition(".")[0] == name]
        if not members:
            raise ValueError(f"no module or package {name!r} (there are: {', '.join(known)})")
        chosen |= dict.fromkeys(members)
    return list(chosen)


def passed_on(package: str) -> dict[str, str]:
    """Name -> module, for the names that a package passes on from its modules (`asutil.lazy.names_of`)."""
    find = getattr(importlib.import_module(package), "__getattr__", None)
    return inspect.getclosurevars(find).nonlocals.get("source", {}) if find else {}


class Api(SphinxDirective):
    """The modules and packages in the arguments, in this order, with what their packages pass on as a table above them."""

    required_arguments = 1
    optional_arguments = 99

    def run(self):
        watch(self.env, "modules")
        modules = modules_of(*self.arguments)
        packages = dict.fromkeys(name.rpartition(".")[0] for name in modules)
        names = [
            f"{package}.{name}"
            for package in packages
            for name, module in passed_on(package).items()
            if f"{package}.{module}" in modules and callable(getattr(importlib.import_module(package), name))
        ]
        page = nodes.section()
        if names:
            text = "What most programs need; the modules below have the rest."
            page += nodes.paragraph(text, text)
            self.parse(page, ".. autosummary::", "    :nosignatures:", "", *(f"    {name}" for name in names))
        for name in modules:
            section = nodes.section(ids=[name], names=[name])
            section += nodes.title("", "", nodes.literal("", name))
            self.parse(section, f".. automodule:: {name}")
            page += section
        return page.children

    def parse(self, node: nodes.Element, *lines: str) -> None:
        """Adds what these lines of reStructuredText make."""
        text = StringList(["```{eval-rst}", *lines, "```"], self.get_source_info()[0])
        self.state.nested_parse(text, self.content_offset, node)


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.autosummary")
    app.connect("autodoc-process-docstring", describe)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    app.add_node(Source, html=(visit_source, None))
    app.add_directive("as2-api", Api)
    app.add_directive("as2-source", FoldedSource)
    app.add_role("as2-name", Name())
    app.add_role("as2-src", File())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
