"""Scores of the verdicts on claims -> predictions, label accuracy, and one value a claim."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..data.claims import LABELS, Claim
from . import rankings

CLASSES = tuple(label.lower().replace(" ", "_") for label in LABELS)  # columns of a table of scores


def predictions(scores: pd.DataFrame) -> np.ndarray:
    """The class of the highest score of each claim. Shapes: rows of `predict` -> (B,)"""
    return scores[list(CLASSES)].to_numpy().argmax(1)


def measured(scores: pd.DataFrame) -> dict:
    """Label accuracy, F1 of each verdict and the majority's share, of rows of `predict`."""
    return rankings.verification(scores["label"], predictions(scores))


def per_claim(scores: pd.DataFrame) -> pd.DataFrame:
    """question_id (the claim's id) and label_accuracy, 1 where the verdict is right, else 0."""
    return pd.DataFrame(
        {"question_id": scores.claim_id, "label_accuracy": (scores.label == predictions(scores)).astype(float)}
    )


def majority(train: Sequence[Claim], claims: Sequence[Claim]) -> dict:
    """What it gives to answer every claim with the most frequent label of the training side."""
    ((most, _),) = Counter(claim.label for claim in train).most_common(1)
    return rankings.verification([claim.label for claim in claims], [most] * len(claims))
