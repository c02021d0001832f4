"""The k best candidates of a first ranking, ranked again by a joint model: which they are, and the two rankings put together.

All but the joint model's own scores is a function of two tables of scores (question_id, candidate_id, label, score).
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..data import answers
from ..data.answers import Question
from ..io import rundir
from ..io.rundir import BUDGETS
from ..metrics import rankings

ROW = ["question_id", "candidate_id", "label"]
SAME = ("dataset", "protocol", "question_limit")  # settings that decide which questions a run ranks
NAMES = {
    "first": "first stage, whole lists",
    "test": "after re-ranking, whole lists",
    "ceiling": "the k in the best order, whole lists",
    "first_top_k": "first stage, the k alone",
    "top_k": "after re-ranking, the k alone",
}

# ------------------------------------------------------------------ two runs


def records(first_run: str | Path, joint_run: str | Path, budget: str) -> tuple[dict, dict]:
    """The records of both stages, checked: they must have ranked the same questions, the second one with a joint model.

    Args:
        budget: the lower one of the two runs' budgets.
    Raises: ValueError for a run that is not finished, another architecture, data set, protocol or limit, or another budget.
    """
    first, joint = rundir.read_record(first_run), rundir.read_record(joint_run)
    if (architecture := joint["settings"].get("architecture")) != "joint":
        raise ValueError(f"joint_run: a run with architecture joint expected, {joint['name']} has {architecture}")
    again = _asked(joint)
    for name, value in _asked(first).items():
        if value != again[name]:
            raise ValueError(
                f"both runs must have ranked the same questions: {name} is {value} in {first['name']}, {again[name]} in {joint['name']}"
            )
    lower = min(first["budget"], joint["budget"], key=BUDGETS.index)
    if budget != lower:
        raise ValueError(
            f"budget: {lower} expected, the lower one of {first['budget']} and {joint['budget']} (-p budget {lower}); got {budget}"
        )
    return first, joint


def _asked(record: dict) -> dict:
    """What decides which questions a run ranks, and what they say."""
    return {name: record["settings"].get(name) for name in SAME} | {"fingerprint": record["inputs"].get("dataset")}


def first_scores(first_run: str | Path, joint_run: str | Path) -> pd.DataFrame:
    """The first stage's scores of the test candidates, which must be those that the joint run was tested on.

    Raises: ValueError for a run without scores, or with other questions, candidates or labels.
    """
    tables = []
    for folder in map(Path, (first_run, joint_run)):
        tables.append(_checked(rundir.read_table(folder), f"{folder.name}/scores.parquet"))
    _same(*tables, Path(first_run).name, Path(joint_run).name)
    return tables[0]


def load_questions(record: dict, scores: pd.DataFrame, dataset: str | None = None) -> answers.Split:
    """The test questions that a run has ranked, with their text.

    Args:
        record: of the run. scores: its table.
        dataset: where the questions are, for a file or folder of one's own; None: what the record names.
    Raises: ValueError where the data are not those that the run was made from.
    """
    settings, expected = record["settings"], record["inputs"]["dataset"]
    if dataset is None and settings["dataset"].startswith("own:"):
        raise ValueError(f"dataset: a record keeps no path, name the file or folder of {settings['dataset']} again")
    dataset = dataset or settings["dataset"]
    if (came := answers.fingerprint_of_answers(dataset)) != expected:
        raise ValueError(
            f"dataset: {dataset} is not what {record['name']} was made from: fingerprint {expected} expected, got {came}"
        )
    split = answers.load_answers(dataset, settings["protocol"], limit=settings["question_limit"])["test"]
    _same(scores, split.frame(), record["name"], dataset)
    return split


def _same(one: pd.DataFrame, other: pd.DataFrame, name: str, other_name: str) -> None:
    both = one[ROW].merge(other[ROW], on=ROW, how="outer", indicator="where")
    alone = both[both["where"] != "both"]
    if len(alone):
        row, where = alone.iloc[0], name if alone["where"].iloc[0] == "left_only" else other_name
        raise ValueError(
            f"{name} and {other_name} must have the same candidates and labels: {row.candidate_id!r} of question {row.question_id!r} "
            f"with label {row.label} is in {where} alone ({len(alone)} such rows)"
        )


def _checked(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    values, twice = scores["score"].to_numpy(), np.flatnonzero(scores.duplicated(ROW[:2]))
    if len(twice):
        row = scores.iloc[twice[0]]
        raise ValueError(
            f"{name}, row {twice[0]}: candidate {row.candidate_id!r} stands twice in question {row.question_id!r}"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(values))):
        raise ValueError(f"{name}, row {wrong[0]}: a score is a finite number, got {values[wrong[0]]}")
    return scores


# ------------------------------------------------------------------ the k best


def top_k(scores: pd.DataFrame, k: int, seed: int = 0) -> pd.DataFrame:
    """The k best candidates of each question by the first stage, all of them where it has no more than k.

    Args:
        seed: of the order of candidates with one score.
    Returns: question_id, candidate_id, label, first_score, first_rank (1 to k), best first.
    Example:
        >>> scores = pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "label": [0, 1, 0], "score": [0.1, 0.7, 0.4]})
        >>> top_k(scores, 2)[["candidate_id", "first_rank"]].values.tolist()
        [['b', 1], ['c', 2]]
    """
    if k < 1:
        raise ValueError(f"k is at least 1 candidate, got {k}")
    # Which of two equal candidates is kept may follow neither label (the metrics' rule would) nor row order, where right ones stand
    # first in some data sets. The number of the row is in the ids, so that they cannot be compared either; their keyed hash can.
    tables = _checked(scores, "first stage").assign(
        question=pd.factorize(scores.question_id)[0], draw=_draws(scores, seed)
    )
    ranked = tables.sort_values(["question", "score", "draw"], ascending=[True, False, True])
    ranked = ranked.assign(first_rank=ranked.groupby("question").cumcount() + 1)
    kept = ranked[ranked.first_rank <= k].rename(columns={"score": "first_score"})
    return kept[[*ROW, "first_score", "first_rank"]].reset_index(drop=True)


def _draws(scores: pd.DataFrame, seed: int) -> list[bytes]:
    names, key = zip(scores.question_id, scores.candidate_id), f"re-ranking {seed}".encode()
    return [
        hashlib.blake2b(f"{question}\0{candidate}".encode(), digest_size=8, key=key).digest()
        for question, candidate in names
    ]


def border_ties(scores: pd.DataFrame, k: int) -> list[str]:
    """Questions whose candidates k and k + 1 have one score in the first stage: a hash decides there what is ranked again.

    Example:
        >>> border_ties(pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "score": [0.7, 0.4, 0.4]}), 2)
        ['q']
    """
    ordered = scores.sort_values("score", ascending=False)
    place = ordered.groupby("question_id").cumcount()
    border = ordered[place.isin([k - 1, k])]
    return sorted(border.question_id[border.duplicated(["question_id", "score"])])


def only(split: Iterable[Question], chosen: pd.DataFrame) -> Iterator[Question]:
    """The questions with their chosen candidates alone, one at a time, as a ranker takes them.

    The sentences before and after a candidate stay those of its document, chosen or not.
    Raises: ValueError for a chosen candidate that the questions do not have.
    """
    kept = chosen.groupby("question_id").candidate_id.agg(set).to_dict()
    for question in split:
        if names := kept.pop(question.id, None):
            candidates = tuple(candidate for candidate in question.candidates if candidate.id in names)
            if len(candidates) != len(names):
                lacking = min(names - {candidate.id for candidate in candidates})
                raise ValueError(f"question {question.id!r} has no candidate {lacking!r}")
            yield replace(question, candidates=candidates)
    if kept:
        raise ValueError(f"{len(kept)} chosen questions are not among those given, first {min(kept)!r}")


def joined(chosen: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Both stages side by side: question_id, candidate_id, label, score (of the second), first_score, first_rank; rows as chosen.

    Raises: ValueError where a chosen candidate has no score, or one that was not chosen has.
    """
    _same(chosen, _checked(scored, "second stage"), "the k best", "the second stage")
    return chosen.merge(scored, on=ROW)[[*ROW, "score", "first_score", "first_rank"]]


# ------------------------------------------------------------------ whole lists


def spliced(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Whole lists after re-ranking: the re-ranked candidates on top in the second stage's order, the others below in the first's.

    Scores of two models have no common scale, and shifting one of them would round some to ties. So a score is minus a place, counted
    from 1 down the list: whole numbers, exact in float32, equal exactly where the stage that decides gave equal scores.
    Args:
        second: the second stage's scores of some of the rows of `first`. A question that it lacks keeps its order.
    Returns: the rows of `first`, in its order, with new scores.
    Raises: ValueError for a row of `second` that `first` lacks or has with another label.
    Example:
        >>> first = pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "label": [0, 1, 0], "score": [0.9, 0.7, 0.4]})
        >>> spliced(first, first[:2].assign(score=[-3.0, 5.0])).score.tolist()
        [-2.0, -1.0, -3.0]
    """
    first, second = _checked(first, "first stage"), _checked(second, "second stage")
    both = first.merge(second[[*ROW, "score"]], on=ROW, how="left", suffixes=("", "_again"))
    again = both.score_again.notna()
    if again.sum() != len(second):
        _same(second, first.merge(second[ROW], on=ROW), "second stage", "first stage")
    kept = both.score_again.where(again, both.score)
    place = kept.groupby([both.question_id, again]).rank(method="dense", ascending=False)
    above = place.where(again).groupby(both.question_id).transform("max").fillna(0)  # places of the re-ranked ones
    return first.assign(score=-place.where(again, place + above).to_numpy(np.float32))


def measured(first: pd.DataFrame, top: pd.DataFrame, whole: pd.DataFrame) -> dict[str, rankings.Ranking]:
    """P@1, MAP and MRR before and after, on whole lists and on the k alone, and what no order of the k can pass.

    On the k alone a question whose k candidates are all wrong counts as zero; `empty_questions` says how many these are, and the
    ceiling's P@1 is one less their share. P@1 is the same in both ways of counting, MRR on whole lists is no lower. MAP is another: the
    right candidates below the k are left out, which is mostly to its gain, and to its loss where none is among the k.
    Paper: joint_inference, tables 2 and 7.
    Deviation: D-45, table 7 apparently scores the k alone.
    Args:
        first: the first stage's scores. top: what `joined` gives. whole: what `spliced` gives.
    Returns: by the keys of NAMES.
    """
    return {
        "test": rankings.of(whole),
        "top_k": rankings.of(top, empty="zero"),
        "first": rankings.of(first),
        "first_top_k": rankings.of(top.assign(score=top.first_score), empty="zero"),
        "ceiling": rankings.of(spliced(first, top.assign(score=top.label))),
    }


def table(found: dict[str, rankings.Ranking]) -> pd.DataFrame:
    """What `measured` gives, one line each under its full name, the metrics times 100."""
    lines = pd.DataFrame({words: found[name].record() for name, words in NAMES.items()}).T
    shown = lines[["p@1", "map", "mrr"]].mul(100).round(2)
    return shown.join(lines[["questions", "tied_questions", "empty_questions"]].astype(int))
