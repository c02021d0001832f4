"""Ranking metrics as pure functions of (question, label, score), and the small ones of classification.

A metric depends on the order of scores alone. Each row becomes one integer, question | score from the best down | label, so that one
sort of plain integers ranks every question at once: 20 million pairs take about a second.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.claims import LABELS

TIES = ("pessimistic", "trec_eval")
EMPTY = ("raise", "skip", "zero")


@dataclass(frozen=True)
class Ranking:
    """P@1, MAP and MRR (0 to 1) over `questions`, and what a reader must know beside them."""

    p_at_1: float
    map: float
    mrr: float
    questions: int
    tied_questions: int
    empty_questions: int
    per_question: pd.DataFrame

    def record(self) -> dict:
        """The figures by the names that records and tables use."""
        counts = {
            "questions": self.questions,
            "tied_questions": self.tied_questions,
            "empty_questions": self.empty_questions,
        }
        return {"p@1": self.p_at_1, "map": self.map, "mrr": self.mrr, **counts}


def ranking(
    question_ids, labels, scores, ties: str = "pessimistic", empty: str = "raise", candidate_ids=None
) -> Ranking:
    """P@1, mean average precision and mean reciprocal rank of candidates ranked by score within each question.

    P@1 = mean_q [the best candidate is right],  AP_q = mean over right candidates c of (right ones down to c) / rank(c),
    MAP = mean_q AP_q,  MRR = mean_q 1 / rank(first right candidate)
    Paper: sentence_objectives, section 5.1.
    Args:
        question_ids: one str or int a row, in any order; lists, arrays or Series, as are labels and scores.
        labels: 0 or 1 a row.
        scores: higher is better. Their own precision decides what is a tie: nothing is rounded.
        ties: "pessimistic", the wrong candidate first; "trec_eval", as trec_eval does it: scores as 32-bit floats, then
            candidate_ids from the highest string down.
        empty: what happens to questions without a right candidate: "raise", "skip" (left out) or "zero" (counted as 0).
        candidate_ids: one a row, for ties="trec_eval" alone.
    Returns: a Ranking; `tied_questions` have a right and a wrong candidate at one score; `per_question` has question_id, p_at_1,
        average_precision, reciprocal_rank in the order of first appearance.
    Raises: ValueError naming the row for a score that is NaN or infinite, a label other than 0 and 1, a missing question id, and
        for unequal lengths, no rows, or (empty="raise") questions without a right candidate.
    Example:
        >>> r = ranking(["a", "a", "a", "b", "b"], [0, 1, 1, 1, 0], [0.9, 0.8, 0.1, 0.7, 0.7])
        >>> round(r.map, 4), r.mrr, r.p_at_1, r.tied_questions
        (0.5417, 0.5, 0.0, 1)
    """
    if ties not in TIES:
        raise ValueError(f"ties is one of {', '.join(TIES)}; got {ties!r}")
    if empty not in EMPTY:
        raise ValueError(f"empty is one of {', '.join(EMPTY)}; got {empty!r}")
    groups, names = _groups(question_ids)
    right, scores = _labels(labels), _scores(scores)
    if not groups.shape == right.shape == scores.shape:
        raise ValueError(
            f"one label and one score a row: got {len(groups)} question ids, {len(right)} labels, {len(scores)} scores"
        )
    if not len(groups):
        raise ValueError("there are no rows to rank")
    if ties == "trec_eval":
        scores = scores.astype(np.float32)

    keys = groups.astype(np.uint64)
    keys <<= 32
    keys |= _descending(scores)
    keys <<= 1
    keys |= right
    order = _trec_order(keys, candidate_ids) if ties == "trec_eval" else None
    keys.sort()  # at one score label 0 sorts before label 1: the wrong candidate first
    found = np.flatnonzero((keys.astype(np.uint8) & 1).view(bool))  # the lowest bit; of bytes it is found faster
    behind = found[found > 0]
    tied = len(
        np.unique(keys[behind[keys[behind - 1] == keys[behind] - 1]] >> 33)
    )  # a wrong one just before, at the same score
    if order is not None:
        found = np.flatnonzero(right[order])

    sizes = np.bincount(groups, minlength=len(names))
    starts = np.cumsum(sizes) - sizes
    group = np.searchsorted(starts, found, side="right") - 1  # of each right candidate, best first
    rank = found - starts[group] + 1
    right_count = np.bincount(group, minlength=len(names))
    nth = np.arange(len(group)) - (np.cumsum(right_count) - right_count)[group] + 1
    precision = np.bincount(group, nth / rank, minlength=len(names)) / np.maximum(right_count, 1)
    reciprocal = np.bincount(group[nth == 1], 1 / rank[nth == 1], minlength=len(names))

    per_question = pd.DataFrame(
        {"question_id": names, "p_at_1": (reciprocal == 1).astype(float), "average_precision": precision}
    )
    per_question["reciprocal_rank"] = reciprocal
    without = np.flatnonzero(right_count == 0)
    if len(without) and empty == "raise":
        shown = ", ".join(repr(names[i]) for i in without[:3])
        raise ValueError(
            f"{len(without)} of {len(names)} questions have no right candidate, first {shown} (empty='skip' or 'zero')"
        )
    if empty == "skip":
        per_question = per_question[right_count > 0].reset_index(drop=True)
        if not len(per_question):
            raise ValueError(f"none of the {len(names)} questions has a right candidate")
    means = [float(per_question[column].mean()) for column in ("p_at_1", "average_precision", "reciprocal_rank")]
    return Ranking(*means, len(per_question), tied, len(without), per_question)


def of(scores: pd.DataFrame, **options) -> Ranking:
    """`ranking` of a table of scores: question_id, label, score, as every run writes it."""
    return ranking(scores["question_id"], scores["label"], scores["score"], **options)


def _groups(question_ids) -> tuple[np.ndarray, np.ndarray]:
    numbers, names = pd.factorize(pd.Series(question_ids))  # a Series keeps 1 and "1" apart where numpy would not
    missing = np.flatnonzero(numbers < 0)
    if len(missing):
        raise ValueError(f"row {missing[0]} has no question id")
    return numbers, np.asarray(names)


def _labels(labels) -> np.ndarray:
    values = np.asarray(labels)
    if values.dtype.kind in "biuf":
        wrong = np.flatnonzero((values != 0) & (values != 1))
    else:
        values = np.array(list(labels), dtype=object)
        wrong = [
            row for row, value in enumerate(values) if isinstance(value, str) or pd.isna(value) or value not in (0, 1)
        ]
    if len(wrong):
        raise ValueError(f"row {wrong[0]}: a label is 0 or 1, got {values[wrong[0] :][:1].tolist()[0]!r}")
    return values.astype(bool)


def _scores(scores) -> np.ndarray:
    values = np.asarray(scores)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"scores are numbers, got {values.dtype} (first: {values.ravel()[:1].tolist()})")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(f"row {wrong[0]}: a score is a finite number, got {values[wrong[0]]}")
    return values


def _descending(scores: np.ndarray) -> np.ndarray:
    """Whole numbers below 2**32 in the opposite order of the scores, equal exactly where the scores are."""
    if scores.dtype != np.float32:
        return (-1 - np.unique(scores, return_inverse=True)[1]).astype(np.uint32)
    bits = (scores + np.float32(0)).view(np.int32)  # + 0 makes -0.0 and 0.0 one score
    # A float's bits order its size: flip those of the positive ones, the negative ones are in descending order already.
    return (bits ^ (~(bits >> 31) & 0x7FFFFFFF)).view(np.uint32)


def _trec_order(keys: np.ndarray, candidate_ids) -> np.ndarray:
    if candidate_ids is None:
        raise ValueError("ties='trec_eval' orders ties by candidate_ids: give them")
    if len(candidate_ids) != len(keys):
        raise ValueError(f"one candidate id a row: got {len(candidate_ids)} for {len(keys)} rows")
    names = np.unique(np.array([str(name) for name in candidate_ids], dtype=object), return_inverse=True)[1]
    return np.lexsort((-names, keys >> 1))


def classification(labels, predictions) -> dict:
    """Accuracy, F1 of class 1 (0 where class 1 is neither present nor predicted) and the share of the most frequent label.

    Paper: sentence_objectives, table 3.
    Example:
        >>> classification([1, 0, 0, 0], [1, 1, 0, 0])
        {'accuracy': 0.75, 'f1': 0.6666666666666666, 'majority': 0.75}
    """
    labels, predictions = _classes(labels, predictions)
    both = int(((labels == 1) & (predictions == 1)).sum())
    either = int((labels == 1).sum() + (predictions == 1).sum())
    majority = np.unique(labels, return_counts=True)[1].max() / len(labels)
    return {
        "accuracy": float((labels == predictions).mean()),
        "f1": 2 * both / either if either else 0.0,
        "majority": float(majority),
    }


def auc(labels, scores) -> float:
    """Area under the ROC curve: the share of pairs of a right and a wrong example in which the right one scores higher, ties half.

    AUC = (sum of the ranks of the R right ones - R (R + 1) / 2) / (R W), ranks from the lowest score up, equal scores their mean
    Raises: ValueError for labels of one class alone, and as `ranking` does.
    Example:
        >>> auc([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4])
        0.875
    """
    right, scores = _labels(labels), _scores(scores)
    if not 0 < (positives := int(right.sum())) < len(right):
        raise ValueError(f"AUC needs examples of both classes: got {positives} right of {len(right)}")
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[places]
    above = ranks[right].sum() - positives * (positives + 1) / 2
    return float(above / positives / (len(right) - positives))


def verification(labels, predictions) -> dict:
    """Label accuracy, F1 of each verdict (0 where it is neither present nor predicted), and the share of the most frequent label.

    LA = mean over claims of [label = prediction],  F1_c = 2 |label c and predicted c| / (|label c| + |predicted c|)
    Paper: joint_inference, appendix B.3, the accuracy alone.
    Shapes: labels, predictions (N,), classes 0, 1, 2 as in `LABELS`.
    Example:
        >>> verification([0, 0, 1, 2], [0, 1, 1, 0])["label_accuracy"]
        0.5
    """
    table = confusion(labels, predictions)
    counts = table.to_numpy()
    right, either = np.diag(counts), counts.sum(0) + counts.sum(1)
    f1 = {
        f"f1_{name.lower().replace(' ', '_')}": float(2 * r / e) if e else 0.0
        for name, r, e in zip(table, right, either)
    }
    total = int(counts.sum())
    return {
        "label_accuracy": float(right.sum() / total),
        **f1,
        "majority": float(counts.sum(1).max() / total),
        "claims": total,
    }


def confusion(labels, predictions, names=LABELS) -> pd.DataFrame:
    """How often each class was predicted as each: rows are the labels, columns the predictions.

    Shapes: labels, predictions (N,) -> (C, C); `names` are those of the classes 0 to C - 1.
    Raises: ValueError naming the row for a number that is no class, such as the -1 of a blind test set.
    """
    labels, predictions = _classes(labels, predictions)
    for what, values in (("label", labels), ("prediction", predictions)):
        if len(wrong := np.flatnonzero((values < 0) | (values >= len(names)))):
            raise ValueError(f"row {wrong[0]}: a {what} is a class from 0 to {len(names) - 1}, got {values[wrong[0]]}")
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (labels.astype(np.int64), predictions.astype(np.int64)), 1)
    return pd.DataFrame(counts, pd.Index(names, name="label"), pd.Index(names, name="prediction"))


def _classes(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        raise ValueError(f"one prediction a label, at least one: got shapes {labels.shape} and {predictions.shape}")
    if labels.dtype.kind not in "biu" or predictions.dtype.kind not in "biu":
        raise ValueError(f"labels and predictions are class numbers, got {labels.dtype} and {predictions.dtype}")
    return labels, predictions


def write_trec(scores: pd.DataFrame, run_path: str | Path, qrels_path: str | Path, tag: str = "asutil") -> None:
    """Write scores (question_id, candidate_id, label, score) as the run and qrels files that trec_eval reads.

    Scores have as many digits as it takes to read the same 32-bit float back. At one score the rank of a wrong candidate comes first,
    as in `ranking`; trec_eval reads scores alone and breaks ties by its own rule.
    Raises: ValueError naming the row for an id that is empty or holds white space, or a candidate that a question has twice.
    """
    table = pd.DataFrame(
        {name: ["" if pd.isna(v) else str(v) for v in scores[name]] for name in ("question_id", "candidate_id")}
    )
    for name, column in table.items():
        wrong = np.flatnonzero(~column.str.fullmatch(r"\S+"))
        if len(wrong):
            raise ValueError(
                f"row {wrong[0]}: TREC files part their columns by white space, so {name} {column[wrong[0]]!r} cannot be one"
            )
    twice = np.flatnonzero(table.duplicated())
    if len(twice):
        raise ValueError(
            f"row {twice[0]}: candidate {table.candidate_id[twice[0]]!r} stands twice in question {table.question_id[twice[0]]!r}"
        )
    table["label"] = _labels(scores["label"]).astype(int)
    table["score"] = _scores(scores["score"]).astype(np.float32)
    lines = {"sep": " ", "header": False, "index": False, "lineterminator": "\n"}
    table.assign(zero=0)[["question_id", "zero", "candidate_id", "label"]].to_csv(qrels_path, **lines)
    table["question"] = pd.factorize(table.question_id)[0]
    table = table.sort_values(["question", "score", "label"], ascending=[True, False, True], kind="stable")
    table["rank"] = table.groupby("question").cumcount() + 1
    table = table.assign(q0="Q0", tag=tag, score=[f"{score:.9g}" for score in table.score])
    table[["question_id", "q0", "candidate_id", "rank", "score", "tag"]].to_csv(run_path, **lines)
