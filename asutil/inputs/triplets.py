"""What siamese and triplet networks are trained on: labelled pairs, and all triplets of a question, a right and a wrong candidate."""

import hashlib

import numpy as np
import torch

from ..draws import keyed
from . import batches, pairs
from .ragged import Ragged
from .template import Template


class LabelledPairs:
    """Examples of the siamese network: every question with each of its candidates, and the label.

    Paper: asbert, section 3.1.
    """

    def __init__(self, tokenizer, questions):
        self.pairs, self.template = pairs.Pairs(tokenizer, questions), Template.of(tokenizer, 1)

    def __len__(self):
        return len(self.pairs)

    def candidates(self, numbers: np.ndarray) -> np.ndarray:
        """The candidates of some examples, by their row in the split. Shapes: (B,) -> (B, 1)"""
        return np.asarray(numbers)[:, None]

    def labels(self, numbers: np.ndarray) -> np.ndarray:
        """1 for a right candidate, else 0. Shapes: (B,) -> (B,)"""
        return self.pairs.labels[self.candidates(numbers)[:, 0]].astype(np.int64)

    def join(self, numbers: np.ndarray, max_tokens: int) -> tuple[Ragged, Ragged]:
        """The questions of some examples, and their candidates: first the first of each example, then the second of each.

        Shapes: (B,) -> B texts, B * R texts, each cut to max_tokens by itself
        """
        rows, tokens = self.candidates(numbers), np.append(self.pairs.tokens, 0)
        asked, answers = self.pairs.asked(rows[:, 0]), self.pairs.answers(rows.T.ravel())
        return tuple(pairs.join_texts(tokens, *texts, self.template, max_tokens) for texts in (asked, answers))


class Triplets(LabelledPairs):
    """Examples of the triplet network: (question, right candidate, wrong candidate), all of them, or some.

    A question with r right and w wrong candidates has r * w; those of one right candidate follow each other.
    Paper: asbert, section 3.2 (all possible triplets).
    Args:
        limit: at most so many in all, those whose numbers have the smallest keyed hashes, whatever the seed.
        per_question: at most so many of each question, before `limit`: those whose candidates' ids have the smallest keyed hashes,
            whatever the seed and the order of questions and candidates.
    Raises: ValueError where no question has a right and a wrong candidate.
    Deviation: D-100.
    """

    def __init__(self, tokenizer, questions, limit: int | None = None, per_question: int | None = None):
        super().__init__(tokenizer, questions)
        owners, right = self.pairs.owners, self.pairs.labels == 1
        self._right, self._wrong = np.flatnonzero(right), np.flatnonzero(~right)
        wrong = np.bincount(owners[~right], minlength=len(self.pairs.question_ids))
        self._each = wrong[owners[right]]  # triplets of each right candidate
        self._ends, self._first = self._each.cumsum(), (wrong.cumsum() - wrong)[owners[right]]
        self.all = int(self._each.sum())
        if not self.all:
            raise ValueError("triplets need a question with a right and a wrong candidate, got none")
        self._chosen = np.arange(self.all)
        if per_question is not None:
            ids = (candidate.id for question in questions for candidate in question.candidates)
            self._chosen = self._capped(np.fromiter(map(_hash, ids), np.uint64, len(owners)), per_question)
        if limit is not None and limit < len(self._chosen):
            order = np.argsort(keyed(0x7219, self._chosen), kind="stable")
            self._chosen = np.sort(self._chosen[order[:limit]])

    def _capped(self, ids: np.ndarray, most: int) -> np.ndarray:
        """The triplets that remain of questions with `most` at most each. Shapes: hashes of the candidates' ids (C,) -> numbers, sorted"""
        right, wrong = self.candidates(np.arange(self.all)).T
        owners = self.pairs.owners[right]
        order = np.lexsort([keyed(0x7C4B, ids[right], ids[wrong]), owners])  # by hash within each question
        each = np.bincount(owners)
        rank = np.arange(self.all) - np.repeat(each.cumsum() - each, each)
        return np.sort(order[rank < most])

    def __len__(self):
        return len(self._chosen)

    def candidates(self, numbers: np.ndarray) -> np.ndarray:
        """The right and the wrong candidate of some triplets, by their rows in the split. Shapes: (B,) -> (B, 2)"""
        numbers = self._chosen[numbers]
        right = np.searchsorted(self._ends, numbers, side="right")
        wrong = self._first[right] + numbers - (self._ends - self._each)[right]
        return np.stack([self._right[right], self._wrong[wrong]], -1)


class Batches(batches.FinetuningBatches):
    """Optimiser batches of `LabelledPairs` or `Triplets`, by step; every epoch visits each example once, in a keyed order.

    A micro-batch is {"questions": a padded table (B, T), "candidates": one (B * R, T'), "labels": (B,)}, of whole examples ordered by
    their longest text.
    """

    def __init__(
        self,
        examples: LabelledPairs,
        epochs: int,
        batch_size: int,
        max_tokens: int,
        micro_tokens: int = 8192,
        seed: int = 0,
    ):
        super().__init__(examples, epochs, batch_size, max_tokens, micro_tokens, seed)

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        questions, candidates = self.pairs.join(numbers, self.max_tokens)
        labels, micro = self.pairs.labels(numbers), []
        rows = np.arange(len(candidates.lengths)).reshape(-1, len(numbers))
        longest = np.maximum(questions.lengths, candidates.lengths[rows].max(0))
        order = np.argsort(-longest, kind="stable")
        while len(order):
            some, order = np.split(order, [max(1, self.micro_tokens // (int(longest[order[0]]) * (1 + len(rows))))])
            texts = {"questions": questions.take(some), "candidates": candidates.take(rows[:, some].ravel())}
            micro.append({name: _padded(part, self.pairs.template.pad) for name, part in texts.items()})
            micro[-1]["labels"] = torch.from_numpy(labels[some])
        return {
            "micro": micro,
            "examples": len(labels),
            "masked": 0,
            "tokens": len(questions.ids) + len(candidates.ids),
        }


def _padded(texts: Ragged, pad: int) -> dict[str, torch.Tensor]:
    ids, types, _ = texts.columns(pad)
    table = {"input_ids": ids, "attention_mask": (np.arange(ids.shape[1]) < texts.lengths[:, None]).astype(np.int64)}
    return {
        name: torch.from_numpy(array)
        for name, array in (table | ({} if types is None else {"token_type_ids": types})).items()
    }


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def examples_for(
    architecture: str,
    tokenizer,
    questions,
    limit: int | None = None,
    expected: int | None = None,
    per_question: int | None = None,
) -> LabelledPairs:
    """The training examples of a siamese or a triplet network.

    Args:
        limit, per_question: the most triplets, in all and of each question.
        expected: how many triplets there must be before either of them (`COUNTS`).
    Raises: ValueError with the number expected and the one that came, or for a limit where there are no triplets.
    """
    if architecture == "triplet":
        found = Triplets(tokenizer, questions, limit, per_question)
        if expected not in (None, found.all):
            raise ValueError(
                f"expected {expected:,} triplets of a question, a right and a wrong candidate, got {found.all:,}"
            )
        return found
    for name, value in (("triplet_limit", limit), ("triplets_per_question", per_question)):
        if value is not None:
            raise ValueError(f"{name}: only the triplet network has triplets, got architecture={architecture}")
    return LabelledPairs(tokenizer, questions)
