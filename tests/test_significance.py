"""Student's t against scipy, the bootstrap against a loop that draws one question at a time."""

import random

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from asutil import significance
from asutil.significance import paired_bootstrap, student_t, student_t_from_summary


@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 7), (2, 2)])
def test_student_t_equals_scipy(n, m):
    rng = np.random.default_rng(n * 10 + m)
    ours, baseline = rng.normal(0.82, 0.02, n), rng.normal(0.79, 0.03, m)
    theirs = stats.ttest_ind(ours, baseline)
    interval = theirs.confidence_interval(0.95)
    got = student_t(list(ours), list(baseline))
    assert got.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert got.difference == pytest.approx(ours.mean() - baseline.mean())
    assert got.interval == pytest.approx((interval.low, interval.high))
    # another sign, the same p; Welch's test is another number
    assert student_t(baseline, ours).p_value == pytest.approx(got.p_value)
    if n != m:
        assert got.p_value != pytest.approx(stats.ttest_ind(ours, baseline, equal_var=False).pvalue, rel=1e-3)


def test_student_t_from_printed_numbers():
    theirs = stats.ttest_ind_from_stats(82.9, 0.7, 5, 78.3, 2.8, 5)
    assert student_t_from_summary(82.9, 0.7, 5, 78.3, 2.8, 5).p_value == pytest.approx(theirs.pvalue, rel=1e-12)


def test_student_t_without_variance():
    assert student_t([1, 1], [1, 1]) == significance.Comparison(1.0, 0.0, (0.0, 0.0))
    assert student_t([1, 1], [0, 0]) == significance.Comparison(0.0, 1.0, (1.0, 1.0))


@pytest.mark.parametrize(
    ("ours", "baseline", "said"),
    [
        ([1], [1, 2], "two seeds or more a side, got 1 of ours"),
        ([1, 2], [], "got 0 of baseline"),
        ([1, float("nan")], [1, 2], "ours: a flat list of finite numbers"),
        ([1, 2], [[1, 2]], "baseline: a flat list"),
    ],
)
def test_student_t_refuses(ours, baseline, said):
    with pytest.raises(ValueError, match=said):
        student_t(ours, baseline)
    with pytest.raises(ValueError, match="no negative std"):
        student_t_from_summary(1, -1, 2, 1, 1, 2)


def slow_bootstrap(ours, baseline, draws, seed):
    """The definition in plain Python, with another generator."""
    rng, n = random.Random(seed), len(ours)
    deltas = [a - b for a, b in zip(ours, baseline)]
    difference = sum(deltas) / n
    means = []
    for _ in range(draws):
        total = 0.0
        for _ in range(n):
            total += deltas[rng.randrange(n)]
        means.append(total / n)
    extreme = sum(abs(m - difference) >= abs(difference) - 1e-9 for m in means)
    means.sort()
    return (1 + extreme) / (1 + draws), difference, means[int(0.025 * draws)], means[int(0.975 * draws)]


@pytest.mark.parametrize("better", [False, True])
def test_bootstrap_equals_a_slow_loop(better):
    rng = np.random.default_rng(5)
    baseline = (rng.random(60) < 0.5).astype(float)
    ours = np.where(rng.random(60) < 0.3, 1 if better else 1 - baseline, baseline)
    p, difference, low, high = slow_bootstrap(list(ours), list(baseline), 4000, seed=1)
    got = paired_bootstrap(ours, baseline, draws=4000)
    assert got.difference == pytest.approx(difference)
    assert got.p_value == pytest.approx(p, abs=0.035)
    assert got.interval == pytest.approx((low, high), abs=0.018)


def test_bootstrap_equals_scipys_percentile_interval():
    rng = np.random.default_rng(8)
    ours, baseline = rng.random(150), rng.random(150) * 0.9
    theirs = stats.bootstrap(((ours - baseline),), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1))
    assert paired_bootstrap(ours, baseline).interval == pytest.approx(theirs.confidence_interval, abs=0.003)


def test_bootstrap_p_values_are_uniform_without_a_difference():
    """Of 200 pairs of equal systems about 5 % come out below .05, and none needs luck to be far from it."""
    rng = np.random.default_rng(2)
    small = sum(paired_bootstrap(rng.normal(size=80), rng.normal(size=80), draws=400, seed=i).p_value < 0.05 for i in range(200))
    assert 2 <= small <= 22


def test_bootstrap_in_bounded_memory(monkeypatch):
    """Cut into small blocks, the draws are the same."""
    rng = np.random.default_rng(3)
    ours, baseline = rng.random(101), rng.random(101)
    whole = paired_bootstrap(ours, baseline, draws=500, seed=4)
    monkeypatch.setattr(significance, "CELLS_AT_ONCE", 101 * 7)
    assert paired_bootstrap(ours, baseline, draws=500, seed=4) == whole
    assert paired_bootstrap(ours, baseline, draws=500, seed=5) != whole


def test_bootstrap_limits():
    assert paired_bootstrap([1, 0, 1], [1, 0, 1]) == significance.Comparison(1.0, 0.0, (0.0, 0.0))
    assert paired_bootstrap([1] * 30, [0] * 30, draws=99).p_value == 1 / 100  # no draw of the moved values is as large
    ours = pd.Series([1.0, 0.0, 0.5], index=["a", "b", "c"])
    baseline = pd.Series([0.2, 0.4, 0.9], index=["c", "b", "a"])
    assert paired_bootstrap(ours, baseline) == paired_bootstrap([1, 0, 0.5], [0.9, 0.4, 0.2])


@pytest.mark.parametrize(
    ("ours", "baseline", "draws", "said"),
    [
        ([1, 2], [1], 10, "got 2 and 1"),
        ([], [], 10, "at least one"),
        ([1, float("inf")], [1, 2], 10, "finite"),
        ([1], [1], 0, "draws is 1 or more"),
        (pd.Series([1], index=["a"]), pd.Series([1], index=["b"]), 10, "not the same questions"),
    ],
)
def test_bootstrap_refuses(ours, baseline, draws, said):
    with pytest.raises(ValueError, match=said):
        paired_bootstrap(ours, baseline, draws=draws)
