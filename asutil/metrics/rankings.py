"""Ranking metrics as pure functions of (question, label, score), accuracy and F1 of two classes, AUC."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..io.spelling import require_one_of
from . import registry
from .registry import Ranks

TIES = ("pessimistic", "trec_eval")
EMPTY = ("raise", "skip", "zero")


@dataclass(frozen=True)
class Ranking:
    """Means over `questions` by the keys of the measures (0 to 1), and the counts that a reader needs with them.

    Each mean is also an attribute: p_at_1, map, mrr.
    """

    values: dict[str, float]
    questions: int
    tied_questions: int
    empty_questions: int
    per_question: pd.DataFrame

    def __getattr__(self, name: str) -> float:
        values = self.__dict__.get("values", {})
        if (key := name.replace("_at_", "@")) not in values:
            raise AttributeError(f"Ranking has no {name}")
        return values[key]

    def record(self) -> dict:
        """The figures by the names that records and tables use."""
        counts = ("questions", "tied_questions", "empty_questions")
        return self.values | {name: getattr(self, name) for name in counts}


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
        question_id, also as its index, p_at_1, average_precision, reciprocal_rank and the columns of further measures, in
        the order of first appearance.
    Raises: ValueError naming the row for a score that is not finite, a label other than 0 and 1, a missing question id,
        and for unequal lengths, no rows, or (empty="raise") questions without a right candidate.
    Example:
        >>> r = ranking(["a", "a", "a", "b", "b"], [0, 1, 1, 1, 0], [0.9, 0.8, 0.1, 0.7, 0.7])
        >>> round(r.map, 4), r.mrr, r.p_at_1, r.tied_questions
        (0.5417, 0.5, 0.0, 1)
    """
    require_one_of("ties", ties, TIES)
    require_one_of("empty", empty, EMPTY)
    questions, names, right, scores = _checked_rows(question_ids, labels, scores)
    rows = len(right)
    if ties == "trec_eval":
        scores, first = scores.astype(np.float32), _numbered(candidate_ids, rows)
    else:
        first = ~right
    # By question, from the highest score down, at one score from the highest of `first` down.
    order = np.lexsort((first, scores, -questions))[::-1]
    questions, right, scores = questions[order], right[order], scores[order]
    mixed = (questions[1:] == questions[:-1]) & (scores[1:] == scores[:-1]) & (right[1:] != right[:-1])
    size, right_count = np.bincount(questions), np.bincount(questions, right).astype(int)
    rank = np.arange(rows) - (np.cumsum(size) - size)[questions] + 1
    ranks = Ranks(questions[right], rank[right], size, right_count)
    values = {measure: measure.value(ranks) for measure in registry.measures("question")}
    return _averaged(names, values, right_count, len(np.unique(questions[1:][mixed])), empty)


def of(scores: pd.DataFrame, **options) -> Ranking:
    """`ranking` of a table of scores: question_id, label, score, as every run writes it; of one ranker and one seed.

    Raises: as `ranking`, and ValueError naming the row of a candidate that a question has twice, where there is a candidate_id.
    """
    ids = scores.get("candidate_id", pd.Series("", scores.index))
    again = scores.assign(candidate_id=ids).duplicated(["question_id", "candidate_id"]) & ids.notna() & (ids != "")
    if again.any():
        row = int(again.argmax())
        question, candidate = scores.iloc[row][["question_id", "candidate_id"]]
        expected = "the scores of one ranker and one seed are expected"
        raise ValueError(f"row {row}: candidate {candidate} appears twice in question {question}; {expected}")
    return ranking(scores["question_id"], scores["label"], scores["score"], **options)


def at_random(rows: pd.DataFrame, empty: str = "raise") -> Ranking:
    """The expectation of `ranking` for a random order of the candidates of each question: question_id, label.

    The formula of each measure stands in its file, as `at_random`.
    Args:
        empty: as for `ranking`.

    Example:
        >>> at_random(pd.DataFrame({"question_id": ["a"] * 3, "label": [0, 1, 0]})).map  # (1 + 1/2 + 1/3) / 3
        0.611111111111111
    """
    require_one_of("empty", empty, EMPTY)
    questions, names, right, _ = _checked_rows(rows["question_id"], rows["label"], np.zeros(len(rows)))
    size, right_count = np.bincount(questions), np.bincount(questions, right).astype(int)
    shapes, values = list(zip(size.tolist(), right_count.tolist())), {}
    for measure in registry.measures("question"):
        expected = {shape: measure.at_random(*shape) if shape[1] else 0.0 for shape in set(shapes)}
        values[measure] = np.array([expected[shape] for shape in shapes])
    return _averaged(names, values, right_count, 0, empty)


def _checked_rows(question_ids, labels, scores) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The number of each row's question, the questions' names, labels as booleans, and scores."""
    # A Series keeps 1 and "1" apart where numpy would not.
    questions, names = pd.factorize(pd.Series(question_ids))
    if len(missing := np.flatnonzero(questions < 0)):
        raise ValueError(f"row {missing[0]} has no question id")
    right, scores = checked_labels(labels), checked_scores(scores)
    if not questions.shape == right.shape == scores.shape:
        came = f"{len(questions)} question ids, {len(right)} labels, {len(scores)} scores"
        raise ValueError(f"one label and one score a row: got {came}")
    if not len(questions):
        raise ValueError("there are no rows to rank")
    return questions, np.asarray(names), right, scores


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


def _numbered(candidate_ids, rows: int) -> np.ndarray:
    """The place of each row's candidate id in the order of all ids as strings."""
    if candidate_ids is None:
        raise ValueError("ties='trec_eval' orders ties by candidate_ids: give them")
    if len(candidate_ids) != rows:
        raise ValueError(f"one candidate id a row: got {len(candidate_ids)} for {rows} rows")
    return np.unique(np.array([str(name) for name in candidate_ids], dtype=object), return_inverse=True)[1]


def _averaged(names: np.ndarray, values: dict, right_count: np.ndarray, tied: int, empty: str) -> Ranking:
    """Means over the questions that count by the rule for questions without a right candidate."""
    without = names[right_count == 0].tolist()
    if len(without) and empty == "raise":
        count = f"{len(without)} of {len(names)} questions"
        first = ", ".join(map(repr, without[:3]))
        raise ValueError(f"{count} have no right candidate, first {first} (empty='skip' or 'zero')")
    if len(without) == len(names) and empty == "skip":
        raise ValueError(f"none of the {len(names)} questions has a right candidate")
    columns = {measure.column: of_questions for measure, of_questions in values.items()}
    # The index is for tests of significance, which match questions by it.
    per_question = pd.DataFrame({"question_id": names} | columns, index=names)
    if empty == "skip":
        per_question = per_question[right_count > 0]
    means = {measure.key: float(per_question[measure.column].mean()) for measure in values}
    return Ranking(means, len(per_question), tied, len(without), per_question)


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
    ranks = pd.Series(scores).rank().to_numpy()
    above = ranks[right].sum() - positives * (positives + 1) / 2
    return float(above / positives / (len(right) - positives))
