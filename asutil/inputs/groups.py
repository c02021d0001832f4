"""Candidates in groups of k that one encoder reads together with their question: [question, c_1 ... c_k]."""

from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from ..corpus import tokenizing
from ..draws import keyed, mix
from . import pairs, ragged
from .template import Template

BLOCK = 1 << 16  # candidates whose texts are hashed together


class Groups:
    """All candidates of a split in groups of k, each a joint example of k + 1 slots; a question's last group has empty slots.

    Which candidates come together, and in which slots, is drawn from their texts and a key: the order of rows, which tells the labels
    of TREC-QA, has no say. Every candidate is in one group; where a question has a text twice, chance says which row is in which slot.
    Paper: joint_inference, section 3.2.
    Deviation: D-75.
    Args:
        max_tokens: (k + 1) L, given to `join`: every text is cut to L tokens.
    """

    def __init__(self, tokenizer, questions, k: int):
        self._pairs, self.template, self.k = pairs.Pairs(tokenizer, questions), Template.of(tokenizer, 1), k
        self.labels, self.owners, self.question_ids = self._pairs.labels, self._pairs.owners, self._pairs.question_ids
        sizes = np.bincount(self.owners, minlength=len(self.question_ids))
        self._sizes, self._groups = sizes, -(-sizes // k)
        self.members_of = lru_cache(maxsize=2)(self._arranged)

    @property
    def candidate_ids(self) -> list[str]:
        return self._pairs.candidate_ids

    def __len__(self):
        return int(self._groups.sum())

    def members(self, numbers, key=0) -> np.ndarray:
        """The candidates of some groups under a key, -1 in an empty slot. Shapes: (B,) -> (B, k)"""
        return self.members_of(int(key))[numbers]

    def _arranged(self, key: int) -> np.ndarray:
        """All groups (G, k) under a key: a question's candidates in the order of a hash of their text, cut into groups."""
        order = np.lexsort((keyed(key, np.arange(len(self.owners))), mix(self._hashes + keyed(key)), self.owners))
        place = np.arange(len(order)) - np.repeat(self._sizes.cumsum() - self._sizes, self._sizes)
        group = np.repeat(self._groups.cumsum() - self._groups, self._sizes) + place // self.k
        table = np.full((len(self), self.k), -1)
        table[group, place % self.k] = order
        return table

    @cached_property
    def _hashes(self) -> np.ndarray:
        """A 64-bit hash of the tokens of each candidate's text."""
        starts, lengths = self._pairs.answers()
        blocks = [
            self._hashed(starts[at : at + BLOCK], lengths[at : at + BLOCK]) for at in range(0, len(starts), BLOCK)
        ]
        return np.concatenate([np.zeros(0, np.uint64), *blocks])

    def _hashed(self, starts, lengths) -> np.ndarray:
        ends = lengths.cumsum()
        place = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        tokens = np.asarray(self._pairs.tokens)[tokenizing.gathered(starts, lengths)]
        summed = np.concatenate([np.zeros(1, np.uint64), keyed(place, tokens).cumsum()])
        return summed[ends] - summed[ends - lengths]

    def levelled(self, scores: np.ndarray) -> np.ndarray:
        """Scores, of texts that a question has twice their mean: they differ by their slots alone. Shapes: (N,) -> (N,)"""
        return (
            pd.Series(scores).groupby([self.owners, self._hashes], sort=False).transform("mean").to_numpy(scores.dtype)
        )

    def labels_of(self, members: np.ndarray) -> np.ndarray:
        """Labels of the slots; IGNORED for an empty one. Shapes: (B, k) -> (B, k)"""
        return self._pairs.labels_of(members)

    def join(self, members: np.ndarray, max_tokens: int) -> ragged.Ragged:
        """Joint examples of questions and candidates. Shapes: (B, k) -> B examples of k + 1 slots"""
        slot_tokens, left = divmod(max_tokens, self.k + 1)
        if left:
            raise ValueError(
                f"max_tokens: a multiple of the {self.k + 1} slots of a question and {self.k} candidates, got {max_tokens}"
            )
        present = np.concatenate([np.ones((len(members), 1), bool), members >= 0], 1)
        asked = self._pairs.asked(members[:, 0])
        starts, lengths = (
            np.concatenate([q[:, None], c], 1)[present] for q, c in zip(asked, self._pairs.answers(members))
        )
        texts = pairs.join_texts(self._pairs.tokens, starts, lengths, self.template, slot_tokens)
        return pairs.as_slots(texts, present, slot_tokens)
