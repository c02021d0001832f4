"""Student's t against scipy, the bootstrap against the same draws counted by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asutil.metrics import significance
from asutil.metrics.significance import holm, mean_interval, paired_bootstrap, smallest_gain, student_t, student_t_from_summary
from tests.trust import traced, traced_gains


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


@pytest.mark.parametrize("n", [2, 3, 5])
def test_seeds_against_a_number_equal_scipy(n):
    ours = np.random.default_rng(n).normal(0.82, 0.02, n)
    theirs = stats.ttest_1samp(ours, 0.8)
    interval = theirs.confidence_interval(0.95)
    for got, sign in ((student_t(list(ours), 0.8), 1), (student_t(0.8, list(ours)), -1)):
        assert got.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
        assert got.difference == pytest.approx(sign * (ours.mean() - 0.8))
        assert sorted(sign * (x + sign * 0.8) for x in got.interval) == pytest.approx([interval.low, interval.high])


def test_student_t_from_printed_numbers():
    theirs = stats.ttest_ind_from_stats(82.9, 0.7, 5, 78.3, 2.8, 5)
    assert student_t_from_summary(82.9, 0.7, 5, 78.3, 2.8, 5).p_value == pytest.approx(theirs.pvalue, rel=1e-12)


def test_student_t_without_variance():
    assert student_t([1, 1], [1, 1]) == significance.Comparison(1.0, 0.0, (0.0, 0.0))
    assert student_t([1, 1], [0, 0]) == significance.Comparison(0.0, 1.0, (1.0, 1.0))


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        (student_t, ([1], [1, 2]), "two seeds or more of each system, got 1 of ours"),
        (student_t, ([1, 2], []), "got 0 of baseline"),
        (student_t, ([1, float("nan")], [1, 2]), r"ours: a flat list of finite numbers is expected, got \[1.0, nan\]"),
        (student_t, ([1, 2], [[1, 2]]), "baseline: a flat list"),
        (student_t, (0.5, 0.4), "seeds of one system at least, got the numbers 0.5 and 0.4"),
        (student_t, ([1, 2], float("inf")), r"baseline: a flat list of finite numbers is expected, got \[inf\]"),
        (student_t, ([1, 2], [[1, 2, 3]] * 3), r"baseline: a flat list .* got \(3, 3\)"),  # what is long is not printed
        (student_t_from_summary, (1, -1, 2, 1, 1, 2), "no negative std"),
        (paired_bootstrap, ([1, 2], [1]), "got 2 and 1"),
        (paired_bootstrap, ([], []), "at least one"),
        (paired_bootstrap, ([1, float("inf")], [1, 2]), "finite"),
        (paired_bootstrap, ([1], [1], 0), "draws is 1 or more"),
        (paired_bootstrap, (pd.Series([1], index=["a"]), pd.Series([1], index=["b"])), r"do not have the same questions.* \(1 and 1\)"),
        (significance.proportion_interval, (61, 68), "a share from 0 to 1"),
        (smallest_gain, (10, 5), "10 questions with 5 lost cannot show a gain"),
        (smallest_gain, (5, 5), "5 questions with 5 lost cannot show a gain"),  # none is left that could be gained
        (holm, ([0.1, -0.1],), "p-values from 0 to 1"),
        (holm, ([1.5],), "p-values from 0 to 1"),
        (holm, ([float("nan")],), "p-values from 0 to 1|finite numbers"),
    ],
)
def test_refusals(call, arguments, said):
    with pytest.raises(ValueError, match=said):
        call(*arguments)


@pytest.mark.parametrize("better", [False, True])
def test_bootstrap_equals_the_same_draws_counted_by_hand(better):
    rng = np.random.default_rng(5)
    baseline = (rng.random(60) < 0.5).astype(float)
    ours = np.where(rng.random(60) < 0.3, 1 if better else 1 - baseline, baseline)
    got = paired_bootstrap(ours, baseline)
    assert (got.difference, *got.interval, got.p_value) == pytest.approx(traced.bootstrap(tuple(ours - baseline)), abs=1e-12)


def test_an_end_of_the_interval_that_is_zero_is_no_rounding_error():
    """Means over three seeds are thirds: in whole numbers the same draws say on which side of zero an end lies, or that it is zero."""
    rng, draws, zeros = np.random.default_rng(3), 400, 0
    for _ in range(200):
        thirds = rng.choice([-1, 0, 0, 0, 0, 1, 2], size=30)
        sums = thirds[np.random.default_rng(0).integers(30, size=(draws, 30))].sum(axis=1)
        expected = [np.sign(np.round(end, 9)) for end in np.percentile(sums, [2.5, 97.5])]
        assert list(np.sign(paired_bootstrap(thirds / 3, np.zeros(30), draws=draws).interval)) == expected
        zeros += 0 in expected
    assert zeros > 5


def test_bootstrap_equals_scipys_percentile_interval():
    rng = np.random.default_rng(8)
    ours, baseline = rng.random(150), rng.random(150) * 0.9
    theirs = stats.bootstrap(((ours - baseline),), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1))
    assert paired_bootstrap(ours, baseline).interval == pytest.approx(theirs.confidence_interval, abs=0.003)


def test_the_interval_of_a_mean_equals_scipys_percentile_interval():
    values = np.random.default_rng(9).random(150) ** 2
    theirs = stats.bootstrap((values,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1))
    assert mean_interval(values) == pytest.approx(theirs.confidence_interval, abs=0.003)
    assert mean_interval(values, draws=500) == mean_interval(pd.Series(values, index=range(7, 157)), draws=500) != mean_interval(values)


def test_bootstrap_p_values_are_uniform_without_a_difference():
    """Of 200 pairs of equal systems about 5 % come out below .05, and none needs luck to be far from it."""
    rng = np.random.default_rng(2)
    small = sum(paired_bootstrap(rng.normal(size=80), rng.normal(size=80), draws=400, seed=i).p_value < 0.05 for i in range(200))
    assert 2 <= small <= 22


def test_draws_are_kept_for_the_next_difference_where_they_fit(monkeypatch):
    made, drawn = [], significance._drawn
    monkeypatch.setattr(significance, "_drawn", lambda *given: made.append(given) or drawn(*given))
    monkeypatch.setattr(significance, "CELLS_KEPT", 90 * 7)
    significance._kept.cache_clear()
    for questions, times in ((7, 1), (8, 2)):
        for baseline in (0, 1):
            paired_bootstrap(np.arange(questions), np.full(questions, baseline), draws=90, seed=3)
        assert made == [(questions, 90, 3)] * times
        made.clear()
    (kept,) = significance._kept(7, 90, 3)
    assert kept.dtype == np.uint16 and (kept.sum(axis=1) == 7).all()


def test_bootstrap_in_bounded_memory(monkeypatch):
    """Cut into small blocks, the draws are the same."""
    rng = np.random.default_rng(3)
    ours, baseline = rng.random(101), rng.random(101)
    whole = paired_bootstrap(ours, baseline, draws=500, seed=4)
    monkeypatch.setattr(significance, "CELLS_AT_ONCE", 101 * 7)
    monkeypatch.setattr(significance, "CELLS_KEPT", 0)
    assert paired_bootstrap(ours, baseline, draws=500, seed=4) == whole
    assert paired_bootstrap(ours, baseline, draws=500, seed=5) != whole


def test_bootstrap_limits():
    assert paired_bootstrap([1, 0, 1], [1, 0, 1]) == significance.Comparison(1.0, 0.0, (0.0, 0.0))
    assert paired_bootstrap([1] * 30, [0] * 30, draws=99).p_value == 1 / 100  # no draw of the moved values is as large
    ours = pd.Series([1.0, 0.0, 0.5], index=["a", "b", "c"])
    baseline = pd.Series([0.2, 0.4, 0.9], index=["c", "b", "a"])
    assert paired_bootstrap(ours, baseline) == paired_bootstrap([1, 0, 0.5], [0.9, 0.4, 0.2])


@pytest.mark.parametrize(("ours", "baseline"), [([5, 6, 7], [1, 2, 3]), ([1, 2, 3], [5, 6, 7]), ([1, 2, 3], [1, 2, 4])])
def test_the_sign_says_what_the_p_value_says(ours, baseline):
    got = student_t(ours, baseline)
    assert got.sign == (np.sign(got.difference) if stats.ttest_ind(ours, baseline).pvalue < 0.05 else 0)


@pytest.mark.parametrize(("right", "questions"), [(61, 68), (0, 68), (68, 68), (186, 237), (826, 1336)])
def test_proportion_interval_equals_scipy(right, questions):
    theirs = stats.binomtest(right, questions).proportion_ci(0.95, method="wilson")
    assert significance.proportion_interval(right / questions, questions) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(("questions", "lost"), [(68, 0), (68, 3), (40, 10), (12, 1), (4, 0)])
def test_smallest_gain_is_that_of_the_exact_distribution(questions, lost):
    assert smallest_gain(questions, lost) == traced_gains.smallest_gain(questions, lost)


@pytest.mark.parametrize(("questions", "lost"), [(68, 0), (237, 5)])
def test_smallest_gain_is_what_the_bootstrap_sees(questions, lost):
    gain = smallest_gain(questions, lost)
    for extra, seen in ((2, 1), (-2, 0)):  # away from the border, where ten thousand draws settle it
        deltas = np.repeat([1, 0, -1], [gain + lost + extra, questions - gain - 2 * lost - extra, lost])
        assert paired_bootstrap(deltas, np.zeros(questions)).sign == seen


# ------------------------------------------------------------------ many tests


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, level):
    """As Holm wrote it: from the smallest on, compare with level / (number of those left), and stop at the first that is larger."""
    rejected = set()
    for number, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] * (len(p_values) - number) > level:
            break
        rejected.add(place)
    adjusted = holm(p_values)
    assert {place for place, value in enumerate(adjusted) if value <= level} == rejected
    assert all(given <= value <= 1 for given, value in zip(p_values, adjusted))


def test_one_draw_is_enough_to_ask_for():
    assert paired_bootstrap([1.0, 0.0], [0.0, 0.0], draws=1).p_value in (0.5, 1.0)
    assert 0 < significance.randomisation([1.0, 0.5], [0.0, 0.0], draws=1) <= 1
    assert significance.randomisation([1.0, 0.5], [0.0, 0.0], draws=4) == 0.5  # four signs can be tried, two of them as far from zero
