"""P@1: whether the best candidate is right."""

import numpy as np

from ..registry import Ranks, register


def value(ranks: Ranks) -> np.ndarray:
    """[rank of the first right candidate = 1]. Shapes: (Q,)"""
    return (ranks.first == 1).astype(float)


def at_random(size: int, right: int) -> float:
    """R / N of N candidates, R of them right."""
    return right / size


register("p@1", "P@1", "p_at_1", value, at_random, card=1, trec_eval="P_1", torchmetrics=("RetrievalPrecision", 1))
