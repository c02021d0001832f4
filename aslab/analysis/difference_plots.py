"""Plots of differences between two rows: the printed gains, our own, and those of the claims."""

import pandas as pd

from .. import papers
from ..records import COMMITTED
from ..show.intervals import intervals_plot
from ..show.markup import NAMES
from . import claims
from .comparisons import printed_difference, rows_and_runs, rows_of_claim
from .significance_tables import limits, own_tests, printed_tests

PRINTED = "as printed"
PYDOCS = "ours, on pydocs"
CLAIMS = (
    "The difference of each claim that our runs test, as printed and by our runs, with 95 % intervals: over seeds as printed (none where "
    "no deviation is printed), over questions and seeds for ours. A triangle: the whole interval is on one side of zero."
)
GAINS = (
    "Each printed gain in P@1 over its backbone, with its 95 % interval over seeds. "
    "A triangle marks a gain or loss that the t test calls significant. "
    "The dashed line is the smallest gain that a paired bootstrap over this many questions can see."
)
OWN = (
    "Our differences between the two rows of each claim, with the 95 % interval over seeds and the one over questions."
)


def gains_plot(paper: str):
    """The published gains in P@1 with intervals over seeds, a panel a data set; dashed: the smallest gain that is seen.

    Returns: None for a paper whose rows name no baseline.
    """
    data = papers.read(paper)
    tests = printed_tests(data)
    by_dataset = limits(data).drop_duplicates("dataset").set_index("dataset")
    frame = tests.assign(name=[data["rows"][row]["name"] for row in tests.row], test=PRINTED)
    titles = {name: f"{NAMES.get(name, name)}, {by_dataset.questions[name]:,} questions" for name in by_dataset.index}
    frame["panel"] = [titles.get(name, NAMES.get(name, name)) for name in frame.dataset]
    smallest = {titles[name]: by_dataset.gain[name] for name in by_dataset.index}
    return None if frame.empty else intervals_plot(frame, GAINS, smallest)


def own_plot(data: dict, runs: pd.DataFrame):
    """Our differences with both intervals, a line for each claim that committed runs test; None without any."""
    tests = own_tests(data, runs[runs.source == COMMITTED])
    tests = tests[tests.reason == ""]
    each = [tests.assign(test=f"interval over {name}", pair=tests[f"over_{name}"]) for name in ("seeds", "questions")]
    frame = pd.concat(each).dropna(subset="pair")
    return intervals_plot(frame.assign(panel="ours"), OWN) if len(frame) else None


def claims_plot(paper: str):
    """The claims that committed runs test: the printed difference beside ours; None where no claim was tested."""
    data, runs = rows_and_runs(paper)
    return plot_of([(data, claims.judged(data, runs))])


def overview_plot():
    """The headline claims that committed runs test, the printed difference beside ours; None where none was tested."""
    return plot_of([(data, [one]) for data, one in claims.headline()])


def plot_of(of_papers: list[tuple[dict, list[claims.Judged]]]):
    """The figure of some claims of some papers, each with the paper's file; None where none was tested."""
    every = [one for _, judged in of_papers for one in judged]
    points = [claim_points(data, judged) for data, judged in of_papers]
    frame = pd.concat(points, ignore_index=True) if points else pd.DataFrame()
    tested = [one.word for one in every if one.adjusted is not None and one.family != claims.PYDOCS]
    untestable = sum(one.word == "not testable here" and one.family != claims.PYDOCS for one in every)
    title = f"Public data: {tested.count(claims.SUPPORTED)} of {len(tested)} claims tested are supported, {untestable} not testable here"
    return intervals_plot(frame.assign(panel="claims"), CLAIMS, title=title) if len(frame) else None


def claim_points(data: dict, every: list[claims.Judged]) -> pd.DataFrame:
    """What a plot draws of the claims that were tested: name, test (whose figures), pair (a Comparison)."""
    on_papers_data = {one.outcome.claim["id"]: one.outcome.claim for one in every if one.family != claims.PYDOCS}
    pairs = {}
    for one in every:
        if one.adjusted is not None:
            claim = on_papers_data.get(one.outcome.claim["id"], one.outcome.claim)
            name = rows_of_claim(data, claim)
            pairs[name, PRINTED] = printed_difference(data, claim)
            pairs[name, PYDOCS if one.family == claims.PYDOCS else "ours"] = one.outcome.primary
    rows = [(*key, pair) for key, pair in pairs.items() if pair]
    return pd.DataFrame(rows, columns=["name", "test", "pair"], dtype=object)
