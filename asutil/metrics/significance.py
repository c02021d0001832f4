"""Is a difference more than chance? Student's t over seeds, and a paired bootstrap over questions.

A t over five seeds says whether another seed would change the picture; it ignores which 68 questions were asked. The bootstrap asks that.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

CELLS_AT_ONCE = 2_000_000  # draws x questions held in memory


@dataclass(frozen=True)
class Comparison:
    """difference = ours - baseline, its 95 % interval, and the two-sided p-value of no difference."""

    p_value: float
    difference: float
    interval: tuple[float, float]

    @property
    def sign(self) -> int:
        """1 where the whole interval lies above 0 (better), -1 where it lies below (worse), 0 where it does neither."""
        low, high = self.interval
        return int(low > 0) - int(high < 0)


def student_t(ours, baseline) -> Comparison:
    """Student's t test of two independent samples (one value a seed), two-sided, equal variance, as in the papers.

    t = (m1 - m2) / sqrt(s^2 (1/n1 + 1/n2)),  s^2 = ((n1-1) s1^2 + (n2-1) s2^2) / (n1 + n2 - 2)
    Paper: sentence_objectives, table 1.
    Returns: a Comparison. Without any variance p is 1 for equal means and 0 for others.
    Raises: ValueError for fewer than two values on a side, or a value that is not finite.
    Example:
        >>> student_t([0.81, 0.83, 0.82], [0.78, 0.80, 0.79])
        Comparison(p_value=0.0213..., difference=0.0299..., interval=(0.0073..., 0.0526...))
    """
    samples = [_finite(values, side) for values, side in ((ours, "ours"), (baseline, "baseline"))]
    for values, side in zip(samples, ("ours", "baseline")):
        if len(values) < 2:
            raise ValueError(f"a t test needs two seeds or more a side, got {len(values)} of {side}")
    (mean, std, n), (other_mean, other_std, other_n) = [(v.mean(), v.std(ddof=1), len(v)) for v in samples]
    return student_t_from_summary(mean, std, n, other_mean, other_std, other_n)


def student_t_from_summary(
    mean: float, std: float, n: int, baseline_mean: float, baseline_std: float, baseline_n: int
) -> Comparison:
    """The same test from printed means, sample standard deviations (divided by n - 1) and numbers of runs.

    Example:
        >>> round(student_t_from_summary(82.9, 0.7, 5, 78.3, 2.8, 5).p_value, 4)
        0.0074
    """
    if min(n, baseline_n) < 2 or min(std, baseline_std) < 0:
        raise ValueError(
            f"two runs or more a side and no negative std: got n {n} and {baseline_n}, std {std} and {baseline_std}"
        )
    difference, freedom = float(mean - baseline_mean), n + baseline_n - 2
    variance = ((n - 1) * std**2 + (baseline_n - 1) * baseline_std**2) / freedom
    error = float(np.sqrt(variance * (1 / n + 1 / baseline_n)))
    if error == 0:
        return Comparison(1.0 if difference == 0 else 0.0, difference, (difference, difference))
    p_value = float(2 * special.stdtr(freedom, -abs(difference) / error))
    reach = float(special.stdtrit(freedom, 0.975)) * error
    return Comparison(p_value, difference, (difference - reach, difference + reach))


def paired_bootstrap(ours, baseline, draws: int = 10_000, seed: int = 0) -> Comparison:
    """Paired bootstrap over questions: both systems' values of the same questions are drawn together, with replacement.

    d_i = ours_i - baseline_i;  D* = mean of n of the d_i drawn with replacement
    interval = the 2.5th and 97.5th percentile of D* (percentile method)
    p = (1 + #{draws: |D* - D| >= |D|}) / (1 + draws)  (shift method, two-sided: the draws are moved to a mean of 0, no difference)
    Args:
        ours, baseline: one value a question, in the same order; two Series are matched by their index instead.
        draws: the smallest p-value that can come out is 1 / (draws + 1).
    Raises: ValueError for unequal lengths, other questions on the two sides, no questions, or a value that is not finite.
    Example:
        >>> paired_bootstrap([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0], draws=999)
        Comparison(p_value=0.039, difference=0.5, interval=(0.16..., 0.83...))
    """
    if isinstance(ours, pd.Series) and isinstance(baseline, pd.Series):
        if not ours.index.is_unique or not baseline.index.is_unique or set(ours.index) != set(baseline.index):
            raise ValueError(f"the two sides are not the same questions, each once ({len(ours)} and {len(baseline)})")
        baseline = baseline.reindex(ours.index)
    ours, baseline = _finite(ours, "ours"), _finite(baseline, "baseline")
    if len(ours) != len(baseline) or not len(ours):
        raise ValueError(f"one value a question on both sides, at least one: got {len(ours)} and {len(baseline)}")
    if draws < 1:
        raise ValueError(f"draws is 1 or more, got {draws}")
    deltas, generator = ours - baseline, np.random.default_rng(seed)
    difference, means = float(deltas.mean()), np.empty(draws)
    step = max(1, CELLS_AT_ONCE // len(deltas))
    for start in range(0, draws, step):
        count = min(step, draws - start)
        means[start : start + count] = deltas[generator.integers(len(deltas), size=(count, len(deltas)))].mean(axis=1)
    # Means of a few distinct values meet |D| exactly, up to the last bits of a sum: those draws count.
    extreme = int((np.abs(means - difference) >= abs(difference) - 1e-12).sum())
    low, high = np.percentile(means, [2.5, 97.5])
    return Comparison((1 + extreme) / (1 + draws), difference, (float(low), float(high)))


def proportion_interval(share: float, questions: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of right answers: what other questions of the same kind may well have given.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n),  z = 1.96
    Example:
        >>> proportion_interval(0.9, 68)
        (0.806..., 0.951...)
    """
    if not 0 <= share <= 1 or questions < 1:
        raise ValueError(f"a share from 0 to 1 of one question or more: got {share} of {questions}")
    z = float(special.ndtri(0.975))
    middle, reach = (
        share + z**2 / (2 * questions),
        z * np.sqrt(share * (1 - share) / questions + (z / (2 * questions)) ** 2),
    )
    return tuple(float((middle + side * reach) / (1 + z**2 / questions)) for side in (-1, 1))


def smallest_gain(questions: int, lost: int = 0) -> int:
    """How many more questions one system must get right than another before a paired bootstrap sees it, exactly.

    The sum of n draws counts +1 for each gained question, -1 for each lost one; it is seen when P(sum <= 0) < 2.5 %.
    Args:
        lost: questions that the better system loses; it must gain these and the returned number beyond them.
    Raises: ValueError where so few questions show no gain at all.
    Example:
        >>> smallest_gain(68), smallest_gain(1336), smallest_gain(68, lost=3)
        (4, 4, 8)
    """
    down = np.arange(questions + 1)  # how often a lost question is drawn, and how likely that is
    chance = np.diff(special.bdtr(down, questions, lost / questions), prepend=0)
    for gained in range(lost + 1, questions - lost + 1):
        up = special.bdtr(
            np.minimum(down, questions - down), questions - down, gained / (questions - lost)
        )  # P(no more gained than lost)
        if float(chance @ up) < 0.025:
            return gained - lost
    raise ValueError(f"{questions} questions with {lost} lost cannot show a gain")


def _finite(values, side: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(
            f"{side}: a flat list of finite numbers is expected, got {array.tolist() if array.size < 9 else array.shape}"
        )
    return array
