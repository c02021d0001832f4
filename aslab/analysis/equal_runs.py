"""Two makings of one row with equal settings, and what they differ by (the records: `aslab.repeats`)."""

import itertools
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from asutil.metrics import significance
from asutil.metrics.two_sources import ENOUGH, over_questions_and_seeds

from .. import papers, records, repeats
from . import comparisons

METRICS = {"verify_claims": ("label_accuracy",), "find_evidence": ("evidence_f1", "answer_f1")}  # the first is shown
OF_RANKINGS = ("map", "p@1")


class Pair(NamedTuple):
    """A row on one data set that was made twice with equal settings: the records of the seeds that both times have."""

    paper: str
    row: str
    dataset: str
    budget: str
    later: pd.DataFrame
    before: pd.DataFrame

    @property
    def seeds(self) -> list[int]:
        return list(self.later.seed)

    @property
    def metrics(self) -> tuple[str, ...]:
        return METRICS.get(self.later.record.iloc[0]["notebook"], OF_RANKINGS)


def pairs(paper: str, results: str | Path = "results") -> list[Pair]:
    """Every two makings of a trained row on one data set that follow each other, in the order of the paper's file.

    The makings of a seed are ordered by time. The first pair has the latest two of every seed that was made twice, the
    next pair the second and the third latest, and so on.
    """
    repeated, data = repeats.read(paper, results), papers.read(paper)
    # What is not trained draws nothing: two runs of it differ by rounding.
    repeated = repeated[[not papers.untrained(data, row) for row in repeated.row]]
    if repeated.empty:
        return []
    known = pd.concat([records.committed(paper, results), repeated], ignore_index=True)
    known = known[known.row.isin(repeated.row) & known.record.map(lambda record: "per_question" in record)]
    known = known.assign(
        created=[record.get("created", "") for record in known.record],
        key=[repeats.key(record) for record in known.record],
        of_all_seeds=[repeats.key(record, without=("seed",)) for record in known.record],
    )
    steps = {}
    for (*group, _, _), made in known.groupby(["row", "dataset", "budget", "of_all_seeds", "seed", "key"]):
        made = made.sort_values("created", ascending=False, kind="stable").drop_duplicates("created")
        for step, both in enumerate(itertools.pairwise(made.index)):
            steps.setdefault((*group, step), []).append(both)
    order, every = list(data["rows"]), []
    for (row, dataset, budget, *_), both in steps.items():
        later, before = (known.loc[list(lines)] for lines in zip(*both))
        every.append(Pair(paper, row, dataset, budget, later, before))
    latest_first = sorted(every, key=lambda pair: pair.later.created.max(), reverse=True)
    return sorted(latest_first, key=lambda pair: (order.index(pair.row), pair.dataset, pair.budget))


def compare(pair: Pair, metric: str, results: str | Path = "results") -> tuple:
    """(combined, over questions): two Comparisons of the later records with those before, for a metric of the pair.

    The combined test of one seed or two borrows the variance between seeds (`comparisons.lent_variance`) from the paper's rows in
    `results/`; it is None where none lends.
    """
    later, before = comparisons.by_seed((pair.later, pair.before), metric)
    questions = significance.paired_bootstrap(later.mean(axis=1), before.mean(axis=1))
    borrowed = None
    if len(pair.seeds) < ENOUGH:
        lines = records.committed(pair.paper, results)
        same = lines[(lines.dataset == pair.dataset) & (lines.budget == pair.budget)]
        borrowed = comparisons.lent_variance(same, [pair.row], metric, later.index)
        if borrowed is None and len(pair.seeds) == 1:
            return None, questions
    return over_questions_and_seeds(later.T, before.T, borrowed), questions
