"""Two rankings of the same questions: which questions were rescued, which were lost, and how ranks moved."""

import numpy as np
import pandas as pd

from ..draws import choose
from . import rankings, significance

FATES = ("rescued", "lost", "right by both", "wrong by both")
TOP = 5


def _reciprocal_ranks(table: pd.DataFrame) -> pd.Series:
    """Reciprocal rank by question, from scores (question_id, label, score) or from values by question."""
    if "score" in table:
        table = rankings.of(table, empty="skip").per_question
    if "question_id" in table:
        table = table.set_index("question_id")
    return table["reciprocal_rank"]


def _both(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Reciprocal ranks of the same questions under both systems."""
    before, after = _reciprocal_ranks(before), _reciprocal_ranks(after)
    significance.require_same_questions(before, after)
    return pd.DataFrame({"before": before, "after": after.reindex(before.index)})


def fates(before: pd.DataFrame, after: pd.DataFrame) -> pd.Series:
    """Whether each question's best candidate became right ("rescued"), became wrong ("lost"), or stayed as it was.

    Returns: one of FATES by question_id.

    Args:
        before, after: scores (question_id, label, score) of two runs, or their values by question (`per_question`), in
            any order.
    Raises: ValueError where the two are not the same questions.
    """
    right = _both(before, after) == 1
    conditions = [~right.before & right.after, right.before & ~right.after, right.before & right.after]
    return pd.Series(np.select(conditions, FATES[:3], FATES[3]), right.index, dtype=object)


def rescued(
    before: pd.DataFrame, after: pd.DataFrame, limit: int = 3, seed: int = 0
) -> tuple[list[str], dict[str, int]]:
    """Some of the rescued questions, chosen by a keyed hash, and how many questions have each fate.

    Paper: sentence_objectives, table 6.
    Returns: question ids, and all counts, because rescued questions alone would flatter.
    Example:
        >>> before = pd.DataFrame({"question_id": list("aabb"), "label": [1, 0, 0, 1], "score": [0.1, 0.9, 0.2, 0.8]})
        >>> rescued(before, before.assign(score=[0.9, 0.1, 0.2, 0.8]))
        (['a'], {'rescued': 1, 'lost': 0, 'right by both': 1, 'wrong by both': 0})
    """
    fate_of = fates(before, after)
    counts = {fate: int((fate_of == fate).sum()) for fate in FATES}
    return choose(fate_of.index[fate_of == "rescued"], limit, seed), counts


def best_of(scores: pd.DataFrame, question_id: str, count: int = TOP) -> list[list]:
    """The best candidates of one question: [candidate_id, label, score, rank]; at one score wrong ones come first."""
    candidates = scores[scores.question_id == question_id]
    ranked = candidates.sort_values(["score", "label"], ascending=[False, True], kind="stable").head(count)
    rows = enumerate(ranked.itertuples(), 1)
    return [[row.candidate_id, int(row.label), round(float(row.score), 4), rank] for rank, row in rows]


def rank_moves(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The rank of each question's first right candidate under both systems: columns before, after by question_id.

    The arguments are those of `fates`. A question without a right candidate has no such rank and is left out.
    Committed records have six digits of a reciprocal rank: ranks up to 1,000 are exact.
    Example:
        >>> before = pd.DataFrame({"question_id": ["a", "b"], "reciprocal_rank": [0.5, 1.0]})
        >>> rank_moves(before, before.assign(reciprocal_rank=[1.0, 0.25])).values.tolist()
        [[2, 1], [1, 4]]
    """
    both = _both(before, after)
    return (1 / both[(both > 0).all(axis=1)]).round().astype(int)


def move_counts(moves: pd.DataFrame) -> dict[str, int]:
    """How many questions have their first right candidate higher, as high, and lower than before."""
    signs = np.sign(moves.before - moves.after)
    return {"higher": int((signs > 0).sum()), "as before": int((signs == 0).sum()), "lower": int((signs < 0).sum())}
