"""What pages show: functions that return HTML, each registered under the name by which a page asks for it, and their templates.

No statistics here: what is compared and counted comes from `aslab.analysis`.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from aslab import rundir
from aslab.analysis import comparisons
from aslab.show import markup
from aslab.show.markup import Html

LOADER = FileSystemLoader(Path(__file__).parents[1] / "templates")
TEMPLATES = Environment(loader=LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


class Entry(NamedTuple):
    """What the registry knows of a function.

    Attributes:
        sources: the kind of files that its HTML follows from, a name of `as2_pages.SOURCES`; "" where no record is among them.
        empty: the words of a page where the function returns nothing.
        files: further files, from the project's folder.
        on_page: whether it is called with the page, as `page`.
    """

    function: Callable
    sources: str
    empty: str
    files: tuple[str, ...]
    on_page: bool


REGISTRY: dict[str, Entry] = {}


def register(
    name: str,
    sources: str = "results",
    empty: str = "Not run.",
    files: Iterable[str] = (),
    on_page: bool = False,
    of_paper: bool = False,
    records: Iterable[str] = (),
):
    """Registers a function of text arguments: `as2-show NAME ARGUMENTS` in a page shows the HTML that it returns.

    Args:
        of_paper: the function has the file and the records of the paper that a page names first.
        records: names of committed benchmarks; the function has one record, and a page shows what it returns for each.
    Raises: ValueError for a name that is registered already.
    """

    def decorate(function):
        if name in REGISTRY:
            raise ValueError(f"{name} is registered already, by {REGISTRY[name].function.__module__}")
        called = function
        if of_paper:
            called = _with_paper(function)
        elif records:
            called = lambda: "".join(map(function, benchmarks(*records).values()))
        REGISTRY[name] = Entry(called, sources, empty, tuple(files), on_page)
        return function

    return decorate


def _with_paper(function: Callable) -> Callable:
    def show(paper: str, *arguments: str, **page) -> str:
        return function(*comparisons.rows_and_runs(paper), *arguments, **page)

    data, _, *others = inspect.signature(function).parameters.values()
    show.__signature__ = inspect.Signature([data.replace(name="paper"), *others])
    return show


def benchmarks(*names: str) -> dict[str, dict]:
    """Name -> record of the committed benchmarks; of all, or of those named."""
    paths = sorted((rundir.root() / "results" / "benchmarks").glob("*.json"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths if not names or path.stem in names}


# ------------------------------------------------------------------ HTML


def render(template: str, **values) -> Html:
    """A template of `templates/` with values; every text is escaped on its way in."""
    return Html(TEMPLATES.get_template(template).render(**values))


def table(caption: str, heads, rows: Iterable[Html], kind: str = "as2-table") -> Html:
    """A table in a box of its own: on a narrow screen the box scrolls, not the page. Args: rows: of `row`."""
    return Html(f'<div class="as2-box" tabindex="0">{markup.table(caption, heads, rows, kind)}</div>')


def row(head, *cells, kind: str = "") -> Html:
    """A line of a table: its head, and cells; a text becomes a cell."""
    return markup.line([markup.cell(head, "th", scope="row"), *cells], kind)


def numbers(*texts) -> map:
    """A cell for each figure."""
    return map(markup.number, texts)


def figure(content: str, caption: str) -> Html:
    """A drawing with its caption, which is also its label for those who do not see it; on a narrow screen the drawing scrolls."""
    return render("figure.html", content=Html(content), caption=caption)


def note(text: str) -> Html:
    """A line in place of what cannot be shown yet."""
    return render("note.html", text=text)
