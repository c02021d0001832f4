"""Directives that print what readers cite: the entry of a reference, and that of this book."""

import os
import re

import yaml
from as2_pages import BOOK, ROOT
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

REFERENCES = BOOK / "references.bib"
CITATION = ROOT / "CITATION.cff"
PDF = "book/_build/html/as2.pdf"


def entry(key: str) -> str:
    """The BibTeX entry of a reference, as `references.bib` has it. Raises: ValueError where there is none."""
    entries = dict(
        re.findall(r"^(?=@\w+\{([^,\s]+),$)(.*?^\}$)", REFERENCES.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
    if key not in entries:
        raise ValueError(f"references.bib has no {key} (there are: {', '.join(entries)})")
    return entries[key]


def title(text: str) -> str:
    """The title in an entry, without braces and line breaks."""
    within = re.search(r"^  title = \{(.*?)\},$", text, re.MULTILINE | re.DOTALL)[1]
    return re.sub(r"[{}]", "", " ".join(within.split()))


def entry_of_this_book(citation: dict, year: str, site: str) -> str:
    """The BibTeX entry of this book, from its CITATION.cff."""
    fields = {
        "title": citation["title"],
        "author": " and ".join(f"{{{author['name']}}}" for author in citation["authors"]),
        "version": citation["version"],
        "year": year,
    }
    if site:
        fields["url"] = site
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    name, _, _ = citation["title"].partition(":")
    return "\n".join([f"@software{{{name},", *lines, "}"])


def block(text: str) -> str:
    return f"```bibtex\n{text}\n```"


class Bibtex(SphinxDirective):
    """The BibTeX entry of a reference, folded away."""

    required_arguments = 1

    def run(self):
        self.env.note_dependency(str(REFERENCES))
        try:
            text = entry(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        return self.parse_text_to_nodes(f"````{{dropdown}} BibTeX: {title(text)}\n{block(text)}\n````")


class CiteBook(SphinxDirective):
    """How to cite this book."""

    def run(self):
        self.env.note_dependency(str(CITATION))
        citation = yaml.safe_load(CITATION.read_text("utf-8"))
        year = self.config.copyright
        authors = ", ".join(author["name"] for author in citation["authors"])
        said = f"{authors} ({year}). *{citation['title']}*. Version {citation['version']}."
        text = entry_of_this_book(citation, year, os.environ.get("AS2_SITE", ""))
        return self.parse_text_to_nodes(f"{said}\n\n{block(text)}")


class Pdf(SphinxDirective):
    """Where the whole book is as one PDF: next to the pages of a published site, made by hand elsewhere."""

    def run(self):
        if os.environ.get("AS2_SITE"):
            link = nodes.reference("", "one PDF", refuri="as2.pdf")
            return [nodes.paragraph("", "", nodes.Text("The whole book is also "), link, nodes.Text("."))]
        return self.parse_text_to_nodes(f"`make pdf` prints the whole book as one file, `{PDF}`.")


DIRECTIVES = {"pdf": Pdf, "bibtex": Bibtex, "cite-book": CiteBook}
