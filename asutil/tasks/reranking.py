"""Re-ranking: a joint model ranks the k best candidates of a first ranking again.

The functions here choose those candidates and merge the two rankings, given tables of scores (question_id,
candidate_id, label, score).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from ..data.answers import Question
from ..draws import text_hash
from ..metrics import rankings

ROW = ["question_id", "candidate_id", "label"]
NAMES = {
    "first": "first stage, whole lists",
    "test": "after re-ranking, whole lists",
    "ceiling": "the k in the best order, whole lists",
    "first_top_k": "first stage, the k alone",
    "top_k": "after re-ranking, the k alone",
}


def require_same_rows(table: pd.DataFrame, other: pd.DataFrame, name: str, other_name: str) -> None:
    """Refuse tables of other candidates or labels. Raises: ValueError naming the first row that one table lacks."""
    merged = table[ROW].merge(other[ROW], on=ROW, how="outer", indicator="where")
    alone = merged[merged["where"] != "both"]
    if len(alone):
        row = alone.iloc[0]
        where = name if row["where"] == "left_only" else other_name
        raise ValueError(
            f"{name} and {other_name} must have the same candidates and labels: {row.candidate_id!r} of question "
            f"{row.question_id!r} with label {row.label} is in {where} alone ({len(alone)} such rows)"
        )


def checked_scores(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """The scores themselves. Raises: ValueError naming the row of a repeated candidate, or of a NaN or infinity."""
    if len(twice := np.flatnonzero(scores.duplicated(["question_id", "candidate_id"]))):
        row = scores.iloc[twice[0]]
        reason = f"candidate {row.candidate_id!r} appears twice in question {row.question_id!r}"
        raise ValueError(f"{name}, row {twice[0]}: {reason}")
    values = scores["score"].to_numpy()
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
        >>> scores = pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "label": [0, 1, 0]})
        >>> top_k(scores.assign(score=[0.1, 0.7, 0.4]), 2)[["candidate_id", "first_rank"]].values.tolist()
        [['b', 1], ['c', 2]]
    """
    if k < 1:
        raise ValueError(f"k is at least 1 candidate, got {k}")
    # Among equal scores the choice must follow neither the label, as the metrics' rule does, nor the order of rows or
    # ids: in some data sets right candidates come first. A keyed hash of the ids follows none of them.
    ids = zip(scores.question_id, scores.candidate_id)
    draws = [text_hash(f"{question}\0{candidate}", f"re-ranking {seed}", size=8) for question, candidate in ids]
    questions = pd.factorize(scores.question_id)[0]
    table = checked_scores(scores, "first stage").assign(question=questions, draw=draws)
    ranked = table.sort_values(["question", "score", "draw"], ascending=[True, False, True])
    ranked = ranked.assign(first_rank=ranked.groupby("question").cumcount() + 1)
    best = ranked[ranked.first_rank <= k].rename(columns={"score": "first_score"})
    return best[[*ROW, "first_score", "first_rank"]].reset_index(drop=True)


def border_ties(scores: pd.DataFrame, k: int) -> list[str]:
    """Questions whose candidates k and k + 1 have one score in the first stage, so that a hash chooses between them.

    Example:
        >>> border_ties(pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "score": [0.7, 0.4, 0.4]}), 2)
        ['q']
    """
    ordered = scores.sort_values("score", ascending=False)
    place = ordered.groupby("question_id").cumcount()
    border = ordered[place.isin([k - 1, k])]
    return sorted(border.question_id[border.duplicated(["question_id", "score"])])


def only(split: Iterable[Question], chosen: pd.DataFrame) -> Iterator[Question]:
    """The questions with only their chosen candidates, one at a time, as a ranker takes them.

    The sentences before and after a candidate stay those of its document, chosen or not.
    Raises: ValueError for a chosen candidate that the questions do not have.
    """
    ids_of = chosen.groupby("question_id").candidate_id.agg(set).to_dict()
    for question in split:
        if ids := ids_of.pop(question.id, None):
            candidates = tuple(candidate for candidate in question.candidates if candidate.id in ids)
            if len(candidates) != len(ids):
                missing = min(ids - {candidate.id for candidate in candidates})
                raise ValueError(f"question {question.id!r} has no candidate {missing!r}")
            yield replace(question, candidates=candidates)
    if ids_of:
        raise ValueError(f"{len(ids_of)} chosen questions are not among those given, first {min(ids_of)!r}")


def joined(chosen: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Both stages in one table: question_id, candidate_id, label, score (of the second stage), first_score, first_rank.

    The rows are those of `chosen`, in its order.
    Raises: ValueError where a chosen candidate has no score, or one that was not chosen has.
    """
    require_same_rows(chosen, checked_scores(scored, "second stage"), "the k best", "the second stage")
    return chosen.merge(scored, on=ROW)[[*ROW, "score", "first_score", "first_rank"]]


# ------------------------------------------------------------------ whole lists


def spliced(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Whole lists after re-ranking: the re-ranked candidates by the second stage, then the others by the first.

    Scores of two models have no common scale, and shifting one of them would round some to ties. So a score is minus a
    place, counted from 1 down the list: a whole number, exact in float32. Candidates of one stage with equal scores
    share a place.
    Args:
        second: the second stage's scores of some rows of `first`. A question without any keeps its order.
    Returns: the rows of `first`, in its order, with new scores.
    Raises: ValueError for a row of `second` that `first` lacks or has with another label.
    Example:
        >>> first = pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "label": [0, 1, 0]})
        >>> first["score"] = [0.9, 0.7, 0.4]
        >>> spliced(first, first[:2].assign(score=[-3.0, 5.0])).score.tolist()
        [-2.0, -1.0, -3.0]
    """
    first, second = checked_scores(first, "first stage"), checked_scores(second, "second stage")
    both = first.merge(second[[*ROW, "score"]], on=ROW, how="left", suffixes=("", "_again"))
    again = both.score_again.notna()
    if again.sum() != len(second):
        require_same_rows(second, first.merge(second[ROW], on=ROW), "second stage", "first stage")
    deciding = both.score_again.where(again, both.score)
    place = deciding.groupby([both.question_id, again]).rank(method="dense", ascending=False)
    above = place.where(again).groupby(both.question_id).transform("max").fillna(0)  # places of re-ranked candidates
    return first.assign(score=-place.where(again, place + above).to_numpy(np.float32))


def measured(first: pd.DataFrame, top: pd.DataFrame, whole: pd.DataFrame) -> dict[str, rankings.Ranking]:
    """P@1, MAP and MRR before and after, on whole lists and on the k alone, and the ceiling: the best order of the k.

    On the k alone a question whose k candidates are all wrong counts as zero; `empty_questions` is their number. After re-ranking
    P@1 is the same in both ways of counting, and MRR on whole lists no lower; before it a tie at rank k may count otherwise on the k
    alone, since a tie counts as wrong and a hash chooses the k. MAP differs: on the k alone, right candidates
    below the k are left out, which mostly raises it, and lowers it where none of the k is right.
    Paper: joint_inference, tables 2 and 7.
    Deviation: D-45, table 7 apparently scores the k alone.
    Args:
        first: the first stage's scores. top: the table of `joined`. whole: the table of `spliced`.
    Returns: by the keys of NAMES.
    """
    return {
        "test": rankings.of(whole),
        "top_k": rankings.of(top, empty="zero"),
        "first": rankings.of(first),
        "first_top_k": rankings.of(top.assign(score=top.first_score), empty="zero"),
        "ceiling": rankings.of(spliced(first, top.assign(score=top.label))),
    }


def table(measures: dict[str, rankings.Ranking]) -> pd.DataFrame:
    """What `measured` gives, one row each under its full name, the metrics times 100."""
    rows = pd.DataFrame({words: measures[name].record() for name, words in NAMES.items()}).T
    metrics = rows[list(measures["test"].values)].mul(100).round(2)
    return metrics.join(rows[["questions", "tied_questions", "empty_questions"]].astype(int))
