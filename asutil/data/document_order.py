"""Whether the rows of a data set stand in the order of its documents, where no column says so: without that, no row has a context.

The rows of a split alone can show that they do not (`check`); the documents themselves can show that they do (`beside`).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

ROWS = 1 << 16  # texts that are hashed together
ENOUGH, SAME = 100, 0.9  # neighbours that two questions share; a shuffled page of n sentences keeps one in n of them


class Order(NamedTuple):
    shared: int  # neighbours x, y of one question that another one has as well
    same: float  # share of these where y follows x there too
    positives_first: float  # share of the questions with both labels
    sorted: float  # share of the questions with 4 candidates or more whose texts stand in alphabetical order


def check(split, where) -> Order:
    """Refuse a split whose rows cannot be in the order of their documents.

    Questions about one document list the same sentences, so two that are neighbours for one question must be neighbours, the same one
    first, for every other. Rows with the positives first, or in alphabetical order, are consistent in this way too, and are refused.

    Args:
        split: a `answers.Split` with all of its rows.
    Raises: ValueError with what was found; also where too few sentences are shared to tell.
    """
    found = measure(split)
    wrong = {
        f"only {found.shared:,} neighbours stand under two questions, {ENOUGH} are needed": found.shared < ENOUGH,
        f"of {found.shared:,} neighbours under two questions {found.same:.0%} keep their order": found.same < SAME,
        f"the right candidates stand first in {found.positives_first:.0%} of the questions": found.positives_first
        > 0.8,
        f"{found.sorted:.0%} of the questions have their candidates in alphabetical order": found.sorted > 0.5,
    }
    if any(wrong.values()):
        reasons = "; ".join(reason for reason, bad in wrong.items() if bad)
        raise ValueError(
            f"{where}: expected rows in the order of their documents, which gives candidates a context; {reasons}"
        )
    return found


def measure(split) -> Order:
    """What the rows tell of their order, question by question; sentences that stand twice in a question are left out."""
    sizes, rows = split.stops - split.starts, split.rows()
    asked, hashes = np.repeat(np.arange(len(split), dtype=np.uint64), sizes), _hashes(split.table)[rows]
    moved = getattr(split.table, "order", None)
    follows = np.append((asked[1:] == asked[:-1]) & (True if moved is None else np.diff(moved[rows]) == 1), False)
    after = np.append(hashes[1:], hashes[:1])
    known, which, times = np.unique(_key(hashes, asked), return_inverse=True, return_counts=True)
    once = np.flatnonzero(times[which] == 1)
    once = once[np.argsort(hashes[once], kind="stable")]
    one, other = once[:-1], once[1:]  # the same sentence under two questions, or the next sentence
    both = (hashes[one] == hashes[other]) & follows[one] & (times[which[np.minimum(one + 1, len(which) - 1)]] == 1)
    one, other = one[both], other[both]
    wanted = _key(after[one], asked[other])
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    shared = (known[place] == wanted) & (times[place] == 1)
    same = follows[other] & (after[one] == after[other])
    positives = split.positives()
    mixed = (positives > 0) & (positives < sizes)
    first = np.concatenate([[0], np.cumsum(split.table["label"].to_numpy(), dtype=np.int64)])
    first = first[split.starts + positives] - first[split.starts] == positives
    long = np.flatnonzero(sizes > 3)
    texts = [[c.text for c in split[int(i)].candidates] for i in long[:: max(1, len(long) // 200)]]
    return Order(
        int(shared.sum()),
        _share(same[shared]),
        _share(first[mixed]),
        _share(np.array([t == sorted(t) for t in texts], bool)),
    )


def _hashes(table) -> np.ndarray:
    starts = range(0, len(table), ROWS)
    texts = (table.slice(start, min(ROWS, len(table) - start))["answer"].to_numpy() for start in starts)
    return np.concatenate([pd.util.hash_array(part.astype(object), categorize=False) for part in texts])


def _key(hashes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    return hashes + asked * np.uint64(0x9E3779B97F4A7C15)


def _share(true: np.ndarray) -> float:
    return float(true.mean()) if len(true) else 0.0


def beside(questions, documents: Mapping[str, Iterable[str]]) -> tuple[int, int]:
    """Neighbours that stand side by side in a document of their question, and all neighbours whose question has one.

    Args:
        questions: of `Question`s loaded with their context.
        documents: question text -> its documents.

    Example:
        >>> from asutil.data.answers import Candidate, Question
        >>> beside([Question("1", "who?", (Candidate("", "She.", 1, None, "Not he."),))], {"who?": ["It was her. She.  Not he."]})
        (1, 1)
    """
    found = total = 0
    for question in questions:
        texts = [" ".join(document.split()) for document in documents.get(question.text, ())]
        pairs = [" ".join(f"{c.text} {c.after}".split()) for c in question.candidates if c.after is not None and texts]
        found += sum(any(pair in text for text in texts) for pair in pairs)
        total += len(pairs)
    return found, total
