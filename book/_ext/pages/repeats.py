"""Runs that were made twice with equal settings, as a table: how often a test calls the two runs different."""

from html import escape

from aslab import papers, records
from aslab.analysis import equal_runs
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from pages import numbers, register, row, table

HEADS = ["Row", "Data set", "Questions", "Seeds", "Later", "Before", "Difference [95 %]", "p", "p, questions alone"]
TITLE = (
    "Two runs of one row with equal settings, points. Difference and p: one test over questions and seeds; the last "
    "column is a bootstrap over questions alone."
)


@register("repeats", "repeats", "No run was made twice with equal settings.")
def repeats_table() -> str:
    """Every pair of equal runs of all papers, with a sentence of counts above; "" where there is none.

    A test counts as significant where its 95 % interval leaves out zero.
    """
    body, signs = [], []
    for paper in papers.PAPERS:
        for pair in equal_runs.pairs(paper):
            compared = [equal_runs.compare(pair, metric) for metric in pair.metrics]
            signs += [(both is not None and both.sign != 0, alone.sign != 0) for both, alone in compared]
            body.append(_line(pair, *compared[0]))
    if not body:
        return ""
    both, alone = (sum(column) for column in zip(*signs))
    words = (
        f"{len(body)} pairs of equal runs give {len(signs)} tests: of MAP and P@1, or of the F1 of evidence and of answers. At "
        f"level .05 the test over questions and seeds is significant in {both} of {len(signs)}, the bootstrap over questions "
        f"alone in {alone} of {len(signs)}."
    )
    return f"<p>{words}</p>{table(TITLE, HEADS, body)}"


def _line(pair: equal_runs.Pair, both, alone) -> str:
    title, metric = papers.read(pair.paper)["rows"][pair.row]["name"], pair.metrics[0]
    means = [records.values(lines, metric) for lines in (pair.later, pair.before)]
    questions = len(records.per_question(next(pair.later.itertuples())))
    figures = [f"{100 * sum(values) / len(values):.1f}" for values in means]
    p_values = [markup.probability(test.p_value) if test else "–" for test in (both, alone)]
    return row(
        Html(f"{escape(title)}<small>{pair.paper}</small>"),
        f"{NAMES.get(pair.dataset, pair.dataset)}, {NAMES[metric]}",
        markup.number(str(questions)),
        ", ".join(map(str, pair.seeds)),
        *numbers(*figures, markup.points(both or alone), *p_values),
    )
