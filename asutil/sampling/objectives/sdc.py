from ..formulas import span
from ..objective import register
from .contextual import Contextual


@register(6)
class sdc(Contextual):
    """Static Document-level Context: c is the first paragraph of b's document; a and b are of later ones.

    Paper: contextual_as2, section 4.
    """

    home = "first"
    left = 0

    @staticmethod
    def context(start, n, a, b):
        return span(start, start + n, 3)
