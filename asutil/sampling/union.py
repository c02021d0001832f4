"""Examples of a union: groups of several objectives in equal parts."""

from dataclasses import replace

import numpy as np

from ..draws import permuted
from .base import BaseSampler
from .objective import OBJECTIVES
from .spans import Spans


class UnionSampler(BaseSampler):
    """The examples of a union, by number: a keyed permutation mixes the groups of the members.

    Each member gives as many groups as the one with the fewest anchors has: the others give some of theirs, each epoch other ones.
    Deviation: D-120.
    """

    def __init__(self, corpus, rule, options):
        super().__init__(corpus, rule, options)
        common = replace(options, max_tokens=self.max_tokens, labels="true", same_paragraph_before=False)
        self.members = []
        for name in rule.members:
            member = OBJECTIVES[name]
            before = options.same_paragraph_before and member.before
            self.members.append(member.sampler(corpus, member, replace(common, same_paragraph_before=before)))
        self.groups = len(self.members) * min(member.groups for member in self.members)

    def spans(self, indices) -> Spans:
        """The examples with these numbers as sentence ranges. Raises: IndexError for a number outside the epoch."""
        indices = self._numbers(indices)
        groups, slots = np.divmod(indices, 1 + self.negatives)
        places = permuted(groups, self.groups, self.key)
        owners, numbers = np.divmod(places, self.groups // len(self.members))
        rows, parts = [], []
        for owner, member in enumerate(self.members):
            own = np.flatnonzero(owners == owner)
            rows.append(own)
            parts.append(member.spans(numbers[own] * (1 + self.negatives) + slots[own]))
        back = np.argsort(np.concatenate(rows))
        ranges, paragraphs, kinds = (
            np.concatenate([getattr(part, name) for part in parts])[back] for name in ("ranges", "paragraphs", "kinds")
        )
        return Spans(ranges, paragraphs, self._labels(kinds, groups, slots), kinds, groups, owners)
