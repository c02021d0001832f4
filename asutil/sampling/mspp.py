"""Multi-Sentences in Paragraph Prediction: groups of one text s_0 and k candidates, each group one joint example."""

from dataclasses import dataclass

import numpy as np

from ..draws import below, keyed, permuted
from .base import LENGTHS, NEGATIVES, PLACES, REDRAWS, SLOTS, WALK, BaseSampler
from .spans import EASY, HARD, POSITIVE, Columns, Spans

BLOCK = 1 << 16  # groups that are looked at together when anchors are sought


@dataclass(frozen=True)
class Groups:
    """Groups in the order s_0, positives, hard and easy negatives. Shapes: starts, paragraphs (B, k + 1), kinds (B, k), incomplete (B,)

    starts: first sentences of the texts. incomplete: groups that lack a text; eligible anchors have none.
    """

    starts: np.ndarray
    paragraphs: np.ndarray
    kinds: np.ndarray
    incomplete: np.ndarray


@dataclass(frozen=True)
class Pool(Columns):
    """The numbers of the spans that a negative may be: `count` from `low` on, without the `gap` numbers that begin at `cut`."""

    low: np.ndarray
    count: np.ndarray
    cut: np.ndarray
    gap: np.ndarray

    def number(self, k):
        """The k-th number of the pool."""
        number = self.low + k
        return number + np.where(number < self.cut, 0, self.gap)


class MultiSentenceSampler(BaseSampler):
    """The examples of mspp by number: s_0 and its k = k1 + k2 + k3 candidates in random order. `Sampler(corpus, "mspp")` makes it.

    k1 = positives are of the paragraph of s_0, up to k2 = hard_negatives of other paragraphs of its document, the other negatives of
    other documents; every sentence that qualifies is equally likely. No two texts of a group share a sentence, nor a copy of one.
    A keyed permutation visits every eligible anchor paragraph once.

    Paper: joint_inference, section 3.4; k1, k2, k3 = 1, 2, 2: section 4.1.
    Args:
        max_tokens: (k + 1) L, every text being cut to L; None takes L = 64.
        positives: k1.
        max_sentences: 1, or more: s_0 has a sentences and every candidate b, each 1 to max_sentences, drawn for each anchor.
    Raises: ValueError for options that do not fit, or for a corpus that gives no example, with the counts.
    Deviation: D-11, sentences, and spans as an option; D-12, 64 tokens a text; D-02, lengths are never clipped; D-05, a text that repeats
        a sentence of the group is drawn again, and an anchor whose group cannot be completed so is left out.
    """

    def __init__(self, corpus, rule, options):
        super().__init__(corpus, rule, options)
        self.anchors = self._eligible()
        self.groups = len(self.anchors)

    def _input_length(self) -> int:
        from ..inputs.pairs import slot_tokens_of

        self.positives = 1 if self.options.positives is None else self.options.positives
        self.max_sentences = 1 if self.options.max_sentences is None else self.options.max_sentences
        if self.options.lengths:
            raise ValueError(f"lengths are an option of objectives of pairs, got {self.options.lengths!r} for mspp")
        if min(self.positives, self.max_sentences) < 1:
            raise ValueError(f"positives and max_sentences: at least 1, got {self.positives} and {self.max_sentences}")
        slots = 1 + self.positives + self.negatives
        length = slots * self.rule.max_tokens if self.options.max_tokens is None else self.options.max_tokens
        self.slot_tokens = slot_tokens_of(length, slots, f"s_0 and {slots - 1} candidates")
        return length

    def _eligible(self) -> np.ndarray:
        """Number the spans of the split; the anchors of the epoch."""
        inside = self.inside
        sizes = np.where(inside, np.diff(self.corpus.paragraphs), 0)
        # Every span of the split has a number, in the order of the text: first those of one sentence, then those of two, and so on.
        # Spans of b sentences that begin in paragraph q have the numbers from before[(b - 1) P + q] on, P paragraphs in all.
        counts = [np.maximum(sizes - b, 0) for b in range(self.max_sentences)]
        self.before = np.concatenate([[0], np.concatenate(counts).cumsum()])
        paragraphs = np.flatnonzero(inside)
        a, b = self.lengths(paragraphs)
        need = a + self.positives * b
        anchors = paragraphs[sizes[paragraphs] >= need]
        anchors = anchors[~self._incomplete(anchors)]
        if not len(anchors):
            own = f"paragraphs of {1 + self.positives} or more sentences without copies"
            raise self._no_anchor(sizes, f"{own}, and {self.negatives} more elsewhere that repeat none of them")
        return anchors

    def lengths(self, p):
        """The drawn lengths of s_0 and of its candidates. Shapes: (B,) -> (B,), (B,)"""
        return self.rule.lengths(keyed(self.key, LENGTHS, p), self.max_sentences)

    def _incomplete(self, p):
        """Anchors whose groups cannot be completed: looked for only where sentences repeat in a paragraph or texts are few."""
        corpus = self.corpus
        counts = corpus.repeated_before
        repeats = counts[corpus.paragraphs[p + 1]] - counts[corpus.paragraphs[p]] > 1
        _, copies = np.unique(corpus.hashes[np.diff(counts) > 0], return_counts=True)
        most = self.max_sentences * (self.positives + self.negatives)  # sentences that a last negative must differ from
        copies = np.sort(copies)[::-1][:most]
        blocked = self.max_sentences * (copies.sum() + most - len(copies))  # at most so many spans have one of them
        few = self._pool(p, self.lengths(p)[1], EASY).count <= blocked
        incomplete = np.zeros(len(p), bool)
        suspicious = np.flatnonzero(repeats | few)
        for start in range(0, len(suspicious), BLOCK):
            rows = suspicious[start : start + BLOCK]
            incomplete[rows] = self._groups(p[rows]).incomplete
        return incomplete

    def __len__(self):
        return self.groups

    # -------------------------------------------------------------- spans

    def spans(self, indices) -> Spans:
        """The groups with these numbers as sentence ranges. Shapes: ranges (B, k + 1, 1, 2), paragraphs (B, k + 1), labels, kinds (B, k)"""
        indices = self._numbers(indices)
        p = self.anchors[permuted(indices, len(self), self.key)]
        groups = self._groups(p)
        order = np.argsort(keyed(self.key, SLOTS, p[:, None], np.arange(groups.kinds.shape[1])), 1)
        kinds = np.take_along_axis(groups.kinds, order, 1)
        order = np.concatenate([np.zeros((len(p), 1), np.int64), 1 + order], 1)  # s_0 stays the first text
        starts = np.take_along_axis(groups.starts, order, 1)
        paragraphs = np.take_along_axis(groups.paragraphs, order, 1)
        ranges = np.stack([starts, starts + self._sizes(*self.lengths(p), starts.shape[1])], -1)[:, :, None]
        labels = (kinds == POSITIVE).astype(np.int64)
        if self.labels == "shuffled":
            labels = self._shuffled(indices, kinds.shape[1], self.positives)
        return Spans(ranges, paragraphs, labels, kinds, indices, np.zeros_like(indices))

    def _groups(self, p) -> Groups:
        """Groups around some anchors: each text is drawn until it shares no sentence with those before it."""
        a, b = self.lengths(p)
        own, texts = 1 + self.positives, 1 + self.positives + self.negatives
        groups = Groups(
            starts=np.zeros((len(p), texts), np.int64),
            paragraphs=np.repeat(p[:, None], texts, 1),
            kinds=np.full((len(p), texts - 1), POSITIVE, np.int8),
            incomplete=np.zeros(len(p), bool),
        )
        left = np.arange(len(p))
        attempt = 0
        while left.size and attempt <= REDRAWS:
            some, places = p[left], keyed(self.key, PLACES, attempt, p[left])
            groups.starts[left, :own] = self.rule.positive(*self.extent(some), a[left], b[left], self.positives, places)
            left = left[self._clash(groups.starts[left, :own], a[left], b[left])]
            attempt += 1
        groups.incomplete[left] = True
        for text in range(own, texts):
            slot = text - own
            taken = self._hashes(groups.starts[:, :text], self._sizes(a, b, text))
            left = np.flatnonzero(~groups.incomplete)
            for kind in (HARD, EASY) if slot < self.hard_negatives else (EASY,):
                numbers = self._unlike(p[left], b[left], slot, kind, taken[left])
                rows = left[numbers >= 0]
                groups.starts[rows, text], groups.paragraphs[rows, text] = self._located(numbers[numbers >= 0], b[rows])
                groups.kinds[rows, text - 1] = kind
                left = left[numbers < 0]
            groups.incomplete[left] = True
        return groups

    def _unlike(self, p, b, slot, kind, taken):
        """Numbers of spans without a taken sentence: up to REDRAWS fresh draws, afterwards the next span; -1 where there is none."""
        pool, numbers = self._pool(p, b, kind), np.full(len(p), -1)
        # Each hard negative before this one has taken a span.
        left = np.flatnonzero(pool.count > (slot if kind == HARD else 0))
        attempt = 0
        while left.size and attempt <= REDRAWS:
            some = pool.take(left)
            drawn = some.number(self._draw(p[left], slot, attempt, some.count))
            new = ~_shared(self._hashes_of(drawn, b[left]), taken[left])
            numbers[left[new]] = drawn[new]
            left = left[~new]
            attempt += 1
        for row in left:
            first = int(self._draw(p[row], slot, REDRAWS, pool.count[row]))
            numbers[row] = self._next(pool.take(row), first, b[row], taken[row])
        return numbers

    def _next(self, pool: Pool, first, b, taken):
        """The number of the next span of a pool, from the first on and round, without a taken sentence; -1 where there is none."""
        for turn in range(0, pool.count, WALK):
            k = (first + np.arange(turn, min(turn + WALK, pool.count))) % pool.count
            numbers = pool.number(k)
            free = ~np.isin(self._hashes_of(numbers, np.broadcast_to(b, numbers.shape)), taken).any(1)
            if free.any():
                return numbers[free.argmax()]
        return -1

    # -------------------------------------------------------------- numbers of spans

    def _pool(self, p, b, kind) -> Pool:
        """The spans of b sentences that a negative may be: those of the document without paragraph p, or of all other documents."""
        documents, paragraphs = self.corpus.documents, len(self.corpus.paragraphs) - 1
        d, row = self.corpus.document_of[p], (b - 1) * paragraphs
        document = self.before[row + documents[d]], self.before[row + documents[d + 1]]
        if kind == HARD:
            (low, high), (cut, end) = document, (self.before[row + p], self.before[row + p + 1])
        else:
            (low, high), (cut, end) = (self.before[row], self.before[row + paragraphs]), document
        count = high - low - (end - cut)
        # From an empty pool `low` is drawn, and not used.
        return Pool(low=low, count=count, cut=cut, gap=np.where(count, end - cut, 0))

    def _draw(self, p, slot, attempt, count):
        return below(keyed(self.key, NEGATIVES, attempt, p, slot), count)

    def _located(self, numbers, b):
        """First sentences and paragraphs of spans of b sentences, from their numbers."""
        row = np.searchsorted(self.before, numbers, side="right") - 1
        q = row - (b - 1) * (len(self.corpus.paragraphs) - 1)
        return self.corpus.paragraphs[q] + numbers - self.before[row], q

    def _sizes(self, a, b, texts):
        """Sentences of each of the first `texts` texts of groups. Shapes: (B,), (B,) -> (B, texts)"""
        return np.stack([a] + [b] * (texts - 1), 1)

    def _hashes(self, starts, sizes):
        """Hashes of the sentences of spans, the last one repeated up to max_sentences. Shapes: (...), (...) -> (..., max_sentences)"""
        sentences = np.minimum(np.arange(self.max_sentences), sizes[..., None] - 1)
        return np.asarray(self.corpus.hashes)[starts[..., None] + sentences]

    def _hashes_of(self, numbers, b):
        return self._hashes(self._located(numbers, b)[0], b)

    def _clash(self, starts, a, b):
        """Groups in which two texts share a sentence, or copies of one. Shapes: (B, texts) -> (B,)"""
        hashes = self._hashes(starts, self._sizes(a, b, starts.shape[1]))
        return np.any([_shared(hashes[:, text], hashes[:, :text]) for text in range(1, starts.shape[1])], 0)


def _shared(hashes, taken):
    """Whether one of the sentences is taken. Shapes: (B, M), (B, texts, M) -> (B,)"""
    return (taken[..., None] == hashes[:, None, None]).any((1, 2, 3))
