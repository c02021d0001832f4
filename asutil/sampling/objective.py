"""What every objective has, and the registry of all objectives."""

from collections.abc import Callable

import numpy as np

from ..draws import keyed
from ..registry import Registry
from .base import BaseSampler
from .pairs import PairSampler

OBJECTIVES: dict[str, type["Objective"]] = Registry("objectives")


def register(number: int, name: str | None = None) -> Callable[[type["Objective"]], type["Objective"]]:
    """A decorator: the objective with a number, which is part of the keys of all its draws.

    Args:
        number: one that no objective has or had.
        name: by default that of the class.
    Raises: ValueError for a number or a name that another objective has.
    """

    def registered(rule: type["Objective"]) -> type["Objective"]:
        rule.name, rule.number = name or rule.__name__, number
        OBJECTIVES.add(rule.name, rule)
        return rule

    return registered


class Objective:
    """The settings of an objective, and its formulas over a whole batch; an objective sets what differs from this.

    p is the anchor paragraph, start its first sentence and n its number of sentences. a and b are the drawn lengths, key is one 64-bit key
    an example. A part is R ranges of sentences [from, to), shape (B, R, 2); the last ones are empty where fewer are enough. R is 2, with
    contexts 3. An objective of pairs has

    lengths(key): a and b. Shapes: (B,) -> (B,), (B,)
    needs(a, b): the sentences that the paragraph of an anchor must have, and that of a negative.
    positive(sampler, p, start, n, a, b, key): A and B of the positive pair, and the paragraph of B.
    other(start, n, a, b, key): B of a negative, from another paragraph.
    context(start, n, a, b): with three parts, the context.
    """

    name: str
    number: int
    sampler: type[BaseSampler] = PairSampler
    members: tuple[str, ...] = ()  # of a union, the objectives that it is made of
    max_tokens = 128  # the longest input, where none is given
    parts = 2  # texts of an example
    paragraphs = 1  # how many with enough sentences the anchor's document must have
    hard = True  # whether negatives may come from the anchor's document
    before = False  # whether `same_paragraph_before` is an option
    swap = False  # whether the negative is the positive with its parts swapped
    negatives = None  # of a group, where the rule leaves no choice
    home = "own"  # where the context is: "own" paragraph of b, or the document's "first"

    @staticmethod
    def anchors(corpus, paragraphs):
        """Which of these paragraphs may be anchors if they have enough sentences. Shapes: (P,) -> (P,) bool"""
        return np.ones(len(paragraphs), bool)

    @classmethod
    def possible_lengths(cls):
        """The pairs of lengths that are drawn, each as often as the others. Shapes: (L,), (L,)"""
        return np.unique(np.stack(cls.lengths(keyed(0, np.arange(1000)))), axis=1)
