"""Is a difference more than chance, where both the questions and the training seeds are a sample? One test for both.

The paired bootstrap takes the trained models as given, Student's t over seeds takes the questions as given.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from .significance import ROUNDING, Comparison, from_error, require_same_questions

LEVEL = 0.05  # a p-value below it is significant
POWER = 0.8  # chance to call the `smallest_effect` significant
ENOUGH = 3  # seeds of a system that show how much its seeds differ


@dataclass(frozen=True)
class SeedVariance:
    """Variance between training seeds of a system's mean over questions, its degrees of freedom, and the most that a borrower has."""

    variance: float
    freedom: float
    most: float = math.inf


def seed_variance(*systems) -> SeedVariance:
    """Variance that training seeds alone add to a system's mean, pooled over systems with the same questions.

    v = variance of the seeds' means,  e = residual mean square of the two-way layout of seeds x questions
    variance = max(0, v - e / n),  freedom = (v - e / n)^2 / (v^2 / f + (e / n)^2 / (f (n - 1))),  f = sum of S - 1
    Shapes: each system (S, n): S seeds, n questions; lists of Series, one a seed, are matched by their questions
    Returns: a SeedVariance; freedom is that of Satterthwaite, and 0 where the variance is 0; most is f.
    Raises: ValueError for a system with fewer than two seeds or questions, or for unequal numbers of questions.
    Example:
        >>> seed_variance([[0.25, 0.5, 0.75], [0.5, 0.5, 1.25]])  # v = 1/32, e = 1/32, n = 3, f = 1
        SeedVariance(variance=0.0208..., freedom=0.4210..., most=1)
    """
    tables = [_table(values, f"system {number}") for number, values in enumerate(_matched(systems), start=1)]
    sizes = [table.shape for table in tables]
    if not tables or min(min(size) for size in sizes) < 2 or len({questions for _, questions in sizes}) > 1:
        came = ", ".join(f"{seeds} x {questions}" for seeds, questions in sizes)
        expected = "systems of two seeds or more with the same two questions or more"
        raise ValueError(f"a variance between seeds needs {expected}, got seeds x questions: {came or 'no system'}")
    questions, freedom = sizes[0][1], sum(seeds - 1 for seeds, _ in sizes)
    means = sum((seeds - 1) * table.mean(axis=1).var(ddof=1) for table, (seeds, _) in zip(tables, sizes)) / freedom
    residuals = [table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean() for table in tables]
    residual = sum((rest**2).sum() for rest in residuals) / (freedom * (questions - 1)) / questions
    variance = means - residual
    if variance <= ROUNDING * means:
        return SeedVariance(0.0, 0.0, freedom)
    spread = means**2 / freedom + residual**2 / (freedom * (questions - 1))
    return SeedVariance(float(variance), float(variance**2 / spread), freedom)


def over_questions_and_seeds(ours, baseline, borrowed: SeedVariance | None = None) -> Comparison:
    """Student's t test of a difference with both sources of chance: other questions and other training seeds.

    D = mean of d_q,  d_q = ours_q - baseline_q, each a mean over the system's seeds
    V = var(d_q) / n + sum over the two systems of w / S,  w = `seed_variance` of the system
    t = D / sqrt(V),  degrees of freedom = V^2 / (sum of part^2 / its degrees of freedom)  (Satterthwaite), at least 1
    Questions are paired, seeds are not: the same seed of two systems is two independent trainings.
    Where a system with one seed or two borrows w, the test has at most the degrees of freedom of the lenders' seeds, f: few seeds may
    agree by chance, and V is then too small. With this limit at most 5 of 100 tests of equal systems have p < .05, and 5 of 1,000
    p < .005; without it, one seed beside two that lend gives up to 15 and 100, and two systems of two seeds 6 and 25. Two systems of
    three seeds, which borrow nothing, have up to 5 and 9, and 8 and 26 where one of them alone varies.
    Shapes: ours, baseline (S, n) each, S >= 1 seeds of a trained system; (n,) for a system without seeds, such as an
        untrained encoder, which has w = 0. Where both name their questions, by a Series, or a list of them, one a seed, these are matched.
    Args:
        borrowed: w of a trained system with fewer than three seeds, pooled over systems on the same questions whose seeds vary alike.
    Returns: a Comparison, two-sided, with a 95 % interval. Without any variance p is 1 for equal means and 0 for others.
    Raises: ValueError for unequal numbers of questions, fewer than two, a value that is not finite, or a trained
        system with one seed where nothing is borrowed.
    Example:
        >>> over_questions_and_seeds([[0.25, 0.5, 0.75], [0.5, 0.5, 1.25]], [0, 0.5, 0.5])
        Comparison(p_value=0.2423..., difference=0.2916..., interval=(-0.4477..., 1.0311...))
    """
    difference, variance, freedom = _both_sources(ours, baseline, borrowed)
    return from_error(difference, variance**0.5, freedom)


def smallest_effect(ours, baseline, borrowed: SeedVariance | None = None) -> float:
    """The difference that `over_questions_and_seeds` would have called significant with a chance of 80 %.

    delta = nc sqrt(V), where P(T <= t_.975) = .2 for T of a noncentral t distribution with noncentrality nc
    V and the degrees of freedom are those of the test on these values. T below -t_.975 is left out: it hardly occurs.
    Args, Shapes, Raises: as `over_questions_and_seeds`.
    Example:
        >>> smallest_effect([[0.25, 0.5, 0.75], [0.5, 0.5, 1.25]], [0, 0.5, 0.5])
        0.9739...
    """
    _, variance, freedom = _both_sources(ours, baseline, borrowed)
    if variance == 0:
        return 0.0
    border = special.stdtrit(freedom, 1 - LEVEL / 2)
    return float(special.nctdtrinc(freedom, 1 - POWER, border) * variance**0.5)


def _both_sources(ours, baseline, borrowed: SeedVariance | None) -> tuple[float, float, float]:
    """Difference, its variance from questions and seeds, and the degrees of freedom of that variance."""
    ours, baseline = _matched([ours, baseline])
    systems = {"ours": _table(ours, "ours"), "baseline": _table(baseline, "baseline")}
    sizes = {table.shape[1] for table in systems.values()}
    if len(sizes) > 1 or min(sizes) < 2:
        came = " and ".join(str(table.shape[1]) for table in systems.values())
        raise ValueError(f"values of the same questions of both systems, two questions at least: got {came}")
    questions = sizes.pop()
    deltas = systems["ours"].mean(axis=0) - systems["baseline"].mean(axis=0)
    parts = [(deltas.var(ddof=1) / questions, questions - 1)]
    trained = {name: systems[name] for name, values in (("ours", ours), ("baseline", baseline)) if np.ndim(values) == 2}
    fewest = 2 if borrowed is None else ENOUGH
    for table in trained.values():
        if len(table) >= fewest:
            own = seed_variance(table)
            parts.append((own.variance / len(table), own.freedom))
    if few := {name: len(table) for name, table in trained.items() if len(table) < fewest}:
        if borrowed is None:
            advice = "give more seeds, or the seed_variance of other systems as `borrowed`"
            raise ValueError(f"{' and '.join(few)}: one seed cannot show how much seeds differ: {advice}")
        # Two systems that borrow have one and the same estimate: their parts are not independent.
        parts.append((sum(1 / seeds for seeds in few.values()) * borrowed.variance, borrowed.freedom))
    variance = float(sum(part for part, _ in parts))
    spread = sum(part**2 / freedom for part, freedom in parts if part)
    freedom = max(1.0, variance**2 / spread) if spread else questions - 1
    freedom = min(freedom, borrowed.most) if few else freedom
    return float(deltas.mean()), variance, freedom


def _matched(systems) -> list:
    """The values of systems, those of all that name their questions (a Series, or a list of them, one a seed) in the order of the first."""
    matched, first = [], None
    for values in systems:
        if isinstance(values, list | tuple) and values and all(isinstance(own, pd.Series) for own in values):
            for own in values[1:]:
                require_same_questions(values[0], own)
            values = pd.DataFrame(list(values))
        if isinstance(values, pd.Series | pd.DataFrame):
            questions = values.T.index
            first = questions if first is None else first
            require_same_questions(pd.Series(0, first), pd.Series(0, questions))
            values = values.T.loc[first].T
        matched.append(values)
    return matched


def _table(values, name: str) -> np.ndarray:
    """Seeds x questions; a system without seeds has one line."""
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"{name}: one value a question, or seeds x questions, expected: got the shape {array.shape}")
    table = np.atleast_2d(array)
    if len(wrong := np.argwhere(~np.isfinite(table))):
        seed, question = wrong[0]
        raise ValueError(
            f"{name}: finite numbers expected, got {table[seed, question]} in line {seed + 1}, question {question + 1}"
        )
    return table
