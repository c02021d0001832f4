"""The test over questions and seeds: by hand, against sums of squares in plain loops, against scipy where one source is
all there is, and how often it errs where there is no difference.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from asutil.metrics.rankings import of
from asutil.metrics.significance import Comparison, paired_bootstrap
from asutil.metrics.two_sources import SeedVariance, over_questions_and_seeds, seed_variance, smallest_effect

RESULTS = Path(__file__).resolve().parents[2] / "results"


def layout(rng, seeds: int, questions: int, between: float, residual: float, level: float = 0.0, each=0.0) -> np.ndarray:
    """Values of seeds x questions, drawn from their components; `each`: one value a question that all seeds share."""
    effects = rng.normal(0, between**0.5, (seeds, 1))
    return level + each + effects + rng.normal(0, residual**0.5, (seeds, questions))


def test_two_seeds_and_three_questions_by_hand():
    """Seeds' means .5 and .75, v = 1/32; residuals 0, +-1/8, e = 1/32; so w = 1/32 - 1/96 = 1/48.

    d = 3/8, 0, 1/2 with mean 7/24 and variance 13/192; V = 13/576 + 1/96 = 19/576.
    """
    ours, baseline = [[0.25, 0.5, 0.75], [0.5, 0.5, 1.25]], [0, 0.5, 0.5]
    own = (1 / 48) ** 2 / ((1 / 32) ** 2 / 1 + (1 / 96) ** 2 / 2)
    assert seed_variance(ours) == SeedVariance(pytest.approx(1 / 48), pytest.approx(own), 1)
    freedom = (19 / 576) ** 2 / ((13 / 576) ** 2 / 2 + (1 / 96) ** 2 / own)
    error = (19 / 576) ** 0.5
    tested = over_questions_and_seeds(ours, baseline)
    assert tested.difference == pytest.approx(7 / 24)
    assert tested.p_value == pytest.approx(2 * stats.t(freedom).sf(7 / 24 / error))
    reach = stats.t(freedom).ppf(0.975) * error
    assert tested.interval == pytest.approx((7 / 24 - reach, 7 / 24 + reach))
    assert stats.nct(freedom, smallest_effect(ours, baseline) / error).cdf(reach / error) == pytest.approx(0.2, abs=1e-4)


def slow(ours, baseline, borrowed=None):
    """Difference, standard error, degrees of freedom: mean squares of the two-way layout in plain loops."""
    questions = len(ours[0])
    mean = lambda values: sum(values) / len(values)
    by_question = lambda table: [mean([line[q] for line in table]) for q in range(questions)]
    apart = [a - b for a, b in zip(by_question(ours), by_question(baseline))]
    squares = [(sum((d - mean(apart)) ** 2 for d in apart) / (questions - 1), 1 / questions, questions - 1)]
    few = [len(table) for table in (ours, baseline) if len(table) < (3 if borrowed else 2)]
    for table in (ours, baseline):
        seeds = len(table)
        if seeds not in few:
            grand, each = mean([mean(line) for line in table]), [mean(line) for line in table]
            of_seeds = questions * sum((m - grand) ** 2 for m in each)
            of_questions = seeds * sum((m - grand) ** 2 for m in by_question(table))
            rest = sum((value - grand) ** 2 for line in table for value in line) - of_seeds - of_questions
            of_seeds, rest = of_seeds / (seeds - 1), rest / ((seeds - 1) * (questions - 1))
            if of_seeds > rest:
                squares.append((of_seeds, 1 / (seeds * questions), seeds - 1))
                squares.append((rest, -1 / (seeds * questions), (seeds - 1) * (questions - 1)))
    if borrowed and borrowed.variance:
        squares.append((borrowed.variance, sum(1 / seeds for seeds in few), borrowed.freedom))
    variance = sum(square * weight for square, weight, _ in squares)
    freedom = variance**2 / sum((square * weight) ** 2 / f for square, weight, f in squares)
    return mean(apart), variance**0.5, min(freedom, borrowed.most) if few else freedom


@pytest.mark.parametrize(
    ("seeds", "others", "borrowed"),
    [
        *((3, 3, None), (5, 3, None), (2, 5, None)),
        *((1, 3, SeedVariance(0.02, 8)), (3, 1, SeedVariance(0.001, 3.5)), (1, 1, SeedVariance(0.02, 8))),
        *((1, 3, SeedVariance(0.001, 1.4, 2)), (1, 1, SeedVariance(0, 0, 4))),
        *((2, 1, SeedVariance(0.02, 3, 4)), (2, 2, SeedVariance(0.001, 3, 4)), (2, 5, SeedVariance(0.02, 8)), (2, 2, None)),
    ],
)
@pytest.mark.parametrize("between", [0, 0.003, 0.3])
def test_equals_mean_squares_in_loops(seeds, others, borrowed, between):
    rng = np.random.default_rng(seeds * 10 + others)
    ours, baseline = layout(rng, seeds, 12, between, 0.04, 0.1), layout(rng, others, 12, between, 0.09)
    difference, error, freedom = slow(ours.tolist(), baseline.tolist(), borrowed)
    tested = over_questions_and_seeds(ours.tolist(), baseline, borrowed)
    reach = stats.t(freedom).ppf(0.975) * error
    assert tested.difference == pytest.approx(difference)
    assert tested.p_value == pytest.approx(2 * stats.t(freedom).sf(abs(difference) / error))
    assert tested.interval == pytest.approx((difference - reach, difference + reach))
    assert smallest_effect(ours, baseline, borrowed) > reach


def test_variance_of_seeds_is_pooled_over_systems():
    """Of two systems with one number of seeds it is the mean of both, before a negative one is cut off at 0."""
    rng = np.random.default_rng(4)
    tables = [layout(rng, 3, 20, 0.5, 0.1) for _ in range(2)]
    both, each = seed_variance(*tables), [seed_variance(table) for table in tables]
    assert both.variance == pytest.approx(np.mean([one.variance for one in each]))
    doubled = seed_variance(tables[0], tables[0])
    assert (doubled.variance, doubled.freedom) == (pytest.approx(each[0].variance), pytest.approx(2 * each[0].freedom))
    centred = tables[0] - tables[0].mean(axis=1, keepdims=True)
    assert seed_variance(centred) == SeedVariance(0, 0, 2)
    assert 0 < seed_variance(centred, tables[1]).variance < each[1].variance / 2


# ------------------------------------------------------------------ laws


def test_equals_the_paired_t_test_where_seeds_add_nothing():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=15)
    tables = [layout(rng, 3, 15, 0, 0.2, level, shared) for level in (0.2, 0)]
    tables = [table - table.mean(axis=1, keepdims=True) + table.mean() for table in tables]  # equal seeds' means
    theirs = stats.ttest_rel(*(table.mean(axis=0) for table in tables))
    interval = pytest.approx(tuple(theirs.confidence_interval(0.95)))
    without_seeds = [table.mean(axis=0) for table in tables]
    single = [mean[None] for mean in without_seeds]
    for ours, baseline, borrowed in ((*tables, None), (*without_seeds, None), (*single, SeedVariance(0, 0))):
        tested = over_questions_and_seeds(ours, baseline, borrowed)
        assert (tested.p_value, tested.interval) == (pytest.approx(theirs.pvalue), interval)


def test_equals_welchs_test_where_questions_add_nothing():
    rng = np.random.default_rng(2)
    means = [rng.normal(0.8, 0.02, 3), rng.normal(0.7, 0.05, 5)]
    tables = [np.repeat(each[:, None], 9, axis=1) for each in means]
    theirs = stats.ttest_ind(*means, equal_var=False)
    tested = over_questions_and_seeds(*tables)
    assert tested.p_value == pytest.approx(theirs.pvalue)
    assert tested.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    alone = stats.ttest_1samp(means[0], 0.7)  # an untrained encoder
    assert over_questions_and_seeds(tables[0], np.full(9, 0.7)).p_value == pytest.approx(alone.pvalue)


def test_questions_are_matched_by_their_names():
    """Of Series, in any order: of a system with seeds, of one without, and of a table of values by question."""
    draw, numbers = np.random.default_rng(5), lambda test: [test.p_value, test.difference, *test.interval]
    ours, untrained = draw.random((2, 9)), draw.random(9)
    names = [f"q{n}" for n in range(9)]
    seeds, other = [pd.Series(values, names) for values in ours], pd.Series(untrained, names)
    mixed = over_questions_and_seeds([seeds[0][::-1], seeds[1].sample(frac=1, random_state=1)], other[::-1])
    assert numbers(mixed) == pytest.approx(numbers(over_questions_and_seeds(ours, untrained)))
    assert smallest_effect(seeds, other[::-1]) == pytest.approx(smallest_effect(ours, untrained))
    assert seed_variance([seeds[0], seeds[1][::-1]]) == seed_variance(ours) != seed_variance([ours[0], ours[1][::-1]])
    for wrong in ((seeds, other[1:]), ([seeds[0], seeds[1][1:]], other)):
        with pytest.raises(ValueError, match="do not have the same questions"):
            over_questions_and_seeds(*wrong)
    ids, labels = np.repeat(names, 3), [0, 1, 0] * 9
    tables = [pd.DataFrame({"question_id": ids, "label": labels, "score": draw.random(27)}) for _ in range(2)]
    values = [[of(table).per_question.average_precision for table in (tables[0], second)] for second in (tables[1], tables[1][::-1])]
    assert paired_bootstrap(*values[0]) == paired_bootstrap(*values[1]) and len(values[0][0]) == 9


def test_two_systems_with_one_seed_share_one_estimate():
    """V is twice the borrowed variance, and has its degrees of freedom, not twice as many."""
    tested = over_questions_and_seeds(np.full((1, 9), 0.3), np.zeros((1, 9)), SeedVariance(0.02, 4))
    assert tested.p_value == pytest.approx(2 * stats.t(4).sf(0.3 / 0.2))


@pytest.mark.parametrize("borrowed", [None, SeedVariance(0.01, 6)])
def test_order_sign_and_scale(borrowed):
    rng = np.random.default_rng(3)
    ours, baseline = layout(rng, 1 if borrowed else 4, 11, 0.1, 0.2, 0.4), layout(rng, 3, 11, 0.02, 0.3)
    tested, order = over_questions_and_seeds(ours, baseline, borrowed), rng.permutation(11)
    same = Comparison(pytest.approx(tested.p_value), pytest.approx(tested.difference), pytest.approx(tested.interval))
    assert over_questions_and_seeds(ours[:, order], baseline[:, order], borrowed) == same
    assert over_questions_and_seeds(ours[::-1], baseline[[2, 0, 1]], borrowed) == same
    assert over_questions_and_seeds(ours + 0.5, baseline + 0.5, borrowed) == same
    low, high = tested.interval
    turned = Comparison(pytest.approx(tested.p_value), pytest.approx(-tested.difference), pytest.approx((-high, -low)))
    assert over_questions_and_seeds(baseline, ours, borrowed) == turned
    assert smallest_effect(baseline, ours, borrowed) == pytest.approx(smallest_effect(ours, baseline, borrowed))
    points = borrowed and SeedVariance(100**2 * borrowed.variance, borrowed.freedom)
    larger = over_questions_and_seeds(100 * ours, 100 * baseline, points)
    assert larger.p_value == pytest.approx(tested.p_value) and larger.interval == pytest.approx((100 * low, 100 * high))
    assert over_questions_and_seeds(ours, baseline[:, order], borrowed).p_value != pytest.approx(tested.p_value)


def test_without_any_variance():
    flat = np.full((2, 3), 0.5)
    assert over_questions_and_seeds(flat, [0.5] * 3) == Comparison(1.0, 0.0, (0.0, 0.0))
    assert over_questions_and_seeds(flat, [0.25] * 3) == Comparison(0.0, 0.25, (0.25, 0.25))
    assert smallest_effect(flat, [0.25] * 3) == 0
    ours = np.random.default_rng(0).random(237)  # means of 3 and of 10 equal numbers differ in their last bit
    for baseline in (ours, np.tile(ours, (10, 1))):
        assert over_questions_and_seeds(np.tile(ours, (3, 1)), baseline) == Comparison(1.0, 0.0, (0.0, 0.0))


@pytest.mark.parametrize(
    ("ours", "baseline", "said"),
    [
        ([[1, 2]], [[0, 1], [1, 1]], "^ours: one seed cannot show how much seeds differ: give more seeds, or"),
        ([[1, 2]], [[0, 1]], "^ours and baseline: one seed cannot show"),
        ([[1, 2], [1, 3]], [0, 1, 2], "same questions of both systems, two questions at least: got 2 and 3"),
        ([[1], [2]], [0], "two questions at least: got 1 and 1"),
        ([[1, 2], [1, float("nan")]], [0, 1], "ours: finite numbers expected, got nan in line 2, question 2"),
        ([0, 1], [0, float("inf")], "baseline: finite numbers expected, got inf in line 1, question 2"),
        ([[1, 2]], [], r"baseline: one value a question, or seeds x questions, expected: got the shape \(0,\)"),
        ([[1, 2]], 0.5, r"baseline: .* got the shape \(\)"),
    ],
)
def test_refuses(ours, baseline, said):
    for ask in (over_questions_and_seeds, smallest_effect):
        with pytest.raises(ValueError, match=said):
            ask(ours, baseline)


@pytest.mark.parametrize(("systems", "came"), [([], "no system"), ([[[1, 2]]], "1 x 2"), ([np.eye(2), np.ones((2, 3))], "2 x 2, 2 x 3")])
def test_a_variance_of_seeds_refuses(systems, came):
    with pytest.raises(ValueError, match=f"two seeds or more with the same two questions or more, .*: {came}"):
        seed_variance(*systems)


# ------------------------------------------------------------------ how often it errs


def values_of_records(paper: str, rows: str, place: str) -> list[np.ndarray]:
    """Average precision of each row with three committed seeds or more: seeds x questions."""
    tables = []
    for folder in sorted((RESULTS / paper).glob(rows)):
        files = sorted(folder.glob(f"{place}-seed*.json"))
        each = [{name: value for name, _, value, _ in json.loads(file.read_text())["per_question"]} for file in files]
        if len(each) > 2:
            tables.append(np.array([[values[name] for name in each[0]] for values in each]))
    return tables


def components(tables: list[np.ndarray]) -> dict[str, float]:
    """Of these rows: the variance between seeds, the residual variance, that of a difference's questions, and the sum of S - 1."""
    freedom, questions = sum(len(table) - 1 for table in tables), tables[0].shape[1]
    pooled = lambda squares: sum((len(table) - 1) * square for table, square in zip(tables, squares)) / freedom
    rests = [table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean() for table in tables]
    residual = pooled([(rest**2).sum() / (len(rest) - 1) / (questions - 1) for rest in rests])
    between = max(0, pooled([table.mean(axis=1).var(ddof=1) for table in tables]) - residual / questions)
    apart = [
        (table.mean(axis=0) - other.mean(axis=0)).var(ddof=1) - residual * (1 / len(table) + 1 / len(other))
        for number, table in enumerate(tables)
        for other in tables[:number]
    ]
    return {"between": between, "residual": residual, "questions": float(np.median(apart)), "freedom": freedom}


RECORDS = {  # seeds of Granite hardly differ, those of MiniLM differ more than its questions do
    "granite": ("sentence_objectives", "roberta_*", "pydocs-laptop"),
    "minilm": ("joint_inference", "*_k", "wikiqa-small"),
}
TIMES = 2000  # a share of .05 has a standard error of .005


def drawn(rng, group: str, seeds: tuple, difference: float = 0.0, lenders: tuple = ()):
    """Two systems and what a single seed borrows, from normal draws with the variances of committed records; 0 seeds: untrained.

    `lenders`: the seeds of each system that lends; by default as many degrees of freedom as the records have.
    """
    tables = values_of_records(*RECORDS[group])
    variance, questions = components(tables), tables[0].shape[1]
    assert len(tables) > 3 and variance["freedom"] >= 8
    shape = variance["between"], variance["residual"]
    while True:
        apart = rng.normal(difference, variance["questions"] ** 0.5, questions)
        shared = (apart, np.zeros(questions))
        systems = [layout(rng, count, questions, *shape, each=each) if count else each for count, each in zip(seeds, shared)]
        lent = [layout(rng, count, questions, *shape) for count in lenders or [variance["freedom"] + 1] if {1, 2}.intersection(seeds)]
        borrowed = seed_variance(*lent) if lent else None
        yield *systems, borrowed


def share(draws, times: int = TIMES) -> float:
    """Of the significant tests; these are the ones whose interval leaves out 0."""
    tests = [over_questions_and_seeds(*next(draws)) for _ in range(times)]
    significant = [tested.p_value < 0.05 for tested in tests]
    assert significant == [tested.sign != 0 for tested in tests]
    return float(np.mean(significant))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(2, 2), (2, 3), (3, 3), (3, 5), (5, 5), (1, 3), (1, 1)])
@pytest.mark.parametrize("group", RECORDS)
def test_errs_in_five_of_a_hundred_where_there_is_no_difference(group, seeds):
    """MAP of two rows whose seeds vary alike; the 95 % interval has the true difference in the other 95."""
    assert 0.02 < share(drawn(np.random.default_rng(sum(seeds)), group, seeds)) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "others"), [(1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("between", [0.0, 0.005, 0.03])
def test_seeds_that_agree_by_chance_decide_nothing(seeds, others, between):
    """A row with few seeds borrows from all of them; by the degrees of freedom of Satterthwaite alone it errs up to 15 times in 100."""
    rng, p_values = np.random.default_rng(others), []
    for _ in range(TIMES):
        ours, baseline = (layout(rng, count, 400, between**2, 0.02) for count in (seeds, others))
        limited = seed_variance(*(table for table in (ours, baseline) if len(table) > 1))
        each = (limited, replace(limited, most=np.inf) if seeds == 1 else None)
        p_values.append([over_questions_and_seeds(ours, baseline, lent).p_value for lent in each])
    limited, unlimited = np.transpose(p_values)
    assert np.mean(limited < 0.05) <= 0.06 and np.mean(limited < 0.005) <= 0.01
    assert (seeds, others) != (1, 2) or between == 0 or 0.06 < np.mean(unlimited < 0.05) < 0.16
    assert (seeds, others) != (2, 2) or between < 0.03 or 0.01 < np.mean(unlimited < 0.005) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(1, 3), (1, 1)])
def test_errs_no_more_often_where_two_rows_with_three_seeds_lend(seeds):
    """As few as there are in the records. The limit errs on the careful side where questions vary more."""
    assert 0.01 < share(drawn(np.random.default_rng(1), "minilm", seeds, lenders=(3, 3)), 4 * TIMES) <= 0.06


def test_errs_more_often_where_one_row_has_almost_all_variance():
    """Against an untrained encoder, with three seeds that differ more than questions do; more seeds mend it."""
    three, eight = (share(drawn(np.random.default_rng(1), "minilm", (seeds, 0))) for seeds in (3, 8))
    assert 0.06 < three < 0.09 and eight <= 0.06


def exact(rng, seeds: int, questions: int, between: float, residual: float, each) -> np.ndarray:
    """As `layout`, with exactly these components in the sample."""
    table = layout(rng, seeds, questions, 1, 1)
    rests = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    rests *= (residual * (seeds - 1) * (questions - 1) / (rests**2).sum()) ** 0.5
    effects = table.mean(axis=1, keepdims=True) - table.mean()
    effects *= ((between + residual / questions) / effects.var(ddof=1)) ** 0.5
    return each + effects + rests


@pytest.mark.parametrize("seeds", [0, 5])
def test_the_smallest_effect_is_seen_in_four_of_five_samples(seeds):
    """Exact for a t test over 12 questions; with seeds the degrees of freedom of a sample are an estimate."""
    rng, questions, between, residual = np.random.default_rng(seeds), 12 + 8 * seeds, 0.01, 0.3
    each = rng.normal(size=questions)
    each = (each - each.mean()) / each.std(ddof=1)
    if not seeds:
        effect = smallest_effect(each, np.zeros(questions))
        systems = lambda: (effect + rng.normal(size=questions), np.zeros(questions), None)
    else:
        # The mean over seeds of `exact` is `each`, in which the residual of seeds is not: it is added to its variance.
        scale = (1 + 2 * residual / seeds) ** 0.5
        effect = smallest_effect(*(exact(rng, seeds, questions, between, residual, shared) for shared in (scale * each, 0)))
        systems = lambda: (
            layout(rng, seeds, questions, between, residual, effect, rng.normal(size=questions)),
            layout(rng, seeds, questions, between, residual),
            None,
        )
    significant = share(iter(systems, None))
    assert significant == pytest.approx(0.8, abs=0.03)
