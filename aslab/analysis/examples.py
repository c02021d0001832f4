"""Questions on which two rows of a paper differ: the runs that are compared, the ranked lists that are shown, and their texts.

Everything here is a function of scores; text is joined where the data set is on this machine.
"""

from functools import lru_cache

import pandas as pd

from asutil.data import answers
from asutil.data.data_sets import ANSWERS
from asutil.draws import choose
from asutil.io import hub
from asutil.metrics.changes import best_of

from .. import papers, plan, rundir
from ..papers import SPLITS
from ..records import HERE
from . import comparisons


def best_pairs(data: dict, runs: pd.DataFrame, before: str, after: str) -> list[comparisons.Pair]:
    """The best pair of two rows on each data set: the largest budget, most seeds, this machine's runs among equals.

    Columns of a paper's tables that are one split of a data set are left out: test questions are shown.
    """
    for name in (before, after):
        papers.one_of(name, data["rows"], data["slug"], "row")
    printed = [name for own in data["tables"].values() for name in own["datasets"]]
    best = []
    for dataset in dict.fromkeys([*printed, *runs.dataset]):
        if dataset not in (plan.TRANSFER, papers.NOTEBOOKS["pretrain"], *SPLITS):
            pairs = list(comparisons.pairs(runs, after, before, dataset, rundir.BUDGETS))
            best += sorted(pairs, key=lambda p: (rundir.BUDGETS.index(p.budget), len(p.seeds), p.source == HERE))[-1:]
    return best


def lists(both, baseline: str, fate: pd.Series, limit: int) -> dict[str, tuple[list, list]]:
    """question -> both ranked lists: some rescued questions and one lost one, else what the records share."""
    if all(line.folder is not None for line in both):
        tables = [rundir.read_table(line.folder) for line in both]
        names = _chosen(fate, fate.index, limit)
        lists = {name: tuple(best_of(scores, name) for scores in tables) for name in names}
    else:  # a record also has its baseline's lists of its questions
        first, last = ({entry["question_id"]: entry for entry in line.record.get("chosen", ())} for line in both)
        of_baseline = {name: entry.get("baseline", {}) for name, entry in last.items()}
        before = {name: entry["candidates"] for name, entry in of_baseline.items() if entry.get("row") == baseline}
        before |= {name: entry["candidates"] for name, entry in first.items()}
        shared = [name for name in last if name in before and name in fate.index]
        lists = {name: (before[name], last[name]["candidates"]) for name in shared}
    return {name: lists[name] for name in _chosen(fate, lists, limit) or choose(lists, limit)}


def _chosen(fate: pd.Series, among, limit: int) -> list[str]:
    fate = fate[fate.index.isin(list(among))]
    return [*choose(fate.index[fate == "rescued"], limit), *choose(fate.index[fate == "lost"], 1)]


def at_hand(record: dict, dataset: str, question_ids) -> dict:
    """Test questions of a record's data set by id, where their text is on this machine; the hub is not asked.

    The text of pydocs follows from versions of packages: with other versions than the record's there is none.
    """
    if dataset not in ANSWERS or (ANSWERS[dataset].hub_id and hub.mirror(ANSWERS[dataset].hub_id) is None):
        return {}
    recorded, fingerprint = record.get("inputs", {}).get("dataset"), answers.fingerprint_of_answers(dataset)
    if dataset == "pydocs" and recorded not in (None, fingerprint):
        return {}
    questions = _test_questions(dataset, record.get("settings", {}).get("protocol", "clean"), fingerprint)
    wanted = set(question_ids)
    return {name: questions[number] for number, name in enumerate(questions.ids) if name in wanted}


@lru_cache
def _test_questions(dataset: str, protocol: str, fingerprint: str) -> answers.Split:
    """A page shows several pairs of rows on the same questions, and pydocs takes seconds to read."""
    return answers.load_answers(dataset, protocol)["test"]


def texts_of(question, name: str, lists) -> tuple[str, dict[str, str]]:
    """Text of a question and its candidates; its id alone where this machine's data are not what was ranked."""
    candidates = {candidate.id: candidate for candidate in question.candidates} if question else {}
    entries = [(entry[0], entry[1]) for ranked in lists for entry in ranked]
    same = all(id_ in candidates and candidates[id_].label == label for id_, label in entries)
    if not question or not same:
        return name, {}
    return question.text, {candidate.id: candidate.text for candidate in candidates.values()}
