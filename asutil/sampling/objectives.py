"""The rules of all pre-training objectives: the drawn lengths, what an anchor needs, its positive pair, and another paragraph's part.

A rule is a few formulas over a whole batch. The samplers do what all rules share.
"""

import numpy as np

from ..draws import below, keyed

# Each draw of an example has a number, which is part of its key. Another number is another draw.
GAP_BEFORE = 1
GAP_BETWEEN = 2
ORDER = 3
POSITION = 4
PARAGRAPH = 5
LENGTH_A = 11
LENGTH_B = 12

# p is the anchor paragraph, start its first sentence and n its number of sentences. a and b are
# the drawn lengths, key is one 64-bit key an example. A part is R ranges of sentences [from, to),
# shape (B, R, 2); the last ones are empty where fewer are enough. R is 2, with contexts 3.


def gaps(key, slack):
    """Two gaps, before the first span and between the spans, uniform over all that fit.

    0 <= before, 0 <= between, before + between <= slack
    """
    low = below(keyed(key, GAP_BEFORE), slack + 2)
    high = below(keyed(key, GAP_BETWEEN), slack + 1)
    high = high + (high >= low)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return low, high - low - 1


def two_spans(key, start, n, a, b, a_before=False, apart=0):
    """First sentences of two disjoint spans of a and b sentences, `apart` or more between them."""
    before, between = gaps(key, n - a - b - apart)
    a_first = (below(keyed(key, ORDER), 2) == 0) | a_before
    first = start + before
    second = first + between + apart + np.where(a_first, a, b)
    return np.where(a_first, first, second), np.where(a_first, second, first)


def ranges(*bounds):
    """A part of the ranges [bounds 0, bounds 1), [bounds 2, bounds 3) ... Shapes: (B,) each -> (B, R, 2)"""
    bounds = np.stack(np.broadcast_arrays(*bounds), -1)
    return bounds.reshape(*bounds.shape[:-1], bounds.shape[-1] // 2, 2)


def one(start, stop, count=2):
    """A part of one range; the other count - 1 ranges are empty."""
    return ranges(start, *[stop] * (2 * count - 1))


def without(start, n, cut, length):
    """A paragraph without the `length` sentences that begin at its sentence `cut`."""
    return ranges(start, start + cut, start + cut + length, start + n)


class Objective:
    """What every rule has; a rule sets what differs from this."""

    max_tokens = 128  # the longest input, where none is given
    parts = 2  # texts of an example
    paragraphs = 1  # how many with enough sentences the anchor's document must have
    hard = True  # whether negatives may come from the anchor's document
    swap = False  # whether the negative is the positive with its parts swapped
    negatives = None  # of a group, where the rule leaves no choice
    home = "own"  # where the context is: "own" paragraph of b, or the document's "first"

    @staticmethod
    def anchors(corpus, paragraphs):
        """Which of these paragraphs may be anchors if they have enough sentences. Shapes: (P,) -> (P,) bool"""
        return np.ones(len(paragraphs), bool)


class ssp(Objective):
    """Spans in the Same Paragraph: are A (1-3 sentences) and B (1-5) spans of one paragraph?

    Positive: contiguous, disjoint, either order, gaps allowed. Negative: B' of the same length from another paragraph.
    Paper: sentence_objectives, section 4 and appendix A.1.
    Deviation: D-01, hard negatives come from other paragraphs of the document; D-130, B is not always longer than A.
    """

    @staticmethod
    def lengths(key):
        return 1 + below(keyed(key, LENGTH_A), 3), 1 + below(keyed(key, LENGTH_B), 5)

    @staticmethod
    def needs(a, b):
        return a + b, b

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        at_a, at_b = two_spans(key, start, n, a, b, sampler.same_paragraph_before)
        return one(at_a, at_a + a), one(at_b, at_b + b), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, POSITION), n - b + 1)
        return one(at, at + b)


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
        return one(start + cut, start + cut + a), without(start, n, cut, a), p

    @staticmethod
    def other(start, n, a, b, key):
        return without(start, n, below(keyed(key, POSITION), n - a + 1), a)


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
        return one(start, start + n), one(*sampler.corpus.paragraphs[[q, q + 1]]), q

    @staticmethod
    def other(start, n, a, b, key):
        return one(start, start + n)


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
        return one(first, first + a), one(first + a, first + a + b), p


class sop(nsp):
    """Sentence Order Prediction: are two neighbouring segments (1-5 sentences each) in the order of the text?

    Positive: as in nsp. Negative: the same two segments, swapped.
    Paper: sentence_objectives, section 5.3 (ALBERT's own task, for comparison).
    """

    swap = True


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
        return one(at_a, at_a + a, 3), one(at_b, at_b + b, 3), p

    @staticmethod
    def other(start, n, a, b, key):
        at = start + below(keyed(key, POSITION), n - b + 1)
        return one(at, at + b, 3)


class sdc(Contextual):
    """Static Document-level Context: c is the first paragraph of b's document; a and b are of later ones.

    Paper: contextual_as2, section 4.
    """

    home = "first"
    left = 0

    @staticmethod
    def context(start, n, a, b):
        return one(start, start + n, 3)


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


class mspp(Objective):
    """Multi-Sentences in Paragraph Prediction: which of s_1 ... s_k are of the paragraph of s_0?

    `mspp.MultiSentenceSampler` makes the groups. max_tokens is that of one text.
    Paper: joint_inference, section 3.4; 64 tokens: appendix B.1.
    """

    max_tokens = 64
    parts = 1  # the tokenizer is given one text at a time

    @staticmethod
    def lengths(key, longest):
        a = 1 + below(keyed(key, LENGTH_A), longest)
        b = 1 + below(keyed(key, LENGTH_B), longest)
        return a, b

    @staticmethod
    def positive(start, n, a, b, count, key):
        """First sentences of disjoint spans: one of a sentences, then `count` of b; all placements equally likely.

        Shapes: (B,) each -> (B, 1 + count)
        """
        spans = np.arange(1 + count)  # in the order of the text
        turn = below(keyed(key, 1 + count), 1 + count)[:, None]  # the one of a sentences
        # Spans of one sentence are placed, then each grows to its length.
        at = subset(key, n - (a - 1) - count * (b - 1), 1 + count)
        at += start[:, None] + spans * (b - 1)[:, None]
        at += np.where(spans > turn, (a - b)[:, None], 0)
        of_b = at[spans != turn].reshape(len(at), count)
        return np.concatenate([np.take_along_axis(at, turn, 1), of_b], 1)


def subset(key, size, count):
    """`count` different numbers of range(size), in order, all sets equally likely. Shapes: (B,), (B,) -> (B, count)"""
    chosen = np.empty((len(size), 0), np.int64)
    for draw in range(count):
        number = below(keyed(key, draw), size - draw)
        for column in chosen.T:  # in order, so that each number that is passed moves it on by one
            number += number >= column
        chosen = np.sort(np.column_stack([chosen, number]), 1)
    return chosen


def possible_lengths(rule):
    """The pairs of lengths that a rule of pairs draws, each as often as the others. Shapes: (L,), (L,)

    Example:
        >>> [lengths.tolist() for lengths in possible_lengths(sp)]
        [[1, 2, 3], [0, 0, 0]]
    """
    return np.unique(np.stack(rule.lengths(keyed(0, np.arange(1000)))), axis=1)


RULES = {rule.__name__: rule for rule in (ssp, sp, psd, nsp, sop, sdc, dpc, dslc)}
# Several objectives under one head, by the settings of the first.
UNIONS = {"all": ("ssp", "sp", "psd"), "context_all": ("sdc", "dpc", "dslc")}
# The position of a name is part of the keys of its draws: new names come last.
OBJECTIVES = ("ssp", "sp", "psd", "nsp", "sop", "all", "sdc", "dpc", "dslc", "context_all", "mspp")
