"""Verdicts on claims: predictions from scores, label accuracy, F1, how often each verdict was taken for each."""

from collections import Counter

import numpy as np
import pandas as pd

from .rankings import checked_classes

# FEVER's labels, as numbers 0, 1, 2.
LABELS = ("SUPPORTS", "NOT ENOUGH INFO", "REFUTES")


def column_of(label: str) -> str:
    """The column of a label in a table of scores, and the end of the name of its F1."""
    return label.lower().replace(" ", "_")


CLASSES = tuple(map(column_of, LABELS))


def verification(labels, predictions, names=LABELS) -> dict:
    """Label accuracy, F1 of each verdict (0 where it is neither present nor predicted), the majority's share.

    LA = mean over claims of [label = prediction],  F1_c = 2 |label c and predicted c| / (|label c| + |predicted c|)
    Paper: joint_inference, appendix B.3, the accuracy alone.
    Shapes: labels, predictions (N,), numbers of the classes `names`.
    Example:
        >>> verification([0, 0, 1, 2], [0, 1, 1, 0])["label_accuracy"]
        0.5
    """
    from sklearn import metrics

    labels, predictions = _classes(labels, predictions, len(names))
    f1 = metrics.f1_score(labels, predictions, labels=range(len(names)), average=None, zero_division=0)
    return {
        "label_accuracy": float(metrics.accuracy_score(labels, predictions)),
        **{f"f1_{column_of(name)}": float(value) for name, value in zip(names, f1)},
        "majority": float(np.bincount(labels).max() / len(labels)),
        "claims": len(labels),
    }


def confusion(labels, predictions, names=LABELS) -> pd.DataFrame:
    """How often each class was predicted as each: rows are the labels, columns the predictions.

    Shapes: labels, predictions (N,) -> (C, C); `names` are those of the classes 0 to C - 1.
    Raises: ValueError naming the row for a number that is no class, such as the -1 of a blind test set.
    """
    from sklearn import metrics

    labels, predictions = _classes(labels, predictions, len(names))
    counts = metrics.confusion_matrix(labels, predictions, labels=range(len(names)))
    return pd.DataFrame(counts, pd.Index(names, name="label"), pd.Index(names, name="prediction"))


def _classes(labels, predictions, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions, all of them classes from 0 to count - 1."""
    labels, predictions = checked_classes(labels, predictions)
    for what, values in {"label": labels, "prediction": predictions}.items():
        if len(wrong := np.flatnonzero((values < 0) | (values >= count))):
            raise ValueError(f"row {wrong[0]}: a {what} is a class from 0 to {count - 1}, got {values[wrong[0]]}")
    return labels.astype(np.int64), predictions.astype(np.int64)


def predictions(scores: pd.DataFrame) -> np.ndarray:
    """The class of the highest score of each claim. Shapes: rows of `verifying.predict` -> (B,)

    Raises: ValueError naming the row of a score that is no number.
    """
    values = scores[list(CLASSES)].to_numpy()
    if len(wrong := np.flatnonzero(np.isnan(values).any(1))):
        raise ValueError(f"row {wrong[0]}: a score for each verdict expected, got {values[wrong[0]].tolist()}")
    return values.argmax(1)


def measured(scores: pd.DataFrame) -> dict:
    """`verification` of the rows of `verifying.predict`."""
    return verification(scores["label"], predictions(scores))


def per_claim(scores: pd.DataFrame) -> pd.DataFrame:
    """question_id (the claim's id) and label_accuracy, 1 where the verdict is right, else 0."""
    right = scores.label == predictions(scores)
    return pd.DataFrame({"question_id": scores.claim_id, "label_accuracy": right.astype(float)})


def majority(train, claims) -> dict:
    """`verification` of claims that all get the most frequent label of the claims of the training split."""
    [(most_frequent, _)] = Counter(claim.label for claim in train).most_common(1)
    return verification([claim.label for claim in claims], [most_frequent] * len(claims))
