"""The training examples of siamese and triplet networks: labelled pairs; triplets of a question, a right and a wrong candidate."""

import hashlib

import numpy as np
import torch

from ..draws import keyed
from . import batches, pairs
from .cut import cut
from .ragged import Ragged
from .template import Template

# Numbers in the keys of draws.
LIMIT = 0x7219
LIMIT_OF_QUESTION = 0x7C4B


class LabelledPairs:
    """Examples of the siamese network: every question with each of its candidates, and the label.

    Paper: asbert, section 3.1.
    """

    def __init__(self, tokenizer, questions):
        self.pairs = pairs.Pairs(tokenizer, questions)
        self.template = Template.of(tokenizer, 1)

    def __len__(self):
        return len(self.pairs)

    def are_cut(self, max_tokens: int) -> np.ndarray:
        """Which candidates of the split are longer than `max_tokens`. Shapes: (N,) bool"""
        return self.pairs.are_cut(max_tokens, self.template)

    def candidates(self, numbers: np.ndarray) -> np.ndarray:
        """The candidates of some examples, as rows of the split. Shapes: (B,) -> (B, 1)"""
        return np.asarray(numbers)[:, None]

    def labels(self, numbers: np.ndarray) -> np.ndarray:
        """1 for a right candidate, else 0. Shapes: (B,) -> (B,)"""
        return self.pairs.labels[self.candidates(numbers)[:, 0]].astype(np.int64)

    def join(self, numbers: np.ndarray, max_tokens: int) -> tuple[Ragged, Ragged]:
        """The questions of some examples, and their candidates: the first candidate of every example, then the second of every one.

        Shapes: (B,) -> B texts, B * R texts, each cut to max_tokens
        """
        rows = self.candidates(numbers)
        questions, answers = self.pairs.questions(rows[:, 0]), self.pairs.answers(rows.T.ravel())
        return tuple(
            pairs.join_texts(self.pairs.tokens, *texts, self.template, max_tokens) for texts in (questions, answers)
        )


class Triplets(LabelledPairs):
    """Examples of the triplet network: (question, right candidate, wrong candidate), all of them, or some.

    A question with r right and w wrong candidates has r * w; those of one right candidate follow each other.
    Paper: asbert, section 3.2 (all possible triplets).
    Args:
        limit: at most so many in all: those whose numbers have the smallest keyed hashes, for any seed.
        per_question: at most so many of each question, before `limit`: those whose candidates' ids have the smallest keyed hashes,
            for any seed and any order of questions and candidates.
    Raises: ValueError where no question has a right and a wrong candidate.
    Deviation: D-100.
    """

    def __init__(self, tokenizer, questions, limit: int | None = None, per_question: int | None = None):
        super().__init__(tokenizer, questions)
        owners, right = self.pairs.owners, self.pairs.labels == 1
        self._right, self._wrong = np.flatnonzero(right), np.flatnonzero(~right)
        wrong = np.bincount(owners[~right], minlength=len(self.pairs.question_ids))
        self._each = wrong[owners[right]]  # triplets of each right candidate
        self._ends = self._each.cumsum()
        self._first = (wrong.cumsum() - wrong)[owners[right]]  # the question's first wrong candidate
        self.all = int(self._each.sum())
        if not self.all:
            raise ValueError("triplets need a question with a right and a wrong candidate, got none")
        self._chosen = np.arange(self.all)
        if per_question is not None:
            ids = (candidate.id.encode() for question in questions for candidate in question.candidates)
            hashes = (hashlib.blake2b(id, digest_size=8).digest() for id in ids)
            self._chosen = self._capped(np.frombuffer(b"".join(hashes), "<u8"), per_question)
        if limit is not None and limit < len(self._chosen):
            order = np.argsort(keyed(LIMIT, self._chosen), kind="stable")
            self._chosen = np.sort(self._chosen[order[:limit]])

    def _capped(self, ids: np.ndarray, most: int) -> np.ndarray:
        """Numbers of the triplets that remain with at most `most` a question, sorted; ids (C,): hashes of the candidates' ids."""
        right, wrong = self.candidates(np.arange(self.all)).T
        owners = self.pairs.owners[right]
        order = np.lexsort([keyed(LIMIT_OF_QUESTION, ids[right], ids[wrong]), owners])  # by hash within each question
        each = np.bincount(owners)
        rank = np.arange(self.all) - np.repeat(each.cumsum() - each, each)
        return np.sort(order[rank < most])

    def __len__(self):
        return len(self._chosen)

    def candidates(self, numbers: np.ndarray) -> np.ndarray:
        """The right and the wrong candidate of some triplets, as rows of the split. Shapes: (B,) -> (B, 2)"""
        numbers = self._chosen[numbers]
        right = np.searchsorted(self._ends, numbers, side="right")
        wrong = self._first[right] + numbers - (self._ends - self._each)[right]
        return np.stack([self._right[right], self._wrong[wrong]], -1)


class TripletBatches(batches.FinetuningBatches):
    """Optimiser batches of `LabelledPairs` or `Triplets`, by step; every epoch visits each example once, in a keyed order.

    A micro-batch is {"questions": a padded table (B, T), "candidates": one (B * R, T'), "labels": (B,)}, of whole examples ordered by
    their longest text.
    """

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        questions, candidates = self.pairs.join(numbers, self.max_tokens)
        labels = self.pairs.labels(numbers)
        rows = np.arange(len(candidates.lengths)).reshape(-1, len(numbers))
        longest = np.maximum(questions.lengths, candidates.lengths[rows].max(0))
        pad = self.pairs.template.pad
        micro = [
            {
                "questions": batches.tensors(questions.take(some).columns(pad)),
                "candidates": batches.tensors(candidates.take(rows[:, some].ravel()).columns(pad)),
                "labels": torch.from_numpy(labels[some]),
            }
            for some in cut(longest, self.micro_tokens, 1 + len(rows))
        ]
        return batches.optimiser_batch(micro, len(labels), np.concatenate([questions.ids, candidates.ids]), labels)


def examples_for(
    architecture: str, tokenizer, questions, limit: int | None = None, expected: int | None = None, per_question=None
) -> LabelledPairs:
    """The training examples of a siamese or a triplet network.

    Args:
        limit, per_question: the most triplets, in all and of each question.
        expected: the number of triplets before either limit (`data.answers.TRIPLETS`).
    Raises: ValueError for another number of triplets, or for a limit where there are no triplets.
    """
    if architecture == "triplet":
        triplets = Triplets(tokenizer, questions, limit, per_question)
        if expected not in (None, triplets.all):
            wanted = f"{expected:,} triplets of a question, a right and a wrong candidate"
            raise ValueError(f"expected {wanted}, got {triplets.all:,}")
        return triplets
    for name, value in (("triplet_limit", limit), ("triplets_per_question", per_question)):
        if value is not None:
            raise ValueError(f"{name}: only the triplet network has triplets, got architecture={architecture}")
    return LabelledPairs(tokenizer, questions)
