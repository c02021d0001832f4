"""Contextual inputs: the three kinds of context drawn on a real document, and how often two of them are the same."""

import numpy as np
import pages
from as2_joint import ROBERTA_BASE, backbone_size
from pages import note, numbers, register, render, row, table

from aslab import papers, records
from asutil.corpus import cleaning
from asutil.pydocs import documents as docstrings
from asutil.sampling.formulas import span
from asutil.sampling.objectives import OBJECTIVES

ELECTRA_BASE = {"vocabulary": 30522, "positions": 512, "types": 2, "hidden": 768, "inner": 3072, "layers": 12}
ELECTRA_GENERATOR = ELECTRA_BASE | {"hidden": 256, "inner": 1024, "embedding": 768}
KINDS = {
    "sdc": "the first paragraph of the document",
    "dpc": "what is left of b's paragraph",
    "dslc": "the sentences next to b",
}
RULES = [f"asutil/sampling/objectives/{kind}.py" for kind in ("contextual", *KINDS)]
NO_OVERLAP = "The two contexts: not run, no pre-training of this paper has measured them."


@register("contexts", "", files=["asutil/sampling/formulas.py", *RULES])
def contexts(module: str, qualname: str) -> str:
    """One docstring of an installed package, three times: the same a and b, and the context c of each objective."""
    name = f"{module}.{qualname}"
    try:
        return figure(name, sentences_of(module, qualname))
    except ValueError as error:
        return note(f"{name} of the installed packages gives no such figure: {error}")


def sentences_of(module: str, qualname: str) -> list[list[str]]:
    """The paragraphs of one docstring as lists of sentences, cleaned as the corpus does."""
    package, _, _ = module.partition(".")
    known = docstrings.read_docstrings((package,))
    entry = next((entry for entry in known if (entry.module, entry.qualname) == (module, qualname)), None)
    if entry is None:
        raise ValueError("it has no docstring")
    sentences = cleaning.splitter_function("blingfire")
    return [sentences(paragraph) for paragraph in cleaning.clean(docstrings.prose(entry.text))]


def figure(name: str, paragraphs: list[list[str]]) -> str:
    """Three panels where each sentence of a, b and c carries its letter; letter, line and colour say the same."""
    home = next((i for i, sentences in enumerate(paragraphs) if i and len(sentences) >= 5), None)
    if home is None:
        raise ValueError("no paragraph after the first has five sentences")
    panels = [(kind.upper(), words, panel(kind, paragraphs, home)) for kind, words in KINDS.items()]
    caption = (
        f"The documentation of {name}, three times. a and b come from one paragraph, a positive example; only the context c differs. "
        "Sentences without a letter are not shown to the model."
    )
    return pages.figure(render("contexts.html", panels=panels), caption)


def panel(kind: str, paragraphs: list[list[str]], home: int) -> list[list[tuple[str, str | None]]]:
    """Each sentence with its letter: of paragraph `home` the first is a, the fourth b; c is an objective's context."""
    starts = np.cumsum([0, *map(len, paragraphs)])
    first = int(starts[home])
    a, b = (span(np.array([number]), np.array([number + 1]), 3) for number in (first, first + 3))
    of = 0 if kind == "sdc" else home
    context = OBJECTIVES[kind].context(starts[of : of + 1], np.array([len(paragraphs[of])]), a, b)
    letters = {}
    for letter, part in (("a", a), ("b", b), ("c", context)):
        (ranges,) = part
        letters |= {number: letter for start, stop in ranges for number in range(start, stop)}
    return [
        [(sentence, letters.get(number)) for number, sentence in enumerate(sentences, int(start))]
        for start, sentences in zip(starts, paragraphs)
    ]


@register("context-overlap", empty=NO_OVERLAP, of_paper=True)
def overlap_table(data: dict, runs) -> str:
    """How often the contexts of DPC and DSLC are the same, a line a corpus, splitter and budget; "" where no run has the figures."""
    lines = {}
    for run in runs.itertuples():
        if measured := run.record.get("figures", {}).get("context_overlap"):
            settings = run.record["settings"]
            budget = records.origin(run.budget, run.source)
            lines[str(settings.get("corpus")), str(settings.get("splitter")), budget] = measured
    body = []
    for (corpus, splitter, budget), measured in sorted(lines.items()):
        shares = [f"{measured[name]:.1%}" for name in ("identical", "overlap")]
        figures = [f"{measured['examples']:,}", f"{measured['paragraph_sentences']:.1f}", *shares]
        body.append(row(corpus, splitter, budget, *numbers(*figures)))
    heads = ["Corpus", "Splitter", "Budget", "Examples", "Sentences a paragraph", "Same context"]
    heads.append("Share of DPC's that DSLC's has")
    return table("The two contexts for the same a and b.", heads, body) if body else ""


@register("context-parameters", "", files=["experiments/contextual_as2.yml"])
def parameters() -> str:
    """How many parameters the backbones have, and what a third part of an input adds, next to the paper's, rounded to millions."""
    printed = papers.read("contextual_as2")["parameters"]
    counted = [backbone_size(**ROBERTA_BASE), backbone_size(**ELECTRA_GENERATOR), backbone_size(**ELECTRA_BASE)]
    types = [
        (f"+ token types of three parts, {name}", f"{(3 - sizes['types']) * sizes['hidden']:,}", "–")
        for name, sizes in (("RoBERTa", ROBERTA_BASE), ("ELECTRA", ELECTRA_BASE))
    ]
    rows = [
        (name, f"{own:,}", f"{theirs // 10**6} M") for own, (name, theirs) in zip(counted, printed.items(), strict=True)
    ]
    body = [row(name, *numbers(ours, theirs)) for name, ours, theirs in (*rows, *types)]
    caption = "Parameters without pooler and heads; the generator with the embeddings that it shares. The paper's counts: appendix C."
    return table(caption, ["", "Counted here", "Paper"], body)
