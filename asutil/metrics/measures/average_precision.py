"""MAP: the mean over questions of average precision."""

import numpy as np

from ..registry import Ranks, register


def value(ranks: Ranks) -> np.ndarray:
    """Mean over right candidates c of (right candidates down to c) / rank(c). Shapes: (Q,)"""
    precisions = np.bincount(ranks.question, ranks.nth / ranks.rank, minlength=len(ranks.size))
    return precisions / np.maximum(ranks.right, 1)


def at_random(size: int, right: int) -> float:
    """(H_N + (R - 1) / (N - 1) (N - H_N)) / N,  H_N = 1 + 1/2 + ... + 1/N, of N candidates, R of them right."""
    harmonic = sum(1 / rank for rank in range(1, size + 1))
    return (harmonic + (right - 1) / max(size - 1, 1) * (size - harmonic)) / size


about = {"curve": True, "card": 2, "trec_eval": "map", "torchmetrics": ("RetrievalMAP", None)}
register("map", "MAP", "average_precision", value, at_random, **about)
