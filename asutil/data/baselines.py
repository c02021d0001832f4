"""Baselines of answer sentence selection that learn nothing."""

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from .questions import Split
from .splits import require_one_of


def baseline_scores(split: Split, baseline: str) -> pd.DataFrame:
    """Scores of an untrained ranker: question_id, candidate_id, label, score. Of a random order see `metrics.at_random`.

    Args:
        baseline: `document_order` (the first sentence first) or `bm25` (k1 1.5, b .75, document frequencies over all
            candidates of the split, lower-cased words).
    Raises: ValueError for document order where row order is not document order.
    """
    require_one_of("baseline", baseline, ("document_order", "bm25"))
    frame = split.frame()
    if baseline == "bm25":
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
    scores_for = bm25_over(candidates)
    ends = np.cumsum(sizes)
    return np.concatenate(
        [scores_for(question)[end - size : end] for question, size, end in zip(questions, sizes, ends)]
    )


def bm25_over(texts: Iterable[str]) -> Callable[[str], np.ndarray]:
    """A function that gives the BM25 of every text for a question (k1 1.5, b .75, lower-cased words); at least 0.

    Shapes: N texts; a question -> (N,)
    """
    bm25s = _without_jax("bm25s")

    def words(text: str) -> list[str]:  # interned: half a million candidates share their words
        return [sys.intern(word) for word in re.findall(r"\w+", text.lower())]

    documents = [words(text) for text in texts]
    zeros = np.zeros(len(documents), np.float32)
    if not any(documents):  # bm25s refuses an index without words, and a query of unknown words only
        return lambda question: zeros
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(documents, show_progress=False)

    def scores_for(question: str) -> np.ndarray:
        query = [word for word in words(question) if word in index.vocab_dict]
        return index.get_scores(query) if query else zeros

    return scores_for


def _without_jax(name: str):
    """The module, imported as on a machine without JAX.

    Where JAX is installed bm25s calls it once at its import, and at its first call JAX takes three quarters of a GPU's free memory.
    """
    installed = {part: sys.modules.pop(part) for part in ("jax", "jax.lax") if part in sys.modules}
    sys.modules.update({"jax": None, "jax.lax": None})
    try:
        return importlib.import_module(name)
    finally:
        del sys.modules["jax"], sys.modules["jax.lax"]
        sys.modules.update(installed)
