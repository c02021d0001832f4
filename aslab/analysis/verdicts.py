"""The verdict on each of our figures in words, and the verdict on each line of a paper."""

import numpy as np
import pandas as pd

from .. import papers, plan, records, rundir
from ..records import COMMITTED, HERE
from . import testable
from .comparisons import printed_points

SEEDS = 3  # a match needs so many


def verdict(
    published, ours: list[float], questions: int | None = None, at_paper_settings=False, private=False, seeds=SEEDS
) -> str:
    """How one of our figures compares with the printed one, in words.

    t = min(2, max(2 std, 0.5, 100 / questions)) points
    matches: |ours - published| <= t and as many seeds as needed; close: <= 2 t

    Args:
        published: (mean, std) or a mean, in points (0 to 100); None where no number is printed. ours: one value a seed, 0 to 1.
        questions: of the test set; None where the metric is not a mean over questions.
        at_paper_settings: whether the runs' effective parameters and data are the paper's; if not, nothing is compared.
        private: whether the paper's data set was never published.
        seeds: how many a match needs: 3, or 1 where nothing was trained and there is no spread.
    Example:
        >>> verdict((78.3, 2.8), [0.77, 0.78, 0.78], questions=237, at_paper_settings=True)
        'matches'
    """
    if private:
        return "private data"
    if not ours:
        return "not run"
    if not at_paper_settings:
        return "reduced budget"
    if published is None:
        return "not published"
    mean, std = published if isinstance(published, tuple | list) else (published, 0.0)
    tolerance = min(2.0, max(2 * std, 0.5, 100 / questions if questions else 0.0))
    gap = round(abs(100 * float(np.mean(ours)) - mean), 9)
    if gap <= tolerance and len(ours) >= seeds:
        return "matches"
    return "close" if gap <= 2 * tolerance else "differs"


def of_cells(data: dict, row: str, dataset: str, metrics, lines: pd.DataFrame) -> list[tuple[str, str]]:
    """(verdict, reason) of each metric of a row on a data set; only "not testable here" has a reason.

    Args:
        lines: the row's records on the data set, of one source and budget; may be empty.
    """
    chains = [records.chain(line) for line in lines.itertuples()]
    at_paper_settings = all(plan.at_paper_settings(data, row, dataset, chain) for chain in chains)
    published = data["rows"][row]["published"].get(dataset, {})
    private = dataset in data.get("private", ())
    once = papers.untrained(data, row) or dataset == papers.NOTEBOOKS["pretrain"]  # a pre-training has one seed
    seeds = 1 if once else SEEDS
    cells = []
    for metric in metrics:
        theirs = printed_points(published.get(metric), data["unit"])
        ours = records.values(lines, metric, as_printed=True)
        word = verdict(theirs, ours, question_count(lines), at_paper_settings, private, seeds)
        reason = ""
        if word == "not run":
            reason = testable.declared(data, row, dataset)
        elif word == "reduced budget":
            reason = testable.of_row(data, lines, metric)
        cells.append((testable.VERDICT, reason) if reason else (word, ""))
    return cells


def question_count(lines: pd.DataFrame) -> int | None:
    """The number of test questions or claims of some records of one data set; None for pre-training runs."""
    figures = next((records.figures(line) for line in lines.itertuples()), {})
    return figures.get("questions") or figures.get("claims")


def at_largest_budget(runs: pd.DataFrame, row: str, dataset: str):
    """(source, budget, records) of a row on a data set, for each source that has some: those of its largest budget."""
    own = runs[(runs.row == row) & (runs.dataset == dataset) & (runs.budget != "laptop")]
    for source in (COMMITTED, HERE):
        lines = own[own.source == source]
        if len(lines):
            largest = max(lines.budget, key=rundir.BUDGETS.index)
            yield source, largest, lines[lines.budget == largest]
