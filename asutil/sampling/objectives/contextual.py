import numpy as np

from ...draws import below, keyed
from ..formulas import LENGTH_B, POSITION, span, two_spans
from ..objective import Objective


class Contextual(Objective):
    """What sdc, dpc and dslc share: are a (1 sentence) and b (1-3) of one paragraph, given a context c of b's document?

    Positive: two disjoint spans of one paragraph, either order. Negative: b of the same length from another paragraph.
    `context` takes the first sentence and the size of c's home paragraph and the ranges of a and b; where a is of another paragraph,
    it takes the ranges of b twice.
    Paper: contextual_as2, section 4 and appendix A.1; 128 tokens: appendix C.
    """

    parts = 3
    left = 1  # sentences that a paragraph must have for c
    apart = 0  # those of them that are between a and b

    @staticmethod
    def lengths(key):
        b = 1 + below(keyed(key, LENGTH_B), 3)
        return np.ones_like(b), b

    @classmethod
    def needs(cls, a, b):
        return a + b + cls.left, b + cls.left

    @classmethod
    def positive(cls, sampler, p, start, n, a, b, key):
        at_a, at_b = two_spans(key, start, n, a, b, apart=cls.apart)
        return span(at_a, at_a + a, 3), span(at_b, at_b + b, 3), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, POSITION), n - b + 1)
        return span(at, at + b, 3)
