"""Optimiser batches of long questions, and some of them as padded tensors."""

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
        micro = [
            padded(self.pairs, some, self.with_answers) for some in by_length(self.pairs, numbers, self.micro_tokens)
        ]
        counts = {"examples": len(numbers), "masked": 0, "tokens": sum(len(self.pairs.read[n].ids) for n in numbers)}
        return {"micro": micro, **counts, "contrasted": sum(int(part["contrasted"].sum()) for part in micro)}


def by_length(contexts: Contexts, numbers: Sequence[int], micro_tokens: int) -> list[np.ndarray]:
    """Questions in parts of some padded tokens, the longest first."""
    return parts_by_length([len(contexts.read[n].ids) for n in numbers], numbers, micro_tokens)


def parts_by_length(lengths: Sequence[int], numbers: Sequence[int], micro_tokens: int) -> list[np.ndarray]:
    lengths = np.array(lengths)
    order, parts = np.argsort(-lengths, kind="stable"), []
    while len(order):
        some, order = np.split(order, [max(1, micro_tokens // int(lengths[order[0]]))])
        parts.append(np.asarray(numbers)[some])
    return parts


def padded(contexts: Contexts, numbers: Sequence[int], with_answers: bool = False) -> dict[str, torch.Tensor]:
    """Some questions as tensors, padded to the longest.

    Returns: input_ids, attention_mask, is_global, in_context, starts, ends (B, T); sentences (B, N) places, -1 for none; evidence (B, N);
        question, kinds, contrasted (B,): whether the question has an answer and evidence; with `with_answers` the answer's ids (B, A), -100
        where there is none.
    """
    read, tokenizer = [contexts.read[n] for n in numbers], contexts.tokenizer
    width, count = max(len(one.ids) for one in read), max([len(one.sentences) for one in read] + [1])
    table = {
        "input_ids": stacked([one.ids for one in read], width, tokenizer.pad_token_id),
        "attention_mask": stacked([np.ones(len(one.ids)) for one in read], width, 0),
        "is_global": stacked([one.is_global for one in read], width, 0),
        "in_context": stacked([one.pieces > 0 for one in read], width, 0).astype(bool),
        "starts": stacked([one.starts for one in read], width, 0).astype(bool),
        "ends": stacked([one.ends for one in read], width, 0).astype(bool),
        "sentences": stacked([one.sentences for one in read], count, -1),
        "evidence": stacked([one.evidence for one in read], count, 0).astype(bool),
        "question": np.array([one.question for one in read]),
        "kinds": np.array([one.kind for one in read]),
        "contrasted": np.array([one.evidence.any() and contexts.kinds[one.kind] != "unanswerable" for one in read]),
    }
    if with_answers:
        ids = [np.array(tokenizer(contexts.questions[n].answers[0].text)["input_ids"]) for n in numbers]
        table["answers"] = stacked(ids, max(map(len, ids)), IGNORED)
    return {name: torch.from_numpy(array) for name, array in table.items()}


def stacked(rows: list[np.ndarray], width: int, filler: int) -> np.ndarray:
    table = np.full((len(rows), width), filler, np.int64)
    for row, values in zip(table, rows):
        row[: len(values)] = values
    return table
