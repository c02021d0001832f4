import numpy as np

from ...draws import below, keyed
from ..formulas import LENGTH_A, LENGTH_B
from ..mspp import MultiSentenceSampler
from ..objective import Objective, register


@register(10)
class mspp(Objective):
    """Multi-Sentences in Paragraph Prediction: which of s_1 ... s_k are of the paragraph of s_0?

    max_tokens is that of one text.
    Paper: joint_inference, section 3.4; 64 tokens: appendix B.1.
    """

    sampler = MultiSentenceSampler
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
