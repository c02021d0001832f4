import numpy as np

from ..formulas import ranges
from ..objective import register
from .contextual import Contextual


@register(7)
class dpc(Contextual):
    """Dynamic Paragraph-level Context: c is the paragraph of b without a and b, never empty.

    Paper: contextual_as2, section 4.
    Deviation: D-149.
    """

    @staticmethod
    def context(start, n, a, b):
        first, first_stop = np.minimum(a, b)[:, 0].T
        second, second_stop = np.maximum(a, b)[:, 0].T
        between = np.minimum(first_stop, second)  # nothing where a and b are one range
        return ranges(start, first, between, second, second_stop, start + n)
