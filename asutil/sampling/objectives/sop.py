from ..objective import register
from .nsp import nsp


@register(4)
class sop(nsp):
    """Sentence Order Prediction: are two neighbouring segments (1-5 sentences each) in the order of the text?

    Positive: as in nsp. Negative: the same two segments, swapped.
    Paper: sentence_objectives, section 5.3 (ALBERT's own task, for comparison).
    """

    swap = True
