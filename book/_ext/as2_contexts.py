"""Directives of contextual inputs: the three kinds of context drawn on a real document, and how much two of them have in common."""

from html import escape

import numpy as np
from as2_pages import ROOT, Shown, boxed, note
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from aslab import records
from asutil.corpus import cleaning, docstrings
from asutil.sampling import objectives

KINDS = {
    "sdc": "the first paragraph of the document",
    "dpc": "what is left of b's paragraph",
    "dslc": "the sentences next to b",
}


class Contexts(SphinxDirective):
    """One docstring of an installed package, three times: the same a and b, and the c that each rule of the package takes."""

    required_arguments = 2

    def run(self):
        self.env.note_dependency(str(ROOT / "asutil" / "sampling" / "objectives.py"))
        name = ".".join(self.arguments)
        try:
            html = figure(name, sentences_of(*self.arguments))
        except ValueError as error:
            return note(f"{name} of the installed packages gives no such figure: {error}")
        return [nodes.raw("", html, format="html")]


def sentences_of(module: str, qualname: str) -> list[list[str]]:
    """The paragraphs of one docstring as lists of sentences, cleaned as the corpus does."""
    found = [
        one.text
        for one in docstrings.read_docstrings((module.split(".")[0],))
        if (one.module, one.qualname) == (module, qualname)
    ]
    if not found:
        raise ValueError("it has no docstring")
    split = cleaning.splitter_function("blingfire")
    return [split(paragraph) for paragraph in cleaning.clean(docstrings.prose(found[0]))]


def figure(name: str, paragraphs: list[list[str]]) -> str:
    """Three panels in which each sentence of a, b and c carries its letter; a letter, a line and a colour say the same."""
    home = next((i for i, sentences in enumerate(paragraphs) if i and len(sentences) >= 5), None)
    if home is None:
        raise ValueError("no paragraph after the first has five sentences")
    panels = "".join(panel(kind, said, paragraphs, home) for kind, said in KINDS.items())
    caption = (
        f"The documentation of {name}, three times. a and b are of one paragraph, a positive example; only the context c differs. "
        "Sentences without a letter are not shown to the model."
    )
    return (
        f'<figure class="as2-figure" role="group" aria-label="{escape(caption)}"><div class="as2-contexts">{panels}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def panel(kind: str, said: str, paragraphs: list[list[str]], home: int) -> str:
    starts = np.cumsum([0, *map(len, paragraphs)])
    at = int(starts[home])
    a, b = (objectives.one(np.array([first]), np.array([first + 1]), 3) for first in (at, at + 3))
    of = 0 if kind == "sdc" else home
    context = objectives.RULES[kind].context(starts[of : of + 1], np.array([len(paragraphs[of])]), a, b)
    role = {
        n: letter
        for letter, part in (("a", a), ("b", b), ("c", context))
        for start, stop in part[0]
        for n in range(start, stop)
    }
    body = "".join(
        f"<p>{' '.join(marked(sentence, role.get(int(starts[i]) + j)) for j, sentence in enumerate(sentences))}</p>"
        for i, sentences in enumerate(paragraphs)
    )
    return f'<div class="as2-context"><p class="as2-kind"><strong>{kind.upper()}</strong> c: {escape(said)}</p>{body}</div>'


def marked(sentence: str, letter: str | None) -> str:
    text = escape(sentence)
    return f'<span class="as2-part-{letter}"><b>{letter}</b>&nbsp;{text}</span>' if letter else f"<span>{text}</span>"


class Overlap(Shown):
    """How often the contexts of DPC and DSLC are the same, from the records of the paper's pre-training runs."""

    def show(self, paper):
        return overlap_table(records.records(paper)) or note(
            "The two contexts: not run, no pre-training of this paper has measured them."
        )


def overlap_table(found) -> str:
    """One line a corpus, splitter and budget of `experiments.records`; empty where none has the figures."""
    lines = {}
    for one in found.itertuples():
        if measured := one.record.get("figures", {}).get("context_overlap"):
            where = one.budget + (f", {records.HERE}" if one.source == records.HERE else "")
            lines[str(one.record["settings"].get("corpus")), str(one.record["settings"].get("splitter")), where] = (
                measured
            )
    body = "".join(line(*where, measured) for where, measured in sorted(lines.items()))
    heads = (
        "Corpus",
        "Splitter",
        "Budget",
        "Examples",
        "Sentences a paragraph",
        "Same context",
        "Share of DPC's that DSLC's has",
    )
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    caption = "<caption>The two contexts for the same a and b.</caption>"
    return body and boxed(
        f'<table class="as2-table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def line(corpus: str, splitter: str, where: str, measured: dict) -> str:
    words = "".join(f"<td>{escape(text)}</td>" for text in (splitter, where))
    shares = [f"{measured[name]:.1%}" for name in ("identical", "overlap")]
    figures = [f"{measured['examples']:,}", f"{measured['paragraph_sentences']:.1f}", *shares]
    numbers = "".join(f'<td class="as2-number">{text}</td>' for text in figures)
    return f'<tr><th scope="row">{escape(corpus)}</th>{words}{numbers}</tr>'


DIRECTIVES = {"contexts": Contexts, "overlap": Overlap}
