"""Claims on figures that have no values of questions, as on the task of a pre-training, or on more than two rows.

Such a claim is a sum of the means of some rows minus a sum of others, over training seeds alone.
Deviation: D-158.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from asutil.metrics import significance
from asutil.metrics.significance import Comparison

from .. import papers, rundir
from ..records import COMMITTED, values
from . import testable
from .claims import verdict
from .comparisons import printed_points

ONE_SEED = "one seed: nothing shows how much seeds differ"


class FigureClaim(NamedTuple):
    """A figure claim on one metric: the printed difference (0 to 1; None if not printed), ours with the budget of its runs
    and the fewest seeds of a row, and its p after Holm's adjustment over the paper's figure claims (None: not tested).
    """

    claim: dict
    printed: float | None
    budget: str = ""
    seeds: int = 0
    ours: Comparison | None = None
    adjusted: float | None = None

    @property
    def is_tested(self) -> bool:
        return self.ours is not None and not np.isnan(self.ours.p_value)

    @property
    def word(self) -> str:
        if self.ours is not None and not self.is_tested:
            return testable.VERDICT
        return verdict(self.claim["sign"], self.ours, self.adjusted)

    @property
    def reason(self) -> str:
        return ONE_SEED if self.word == testable.VERDICT else ""


def figure_claims(data: dict, runs: pd.DataFrame) -> list[FigureClaim]:
    """The figure claims of a paper by its committed records, each at the largest budget above laptop that has all its rows."""
    committed = runs[runs.source == COMMITTED]
    every = [_compared(data, committed, claim) for claim in papers.claims(data, "figure_claims")]
    adjusted = iter(significance.holm([one.ours.p_value if one.is_tested else 1.0 for one in every]))
    return [one._replace(adjusted=p_value if one.is_tested else None) for one, p_value in zip(every, adjusted)]


def _compared(data: dict, runs: pd.DataFrame, claim: dict) -> FigureClaim:
    signs = dict.fromkeys(claim["plus"], 1) | dict.fromkeys(claim["minus"], -1)
    cells = [data["rows"][row]["published"].get(claim["dataset"], {}).get(claim["metric"]) for row in signs]
    points = [printed_points(cell, data["unit"]) for cell in cells]
    printed = None
    if None not in points:
        printed = sum(sign * mean for sign, (mean, _) in zip(signs.values(), points)) / 100
    lines = runs[runs.dataset == claim["dataset"]]
    for budget in reversed(rundir.BUDGETS[1:]):
        at_budget = lines[lines.budget == budget]
        each = {row: values(at_budget[at_budget.row == row], claim["metric"]) for row in signs}
        if all(each.values()):
            seeds = min(map(len, each.values()))
            return FigureClaim(claim, printed, budget, seeds, summed(list(signs.values()), list(each.values())))
    return FigureClaim(claim, printed)


def summed(signs: list[int], samples: list[list[float]]) -> Comparison:
    """A signed sum of means with its interval by Welch's t; without one where a sample has one value.

    d = sum of s_i mean_i, v_i = var_i / n_i, error = sqrt(sum of v_i), freedom = (sum of v_i)^2 / sum of v_i^2 / (n_i - 1)
    Example:
        >>> summed([1, -1], [[0.8], [0.5]]).difference
        0.3
    """
    # Where means of counts end in a 5 that is not shown, the order of the sum must not choose the last digit.
    difference = round(sum(sign * float(np.mean(sample)) for sign, sample in zip(signs, samples)), 12)
    if min(map(len, samples)) < 2:
        return Comparison(float("nan"), difference, (float("nan"), float("nan")))
    shares = np.array([np.var(sample, ddof=1) / len(sample) for sample in samples])
    parts = sum(share**2 / (len(sample) - 1) for share, sample in zip(shares, samples))
    freedom = shares.sum() ** 2 / parts if parts else sum(map(len, samples)) - len(samples)
    return significance.from_error(difference, float(shares.sum()) ** 0.5, freedom)
