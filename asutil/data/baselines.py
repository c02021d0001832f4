"""Baselines of answer sentence selection that learn nothing."""

import re
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from .questions import Split
from .splits import require_one_of


def baseline_scores(split: Split, baseline: str, seed: int = 0) -> pd.DataFrame:
    """Scores of an untrained ranker: question_id, candidate_id, label, score.

    Args:
        baseline: `random`, `document_order` (the first sentence first) or `bm25` (k1 1.5, b .75, document frequencies over all
            candidates of the split, lower-cased words).
    Raises: ValueError for document order where row order is not document order.
    """
    require_one_of("baseline", baseline, ("random", "document_order", "bm25"))
    frame = split.frame()
    if baseline == "random":
        scores = np.random.default_rng(seed).random(len(frame))
    elif baseline == "bm25":
        questions = split.table["question"].take(pa.array(split.starts)).to_pylist()
        candidates = split.table["answer"].take(pa.array(split.rows())).to_pylist()
        scores = bm25(questions, candidates, split.stops - split.starts)
    elif split.ordered:
        scores = np.repeat(split.starts, split.stops - split.starts) - split.rows()
    else:
        raise ValueError(
            f"{split.name}: the rows of a question are not in document order, so their order is no baseline"
        )
    return frame.assign(score=np.asarray(scores, np.float32))


def bm25(questions: Sequence[str], candidates: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
    """BM25 (k1 1.5, b .75) of lower-cased words, document frequencies over all candidates.

    Args:
        candidates: of all questions, question after question.
        sizes: how many candidates each question has.
    Shapes: Q questions, N candidates -> (N,)
    """
    import bm25s

    def words(text: str) -> list[str]:  # interned: half a million candidates share their words
        return [sys.intern(word) for word in re.findall(r"\w+", text.lower())]

    documents = [words(text) for text in candidates]
    if not any(documents):  # bm25s refuses an index without words, and a query of unknown words only
        return np.zeros(len(documents))
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(documents, show_progress=False)
    scores = []
    for question, size, end in zip(questions, sizes, np.cumsum(sizes)):
        query = [word for word in words(question) if word in index.vocab_dict]
        scores.append(index.get_scores(query)[end - size : end] if query else np.zeros(size))
    return np.concatenate(scores)
