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

    The groups and the slots are drawn from the texts and a key: the order of rows, which gives away the labels of TREC-QA, does not
    matter. Every candidate is in one group; where a question has a text twice, the draw assigns its rows to slots.
    Paper: joint_inference, section 3.2.
    Deviation: D-75.
    Args:
        k: candidates of a group.
    """

    def __init__(self, tokenizer, questions, k: int):
        self._pairs = pairs.Pairs(tokenizer, questions)
        self.template = Template.of(tokenizer, 1)
        self.k = k
        self.labels, self.owners, self.question_ids = self._pairs.labels, self._pairs.owners, self._pairs.question_ids
        self._sizes = np.bincount(self.owners, minlength=len(self.question_ids))
        self._groups = -(-self._sizes // k)
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
        rank = np.arange(len(order)) - np.repeat(self._sizes.cumsum() - self._sizes, self._sizes)  # in the question
        group = np.repeat(self._groups.cumsum() - self._groups, self._sizes) + rank // self.k
        table = np.full((len(self), self.k), -1)
        table[group, rank % self.k] = order
        return table

    @cached_property
    def _hashes(self) -> np.ndarray:
        """A 64-bit hash of the tokens of each candidate's text."""
        starts, lengths = self._pairs.answers()
        parts = [self._hashed(starts[at : at + BLOCK], lengths[at : at + BLOCK]) for at in range(0, len(starts), BLOCK)]
        return np.concatenate([np.zeros(0, np.uint64), *parts])

    def _hashed(self, starts, lengths) -> np.ndarray:
        ends = lengths.cumsum()
        position = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        tokens = np.asarray(self._pairs.tokens)[tokenizing.gathered(starts, lengths)]
        summed = np.concatenate([np.zeros(1, np.uint64), keyed(position, tokens).cumsum()])
        return summed[ends] - summed[ends - lengths]

    def mean_over_duplicates(self, scores: np.ndarray) -> np.ndarray:
        """Scores; duplicate texts of a question, which differ in their slots, share their mean score. Shapes: (N,) -> (N,)"""
        texts = pd.Series(scores).groupby([self.owners, self._hashes], sort=False)
        return texts.transform("mean").to_numpy(scores.dtype)

    def labels_of(self, members: np.ndarray) -> np.ndarray:
        """Labels of the slots; IGNORED for an empty slot. Shapes: (B, k) -> (B, k)"""
        return self._pairs.labels_of(members)

    def join(self, members: np.ndarray, max_tokens: int) -> ragged.Ragged:
        """Joint examples of questions and candidates, every text cut to L = max_tokens / (k + 1). Shapes: (B, k) -> B examples"""
        slot_tokens = pairs.slot_tokens_of(max_tokens, self.k + 1, f"a question and {self.k} candidates")
        present = np.concatenate([np.ones((len(members), 1), bool), members >= 0], 1)
        questions, candidates = self._pairs.questions(members[:, 0]), self._pairs.answers(members)
        starts, lengths = (np.concatenate([q[:, None], c], 1)[present] for q, c in zip(questions, candidates))
        texts = pairs.join_texts(self._pairs.tokens, starts, lengths, self.template, slot_tokens)
        return pairs.as_slots(texts, present, slot_tokens)
