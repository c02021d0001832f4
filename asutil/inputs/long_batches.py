"""Optimiser batches of long questions, and padded tensors of some questions."""

from collections.abc import Sequence

import numpy as np
import torch

from .batches import FinetuningBatches
from .long import Contexts
from .pairs import IGNORED


class Batches(FinetuningBatches):
    """Optimiser batches of long questions, by step; every epoch visits each question once, in a keyed order.

    Args:
        contexts: the questions as token ids (`long.Contexts`).
        with_answers: with the tokens of the answer, for a model with a decoder.
    """

    def __init__(
        self,
        contexts: Contexts,
        epochs: int,
        batch_size: int,
        micro_tokens: int = 8192,
        seed: int = 0,
        with_answers: bool = False,
    ):
        super().__init__(contexts, epochs, batch_size, contexts.max_tokens, micro_tokens, seed)
        self.with_answers = with_answers

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        parts = by_length(self.pairs, numbers, self.micro_tokens)
        micro = [padded(self.pairs, part, self.with_answers) for part in parts]
        return {
            "micro": micro,
            "examples": len(numbers),
            "masked": 0,
            "tokens": sum(len(self.pairs.read[n].ids) for n in numbers),
            "contrasted": sum(int(part["contrasted"].sum()) for part in micro),
        }


def by_length(contexts: Contexts, numbers: Sequence[int], micro_tokens: int) -> list[np.ndarray]:
    """Parts of at most `micro_tokens` padded tokens, the longest questions first."""
    return parts_by_length([len(contexts.read[n].ids) for n in numbers], numbers, micro_tokens)


def parts_by_length(lengths: Sequence[int], numbers: Sequence[int], micro_tokens: int) -> list[np.ndarray]:
    """Numbers in parts of at most `micro_tokens` padded tokens, the longest first; a longer row is a part of its own."""
    lengths = np.array(lengths)
    order = np.argsort(-lengths, kind="stable")
    parts = []
    while len(order):
        some, order = np.split(order, [max(1, micro_tokens // int(lengths[order[0]]))])
        parts.append(np.asarray(numbers)[some])
    return parts


def padded(contexts: Contexts, numbers: Sequence[int], with_answers: bool = False) -> dict[str, torch.Tensor]:
    """Some questions as tensors, padded to the longest.

    Returns: input_ids, attention_mask, is_global, in_context, starts, ends (B, T); sentences (B, N): positions, -1 for none; evidence
        (B, N); question, kinds (B,); contrasted (B,): whether the question has an answer and evidence; with `with_answers` the answer's
        ids (B, A), -100 where there is none.
    """
    tokenizer = contexts.tokenizer
    rows = [contexts.read[n] for n in numbers]
    width = max(len(row.ids) for row in rows)
    count = max(1, *(len(row.sentences) for row in rows))
    table = {
        "input_ids": stacked([row.ids for row in rows], width, tokenizer.pad_token_id),
        "attention_mask": stacked([np.ones(len(row.ids)) for row in rows], width, 0),
        "is_global": stacked([row.is_global for row in rows], width, 0),
        "in_context": stacked([row.pieces > 0 for row in rows], width, 0).astype(bool),
        "starts": stacked([row.starts for row in rows], width, 0).astype(bool),
        "ends": stacked([row.ends for row in rows], width, 0).astype(bool),
        "sentences": stacked([row.sentences for row in rows], count, -1),
        "evidence": stacked([row.evidence for row in rows], count, 0).astype(bool),
        "question": np.array([row.question for row in rows]),
        "kinds": np.array([row.kind for row in rows]),
        "contrasted": np.array([row.evidence.any() and contexts.kinds[row.kind] != "unanswerable" for row in rows]),
    }
    if with_answers:
        ids = [np.array(tokenizer(contexts.questions[n].answers[0].text)["input_ids"]) for n in numbers]
        table["answers"] = stacked(ids, max(map(len, ids)), IGNORED)
    return {name: torch.from_numpy(array) for name, array in table.items()}


def stacked(rows: list[np.ndarray], width: int, filler: int) -> np.ndarray:
    """Rows of different lengths as one table, filled on the right."""
    table = np.full((len(rows), width), filler, np.int64)
    for row, values in zip(table, rows):
        row[: len(values)] = values
    return table
