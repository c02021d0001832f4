"""Directives of the page on how the project is built: folders and their imports, drawn and listed from the sources
with `ast`.
"""

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import as2_svg
from as2_names import PARAGRAPH, addresses, dotted, inline
from as2_pages import BOOK, ROOT, SOURCES, Shown, boxed, module_files
from as2_svg import HALO, WIDTH
from docutils import nodes
from sphinx.util.docutils import SphinxRole

from aslab.show import markup

BANDS = {"asutil": "asutil: the core", "aslab": "aslab: the lab", "book/_ext": "book/_ext: the book's extension"}
LEFT_OUT = ("asutil", "asutil/lazy", "asutil/plugins")  # of every folder, they only load names when they are needed
SOURCES["sources"] = lambda _: [*module_files(""), *sorted((BOOK / "_ext").rglob("*.py"))]


# ------------------------------------------------------------------ folders and imports


def folder_of(path: Path) -> str:
    """The box of a file: its folder below `asutil`, `aslab` or `book/_ext`; the file itself where it lies on top
    of `asutil`.
    """
    name = path.relative_to(ROOT)
    on_top = name.parent == Path("asutil") and name.stem != "__init__"
    return (name.with_suffix("") if on_top else name.parent).as_posix()


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


def direct(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges that no chain of other edges implies."""
    implied = {name: set().union(*(reachable(edges, target) for target in edges[name])) for name in edges}
    return {name: targets - implied[name] for name, targets in edges.items()}


# ------------------------------------------------------------------ the figure

ROW, BOX, GAP = 60, 28, 10  # height of a row, of a box; space between boxes
NARROW = 8  # width that a row leaves for an arrow that passes through
FIRST = 24  # from the top of the figure to the first row


class Place(NamedTuple):
    """A folder in its row, or an arrow that passes through the row on its way from one folder to another."""

    row: int
    name: str
    target: str = ""

    @property
    def width(self) -> float:
        return NARROW if self.target else 7 * len(self.label) + 18

    @property
    def label(self) -> str:
        return self.name.removeprefix("asutil/")

    @property
    def top(self) -> float:
        return FIRST + ROW * self.row


def band_of(name: str) -> str:
    return next(band for band in reversed(BANDS) if name == band or name.startswith(f"{band}/"))


def rows(edges: dict[str, set[str]]) -> dict[str, int]:
    """Folder -> its row from the top: above all that it imports, as near as possible to what imports it, each
    package by itself.
    """
    level, bands = {}, list(BANDS)

    def height(name: str) -> int:
        if name not in level:
            below = [other for other in edges if bands.index(band_of(other)) < bands.index(band_of(name))]
            level[name] = 1 + max((height(other) for other in {*edges[name], *below}), default=-1)
        return level[name]

    row = {name: max(map(height, edges)) - height(name) for name in edges}
    for name in sorted(edges, key=row.get):
        above = [row[other] for other in edges if name in edges[other] and band_of(other) == band_of(name)]
        row[name] = 1 + max(above) if above else row[name]
    return row


def places(edges: dict[str, set[str]], row: dict[str, int]) -> tuple[list[list[Place]], list[tuple[Place, Place]]]:
    """The places of every row, and the links from each row to the next."""
    layout = [[Place(n, name) for name in row if row[name] == n] for n in range(max(row.values()) + 1)]
    links = []
    for name, targets in edges.items():
        for target in sorted(targets):
            passed = [Place(n, name, target) for n in range(row[name] + 1, row[target])]
            for place in passed:
                layout[place.row].append(place)
            links += itertools.pairwise([Place(row[name], name), *passed, Place(row[target], target)])
    return layout, links


def middles(line: list[Place]) -> dict[Place, float]:
    """Place -> its middle, for the places of a row from left to right."""
    free = WIDTH - sum(place.width for place in line)
    gap = min(free / (len(line) + 1), 3 * GAP)
    left = (WIDTH - sum(place.width for place in line) - gap * (len(line) - 1)) / 2
    middle = {}
    for place in line:
        middle[place] = left + place.width / 2
        left += place.width + gap
    return middle


def arranged(layout: list[list[Place]], links: list[tuple[Place, Place]]) -> dict[Place, float]:
    """Place -> its middle, each row in the order with the fewest crossings and, among those, the shortest links."""
    middle = {place: x for line in layout for place, x in middles(line).items()}

    def cost(line) -> tuple[int, float]:
        now = middle | middles(list(line))
        near = [link for link in links if any(place in line for place in link)]
        ends = [(place.row, now[place], now[target]) for place, target in near]
        pairs = itertools.combinations(ends, 2)
        crossed = sum(a == b and (x - other) * (to - other_to) < 0 for (a, x, to), (b, other, other_to) in pairs)
        return crossed, sum(abs(x - to) for _, x, to in ends)

    for _ in range(4):
        for line in (*layout, *reversed(layout)):
            line[:] = min(itertools.permutations(line), key=cost)
            middle |= middles(line)
    return middle


def drawing(edges: dict[str, set[str]]) -> str:
    """Boxes in rows with the bands of the packages behind them, and an arrow for every direct import."""
    edges = direct(edges)
    row = rows(edges)
    layout, links = places(edges, row)
    middle = arranged(layout, links)
    bottom = FIRST + ROW * len(layout) - (ROW - BOX) / 2
    arrows = "".join(_link(place, target, middle, links) for place, target in links)
    shapes = arrows + "".join(_band(name, title, row) for name, title in BANDS.items())
    for place in middle:
        if not place.target:
            shapes += as2_svg.box(middle[place], place.top, place.width, place.label)
    size = f'viewBox="0 0 {WIDTH} {bottom:g}" style="min-width:0;max-width:30rem;margin:0 auto"'
    return f'<svg {size} aria-hidden="true" xmlns="http://www.w3.org/2000/svg">{shapes}</svg>'


def _band(name: str, title: str, row: dict[str, int]) -> str:
    own = [row[folder] for folder in row if band_of(folder) == name]
    top, height = FIRST + ROW * min(own) - 23, ROW * (max(own) - min(own)) + BOX + 29
    words = f'<text class="s" x="8" y="{top + 15:g}" style="{HALO}">{title}</text>'
    return f'<rect class="x" x="1" y="{top:g}" width="{WIDTH - 2}" height="{height:g}" rx="6"/>{words}'


def _link(place: Place, target: Place, middle: dict[Place, float], links) -> str:
    """A curve from one row to the next, with a head where it reaches a folder; straight through a row that it
    passes.
    """
    out = sorted((middle[end], end) for start, end in links if start == place)
    into = sorted((middle[start], start) for start, end in links if end == target)
    x = middle[place] + _port(out.index((middle[target], target)), len(out), place)
    to = middle[target] + _port(into.index((middle[place], place)), len(into), target)
    start, end = place.top + BOX, target.top
    half = (start + end) / 2
    path = f"M{x:g} {start:g}C{x:g} {half:g} {to:g} {half:g} {to:g} {end:g}"
    if target.target:
        path += f"L{to:g} {end + BOX:g}"
    else:
        path += f"M{to - 4:g} {end - 6:g}L{to:g} {end:g}L{to + 4:g} {end - 6:g}"
    return f'<path class="k" d="{path}"/>'


def _port(number: int, count: int, place: Place) -> float:
    """How far from the middle of a box one of its arrows starts or ends."""
    apart = min(14.0, (place.width - 16) / max(count - 1, 1))
    return (number - (count - 1) / 2) * apart


# ------------------------------------------------------------------ directives


def summary(folder: str) -> str:
    """The first paragraph of the docstring of a folder's package; for the extension, of `as2.py`."""
    path = ROOT / folder
    files = (path.with_suffix(".py"), path / "__init__.py", path / "as2.py")
    docstring = ast.get_docstring(ast.parse(next(file for file in files if file.is_file()).read_text("utf-8")))
    return docstring.partition(PARAGRAPH)[0]


class Folders(Shown):
    """Every folder, drawn above what it imports, and all of it as a table."""

    kind = "sources"
    required_arguments = 0

    def show(self):
        edges = folders()
        caption = (
            "Every folder of the two packages and of the book's extension, from the imports in the source when this page was built. "
            "An arrow points from a folder to one that it imports, and all arrows point down. Imports that a chain of arrows implies are "
            "left out here; the table below lists every import."
        )
        row = rows(direct(edges))
        from_top = lambda name: (row[name], name)
        body = []
        for name in sorted(edges, key=from_top):
            below = ", ".join(sorted(edges[name], key=from_top)) or "nothing of the project"
            head = markup.cell(markup.Html(f"<code>{name}</code>"), "th", scope="row")
            body.append(markup.line([head, markup.Html(inline(summary(name))), below]))
        table = boxed(markup.table("The folders from top to bottom.", ["Folder", "What lives there", "Imports"], body))
        html = as2_svg.figure(drawing(edges), caption)
        html += f"<details><summary>The folders as a table</summary>{table}</details>"
        return [nodes.raw("", html, format="html")]


class Source(SphinxRole):
    """A file or folder of the project, with a link to where the package is described; a path that does not
    exist is an error.
    """

    def run(self):
        path = ROOT / self.text
        if not path.exists():
            return [], [self.inliner.reporter.error(f"as2-src: no file {self.text} in the project", line=self.lineno)]
        literal = nodes.literal("", self.text)
        if path not in module_files("") or path.stem == "__init__":
            return [literal], []
        up = "../" * self.env.docname.count("/")
        return [nodes.reference("", "", literal, refuri=f"{up}{addresses()[dotted(path)]}", internal=True)], []


DIRECTIVES = {"folders": Folders}
ROLES = {"src": Source()}
