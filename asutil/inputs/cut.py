"""Examples of different lengths in parts under a budget of tokens."""

import numpy as np


def cut(lengths, budget: int, texts=1) -> list[np.ndarray]:
    """Rows in parts of at most `budget` tokens when all texts of a part are padded to its longest, the longest rows first.

    A row whose texts are more than the budget is a part of its own.
    Args:
        lengths: tokens of each row, or of its longest text.
        texts: of each row, one number or as many as rows.

    Example:
        >>> [part.tolist() for part in cut([3, 9, 4, 1], 8)]
        [[1], [2, 0], [3]]
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    until = np.broadcast_to(texts, lengths.shape)[order].cumsum()
    parts, start, done = [], 0, 0
    while start < len(order):
        fit = done + budget // int(lengths[order[start]])
        stop = max(start + 1, int(np.searchsorted(until, fit, side="right")))
        parts.append(order[start:stop])
        start, done = stop, until[stop - 1]
    return parts


def cut_evenly(lengths, budget: int) -> list[np.ndarray]:
    """Rows in parts of about equal numbers of tokens, without padding, near `budget`; the longest rows first.

    Example:
        >>> [part.tolist() for part in cut_evenly(np.array([3, 4, 4, 1]), 6)]
        [[1], [2, 0, 3]]
    """
    order = np.argsort(-lengths, kind="stable")
    until = lengths[order].cumsum()
    pieces = -(-int(until[-1]) // budget)
    places = np.searchsorted(until, np.arange(1, pieces) * until[-1] / pieces, side="right")
    return [part for part in np.split(order, places) if len(part)]
