"""The rules of every pre-training objective: which lengths are drawn, what an anchor needs, its positive pair, another paragraph's part.

A rule is a few formulas over a whole batch; `sampling.Sampler` does what all of them share.
"""

import numpy as np

from ..draws import below, keyed

# max_tokens: the longest input, where none is given. hard: whether negatives may come from the anchor's document. paragraphs: how many
# with enough sentences the document must have. negatives: how many there are in a group, where the rule leaves no choice.
# p is the anchor paragraph, start and n its first sentence and number of sentences, a and b the drawn lengths, key one 64-bit key an
# example. A part is R ranges of sentences [from, to), the last ones empty where fewer are enough: shape (B, R, 2), R = 2, with contexts 3.


def _placed(key, slack):
    """Two gaps (before the first span, between the spans), uniform over all that fit: 0 <= first, first + second <= slack."""
    low, high = below(keyed(key, 1), slack + 2), below(keyed(key, 2), slack + 1)
    high = high + (high >= low)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return low, high - low - 1


def _two(key, start, n, a, b, a_before=False, apart=0):
    """Where two disjoint spans of a and b sentences of a paragraph begin, `apart` or more sentences between them."""
    before, between = _placed(key, n - a - b - apart)
    a_first = (below(keyed(key, 3), 2) == 0) | a_before
    first = start + before
    second = first + between + apart + np.where(a_first, a, b)
    return np.where(a_first, first, second), np.where(a_first, second, first)


def _ranges(*bounds):
    bounds = np.stack(np.broadcast_arrays(*bounds), -1)
    return bounds.reshape(*bounds.shape[:-1], bounds.shape[-1] // 2, 2)


def one(start, stop, ranges=2):
    """A part of one range."""
    return _ranges(start, *[stop] * (2 * ranges - 1))


def _without(start, n, cut, length):
    """A paragraph without `length` sentences from `cut` on."""
    return _ranges(start, start + cut, start + cut + length, start + n)


class ssp:
    """Spans in the Same Paragraph: are A (1-3 sentences) and B (1-5) spans of one paragraph?

    Positive: contiguous, disjoint, either order, gaps allowed. Negative: B' of the same length from another paragraph.
    Paper: sentence_objectives, section 4 and appendix A.1.
    Deviation: D-01, hard negatives come from other paragraphs of the document; D-130, B is not always longer than A.
    """

    max_tokens, hard, paragraphs, negatives = 128, True, 1, None

    @staticmethod
    def lengths(key):
        return 1 + below(keyed(key, 11), 3), 1 + below(keyed(key, 12), 5)

    @staticmethod
    def needs(a, b):
        return a + b, b

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        at_a, at_b = _two(key, start, n, a, b, sampler.same_paragraph_before)
        return one(at_a, at_a + a), one(at_b, at_b + b), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, 4), n - b + 1)
        return one(at, at + b)


class sp:
    """Span in Paragraph: is the span A (1-3 sentences) taken out of the paragraph B?

    Positive: A and its paragraph without A. Negative: A and another paragraph with a random span of the same length taken out.
    Paper: sentence_objectives, section 4 and appendix A.1.
    """

    max_tokens, hard, paragraphs, negatives = 256, True, 1, None

    @staticmethod
    def lengths(key):
        a = 1 + below(keyed(key, 11), 3)
        return a, np.zeros_like(a)

    @staticmethod
    def needs(a, b):
        return a + 1, a + 1

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        cut = below(keyed(key, 1), n - a + 1)
        return one(start + cut, start + cut + a), _without(start, n, cut, a), p

    @staticmethod
    def other(start, n, a, b, key):
        return _without(start, n, below(keyed(key, 4), n - a + 1), a)


class psd:
    """Paragraphs in the Same Document: are A and B paragraphs of one document?

    Paper: sentence_objectives, section 4 and appendix A.1; there are no hard negatives.
    """

    max_tokens, hard, paragraphs, negatives = 256, False, 2, None

    @staticmethod
    def lengths(key):
        nothing = np.zeros(np.shape(key), np.int64)
        return nothing, nothing

    @staticmethod
    def needs(a, b):
        return a + 1, a + 1

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        q = sampler.sibling(p, 1 + a, keyed(key, 5))
        starts = sampler.corpus.paragraphs
        return one(start, start + n), one(starts[q], starts[q + 1]), q

    @staticmethod
    def other(start, n, a, b, key):
        return one(start, start + n)


class nsp:
    """Next Sentence Prediction: does B (1-5 sentences) follow A (1-5) in the text?

    Positive: two neighbouring segments of one paragraph. Negative: a segment of the same length from another document.
    Paper: sentence_objectives, section 5.3 (BERT's own task, for comparison).
    Deviation: D-68, segments of sentences of one paragraph; BERT fills its input; D-121, only a negative's B opens a paragraph.
    """

    max_tokens, hard, paragraphs, negatives = 128, False, 1, 1

    @staticmethod
    def lengths(key):
        return 1 + below(keyed(key, 11), 5), 1 + below(keyed(key, 12), 5)

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        first = start + below(keyed(key, 1), n - a - b + 1)
        return one(first, first + a), one(first + a, first + a + b), p

    needs, other = ssp.needs, ssp.other


class sop(nsp):
    """Sentence Order Prediction: do two neighbouring segments (1-5 sentences each) stand in the order of the text?

    Positive: as in nsp. Negative: the same two segments, swapped.
    Paper: sentence_objectives, section 5.3 (ALBERT's own task, for comparison).
    """


class Contextual:
    """What sdc, dpc and dslc share: are a (1 sentence) and b (1-3) of one paragraph, given a context c of b's document?

    Positive: two disjoint spans of one paragraph, either order. Negative: b of the same length from another paragraph.
    `context` takes the extent of c's home (b's paragraph or its document's first) and the ranges of a and b, those of b twice where a
    is of another paragraph.
    Paper: contextual_as2, section 4 and appendix A.1; 128 tokens: appendix C.
    """

    max_tokens, hard, paragraphs, negatives = 128, True, 1, None
    left, apart = 1, 0  # sentences that a paragraph must have for c, those of them that part a from b

    @staticmethod
    def lengths(key):
        b = 1 + below(keyed(key, 12), 3)
        return np.ones_like(b), b

    @classmethod
    def needs(cls, a, b):
        return a + b + cls.left, b + cls.left

    @classmethod
    def positive(cls, sampler, p, start, n, a, b, key):
        at_a, at_b = _two(key, start, n, a, b, apart=cls.apart)
        return one(at_a, at_a + a, 3), one(at_b, at_b + b, 3), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, 4), n - b + 1)
        return one(at, at + b, 3)


class sdc(Contextual):
    """Static Document-level Context: c is the first paragraph of b's document; a and b are of later ones.

    Paper: contextual_as2, section 4.
    """

    left = 0

    @staticmethod
    def context(start, n, a, b):
        return one(start, start + n, 3)


class dpc(Contextual):
    """Dynamic Paragraph-level Context: c is the paragraph of b without a and b, never empty.

    Paper: contextual_as2, section 4.
    """

    @staticmethod
    def context(start, n, a, b):
        low, high = np.minimum(a, b)[:, 0].T, np.maximum(a, b)[:, 0].T
        return _ranges(start, low[0], np.minimum(low[1], high[0]), high[0], high[1], start + n)


class dslc(Contextual):
    """Dynamic Sentence-level Local Context: c is the sentence before b and the one after it, one at least; a is neither.

    Paper: contextual_as2, section 4.
    """

    apart = 1

    @staticmethod
    def context(start, n, a, b):
        first, stop = b[:, 0].T
        end = np.minimum(stop + 1, start + n)
        return _ranges(np.maximum(first - 1, start), first, stop, end, end, end)


class mspp:
    """Multi-Sentences in Paragraph Prediction: which of s_1 ... s_k are of the paragraph of s_0?

    Its examples are groups, made by `mspp.MultiSentenceSampler`. max_tokens is that of one text.
    Paper: joint_inference, section 3.4; 64 tokens: appendix B.1.
    """

    max_tokens, hard, negatives = 64, True, None

    @staticmethod
    def lengths(key, longest):
        return 1 + below(keyed(key, 11), longest), 1 + below(keyed(key, 12), longest)

    @staticmethod
    def positive(start, n, a, b, count, key):
        """Where disjoint spans of a paragraph begin, all placements equally likely: one of a sentences, then `count` of b.

        Shapes: (B,) each -> (B, 1 + count)
        """
        spans = np.arange(1 + count)
        at = _subset(key, n - a - count * b + len(spans), len(spans))
        turn = below(keyed(key, len(spans)), np.full(np.shape(key), len(spans)))[
            :, None
        ]  # which of them, in the order of the text, has a
        at += start[:, None] + spans * (b[:, None] - 1) + np.where(spans > turn, (a - b)[:, None], 0)
        return np.concatenate([np.take_along_axis(at, turn, 1), at[spans != turn].reshape(len(at), count)], 1)


def _subset(key, size, count):
    """`count` different places out of range(size), in order, all sets of them equally likely. Shapes: (B,), (B,) -> (B, count)"""
    found = np.empty((len(size), 0), np.int64)
    for taken in range(count):
        place = below(keyed(key, taken), size - taken)
        for column in found.T:  # in order, so that each place that is passed moves it on by one
            place += place >= column
        found = np.sort(np.column_stack([found, place]), 1)
    return found


RULES = {rule.__name__: rule for rule in (ssp, sp, psd, nsp, sop, sdc, dpc, dslc)}
# Several objectives under one head, by the settings of the first.
UNIONS = {"all": ("ssp", "sp", "psd"), "context_all": ("sdc", "dpc", "dslc")}
