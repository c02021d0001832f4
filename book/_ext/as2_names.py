"""The pages on the package: every public name with its signature, its docstring, links to other names, and its source.

The sources are read with `ast`: nothing is imported.
"""

import ast
import re
import textwrap
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from as2_pages import BOOK, ROOT, module_files

from aslab import papers

PAGES = BOOK / "api"
# Sections of a docstring -> how a page calls them.
LABELS = {name: name for name in ("Paper", "Shapes", "Args", "Returns", "Yields", "Raises", "Deviation", "Example")}
LABELS |= {"Args": "Arguments", "Raises": "Errors"}
SECTION = re.compile(rf"^({'|'.join(LABELS)}):\s*(.*)$")
ARGUMENT = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")
PARAGRAPH = "\n\n"
Definition = ast.FunctionDef | ast.ClassDef


class Place(NamedTuple):
    """A public name: what it is in, and the class that it is a method of."""

    module: str
    owner: str = ""
    parameters: tuple[str, ...] = ()


# ------------------------------------------------------------------ names


def dotted(path) -> str:
    """The name by which a module of the project is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def modules_of(*names: str) -> list[Path]:
    """The files of modules and packages, in this order; a package gives the rest of its own. Raises: ValueError for another name."""
    paths = {dotted(path): path for path in module_files("") if path.stem != "__init__"}
    chosen = {}
    for name in names:
        members = {one: path for one, path in paths.items() if one == name or one.rpartition(".")[0] == name}
        if not members:
            raise ValueError(f"no module or package {name!r} (there are: {', '.join(paths)})")
        chosen |= {one: path for one, path in members.items() if one not in chosen}
    return list(chosen.values())


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def docstring_lines(node: Definition) -> set[int]:
    """The numbers of the lines of all docstrings in a definition, but for one that is all there is of a body."""
    inner = [one for one in ast.walk(node) if isinstance(one, Definition) and ast.get_docstring(one) is not None]
    parts = [one.body[0] for one in inner if len(one.body) > 1]
    return {line for part in parts for line in range(part.lineno, part.end_lineno + 1)}


def public(body: list) -> list[Definition]:
    """The public functions and classes of a module or class; not `main`, which is a command."""
    definitions = [node for node in body if isinstance(node, Definition)]
    return [node for node in definitions if not node.name.startswith("_") and node.name != "main"]


def exported(package: str) -> list[str]:
    """The dotted names that a package passes on from its modules, by its stub, in their order."""
    path = ROOT / package.replace(".", "/") / "__init__.pyi"
    body = tree(path).body if path.is_file() else []
    imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.module]
    return [f"{package}.{node.module}.{alias.name}" for node in imports for alias in node.names]


def defined(name: str, known: dict[str, str]) -> str | None:
    """The dotted name under which a name that a package passes on is defined; None for a constant."""
    module, _, last = name.rpartition(".")
    package = module.rpartition(".")[0]
    alike = (one for one in (name, *known) if one.startswith(package) and one.endswith(f".{last}"))
    return next((one for one in alike if one in known), None)


@cache
def addresses() -> dict[str, str]:
    """Dotted name of a module, function, class, method or passed-on name -> its address, from the folder of the book."""
    found = {}
    for page in sorted(PAGES.glob("*.md")):
        for names in re.findall(r"^```\{as2-api\} (.*)$", page.read_text("utf-8"), re.MULTILINE):
            for path in modules_of(*names.split()):
                module = dotted(path)
                members = [module]
                for node in public(tree(path).body):
                    members.append(f"{module}.{node.name}")
                    if isinstance(node, ast.ClassDef):
                        members += [f"{module}.{node.name}.{method.name}" for method in public(node.body)]
                found |= {name: f"api/{page.stem}.html#{name}" for name in members}
    for package in ("asutil", *{name.rpartition(".")[0] for name in found}):
        for name in exported(package):
            if source := defined(name, found):
                found.setdefault(f"{package}.{name.rpartition('.')[2]}", found[source])
    return found


@cache
def ends() -> dict[str, set[str]]:
    """The end of a dotted name, `rankings.ranking` or `Ranker`, -> the addresses of all names with this end."""
    found = {}
    for name, place in addresses().items():
        parts = name.split(".")
        for first in range(1, len(parts)):
            found.setdefault(".".join(parts[first:]), set()).add(place)
    return found


def address(text: str, place: Place) -> str | None:
    """Where a name in a docstring is described: of its own class, module, package, or of the project; None for no public name."""
    name = text.split("(")[0]
    if not re.fullmatch(r"[\w.]+", name) or name in place.parameters or name == place.owner:
        return None
    package = place.module.rpartition(".")[0]
    for scope in (f"{place.module}.{place.owner}", place.module, package, "asutil", "aslab", ""):
        if f"{scope}.{name}".lstrip(".") in addresses():
            return addresses()[f"{scope}.{name}".lstrip(".")]
    alike = ends().get(name, set()) if "." in name or name[0].isupper() else set()
    return next(iter(alike)) if len(alike) == 1 else None


# ------------------------------------------------------------------ docstrings


def inline(text: str) -> str:
    """One line of a docstring as HTML: escaped, with its `code` as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split())))


def linked(text: str, place: Place) -> str:
    """Words of a docstring as HTML: names, papers and deviations lead to where they are described."""

    def code(match) -> str:
        target = address(match[1].replace("&#x27;", "'"), place)
        return f'<a href="../{escape(target)}">{match[0]}</a>' if target else match[0]

    html = re.sub(r"<code>([^<]*)</code>", code, inline(text))
    html = re.sub(r"\b(D-\d+)\b", lambda match: f'<a href="../deviations.html#{match[1].lower()}">{match[1]}</a>', html)
    slugs = "|".join(papers.PAPERS)
    return re.sub(rf"\b(?<!/)({slugs})\b", r'<a href="../papers/\1.html">\1</a>', html)


def described(text: str, place: Place, highlight: Callable[[str, str], str]) -> str:
    """A docstring as HTML: its paragraphs, formulas and sections, in their order."""
    blocks = [("", [])]
    for line in text.split("\n"):
        start = SECTION.match(line)
        if start:
            blocks.append((start[1], [start[2]]))
        elif not blocks[-1][0] or not line or line.startswith(" "):
            blocks[-1][1].append(line)
        else:
            blocks.append(("", [line]))
    html = ""
    for section, lines in blocks:
        if section:
            html += f"<dl><dt>{LABELS[section]}</dt><dd>{_section(section, lines, place, highlight)}</dd></dl>"
        else:
            html += _paragraphs(lines, place)
    return html


def _section(section: str, lines: list[str], place: Place, highlight: Callable[[str, str], str]) -> str:
    first, rest = lines[0], textwrap.dedent("\n".join(lines[1:])).strip("\n")
    if section == "Example":
        return highlight(rest or first, "pycon")
    if section != "Args":
        return linked(f"{first} {rest}", place)
    items = []
    for line in rest.split("\n"):
        if line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line)
    shown = (ARGUMENT.sub(lambda match: f"`{match[1]}`: ", item) for item in items)
    return "".join(f"<p>{linked(item, place)}</p>" for item in shown)


def _paragraphs(lines: list[str], place: Place) -> str:
    """Prose in paragraphs; a line with an equation, which ends without a full stop, by itself."""
    html, prose = "", []
    for line in [*lines, ""]:
        formula = " = " in line and not line.endswith(".")
        if prose and (formula or not line):
            html += f"<p>{linked(' '.join(prose), place)}</p>"
            prose = []
        if formula:
            html += f'<pre class="as2-formula">{escape(line)}</pre>'
        elif line:
            prose.append(line)
    return html
