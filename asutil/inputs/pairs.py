"""Spans or texts -> token ids: pairs, triples with a context, and the slots of joint inputs.

Everything up to the micro-batches is ragged (flat ids and offsets): padding is added last, to examples that are ordered by length.
"""

from array import array
from collections.abc import Sequence

import numpy as np
from tqdm.auto import tqdm

from ..corpus.arrays import read_ranges
from ..corpus.tokenizing import last_first, longest_first, tokenized
from .ragged import Ragged
from .template import Template

IGNORED = -100
WINDOW = 1 << 16  # different texts that are tokenised together


def join_spans(sampler, spans, template: Template | None = None) -> Ragged:
    """Examples of a sampler as token ids, without the text; pairs equal `tokenizer(first, second, truncation="longest_first")`.

    Texts of a sampler with `slot_tokens` become the slots of joint inputs, each `tokenizer(text)`, cut to `slot_tokens`.
    Args:
        spans: `sampler.spans(indices)`.
        template: where it was read before.
    """
    template = template or Template.of(sampler.corpus.tokenizer, sampler.parts)
    ranges, slot_tokens = spans.ranges, sampler.slot_tokens
    tokens = sampler.corpus.sentences[ranges.reshape(-1, 1, *ranges.shape[2:]) if slot_tokens else ranges]
    lengths = tokens[..., 1] - tokens[..., 0]
    texts = _join(sampler.corpus.tokens, tokens[..., 0], lengths, template, slot_tokens or sampler.max_tokens)
    return as_slots(texts, np.ones(ranges.shape[:2], bool), slot_tokens) if slot_tokens else texts


def join_texts(tokens, starts: np.ndarray, lengths: np.ndarray, template: Template, max_tokens: int) -> Ragged:
    """Texts, or pairs of texts, that begin at `starts` in `tokens`: `tokenizer(*texts, truncation=...)`.

    Shapes: starts, lengths (B,), for pairs (B, 2) -> B examples
    """
    starts, lengths = (array.reshape(len(array), -1, 1) for array in (starts, lengths))
    return _join(tokens, starts, lengths, template, max_tokens)


def slot_tokens_of(max_tokens: int, slots: int, texts: str) -> int:
    """L = max_tokens / slots, the tokens of one of the slots of an input.

    Raises: ValueError naming the texts, where the slots cannot share the input equally.
    """
    slot_tokens, rest = divmod(max_tokens, slots)
    if rest:
        raise ValueError(f"max_tokens: a multiple of the {slots} slots of {texts} expected, got {max_tokens}")
    return slot_tokens


def as_slots(texts: Ragged, present: np.ndarray, slot_tokens: int) -> Ragged:
    """Joint examples [s_0 ... s_k]: the texts fill the slots that are present, row by row; token types are the slots' numbers.

    Token t of slot i has position i L + t, as if every slot were padded to L; the padding, which no token attends to and no head reads,
    is left out.
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
    room = max_tokens - template.added
    parts = len(template.part_types)
    if room < parts:
        raise ValueError(
            f"max_tokens {max_tokens} leaves no room for {parts} parts beside {template.added} special tokens"
        )
    whole = lengths.sum(-1)
    kept = np.stack(longest_first(*whole.T, room), -1) if parts == 2 else last_first(whole, room)
    ends = np.minimum(lengths.cumsum(-1), kept[..., None])  # the end of a part is cut off
    lengths = np.diff(ends, axis=-1, prepend=0)
    around = [len(special) for special in template.special]
    offsets = np.concatenate([[0], (kept.sum(-1) + template.added).cumsum()])
    places = offsets[:-1] + np.cumsum([np.zeros(len(kept), np.int64), *(kept + around[:-1]).T], 0)
    # The ranges are widened over the places of special tokens, so that one call reads everything; special tokens are written afterwards.
    starts = starts.copy()
    starts[:, :, 0] -= around[:-1]
    lengths[:, :, 0] += around[:-1]
    lengths[:, -1, -1] += around[-1]
    ids = read_ranges(tokens, starts.ravel(), lengths.ravel())
    types = None
    if template.has_types:
        types = np.repeat(np.tile(np.array(template.part_types, np.int8), len(kept)), lengths.sum(-1).ravel())
    for place, special, kinds in zip(places, template.special, template.types):
        for shift, (token, kind) in enumerate(zip(special, kinds)):
            ids[place + shift] = token
            if types is not None:
                types[place + shift] = kind
    return Ragged(ids, offsets, types)


class Pairs:
    """All (question, candidate) pairs of a split as token ids.

    `pairs.join(numbers, max_tokens)` equals the tokenizer's own encoding of these pairs. Only tokens are in memory: each of 20 million
    pairs takes 17 bytes and its tokens, of 2 bytes where the vocabulary allows. A text is tokenised once among WINDOW different ones.

    Args:
        context: triples (question, candidate, the sentence before the candidate and the one after it), of 25 bytes each.
    Raises: ValueError for contexts from a split whose rows are not in the order of documents.
    Paper: contextual_as2, section 3.
    """

    def __init__(self, tokenizer, questions: Sequence, context=False):
        if context and not _in_order(questions):
            raise ValueError(
                "contexts are the sentences around a candidate, and the row order of these data is no document's: in TREC-QA, with its "
                "positives first, it would give the labels away"
            )
        self.template = Template.of(tokenizer, 3 if context else 2)
        self.question_ids = []
        # Arrays grow in place, without a Python object an entry.
        tokens = array("H" if len(tokenizer) <= 1 << 16 else "i")
        labels = array("b")
        sizes, question_rows, answer_rows, owners, around = (array("i") for _ in range(5))
        row_of = {}

        def tokenise():
            ids, lengths = tokenized(tokenizer.backend_tokenizer, list(row_of))
            tokens.frombytes(ids.astype(tokens.typecode).tobytes())
            sizes.frombytes(lengths.astype(np.int32).tobytes())
            row_of.clear()

        for question in tqdm(questions, "tokenising", unit=" questions", delay=5, leave=False, dynamic_ncols=True):
            if len(row_of) >= WINDOW:
                tokenise()
            done = len(sizes)
            question_rows.append(done + row_of.setdefault(question.text, len(row_of)))
            for candidate in question.candidates:
                answer_rows.append(done + row_of.setdefault(candidate.text, len(row_of)))
                if context:
                    neighbours = (candidate.before or "", candidate.after or "")
                    around.extend(done + row_of.setdefault(text, len(row_of)) for text in neighbours)
                labels.append(candidate.label)
                owners.append(len(self.question_ids))
            self.question_ids.append(question.id)
        tokenise()
        tokens.append(0)  # where no text has a token, there is still something to read from
        self.tokens, self.labels, self.owners = map(np.asarray, (tokens, labels, owners))
        self._question_rows, self._answer_rows = np.asarray(question_rows), np.asarray(answer_rows)
        self._around = np.asarray(around).reshape(len(labels), 2 * context)
        self._ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=self._ends[1:])

    def __len__(self):
        return len(self.labels)

    def questions(self, numbers) -> tuple[np.ndarray, np.ndarray]:
        """Where in `tokens` the questions of some candidates begin, and their lengths."""
        return self._text(self._question_rows[self.owners[numbers]])

    def answers(self, numbers=slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Where in `tokens` some candidates begin, and their lengths; all of them by default."""
        return self._text(self._answer_rows[numbers])

    def _text(self, rows):
        starts = self._ends[rows]
        return starts, self._ends[rows + 1] - starts

    def are_cut(self, max_tokens: int, alone: Template | None = None) -> np.ndarray:
        """Which examples are longer than `max_tokens`; with the template of a single text, which candidates are. Shapes: (N,) bool"""
        sizes = np.diff(self._ends)
        lengths = sizes[self._answer_rows] + (alone or self.template).added
        if alone is None:
            lengths += sizes[self._question_rows[self.owners]] + sizes[self._around].sum(1)
        return lengths > max_tokens

    def members(self, numbers, key=0) -> np.ndarray:
        """The candidates of some examples: here an example is a candidate."""
        return np.asarray(numbers)

    def labels_of(self, members: np.ndarray) -> np.ndarray:
        """Labels of candidates; IGNORED for an empty slot, -1."""
        return np.where(members < 0, IGNORED, self.labels[members])

    def join(self, numbers, max_tokens: int) -> Ragged:
        """The examples of some pairs. Shapes: (B,) -> B examples"""
        texts = np.stack([self._question_rows[self.owners[numbers]], self._answer_rows[numbers]], -1)[..., None]
        if self._around.size:
            texts = np.concatenate([texts.repeat(2, -1), self._around[numbers][:, None]], 1)
        starts, lengths = self._text(texts)
        lengths[:, :2, 1:] = 0  # question and candidate are one text each
        return _join(self.tokens, starts, lengths, self.template, max_tokens)


def _in_order(questions) -> bool:
    """Whether rows are in the order of documents: `ordered` of the split, else whether its candidates have neighbours."""
    if hasattr(questions, "ordered"):
        return questions.ordered
    neighbours = any(candidate.before or candidate.after for question in questions for candidate in question.candidates)
    return neighbours or all(len(question.candidates) < 2 for question in questions)
