"""Baselines of answer sentence selection that learn nothing."""

import re
import sys

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
        scores = _bm25(split)
    elif split.ordered:
        scores = np.repeat(split.starts, split.stops - split.starts) - split.rows()
    else:
        raise ValueError(
            f"{split.name}: the rows of a question are not in document order, so their order is no baseline"
        )
    return frame.assign(score=np.asarray(scores, np.float32))


def _bm25(split: Split) -> np.ndarray:
    import bm25s

    def words(text: str) -> list[str]:
        return [
            sys.intern(word) for word in re.findall(r"\w+", text.lower())
        ]  # half a million candidates share their words

    questions = split.table["question"].take(pa.array(split.starts)).to_pylist()
    candidates = [words(text) for text in split.table["answer"].take(pa.array(split.rows())).to_pylist()]
    if not any(candidates):  # there is no index without words
        return np.zeros(len(candidates))
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(candidates, show_progress=False)
    sizes = split.stops - split.starts
    scores = []
    for question, size, end in zip(questions, sizes, np.cumsum(sizes)):
        query = [
            word for word in words(question) if word in index.vocab_dict
        ]  # bm25s refuses a query of unknown words only
        scores.append(index.get_scores(query)[end - size : end] if query else np.zeros(size))
    return np.concatenate(scores)
