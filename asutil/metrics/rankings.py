"""Ranking metrics as pure functions of (question, label, score), accuracy and F1 of two classes, AUC.

A ranking metric depends on the order of scores alone. Each row becomes one integer, question | score from the best down
| label, so that one sort of plain integers ranks many questions: 20 million pairs take about a second.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

ROWS_AT_ONCE = 1 << 12  # few rows sort faster, and all that is made from them fits into a cache
TIES = ("pessimistic", "trec_eval")
EMPTY = ("raise", "skip", "zero")


@dataclass(frozen=True)
class Ranking:
    """P@1, MAP and MRR (0 to 1) over `questions`, and the counts that a reader needs with them."""

    p_at_1: float
    map: float
    mrr: float
    questions: int
    tied_questions: int
    empty_questions: int
    per_question: pd.DataFrame

    def record(self) -> dict:
        """The figures by the names that records and tables use."""
        counts = ("questions", "tied_questions", "empty_questions")
        return {"p@1": self.p_at_1, "map": self.map, "mrr": self.mrr} | {name: getattr(self, name) for name in counts}


def ranking(
    question_ids, labels, scores, ties: str = "pessimistic", empty: str = "raise", candidate_ids=None
) -> Ranking:
    """P@1, mean average precision and mean reciprocal rank of candidates ranked by score within each question.

    P@1 = mean_q [the best candidate is right],  MRR = mean_q 1 / rank(first right candidate),  MAP = mean_q AP_q,
    AP_q = mean over right candidates c of (right candidates down to c) / rank(c)
    Paper: sentence_objectives, section 5.1.
    Args:
        question_ids: one str or int per row, in any order; lists, arrays or Series, as are labels and scores.
        labels: 0 or 1 per row.
        scores: higher is better. Two scores tie where they are equal in their own precision: nothing is rounded.
        ties: "pessimistic", the wrong candidate first; "trec_eval", as trec_eval does it: scores as 32-bit floats, then
            candidate_ids from the highest string down.
        empty: what happens to questions without a right candidate: "raise", "skip" (left out) or "zero" (counted as 0).
        candidate_ids: one per row, for ties="trec_eval" alone.
    Returns: a Ranking; `tied_questions` have a right and a wrong candidate at one score; `per_question` has
        question_id, p_at_1, average_precision, reciprocal_rank in the order of first appearance.
    Raises: ValueError naming the row for a score that is not finite, a label other than 0 and 1, a missing question id,
        and for unequal lengths, no rows, or (empty="raise") questions without a right candidate.
    Example:
        >>> r = ranking(["a", "a", "a", "b", "b"], [0, 1, 1, 1, 0], [0.9, 0.8, 0.1, 0.7, 0.7])
        >>> round(r.map, 4), r.mrr, r.p_at_1, r.tied_questions
        (0.5417, 0.5, 0.0, 1)
    """
    require("ties", ties, TIES)
    require("empty", empty, EMPTY)
    questions, names, right, scores = _checked_rows(question_ids, labels, scores)
    sizes = np.bincount(questions, minlength=len(names))
    if ties == "trec_eval":
        candidates = _numbered(candidate_ids, len(right))
        positions, tied = _sorted(questions, sizes, right, scores.astype(np.float32), candidates)
    else:
        positions, tied = _sorted(questions, sizes, right, scores)

    right_count, precision, reciprocal = _by_question(positions, sizes)
    columns = {"p_at_1": (reciprocal == 1).astype(float), "average_precision": precision, "reciprocal_rank": reciprocal}
    per_question = pd.DataFrame({"question_id": names} | columns)
    per_question = _counted(per_question, right_count, empty)
    means = [float(per_question[column].mean()) for column in columns]
    return Ranking(*means, len(per_question), tied, int((right_count == 0).sum()), per_question)


def _by_question(positions: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many right candidates each question has, its average precision and its reciprocal rank.

    Args:
        positions: of the right candidates, in increasing order, where all candidates stand question by question, best first.
        sizes: how many candidates each question has.
    """
    starts = np.cumsum(sizes) - sizes
    question = np.searchsorted(starts, positions, side="right") - 1
    rank = positions - starts[question] + 1
    right_count = np.bincount(question, minlength=len(sizes))
    nth = np.arange(len(question)) - (np.cumsum(right_count) - right_count)[question] + 1
    first = nth == 1
    precision = np.bincount(question, nth / rank, minlength=len(sizes)) / np.maximum(right_count, 1)
    reciprocal = np.bincount(question[first], 1 / rank[first], minlength=len(sizes))
    return right_count, precision, reciprocal


def of(scores: pd.DataFrame, **options) -> Ranking:
    """`ranking` of a table of scores: question_id, label, score, as every run writes it."""
    return ranking(scores["question_id"], scores["label"], scores["score"], **options)


def at_random(rows: pd.DataFrame, empty: str = "raise") -> Ranking:
    """The expectation of `ranking` for a random order of the candidates of each question: question_id, label.

    Of N candidates, R of them right:  E[P@1] = R / N,  E[RR] = sum_r C(N - r, R - 1) / C(N, R) / r,
    E[AP] = (H_N + (R - 1) / (N - 1) (N - H_N)) / N,  H_N = 1 + 1/2 + ... + 1/N
    Args:
        empty: as for `ranking`.

    Example:
        >>> at_random(pd.DataFrame({"question_id": ["a"] * 3, "label": [0, 1, 0]})).map  # (1 + 1/2 + 1/3) / 3
        0.611111111111111
    """
    require("empty", empty, EMPTY)
    questions, names, right, _ = _checked_rows(rows["question_id"], rows["label"], np.zeros(len(rows)))
    sizes, counts = np.bincount(questions), np.bincount(questions, right).astype(int)
    figures = {shape: _expected(*shape) for shape in set(zip(sizes.tolist(), counts.tolist()))}
    of_question = np.array([figures[shape] for shape in zip(sizes.tolist(), counts.tolist())])
    columns = ("p_at_1", "average_precision", "reciprocal_rank")
    per_question = pd.DataFrame({"question_id": names} | dict(zip(columns, of_question.T)))
    per_question = _counted(per_question, counts, empty)
    means = [float(per_question[column].mean()) for column in columns]
    return Ranking(*means, len(per_question), 0, int((counts == 0).sum()), per_question)


def _expected(size: int, right: int) -> tuple[float, float, float]:
    """P@1, average precision and reciprocal rank that a random order of `size` candidates has on average."""
    if not right:
        return 0.0, 0.0, 0.0
    harmonic = sum(1 / rank for rank in range(1, size + 1))
    precision = (harmonic + (right - 1) / max(size - 1, 1) * (size - harmonic)) / size
    reciprocal, first = 0.0, right / size  # the probability that the first right one stands at this rank
    for rank in range(1, size - right + 2):
        reciprocal += first / rank
        first *= (size - rank - right + 1) / max(size - rank, 1)
    return right / size, precision, reciprocal


def require(name: str, value: str, options: tuple[str, ...]) -> None:
    """Refuse an unknown value of an option. Raises: ValueError."""
    if value not in options:
        raise ValueError(f"{name} is one of {', '.join(options)}; got {value!r}")


def _checked_rows(question_ids, labels, scores) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The number of each row's question, the questions' names, labels as booleans, and scores."""
    # A Series keeps 1 and "1" apart where numpy would not.
    questions, names = _numbered_questions(pd.Series(question_ids))
    if len(missing := np.flatnonzero(questions < 0)):
        raise ValueError(f"row {missing[0]} has no question id")
    right, scores = checked_labels(labels), checked_scores(scores)
    if not questions.shape == right.shape == scores.shape:
        came = f"{len(questions)} question ids, {len(right)} labels, {len(scores)} scores"
        raise ValueError(f"one label and one score a row: got {came}")
    if not len(questions):
        raise ValueError("there are no rows to rank")
    return questions, np.asarray(names), right, scores


def _numbered_questions(ids: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """The same as `pd.factorize(ids)`; consecutive rows with the same id are looked up once."""
    values = ids.array
    changed = pd.Series(values[1:] != values[:-1]).fillna(True).to_numpy(bool)  # a missing id differs from any other
    starts = np.flatnonzero(np.append(True, changed))
    if 2 * len(starts) > len(ids):
        return pd.factorize(ids)
    questions, names = pd.factorize(ids.iloc[starts])
    return np.repeat(questions, np.diff(np.append(starts, len(ids)))), names


def checked_labels(labels) -> np.ndarray:
    """Labels 0 and 1 as booleans. Raises: ValueError naming the row of another label."""
    values = np.asarray(labels)
    if values.dtype.kind in "biuf":
        wrong = np.flatnonzero((values != 0) & (values != 1))
    else:
        values = np.array(list(labels), dtype=object)
        wrong = [n for n, value in enumerate(values) if isinstance(value, str) or pd.isna(value) or value not in (0, 1)]
    if len(wrong):
        raise ValueError(f"row {wrong[0]}: a label is 0 or 1, got {values[wrong[0] :][:1].tolist()[0]!r}")
    return values.astype(bool)


def checked_scores(scores) -> np.ndarray:
    """Scores as an array. Raises: ValueError naming the row of a score that is not finite."""
    values = np.asarray(scores)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"scores are numbers, got {values.dtype} (first: {values.ravel()[:1].tolist()})")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(f"row {wrong[0]}: a score is a finite number, got {values[wrong[0]]}")
    return values


def _sorted(questions, sizes, right, scores, candidates=None) -> tuple[np.ndarray, int]:
    """The places of the right candidates in the questions' ranked lists, and the number of tied questions.

    Args:
        sizes: how many candidates each question has.
        candidates: numbers that order candidates of one score, the highest first; None: the wrong candidate first.
    """
    parts = []
    for rows in _whole_questions(questions, sizes):
        positions, tied = _sort(
            questions[rows], right[rows], scores[rows], candidates if candidates is None else candidates[rows]
        )
        parts.append((positions + rows.start, tied))
    positions, tied = zip(*parts)
    return np.concatenate(positions), sum(tied)


def _whole_questions(questions: np.ndarray, sizes: np.ndarray) -> list[slice]:
    """Slices of some `ROWS_AT_ONCE` rows that cut no question apart; one slice where the rows of a question are scattered."""
    if (questions[1:] < questions[:-1]).any():
        return [slice(0, len(questions))]
    ends = np.cumsum(sizes)
    cuts = np.unique(ends[np.searchsorted(ends, np.arange(ROWS_AT_ONCE, len(questions), ROWS_AT_ONCE))])
    return [slice(start, end) for start, end in pairwise([0, *cuts[cuts < len(questions)], len(questions)])]


def _sort(questions, right, scores, candidates) -> tuple[np.ndarray, int]:
    """`_sorted` of some whole questions."""
    keys = questions.astype(np.uint64)  # question | score from the best down | label, in place
    keys <<= 32
    keys |= _descending(scores)
    keys <<= 1
    keys |= right
    order = None if candidates is None else np.lexsort((-candidates, keys >> 1))
    keys.sort()  # at one score label 0 sorts before label 1: the wrong candidate first
    positions = np.flatnonzero((keys.astype(np.uint8) & 1).view(bool))  # the lowest bit; of bytes it is found faster
    later = positions[positions > 0]
    tied = later[keys[later - 1] == keys[later] - 1]  # a wrong one stands just before, at the same score
    tied_questions = len(np.unique(keys[tied] >> 33))
    return (positions if order is None else np.flatnonzero(right[order])), tied_questions


def _descending(scores: np.ndarray) -> np.ndarray:
    """Whole numbers below 2**32 in the opposite order of the scores, equal exactly where the scores are."""
    if scores.dtype != np.float32:
        return (-1 - np.unique(scores, return_inverse=True)[1]).astype(np.uint32)
    bits = (scores + np.float32(0)).view(np.int32)  # + 0 makes -0.0 and 0.0 one score
    # A float's bits order its size: flip those of the positive ones, the negative ones are in descending order already.
    return (bits ^ (~(bits >> 31) & 0x7FFFFFFF)).view(np.uint32)


def _numbered(candidate_ids, rows: int) -> np.ndarray:
    """The place of each row's candidate id in the order of all ids as strings."""
    if candidate_ids is None:
        raise ValueError("ties='trec_eval' orders ties by candidate_ids: give them")
    if len(candidate_ids) != rows:
        raise ValueError(f"one candidate id a row: got {len(candidate_ids)} for {rows} rows")
    return np.unique(np.array([str(name) for name in candidate_ids], dtype=object), return_inverse=True)[1]


def _counted(per_question: pd.DataFrame, right_count: np.ndarray, empty: str) -> pd.DataFrame:
    """The questions that the means are taken over, by the rule for questions without a right candidate."""
    without = per_question.question_id[right_count == 0]
    if len(without) and empty == "raise":
        count = f"{len(without)} of {len(per_question)} questions"
        first = ", ".join(map(repr, without[:3]))
        raise ValueError(f"{count} have no right candidate, first {first} (empty='skip' or 'zero')")
    if empty != "skip":
        return per_question
    if len(without) == len(per_question):
        raise ValueError(f"none of the {len(per_question)} questions has a right candidate")
    return per_question[right_count > 0].reset_index(drop=True)


def classification(labels, predictions) -> dict:
    """Accuracy, F1 of class 1 (0 where class 1 is neither present nor predicted), the most frequent label's share.

    Paper: sentence_objectives, table 3.
    Example:
        >>> classification([1, 0, 0, 0], [1, 1, 0, 0])
        {'accuracy': 0.75, 'f1': 0.6666666666666666, 'majority': 0.75}
    """
    from sklearn import metrics

    labels, predictions = checked_classes(labels, predictions)
    return {
        "accuracy": float(metrics.accuracy_score(labels, predictions)),
        "f1": float(metrics.f1_score(labels, predictions, labels=[1], average="micro", zero_division=0)),
        "majority": float(np.unique(labels, return_counts=True)[1].max() / len(labels)),
    }


def checked_classes(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions as arrays of class numbers, of one length, at least one row."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        raise ValueError(f"one prediction a label, at least one: got shapes {labels.shape} and {predictions.shape}")
    if labels.dtype.kind not in "biu" or predictions.dtype.kind not in "biu":
        raise ValueError(f"labels and predictions are class numbers, got {labels.dtype} and {predictions.dtype}")
    return labels, predictions


def auc(labels, scores) -> float:
    """Area under the ROC curve: the share of (right, wrong) pairs in which the right example scores higher, ties half.

    AUC = (sum of the ranks of the R right examples - R (R + 1) / 2) / (R W)
    Ranks go from the lowest score up; equal scores have their mean rank.
    Raises: ValueError for labels of one class alone, and as `ranking` does.
    Example:
        >>> auc([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4])
        0.875
    """
    right, scores = checked_labels(labels), checked_scores(scores)
    if not 0 < (positives := int(right.sum())) < len(right):
        raise ValueError(f"AUC needs examples of both classes: got {positives} right of {len(right)}")
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[places]
    above = ranks[right].sum() - positives * (positives + 1) / 2
    return float(above / positives / (len(right) - positives))
