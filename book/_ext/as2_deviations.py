"""The page of deviations: how much each one matters, to which papers, and a table of them for each paper."""

import re
from html import escape
from typing import NamedTuple

from as2_pages import BOOK, ROOT, depend
from docutils import nodes
from pages import register, row, table
from sphinx.util.docutils import SphinxRole

from aslab import papers, rules
from aslab.show.markup import Html

PAGE = BOOK / "deviations.md"
SEVERITIES = {  # the most important first
    "result": "can change a result",
    "settings": "changes settings, hardly a result",
    "report": "changes what is shown, no score",
    "words": "wording or misprint",
}
RATED = r"\{as2-severity\}`([^`]*)`"
ENTRY = re.compile(rf"^\((D-\d+)\)=\n\*\*\1 · (?P<title>.*)\.\*\*\n{RATED}$", re.MULTILINE)
ROW = re.compile(
    rf"^\| \[(D-\d+)\]\{{#\1\}} \| {RATED} \| (?P<place>.*) \| (?P<words>.*) \| (?P<table>.*) \|$", re.MULTILINE
)


class Rating(NamedTuple):
    severity: str
    papers: list[str]


class Deviation(NamedTuple):
    number: str
    title: str
    rating: Rating


def rating(text: str) -> Rating:
    """`result: asbert, joint_inference` -> its severity and papers. Raises: ValueError for an unknown one."""
    severity, _, names = text.partition(": ")
    slugs = names.split(", ")
    unknown = [slug for slug in slugs if slug not in papers.PAPERS]
    if severity not in SEVERITIES or unknown or len(set(slugs)) < len(slugs):
        expected = f"one of {', '.join(SEVERITIES)}, a colon, and papers out of {', '.join(papers.PAPERS)}"
        raise ValueError(f"a severity is expected as {expected}; got {text!r}")
    return Rating(severity, slugs)


def deviations(text: str) -> list[Deviation]:
    """The entries of the page and the rows of its last table, by number."""
    found = [Deviation(match[1], match["title"], rating(match[3])) for match in ENTRY.finditer(text)]
    for match in ROW.finditer(text):
        title = f"{match['place']}: by the words {match['words']}; by the table {match['table']}"
        found.append(Deviation(match[1], title, rating(match[2])))
    return sorted(found, key=lambda one: int(one.number.removeprefix("D-")))


def severity(name: str) -> Html:
    return Html(f'<span class="as2-severity as2-severity-{name}">{SEVERITIES[name]}</span>')


def plain(text: str) -> Html:
    """A title without the signs of its markup."""
    return Html(re.sub(r"[*$`]", "", escape(text)))


class Severity(SphinxRole):
    """How much a deviation matters, and the papers that it is about, with links to their pages."""

    def run(self):
        try:
            rated = rating(self.text)
        except ValueError as error:
            return [], [self.inliner.reporter.error(f"as2-severity: {error}", line=self.lineno)]
        links = ", ".join(f'<a href="papers/{slug}.html">{slug}</a>' for slug in rated.papers)
        return [nodes.raw("", f"{severity(rated.severity)} <small>{links}</small>", format="html")], []


def accepted(text: str) -> Html:
    """`finetune.patience: asbert, joint_inference` -> the values of that setting that count as each paper's own.

    Raises: ValueError for a setting of which a paper's `settings:` allow one value, or which they do not name.
    """
    setting, _, names = text.partition(": ")
    values = {}
    for slug in names.split(", "):
        several = rules.several(papers.read(slug)) if slug in papers.PAPERS else {}
        if setting not in several:
            raise ValueError(f"a setting with several values and papers that have it are expected; got {text!r}")
        values.setdefault(", ".join(several[setting]), []).append(slug)
    notebook, _, name = setting.partition(".")
    told = "; ".join(f"{escape(words)} ({', '.join(slugs)})" for words, slugs in values.items())
    return Html(f"<small>Accepted as the paper's own, <code>{name}</code> of {notebook}: {told}.</small>")


class Accepted(SphinxRole):
    """The values of a setting that count as the paper's own, where there are several."""

    def run(self):
        slugs = self.text.partition(": ")[2].split(", ")
        depend(self.env, (ROOT / "experiments" / f"{slug}.yml" for slug in slugs))
        try:
            return [nodes.raw("", accepted(self.text), format="html")], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(f"as2-accepted: {error}", line=self.lineno)]


@register("deviations", "", files=["book/deviations.md"])
def deviations_of(slug: str) -> str:
    """The deviations of a paper, the most important first, each with a link to its entry."""
    papers.one_of(slug, papers.PAPERS, "as2-show deviations", "paper")
    order = list(SEVERITIES)
    known = [one for one in deviations(PAGE.read_text("utf-8")) if slug in one.rating.papers]
    body = []
    for one in sorted(known, key=lambda one: order.index(one.rating.severity)):
        link = Html(f'<a href="#{one.number.lower()}">{one.number}</a>')
        body.append(row(link, plain(one.title), severity(one.rating.severity)))
    counts = [f"{sum(one.rating.severity == name for one in known)} {words}" for name, words in SEVERITIES.items()]
    title = f"{len(known)} deviations: {', '.join(counts)}."
    return f'<div class="as2-deviations">{table(title, ["", "Deviation", "Severity"], body)}</div>'
