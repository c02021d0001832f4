"""What a test set can show, and what the plots of differences draw, counted again as in `traced`."""

import itertools
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml
from scipy import stats

from .traced import NAMES, Paper, over_questions, over_seeds
from .traced_claims import compared, headlines, printed_tests
from .traced_verdicts import Judged, judged, told


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
    for one in (told(paper, claim) for claim in paper.claims()):
        if one.seeds and not one.reason:
            tests += [test(one.ours, one.other, one.claim["metric"]) for test in (over_seeds, over_questions)]
    return plotted(list(filter(None, tests))) | {"dashed": []}


def overview(root: Path) -> dict[str, list]:
    """What the plot of the headline claims draws: the printed difference of each that was tested, and ours."""
    return plotted([test for paper, one in headlines(root) for test in both(paper, [one])]) | {"dashed": []}


def claims_plot(root: Path, name: str) -> dict[str, list]:
    """What the plot of a paper's claims draws: the printed difference of each that was tested, and ours."""
    paper = Paper(root, name)
    return plotted(both(paper, judged(paper))) | {"dashed": []}


def both(paper: Paper, every: list[Judged]) -> list[tuple]:
    """The printed test of each claim that was tested, once, and ours."""
    own = {one.told.claim["id"]: one.told.claim for one in every if one.family != "laptop"}
    tests = {}
    for one in every:
        if one.adjusted is not None:
            claim = own.get(one.told.claim["id"], one.told.claim)
            tests[compared(paper, claim), "printed"] = printed_test(paper, claim)
            tests[compared(paper, claim), one.family == "laptop"] = one.told.primary
    return [test for test in tests.values() if test]


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
        "intervals": sorted((100 * low, 100 * high) for _, low, high, *_ in tests if low is not None),
        "differences": sorted(100 * difference for difference, *_ in tests),
    }
