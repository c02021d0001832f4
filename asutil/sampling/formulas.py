"""Formulas that objectives share: where spans of a paragraph begin, and parts of an example as ranges of sentences."""

import numpy as np

from ..draws import below, keyed

# Each draw of an example has a number, which is part of its key. Another number is another draw.
GAP_BEFORE = 1
GAP_BETWEEN = 2
ORDER = 3
POSITION = 4
PARAGRAPH = 5
LENGTH_A = 11
LENGTH_B = 12


def gaps(key, slack):
    """Two gaps, before the first span and between the spans, uniform over all that fit.

    0 <= before, 0 <= between, before + between <= slack
    """
    low = below(keyed(key, GAP_BEFORE), slack + 2)
    high = below(keyed(key, GAP_BETWEEN), slack + 1)
    high = high + (high >= low)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return low, high - low - 1


def two_spans(key, start, n, a, b, a_before=False, apart=0):
    """First sentences of two disjoint spans of a and b sentences, `apart` or more between them."""
    before, between = gaps(key, n - a - b - apart)
    a_first = (below(keyed(key, ORDER), 2) == 0) | a_before
    first = start + before
    second = first + between + apart + np.where(a_first, a, b)
    return np.where(a_first, first, second), np.where(a_first, second, first)


def ranges(*bounds):
    """A part of the ranges [bounds 0, bounds 1), [bounds 2, bounds 3) ... Shapes: (B,) each -> (B, R, 2)"""
    bounds = np.stack(np.broadcast_arrays(*bounds), -1)
    return bounds.reshape(*bounds.shape[:-1], bounds.shape[-1] // 2, 2)


def span(start, stop, count=2):
    """A part of one range; the other count - 1 ranges are empty."""
    return ranges(start, *[stop] * (2 * count - 1))


def without(start, n, cut, length):
    """A paragraph without the `length` sentences that begin at its sentence `cut`."""
    return ranges(start, start + cut, start + cut + length, start + n)
