"""What the book says of claims on figures without values of questions, counted again as in `traced`."""

from pathlib import Path
from statistics import mean, variance

from scipy import stats

from .recompute_claims import holm, verdict
from .traced import BUDGETS, NAMES, NONE, OWN_TASK, UNTESTABLE, Paper, values


def figure_claims(root: Path, name: str):
    """A line a claim and metric: what is compared, the printed difference, ours, and the verdict."""
    paper = Paper(root, name)
    every = [
        (claim, metric)
        for claim in paper.data.get("figure_claims", ())
        for metric in (claim["metric"] if isinstance(claim["metric"], list) else [claim["metric"]])
    ]
    tests = [_test(paper, claim, metric) for claim, metric in every]
    adjusted = holm([test[2] if test and test[2] is not None else 1.0 for test in tests])
    for place, (claim, metric) in enumerate(every):
        first = claim["metric"] if isinstance(claim["metric"], str) else claim["metric"][0]
        head = [f"{claim['claim']} {claim['where']}"] if metric == first else []
        minus = " and ".join(paper.title(row) for row in claim["minus"])
        minus = f"({minus})" if len(claim["minus"]) > 1 else minus
        rows = f"{' and '.join(paper.title(row) for row in claim['plus'])} − {minus}"
        printed = [[paper.published(row, claim["dataset"], metric) for row in claim[side]] for side in ("plus", "minus")]
        known = None not in [*printed[0], *printed[1]]
        theirs = f"{sum(cell[0] for cell in printed[0]) - sum(cell[0] for cell in printed[1]):+.1f}" if known else NONE
        compared = f"{rows}, {OWN_TASK if claim['dataset'] == 'pretraining' else NAMES[claim['dataset']]}, {NAMES[metric]}"
        yield [*head, compared, f"{theirs} claimed {claim['sign']}", *_told(claim, tests[place], adjusted[place])]


def _test(paper: Paper, claim: dict, metric: str):
    """Difference in points, half the width of its interval, p, seeds and budget; None for a claim whose rows have not all run."""
    for budget in reversed(BUDGETS):
        sides = [[values(paper.of(row, claim["dataset"], (budget,)), metric) for row in claim[side]] for side in ("plus", "minus")]
        samples = [*sides[0], *sides[1]]
        if all(samples):
            difference = round(sum(map(mean, sides[0])) - sum(map(mean, sides[1])), 12)
            seeds = min(map(len, samples))
            if seeds < 2:
                return difference, None, None, seeds, budget
            shares = [variance(sample) / len(sample) for sample in samples]
            error = sum(shares) ** 0.5
            freedom = sum(shares) ** 2 / sum(share**2 / (len(sample) - 1) for share, sample in zip(shares, samples))
            p = 2 * stats.t.sf(abs(difference) / error, freedom)
            return difference, stats.t.ppf(0.975, freedom) * error, p, seeds, budget
    return None


def _told(claim: dict, test, adjusted: float) -> list[str]:
    if test is None:
        return [NONE, "not run"]
    difference, half, p, seeds, budget = test
    origin = f"{seeds} seed{'s' * (seeds > 1)}, {budget}"
    if p is None:
        return [f"{100 * difference:+z.1f} {origin}", f"{UNTESTABLE} one seed: nothing shows how much seeds differ"]
    ends = [100 * (difference - half), 100 * (difference + half)]
    gain = f"{100 * difference:+z.1f} [{ends[0]:+z.1f}, {ends[1]:+z.1f}] {origin}"
    test = {"difference": difference, "low": ends[0], "high": ends[1], "p": p}
    return [gain, verdict(claim, test, adjusted)]
