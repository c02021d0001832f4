"""Comparisons as tables: claims, the two tests of our runs, printed gains with their t tests, limits of test sets."""

from html import escape

import pandas as pd

from aslab import papers
from aslab.analysis import claims, comparisons, figure_claims, significance_tables, testable
from aslab.analysis.comparisons import Outcome, rows_of_claim
from aslab.records import HERE
from aslab.show import markup
from aslab.show.markup import LEGEND, NAMES, Html
from asutil.metrics.significance import Comparison
from pages import numbers, register, render, row, table


def claims_table(data: dict, runs: pd.DataFrame) -> str:
    """The paper's claims: row A minus row B, the printed difference and ours with its 95 % interval over questions and
    seeds, on the questions that decide and on test alone, and the verdict by the primary metric.

    Claims without runs are folded into one line.
    Deviation: D-116, D-117, D-118.
    """
    verdicts = {one.outcome.claim["id"]: one for one in claims.judged(data, runs) if one.family != claims.PYDOCS}
    on_papers_data = [claim for claim in papers.claims(data) if claim["id"] in verdicts]
    outcomes = [comparisons.outcome(data, runs, claim) for claim in on_papers_data]
    known = {name for name, one in verdicts.items() if one.word != claims.NOT_RUN}
    known |= {outcome.claim["id"] for outcome in outcomes if outcome.where}
    heads = ["Claim", "Row A − row B", "Printed", "Ours [95 %]", "On test alone", "Verdict"]
    title = (
        "Differences in points. Ours is over the questions of dev and test where dev chose nothing. The verdict is by MAP where a "
        "claim has it; its other metrics are shown and not counted."
    )
    lines_of = lambda some: [markup.line(_claim_cells(data, outcome, verdicts)) for outcome in some]
    with_runs, without = (
        [outcome for outcome in outcomes if (outcome.claim["id"] in known) == wanted] for wanted in (True, False)
    )
    html = table(title, heads, lines_of(with_runs)) if with_runs or not without else ""
    if without:
        number = len({outcome.claim["id"] for outcome in without})
        words = f"{number} of {len(verdicts)} claims without runs of ours"
        html += render("details.html", kind="as2-folded", summary=words, content=table(title, heads, lines_of(without)))
    return html


def _claim_cells(data: dict, outcome: Outcome, verdicts: dict) -> list:
    claim, where = outcome.claim, outcome.where
    printed = markup.gain(comparisons.printed_difference(data, claim))
    budget = None if where or outcome.reason else papers.first_budget(data, claim)
    origin = f"needs {budget}" if budget else ""  # the smallest budget that has its rows and its data set
    if where:
        questions = f"{outcome.questions} questions, " * bool(outcome.questions)
        origin = f"{questions}{where.seed_words}, {where.shown_budget}"
    judged = verdicts[claim["id"]]
    decides = judged.outcome.claim["metric"] == claim["metric"]
    word = "" if where and where.source == HERE else judged.word  # a verdict is on committed runs
    return [
        *_words_of_claim(claim, papers.claims(data)),
        rows_of_claim(data, claim),
        markup.number(Html(f"{printed}<small>claimed {claim['sign']}</small>")),
        markup.number(Html(f"{stacked(outcome.primary)}<small>{escape(origin)}</small>")),
        markup.number(stacked(outcome.test)),
        markup.said(word, outcome.reason) if decides else "",
    ]


def _words_of_claim(claim: dict, every: list[dict]) -> list[Html]:
    """The words of a claim in a cell that spans the lines of all its metrics; no cell in the lines after the first."""
    metrics = [other["metric"] for other in every if other["id"] == claim["id"]]
    words = Html(f"{escape(claim['claim'])} <small>{escape(comparisons.with_day(claim['where'], claim))}</small>")
    return [markup.cell(words, rowspan=str(len(metrics)))] if claim["metric"] == metrics[0] else []


def stacked(test) -> Html:
    """The difference, and under it its interval: so that the table is as narrow as the page."""
    gain, _, interval = markup.points(test).partition(" ")
    return Html(f"{gain}<small>{interval}</small>" if interval else gain)


def laptop_claims_table(data: dict, runs: pd.DataFrame) -> str:
    """The claims of budget laptop on pydocs, by their primary metric: committed runs and verdict, then local runs.

    The last lines are the hypotheses on `pydocs_more`, with the day on which they were stated.
    """
    body = []
    every = [one for one in claims.judged(data, runs) if one.family == claims.PYDOCS]
    for one in sorted(every, key=lambda one: "stated" in one.outcome.claim):
        claim = one.outcome.claim
        pairs = comparisons.pairs(runs, claim["row_a"], claim["row_b"], claim["dataset"], (claims.PYDOCS,))
        local = [comparisons.outcome(data, runs, claim, pair) for pair in pairs if pair.source == HERE]
        lines = [(one.outcome, markup.said(one.word, one.outcome.reason))] if one.outcome.where or not local else []
        lines += [(outcome, outcome.reason) for outcome in local]  # a verdict is on committed runs
        head = [markup.cell(comparisons.with_day(rows_of_claim(data, claim), claim), rowspan=str(len(lines)))]
        head.append(markup.cell(claim["sign"], rowspan=str(len(lines))))
        for outcome, word in lines:
            where = outcome.where
            origin = (("ours, this machine" if where.source == HERE else "ours"), len(where.seeds)) if where else "––"
            body.append(markup.line([*head, markup.number(markup.points(outcome.primary)), *origin, word]))
            head = []
    heads = ["Row A − row B", "Claimed", "Difference [95 %]", "From", "Seeds", "Verdict"]
    return table("Budget laptop, pydocs. Differences in points over questions and seeds.", heads, body)


FIGURE_CLAIMS = (
    "Claims on figures that have no values of questions, or on more than two rows: differences in points, printed and ours, with 95 % "
    "intervals by Student's t over training seeds alone, and the verdict after Holm's adjustment over this table."
)


@register("figure-claims", empty="No such claim.", of_paper=True)
def figure_claims_table(data: dict, runs: pd.DataFrame) -> str:
    """A line a claim and metric; "" for a paper without such claims."""
    body = [markup.line(_figure_claim_cells(data, one)) for one in figure_claims.figure_claims(data, runs)]
    return table(FIGURE_CLAIMS, ["Claim", "Compared", "Printed", "Ours", "Verdict"], body) if body else ""


def _figure_claim_cells(data: dict, one: figure_claims.FigureClaim) -> list:
    claim = one.claim
    plus, minus = (" and ".join(data["rows"][row]["name"] for row in claim[side]) for side in ("plus", "minus"))
    minus = f"({minus})" if len(claim["minus"]) > 1 else minus
    compared = f"{plus} − {minus}, {NAMES.get(claim['dataset'], claim['dataset'])}, {NAMES[claim['metric']]}"
    printed = "–" if one.printed is None else f"{100 * one.printed:+.1f}"
    ours = "–"
    if one.ours is not None:
        gain = f"{100 * one.ours.difference:+z.1f}"
        interval = markup.points(one.ours).removeprefix(f"{gain} ") if one.is_tested else ""
        origin = f"{one.seeds} seed{'s' * (one.seeds > 1)}, {one.budget}"
        ours = Html(f"{gain}<small>{escape(' '.join(filter(None, [interval, origin])))}</small>")
    words = _words_of_claim(claim, papers.claims(data, "figure_claims"))
    claimed = Html(f"{printed}<small>claimed {claim['sign']}</small>")
    return [*words, compared, *numbers(claimed, ours), markup.said(one.word, one.reason)]


@register("two-tests", of_paper=True)
def two_tests_table(data: dict, runs: pd.DataFrame) -> str:
    """Our runs: for each claim's two rows Student's t over seeds, the bootstrap over questions, and the test over both."""
    body = [_two_tests(test) for test in significance_tables.own_tests(data, runs).itertuples()]
    if not body:
        body = [markup.line(["no two rows of a claim", markup.word("not run"), *"–––––"])]
    heads = ["Over seeds: t [95 %]", "Over questions: bootstrap [95 %]", "Both at once [95 %]"]
    title = f"Differences in points. {LEGEND.replace('the baseline row', 'row B')}"
    return table(title, ["Row A − row B", *heads, "Seeds", "Budget", "Seen over"], body)


def _two_tests(test) -> str:
    """A line of the table, from a line of `own_tests`."""
    pairs = {"seeds": test.over_seeds, "questions": test.over_questions}
    seen = [name for name, pair in pairs.items() if pair and pair.sign]
    word = markup.said(testable.VERDICT, test.reason) if test.reason else " and ".join(seen) or "neither"
    seeds = _tested(test.over_seeds, "row B") if test.over_seeds else "one seed: no test"
    questions = _tested(None, "row B", test.over_questions)
    both = "one seed" if test.over_questions else markup.number("–")
    if test.over_both:
        gain, interval = markup.points(test.over_both).split(" ", 1)
        below = escape(f"{interval}, {markup.probability(test.over_both.p_value)}")
        both = markup.number(Html(f"{gain}<small>{below}</small>"))
    return row(test.name, seeds, questions, both, test.seeds, test.budget, word)


@register("t-tests")
def printed_table(paper: str) -> str:
    """The published gains over each backbone with their t tests: a line a row, a column a data set."""
    data = papers.read(paper)
    tests = significance_tables.printed_tests(data)
    datasets = list(dict.fromkeys(tests.dataset))
    body = []
    for name, of_row in tests.groupby("row", sort=False):
        pair = of_row.set_index("dataset").pair
        against = data["rows"][of_row.baseline.iloc[0]]["name"]
        cells = [_tested(pair.get(dataset), against) for dataset in datasets]
        body.append(row(data["rows"][name]["name"], against, *cells))
    signs = [pair.sign for pair in tests.pair]
    counts = f"{signs.count(1)} of {len(signs)} are better at 95 %, {signs.count(-1)} worse"
    over = f"95 % interval over {data.get('runs')} seeds"
    title = f"{NAMES['p@1']} as printed, minus that of the baseline, in points [{over}]: {counts}. {LEGEND}"
    return table(title, ["Row", "Baseline", *(NAMES.get(name, name) for name in datasets)], body)


def _tested(seeds: Comparison | None, against: str, questions: Comparison | None = None) -> Html:
    """The difference with its mark, and below it the interval and p of the one test that is passed."""
    pair = seeds or questions
    if pair is None:
        return markup.number("–")
    gain, interval = markup.points(pair).split(" ", 1)
    return markup.marked(gain, against, seeds, questions, f"{interval}, {markup.probability(pair.p_value)}")


@register("limits")
def limits_table(paper: str) -> str:
    """`significance_tables.limits` as a table."""
    data = papers.read(paper)
    body = []
    for at in significance_tables.limits(data).itertuples():
        figures = [f"{at.questions:,}", f"{at.mean:.1f}", f"± {at.std:.1f}", f"± {(at.high - at.low) / 2:.1f}"]
        figures += [f"{at.gain:.1f}", f"{at.gain_lost:.1f}"]
        best = Html(f"{at.largest:+.1f}<small>{escape(data['rows'][at.best]['name'])}</small>")
        head = f"{NAMES.get(at.dataset, at.dataset)}, {data['rows'][at.baseline]['name']}"
        body.append(row(head, *numbers(*figures, best)))
    heads = ["Data set and row", "Test questions", "P@1", "std over seeds", "95 % over questions"]
    heads += ["Smallest gain seen", f"if one in {significance_tables.LOST} is lost", "Largest gain printed"]
    title = "In points. A gain is seen when the 95 % interval of a paired bootstrap over the questions lies above zero."
    return table(title, heads, body)
