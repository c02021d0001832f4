"""Candidates in groups of k of one question: lists for losses that compare them, and joint inputs [question, c_1 ... c_k]."""

from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from ..corpus import tokenizing
from ..draws import keyed, mix
from . import pairs, ragged
from .template import Template

BLOCK = 1 << 16  # candidates whose texts are hashed together


class Lists:
    """All candidates of a split in lists of up to k of one question; each candidate stays an input of its own.

    A list is drawn from the texts and a key: the order of rows, which gives away the labels of TREC-QA, does not matter. Every
    candidate is in one list.
    Args:
        pairs: `pairs.Pairs`.
        k: candidates of a list; a question with more of them has several lists, drawn anew every epoch.
    Raises: ValueError for groups, which a model reads together.
    """

    def __init__(self, pairs: pairs.Pairs, k: int):
        if isinstance(pairs, Lists):
            raise ValueError(f"lists of pairs expected, got {type(pairs).__name__}, which one input holds already")
        self._pairs, self.template, self.k = pairs, pairs.template, k
        self.labels, self.owners, self.question_ids = pairs.labels, pairs.owners, pairs.question_ids
        self._sizes = np.bincount(self.owners, minlength=len(self.question_ids))
        self._groups = -(-self._sizes // k)
        self.members_of = lru_cache(maxsize=2)(self._arranged)

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

    def labels_of(self, members: np.ndarray) -> np.ndarray:
        """Labels of the places; IGNORED for an empty one. Shapes: (B, k) -> (B, k)"""
        return self._pairs.labels_of(members)

    def join(self, members: np.ndarray, max_tokens: int) -> ragged.Ragged:
        """The pairs of some lists, list by list. Shapes: (B, k) -> as many examples as candidates"""
        return self._pairs.join(members[members >= 0], max_tokens)


class Groups(Lists):
    """Candidates in groups of k, each a joint example of k + 1 slots; a question's last group has empty slots.

    Where a question has a text twice, the draw assigns its rows to slots.
    Paper: joint_inference, section 3.2.
    Deviation: D-75.
    Args:
        k: candidates of a group.
    """

    def __init__(self, tokenizer, questions, k: int):
        super().__init__(pairs.Pairs(tokenizer, questions), k)
        self.template = Template.of(tokenizer, 1)

    def mean_over_duplicates(self, scores: np.ndarray) -> np.ndarray:
        """Scores; duplicate texts of a question, which differ in their slots, share their mean score. Shapes: (N,) -> (N,)"""
        texts = pd.Series(scores).groupby([self.owners, self._hashes], sort=False)
        return texts.transform("mean").to_numpy(scores.dtype)

    def are_cut(self, max_tokens: int) -> np.ndarray:
        """Which candidates are longer than their slot, or have a question that is. Shapes: (N,) bool"""
        slot = max_tokens // (self.k + 1)
        questions = self._pairs.questions(np.arange(len(self.owners)))[1] + self.template.added > slot
        return self._pairs.are_cut(slot, self.template) | questions

    def join(self, members: np.ndarray, max_tokens: int) -> ragged.Ragged:
        """Joint examples of questions and candidates, every text cut to L = max_tokens / (k + 1). Shapes: (B, k) -> B examples"""
        slot_tokens = pairs.slot_tokens_of(max_tokens, self.k + 1, f"a question and {self.k} candidates")
        present = np.concatenate([np.ones((len(members), 1), bool), members >= 0], 1)
        questions, candidates = self._pairs.questions(members[:, 0]), self._pairs.answers(members)
        starts, lengths = (np.concatenate([q[:, None], c], 1)[present] for q, c in zip(questions, candidates))
        texts = pairs.join_texts(self._pairs.tokens, starts, lengths, self.template, slot_tokens)
        return pairs.as_slots(texts, present, slot_tokens)
