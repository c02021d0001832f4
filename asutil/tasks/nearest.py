"""Ranking by vectors: each text is embedded by itself, and candidates are ranked by nearness to the question."""

import hashlib
import json

import numpy as np
import pandas as pd
import torch

from .. import losses
from ..io.spelling import require_one_of
from ..metrics import rankings
from . import base
from .embedding import encoded

SIMILARITIES = ("distance", "cosine", "dot")  # readouts of two vectors, whatever made them
RANK_BY = (*SIMILARITIES, "manhattan", "probability")
USUAL = {"siamese": "distance", "triplet": "distance", "untrained": "cosine"}  # architecture -> the readout that ranks


def usual(encoder) -> str:
    """The default readout of an encoder: the one that it names, else the usual one of its architecture, else cosine."""
    embedding = getattr(encoder, "embedding", None)
    own = getattr(encoder, "similarity", None) or getattr(embedding, "rank_by", None)
    return own or USUAL[embedding.architecture if embedding else "untrained"]


def usual_of_vectors(encoder) -> str:
    """`usual` where there are vectors alone: a siamese head's probability has the distance in its place."""
    by = usual(encoder)
    return USUAL["siamese"] if by == "probability" else by


def similarity(questions: np.ndarray, candidates: np.ndarray, by: str) -> np.ndarray:
    """How near each candidate is to its question, row by row; nearer is higher.

    distance: -|u - v|;  cosine: u.v / (|u| |v|), 0 where a vector is 0;  dot: u.v;  manhattan: -sum_i |u_i - v_i|
    Paper: asbert, sections 3 and 4.4, which rank by closeness and do not define it.
    Shapes: (B, H), (B, H) -> (B,) float32
    Deviation: D-84.

    Example:
        >>> u, v = np.array([[3.0, 4.0]]), np.array([[6.0, 8.0]])
        >>> [similarity(u, v, by).item() for by in ("distance", "cosine", "dot")]
        [-5.0, 1.0, 50.0]
    """
    u, v = (torch.from_numpy(np.ascontiguousarray(vectors, np.float32)) for vectors in (questions, candidates))
    if by == "distance":
        return -losses.distance(u, v, squared=False).numpy()
    if by == "cosine":
        return torch.nn.functional.cosine_similarity(u, v, dim=-1).numpy()
    if by == "dot":
        return (u * v).sum(-1).numpy()
    if by == "manhattan":
        return -(u - v).abs().sum(-1).numpy()
    raise ValueError(f"rank_by: one of {', '.join(RANK_BY)} expected, got {by!r}")


class Nearest(base.BaseRanker):
    """Scores of candidates from their vectors and the question's, in float32, by every readout of the encoder.

    distance, cosine, dot, and manhattan where it ranks: `similarity`
    probability: the siamese head's logit z; P(label 1) = 1 / (1 + exp(-z)) has the same order, with more ties.
    Each has a column in the table of scores. In each window of questions a text is embedded once (if the encoder is asymmetric, once as
    a question and once as a candidate).
    Paper: asbert, sections 3 and 5: what makes the vectors is kept, and the nearest candidate is the answer.
    Args:
        encoder: anything with `encode(texts) -> (N, H)` and `identity`; an asymmetric one also takes `role`.
        by: the readout that ranks, one of RANK_BY; default: `usual`.
    Raises: ValueError for an unknown readout, or for a probability without a siamese head.
    Deviation: D-27.
    """

    def __init__(self, encoder, by: str | None = None):
        self.encoder, self.by = encoder, by or usual(encoder)
        self.head = getattr(encoder, "siamese", None)
        require_one_of("rank_by", self.by, RANK_BY)
        if self.by == "probability" and self.head is None:
            raise ValueError("rank_by: only a siamese network gives a probability; take distance, cosine or dot")

    def _window(self, questions: list, bar) -> pd.DataFrame:
        pairs = base.pairs_of(questions)
        asymmetric = getattr(self.encoder, "asymmetric", False)
        row_of = {}  # text -> its row among the vectors
        question_row_of = {} if asymmetric else row_of
        u = np.array([question_row_of.setdefault(q.text, len(question_row_of)) for q, _ in pairs], np.int64)
        v = np.array([row_of.setdefault(c.text, len(row_of)) for _, c in pairs], np.int64)
        vectors = encoded(self.encoder, list(row_of), "document")
        questions = encoded(self.encoder, list(question_row_of), "query") if asymmetric else vectors
        bar.update(len(pairs))
        scores = self.readouts(questions[u], vectors[v])
        return base.rows_of(pairs).assign(score=scores[self.by], **scores)

    @torch.no_grad()
    def readouts(self, questions: np.ndarray, candidates: np.ndarray) -> dict[str, np.ndarray]:
        """The score of each candidate by every readout. Shapes: (B, H), (B, H) -> (B,) each"""
        own = [self.by] if self.by == "manhattan" else []
        scores = {by: similarity(questions, candidates, by) for by in (*SIMILARITIES, *own)}
        if self.head is not None:
            device = self.head.linear.weight.device
            u, v = torch.from_numpy(questions).to(device), torch.from_numpy(candidates).to(device)
            scores["probability"] = self.head(u, v).cpu().numpy()
        return scores

    def _identity(self) -> str:
        head = [] if self.head is None else [tensor.tolist() for tensor in self.head.state_dict().values()]
        device = getattr(self.encoder, "device", "cpu")  # another device, another rounding
        return hashlib.sha256(json.dumps([self.encoder.identity, str(device), self.by, head]).encode()).hexdigest()


def measured(scores: dict[str, pd.DataFrame]) -> dict[str, dict[str, dict]]:
    """The metrics of what `Nearest.score` gave for each split: scoring function -> split -> metrics."""
    table = next(iter(scores.values()))
    readouts = [name for name in RANK_BY if name in table]
    return {
        by: {split: rankings.of(table.assign(score=table[by])).record() for split, table in scores.items()}
        for by in readouts
    }
