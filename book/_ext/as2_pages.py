"""The base of the book's directives: what a page shows, and the files that it depends on."""

import os
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

BOOK = Path(__file__).resolve().parents[1]
ROOT = BOOK.parent
os.environ["ASUTIL_PROJECT"] = str(ROOT)  # the book shows the project that contains it

from pages import report  # noqa: E402

from aslab import papers, runs  # noqa: E402


def card_files(_: str) -> list[Path]:
    return sorted(path for path in (ROOT / "data_cards").glob("*.md") if path.stem != "TEMPLATE")


def module_files(_: str) -> list[Path]:
    return sorted(path for package in ("asutil", "aslab") for path in (ROOT / package).rglob("*.py"))


def run_files(_: str) -> list[Path]:
    return [path for folder in runs.folders(ROOT / "runs") if (path := folder / "record.json").is_file()]


def result_files(paper: str) -> list[Path]:
    notebooks = sorted((ROOT / "results" / "notebooks").glob("*.ipynb"))
    return [*notebooks, *(path for name in ([paper] if paper else papers.papers()) for path in report.sources(name))]


def all_result_files(_: str) -> list[Path]:
    return result_files("")


SOURCES = {
    "all results": all_result_files,
    "cards": card_files,
    "modules": module_files,
    "runs": run_files,
    "results": result_files,
}


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


class Shown(SphinxDirective):
    """A directive whose HTML is a function of the files of one kind, for all papers or for the one in its first
    argument.

    The HTML is marked with the directive and its arguments, so that a test can compute its numbers again.
    """

    kind = "results"
    required_arguments = 1
    recorded = False  # whether nodes that `show` returns follow from a record, and are marked as HTML is

    def run(self):
        argument = self.arguments[0] if self.arguments else ""
        files = SOURCES[self.kind](argument)
        for path in files:
            self.env.note_dependency(str(path))
        if not hasattr(self.env, "as2_shown"):
            self.env.as2_shown = {}
        self.env.as2_shown.setdefault(self.env.docname, {})[self.kind, argument] = files
        try:
            shown = self.show(*self.arguments)
        except ValueError as error:
            raise self.error(str(error)) from error
        if isinstance(shown, list) and not self.recorded:
            return shown
        directive = escape(" ".join([self.name.removeprefix("as2-"), *self.arguments]))
        opened = f'<div data-as2="{directive}">'
        if isinstance(shown, list):
            return [nodes.raw("", opened, format="html"), *shown, nodes.raw("", "</div>", format="html")]
        return [nodes.raw("", f"{opened}{shown}</div>", format="html")]

    @property
    def links(self) -> dict[str, str]:
        """Name of a finished run -> address of its page, from this page."""
        up = "../" * self.env.docname.count("/")
        return {
            path.parent.name: f"{up}runs/{path.parent.name}.html"
            for path in run_files("")
            if (path.parent / "notebook.ipynb").is_file()
        }


def boxed(html: str) -> str:
    """Tables in boxes of their own: on a narrow screen the box scrolls, not the page."""
    return html.replace("<table", '<div class="as2-box" tabindex="0"><table').replace("</table>", "</table></div>")


def note(text: str) -> list:
    """A line in place of what cannot be shown yet."""
    return [nodes.paragraph("", text, classes=["as2-note"])]
