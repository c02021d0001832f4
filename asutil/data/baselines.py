"""Baselines of answer sentence selection that learn nothing."""

import importlib
import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import regex

from ..io.spelling import require_one_of

if TYPE_CHECKING:
    from .questions import Split

# Scripts without spaces between words, and the mark that lengthens a vowel of Katakana.
WITHOUT_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
LETTER = rf"(?![{WITHOUT_SPACES}])[\p{{L}}\p{{N}}_"  # marks and joiners continue a word, and begin none
WORDS = regex.compile(rf"[{WITHOUT_SPACES}]+|{LETTER}](?:{LETTER}\p{{M}}\p{{Join_Control}}])*")
UNSPACED = regex.compile(rf"[{WITHOUT_SPACES}]")
OF_A_GLYPH = regex.compile(r"[\p{Variation_Selector}\p{Me}]")  # choose a glyph or frame it, as in an emoji
ENOUGH = 10  # questions from which on equal scores are worth a warning
log = logging.getLogger(__name__)


def baseline_scores(split: "Split", baseline: str) -> pd.DataFrame:
    """Scores of an untrained ranker: question_id, candidate_id, label, score. Of a random order see `metrics.at_random`.

    Args:
        baseline: `document_order` (the first sentence first) or `bm25` (k1 1.5, b .75, document frequencies over all
            candidates of the split, `words`).
    Raises: ValueError for document order where row order is not document order.
    """
    require_one_of("baseline", baseline, ("document_order", "bm25"))
    frame = split.frame()
    if baseline == "bm25":
        import pyarrow as pa

        candidates = split.table["answer"].take(pa.array(split.rows())).to_pylist()
        scores = bm25(split.texts(), candidates, split.stops - split.starts)
    elif split.ordered:
        scores = np.repeat(split.starts, split.stops - split.starts) - split.rows()
    else:
        raise ValueError(f"{split.name}: rows of a question are not in document order, so their order is no baseline")
    return frame.assign(score=np.asarray(scores, np.float32))


def bm25(questions: Sequence[str], candidates: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
    """BM25 (k1 1.5, b .75) of `words`, document frequencies over all candidates. Warns where it orders no candidates of most questions.

    Args:
        candidates: of all questions, question after question.
        sizes: how many candidates each question has.
    Shapes: Q questions, N candidates -> (N,)
    """
    scores_for = bm25_over(candidates)
    scores = [scores_for(question, end - size, end) for question, size, end in zip(questions, sizes, np.cumsum(sizes))]
    tied = sum(len(own) > 1 and own.min() == own.max() for own in scores)
    if len(scores) >= ENOUGH and 2 * tied > len(scores):
        log.warning(
            "BM25 gives all candidates the same score in %d of %d questions, since they share no distinguishing word with it: "
            "its order there is none, and ties count as wrong",
            *(tied, len(scores)),
        )
    return np.concatenate(scores)


def words(text: str) -> list[str]:
    """The words of a text, in NFC and without case: runs of letters, digits, `_` and combining marks.

    A run of characters of a script without spaces gives its characters and the pairs of neighbours.
    Example:
        >>> words("Red wine_2, CAFE\u0301!"), words("\u6cd5\u570b\u7684 Paris")
        (['red', 'wine_2', 'caf\xe9'], ['\u6cd5', '\u570b', '\u7684', '\u6cd5\u570b', '\u570b\u7684', 'paris'])
    """
    if text.isascii():
        return re.findall(r"\w+", text.lower())
    split = []
    for run in WORDS.findall(unicodedata.normalize("NFC", OF_A_GLYPH.sub("", text.casefold()))):
        if UNSPACED.match(run):
            characters = regex.findall(r"\X", run)  # with their combining marks
            split += [*characters, *map("".join, pairwise(characters))]
        else:
            split.append(run)
    return split


def without_spaces(texts: Sequence[str]) -> bool:
    """Whether most texts have a script without spaces, where a word between two spaces is a whole clause, which nothing shares."""
    return 2 * sum(bool(UNSPACED.search(text)) for text in texts) > len(texts)


def bm25_over(texts: Iterable[str]) -> Callable[..., np.ndarray]:
    """A function that gives the BM25 of texts for a question (k1 1.5, b .75, `words`), at least 0: of all, or of those from one to another.

    Shapes: N texts; a question -> (N,); a question, first, stop -> (stop - first,)
    """
    # Interned: half a million candidates share their words.
    documents = [[sys.intern(word) for word in words(text)] for text in texts]
    index = _without_jax("bm25s").BM25(k1=1.5, b=0.75)
    if any(documents):  # bm25s refuses an index without words
        index.index(documents, show_progress=False)
    known = index.vocab_dict if any(documents) else {}

    def scores_for(question: str, first: int = 0, stop: int = len(documents)) -> np.ndarray:
        scores = np.zeros(stop - first, np.float32)
        for token in (known[word] for word in words(question) if word in known):
            start, end = index.scores["indptr"][token : token + 2]  # the texts with this word, in their order
            start, end = start + np.searchsorted(index.scores["indices"][start:end], (first, stop))
            scores[index.scores["indices"][start:end] - first] += index.scores["data"][start:end]
        return scores

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
