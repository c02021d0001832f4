"""Questions on which two rows of a paper differ: the runs that are compared, the ranked lists that are shown, and their texts.

Everything here is a function of scores; text is joined where the data set is on this machine.
"""

import os
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from asutil.data import answers, long_questions
from asutil.data.baselines import words
from asutil.data.data_sets import ANSWERS, CLAIMS, LONG
from asutil.draws import choose
from asutil.io import hub
from asutil.metrics.changes import best_of, fates, move_counts, rank_moves

from .. import papers, plan, records, rundir
from ..papers import SPLITS
from ..records import HERE
from ..show import plots
from ..show.markup import NAMES
from . import comparisons

SHORT = 25  # words of a candidate, on average: such questions are read first
CONTEXTS = 3  # questions of contexts
LONGEST = 300  # characters of a sentence that are shown
# Data sets whose licence lets their text be passed on: only theirs is on a site that others read.
PASSED_ON = ("pydocs", "pydocs_more", "pydocs_claims", "pydocs_evidence", "nq_sentences", "selqa", "hotpotqa", "qasper")
SITE = "AS2_SITE"


class Example(NamedTuple):
    """A question with the best candidates of two rows.

    Attributes:
        fate: one of `changes.FATES`, by the best candidates; "" for a context, whose sentences are ranked.
        question: its text; its id where the text is not here.
        ranked: name of a row -> its candidates as `changes.best_of` gives them.
        texts: candidate id -> text; empty where the text is not here.
    """

    fate: str
    question: str
    ranked: dict[str, list]
    texts: dict[str, str]

    @property
    def reason(self) -> str:
        """The rank of the first right candidate in both lists, and how many words the best candidates share with the question."""
        first, best = [], []
        for ranking in self.ranked.values():
            first.append(next((str(rank) for _, label, _, rank in ranking if label), f"below {len(ranking)}"))
            best.append(self.texts.get(ranking[0][0], ""))
        shared = [len({*words(self.question)} & {*words(text)}) for text in best]
        return (
            f"First right candidate: rank {first[0]} on the left, {first[1]} on the right. "
            f"Words that the best candidate shares with the question: {shared[0]} and {shared[1]}."
        )


def best_pairs(data: dict, runs: pd.DataFrame, before: str, after: str) -> list[comparisons.Pair]:
    """The best pair of two rows on each data set: the largest budget, most seeds, this machine's runs among equals.

    Left out are columns of a paper's tables that are one split of a data set, since test questions are shown, and more questions of
    a data set that is there.
    """
    for name in (before, after):
        papers.one_of(name, data["rows"], data["slug"], "row")
    printed = [name for own in data["tables"].values() for name in own["datasets"]]
    best = []
    for dataset in dict.fromkeys([*printed, *runs.dataset]):
        more = dataset in ANSWERS and ANSWERS[dataset].dev_of
        if not more and dataset not in (plan.TRANSFER, papers.NOTEBOOKS["pretrain"], *SPLITS):
            pairs = list(comparisons.pairs(runs, after, before, dataset, rundir.BUDGETS))
            best += sorted(pairs, key=lambda p: (rundir.BUDGETS.index(p.budget), len(p.seeds), p.source == HERE))[-1:]
    return best


def of_pair(data: dict, pair: comparisons.Pair, rows: tuple[str, str], limit: int = 2) -> list[Example]:
    """`limit` rescued questions and one lost one by the first seed of two rows; of contexts some that both records hold.

    A hash chooses among the questions that are short enough to read, or among all where none is or texts are not here.
    """
    both = pair.records_of(rows, pair.seeds[0])
    names = [data["rows"][row]["name"] for row in rows]
    if records.kind(both[0].record) == "context":
        return _of_contexts(pair.dataset, both, names)
    fate = fates(*map(records.per_question, both))
    questions = at_hand(both[1].record, pair.dataset, fate.index)
    words_of = {name: [len(candidate.text.split()) for candidate in of.candidates] for name, of in questions.items()}
    short = {name for name, counts in words_of.items() if sum(counts) <= SHORT * len(counts)}
    chosen = []
    for name, rankings in lists(both, rows[0], fate, limit, short).items():
        title, texts = texts_of(questions.get(name), name, rankings)
        chosen.append(Example(fate[name], title, dict(zip(names, rankings)), texts))
    return chosen


def _of_contexts(dataset: str, both, names: list[str]) -> list[Example]:
    each = [_nearest(line) for line in both]
    shared = choose(set.intersection(*map(set, each)), CONTEXTS)
    texts = {name: (name, {}) for name in shared}
    if may_show(dataset):
        splits = long_questions.load_evidence(dataset)
        questions = {question.id: question for question in splits["test"] or splits["dev"]}
        texts |= {name: (questions[name].text, _numbered(questions[name])) for name in shared if name in questions}
    ranked = {name: {row: nearest[name] for row, nearest in zip(names, each)} for name in shared}
    return [Example("", texts[name][0], ranked[name], texts[name][1]) for name in shared]


def lists(both, baseline: str, fate: pd.Series, limit: int, short=frozenset()) -> dict[str, tuple[list, list]]:
    """question -> both ranked lists: some rescued questions and one lost one, else what the records share.

    Args:
        short: ids of questions that come before others.
    """
    if all(line.folder is not None for line in both):
        tables = [rundir.read_table(line.folder) for line in both]
        names = _chosen(fate, fate.index, limit, short)
        lists = {name: tuple(best_of(scores, name) for scores in tables) for name in names}
    else:  # a record also has its baseline's lists of its questions
        first, last = ({entry["question_id"]: entry for entry in line.record.get("chosen", ())} for line in both)
        of_baseline = {name: entry.get("baseline", {}) for name, entry in last.items()}
        before = {name: entry["candidates"] for name, entry in of_baseline.items() if entry.get("row") == baseline}
        before |= {name: entry["candidates"] for name, entry in first.items()}
        shared = [name for name in last if name in before and name in fate.index]
        lists = {name: (before[name], last[name]["candidates"]) for name in shared}
    return {name: lists[name] for name in _chosen(fate, lists, limit, short) or choose(lists, limit)}


def _chosen(fate: pd.Series, among, limit: int, short) -> list[str]:
    fate = fate[fate.index.isin(list(among))]
    of = {word: list(fate.index[fate == word]) for word in ("rescued", "lost")}
    readable = {word: [name for name in names if name in short] or names for word, names in of.items()}
    return [*choose(readable["rescued"], limit), *choose(readable["lost"], 1)]


def _nearest(line) -> dict[str, list]:
    """The nearest sentences of a record's questions."""
    if line.folder is not None:
        scores = rundir.read_table(line.folder).assign(score=lambda rows: rows["gold"])
        return {name: best_of(scores, name) for name in choose(set(scores.question_id), CONTEXTS)}
    return {entry["question_id"]: entry["candidates"] for entry in line.record.get("chosen", ())}


def _numbered(question) -> dict[str, str]:
    """`passage-sentence` -> the text of a sentence, cut to `LONGEST` characters."""
    passages = enumerate(question.passages)
    sentences = {f"{p}-{n}": text for p, passage in passages for n, text in enumerate(passage.sentences)}
    return {name: text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for name, text in sentences.items()}


def may_show(dataset: str) -> bool:
    """Whether the text of a data set is on this machine and may be on its pages; the hub is not asked.

    On the pages of a site that others read (`AS2_SITE`) is the text of `PASSED_ON` alone.
    """
    known = {**ANSWERS, **CLAIMS, **LONG}.get(dataset)
    if known is None or (os.environ.get(SITE) and dataset not in PASSED_ON):
        return False
    return known.hub_id is None or hub.mirror(known.hub_id) is not None


def at_hand(record: dict, dataset: str, question_ids) -> dict:
    """Test questions of a record's data set by id, where their text is on this machine; the hub is not asked.

    The text of pydocs follows from versions of packages: with other versions than the record's there is none.
    """
    if dataset not in ANSWERS or not may_show(dataset):
        return {}
    recorded, fingerprint = record.get("inputs", {}).get("dataset"), answers.fingerprint_of_answers(dataset)
    if dataset in ("pydocs", "pydocs_more") and recorded not in (None, fingerprint):
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


def moves_of_rows(data: dict, runs: pd.DataFrame, before: str, after: str) -> list[tuple]:
    """(data set, what the figure shows in words, Figure) for each data set on which both rows have run, all seeds."""
    figures, pairs = [], best_pairs(data, runs, before, after)
    names = [data["rows"][name]["name"] for name in (before, after)]
    for pair in pairs:
        each = [rank_moves(*map(records.per_question, pair.records_of((before, after), seed))) for seed in pair.seeds]
        moves = pd.concat(each)
        words = _moves_in_words(pair, names, move_counts(moves), len(each[0]))
        figures.append((pair.dataset, words, plots.moves_plot(moves, *names)))
    return figures


def _moves_in_words(pair: comparisons.Pair, names: list[str], count: dict[str, int], questions: int) -> str:
    several = len(pair.seeds) > 1
    seeds = f"{len(pair.seeds)} seeds put together" if several else f"seed {pair.seeds[0]}"
    moved = f"{questions:,} questions" + (f" times {len(pair.seeds)} seeds" if several else "")
    return (
        f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, {seeds}: of {moved} the first right candidate "
        f"ranks higher by {names[1]} than by {names[0]} for {count['higher']:,}, the same for {count['as before']:,}, "
        f"lower for {count['lower']:,}."
    )
