"""What came out: each claim in a sentence, the headline claims as a table, and how many claims have which verdict.

Only committed records count here, so that a page says the same on every machine.
"""

from html import escape

import pandas as pd

from aslab import papers, records
from aslab.analysis import claims, comparisons
from aslab.analysis.claims import PYDOCS, Judged
from aslab.show import markup
from aslab.show.markup import Html
from pages import register, row, table
from pages.differences import stacked

KINDS = {False: "Public data sets, with small models", True: "pydocs, with a model of four layers"}


@register("findings", empty="No claim of this paper has been tested yet.", of_paper=True)
def findings_html(data: dict, runs: pd.DataFrame) -> str:
    """For each of the two kinds of questions: how many claims have which verdict, and a sentence a claim."""
    parts = []
    for on_pydocs, kind in KINDS.items():
        every = [one for one in claims.judged(data, runs) if (one.family == PYDOCS) == on_pydocs]
        known = [one for one in every if one.word != claims.NOT_RUN]
        if known:
            items = "".join(f"<li>{_sentence(data, one)}</li>" for one in known)
            parts.append(f"<p><strong>{kind}.</strong> {escape(claims.counted(every))}.</p>")
            parts.append(f'<ul class="as2-findings">{items}</ul>')
    return "".join(parts)


def _sentence(data: dict, one: Judged) -> Html:
    """A claim, what was compared, and the result; on pydocs the claim's own words, which name other data, are left out."""
    claim, where = one.outcome.claim, one.outcome.where
    words, rows = "", comparisons.rows_of_claim(data, claim)
    if one.family != PYDOCS or "stated" in claim:
        words = f"<q>{escape(claim['claim'])}</q> <small>{escape(comparisons.with_day(claim['where'], claim))}</small> "
    if where is None:
        return Html(f"{words}{escape(rows)}: {markup.said(one.word, one.outcome.reason)}")
    questions = f"{one.outcome.questions} questions of {one.sample}, " * bool(one.outcome.questions)
    settings = f"{where.seed_words}, budget {where.budget}, {models(where, claim)}"
    compared = f"{rows}, {questions}{settings}"
    notes = "; ".join(filter(None, [_result(one), *_notes(data, one)]))
    return Html(f"{words}{escape(compared)}: {markup.word(one.word)} {escape(notes)}.")


def _result(one: Judged) -> str:
    """Difference, interval and both p."""
    test = one.outcome.primary
    if test is None:
        return one.outcome.reason
    if one.adjusted is None:
        return f"{markup.points(test)}; {one.outcome.reason}"
    holm = markup.probability(one.adjusted).replace("p", "Holm", 1)
    return f"{markup.points(test)}, {markup.probability(test.p_value)}, {holm}"


def _notes(data: dict, one: Judged) -> list[str]:
    """What limits the result: the smallest visible effect, the printed difference, and a head that one side alone keeps."""
    notes = []
    if one.word == claims.INCONCLUSIVE:
        notes.append(f"80 % power from {100 * one.outcome.smallest:.1f} points on")
    if ratio := claims.effect_ratio(data, one):
        low, high = ratio.interval
        notes.append(f"{ratio.difference:.1f} [{low:.1f}, {high:.1f}] times the printed difference")
    if head := comparisons.kept_heads(one.outcome):
        notes.append(head)
    return notes


def models(where: comparisons.Pair, claim: dict) -> str:
    """The models that the runs of both rows began with; one name where they are the same."""
    each = [records.backbone(line) for row in ("row_a", "row_b") for line in where.of(claim[row]).itertuples()]
    return " and ".join(name.rsplit("/", 1)[-1] for name in dict.fromkeys(each))


# ------------------------------------------------------------------ all papers


@register("headline")
def headline_table() -> str:
    """The headline claims: what is claimed, the printed difference and ours, and the verdict."""
    body, last = [], None
    for data, one in claims.headline():
        if data["title"] != last:
            last = data["title"]
            link = Html(f'<a href="papers/{data["slug"]}.html">{escape(last)}</a>')
            body.append(markup.line([markup.cell(link, "th", scope="colgroup", colspan="4")]))
        claim = one.outcome.claim
        printed = markup.number(markup.gain(comparisons.printed_difference(data, claim)))
        rows = comparisons.with_day(comparisons.rows_of_claim(data, claim), claim)
        words = Html(f"{escape(claim['claim'])}<small>{escape(rows)}</small>")
        body.append(markup.line([words, printed, difference_cell(one), markup.said(one.word, one.outcome.reason)]))
    caption = (
        "The main claims. Differences in points with 95 % intervals over questions and training seeds: dev and "
        "test together where dev chose nothing. The verdict is after Holm's adjustment over the claim's family. "
        "A claim with a date is our hypothesis about a data set that the paper does not use."
    )
    return table(caption, ["Claim", "Printed", "Ours [95 %]", "Verdict"], body)


def difference_cell(one: Judged) -> Html:
    """The difference that decides with its interval, and how many questions and seeds are behind it."""
    test, where = one.outcome.primary, one.outcome.where
    if test is None:
        return markup.number("–")
    below = f"<small>{one.outcome.questions} questions, {where.seed_words}</small>"
    return markup.number(Html(f"{stacked(test)}{below}"))


@register("scorecard")
def scorecard() -> str:
    """All papers: how many headline claims have which verdict."""
    words = {}
    for data, one in claims.headline():
        words.setdefault(data["slug"], (data, []))[1].append(one.word)
    body = []
    for data, own in words.values():
        link = Html(f'<a href="papers/{data["slug"]}.html">{escape(data["slug"])}</a>')
        notebooks = {stage["notebook"] for content in data["rows"].values() for stage in content.get("stages", ())}
        kind = "pre-trains on text" if "pretrain" in notebooks else "changes how labels are learnt"
        counts = [f"{own.count(word)} {markup.word(word)}" for word in claims.VERDICTS if word in own]
        body.append(row(Html(f"{link}<small>{kind}</small>"), Html(", ".join(counts))))
    caption = "How many headline claims have which verdict, on public data sets."
    return table(caption, ["Paper", "Headline claims"], body)


@register("answer", empty="No claim has been tested yet.")
def answer() -> str:
    """What came out of the headline claims and of all claims, in words; "" where none was tested."""
    headline = [one for _, one in claims.headline()]
    every = {family: [] for family in KINDS}
    for paper in papers.PAPERS:
        data, runs = comparisons.rows_and_runs(paper)
        for one in claims.judged(data, runs):
            every[one.family == PYDOCS].append(one)
    if not any(one.adjusted is not None for kind in every.values() for one in kind):
        return ""
    words = (
        f"{claims.counted(headline).replace('claims', 'headline claims', 1)}. "
        f"In all, {claims.counted(every[False]).replace('claims', 'claims on public data sets', 1)}. "
        f"And {claims.counted(every[True]).replace('claims', 'claims on pydocs', 1)}."
    )
    return f"<p>{escape(words)}</p>"
