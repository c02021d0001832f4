"""Whether the rows of a data set are in the order of its documents, where no column tells: without that order, no row has a context.

The rows of a split can show that they are not (`check`); only the documents themselves could show that they are.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

ROWS = 1 << 16  # texts that are hashed together
ENOUGH = 100  # neighbours that two questions share
FEWEST = 20  # questions that show how rows are sorted
NUMBERS = re.compile(r"^[\W\d_]+")  # as of a law or a transcript
LEADING = 0.8  # share of the questions whose right candidates stand first, or last, in rows sorted by label
SAME = 0.9  # of them that keep their order; a shuffled page of n sentences keeps one in n
MIXER = np.uint64(0x9E3779B97F4A7C15)


class Order(NamedTuple):
    """What was counted; those of several splits add up."""

    shared: int  # neighbours x, y of one question that another question has as well
    same: int  # of these, y follows x there too
    mixed: int  # questions with both labels
    positives_first: int  # of these, the right candidates stand before all others
    positives_last: int
    long: int  # questions with 4 candidates or more
    sorted: int  # of these, the texts are in alphabetical order, without the numbers that they begin with


def check(split, where) -> Order:
    """Refuse a split whose rows cannot be in the order of their documents.

    Questions about one document list the same sentences, so two sentences that are neighbours for one question must be neighbours, the
    same one first, for every other question about it; where rows have titles, these tell documents apart. Rows that are sorted by label
    or by text pass this test, and are refused too.

    Args:
        split: a `questions.Split` with all of its rows.
    Raises: ValueError with the measured order; also where too few sentences are shared to tell.
    """
    order = measure(split)
    few = f"only {order.shared:,} neighbours stand under two questions, {ENOUGH} are needed"
    if reasons := [few] * (order.shared < ENOUGH) + contradictions(order):
        expected = "rows in the order of their documents, which gives candidates a context"
        raise ValueError(f"{where}: expected {expected}; {'; '.join(reasons)}")
    return order


def contradictions(order: Order) -> list[str]:
    """What shows that rows are not in the order of their documents."""
    reasons = []
    if order.shared >= ENOUGH and order.same < SAME * order.shared:
        share = f"{order.same / order.shared:.0%} are neighbours there in the same order"
        reasons.append(f"of {order.shared:,} neighbours that another question has, too, {share}")
    for end, count in (("first", order.positives_first), ("last", order.positives_last)):
        if order.mixed >= FEWEST and count > LEADING * order.mixed:
            reasons.append(f"the right candidates stand {end} in {count / order.mixed:.0%} of the questions")
    if order.long >= FEWEST and order.sorted > order.long / 2:
        reasons.append(f"{order.sorted / order.long:.0%} of the questions have their candidates in alphabetical order")
    return reasons


def measure(split) -> Order:
    """How far the rows keep one order, question by question; sentences that occur twice in a question are left out."""
    sizes = split.stops - split.starts
    long = np.flatnonzero(sizes > 3)
    some = long[:: max(1, len(long) // 200)]
    texts = [[NUMBERS.sub("", candidate.text) for candidate in split[int(i)].candidates] for i in some]
    in_order = sum(question == sorted(question) and question[0] != question[-1] for question in texts)
    positives = split.positives()
    mixed = (positives > 0) & (positives < sizes)
    until = np.concatenate([[0], np.cumsum(split.table["label"].to_numpy(), dtype=np.int64)])
    leading = until[split.starts + positives] - until[split.starts]  # positives among the first rows of each question
    trailing = until[split.stops] - until[split.stops - positives]
    by_label = (int((rows == positives)[mixed].sum()) for rows in (leading, trailing))
    return Order(*_neighbours(split, sizes), int(mixed.sum()), *by_label, len(texts), in_order)


def _neighbours(split, sizes: np.ndarray) -> tuple[int, int]:
    """How many neighbours of one question another question has as well, and how many are in the same order there."""
    rows = split.rows()
    questions = np.repeat(np.arange(len(split), dtype=np.uint64), sizes)
    hashes = _hashes(split.table, "answer")[rows]
    moved = getattr(split.table, "order", None)
    adjacent = True if moved is None else np.diff(moved[rows]) == 1  # in the files
    if "document_title" in split.table.column_names:
        titles = _hashes(split.table, "document_title")[rows]
        hashes += titles * MIXER
        known = split.table["document_title"].is_valid().to_numpy()[rows]
        adjacent = adjacent & (titles[1:] == titles[:-1]) & known[1:]
    follows = np.append((questions[1:] == questions[:-1]) & adjacent, False)
    after = np.append(hashes[1:], hashes[:1])
    keys, key_of, counts = np.unique(hashes + questions * MIXER, return_inverse=True, return_counts=True)
    unique = np.flatnonzero(counts[key_of] == 1)
    unique = unique[np.argsort(hashes[unique], kind="stable")]
    first, second = unique[:-1], unique[1:]  # the same sentence under two questions, or the next sentence
    next_is_unique = counts[key_of[np.minimum(first + 1, len(key_of) - 1)]] == 1
    both = (hashes[first] == hashes[second]) & follows[first] & next_is_unique
    first, second = first[both], second[both]
    wanted = after[first] + questions[second] * MIXER
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    shared = (keys[position] == wanted) & (counts[position] == 1)
    same = follows[second] & (after[first] == after[second])
    return int(shared.sum()), int(same[shared].sum())


def _hashes(table, column: str) -> np.ndarray:
    starts = range(0, len(table), ROWS)
    texts = (table.slice(start, min(ROWS, len(table) - start))[column].to_numpy() for start in starts)
    return np.concatenate([pd.util.hash_array(part.astype(object), categorize=False) for part in texts])
