from ...draws import below, keyed
from ..formulas import LENGTH_A, LENGTH_B, POSITION, span, two_spans
from ..objective import Objective, register


@register(0)
class ssp(Objective):
    """Spans in the Same Paragraph: are A (1-3 sentences) and B (1-5) spans of one paragraph?

    Positive: contiguous, disjoint, either order, gaps allowed. Negative: B' of the same length from another paragraph.
    Paper: sentence_objectives, section 4 and appendix A.1.
    Deviation: D-01, hard negatives come from other paragraphs of the document; D-130, B is not always longer than A.
    """

    before = True

    @staticmethod
    def lengths(key):
        return 1 + below(keyed(key, LENGTH_A), 3), 1 + below(keyed(key, LENGTH_B), 5)

    @staticmethod
    def needs(a, b):
        return a + b, b

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        at_a, at_b = two_spans(key, start, n, a, b, sampler.same_paragraph_before)
        return span(at_a, at_a + a), span(at_b, at_b + b), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, POSITION), n - b + 1)
        return span(at, at + b)
