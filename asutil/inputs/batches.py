"""Token ids -> micro-batches, padded or packed, and optimiser batches addressed by step."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..draws import keyed, permuted
from ..io.spelling import require_one_of
from .cut import cut
from .masking import SHARE, mask
from .pairs import IGNORED, Pairs, join_spans
from .ragged import Ragged, concatenated
from .template import Template

# Tokens of a micro-batch for scoring, padding included; on a CPU a small one stays in a core's cache.
TOKENS_ON_CPU = 1 << 10
TOKENS_ON_GPU = 1 << 16
WHOLE = 1 << 60  # the limit of a micro-batch that is cut already
# Numbers in the keys of draws.
MASKS = 0x3A5C
EPOCH_ORDER = 0xF17E
GROUPING = 0x60FD


def micro_batches(
    ragged: Ragged, labels: np.ndarray, pad: int, max_padded_tokens: int, masked=None, members=None
) -> list[dict]:
    """One optimiser batch as torch micro-batches: examples ordered by length, each micro-batch padded to its own longest.

    Args:
        max_padded_tokens: the limit of rows x longest of a micro-batch (one example always fits).
        masked, members: as for `Ragged.targets`.
    Returns: dicts of tensors: input_ids, attention_mask, rows (B,), the examples' positions in the batch; token_type_ids where the
        template has them; for joint inputs position_ids, counted from 0; and those of `Ragged.targets`.
    """
    last = len(ragged.lengths) - 1
    result = []
    # The longest first: memory is at its peak at the start, not in the last micro-batch. Of equal rows the last is first.
    for backwards in cut(ragged.lengths[::-1], max_padded_tokens):
        rows = last - backwards[::-1]
        columns = ragged.take(rows).columns(pad)
        begins = columns["input_ids"].shape[1] * np.arange(len(rows))
        result.append(tensors({**columns, "rows": rows, **ragged.targets(rows, begins, labels, masked, members)}))
    return result


def tensors(table: dict[str, np.ndarray]) -> dict:
    """The arrays of a micro-batch as torch tensors."""
    import torch

    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in table.items()}


def optimiser_batch(micro: list[dict], examples: int, ids, learnt: np.ndarray, masked: int = 0, **counts: int) -> dict:
    """What `batches[step]` is, for batches of every kind.

    content = CRC-32 of the ids and of what is learnt: it tells batches of other data apart, however these are laid out in micro-batches.
    Args:
        micro: micro-batches, tables of tensors.
        examples, masked: how many there are in all micro-batches.
        ids: token ids of all examples, without padding.
        learnt: the labels of all examples, or a teacher's scores; of any shape.
        counts: `labels` where an example has several, and others that a model's loss divides by.
    """
    content = zlib.crc32(np.ascontiguousarray(learnt), zlib.crc32(np.ascontiguousarray(ids)))
    return {"micro": micro, "examples": examples, "masked": masked, "tokens": len(ids), "content": content, **counts}


def laid_out(layout: str | None, ragged: Ragged, labels, pad, micro_tokens, masked=None, members=None) -> list[dict]:
    """The micro-batches of one optimiser batch: "ordered" by length and padded (the default), or "packed" without padding."""
    require_one_of("layout", "ordered" if layout is None else layout, ("ordered", "packed"))
    if layout == "packed":
        from .packing import packed

        return packed(ragged, labels, pad, micro_tokens, masked, members)
    return micro_batches(ragged, labels, pad, micro_tokens, masked, members)


def whole_groups(
    layout: str | None, ragged: Ragged, present: np.ndarray, pad: int, micro_tokens: int
) -> Iterator[tuple[np.ndarray, np.ndarray, dict]]:
    """Micro-batches of whole groups of examples: (groups, places, micro-batch).

    Args:
        ragged: the members of all groups, group by group. present: which members a group has (G, k).
    Yields: the numbers of the groups (L,), and where in the micro-batch each of their members is (L, k), -1 for none.
    """
    numbers = np.full(present.shape, -1)
    numbers[present] = np.arange(len(ragged.lengths))
    longest = np.where(present, ragged.lengths[numbers], 0).max(1)
    for some in cut(longest, micro_tokens, present.sum(1)):
        places, here = numbers[some], present[some]
        rows = places[here]
        # The members' numbers take the place of labels: they tell the order that the layout gave them.
        (micro,) = laid_out(layout, ragged.take(rows), np.arange(len(rows)), pad, WHOLE)
        places[here] = np.argsort(micro["labels"].numpy())
        yield some, places, micro


class PretrainingBatches:
    """Optimiser batches of an objective with MLM, by step: step s has the examples from s * batch_size on of the stream of epochs.

    Args:
        make_sampler: epoch -> Sampler.
        mlm_share: share of the tokens that is masked; 0 leaves the MLM loss out.
        layout: "ordered" or "packed"; where it is left out, `training.train` packs for backbones that can take it.
    Deviation: D-122, every epoch has a sampler of its own, so examples are drawn anew.
    """

    def __init__(self, make_sampler, steps, batch_size, micro_tokens=8192, seed=0, mlm_share=SHARE, layout=None):
        if not 0 <= mlm_share <= 1:
            raise ValueError(f"mlm_share: 0 to 1 expected, got {mlm_share}")
        self.sampler = lru_cache(maxsize=2)(make_sampler)
        self.steps, self.batch_size, self.micro_tokens = steps, batch_size, micro_tokens
        self.seed, self.mlm_share, self.layout = seed, mlm_share, layout
        self.template = Template.of(self.sampler(0).corpus.tokenizer, self.sampler(0).parts)
        self._starts = [0, len(self.sampler(0))]  # where epochs begin in the stream of examples

    def __len__(self):
        return self.steps

    def examples(self, step: int) -> list[tuple[int, np.ndarray]]:
        """(epoch, example numbers) of one step: more than one entry where an epoch ends inside the batch."""
        start, stop = step * self.batch_size, (step + 1) * self.batch_size
        parts = []
        while self._starts[-1] < stop:
            self._starts.append(self._starts[-1] + len(self.sampler(len(self._starts) - 1)))
        while start < stop:
            epoch = int(np.searchsorted(self._starts, start, side="right")) - 1
            end = min(stop, self._starts[epoch + 1])
            parts.append((epoch, np.arange(start, end) - self._starts[epoch]))
            start = end
        return parts

    def __getitem__(self, step: int) -> dict:
        return self.made_of(self.examples(step))

    def made_of(self, examples: list[tuple[int, np.ndarray]]) -> dict:
        """One optimiser batch of some (epoch, example numbers)."""
        pieces, labels, members, keys = [], [], [], []
        for epoch, numbers in examples:
            sampler = self.sampler(epoch)
            spans = sampler.spans(numbers)
            pieces.append(join_spans(sampler, spans, self.template))
            labels.append(spans.labels)
            members.append(spans.members)
            keys.append(keyed(self.seed, epoch, numbers, MASKS))
        ragged, labels = concatenated(pieces), np.concatenate(labels)
        members = np.concatenate(members) if self.sampler(0).members else None
        masked, masked_count = None, 0
        if self.mlm_share:
            ids, places, targets = mask(ragged, self.template, np.concatenate(keys), self.mlm_share)
            ragged = replace(ragged, ids=ids)
            masked, masked_count = (places, targets), len(places)
        micro = laid_out(self.layout, ragged, labels, self.template.pad, self.micro_tokens, masked, members)
        return optimiser_batch(micro, len(labels), ragged.ids, labels, masked_count, labels=labels.size)


class FinetuningBatches:
    """Optimiser batches over the labelled pairs of a data set, by step; every epoch visits each pair once, in a keyed order.

    Args:
        pairs: `Pairs`, or `groups.Groups`; then a batch has `batch_size` groups, which are drawn anew every epoch. A class of it takes
            what has `len`, a `template` and its own way to join examples.
    """

    def __init__(self, pairs: Pairs, epochs, batch_size, max_tokens, micro_tokens=8192, seed=0, layout=None):
        if not len(pairs):
            raise ValueError("no training pairs")
        self.pairs, self.batch_size, self.max_tokens, self.micro_tokens = pairs, batch_size, max_tokens, micro_tokens
        self.seed, self.layout = seed, layout
        self.steps_an_epoch = -(-len(pairs) // batch_size)
        self.steps = self.steps_an_epoch * epochs

    def __len__(self):
        return self.steps

    def examples(self, step: int) -> np.ndarray:
        """Numbers of the pairs of one step."""
        epoch, step = divmod(step, self.steps_an_epoch)
        numbers = np.arange(step * self.batch_size, min((step + 1) * self.batch_size, len(self.pairs)))
        return permuted(numbers, len(self.pairs), keyed(self.seed, epoch, EPOCH_ORDER))

    def __getitem__(self, step: int) -> dict:
        epoch = step // self.steps_an_epoch
        members = self.pairs.members(self.examples(step), keyed(self.seed, epoch, GROUPING))
        ragged = self.pairs.join(members, self.max_tokens)
        labels = self.pairs.labels_of(members)
        micro = laid_out(self.layout, ragged, labels, self.pairs.template.pad, self.micro_tokens)
        return optimiser_batch(micro, len(labels), ragged.ids, labels, labels=int((labels != IGNORED).sum()))


class ListBatches(FinetuningBatches):
    """Optimiser batches of lists of candidates, by step. The candidates of a list are in one micro-batch, so that a loss compares them.

    A micro-batch has, besides its pairs, lists (L, k): where in it the candidates of each list are, -1 in an empty place; labels (L, k),
    and teacher (L, k) where there is one. An optimiser batch has `lists`: those with a loss.
    Args:
        pairs: `groups.Lists`.
        batch_size: lists a step.
        micro_tokens: padded tokens of a micro-batch; one list always fits.
        teacher: another ranker's scores of all candidates (N,), for `losses.distillation`; without them labels are learnt.
    """

    def __init__(self, pairs, epochs, batch_size, max_tokens, micro_tokens=8192, seed=0, layout=None, teacher=None):
        super().__init__(pairs, epochs, batch_size, max_tokens, micro_tokens, seed, layout)
        if teacher is not None and len(teacher) != len(pairs.owners):
            raise ValueError(
                f"teacher: a score for each of {len(pairs.owners):,} candidates expected, got {len(teacher):,}"
            )
        self.teacher = teacher

    def __getitem__(self, step: int) -> dict:
        epoch = step // self.steps_an_epoch
        members = self.pairs.members(self.examples(step), keyed(self.seed, epoch, GROUPING))
        ragged, labels = self.pairs.join(members, self.max_tokens), self.pairs.labels_of(members).astype(np.int64)
        scores = None if self.teacher is None else np.where(members < 0, -np.inf, self.teacher[members])
        options = self.layout, ragged, members >= 0, self.pairs.template.pad, self.micro_tokens
        micro = []
        for some, places, pairs in whole_groups(*options):
            columns = {"lists": places, "labels": labels[some]}
            if scores is not None:
                columns["teacher"] = scores[some].astype(np.float32)
            micro.append(pairs | tensors(columns))
        lists = int((labels == 1).any(1).sum()) if scores is None else len(members)
        learnt = labels if scores is None else scores
        return optimiser_batch(micro, len(ragged.lengths), ragged.ids, learnt, lists=lists)


class LongBatches(FinetuningBatches):
    """Optimiser batches of long questions (`long.Contexts`), by step.

    Args:
        with_answers: with the tokens of the answer, for a model with a decoder.
    """

    def __init__(self, contexts, epochs, batch_size, micro_tokens=8192, seed=0, with_answers=False):
        super().__init__(contexts, epochs, batch_size, contexts.max_tokens, micro_tokens, seed)
        self.with_answers = with_answers

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        parts = cut(self.pairs.lengths[numbers], self.micro_tokens)
        micro = [self.pairs.padded(numbers[part], self.with_answers) for part in parts]
        contrasted = sum(int(part["contrasted"].sum()) for part in micro)
        rows = [self.pairs.read[number] for number in numbers]
        labels = np.concatenate([[row.kind, *row.evidence, *row.starts, *row.ends] for row in rows])
        return optimiser_batch(
            micro, len(rows), np.concatenate([row.ids for row in rows]), labels, contrasted=contrasted
        )
