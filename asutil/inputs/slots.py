"""Claims with their evidence as token ids: the slots of one joint input, or one pair a piece of evidence; and their batches."""

from collections.abc import Sequence

import numpy as np
import torch

from ..corpus.tokenizing import tokenized
from ..data.claims import Claim
from . import batches
from . import pairs as input_pairs
from .ragged import Ragged
from .template import Template


class Slots:
    """Claims with their first k pieces of evidence, in the order of the data, as a joint model reads them: [claim, e_1 ... e_k].

    A slot without evidence is empty. A text is tokenised once.
    Paper: joint_inference, sections 3.1 and 3.2.
    Deviation: D-79.
    """

    UNIT = "claims and pieces of evidence"  # of what `are_cut` counts
    parts = 1  # texts between the special tokens of one encoding

    def __init__(self, tokenizer, claims: Sequence[Claim], k: int):
        self.template = Template.of(tokenizer, self.parts)
        self.k = k
        labels = [input_pairs.IGNORED if claim.label is None else claim.label for claim in claims]
        self.labels = np.array(labels, np.int64)
        self._rows = np.full((len(claims), k + 1), -1)
        row_of = {"": 0}
        for row, claim in zip(self._rows, claims):
            texts = [claim.text, *(piece.text for piece in claim.evidence[:k])]
            row[: len(texts)] = [row_of.setdefault(text, len(row_of)) for text in texts]
        self._tokens, self._lengths = tokenized(tokenizer.backend_tokenizer, list(row_of))
        self._starts = self._lengths.cumsum() - self._lengths

    def __len__(self):
        return len(self._rows)

    def are_cut(self, max_tokens: int) -> np.ndarray:
        """Which claims and pieces of evidence are longer than their slot. Shapes: (N,) bool"""
        return self._lengths[self._rows[self._rows >= 0]] + self.template.added > max_tokens // (self.k + 1)

    def join(self, numbers: np.ndarray, max_tokens: int) -> Ragged:
        """The inputs of some claims. Shapes: (B,) -> B examples of k + 1 slots"""
        slot_tokens = input_pairs.slot_tokens_of(max_tokens, self.k + 1, "a claim and its evidence")
        rows = self._rows[numbers]
        present = rows >= 0
        return input_pairs.as_slots(self._texts(rows[present], slot_tokens), present, slot_tokens)

    def _texts(self, rows: np.ndarray, max_tokens: int) -> Ragged:
        return input_pairs.join_texts(self._tokens, self._starts[rows], self._lengths[rows], self.template, max_tokens)

    def laid_out(
        self, joined: Ragged, numbers: np.ndarray, labels: np.ndarray, micro_tokens: int, layout: str | None = None
    ) -> list[dict]:
        """Micro-batches of whole claims from `join`, ordered by length. Shapes: numbers, labels (B,)"""
        return batches.laid_out(layout, joined, labels, self.template.pad, micro_tokens)


class Pairs(Slots):
    """Claims with their first k pieces of evidence as a pairwise model reads them: each (claim, e_i) in an input of its own.

    A claim without evidence is read with an empty text, so that there is an input.
    Paper: joint_inference, appendix B.2.
    Deviation: D-79.
    """

    UNIT = "pairs of claim and evidence"
    parts = 2

    def __init__(self, tokenizer, claims: Sequence[Claim], k: int):
        super().__init__(tokenizer, claims, k)
        self._rows[:, 1] = np.maximum(self._rows[:, 1], 0)  # row 0 is the empty text

    def _pairs(self, numbers=slice(None)) -> np.ndarray:
        """The rows of claim and evidence. Shapes: (B,) -> (P, 2)"""
        rows = self._rows[numbers]
        claim, piece = np.nonzero(rows[:, 1:] >= 0)
        return np.stack([rows[claim, 0], rows[claim, piece + 1]], -1)

    def are_cut(self, max_tokens: int) -> np.ndarray:
        """Which pairs of a claim and its evidence are longer than `max_tokens`. Shapes: (P,) bool"""
        return self._lengths[self._pairs()].sum(-1) + self.template.added > max_tokens

    def join(self, numbers: np.ndarray, max_tokens: int) -> Ragged:
        """The pairs of some claims, claim by claim. Shapes: (B,) -> P examples"""
        return self._texts(self._pairs(numbers), max_tokens)

    def laid_out(
        self, joined: Ragged, numbers: np.ndarray, labels: np.ndarray, micro_tokens: int, layout: str | None = None
    ) -> list[dict]:
        """Micro-batches of whole claims, their pairs padded or packed; firsts (B, K): where each pair begins, -1 for none."""
        present = self._rows[numbers, 1:] >= 0
        micro_batches = []
        for some, places, micro in batches.whole_groups(layout, joined, present, self.template.pad, micro_tokens):
            places = torch.from_numpy(places)
            begins = micro["first"][places] if "first" in micro else places * micro["input_ids"].shape[1]
            firsts = begins.where(places >= 0, -1)
            micro_batches.append(micro | {"labels": torch.from_numpy(labels[some]), "firsts": firsts})
        return micro_batches


class ClaimBatches(batches.FinetuningBatches):
    """Optimiser batches of claims (`Slots` or `Pairs`), by step; every epoch visits each claim once, in a keyed order."""

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        joined, labels = self.pairs.join(numbers, self.max_tokens), self.pairs.labels[numbers]
        micro = self.pairs.laid_out(joined, numbers, labels, self.micro_tokens, self.layout)
        return batches.optimiser_batch(micro, len(labels), joined.ids, labels)
