"""The directive `as2-show NAME ARGUMENTS`: what a registered function returns, and the files that a page depends on."""

import inspect
import os
from html import escape
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from pages import REGISTRY, note, render, report
from sphinx.util.docutils import SphinxDirective, SphinxRole

from aslab import measured, papers, rundir
from aslab.analysis import quotes
from aslab.gallery import executed
from asutil.io import hub

BOOK = Path(__file__).resolve().parents[1]
ROOT = BOOK.parent
# The book shows the project that contains it.
os.environ["ASUTIL_PROJECT"] = str(ROOT)


def card_files(_: str = "") -> list[Path]:
    return sorted(path for path in (ROOT / "data_cards").glob("*.md") if path.stem != "TEMPLATE")


def module_files(_: str = "") -> list[Path]:
    return sorted(path for package in ("asutil", "aslab") for path in (ROOT / package).rglob("*.py"))


def run_files(_: str = "") -> list[Path]:
    return [path for folder in rundir.folders(ROOT / "runs") if (path := folder / "record.json").is_file()]


def result_files(paper: str) -> list[Path]:
    notebooks = files("results/notebooks/*.ipynb")
    return [*notebooks, *(path for name in ([paper] if paper else papers.PAPERS) for path in report.sources(name))]


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


PLANNED = ("aslab/budgets.yml", "notebooks/*.ipynb")  # what the settings of a planned run follow from
SOURCES = {
    "": lambda _: [],
    "all results": lambda _: result_files(""),
    "backbone": lambda _: sorted(hub.EMBEDDED_FOLDER.glob("*")),
    "benchmarks": lambda _: files("results/benchmarks/*.json"),
    "cards": card_files,
    "choices": lambda _: [*SOURCES["rankers"](""), *SOURCES["benchmarks"](""), *result_files("asbert")],
    "costs": lambda _: files(
        *PLANNED, "experiments/*.yml", "aslab/hours.py", "aslab/analysis/costs.py", "results/**/*.json"
    ),
    "modules": module_files,
    "overlap": lambda paper: [*result_files(paper), *measured.files("overlap")],
    "rankers": lambda _: files("experiments/rankers.yml", "results/rankers/*.json"),
    "repeats": lambda _: [*result_files(""), *files("results/repeats/**/*.json")],
    "results": result_files,
    "runs": run_files,
    "slots": lambda _: files("results/joint_inference/slot_cosines.json"),
    "sources": lambda _: [*module_files(), *files("book/_ext/**/*.py")],
    "trust": lambda _: [*files("book/_ext/trust.yml", "results/trust/*.json"), *module_files()],
} | {name: lambda _, name=name: measured.files(name) for name in ("blind", "calibration", "first_stage", "mined")}


def outdated(app, env, added, changed, removed):
    """Pages whose list of files has changed since they were read; Sphinx itself watches the files' contents."""
    shown = {name: files for name, files in getattr(env, "as2_shown", {}).items() if name in env.found_docs}
    changed = lambda of_page: any(SOURCES[kind](argument) != files for (kind, argument), files in of_page.items())
    return [name for name, of_page in shown.items() if changed(of_page)]


def rewritten(app, env):
    """All pages if a page was added or removed: every sidebar lists them."""
    before, env.as2_pages = getattr(env, "as2_pages", env.found_docs), set(env.found_docs)
    return sorted(env.found_docs) if before != env.found_docs else []


def forget(app, env, docname):
    getattr(env, "as2_shown", {}).pop(docname, None)


class Page(NamedTuple):
    """The page on which a directive stands."""

    name: str

    @property
    def up(self) -> str:
        """The way to the top of the book, as `../`."""
        return "../" * self.name.count("/")

    @property
    def links(self) -> dict[str, str]:
        """Name of a run with an executed notebook, committed or on this machine -> address of its page, from this page."""
        shown = executed()
        committed = {one.repeated.name: one.path.stem for one in shown if one.repeated} | {
            one.path.stem: one.path.stem for one in shown
        }
        here = (path.parent.name for path in run_files() if (path.parent / "notebook.ipynb").is_file())
        return {name: f"{self.up}gallery/{stem}.html" for name, stem in committed.items()} | {
            name: f"{self.up}runs/{name}.html" for name in here
        }


class Show(SphinxDirective):
    """What a function of the registry returns for the arguments.

    HTML that follows from records is marked with the name and the arguments, so that a test can compute its numbers again.
    """

    required_arguments = 1
    optional_arguments = 99

    def run(self):
        name, *arguments = self.arguments
        try:
            papers.one_of(name, REGISTRY, "as2-show", "name")
            entry = REGISTRY[name]
            page = {"page": Page(self.env.docname)} if entry.on_page else {}
            bind(entry.function, *arguments, **page)
            watch(self.env, entry.sources, arguments[0] if arguments else "")
            depend(self.env, files(*entry.files))
            html = entry.function(*arguments, **page) or note(entry.empty)
        except ValueError as error:
            raise self.error(str(error)) from error
        mark = escape(" ".join(self.arguments))
        return [nodes.raw("", f'<div data-as2="{mark}">{html}</div>' if entry.sources else html, format="html")]


def bind(function, *arguments: str, **page: Page) -> None:
    """Raises: ValueError for arguments that a function does not take; a TypeError inside it is a fault of ours, not of the page."""
    try:
        inspect.signature(function).bind(*arguments, **page)
    except TypeError as error:
        raise ValueError(str(error)) from error


def depend(env, paths) -> None:
    """The page that is read is built again where one of these files changes."""
    for path in paths:
        env.note_dependency(str(path))


def watch(env, kind: str, argument: str = "") -> None:
    """The page that is read is built again where a file of one kind changes, is added or removed."""
    env.as2_shown = getattr(env, "as2_shown", {})
    of_page = env.as2_shown.setdefault(env.docname, {})
    if (kind, argument) not in of_page:
        of_page[kind, argument] = SOURCES[kind](argument)
        depend(env, of_page[kind, argument])


class Figure(SphinxRole):
    """A figure of our records in the text of a page, or words on a difference; the build fails where the records say something else."""

    def run(self):
        folder, _, paper = self.env.docname.partition("/")
        paper = paper.partition("/")[0] if folder == "papers" else ""
        try:
            quote = quotes.quoted(self.text, paper)
        except ValueError as error:
            raise ValueError(f"{self.env.docname}, line {self.lineno}: {error}") from error
        watch(self.env, "results", quote.expression.partition(" ")[0])
        return [nodes.raw("", render("quote.html", **quote._asdict()), format="html")], []
