import numpy as np

from ..formulas import ranges
from ..objective import register
from .contextual import Contextual


@register(8)
class dslc(Contextual):
    """Dynamic Sentence-level Local Context: c is the sentence before b and the one after it, one at least; a is neither.

    Paper: contextual_as2, section 4.
    Deviation: D-149.
    """

    apart = 1

    @staticmethod
    def context(start, n, a, b):
        first, stop = b[:, 0].T
        end = np.minimum(stop + 1, start + n)
        return ranges(np.maximum(first - 1, start), first, stop, end, end, end)
