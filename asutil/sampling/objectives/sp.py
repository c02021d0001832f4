import numpy as np

from ...draws import below, keyed
from ..formulas import GAP_BEFORE, LENGTH_A, POSITION, span, without
from ..objective import Objective, register


@register(1)
class sp(Objective):
    """Span in Paragraph: is the span A (1-3 sentences) taken out of the paragraph B?

    Positive: A and its paragraph without A. Negative: A and another paragraph with a random span of the same length taken out.
    Paper: sentence_objectives, section 4 and appendix A.1.
    """

    max_tokens = 256

    @staticmethod
    def lengths(key):
        a = 1 + below(keyed(key, LENGTH_A), 3)
        return a, np.zeros_like(a)

    @staticmethod
    def needs(a, b):
        return a + 1, a + 1

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        cut = below(keyed(key, GAP_BEFORE), n - a + 1)
        return span(start + cut, start + cut + a), without(start, n, cut, a), p

    @staticmethod
    def other(start, n, a, b, key):
        return without(start, n, below(keyed(key, POSITION), n - a + 1), a)
