import numpy as np

from ...draws import keyed
from ..formulas import PARAGRAPH, span
from ..objective import Objective, register


@register(2)
class psd(Objective):
    """Paragraphs in the Same Document: are A and B paragraphs of one document?

    Paper: sentence_objectives, section 4 and appendix A.1; there are no hard negatives.
    """

    max_tokens = 256
    paragraphs = 2
    hard = False

    @staticmethod
    def lengths(key):
        zeros = np.zeros(np.shape(key), np.int64)
        return zeros, zeros

    @staticmethod
    def needs(a, b):
        return a + 1, a + 1

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        q = sampler.sibling(p, 1 + a, keyed(key, PARAGRAPH))
        return span(start, start + n), span(*sampler.corpus.paragraphs[[q, q + 1]]), q

    @staticmethod
    def other(start, n, a, b, key):
        return span(start, start + n)
