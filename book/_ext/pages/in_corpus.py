"""What the questions about articles that pre-training has read add to the gains, from the record of `asutil overlap`."""

from aslab import measured, papers
from aslab.analysis import overlap
from aslab.show import markup
from aslab.show.markup import NAMES
from pages import numbers, register, table


@register("in-corpus", "overlap", "Questions about articles of the corpus: asutil overlap finds them.")
def in_corpus_table(paper: str) -> str:
    """Each claimed gain with and without the questions about such articles, and how many these are; "" without a record."""
    record = measured.read("overlap")
    pairs = overlap.splits(paper, record) if record else []
    if not pairs:
        return ""
    rows, body = papers.read(paper)["rows"], []
    for pair in pairs:
        about = record["datasets"][pair.dataset.partition(papers.TRANSFER)[0]]
        compared = f"{rows[pair.row]['name']} − {rows[pair.other]['name']}"
        counts = f"{len(about['in_corpus'])} of {about['questions']:,}"
        cells = numbers(markup.points(pair.every), counts, markup.points(pair.without))
        body.append(markup.line([compared, NAMES.get(pair.dataset, pair.dataset), *cells]))
    heads = ["Row A − row B", "Data set", "All test questions [95 %]", "Article read", "Without these [95 %]"]
    title = (
        "Differences in MAP on test questions, points; the interval is over questions and seeds. Article read: the questions "
        "about an article that is in the corpus of pre-training. Measured by asutil overlap local/wikipedia_large."
    )
    return table(title, heads, body)
