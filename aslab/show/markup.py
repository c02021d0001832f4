"""Tables as HTML: every text is escaped on its way in, and what is markup already says so by its type.

Classes for a style sheet: tables `as2-table`; cells `as2-number`, in bold `as2-best`; marks of tests `as2-mark`; verdicts `as2-verdict`
with one of `as2-matches`, `as2-close`, `as2-differs`, `as2-reduced`, `as2-private`, `as2-not-run`, `as2-not-published`, and for
claims `as2-supported`, `as2-suggestive`, `as2-inconclusive`, `as2-no-effect-beyond-1-point`, `as2-reversed`; for both
`as2-not-testable-here` and `as2-not-run`. The lines
of results are `as2-from-paper`, `as2-from-baseline`.
"""

from collections.abc import Iterable
from html import escape

import numpy as np

from asutil.data.data_sets import TITLES
from asutil.metrics import registry

# fmt: off
NAMES = registry.titles() | TITLES | {
    "wikiqa_dev": "WikiQA, dev", "trecqa_dev": "TREC-QA, dev", "wqa": "WQA", "iqad_bench_1": "IQAD, bench 1",
    "iqad_bench_2": "IQAD, bench 2", "fever_dev": "FEVER, dev", "fever_test": "FEVER, test",
    "pretraining": "Own pre-training task, validation documents", "random": "random order",
    "document_order": "document order", "bm25": "BM25", "zero_shot": "zero-shot cosine", "all_sentences": "all sentences",
    "wikiqa_from_nq_sentences": "WikiQA, trained on NQ sentences", "trecqa_from_nq_sentences": "TREC-QA, trained on NQ sentences",
    "selqa_from_nq_sentences": "SelQA, trained on NQ sentences",
    "majority": "most frequent label", "most_frequent_answer": "most frequent answer",
}
# fmt: on
LEGEND = (
    "† better than the baseline row over seeds, ‡ over questions, both at 95 %; ↓ worse. Underlined: better over seeds."
)
BEST = "Bold: the best of our rows at one budget, and those not significantly worse over questions (95 %, unadjusted)."


class Html(str):
    """Text that is markup already; every other text is escaped on its way into a table."""

    def __html__(self) -> str:
        """Templates of jinja2 ask for this."""
        return self


def table(caption: str, heads, rows: Iterable[Html], kind: str = "as2-table") -> Html:
    """A table with a line of column names and a caption, each where there is one. Args: rows: of `line`."""
    above = f"<caption>{_text(caption)}</caption>\n" if caption else ""
    head = "".join(cell(text, "th", scope="col") for text in heads)
    head = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    body = "\n".join(rows) or line([cell("nothing to show yet", colspan=str(len(heads)))])
    return Html(f'<table class="{kind}">\n{above}{head}<tbody>\n{body}\n</tbody>\n</table>')


def tabs(name: str, panels: list[tuple[str, str]]) -> str:
    """(label, HTML) as tabs of sphinx-design, the first open; without tabs where there is only one. `name` is that of the set."""
    if len(panels) < 2:
        return "".join(html for _, html in panels)
    made = ""
    for number, (label, html) in enumerate(panels):
        own, checked = f"{name}-{number}", " checked" * (number == 0)
        made += f'<input{checked} type="radio" id="{escape(own)}" name="{escape(name)}">'
        made += f'<label class="sd-tab-label" for="{escape(own)}">{escape(label)}</label>'
        made += f'<div class="sd-tab-content">{html}</div>'
    return f'<div class="sd-tab-set">{made}</div>'


def line(cells, kind: str = "") -> Html:
    """One line of cells; a text becomes a cell."""
    made = "".join(one if isinstance(one, Html) and one.startswith(("<td", "<th")) else cell(one) for one in cells)
    return Html(f'<tr class="{kind}">{made}</tr>' if kind else f"<tr>{made}</tr>")


def cell(content, tag: str = "td", **attributes: str) -> Html:
    """One cell; `kind` is its class."""
    shown = "".join(f' {"class" if name == "kind" else name}="{escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{shown}>{_text(content)}</{tag}>")


def _text(content) -> str:
    return content if isinstance(content, Html) else escape(str(content))


def number(text: str) -> Html:
    """A cell with a figure."""
    return cell(text, kind="as2-number")


def spread(values: list[float]) -> Html:
    """The cell of `spread_text`."""
    return number(spread_text(values))


def spread_text(values: list[float]) -> str:
    """The mean in points of values from 0 to 1, with the standard deviation where there are several: `62.4 ± 1.3`; – without any."""
    points = 100 * np.asarray(values)
    deviation = f" ± {points.std(ddof=1):.1f}" if len(points) > 1 else ""
    return f"{points.mean():.1f}{deviation}" if len(points) else "–"


def best(figure: Html) -> Html:
    """The cell of a figure, in bold."""
    return Html(figure.replace('class="as2-number"', 'class="as2-number as2-best"', 1))


def word(text: str) -> Html:
    """A verdict."""
    kind = text.removesuffix(" budget").removesuffix(" data").replace(" ", "-")
    return Html(f'<span class="as2-verdict as2-{kind}">{escape(text)}</span>')


def said(text: str, reason: str = "") -> Html:
    """A verdict, and below it its reason."""
    return Html(word(text) + (f"<small>{escape(reason)}</small>" if reason else ""))


def marked(text: str, against: str, seeds=None, questions=None, below: str = "") -> Html:
    """A figure's cell with the marks and p-values of two tests against another row: † over seeds, ‡ over questions, ↓ for worse.

    What is better over seeds is underlined, as in the papers.

    Args:
        against: the other row's name. seeds, questions: Comparisons; None where a test was not possible. below: words
            under the figure.
    """
    shown = f"<u>{escape(text)}</u>" if seeds is not None and seeds.sign > 0 else escape(text)
    for symbol, over, pair in (("†", "seeds, Student's t", seeds), ("‡", "questions, paired bootstrap", questions)):
        if pair is not None and pair.sign:
            said = f"{'better' if pair.sign > 0 else 'worse'} than {against} over {over}"
            mark, told = symbol if pair.sign > 0 else f"{symbol}↓", probability(pair.p_value)
            mark += "" if told in below else f" {told}"
            shown += f'<abbr class="as2-mark" title="{escape(said)}">{escape(mark)}</abbr>'
    return number(Html(f"{shown}<small>{escape(below)}</small>" if below else shown))


def probability(p_value: float) -> str:
    """`p = 0.007`, or `p < 0.001`."""
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def gain(pair) -> str:
    """The difference of a Comparison of values from 0 to 1 in points: `+4.6`; – for None."""
    return f"{100 * pair.difference:+.1f}" if pair else "–"


def points(pair) -> str:
    """A Comparison of values from 0 to 1: `+4.6 [+1.6, +7.6]` in points."""
    ends = (100 * value for value in (pair.difference, *pair.interval)) if pair else ()
    return "{:+z.1f} [{:+z.1f}, {:+z.1f}]".format(*ends) if pair else "–"
