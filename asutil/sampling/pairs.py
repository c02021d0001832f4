"""Examples of pairs, with a context or without: an anchor paragraph, its positive pair, and negatives from other paragraphs."""

from dataclasses import dataclass

import numpy as np

from ..corpus import tokenizing
from ..draws import below, keyed, permuted
from .base import BEFORE, FOREIGN, LENGTHS, NEGATIVES, PLACES, REDRAWS, SIBLING, STEP, WALK, BaseSampler
from .formulas import span
from .spans import EASY, HARD, POSITIVE, Columns, Spans


@dataclass(frozen=True)
class Pairs(Columns):
    """Anchors and their positive pairs. Shapes: p, a, b, q (B,), first (B, R, 2), others (B, parts - 1, R, 2)

    p is the anchor paragraph, a and b are the drawn lengths, first is the part A, others are B and its context, q is B's paragraph.
    """

    p: np.ndarray
    a: np.ndarray
    b: np.ndarray
    first: np.ndarray
    others: np.ndarray
    q: np.ndarray


@dataclass(frozen=True)
class Negatives(Columns):
    """The other parts of negatives, their paragraphs and their kinds. Shapes: others (B, parts - 1, R, 2), q, kinds (B,)"""

    others: np.ndarray
    q: np.ndarray
    kinds: np.ndarray


class PairSampler(BaseSampler):
    """The examples of an objective of pairs, with a context or without, by number."""

    bounds: np.ndarray | None = None  # with even lengths: of the draws of each pair of `possible`

    def __init__(self, corpus, rule, options):
        super().__init__(corpus, rule, options)
        paragraphs = np.flatnonzero(self.inside)
        self.possible = self.rule.possible_lengths()
        self._index(paragraphs, int(self.rule.needs(*self.possible)[1].max()))
        if options.lengths == "even":
            self.bounds = self._even_bounds(paragraphs)
        anchors = paragraphs[self._can_hold(paragraphs, *self.rule.needs(*self.lengths(paragraphs)))]
        self.anchors = self._with_negatives(anchors)
        self.groups = len(self.anchors)

    # -------------------------------------------------------------- anchors

    def _index(self, paragraphs, highest):
        """List the paragraphs of the split with 1 sentence or more, then those with 2 or more, up to `highest`.

        The list is `holders`. Those with `need` sentences begin at first_holder[need - 1]; those of document d begin begin[need - 1, d]
        places later.
        """
        self.sizes = np.zeros(len(self.corpus.paragraphs) - 1, np.int64)
        self.sizes[paragraphs] = np.diff(self.corpus.paragraphs)[paragraphs]
        if self.rule.home == "first":  # the first paragraph is the context, and nothing else
            self.sizes[self.corpus.documents[:-1]] = 0
        holders = [np.flatnonzero(self.sizes >= need) for need in range(1, highest + 1)]
        self.begin = np.stack([np.searchsorted(some, self.corpus.documents) for some in holders])
        self.holders = np.concatenate(holders)
        self.first_holder = np.cumsum([0] + [len(some) for some in holders])

    def lengths(self, p):
        """The drawn lengths of anchor paragraphs. Shapes: (B,) -> (B,), (B,)"""
        if self.bounds is None:
            return super().lengths(p)
        drawn = np.searchsorted(self.bounds, keyed(self.key, LENGTHS, p) >> np.uint64(32), side="right")
        return self.possible[:, drawn]

    def _even_bounds(self, paragraphs) -> np.ndarray:
        """The ends of the 32-bit draws of all pairs of lengths but the last: the fewer paragraphs can hold a pair, the likelier it is.

        With the chance c / C_i for a pair that C_i paragraphs can hold, c anchors are expected of each pair, and each of the C_i is as
        likely as the others to be one. A pair that no paragraph can hold is left out. Shapes: (P,) -> (L - 1,)
        """
        counts = [np.count_nonzero(self._can_hold(paragraphs, *need)) for need in zip(*self.rule.needs(*self.possible))]
        chances = np.divide(1.0, counts, out=np.zeros(len(counts)), where=np.array(counts) > 0)
        total = max(chances.sum(), 1e-300)  # 0 where no pair can be held
        return (chances.cumsum()[:-1] / total * 2**32).astype(np.uint64)

    def _can_hold(self, paragraphs, anchor_need, other_need) -> np.ndarray:
        """Which paragraphs have enough sentences, in a corpus that has others with enough. Shapes: (B,), needs (B,) or () -> (B,)"""
        own = self._own(other_need, self.corpus.document_of[paragraphs])[1]
        eligible = (self.sizes[paragraphs] >= anchor_need) & (own >= self.rule.paragraphs)
        eligible &= self.rule.anchors(self.corpus, paragraphs)
        if not self.rule.swap:
            eligible &= self.begin[other_need - 1, -1] > own  # an easy negative must exist
        return eligible

    def _with_negatives(self, anchors) -> np.ndarray:
        """The anchors of the epoch: those for which there are negatives. Raises: ValueError where there are none."""
        if not self.rule.swap:
            anchors = anchors[~self._without_negatives(anchors)]
        if not len(anchors):
            least = int(self.rule.needs(*self.possible)[0].min())
            where = " beside the first" if self.rule.home == "first" else ""
            needs = f"at least 2 documents and paragraphs of {least} or more sentences{where}"
            raise self._no_anchor(self.sizes, needs)
        return anchors

    def _without_negatives(self, p) -> np.ndarray:
        """Anchors for which every paragraph gives a negative that repeats a sentence. Shapes: (B,) -> (B,) bool

        Only anchors near repeated sentences are looked at.
        """
        counts = self.corpus.repeated_before[self.corpus.paragraphs[self.corpus.documents]]
        d = self.corpus.document_of[p]
        repeats = counts[d + 1] > counts[d]  # a positive may come from the whole document
        failed = np.zeros(len(p), bool)
        suspicious = np.flatnonzero(repeats | self._may_lack_contexts(p))
        if suspicious.size and self.negatives:
            slots = np.tile(np.arange(1, 1 + self.negatives), len(suspicious))
            pairs = self._positives(p[suspicious])
            _, lacking = self._negatives(pairs.take(np.repeat(np.arange(len(suspicious)), self.negatives)), slots)
            failed[suspicious[lacking // self.negatives]] = True
            failed[suspicious] |= self._clashes(pairs.first, pairs.others[:, 0], pairs.others[:, 1:])
        return failed

    def _may_lack_contexts(self, p) -> np.ndarray:
        """Anchors whose only candidate paragraphs for a negative repeat a sentence: b's context can then repeat a sentence of b."""
        if self.parts == 2:
            return np.zeros(len(p), bool)
        repeats = np.diff(self.corpus.repeated_before[self.corpus.paragraphs]) > 0
        runs = np.array([_longest_run(repeats[some]) for some in np.split(self.holders, self.first_holder[1:-1])])
        need = self.rule.needs(*self.lengths(p))[1]
        own = self._own(need, self.corpus.document_of[p])[1]
        # The paragraphs of the anchor's own document are passed over, which makes one run of two.
        return 2 * runs[need - 1] >= np.minimum(WALK - own, self.begin[need - 1, -1] - own)

    # -------------------------------------------------------------- spans

    def spans(self, indices) -> Spans:
        """The examples with these numbers as sentence ranges. Raises: IndexError for a number outside the epoch."""
        indices = self._numbers(indices)
        groups, slots = np.divmod(indices, 1 + self.negatives)
        pairs = self._positives(self.anchors[permuted(groups, self.groups, self.key)])
        kinds = np.full(len(indices), POSITIVE, np.int8)
        rows = np.flatnonzero(slots)
        if self.rule.swap:
            first, second = pairs.first[rows], pairs.others[rows, 0]
            pairs.first[rows], pairs.others[rows, 0] = second, first
            kinds[rows] = HARD
        elif rows.size:
            drawn, _ = self._negatives(pairs.take(rows), slots[rows])
            pairs.others[rows], pairs.q[rows], kinds[rows] = drawn.others, drawn.q, drawn.kinds
        ranges = np.concatenate([pairs.first[:, None], pairs.others], 1)
        paragraphs = np.stack([pairs.p, pairs.q, self._home(pairs.q)][: self.parts], 1)
        return Spans(ranges, paragraphs, self._labels(kinds, groups, slots), kinds, groups, np.zeros_like(groups))

    def _positives(self, p) -> Pairs:
        a, b = self.lengths(p)
        first, second, q = self.rule.positive(self, p, *self.extent(p), a, b, keyed(self.key, PLACES, p))
        if q is not p:
            self._require_own_document(p, q)
        return Pairs(p, a, b, first, self._with_context(q, first, second), q.copy())  # p itself, often

    def _require_own_document(self, p, q):
        documents = self.corpus.document_of[p]
        outside = (q < self.corpus.documents[documents]) | (q >= self.corpus.documents[documents + 1])
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"the rule of {self.objective} gives paragraph {p[at]} a positive, {q[at]}, that is in another document: "
                "its `anchors` says which paragraphs have one"
            )

    def _with_context(self, q, first, second):
        if self.parts == 2:
            return second[:, None]
        return np.stack([second, self.rule.context(*self.extent(self._home(q)), first, second)], 1)

    def _home(self, q):
        """The paragraph that the context of a part of paragraph q comes from."""
        return self.corpus.documents[self.corpus.document_of[q]] if self.rule.home == "first" else q

    # -------------------------------------------------------------- other paragraphs

    def sibling(self, p, need, key, turn=0):
        """Another paragraph of p's document with `need` sentences or more: drawn, then `turn` places on. One must exist."""
        begin, count = self._own(need, self.corpus.document_of[p])
        k = (below(key, count - 1) + turn) % (count - 1)
        q = self._holder(need, begin + k)
        return np.where(q < p, q, self._holder(need, begin + k + 1))

    def _foreign(self, p, need, key, turn):
        """A paragraph of another document with `need` sentences or more: drawn, then `turn` places on."""
        begin, count = self._own(need, self.corpus.document_of[p])
        others = self.begin[need - 1, -1] - count
        k = (below(key, others) + turn) % others
        return self._holder(need, k + np.where(k < begin, 0, count))

    def _own(self, need, d):
        """Where the paragraphs of document d with `need` sentences or more begin among all of them, and how many there are."""
        begin = self.begin[need - 1, d]
        return begin, self.begin[need - 1, d + 1] - begin

    def _holder(self, need, k):
        return self.holders[self.first_holder[need - 1] + k]

    # -------------------------------------------------------------- negatives

    def _negatives(self, pairs: Pairs, slots) -> tuple[Negatives, np.ndarray]:
        """Other parts, drawn again while they are the positive's, or one of their sentences equals one of the anchor's or of that part.

        Returns: the negatives, and the rows for which no paragraph gives one; there are none for eligible anchors.
        """
        size = len(slots)
        negatives = Negatives(np.empty_like(pairs.others), np.empty_like(pairs.p), np.empty(size, np.int8))
        left = np.arange(size)
        attempt = 0
        while left.size and attempt <= REDRAWS + min(WALK, len(self.corpus.paragraphs)):
            anchors = pairs.take(left)
            drawn = self._attempt(anchors, slots[left], attempt)
            negatives.put(left, drawn)
            second, context = drawn.others[:, 0], drawn.others[:, 1:]
            repeats = self._clashes(anchors.first, anchors.others[:, 0], drawn.others)
            repeats |= (drawn.q == anchors.q) & (anchors.q != anchors.p)
            left = left[repeats | self._clashes(second, second, context)]
            attempt += 1
        return negatives, left

    def _attempt(self, anchors: Pairs, slots, attempt) -> Negatives:
        """One attempt: up to REDRAWS fresh draws, afterwards the next eligible paragraphs, hard ones before easy ones."""
        p, a, b = anchors.p, anchors.a, anchors.b
        need = self.rule.needs(a, b)[1]
        walk = max(attempt - REDRAWS, 0)
        group_key = keyed(self.key, NEGATIVES, p, min(attempt, REDRAWS))
        key = keyed(group_key, slots)
        siblings = self._own(need, self.corpus.document_of[p])[1] - 1
        hard = (slots <= self.hard_negatives) & (slots <= siblings) & (walk < np.maximum(siblings, 1))
        q = np.empty_like(p)
        rows = np.flatnonzero(hard)
        if rows.size:
            # The hard negatives of a group share one draw: the first takes it, the others go on from it by different steps.
            # Two of them only meet where one was drawn again.
            others = np.maximum(siblings - 1, 1)
            step = np.where(slots > 1, 1 + (below(keyed(group_key, STEP), others) + slots - 2) % others, 0)
            q[rows] = self.sibling(p[rows], need[rows], keyed(group_key, SIBLING)[rows], walk + step[rows])
        rows = np.flatnonzero(~hard)
        if rows.size:
            turn = np.where(slots <= self.hard_negatives, np.maximum(walk - siblings, 0), walk)
            q[rows] = self._foreign(p[rows], need[rows], keyed(key, FOREIGN)[rows], turn[rows])
        second = self.rule.other(*self.extent(q), a, b, key)
        kinds = np.where(hard, HARD, EASY)
        if self.same_paragraph_before and attempt == 0:
            # The first hard negative is a span of the anchor's own paragraph that ends before A, where there is room.
            start = self.corpus.paragraphs[p]
            room = anchors.first[:, 0, 0] - start - b
            rows = np.flatnonzero((slots == 1) & (self.hard_negatives > 0) & (room >= 0))
            begin = (start + below(keyed(key, BEFORE), np.maximum(room, 0) + 1))[rows]
            second[rows], q[rows], kinds[rows] = span(begin, begin + b[rows]), p[rows], HARD
        return Negatives(self._with_context(q, second, second), q, kinds)

    def _clashes(self, first, second, others):
        """Which examples have a sentence of `others` (B, P, R, 2) that equals, by hash, one of the first part or the second."""
        counts = self.corpus.repeated_before
        suspicious = np.flatnonzero((counts[others[..., 1]] - counts[others[..., 0]]).sum((1, 2)))
        clash = np.zeros(len(others), bool)
        if suspicious.size:
            theirs, owner = self._hashes(others[suspicious])
            own, own_owner = self._hashes(np.concatenate([first[suspicious], second[suspicious]], 1))
            equal = np.isin(keyed(theirs, owner), keyed(own, own_owner))
            clash[suspicious[owner[equal]]] = True
        return clash

    def _hashes(self, ranges):
        """Hashes of the sentences of ranges, example by example, and the example of each."""
        lengths = (ranges[..., 1] - ranges[..., 0]).reshape(len(ranges), -1)
        rows = tokenizing.gathered(ranges[..., 0].ravel(), lengths.ravel())
        return self.corpus.hashes[rows], np.repeat(np.arange(len(ranges)), lengths.sum(1))


def _longest_run(flags: np.ndarray) -> int:
    """How many flags in a row are set, at most, where the first follows the last."""
    clear = np.flatnonzero(~flags)
    return int(np.diff(clear, append=clear[:1] + len(flags)).max(initial=1)) - 1 if len(clear) else len(flags)
