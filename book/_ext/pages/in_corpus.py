"""What the questions about articles that pre-training has read add to the gains, from the record of `asutil overlap`."""

from aslab import measured, papers
from aslab.analysis import overlap
from aslab.show import markup
from pages import numbers, register, table


@register("in-corpus", "overlap", "Questions about articles of the corpus: asutil overlap finds them.")
def in_corpus_table(paper: str) -> str:
    """How many questions are about such articles, and each claimed gain with and without them; "" without a record."""
    record = measured.read("overlap")
    pairs = overlap.splits(paper, record) if record else []
    if not pairs:
        return ""
    counts = [(len(of["in_corpus"]), of["questions"]) for of in (record["splits"][name] for name in ("test", "dev"))]
    (test, tests), (dev, devs) = counts
    said = (
        f"{test} of the {tests} test questions of WikiQA, and {dev} of the {devs} of dev, are about an article that is in the "
        "corpus of pre-training."
    )
    rows = papers.read(paper)["rows"]
    body = []
    for pair in pairs:
        compared = f"{rows[pair.row]['name']} − {rows[pair.other]['name']}"
        body.append(markup.line([compared, *numbers(markup.points(pair.every), markup.points(pair.without))]))
    heads = ["Row A − row B", "All test questions [95 %]", "Without these [95 %]"]
    title = (
        "Differences in MAP on test questions, points; the interval is over questions and seeds. "
        "Measured by asutil overlap local/wikipedia_large."
    )
    return f"<p>{said}</p>{table(title, heads, body)}"
