"""The tables of the page *Significance*: a paper's printed gains and our own by their tests, and the gains that test sets can show."""

import math

import pandas as pd

from asutil.data.data_sets import ANSWERS
from asutil.metrics import significance
from asutil.metrics.significance import Comparison

from .. import papers
from .comparisons import outcome, over_questions, over_seeds, printed_difference, printed_points, rows_of_claim

LOST = 20  # `limits` has a column in which a better system loses one question in so many


def printed(data: dict, row: str, dataset: str, metric: str) -> Comparison | None:
    """Student's t of a published cell against its baseline row, from printed means, deviations and number of runs.

    Paper: sentence_objectives, table 1.
    Returns: values from 0 to 1; None where a row has no baseline, or the paper prints no deviation or number of runs.
    """
    baseline = data["rows"][row].get("baseline")
    claim = {"row_a": row, "row_b": baseline, "dataset": dataset, "metric": metric}
    tested = printed_difference(data, claim) if baseline else None
    return tested if tested and not math.isnan(tested.p_value) else None


def own_tests(data: dict, runs: pd.DataFrame) -> pd.DataFrame:
    """The tests of every claim whose rows have run.

    Columns: name, budget, seeds (how many), over_seeds, over_questions and over_both (Comparisons or None), reason
    (why nothing can be tested).
    """
    rows = []
    for claim in papers.claims(data):
        tested = outcome(data, runs, claim)
        if where := tested.where:
            compared = (where, claim["row_a"], claim["row_b"], claim["metric"])
            tests = (over_seeds(*compared), over_questions(*compared), tested.test)
            row = (where.shown_budget, len(where.seeds), *tests, tested.reason)
            rows.append((rows_of_claim(data, claim), *row))
    columns = ["name", "budget", "seeds", "over_seeds", "over_questions", "over_both", "reason"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def printed_tests(data: dict) -> pd.DataFrame:
    """The t test of the P@1 of every published row that names a baseline: row, baseline, dataset, pair (a Comparison).

    A released checkpoint's row repeats the figures of another row; they are tested once.
    """
    tests, tested = [], []
    for name, row in data["rows"].items():
        for dataset, cells in row["published"].items() if row.get("baseline") else ():
            if not any(cells is other for other in tested):
                tested.append(cells)
                tests.append((name, row["baseline"], dataset, printed(data, name, dataset, "p@1")))
    tests = pd.DataFrame(tests, columns=["row", "baseline", "dataset", "pair"], dtype=object)
    return tests.dropna(subset="pair", ignore_index=True)


def limits(data: dict) -> pd.DataFrame:
    """What a test set can show: one line a data set and baseline row, in points.

    Columns: dataset, baseline, questions; mean and std of the baseline as printed; low and high, the binomial 95 %
    interval of its P@1 over questions; gain and gain_lost, the smallest gains that a paired bootstrap sees when no
    question is lost and when one in 20 is; largest and best, the largest gain that the paper prints and its row.
    """
    rows = []
    for (dataset, baseline), tests in printed_tests(data).groupby(["dataset", "baseline"], sort=False):
        test = ANSWERS[dataset].protocols["clean"].get("test") if dataset in ANSWERS else None
        if test:
            questions = test.questions
            mean, std = printed_points(data["rows"][baseline]["published"][dataset]["p@1"], data["unit"])
            interval = [100 * x for x in significance.proportion_interval(mean / 100, questions)]
            losses = (0, round(questions / LOST))
            gains = [100 * significance.smallest_gain(questions, lost) / questions for lost in losses]
            best = max(tests.itertuples(), key=lambda test: test.pair.difference)
            largest = 100 * best.pair.difference
            rows.append((dataset, baseline, questions, mean, std, *interval, *gains, largest, best.row))
    names = ["dataset", "baseline", "questions", "mean", "std", "low", "high", "gain", "gain_lost", "largest", "best"]
    return pd.DataFrame(rows, columns=names)
