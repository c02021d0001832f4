"""What a test set can show, and what the plots of differences draw, counted again as in `traced`."""

import itertools
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml
from scipy import stats

from .traced import NAMES, PAPERS, Paper, over_seeds
from .traced_claims import asked, claimed, direction, how_far, printed_tests, tested


def limits(root: Path, name: str):
    """Binomial half-widths, and the smallest gains that a paired bootstrap sees, of every data set with a card and baseline row."""
    paper, by_place = Paper(root, name), {}
    for row, dataset, test in printed_tests(paper):
        by_place.setdefault((dataset, paper.rows[row]["baseline"]), []).append((test[0], row))
    for (dataset, baseline), gains in by_place.items():
        asked = test_questions(root, dataset)
        mean, std = paper.published(baseline, dataset, "p@1")
        most, best = max(gains, key=lambda one: one[0])
        seen = [100 * smallest_gain(asked, lost) / asked for lost in (0, round(asked / 20))]
        cells = [f"{asked:,}", f"{mean:.1f}", f"± {std:.1f}", f"± {half_width(mean / 100, asked):.1f}", *(f"{one:.1f}" for one in seen)]
        yield [f"{NAMES[dataset]}, {paper.title(baseline)}", *cells, f"{100 * most:+.1f} {paper.title(best)}"]


def test_questions(root: Path, dataset: str) -> int:
    """From the data set's card."""
    card = yaml.safe_load((root / "data_cards" / f"{dataset}.md").read_text("utf-8").split("---")[1])
    return card["counts"]["clean"]["test"]["questions"]


def half_width(share: float, asked: int) -> float:
    """Half of Wilson's 95 % interval, in points."""
    z = stats.norm.ppf(0.975)
    return 100 * z * np.sqrt(share * (1 - share) / asked + (z / (2 * asked)) ** 2) / (1 + z**2 / asked)


@lru_cache
def smallest_gain(asked: int, lost: int) -> int:
    """By the exact distribution of the sum of so many draws, each -1, 0 or 1."""
    for gained in itertools.count(lost + 1):
        one = np.array([lost, asked - lost - gained, gained]) / asked
        if power(one, asked)[: asked + 1].sum() < 0.025:
            return gained - lost


def power(one: np.ndarray, count: int) -> np.ndarray:
    """The distribution of a sum of independent draws."""
    if count == 1:
        return one
    half = power(one, count // 2)
    return np.convolve(np.convolve(half, half), one) if count % 2 else np.convolve(half, half)


# ------------------------------------------------------------------ plots


def gains(root: Path, name: str) -> dict[str, list]:
    """What the plot of the printed gains draws: intervals, differences, and the smallest gain of each data set, in points."""
    paper = Paper(root, name)
    tests = printed_tests(paper)
    dashed = [100 * smallest_gain(asked, 0) / asked for asked in {test_questions(root, dataset) for _, dataset, _ in tests}]
    return plotted([test for *_, test in tests]) | {"dashed": sorted(dashed)}


def own_gains(root: Path, name: str) -> dict[str, list]:
    """The same of our differences, each with the interval over seeds and the one over questions."""
    paper, tests = Paper(root, name), []
    for claim in paper.claims():
        _, (ours, theirs, seeds), asked, reason = claimed(paper, claim)
        if seeds and not reason:
            tests += filter(None, (over_seeds(ours, theirs, claim["metric"]), asked))
    return plotted(tests) | {"dashed": []}


def last_tested(paper: Paper):
    """(claim, test) of each claim that was tested, by the last of its metrics, on the paper's own data sets and on ours."""
    last = {claim["id"]: claim["metric"] for claim in paper.claims()}
    for every in (asked(paper, laptop=False), asked(paper, laptop=True)):
        for claim, (_, _, test, _) in (every[place] for place in tested(every)):
            if claim["metric"] == last[claim["id"]]:
                yield claim, test


def overview(root: Path) -> dict[str, list]:
    """What the plot of all claims draws: each difference in its claimed direction."""
    tests = []
    for name in PAPERS:
        for claim, (mean, low, high, p_value) in last_tested(Paper(root, name)):
            tests.append((mean, low, high, p_value) if claim["sign"] == "+" else (-mean, -high, -low, p_value))
    return plotted(tests) | {"dashed": []}


def answer(root: Path):
    """How many tested claims came out how, and how many tests still show after the adjustment."""
    words, kept, tests, families, weaker = Counter(), Counter(), 0, 0, 0
    for name in PAPERS:
        paper = Paper(root, name)
        words.update(direction(claim, test) for claim, test in last_tested(paper))
        for every in (asked(paper, laptop=False), asked(paper, laptop=True)):
            families += len(tested(every)) > 0
            for place, adjusted in tested(every).items():
                claim, (_, _, test, _) = every[place]
                tests += 1
                kept[direction(claim, test)] += how_far(every[place], adjusted) == "finding"
            weaker += weaker_over_seeds(every)
    yield (
        f"We could test a claim of these papers {words.total()} times, with small models: {words['shows']} times it shows, "
        f"{words['unclear']} times it cannot be told from chance, and {words['opposite']} times the opposite shows. "
        f"Some claims are tested on two metrics, which makes {tests} tests. {kept['shows']} of them are findings as the papers say "
        f"and {kept['opposite']} findings of the opposite: over questions after Holm's adjustment within each of {families} families "
        f"of tests, one a paper and kind of questions, and over seeds. The test over seeds is not adjusted: if it were, {weaker} of these "
        "findings would be hints."
    )


def weaker_over_seeds(every: list) -> int:
    """Findings of a family that would be hints if Student's p were adjusted, too: Holm's steps down, until one test fails."""
    places, p_values = tested(every), {}
    for place in places:
        claim, (_, (ours, other, _), _, _) = every[place]
        seeds = over_seeds(ours, other, claim["metric"])
        if seeds:
            p_values[place] = seeds[3]
    order, passed = sorted(p_values, key=p_values.get), set()
    for step, place in enumerate(order):
        if p_values[place] >= 0.05 / (len(order) - step):
            break
        passed.add(place)
    return sum(how_far(every[place], holm) == "finding" for place, holm in places.items() if place in p_values.keys() - passed)


def claims_plot(root: Path, name: str) -> dict[str, list]:
    """What the plot of a paper's claims draws: the printed difference of each that was tested, and ours at one or both kinds of budget."""
    paper, printed, ours = Paper(root, name), {}, []
    last = {claim["id"]: claim for claim in paper.claims()}
    for claim, test in last_tested(paper):
        ours.append(test)
        printed[claim["id"]] = printed_test(paper, last[claim["id"]])
    return plotted([*filter(None, printed.values()), *ours]) | {"dashed": []}


def printed_test(paper: Paper, claim: dict):
    """(difference, low, high, p) of two printed cells; without an interval where no deviation is printed, None without figures."""
    cells = [paper.published(claim[row], claim["dataset"], claim["metric"]) for row in ("row_a", "row_b")]
    if None in cells:
        return None
    apart, runs = (cells[0][0] - cells[1][0]) / 100, paper.data.get("runs")
    if not runs or min(map(len, cells)) < 2:
        return apart, None, None, None
    (mean, std), (other, other_std) = cells
    test = stats.ttest_ind_from_stats(mean, std, runs, other, other_std, runs)
    half = stats.t.ppf(0.975, 2 * runs - 2) * np.sqrt((std**2 + other_std**2) / runs) / 100
    return apart, apart - half, apart + half, test.pvalue


def plotted(tests: list[tuple]) -> dict[str, list]:
    return {
        "intervals": sorted((100 * low, 100 * high) for _, low, high, _ in tests if low is not None),
        "differences": sorted(100 * difference for difference, *_ in tests),
    }
