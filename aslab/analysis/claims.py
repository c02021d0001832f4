"""The verdict on every claim of the papers: one test over questions and training seeds, Holm's adjustment, one word."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from asutil.io import disk
from asutil.metrics import significance
from asutil.metrics.significance import Comparison
from asutil.metrics.two_sources import LEVEL

from .. import commands, papers
from ..records import COMMITTED, split
from . import comparisons, testable
from .comparisons import Outcome

MARGIN = 0.01  # a smaller difference does not matter: one point
SUPPORTED, SUGGESTIVE, INCONCLUSIVE = "supported", "suggestive", "inconclusive"
NO_EFFECT, REVERSED, NOT_RUN = "no effect beyond 1 point", "reversed", "not run"
VERDICTS = (SUPPORTED, SUGGESTIVE, INCONCLUSIVE, NO_EFFECT, REVERSED, testable.VERDICT, NOT_RUN)
PYDOCS = "laptop"  # the budget whose claims are about pydocs
COLUMNS = (
    "paper claim family row_a row_b sign dataset budget metric sample questions seeds difference low high p p_holm tests "
    "verdict stated reason smallest_effect printed effect_ratio ratio_low ratio_high records"
).split()


class Judged(NamedTuple):
    """A claim by its primary metric, with p after Holm's adjustment over its family; None where nothing was tested.

    `family` is the smallest budget that plans the claim's rows: laptop for pydocs, else small, gpu or paper.
    """

    outcome: Outcome
    family: str
    adjusted: float | None

    @property
    def word(self) -> str:
        if self.outcome.reason:
            return testable.VERDICT
        return verdict(self.outcome.claim["sign"], self.outcome.primary, self.adjusted)

    @property
    def sample(self) -> str:
        """The split of the questions that decided."""
        if self.outcome.pooled:
            return "dev and test"
        return split(next(self.outcome.where.of(self.outcome.claim["row_a"]).itertuples()))


def verdict(sign: str, test: Comparison | None, adjusted: float | None) -> str:
    """The word on a claimed difference.

    supported: p after Holm < .05, as claimed; reversed: the same, the other way; suggestive: p < .05 before Holm alone,
    as claimed; no effect beyond 1 point: the 95 % interval lies between -1 and +1 point; inconclusive: anything else
    Example:
        >>> verdict("+", Comparison(0.03, 0.02, (0.002, 0.038)), adjusted=0.3)
        'suggestive'
    """
    if test is None:
        return NOT_RUN
    as_claimed = (test.difference > 0) == (sign == "+")
    if adjusted < LEVEL:
        return SUPPORTED if as_claimed else REVERSED
    if test.p_value < LEVEL and as_claimed:
        return SUGGESTIVE
    return NO_EFFECT if max(map(abs, test.interval)) < MARGIN else INCONCLUSIVE


def judged(data: dict, runs: pd.DataFrame) -> list[Judged]:
    """Every claim of a paper by its primary metric, and after them those of its data sets that budget laptop asks of pydocs.

    Holm's adjustment is over all claims that a budget plans, whatever came out: a claim that is not run or not testable has
    p = 1. Hypotheses that were stated later, for one budget on one day, are adjusted among themselves.

    Args:
        runs: the paper's records; those of this machine are left out.
    """
    known = _KNOWN.get(data["slug"])
    if not known or known[0] is not runs or known[1] is not data:
        _KNOWN[data["slug"]] = known = (runs, data, _judged(data, runs[runs.source == COMMITTED]))
    return known[2]


_KNOWN: dict[str, tuple] = {}  # the last of each paper with what it follows from: a page after the other asks for it


def _judged(data: dict, runs: pd.DataFrame) -> list[Judged]:
    primary = papers.primary_metrics(data)
    decided = lambda claims: [claim for claim in claims if claim["metric"] == primary[claim["id"]]]
    own = [(papers.first_budget(data, claim) or "paper", claim) for claim in decided(papers.claims(data))]
    tests = {PYDOCS: on_pydocs}
    asked = [(family, tests.get(family, comparisons.outcome)(data, runs, claim)) for family, claim in own]
    if PYDOCS in data.get("budgets", {}):
        asked += [(PYDOCS, on_pydocs(data, runs, claim)) for claim in decided(papers.claims_asked(data, PYDOCS))]
    families = {}
    for family, outcome in asked:
        families.setdefault((family, outcome.claim.get("stated")), []).append(outcome)
    every = []
    for (family, _), outcomes in families.items():
        tested = [outcome.primary is not None and not outcome.reason for outcome in outcomes]
        p_values = [one.primary.p_value if is_tested else 1.0 for one, is_tested in zip(outcomes, tested)]
        adjusted = zip(outcomes, tested, significance.holm(p_values))
        every += [Judged(one, family, p_value if is_tested else None) for one, is_tested, p_value in adjusted]
    return every


def headline() -> list[tuple[dict, Judged]]:
    """(paper's file, claim) of every claim that the papers' files name as `headline`, on their own data sets."""
    every = []
    for paper in papers.PAPERS:
        data, runs = comparisons.rows_and_runs(paper)
        every += [(data, one) for one in headline_of(data, runs)]
    return every


def headline_of(data: dict, runs: pd.DataFrame) -> list[Judged]:
    """The headline claims of one paper, on its own data sets."""
    chosen = data.get("headline", ())
    return [one for one in judged(data, runs) if one.outcome.claim["id"] in chosen and one.family != PYDOCS]


def counted(every: list[Judged]) -> str:
    """How many claims have which verdict: `22 claims: 2 suggestive, 5 inconclusive, 15 not run`."""
    words = Counter(one.word for one in every)
    return f"{len(every)} claims: " + ", ".join(f"{words[word]} {word}" for word in VERDICTS if words[word])


def on_pydocs(data: dict, runs: pd.DataFrame, claim: dict) -> Outcome:
    """A claim as budget laptop asks it."""
    rows = (claim["row_a"], claim["row_b"])
    where = next(comparisons.pairs(runs, *rows, claim["dataset"], (PYDOCS,)), None)
    if where:
        return comparisons.outcome(data, runs, claim, where)
    return Outcome(claim, testable.of_rows(data, rows, claim["dataset"]))


def effect_ratio(data: dict, one: Judged) -> Comparison | None:
    """Our difference over the printed one, with its interval; None on pydocs, where nothing was tested or no difference is printed.

    Paper: Breuer et al., SIGIR 2020. The printed difference counts as known: its own error is not in the interval.
    """
    printed = comparisons.printed_difference(data, one.outcome.claim)
    test = one.outcome.primary
    if one.family == PYDOCS or one.adjusted is None or not printed or not printed.difference:
        return None
    low, high = sorted(end / printed.difference for end in test.interval)
    return Comparison(test.p_value, test.difference / printed.difference, (low, high))


def table() -> pd.DataFrame:
    """`COLUMNS` of every claim of the five papers; differences, effects and printed differences in points."""
    lines = []
    for paper in papers.PAPERS:
        data, runs = comparisons.rows_and_runs(paper)
        every = judged(data, runs)
        sizes = Counter((one.family, one.outcome.claim.get("stated")) for one in every)
        lines += [_line(data, one, sizes[one.family, one.outcome.claim.get("stated")]) for one in every]
    return pd.DataFrame(lines, columns=COLUMNS)


def _line(data: dict, one: Judged, tests: int) -> dict:
    claim, where, test = one.outcome.claim, one.outcome.where, one.outcome.primary
    line = {name: claim.get(name) for name in ("row_a", "row_b", "sign", "dataset", "metric", "stated")}
    line |= {"paper": data["slug"], "claim": claim["id"], "family": one.family, "p_holm": one.adjusted, "tests": tests}
    line |= {"verdict": one.word, "reason": one.outcome.reason or None, "questions": one.outcome.questions or None}
    points = lambda values: [round(100 * value, 3) for value in values]
    if where:
        lines = [line for row in (claim["row_a"], claim["row_b"]) for line in where.of(row).itertuples()]
        own = [of.dataset.rpartition(papers.TRANSFER)[2] for of in lines]
        files = [f"{of.row}/{name}-{of.budget}-seed{of.seed}.json" for of, name in zip(lines, own)]
        line |= {"budget": where.budget, "seeds": len(where.seeds)}
        line["records"] = " ".join(f"results/{data['slug']}/{file}" for file in files)
    if test:
        measured = (test.difference, *test.interval, one.outcome.smallest)
        line |= zip(("difference", "low", "high", "smallest_effect"), points(measured))
        line |= {"sample": one.sample, "p": test.p_value}
    if printed := comparisons.printed_difference(data, claim):
        (line["printed"],) = points([printed.difference])
    if ratio := effect_ratio(data, one):
        ends = (ratio.difference, *ratio.interval)
        line |= zip(("effect_ratio", "ratio_low", "ratio_high"), (round(end, 3) for end in ends))
    return line


def write(to: Path) -> str:
    """Write the table; returns how many claims of each family have which verdict."""
    every = table()
    disk.atomically(to, lambda part: every.to_csv(part, index=False, float_format="%.6g"))
    counts = every.groupby("family", sort=False).verdict.value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[word for word in VERDICTS if word in counts]).to_string()


to = commands.argument("to", "the file to write", type=Path)
command = commands.command(write, to, example="asutil claims results/claims.csv")
