"""Spans or texts -> token ids: pairs, triples with a context, masking, padding, and optimiser batches addressed by step.

Everything up to the micro-batches is ragged (flat ids and offsets): padding is added last, to examples that are ordered by length.
"""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from tqdm.auto import tqdm

from .draws import keyed, permuted
from .masking import mask
from .ragged import Batch as Batch
from .ragged import Ragged, concatenated
from .shards import taken
from .template import Template
from .tokenizing import gathered as gathered
from .tokenizing import last_first, longest_first, tokenized

IGNORED = -100
TOKENS_ON_CPU, TOKENS_ON_GPU = 1 << 10, 1 << 16  # a batch, padding included: small ones stay in a core's cache
WINDOW = 1 << 16  # different texts that are tokenised together


# ------------------------------------------------------------------ pairs


def join_ranges(corpus, ranges: np.ndarray, template: Template, max_tokens: int) -> Ragged:
    """Examples from sentence ranges of an index, without the text: of pairs `tokenizer(first, second, truncation="longest_first")`.

    Shapes: ranges (B, P, R, 2) -> B examples
    """
    tokens = corpus.sentences[ranges]
    lengths = tokens[..., 1] - tokens[..., 0]
    return _join(corpus.tokens, tokens[..., 0], lengths, template, max_tokens)


def join_slots(corpus, ranges: np.ndarray, template: Template, slot_tokens: int) -> Ragged:
    """Joint examples from sentence ranges of an index, each slot `tokenizer(text)` of its own, cut to `slot_tokens`.

    Shapes: ranges (B, S, R, 2) -> B examples of S slots
    """
    tokens = corpus.sentences[ranges].reshape(-1, 1, *ranges.shape[2:])
    texts = _join(corpus.tokens, tokens[..., 0], tokens[..., 1] - tokens[..., 0], template, slot_tokens)
    return as_slots(texts, np.ones(ranges.shape[:2], bool), slot_tokens)


def join_texts(tokens, starts: np.ndarray, lengths: np.ndarray, template: Template, max_tokens: int) -> Ragged:
    """Texts, or pairs of them, given by where they begin in `tokens`: `tokenizer(*texts, truncation=...)`.

    Shapes: starts, lengths (B,), of pairs (B, 2) -> B examples
    """
    starts, lengths = (array.reshape(len(array), -1, 1) for array in (starts, lengths))
    return _join(tokens, starts, lengths, template, max_tokens)


def as_slots(texts: Ragged, present: np.ndarray, slot_tokens: int) -> Ragged:
    """Joint examples [s_0 ... s_k] of texts that are put into the slots that are present, row by row; token types say the slot.

    Token t of slot i has position i L + t, as if every slot were padded to L; the padding itself, which no token attends to and no
    head reads, is left out.
    Paper: joint_inference, section 3.2.
    Shapes: texts (as many as present), present (B, S) -> B examples
    """
    sizes = np.zeros(present.size, np.int64)
    sizes[present.ravel()] = texts.lengths
    begins = sizes.cumsum() - sizes
    offsets = np.append(begins[:: present.shape[1]], len(texts.ids))
    slots = np.repeat(np.tile(np.arange(present.shape[1]), len(present)), sizes)
    within = np.arange(len(texts.ids)) - np.repeat(begins, sizes)
    firsts = np.where(present, begins.reshape(present.shape) - offsets[:-1, None], -1)
    return Ragged(texts.ids, offsets, slots.astype(np.int16), slots * slot_tokens + within, firsts)


def _join(tokens, starts, lengths, template, max_tokens) -> Ragged:
    """Starts and lengths (B, P, R) of pieces in `tokens` -> examples, cut to max_tokens (D-131)."""
    room, parts = max_tokens - template.added, len(template.part_types)
    if room < parts:
        raise ValueError(f"max_tokens {max_tokens} leaves no room for {parts} parts beside {template.added} special tokens")
    whole = lengths.sum(-1)
    kept = np.stack(longest_first(*whole.T, room), -1) if parts == 2 else last_first(whole, room)
    ends = np.minimum(lengths.cumsum(-1), kept[..., None])  # the end of a part is cut off
    lengths = np.diff(ends, axis=-1, prepend=0)
    around = [len(special) for special in template.special]
    offsets = np.concatenate([[0], (kept.sum(-1) + template.added).cumsum()])
    places = offsets[:-1] + np.cumsum([np.zeros(len(kept), np.int64), *(kept + around[:-1]).T], 0)
    # Ranges that reach over the places of special tokens too, so that all is read in one go; the special ones are put in after it.
    starts = starts.copy()
    starts[:, :, 0] -= around[:-1]
    lengths[:, :, 0] += around[:-1]
    lengths[:, -1, -1] += around[-1]
    ids = taken(tokens, starts.ravel(), lengths.ravel())
    types = np.repeat(np.tile(np.array(template.part_types, np.int8), len(kept)), lengths.sum(-1).ravel()) if template.has_types else None
    for place, special, kinds in zip(places, template.special, template.types):
        for shift, (token, kind) in enumerate(zip(special, kinds)):
            ids[place + shift] = token
            if types is not None:
                types[place + shift] = kind
    return Ragged(ids, offsets, types)


class Pairs:
    """All (question, candidate) pairs of a split as token ids, joined when asked for.

    `pairs.join(numbers, max_tokens)` equals the tokenizer's own encoding of these pairs. No text is kept: 20 million pairs take 17
    bytes each beside their tokens, of 2 bytes where the vocabulary allows. A text is tokenised once among WINDOW different ones.

    Args:
        context: triples (question, candidate, the sentence before the candidate and the one after it), of 25 bytes.
    Raises: ValueError for contexts from a split whose order is not that of a document.
    Paper: contextual_as2, section 3.
    """

    def __init__(self, tokenizer, questions: Sequence, context=False):
        if context and not _in_order(questions):
            raise ValueError(
                "contexts are the sentences around a candidate, and the row order of these data is no document's: in TREC-QA, with its "
                "positives first, it would give the labels away"
            )
        self.template, self._questions, self.question_ids = Template.of(tokenizer, 3 if context else 2), questions, []
        tokens, sizes, labels = array("H" if len(tokenizer) <= 1 << 16 else "i"), array("i"), array("b")
        asked, answers, owners = array("i"), array("i"), array("i")  # arrays grow in place, without a Python object an entry
        around, row_of = array("i"), {}

        def tokenise():
            ids, lengths = tokenized(tokenizer.backend_tokenizer, list(row_of))
            tokens.frombytes(ids.astype(tokens.typecode).tobytes())
            sizes.frombytes(lengths.astype(np.int32).tobytes())
            row_of.clear()

        for question in tqdm(questions, "tokenising", unit=" questions", delay=5, leave=False, dynamic_ncols=True):
            if len(row_of) >= WINDOW:
                tokenise()
            done = len(sizes)
            asked.append(done + row_of.setdefault(question.text, len(row_of)))
            for candidate in question.candidates:
                answers.append(done + row_of.setdefault(candidate.text, len(row_of)))
                if context:
                    around.extend(done + row_of.setdefault(text or "", len(row_of)) for text in (candidate.before, candidate.after))
                labels.append(candidate.label)
                owners.append(len(self.question_ids))
            self.question_ids.append(question.id)
        tokenise()
        tokens.append(0)  # where no text has a token there is still something to read from
        self.tokens, self.labels, self.owners = map(np.asarray, (tokens, labels, owners))
        self._asked, self._answers, self._around = np.asarray(asked), np.asarray(answers), np.asarray(around).reshape(-1, 2)
        self._ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=self._ends[1:])

    @property
    def candidate_ids(self) -> list[str]:
        return [candidate.id for question in self._questions for candidate in question.candidates]

    def __len__(self):
        return len(self.labels)

    def asked(self, numbers) -> tuple[np.ndarray, np.ndarray]:
        """Where in `tokens` the questions of some candidates begin, and their lengths."""
        return self._text(self._asked[self.owners[numbers]])

    def answers(self, numbers=slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Where in `tokens` some candidates begin, and their lengths; all of them by default."""
        return self._text(self._answers[numbers])

    def _text(self, rows):
        starts = self._ends[rows]
        return starts, self._ends[rows + 1] - starts

    def members(self, numbers, key=0) -> np.ndarray:
        """The candidates of some examples: here each example is one."""
        return np.asarray(numbers)

    def labels_of(self, members: np.ndarray) -> np.ndarray:
        """Their labels; IGNORED for an empty place, -1."""
        return np.where(members < 0, IGNORED, self.labels[members])

    def join(self, numbers, max_tokens: int) -> Ragged:
        texts = np.stack([self._asked[self.owners[numbers]], self._answers[numbers]], -1)[..., None]
        if len(self._around):
            texts = np.concatenate([texts.repeat(2, -1), self._around[numbers][:, None]], 1)
        starts, lengths = self._text(texts)
        lengths[:, :2, 1:] = 0  # of these two parts one text is all
        return _join(self.tokens, starts, lengths, self.template, max_tokens)


def _in_order(questions) -> bool:
    """Whether candidates have the sentences around them: what a split says of itself, else what its candidates show."""
    if hasattr(questions, "ordered"):
        return questions.ordered
    shown = any(candidate.before or candidate.after for question in questions for candidate in question.candidates)
    return shown or all(len(question.candidates) < 2 for question in questions)


# ------------------------------------------------------------------ optimiser batches


def micro_batches(ragged: Ragged, labels: np.ndarray, pad: int, max_padded_tokens: int, masked=None, members=None) -> list[dict]:
    """One optimiser batch as torch micro-batches: examples ordered by length, each micro-batch padded to its own longest.

    Args:
        max_padded_tokens: rows x longest of a micro-batch stays within it (one example always fits).
        masked: (places, targets) of masked tokens in the flat ids.
        members: which objective of a union each example is of.
    Returns: dicts of tensors: input_ids, attention_mask, labels, token_type_ids where the template has them, members where given,
        masked_positions (into the flattened micro-batch) with masked_targets, rows (B,), the place of each example in the batch, and of
        joint inputs position_ids, counted from 0, and firsts (B, S): where slots begin in the flattened micro-batch, -1 for an empty one.
    """
    import torch

    lengths = ragged.lengths
    order = np.argsort(lengths, kind="stable")
    if masked is not None:
        places, targets = masked
        row = np.searchsorted(ragged.offsets, places, side="right") - 1
        column = places - ragged.offsets[row]
    found, stop = [], len(order)
    while stop > 0:  # the longest first: memory is at its peak at the start, not in the last micro-batch
        width = int(lengths[order[stop - 1]])
        rows = order[max(0, stop - max(1, max_padded_tokens // width)) : stop]
        stop -= len(rows)
        part = ragged.take(rows)
        ids, types, positions = part.columns(pad)
        micro = {
            "input_ids": ids,
            "attention_mask": (np.arange(width) < part.lengths[:, None]).astype(np.int64),
            "labels": np.asarray(labels[rows], np.int64),
            "rows": rows,
        }
        if types is not None:
            micro["token_type_ids"] = types
        if positions is not None:
            micro["position_ids"] = positions
        if part.firsts is not None:
            micro["firsts"] = np.where(part.firsts < 0, -1, part.firsts + width * np.arange(len(rows))[:, None])
        if members is not None:
            micro["members"] = members[rows]
        if masked is not None:
            new_row = np.full(len(order), -1)
            new_row[rows] = np.arange(len(rows))
            here = np.flatnonzero(new_row[row] >= 0)
            micro["masked_positions"] = new_row[row[here]] * width + column[here]
            micro["masked_targets"] = targets[here]
        found.append({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in micro.items()})
    return found


def laid_out(layout: str | None, ragged: Ragged, labels, pad, micro_tokens, masked=None, members=None) -> list[dict]:
    """The micro-batches of one optimiser batch: "ordered" by length and padded, or "packed" without padding."""
    if layout not in (None, "ordered", "packed"):
        raise ValueError(f'layout: "ordered" or "packed" expected, got {layout!r}')
    if layout == "packed":
        from .packing import packed

        return packed(ragged, labels, pad, micro_tokens, masked, members)
    return micro_batches(ragged, labels, pad, micro_tokens, masked, members)


class PretrainingBatches:
    """Optimiser batches of an objective with MLM, by step: step s holds examples s * batch_size ... of the stream of epochs.

    Args:
        make_sampler: epoch -> Sampler.
        mlm_share: share of the tokens that is masked; 0 leaves the MLM loss out.
        layout: "ordered" or "packed"; ordered where it is left out, until `training.train` packs it for a GPU.
    Deviation: D-122, every epoch has a sampler of its own, so examples are drawn anew.
    """

    def __init__(self, make_sampler, steps, batch_size, micro_tokens=8192, seed=0, mlm_share=0.15, layout=None):
        if not 0 <= mlm_share <= 1:
            raise ValueError(f"mlm_share: 0 to 1 expected, got {mlm_share}")
        self.sampler = lru_cache(maxsize=2)(make_sampler)
        self.steps, self.batch_size, self.micro_tokens = steps, batch_size, micro_tokens
        self.seed, self.mlm_share, self.layout = seed, mlm_share, layout
        self._starts = [0, len(self.sampler(0))]  # where epochs begin in the stream of examples

    def __len__(self):
        return self.steps

    def examples(self, step: int) -> list[tuple[int, np.ndarray]]:
        """(epoch, example numbers) of one step: more than one entry where an epoch ends inside the batch."""
        start, stop, found = step * self.batch_size, (step + 1) * self.batch_size, []
        while self._starts[-1] < stop:
            self._starts.append(self._starts[-1] + len(self.sampler(len(self._starts) - 1)))
        while start < stop:
            epoch = int(np.searchsorted(self._starts, start, side="right")) - 1
            end = min(stop, self._starts[epoch + 1])
            found.append((epoch, np.arange(start, end) - self._starts[epoch]))
            start = end
        return found

    def __getitem__(self, step: int) -> dict:
        return self.made_of(self.examples(step))

    def made_of(self, examples: list[tuple[int, np.ndarray]]) -> dict:
        """One optimiser batch of the given (epoch, example numbers)."""
        pieces, labels, members, keys = [], [], [], []
        for epoch, numbers in examples:
            made = self.sampler(epoch).spans(numbers)
            pieces.append(self.sampler(epoch).joined(made))
            labels.append(made.labels)
            members.append(made.members)
            keys.append(keyed(self.seed, epoch, numbers, 0x3A5C))
        ragged, labels, template = concatenated(pieces), np.concatenate(labels), self.sampler(0).template
        masked, members = None, np.concatenate(members) if self.sampler(0).members else None
        if self.mlm_share:
            ids, places, targets = mask(ragged, template, np.concatenate(keys), self.mlm_share)
            ragged, masked = replace(ragged, ids=ids), (places, targets)
        micro = laid_out(self.layout, ragged, labels, template.pad, self.micro_tokens, masked, members)
        counts = {"examples": len(labels), "labels": labels.size, "masked": len(masked[0]) if masked else 0, "tokens": len(ragged.ids)}
        return {"micro": micro, **counts}


class FinetuningBatches:
    """Optimiser batches over the labelled pairs of a data set, by step; every epoch visits each pair once, in a keyed order.

    Args:
        pairs: `Pairs`, or `groups.Groups`, of which a batch holds `batch_size` groups; they are put together anew every epoch.
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
        return permuted(numbers, len(self.pairs), keyed(self.seed, epoch, 0xF17E))

    def __getitem__(self, step: int) -> dict:
        epoch = step // self.steps_an_epoch
        members = self.pairs.members(self.examples(step), keyed(self.seed, epoch, 0x60FD))
        ragged, labels = self.pairs.join(members, self.max_tokens), self.pairs.labels_of(members)
        micro = laid_out(self.layout, ragged, labels, self.pairs.template.pad, self.micro_tokens)
        counts = {"examples": len(labels), "labels": int((labels != IGNORED).sum()), "masked": 0, "tokens": len(ragged.ids)}
        return {"micro": micro, **counts}
