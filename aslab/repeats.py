"""Runs that were made again with equal settings: their records in `results/repeats/`, and what two of them differ by.

`results/repeats/<paper>/<row>/<dataset>-<budget>-seed<k>-<time>.json` is a record next to the one in `results/<paper>/`.
"""

import itertools
import json
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from asutil.io import disk, rundir
from asutil.metrics import significance
from asutil.metrics.two_sources import over_questions_and_seeds

from . import papers, records
from .analysis import comparisons
from .plan import completed, settings_key
from .runs import STAGES, STARTS

FOLDER = "repeats"
METRICS = {"verify_claims": ("label_accuracy",), "find_evidence": ("evidence_f1", "answer_f1")}  # the first is shown
OF_RANKINGS = ("map", "p@1")


# ------------------------------------------------------------------ records


def key(record: dict, without: tuple = ()) -> str:
    """Settings and data of a record's runs, without what changes no result by design and without the names of runs.

    Two records with equal keys differ by machine, precision or version of the code alone.

    Args:
        without: other settings that are left out.
    """
    chain = [*record.get("earlier", ()), record]
    names, keys = {run["name"] for run in chain}, []
    for run in chain:
        settings = completed(run["notebook"], run["settings"])
        left_out = {*without, *(name for name in (*STARTS, *STAGES) if settings.get(name) in names)}
        compared = {name: value for name, value in settings.items() if name not in left_out}
        data = {name: run.get("inputs", {}).get(name) for name in ("dataset", "corpus", "exclude_titles")}
        keys.append([settings_key(run["notebook"], compared), data])
    return json.dumps(keys, sort_keys=True)


def path_of(record: dict, results: str | Path = "results") -> Path:
    """The file of a record among the repeats: the time at which it was created is the end of its name."""
    time = record["created"].partition("+")[0].replace("-", "").replace(":", "")
    name = f"{record['dataset']}-{record['budget']}-seed{record['seed']}-{time}.json"
    return rundir.root() / results / FOLDER / record["paper"] / record["row"] / name


def file_for(record: dict, path: Path, results: str | Path = "results") -> Path:
    """Where a record is published: `path`, unless another run with equal settings and data is there; then the repeats."""
    if not path.is_file():
        return path
    there = rundir.with_current_names(disk.read_json(path))
    same_run = all(there.get(name) == record.get(name) for name in ("name", "created", "weights_sha256"))
    return path if same_run or key(there) != key(record) else path_of(record, results)


def read(paper: str, results: str | Path = "results") -> pd.DataFrame:
    """A paper's records among the repeats, with the columns of `records.records`.

    Raises: ValueError naming a file that is damaged or in the wrong place.
    """
    lines = []
    for path in sorted((rundir.root() / results / FOLDER / paper).glob("*/*.json")):
        record = rundir.with_current_names(disk.read_json(path))
        if path != path_of(record, results):
            raise ValueError(
                f"{FOLDER}/{paper}/{path.parent.name}/{path.name} has the record of {path_of(record).name}"
            )
        identity = (record[name] for name in records.COLUMNS[:4])
        lines.append((*identity, FOLDER, record["name"], None, record, record.get("earlier", [])))
    return pd.DataFrame(lines, columns=records.COLUMNS)


# ------------------------------------------------------------------ two makings of one row


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
    """Every two makings of a row on one data set that follow each other, in the order of the paper's file.

    The makings of a seed are ordered by time. The first pair has the latest two of every seed that was made twice, the
    next pair the second and the third latest, and so on.
    """
    repeated = read(paper, results)
    if repeated.empty:
        return []
    known = pd.concat([records.records(paper, results, Path("no runs")), repeated], ignore_index=True)
    known = known[known.row.isin(repeated.row) & known.record.map(lambda record: "per_question" in record)]
    known = known.assign(
        created=[record["created"] for record in known.record],
        key=[key(record) for record in known.record],
        of_all_seeds=[key(record, without=("seed",)) for record in known.record],
    )
    steps = {}
    for (*group, _, _), made in known.groupby(["row", "dataset", "budget", "of_all_seeds", "seed", "key"]):
        made = made.sort_values("created", ascending=False, kind="stable").drop_duplicates("created")
        for step, both in enumerate(itertools.pairwise(made.index)):
            steps.setdefault((*group, step), []).append(both)
    order = list(papers.read(paper)["rows"])
    every = [
        Pair(paper, row, dataset, budget, *(known.loc[list(lines)] for lines in zip(*both)))
        for (row, dataset, budget, *_), both in steps.items()
    ]
    latest_first = sorted(every, key=lambda pair: pair.later.created.max(), reverse=True)
    return sorted(latest_first, key=lambda pair: (order.index(pair.row), pair.dataset, pair.budget))


def compare(pair: Pair, metric: str, results: str | Path = "results") -> tuple:
    """(combined, over questions): two Comparisons of the later records with those before, for a metric of the pair.

    The combined test of one seed takes the variance between seeds from all rows of the paper in `results/` that have
    several seeds on the same questions; it is None where there is none.
    """
    column = records.columns(pair.later.record.iloc[0])[metric]
    later, before = (comparisons.by_seed(lines, column) for lines in (pair.later, pair.before))
    significance.require_same_questions(later, before)
    before = before.reindex(later.index)
    questions = significance.paired_bootstrap(later.mean(axis=1), before.mean(axis=1))
    borrowed = None
    if len(pair.seeds) == 1:
        lines = records.records(pair.paper, results, Path("no runs"))
        same = lines[(lines.dataset == pair.dataset) & (lines.budget == pair.budget)]
        borrowed = comparisons.lent_variance(same, column, later.index)
        if borrowed is None:
            return None, questions
    return over_questions_and_seeds(later.T, before.T, borrowed), questions
