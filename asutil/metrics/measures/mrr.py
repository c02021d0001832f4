"""MRR: the mean over questions of the reciprocal rank."""

import numpy as np

from ..registry import Ranks, register


def value(ranks: Ranks) -> np.ndarray:
    """1 / rank of the first right candidate. Shapes: (Q,)"""
    return 1 / ranks.first


def at_random(size: int, right: int) -> float:
    """sum_r C(N - r, R - 1) / C(N, R) / r, of N candidates, R of them right."""
    reciprocal, first = 0.0, right / size  # the probability that the first right one stands at this rank
    for rank in range(1, size - right + 2):
        reciprocal += first / rank
        first *= (size - rank - right + 1) / max(size - rank, 1)
    return reciprocal


about = {"trec_eval": "recip_rank", "torchmetrics": ("RetrievalMRR", None)}
register("mrr", "MRR", "reciprocal_rank", value, at_random, **about)
