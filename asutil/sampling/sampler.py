"""The examples of every pre-training objective: index + counter-based randomness -> spans and labels.

An example is a handful of sentence ranges. All draws of an example are functions of (seed, epoch, its anchor paragraph, its place in
the group), so nothing is materialised and any example can be made again alone, in any order, on any number of workers.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from ..corpus import tokenizing
from ..draws import below, keyed, permuted
from ..inputs import pairs
from ..inputs import ragged as ragged_ids
from ..inputs.template import Template
from .objectives import RULES, UNIONS, Contextual, dpc, mspp, one, sdc, sop
from .spans import EASY, HARD, POSITIVE, Example, Spans

REDRAWS, WALK = 8, 1000  # fresh draws of a negative, then so many of the next eligible paragraphs
# The place of a name is part of the keys of its draws: new ones come last.
OBJECTIVES = ("ssp", "sp", "psd", "nsp", "sop", "all", "sdc", "dpc", "dslc", "context_all", "mspp")


def read_by(objective: str, data: str | None = None, negatives: int | None = None) -> str:
    """Whose examples an objective reads: its own; of `mlm`, masked language modelling alone, those of `data`.

    Args:
        negatives: of a group; only mlm, which has no labels, can do without.
    Paper: sentence_objectives, section 5.3 (MLM-only ablation).
    """
    if (objective == "mlm") != (data is not None):
        raise ValueError(
            f"data names the objective whose examples mlm reads, and is for mlm alone: got {data!r} for {objective}"
        )
    if negatives == 0 and objective != "mlm":
        raise ValueError(f"negatives: 0 is for mlm alone, {objective} learns from labels")
    return data or objective


def heads_of(objective: str, heads: str = "shared") -> int:
    """How many pair heads an objective is learnt with: one, or for a union one for each of its objectives.

    Paper: contextual_as2, section 7 (separate heads were worse).
    """
    if heads == "per_objective" and objective not in UNIONS:
        raise ValueError(f"heads: per_objective is for {' and '.join(UNIONS)}, got {objective}")
    return len(UNIONS[objective]) if heads == "per_objective" else 1


class Sampler:
    """The examples of one objective and epoch, by number.

    Example i belongs to group i // (1 + negatives): the first of a group is positive, then come up to `hard_negatives` hard ones from
    the anchor's document, then easy ones from other documents. A keyed permutation visits every eligible anchor paragraph once.

    A union has the same number of groups of each of its objectives, mixed by a keyed permutation: as many as the one with the fewest
    anchors has, of the others each epoch some of theirs. Of mspp a group is one example, see `mspp.MultiSentenceSampler`.

    Args:
        objective: one of OBJECTIVES.
        split: `train` or `validation`.
        negatives: of a group; nsp and sop have one, whatever is given.
        max_tokens: longest input; None takes the objective's own (128; sp and psd 256; mspp 64 a text).
        same_paragraph_before: ssp only, also within all: B follows A, and the first hard negative is a span before A where there is room.
        positives, max_sentences: mspp only.
        labels: `true`; or `shuffled`, of each group as many positives as there are, at places that say nothing of the text (D-107).
    Raises: ValueError for an unknown objective or split, or for a corpus that gives no example, with the counts.
    Deviation: D-02, lengths are never clipped; D-03, same_paragraph_before; D-05, a negative that repeats a sentence is drawn again,
        and an anchor whose context repeats one of a or b is left out; D-120, equal parts of a union; D-132, every paragraph counts
        the same.
    """

    KINDS: ClassVar[dict[str, type]] = {}  # objective -> its own class, which names itself here

    def __init_subclass__(cls, objective: str | None = None, **options):
        super().__init_subclass__(**options)
        if objective is not None:
            Sampler.KINDS[objective] = cls

    def __new__(cls, corpus=None, objective=None, *_, **__):
        return super().__new__(cls.KINDS.get(objective, cls))

    def __init__(
        self,
        corpus,
        objective,
        seed=0,
        epoch=0,
        split="train",
        hard_negatives=2,
        negatives=4,
        max_tokens=None,
        same_paragraph_before=False,
        *,
        positives=None,
        max_sentences=None,
        labels="true",
    ):
        if objective not in OBJECTIVES:
            raise ValueError(f"objective is one of {', '.join(OBJECTIVES)}, got {objective!r}")
        if split not in ("train", "validation"):
            raise ValueError(f"split is train or validation, got {split!r}")
        if labels not in ("true", "shuffled"):
            raise ValueError(f"labels are true or shuffled, got {labels!r}")
        self.corpus, self.split, self.rule = corpus, split, RULES.get(UNIONS.get(objective, [objective])[0], mspp)
        self.negatives = self.rule.negatives or negatives
        self._shape(objective, max_tokens, positives, max_sentences)
        self.hard_negatives = hard_negatives if self.rule.hard else 0
        if not 0 <= self.hard_negatives <= self.negatives:
            raise ValueError(f"expected 0 <= hard_negatives <= negatives, got {hard_negatives} and {negatives}")
        if same_paragraph_before and not (self.rule is RULES["ssp"] and hard_negatives):
            raise ValueError(
                f"same_paragraph_before is an option of ssp with hard negatives, got {objective} with {hard_negatives}"
            )
        self.same_paragraph_before = same_paragraph_before
        self.labels, self.key = labels, keyed(seed, epoch, OBJECTIVES.index(objective))
        of_union = [seed, epoch, split, hard_negatives, negatives, self.max_tokens]
        self.members = [
            Sampler(corpus, name, *of_union, same_paragraph_before=same_paragraph_before and name == "ssp")
            for name in UNIONS.get(objective, ())
        ]
        if self.members:
            self.groups = len(self.members) * min(member.groups for member in self.members)
        else:
            self._find_anchors(objective)
            self.groups = len(self.anchors)

    def _shape(self, objective, max_tokens, positives, max_sentences):
        """How many parts an example has, and how long it may be."""
        if (positives, max_sentences) != (None, None):
            raise ValueError(
                f"positives and max_sentences are options of mspp, got {positives} and {max_sentences} for {objective}"
            )
        self.max_tokens = self.rule.max_tokens if max_tokens is None else max_tokens
        self.parts = 3 if issubclass(self.rule, Contextual) else 2

    def _find_anchors(self, objective):
        corpus, rule = self.corpus, self.rule
        inside = np.repeat(corpus.validation == (self.split == "validation"), np.diff(corpus.documents))
        candidates = np.flatnonzero(inside)
        a, b = rule.lengths(self._lengths_key(candidates))
        anchor_need, other_need = rule.needs(a, b)
        highest = int(other_need.max(initial=1))
        sizes = np.where(inside, np.diff(corpus.paragraphs), 0)
        if rule is sdc:  # the first paragraph is the context, and nothing else
            sizes[corpus.documents[:-1]] = 0
        # holders: paragraphs of this split with 1 sentence or more, then those with 2 or more, and so on; those with `need` begin at
        # first_holder[need - 1], and document d's among them begin[need - 1, d] places on
        holders = [np.flatnonzero(sizes >= need) for need in range(1, highest + 1)]
        self.begin = np.stack([np.searchsorted(held, corpus.documents) for held in holders])
        self.holders, self.first_holder = np.concatenate(holders), np.cumsum([0] + [len(held) for held in holders])
        document = corpus.document_of[candidates]
        own = self.begin[other_need - 1, document + 1] - self.begin[other_need - 1, document]
        eligible = sizes[candidates] >= anchor_need
        eligible &= own >= rule.paragraphs
        eligible &= (self.begin[other_need - 1, -1] > own) | (rule is sop)  # an easy negative must exist
        self.anchors = candidates[eligible]
        if rule is not sop:
            self.anchors = self.anchors[~self._without_negatives(self.anchors)]
        if not len(self.anchors):
            least = int(
                rule.needs(*rule.lengths(self._lengths_key(np.arange(1000))))[0].min()
            )  # what the drawn lengths can come to
            where = " beside the first" if rule is sdc else ""
            needs = f"at least 2 documents and paragraphs of {least} or more sentences{where}"
            raise self._refused(objective, len(candidates), sizes, needs)

    def _refused(self, objective, paragraphs, sizes, needs):
        documents = int(np.count_nonzero(self.corpus.validation == (self.split == "validation")))
        return ValueError(
            f"no eligible anchor for {objective} in the {self.split} documents: {documents} documents, {paragraphs} paragraphs, the "
            f"longest of {int(sizes.max(initial=0))} sentences; it needs {needs}"
        )

    def _without_negatives(self, p):
        """Anchors for which every paragraph gives a negative that repeats a sentence: looked for only where sentences repeat."""
        counts, documents = self.corpus.repeated_before, self.corpus.documents
        d = self.corpus.document_of[p]
        begin, end = (
            self.corpus.paragraphs[documents[d + side]] for side in (0, 1)
        )  # a positive may come from the whole document
        suspicious = np.flatnonzero((counts[end] > counts[begin]) | self._may_lack_contexts(p))
        p = np.repeat(p[suspicious], self.negatives)
        slots = np.tile(np.arange(1, 1 + self.negatives), len(suspicious))
        failed = np.zeros(len(d), bool)
        if p.size:
            first, positive, _ = self._positives(p)
            lacking = self._negatives(p, *self.rule.lengths(self._lengths_key(p)), slots, first, positive)[-1]
            failed[suspicious[lacking // self.negatives]] = True
            failed[suspicious] |= self._clashes(first, positive[:, 0], positive[:, 1:])[:: self.negatives]
        return failed

    def _may_lack_contexts(self, p):
        """Anchors of which a negative may be tried in paragraphs with repeated sentences alone: its context can repeat its own b."""
        if self.parts == 2:
            return np.zeros(len(p), bool)
        repeated = np.diff(self.corpus.repeated_before[self.corpus.paragraphs]) > 0
        held = np.split(self.holders, self.first_holder[1:-1])
        longest = np.array([_longest_run(repeated[some]) for some in held])
        need = self.rule.needs(*self.rule.lengths(self._lengths_key(p)))[1]
        own = self._own(need, self.corpus.document_of[p])[1]
        # The paragraphs of the anchor's own document are passed over, which makes one run of two.
        return 2 * longest[need - 1] >= np.minimum(WALK - own, self.begin[need - 1, -1] - own)

    def _positives(self, p):
        """Anchor parts, the other parts of positives (B, parts - 1, R, 2), and their paragraphs."""
        a, b = self.rule.lengths(self._lengths_key(p))
        first, second, q = self.rule.positive(self, p, *self._extent(p), a, b, keyed(self.key, 1, p))
        return first, self._with_context(q, first, second), q

    def _with_context(self, q, first, second):
        if self.parts == 2:
            return second[:, None]
        return np.stack([second, self.rule.context(*self._extent(self._home(q)), first, second)], 1)

    def _home(self, q):
        """The paragraph that the context of a part of paragraph q comes from."""
        return self.corpus.documents[self.corpus.document_of[q]] if self.rule is sdc else q

    def _lengths_key(self, paragraphs):
        return keyed(self.key, 0, paragraphs)

    def __len__(self):
        return self.groups * (1 + self.negatives)

    # -------------------------------------------------------------- spans

    def spans(self, indices) -> Spans:
        """The examples with these numbers as sentence ranges. Raises: IndexError for a number outside the epoch."""
        indices = self._numbers(indices)
        groups, slots = np.divmod(indices, 1 + self.negatives)
        heads = np.flatnonzero(
            np.diff(groups, prepend=-1)
        )  # a group's examples mostly come together: what they share is made once
        sizes = np.diff(heads, append=len(groups))
        places = permuted(groups[heads], self.groups, self.key)
        if self.members:
            return self._of_members(np.repeat(places, sizes), groups, slots)
        p = self.anchors[places]
        shared = (p, *self.rule.lengths(self._lengths_key(p)), *self._positives(p))
        p, a, b, first, others, q = (np.repeat(array, sizes, 0) for array in shared)
        kinds = np.zeros(len(indices), np.int8)
        negative = np.flatnonzero(slots)
        if self.rule is sop:
            first[negative], others[negative, 0], kinds[negative] = others[negative, 0], first[negative], HARD
        elif negative.size:
            anchored = [array[negative] for array in (p, a, b, slots, first, others)]
            others[negative], q[negative], kinds[negative], _ = self._negatives(*anchored)
        ranges = np.concatenate([first[:, None], others], 1)
        paragraphs = np.stack([p, q, self._home(q)][: self.parts], 1)
        return Spans(ranges, paragraphs, self._labels(kinds, groups, slots), kinds, groups, np.zeros_like(groups))

    def _labels(self, kinds, groups, slots=None):
        """1 for a positive; shuffled, for as many of each group, drawn by its number alone. Shapes: kinds (B,), of mspp (B, k)"""
        labels = (kinds == POSITIVE).astype(np.int64)
        if self.labels == "true":
            return labels
        joint = kinds.ndim == 2
        size = kinds.shape[1] if joint else 1 + self.negatives
        ranks = keyed(self.key, 4, groups[:, None], np.arange(size)).argsort(1).argsort(1)
        drawn = ranks < (labels.sum(1, keepdims=True) if joint else 1)
        return (drawn if joint else drawn[np.arange(len(slots)), slots]).astype(np.int64)

    def _numbers(self, indices):
        indices = np.atleast_1d(np.asarray(indices, np.int64))
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self):
            raise IndexError(f"examples are 0 to {len(self) - 1}, got {indices.min()} to {indices.max()}")
        return indices

    def _of_members(self, places, groups, slots) -> Spans:
        """Groups of a union: their place in a keyed order says which member's they are, and which of its groups."""
        owners, mine = np.divmod(places, self.groups // len(self.members))
        found, rows = [], []
        for number, member in enumerate(self.members):
            rows.append(np.flatnonzero(owners == number))
            found.append(member.spans(mine[rows[-1]] * (1 + self.negatives) + slots[rows[-1]]))
        back = np.argsort(np.concatenate(rows))
        ranges, paragraphs, kinds = (
            np.concatenate([getattr(made, name) for made in found])[back] for name in ("ranges", "paragraphs", "kinds")
        )
        return Spans(ranges, paragraphs, self._labels(kinds, groups, slots), kinds, groups, owners)

    def _extent(self, p):
        start = self.corpus.paragraphs[p]
        return start, self.corpus.paragraphs[p + 1] - start

    def sibling(self, p, need, key, turn=0):
        """Another paragraph of p's document with `need` sentences or more: drawn, then `turn` places on. One must exist."""
        d = self.corpus.document_of[p]
        begin, count = self._own(need, d)
        k = (below(key, count - 1) + turn) % (count - 1)
        q = self._holder(need, begin + k)
        return np.where(q < p, q, self._holder(need, begin + k + 1))

    def _own(self, need, d):
        begin = self.begin[need - 1, d]
        return begin, self.begin[need - 1, d + 1] - begin

    def _holder(self, need, k):
        return self.holders[self.first_holder[need - 1] + k]

    def _foreign(self, p, need, key, turn):
        """A paragraph of another document with `need` sentences or more: drawn, then `turn` places on."""
        begin, count = self._own(need, self.corpus.document_of[p])
        others = self.begin[need - 1, -1] - count
        k = (below(key, others) + turn) % others
        return self._holder(need, k + np.where(k < begin, 0, count))

    def _negatives(self, p, a, b, slots, first, positive):
        """Other parts of negatives: drawn again while one of their sentences equals one of the anchor's or the positive's second part.

        Returns: other parts, their paragraphs, kinds, and which negatives were not to be had (of anchors alone that are not eligible).
        """
        others, q, kinds = np.empty_like(positive), np.empty_like(p), np.empty(len(p), np.int8)
        left, attempt = np.arange(len(p)), 0
        while left.size and attempt <= REDRAWS + min(WALK, len(self.corpus.paragraphs)):
            drawn = self._negative(p[left], a[left], b[left], slots[left], first[left], attempt)
            others[left], q[left], kinds[left] = drawn
            second, context = drawn[0][:, 0], drawn[0][:, 1:]
            left = left[
                self._clashes(first[left], positive[left, 0], drawn[0]) | self._clashes(second, second, context)
            ]
            attempt += 1
        return others, q, kinds, left

    def _negative(self, p, a, b, slots, first, attempt):
        """One attempt: up to REDRAWS fresh draws, afterwards the next eligible paragraphs, hard ones before easy ones."""
        need = self.rule.needs(a, b)[1]
        walk = max(attempt - REDRAWS, 0)
        key = keyed(self.key, 2, p, min(attempt, REDRAWS))
        mine = keyed(key, slots)
        siblings = self._own(need, self.corpus.document_of[p])[1] - 1
        hard = (slots <= self.hard_negatives) & (slots <= siblings) & (walk < np.maximum(siblings, 1))
        q = np.empty_like(p)
        if hard.any():
            at = np.flatnonzero(hard)
            # the hard negatives of a group share one draw: the first takes it, the others go on from it by different steps, so that
            # two of them only meet where one was drawn again
            others = np.maximum(siblings - 1, 1)
            step = np.where(slots > 1, 1 + (below(keyed(key, 6), others) + slots - 2) % others, 0)
            q[at] = self.sibling(p[at], need[at], keyed(key, 7)[at], walk + step[at])
        if not hard.all():
            at = np.flatnonzero(~hard)
            q[at] = self._foreign(
                p[at],
                need[at],
                keyed(mine, 8)[at],
                np.where(slots <= self.hard_negatives, np.maximum(walk - siblings, 0), walk)[at],
            )
        second = self.rule.other(*self._extent(q), a, b, mine)
        kinds = np.where(hard, HARD, EASY)
        if self.same_paragraph_before and attempt == 0:
            self._before(p, b, slots, first, second, q, kinds, mine)
        return self._with_context(q, second, second), q, kinds

    def _before(self, p, b, slots, first, second, q, kinds, key):
        """Put a span of the anchor's own paragraph that ends before A into the first hard slot, where there is room."""
        start = self.corpus.paragraphs[p]
        room = first[:, 0, 0] - start - b
        at = np.flatnonzero((slots == 1) & (self.hard_negatives > 0) & (room >= 0))
        begin = (start + below(keyed(key, 9), np.maximum(room, 0) + 1))[at]
        second[at], q[at], kinds[at] = one(begin, begin + b[at]), p[at], HARD

    def _clashes(self, first, second, others):
        """Which examples have a sentence of `others` (B, P, R, 2) that equals, by hash, one of the first part or the second."""
        counts = self.corpus.repeated_before
        suspicious = np.flatnonzero((counts[others[..., 1]] - counts[others[..., 0]]).sum((1, 2)))
        clash = np.zeros(len(others), bool)
        if suspicious.size:
            theirs, owner = self._hashes(others[suspicious])
            known, known_owner = self._hashes(np.concatenate([first[suspicious], second[suspicious]], 1))
            equal = np.isin(keyed(theirs, owner), keyed(known, known_owner))
            clash[suspicious[owner[equal]]] = True
        return clash

    def _hashes(self, ranges):
        lengths = (ranges[..., 1] - ranges[..., 0]).reshape(len(ranges), -1)
        rows = tokenizing.gathered(ranges[..., 0].ravel(), lengths.ravel())
        return self.corpus.hashes[rows], np.repeat(np.arange(len(ranges)), lengths.sum(1))

    # -------------------------------------------------------------- examples and batches

    def __getitem__(self, i: int) -> Example:
        return self.spans([i]).example(self.corpus)

    @cached_property
    def template(self) -> Template:
        return Template.of(self.corpus.tokenizer, self.parts)

    def joined(self, made: Spans) -> ragged_ids.Ragged:
        """Token ids of spans without padding."""
        return pairs.join_ranges(self.corpus, made.ranges, self.template, self.max_tokens)

    def ragged(self, indices) -> tuple[ragged_ids.Ragged, np.ndarray]:
        """Token ids of some examples without padding, and their labels (B,)."""
        made = self.spans(indices)
        return self.joined(made), made.labels

    def batch(self, indices) -> ragged_ids.Batch:
        """Token ids padded to the longest of the batch. Shapes: input_ids (B, T), lengths (B,), labels (B,)."""
        ragged, labels = self.ragged(indices)
        return ragged.padded(self.template.pad, labels)


def _longest_run(flags: np.ndarray) -> int:
    """How many flags in a row are set, at most, where the first follows the last."""
    clear = np.flatnonzero(~flags)
    return int(np.diff(clear, append=clear[:1] + len(flags)).max(initial=1)) - 1 if len(clear) else len(flags)


def context_overlap(corpus, seed=0, split="train", size=100_000) -> dict:
    """How much the contexts of dpc and dslc have in common, from the spans of `size` examples of dslc: its context is a part of dpc's.

    Paper: contextual_as2, section 7.
    Returns: examples; identical, the share of them whose two contexts are the same sentences; overlap, the mean share of dpc's
        context that dslc's has; paragraph_sentences, the mean length of the paragraphs of the corpus.
    """
    sampler = Sampler(corpus, "dslc", seed, split=split)
    made = sampler.spans(np.arange(min(size, len(sampler))))
    a, b, near = made.ranges.swapaxes(0, 1)
    a = np.where(made.labels[:, None, None], a, b)  # a negative's a is of another paragraph
    rest = dpc.context(*sampler._extent(made.paragraphs[:, 1]), a, b)
    near, rest = (np.diff(part).sum((1, 2)) for part in (near, rest))
    return {
        "examples": len(near),
        "identical": float((near == rest).mean()),
        "overlap": float((near / rest).mean()),
        "paragraph_sentences": corpus.info["sentences"] / corpus.info["paragraphs"],
    }
