"""What the samplers of all objectives share: options and their checks, the numbers of examples, and labels."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..draws import keyed
from ..io.spelling import require_one_of
from .spans import POSITIVE, Example, Spans

# Each draw of a sampler has a number, which is part of its key. Another number is another draw.
LENGTHS = 0
PLACES = 1
NEGATIVES = 2
SLOTS = 3
LABELS = 4
STEP = 6
SIBLING = 7
FOREIGN = 8
BEFORE = 9

REDRAWS = 8  # fresh draws of a negative
WALK = 1000  # the next eligible paragraphs that are tried after them


@dataclass(frozen=True)
class Options:
    """The options of `sampler.Sampler`, which describes them."""

    seed: int
    epoch: int
    split: str
    hard_negatives: int
    negatives: int
    max_tokens: int | None
    same_paragraph_before: bool
    positives: int | None
    max_sentences: int | None
    labels: str
    lengths: str | None

    def __post_init__(self):
        require_one_of("split", self.split, ("train", "validation"))
        require_one_of("labels", self.labels, ("true", "shuffled"))
        if self.lengths not in (None, "even"):
            raise ValueError(f"lengths are even or None, got {self.lengths!r}")


class BaseSampler(ABC):
    """The examples of one objective and epoch, by number; `sampler.Sampler` describes the arguments.

    A class of it sets `groups`, how many groups there are, and makes `spans`.
    """

    members: tuple["BaseSampler", ...] = ()
    slot_tokens: int | None = None  # the longest text, where texts are the slots of joint inputs

    def __init__(self, corpus, rule, options: Options):
        self.corpus, self.rule, self.objective, self.options = corpus, rule, rule.name, options
        self.split, self.labels = options.split, options.labels
        self.parts = self.rule.parts
        self.negatives = self.rule.negatives or options.negatives
        self.max_tokens = self._input_length()
        self.hard_negatives = options.hard_negatives if self.rule.hard else 0
        if not 0 <= self.hard_negatives <= self.negatives:
            raise ValueError(
                f"expected 0 <= hard_negatives <= negatives, got {self.hard_negatives} and {self.negatives}"
            )
        if options.same_paragraph_before and not (self.rule.before and self.hard_negatives):
            option = "same_paragraph_before is an option of ssp with hard negatives"
            raise ValueError(f"{option}, got {self.objective} with {options.hard_negatives}")
        self.same_paragraph_before = options.same_paragraph_before
        self.key = keyed(options.seed, options.epoch, rule.number)

    def _input_length(self) -> int:
        """The longest input."""
        options = self.options
        if (options.positives, options.max_sentences) != (None, None):
            came = f"{options.positives} and {options.max_sentences} for {self.objective}"
            raise ValueError(f"positives and max_sentences are options of mspp, got {came}")
        return self.rule.max_tokens if options.max_tokens is None else options.max_tokens

    def __len__(self):
        return self.groups * (1 + self.negatives)

    @abstractmethod
    def spans(self, indices) -> Spans:
        """The examples with these numbers as sentence ranges. Raises: IndexError for a number outside the epoch."""

    # -------------------------------------------------------------- for `spans`

    @property
    def inside(self) -> np.ndarray:
        """Which paragraphs are of the split. Shapes: (P,) bool"""
        validation = self.split == "validation"
        return np.repeat(self.corpus.validation == validation, np.diff(self.corpus.documents))

    def extent(self, p):
        """The first sentence and the number of sentences of paragraphs. Shapes: (B,) -> (B,), (B,)"""
        start = self.corpus.paragraphs[p]
        return start, self.corpus.paragraphs[p + 1] - start

    def lengths(self, p):
        """The drawn lengths of anchor paragraphs. Shapes: (B,) -> (B,), (B,)"""
        return self.rule.lengths(keyed(self.key, LENGTHS, p))

    def _numbers(self, indices):
        indices = np.atleast_1d(np.asarray(indices, np.int64))
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self):
            raise IndexError(f"examples are 0 to {len(self) - 1}, got {indices.min()} to {indices.max()}")
        return indices

    def _labels(self, kinds, groups, slots):
        """1 for a positive; shuffled, for one example of each group. Shapes: kinds, groups, slots (B,) -> (B,)"""
        if self.labels == "true":
            return (kinds == POSITIVE).astype(np.int64)
        return self._shuffled(groups, 1 + self.negatives, 1)[np.arange(len(slots)), slots]

    def _shuffled(self, groups, size, positives):
        """Labels of whole groups with `positives` ones each, drawn by the group's number alone. Shapes: (B,) -> (B, size)"""
        ranks = keyed(self.key, LABELS, groups[:, None], np.arange(size)).argsort(1).argsort(1)
        return (ranks < positives).astype(np.int64)

    def _no_anchor(self, sizes, needs) -> ValueError:
        """The refusal of a corpus that gives no example; sizes: sentences of its paragraphs, 0 outside the split."""
        every = len(self.corpus.validation)
        documents = int(np.count_nonzero(self.corpus.validation == (self.split == "validation")))
        if documents:
            longest = int(sizes.max(initial=0))
            counts = f"{documents} documents, {int(self.inside.sum())} paragraphs, the longest of {longest} sentences"
        else:
            others = "which is" if every == 1 else "all of them"
            counts = f"{every} document{'s' * (every != 1)}, {others} held out for validation"
        return ValueError(
            f"no eligible anchor for {self.objective} in the {self.split} documents: {counts}; it needs {needs}"
        )

    # -------------------------------------------------------------- examples and batches

    def __getitem__(self, i: int) -> Example:
        return self.spans([i]).example(self.corpus)

    def batch(self, indices):
        """Token ids padded to the longest of the batch, or every text of mspp to L = slot_tokens, as `inputs.Batch`.

        Shapes: input_ids (B, T), of mspp (B, S*L); lengths (B,), (B, S); token_type_ids or None; labels (B,), (B, k)
        """
        from ..inputs import Template, join_spans

        spans, template = self.spans(indices), Template.of(self.corpus.tokenizer, self.parts)
        ragged = join_spans(self, spans, template)
        if self.slot_tokens:
            return ragged.slotted(template.pad, spans.labels, self.slot_tokens)
        return ragged.padded(template.pad, spans.labels)
