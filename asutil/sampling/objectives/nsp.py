from ...draws import below, keyed
from ..formulas import GAP_BEFORE, LENGTH_A, LENGTH_B, span
from ..objective import Objective, register
from .ssp import ssp


@register(3)
class nsp(Objective):
    """Next Sentence Prediction: does B (1-5 sentences) follow A (1-5) in the text?

    Positive: two neighbouring segments of one paragraph. Negative: a segment of the same length from another document.
    Paper: sentence_objectives, section 5.3 (BERT's own task, for comparison).
    Deviation: D-68, segments of sentences of one paragraph; BERT fills its input; D-121, only a negative's B opens a paragraph.
    """

    hard = False
    negatives = 1
    needs, other = ssp.needs, ssp.other

    @staticmethod
    def lengths(key):
        return 1 + below(keyed(key, LENGTH_A), 5), 1 + below(keyed(key, LENGTH_B), 5)

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        first = start + below(keyed(key, GAP_BEFORE), n - a - b + 1)
        return span(first, first + a), span(first + a, first + a + b), p
