"""One row against another: by the printed figures, over seeds, and over questions."""

import math
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from asutil.metrics import significance
from asutil.metrics.significance import Comparison
from asutil.metrics.two_sources import ENOUGH, SeedVariance, over_questions_and_seeds, seed_variance, smallest_effect

from .. import papers, records, rundir
from ..records import COLUMN_OF, COMMITTED, HERE, no_spread, per_question, values
from ..show.markup import NAMES
from . import testable

TRAINING = ("architecture", "loss", "train_limit")  # settings that change how much the seeds of a row differ


class Outcome(NamedTuple):
    """A claim on one metric, tested with our runs over questions and training seeds.

    `reason` is why it is not testable, `where` the pair of rows; `test` and `dev` are the tests over the questions of
    either split, `pooled` over both, and the last two are None where dev chose something.
    """

    claim: dict
    reason: str
    where: "Pair | None" = None
    test: Comparison | None = None
    dev: Comparison | None = None
    pooled: Comparison | None = None
    questions: int = 0
    smallest: float = math.nan

    @property
    def primary(self) -> Comparison | None:
        """The test that decides: over dev and test where dev chose nothing, else over test."""
        return self.pooled or self.test


class Pair(NamedTuple):
    """Two rows on one data set, from one source at one budget: the seeds that both have, and all its records there.

    The one run of an untrained encoder counts for every seed: it has no spread.
    """

    dataset: str
    source: str
    budget: str
    seeds: list[int]
    lines: pd.DataFrame

    @property
    def shown_budget(self) -> str:
        return records.origin(self.budget, self.source)

    @property
    def seed_words(self) -> str:
        return f"{len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}"

    @property
    def place(self) -> str:
        """Data set, budget and first seed, as a heading of examples."""
        return f"{NAMES.get(self.dataset, self.dataset)}, budget {self.shown_budget}, seed {self.seeds[0]}"

    def of(self, row: str) -> pd.DataFrame:
        """A row's records with the pair's seeds."""
        lines = self.lines[self.lines.row == row]
        return lines if no_spread(lines) else lines[lines.seed.isin(self.seeds)]

    def records_of(self, rows, seed: int) -> list:
        """One record of each row with this seed; an untrained encoder has only one."""
        each = [self.of(row) for row in rows]
        return [next(lines[(lines.seed == seed) | no_spread(lines)].itertuples()) for lines in each]


def pairs(runs: pd.DataFrame, row: str, other: str, dataset: str, budgets=rundir.BUDGETS[1:]):
    """The pairs in which two rows can be compared: committed results first, then by budget, the largest first."""
    lines = runs[runs.dataset == dataset]
    if not {row, other} <= set(lines.row):
        return
    for source in (COMMITTED, HERE):
        for budget in reversed(budgets):
            same = lines[(lines.source == source) & (lines.budget == budget)]
            if seeds := _common_seeds([same[same.row == name] for name in (row, other)]):
                yield Pair(dataset, source, budget, seeds, same)


def _common_seeds(rows: list[pd.DataFrame]) -> list[int]:
    each = [set(lines.seed) for lines in rows]
    spread = [seeds for seeds, lines in zip(each, rows) if not no_spread(lines)]
    return sorted(set.intersection(*(spread or each))) if all(each) else []


def rows_and_runs(paper: str) -> tuple[dict, pd.DataFrame]:
    """A paper's file and its records, which are read again only when a file has changed."""
    root = rundir.root()
    patterns = (f"experiments/{paper}.yml", f"results/{paper}/*/*.json", "runs/*/record.json")
    files = sorted(path for pattern in patterns for path in root.glob(pattern))
    return papers.read(paper), _records(paper, root, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=len(papers.PAPERS))
def _records(paper: str, root: Path, files: tuple) -> pd.DataFrame:
    return records.records(paper)


# ------------------------------------------------------------------ the two tests


def printed_points(published, unit: str) -> tuple[float, float] | None:
    """Mean and std of a published cell in points; None for a cell without a number of its own."""
    scale = 100 if unit == "fraction" else 1
    if isinstance(published, list):
        mean, std = published
        return mean * scale, std * scale
    return (published * scale, 0.0) if isinstance(published, int | float) else None


def printed_difference(data: dict, claim: dict) -> Comparison | None:
    """A claim's two printed cells by Student's t: values from 0 to 1; None where a mean is not printed.

    The interval is NaN where no deviation or number of runs is printed.
    """
    published = (data["rows"][claim[row]]["published"] for row in ("row_a", "row_b"))
    cells = [cells.get(claim["dataset"], {}).get(claim["metric"]) for cells in published]
    points = [printed_points(cell, data["unit"]) for cell in cells]
    if None in points:
        return None
    (mean, std), (other, other_std) = ((mean / 100, std / 100) for mean, std in points)
    if not data.get("runs") or not all(isinstance(cell, list) for cell in cells):
        return Comparison(float("nan"), mean - other, (float("nan"), float("nan")))
    return significance.student_t_from_summary(mean, std, data["runs"], other, other_std, data["runs"])


def over_seeds(pair: Pair, row: str, other: str, metric: str) -> Comparison | None:
    """Student's t of the seeds that both rows have, one row against the other; an untrained encoder is a number.

    None where a trained row has fewer than two seeds, or no row is trained.
    """
    each = [values(pair.of(name), metric) for name in (row, other)]
    untrained = [no_spread(pair.of(name)) for name in (row, other)]
    sizes = [len(seeds) for seeds, fixed in zip(each, untrained) if not fixed]
    if not all(each) or min(sizes, default=0) < 2:
        return None
    return significance.student_t(*(seeds[0] if fixed else seeds for seeds, fixed in zip(each, untrained)))


def over_questions(pair: Pair, row: str, other: str, metric: str, draws: int = 10_000) -> Comparison | None:
    """Paired bootstrap of two rows, a question's value being its mean over their seeds; None for other metrics.

    A question without evidence has no average precision, so it is not drawn where that is compared.
    """
    tables = by_seed((pair.of(row), pair.of(other)), metric)
    return testable.bootstrap(*(tuple(table.mean(axis=1)) for table in tables), draws) if tables else None


class Values(NamedTuple):
    """What `over_questions_and_seeds` takes: the values of two rows of the same questions, and a variance for few seeds."""

    ours: np.ndarray
    baseline: np.ndarray
    borrowed: SeedVariance | None


def values_of(pair: Pair, row: str, other: str, metric: str, of=per_question) -> Values | None:
    """The values of two rows for one test over questions and seeds; None for a metric without values of questions.

    A row with fewer than three seeds borrows its variance: see `lent_variance`.

    Args:
        of: record -> values of every question; where it gives None for one record, so does this function.
    """
    tables = by_seed((pair.of(row), pair.of(other)), metric, of)
    if tables is None:
        return None
    untrained = [no_spread(pair.of(name)) for name in (row, other)]
    each = zip((row, other), tables, untrained)
    few = [name for name, table, fixed in each if len(table.columns) < ENOUGH and not fixed]
    each = [table.to_numpy()[:, 0] if fixed else table.T.to_numpy() for table, fixed in zip(tables, untrained)]
    return Values(*each, lent_variance(pair.lines, few, metric, tables[0].index, of) if few else None)


def lent_variance(lines: pd.DataFrame, borrowers, metric: str, questions, of=per_question) -> SeedVariance | None:
    """The variance between seeds of all rows that were trained like the `borrowers`, with several seeds on the same questions.

    Seeds of rows with another architecture, loss or number of training questions need not vary alike, so these lend nothing.

    Returns: None without such rows, and for borrowers that were not trained alike.
    """
    training = lines.assign(trained=[tuple(map(record["settings"].get, TRAINING)) for record in lines.record])
    like = set(training.trained[training.row.isin(borrowers)])
    alike = training[training.trained.isin(like if len(like) == 1 else ())].groupby("row")
    rows = [own for _, own in alike if len(own) > 1 and not no_spread(own)]
    each = filter(None, (by_seed([own], metric, of) for own in rows))
    same = [table.T for (table,) in each if set(table.index) == set(questions)]
    return seed_variance(*same) if same else None


def by_seed(rows: Iterable[pd.DataFrame], metric: str, of=per_question) -> list[pd.DataFrame] | None:
    """Questions x seeds of the records of each row, all with the questions of the first in its order, without those that have no value.

    None for a metric without values of questions, where a record lacks its column, or where `of` gives None.
    """
    column, tables = COLUMN_OF.get(metric), []
    for lines in rows:
        each = [of(record) for record in lines.itertuples()]
        if any(table is None or column not in table for table in each):
            return None
        for table in each[1:]:
            significance.require_same_questions(each[0][column], table[column])
        tables.append(pd.concat([table[column] for table in each], axis=1).dropna())
        significance.require_same_questions(tables[0], tables[-1])
    return [table.reindex(tables[0].index) for table in tables]


def over_both(pair: Pair, row: str, other: str, metric: str, of=per_question) -> Comparison | None:
    """`tested` of `values_of` two rows."""
    return tested(values_of(pair, row, other, metric, of))


def tested(compared: Values | None) -> Comparison | None:
    """`over_questions_and_seeds` of the values of two rows; None without values, or for one seed without a variance to borrow."""
    if compared is None:
        return None
    one_seed = any(table.ndim == 2 and len(table) < 2 for table in (compared.ours, compared.baseline))
    return None if one_seed and compared.borrowed is None else over_questions_and_seeds(*compared)


def best_rows(data: dict, lines: pd.DataFrame, metric: str) -> list[str]:
    """The row with the highest mean of a metric, and all rows that are not told from it.

    These have a difference to it whose interval over questions has zero, or share no seed with it.

    Args:
        lines: records of some rows on one data set, from one source at one budget; rows that are not testable are left out.
    Returns: nothing for fewer than two such rows, or for a metric without values of questions.
    """
    rows = {row: own for row, own in lines.groupby("row", sort=False) if values(own, metric)}
    each = {row: own for row, own in rows.items() if not testable.of_row(data, own, metric)}
    if len(each) < 2 or metric not in COLUMN_OF:
        return []
    means = {row: np.mean(values(own, metric)) for row, own in each.items()}
    best = max(means, key=means.get)
    dataset, budget = lines.dataset.iloc[0], lines.budget.iloc[0]
    tied = []
    for row in each:
        pair = next(pairs(lines, best, row, dataset, (budget,)), None)
        tested = pair and over_questions(pair, best, row, metric)
        if row == best or pair is None or (tested and tested.sign <= 0):
            tied.append(row)
    return tied


def outcome(data: dict, runs: pd.DataFrame, claim: dict, where: Pair | None = None) -> Outcome:
    """A claim on one metric, tested with the first of `pairs` for its two rows, or with the pair `where`."""
    row, other, metric = claim["row_a"], claim["row_b"], claim["metric"]
    where = where or next(pairs(runs, row, other, claim["dataset"]), None)
    if where is None:
        declared = claim.get("not_testable", {}).get(papers.first_budget(data, claim) or "paper", "")
        return Outcome(claim, declared or testable.of_rows(data, (row, other), claim["dataset"]))
    samples = (per_question, partial(records.dev_questions, data), partial(records.pooled, data))
    each = [values_of(where, row, other, metric, sample) for sample in samples]
    test, dev, pooled = map(tested, each)
    declared = claim.get("not_testable", {}).get(where.budget, "")
    reason = declared or testable.of_pair(data, where, claim)
    decides = each[2] if pooled else each[0]
    if decides is None:
        return Outcome(claim, reason, where)
    questions = decides.ours.shape[-1]
    if not (pooled or test):
        reason = reason or "one seed, and no row trained alike shows how much seeds differ"
        return Outcome(claim, reason, where, questions=questions)
    return Outcome(claim, reason, where, test, dev, pooled, questions, smallest_effect(*decides))


def kept_heads(tested: Outcome) -> str:
    """Which row alone was fine-tuned from the head that its pre-training learnt, where both were pre-trained; "" for neither."""
    if tested.where is None:
        return ""
    kept = []
    for row in ("row_a", "row_b"):
        chains = [records.chain(line) for line in tested.where.of(tested.claim[row]).itertuples()]
        if not all(chain[0].get("notebook") == "pretrain" and len(chain) > 1 for chain in chains):
            return ""
        kept.append(any(record["settings"].get("keep_head") for chain in chains for record in chain[1:]))
    return "" if kept[0] == kept[1] else f"row {'A' if kept[0] else 'B'} alone keeps the head of its pre-training"


# ------------------------------------------------------------------ all rows of a paper


def with_day(text: str, claim: dict) -> str:
    """Words about a claim, for a hypothesis about other data with the day on which it was stated."""
    return text + (f"; stated {claim['stated']}, before the runs" if "stated" in claim else "")


def rows_of_claim(data: dict, claim: dict) -> str:
    """Row A - row B, data set, metric: what a claim compares, in words."""
    rows, dataset = data["rows"], claim["dataset"]
    names = f"{rows[claim['row_a']]['name']} − {rows[claim['row_b']]['name']}"
    return f"{names}, {NAMES.get(dataset, dataset)}, {NAMES[claim['metric']]}"
