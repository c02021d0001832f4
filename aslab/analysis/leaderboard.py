"""Everything that was run on one data set, on the same questions, and which of it is the best."""

from typing import NamedTuple

import pandas as pd

from asutil.metrics import significance

from .. import papers, records, rundir
from ..records import COMMITTED
from . import testable
from .comparisons import rows_and_runs


class Entry(NamedTuple):
    """A row of a paper at its largest budget: how it was made, and the values of each question, averaged over its seeds."""

    name: str
    papers: list[str]
    backbone: str
    parameters: int | None
    training: str
    budget: str
    seeds: int
    questions: pd.DataFrame


def entries(dataset: str, read=rows_and_runs) -> list[Entry]:
    """Every row with committed records of ranking on a data set above budget laptop; the same runs under two names are one entry.

    Args:
        read: paper -> its file and its records.
    """
    made = {}
    for paper in papers.PAPERS:
        data, lines = read(paper)
        lines = lines[(lines.source == COMMITTED) & (lines.dataset == dataset) & (lines.budget != "laptop")]
        for row, own in lines.groupby("row", sort=False):
            largest = max(own.budget, key=rundir.BUDGETS.index)
            own = own[own.budget == largest].sort_values("seed")
            if records.kind(own.record.iloc[0]) != "question" or testable.of_row(data, own, "map"):
                continue
            names = tuple(record.get("name") for record in own.record)
            if names in made:
                made[names].papers.append(paper)
            else:
                first = next(own.itertuples())
                values = pd.concat([records.per_question(line) for line in own.itertuples()]).groupby(level=0).mean()
                parameters = first.record.get("figures", {}).get("parameters")
                about = (records.backbone(first).rsplit("/", 1)[-1], parameters, training(first), largest, len(own))
                made[names] = Entry(data["rows"][row]["name"], [paper], *about, values)
    return list(made.values())


def training(line) -> str:
    """What a line's runs did to the model, in their order: `SSP, then pair model`."""
    steps = []
    for record in records.chain(line):
        settings = record["settings"]
        if record["notebook"] == "pretrain":
            steps.append(settings["objective"].upper())
        elif settings.get("architecture") == "untrained":
            steps.append("none")
        else:
            kind = {"embed": "network", "rerank": "re-ranking"}.get(record["notebook"], "model")
            steps.append(f"{settings.get('architecture', '')} {kind}".strip())
    return ", then ".join(steps)


def best_first(each: dict[str | int, pd.DataFrame], draws: int = 10_000) -> list[tuple]:
    """Keys in the order of their MAP, and whether a key is the best or not told from it."""
    order = sorted(each, key=lambda key: -each[key]["average_precision"].mean())
    best, *others = (each[key]["average_precision"] for key in order)
    compared = (significance.paired_bootstrap(best, other, draws=draws) for other in others)
    return list(zip(order, [True, *(test.sign <= 0 for test in compared)]))
