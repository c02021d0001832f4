"""Is a difference more than chance? Student's t test over seeds, and a paired bootstrap over questions.

The t test asks whether other seeds would change the picture, the bootstrap whether other questions would;
`asutil.metrics.two_sources` has one test for both.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import special

# Draws x questions: in memory, and of a data set whose draws are kept.
CELLS_AT_ONCE = 2_000_000
CELLS_KEPT = 15_000_000
# A mean this near to another is the same one: sums of thirds differ in their last bits.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Comparison:
    """difference = ours - baseline, its 95 % interval, and the two-sided p-value of no difference."""

    p_value: float
    difference: float
    interval: tuple[float, float]

    @property
    def sign(self) -> int:
        """1 where the whole interval is above 0 (better), -1 where it is below 0 (worse), else 0."""
        low, high = self.interval
        return int(low > 0) - int(high < 0)


def student_t(ours, baseline) -> Comparison:
    """Student's t test of two independent samples (one value per seed), two-sided, equal variance, as in the papers.

    t = (m1 - m2) / sqrt(s^2 (1/n1 + 1/n2)),  s^2 = ((n1-1) s1^2 + (n2-1) s2^2) / (n1 + n2 - 2)
    A system without seeds, such as an untrained encoder, is a number m: t = (m1 - m) / sqrt(s1^2 / n1), n1 - 1 degrees of freedom.
    Paper: sentence_objectives, table 1.
    Args:
        ours, baseline: one value per seed; one of them may be a number.
    Returns: a Comparison. Without any variance p is 1 for equal means and 0 for others.
    Raises: ValueError for fewer than two values in a sample, two numbers, or a value that is not finite.
    Example:
        >>> student_t([0.81, 0.83, 0.82], [0.78, 0.80, 0.79])
        Comparison(p_value=0.0213..., difference=0.0299..., interval=(0.0073..., 0.0526...))
        >>> student_t([0.81, 0.83, 0.82], 0.80).p_value
        0.0741...
    """
    sides = {"ours": ours, "baseline": baseline}
    samples = {name: _finite(values, name) for name, values in sides.items() if np.ndim(values)}
    for name, values in samples.items():
        if len(values) < 2:
            raise ValueError(f"a t test needs two seeds or more of each system, got {len(values)} of {name}")
    if not samples:
        raise ValueError(f"a t test needs seeds of one system at least, got the numbers {ours} and {baseline}")
    mean, other = (float(np.mean(_finite(np.atleast_1d(values), name))) for name, values in sides.items())
    return _t_test(mean - other, [(values.std(ddof=1), len(values)) for values in samples.values()])


def student_t_from_summary(
    mean: float, std: float, n: int, baseline_mean: float, baseline_std: float, baseline_n: int
) -> Comparison:
    """The same test from printed means, sample standard deviations (divided by n - 1) and numbers of runs.

    Example:
        >>> round(student_t_from_summary(82.9, 0.7, 5, 78.3, 2.8, 5).p_value, 4)
        0.0074
    """
    if min(n, baseline_n) < 2 or min(std, baseline_std) < 0:
        came = f"n {n} and {baseline_n}, std {std} and {baseline_std}"
        raise ValueError(f"two runs or more of each system and no negative std: got {came}")
    return _t_test(float(mean - baseline_mean), [(std, n), (baseline_std, baseline_n)])


def _t_test(difference: float, samples: list[tuple[float, int]]) -> Comparison:
    """Of a difference of means, and the standard deviation and size of each sample."""
    freedom = sum(n - 1 for _, n in samples)
    variance = sum((n - 1) * std**2 for std, n in samples) / freedom
    return from_error(difference, float(np.sqrt(variance * sum(1 / n for _, n in samples))), freedom)


def from_error(difference: float, error: float, freedom: float) -> Comparison:
    """Student's t test of a difference with a standard error that has so many degrees of freedom; the last bits of sums are 0."""
    difference = 0.0 if abs(difference) < ROUNDING else difference
    if error < ROUNDING:
        return Comparison(1.0 if difference == 0 else 0.0, difference, (difference, difference))
    p_value = float(2 * special.stdtr(freedom, -abs(difference) / error))
    half_width = float(special.stdtrit(freedom, 0.975)) * error
    return Comparison(p_value, difference, (difference - half_width, difference + half_width))


def paired_bootstrap(ours, baseline, draws: int = 10_000, seed: int = 0) -> Comparison:
    """Paired bootstrap over questions: both systems' values of a question are drawn together, with replacement.

    d_i = ours_i - baseline_i;  D* = mean of n of the d_i drawn with replacement
    interval = the 2.5th and 97.5th percentile of D* (percentile method)
    p = (1 + #{draws: |D* - D| >= |D|}) / (1 + draws)  (shift method, two-sided: the draws are moved to a mean of 0)
    Args:
        ours, baseline: one value per question, in the same order; two Series are matched by their index instead.
        draws: the smallest possible p-value is 1 / (draws + 1).
    Raises: ValueError for unequal lengths, different questions, no questions, or a value that is not finite.
    Example:
        >>> paired_bootstrap([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0], draws=999)
        Comparison(p_value=0.039, difference=0.5, interval=(0.16..., 0.83...))
    """
    deltas = _differences(ours, baseline, draws)
    difference = float(deltas.mean())
    drawn = _kept if draws * len(deltas) <= CELLS_KEPT else _drawn
    means = np.concatenate([times @ deltas for times in drawn(len(deltas), draws, seed)]) / len(deltas)
    # Means of a few distinct values meet |D| and 0 exactly,
    # up to the last bits of a sum: such a draw counts, and such an end is 0.
    extreme = int((np.abs(means - difference) >= abs(difference) - ROUNDING).sum())
    low, high = (0.0 if abs(end) < ROUNDING else float(end) for end in np.percentile(means, [2.5, 97.5]))
    return Comparison((1 + extreme) / (1 + draws), difference, (low, high))


def _drawn(questions: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """How often each question is in each draw, some draws at a time. Shapes: (D, questions) uint16 each"""
    generator, step = np.random.default_rng(seed), max(1, CELLS_AT_ONCE // questions)
    for start in range(0, draws, step):
        drawn = generator.integers(questions, size=(min(step, draws - start), questions))
        drawn += questions * np.arange(len(drawn))[:, None]  # a place in the table of this step
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.uint16)


@lru_cache(maxsize=16)
def _kept(questions: int, draws: int, seed: int) -> tuple[np.ndarray, ...]:
    """The same, kept: all differences on one data set have the same draws."""
    return tuple(_drawn(questions, draws, seed))


def mean_interval(values, draws: int = 10_000) -> tuple[float, float]:
    """The 95 % interval of a system's mean over questions: of its `paired_bootstrap` against 0.

    Example:
        >>> mean_interval([1, 0, 1, 1], draws=999)
        (0.25, 1.0)
    """
    return paired_bootstrap(values, np.zeros(len(values)), draws).interval


def _differences(ours, baseline, draws: int) -> np.ndarray:
    """The difference of each question."""
    if isinstance(ours, pd.Series) and isinstance(baseline, pd.Series):
        require_same_questions(ours, baseline)
        baseline = baseline.reindex(ours.index)
    ours, baseline = _finite(ours, "ours"), _finite(baseline, "baseline")
    if len(ours) != len(baseline) or not len(ours):
        came = f"{len(ours)} and {len(baseline)}"
        raise ValueError(f"one value per question of both systems, at least one: got {came}")
    if draws < 1:
        raise ValueError(f"draws is 1 or more, got {draws}")
    return ours - baseline


def require_same_questions(ours: pd.Series, baseline: pd.Series) -> None:
    """Refuse two systems' values of different questions. Raises: ValueError with their numbers."""
    if not ours.index.is_unique or not baseline.index.is_unique or set(ours.index) != set(baseline.index):
        came = f"{len(ours)} and {len(baseline)}"
        raise ValueError(f"the two systems do not have the same questions, each of them once ({came})")


def proportion_interval(share: float, questions: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of right answers: the range for other questions of the same kind.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n),  z = 1.96
    Example:
        >>> proportion_interval(0.9, 68)
        (0.806..., 0.951...)
    """
    if not 0 <= share <= 1 or questions < 1:
        raise ValueError(f"a share from 0 to 1 of one question or more: got {share} of {questions}")
    z = float(special.ndtri(0.975))
    middle = share + z**2 / (2 * questions)
    half_width = z * np.sqrt(share * (1 - share) / questions + (z / (2 * questions)) ** 2)
    scale = 1 + z**2 / questions
    return float((middle - half_width) / scale), float((middle + half_width) / scale)


def randomisation(ours, baseline, draws: int = 10_000, seed: int = 0) -> float:
    """p of Fisher's paired randomisation test: the share of random swaps of each question's two values with as large a difference.

    p = (1 + #{draws: |mean of s_i d_i| >= |D|}) / (1 + draws),  s_i = 1 or -1;  exact over all signs where there are no more than `draws`
    Raises: as `paired_bootstrap`.
    Example:
        >>> randomisation([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0])
        0.25
    """
    deltas = _differences(ours, baseline, draws)
    changed = deltas[deltas != 0]  # swapping equal values changes nothing
    if not len(changed):
        return 1.0
    total = abs(changed.sum()) - ROUNDING
    if 2 ** len(changed) <= draws:
        signs = np.array(list(itertools.product((-1, 1), repeat=len(changed))), float)
        return float((np.abs(signs @ changed) >= total).mean())
    generator = np.random.default_rng(seed)
    extreme, step = 0, max(1, CELLS_AT_ONCE // len(changed))
    for start in range(0, draws, step):
        signs = generator.choice((-1.0, 1.0), size=(min(step, draws - start), len(changed)))
        extreme += int((np.abs(signs @ changed) >= total).sum())
    return (1 + extreme) / (1 + draws)


def holm(p_values) -> list[float]:
    """Holm's adjusted p-values: where no difference is real, a value below 0.05 appears in at most one family of tests in 20.

    p'_(i) = max over j <= i of min(1, (m - j + 1) p_(j)),  p_(1) <= ... <= p_(m)
    Returns: one a test, in the order given.
    Raises: ValueError for a value outside 0 to 1.
    Example:
        >>> holm([0.01, 0.04, 0.03, 0.5])
        [0.04, 0.09, 0.09, 0.5]
    """
    given = _finite(p_values, "p_values")
    outside = given[(given < 0) | (given > 1)]
    if len(outside):
        raise ValueError(f"p-values from 0 to 1 expected, got {outside[0]}")
    order = np.argsort(given, kind="stable")
    scaled = np.minimum(1, given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty(len(given))
    adjusted[order] = np.maximum.accumulate(scaled)
    return adjusted.tolist()


def smallest_gain(questions: int, lost: int = 0) -> int:
    """How many more questions one system must get right than another before a paired bootstrap detects it, exactly.

    The sum of n draws counts +1 for each gained question, -1 for each lost one; it is detected when P(sum <= 0) < 0.025.
    Args:
        lost: questions that the better system loses; it must gain these and the returned number more.
    Raises: ValueError where there are too few questions for any gain to be detected.
    Example:
        >>> smallest_gain(68), smallest_gain(1336), smallest_gain(68, lost=3)
        (4, 4, 8)
    """
    losses = np.arange(questions + 1)  # how often a lost question may be drawn
    p_losses = np.diff(special.bdtr(losses, questions, lost / questions), prepend=0)
    rest = questions - losses
    for gained in range(lost + 1, questions - lost + 1):
        p_no_more_gains = special.bdtr(np.minimum(losses, rest), rest, gained / (questions - lost))
        if float(p_losses @ p_no_more_gains) < 0.025:
            return gained - lost
    raise ValueError(f"{questions} questions with {lost} lost cannot show a gain")


def _finite(values, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all():
        came = array.tolist() if array.size < 9 else array.shape
        raise ValueError(f"{name}: a flat list of finite numbers is expected, got {came}")
    return array
