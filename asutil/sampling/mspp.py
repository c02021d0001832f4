"""Multi-Sentences in Paragraph Prediction: groups of one text s_0 and k candidates, each group one joint example."""

import numpy as np

from ..draws import below, keyed, permuted
from ..inputs import pairs
from ..inputs import ragged as ragged_ids
from .sampler import REDRAWS, WALK, Sampler
from .spans import EASY, HARD, POSITIVE, Spans

BLOCK = 1 << 16  # groups that are looked at together when anchors are sought


class MultiSentenceSampler(Sampler, objective="mspp"):
    """The examples of mspp by number: s_0 and its k = k1 + k2 + k3 candidates in random order. `Sampler(corpus, "mspp")` gives it.

    k1 = positives are of the paragraph of s_0, up to k2 = hard_negatives of other paragraphs of its document, the other negatives of
    other documents; every sentence that qualifies is equally likely. No two texts of a group share a sentence, nor a copy of one.
    A keyed permutation visits every eligible anchor paragraph once.

    Paper: joint_inference, section 3.4; k1, k2, k3 = 1, 2, 2: section 4.1.
    Args:
        max_tokens: (k + 1) L, every text being cut to L; None takes L = 64.
        positives: k1.
        max_sentences: 1, or more: s_0 has a sentences and every candidate b, each 1 to max_sentences, drawn for each anchor.
    Raises: ValueError for options that do not fit, or for a corpus that gives no example, with the counts.
    Deviation: D-11, sentences, and spans as an option; D-12, 64 tokens a text; D-02, lengths are never clipped; D-05, what repeats a
        sentence of the group is drawn again, and an anchor whose group cannot be completed so is left out.
    """

    def _shape(self, objective, max_tokens, positives, max_sentences):
        positives, max_sentences = (1 if given is None else given for given in (positives, max_sentences))
        if min(positives, max_sentences) < 1:
            raise ValueError(f"positives and max_sentences: at least 1, got {positives} and {max_sentences}")
        self.positives, self.max_sentences = positives, max_sentences
        slots = 1 + positives + self.negatives
        if max_tokens is not None and max_tokens % slots:
            raise ValueError(
                f"max_tokens: a multiple of the {slots} slots of s_0 and {slots - 1} candidates, got {max_tokens}"
            )
        self.slot_tokens = self.rule.max_tokens if max_tokens is None else max_tokens // slots
        self.max_tokens, self.parts = slots * self.slot_tokens, 1  # the tokenizer is given one text at a time

    def _find_anchors(self, objective):
        corpus = self.corpus
        inside = np.repeat(corpus.validation == (self.split == "validation"), np.diff(corpus.documents))
        sizes = np.where(inside, np.diff(corpus.paragraphs), 0)
        # Every span of the split has a number, in the order of the text: first those of one sentence, then those of two, and so on.
        # Those of b sentences that begin in paragraph q have the numbers from before[(b - 1) P + q] on, P paragraphs in all.
        numbers = [np.maximum(sizes - b, 0) for b in range(self.max_sentences)]
        self.before = np.concatenate([[0], np.concatenate(numbers).cumsum()])
        paragraphs = np.flatnonzero(inside)
        a, b = self._lengths(paragraphs)
        need = a + self.positives * b
        anchors = paragraphs[sizes[paragraphs] >= need]
        self.anchors = anchors[~self._incomplete(anchors)]
        if not len(self.anchors):
            least = 1 + self.positives
            needs = f"paragraphs of {least} or more sentences without copies, and {self.negatives} more elsewhere that repeat none of them"
            raise self._refused(objective, len(paragraphs), sizes, needs)

    def _lengths(self, p):
        return self.rule.lengths(self._lengths_key(p), self.max_sentences)

    def _incomplete(self, p):
        """Anchors whose groups cannot be completed: looked for only where sentences repeat in a paragraph or texts are few."""
        corpus = self.corpus
        counts = corpus.repeated_before
        repeats = counts[corpus.paragraphs[p + 1]] - counts[corpus.paragraphs[p]] > 1
        _, copies = np.unique(corpus.hashes[np.diff(counts) > 0], return_counts=True)
        most = self.max_sentences * (self.positives + self.negatives)  # sentences that a last negative must differ from
        copies = np.sort(copies)[::-1][:most]
        blocked = self.max_sentences * (
            copies.sum() + most - len(copies)
        )  # spans that hold one of them, at the very most
        suspicious = np.flatnonzero(repeats | (self._pool(p, self._lengths(p)[1], EASY)[1] <= blocked))
        incomplete = np.zeros(len(p), bool)
        for start in range(0, len(suspicious), BLOCK):
            rows = suspicious[start : start + BLOCK]
            incomplete[rows] = self._groups(p[rows])[-1]
        return incomplete

    def __len__(self):
        return len(self.anchors)

    # -------------------------------------------------------------- spans

    def spans(self, indices) -> Spans:
        """The groups with these numbers as sentence ranges. Shapes: ranges (B, k + 1, 1, 2), paragraphs (B, k + 1), labels, kinds (B, k)"""
        indices = self._numbers(indices)
        p = self.anchors[permuted(indices, len(self), self.key)]
        starts, paragraphs, kinds, _ = self._groups(p)
        order = np.argsort(keyed(self.key, 3, p[:, None], np.arange(kinds.shape[1])), 1)
        kinds = np.take_along_axis(kinds, order, 1)
        order = np.concatenate([np.zeros((len(p), 1), np.int64), 1 + order], 1)
        starts, paragraphs = (np.take_along_axis(array, order, 1) for array in (starts, paragraphs))
        ranges = np.stack([starts, starts + self._sizes(*self._lengths(p), starts.shape[1])], -1)[:, :, None]
        return Spans(ranges, paragraphs, self._labels(kinds, indices), kinds, indices, np.zeros_like(indices))

    def _groups(self, p):
        """Groups in the order s_0, positives, hard and easy negatives.

        Returns: where the texts begin and their paragraphs (B, k + 1), kinds of the candidates (B, k), and which groups cannot be
        completed (of anchors alone that are not eligible).
        """
        a, b = self._lengths(p)
        slots, near, far = np.arange(self.negatives), self._pool(p, b, HARD), self._pool(p, b, EASY)
        hard = (slots < self.hard_negatives) & (near[1][:, None] > slots)
        pool = np.where(hard, near[..., None], far[..., None])
        numbers = self._number(pool, self._draw(p[:, None], slots, 0, pool[1]))
        starts, paragraphs = self._located(numbers, b[:, None])
        own = self._placed(p, a, b, 0)
        starts = np.concatenate([own, starts], 1)
        paragraphs = np.concatenate([np.repeat(p[:, None], own.shape[1], 1), paragraphs], 1)
        kinds = np.concatenate(
            [np.full((len(p), self.positives), POSITIVE, np.int8), np.where(hard, HARD, EASY).astype(np.int8)], 1
        )
        incomplete = np.zeros(len(p), bool)
        again = np.flatnonzero(self._clash(starts, a, b) | (pool[1] == 0).any(1))
        if again.size:
            made = self._one_by_one(p[again], a[again], b[again])
            starts[again], paragraphs[again], kinds[again], incomplete[again] = made
        return starts, paragraphs, kinds, incomplete

    def _one_by_one(self, p, a, b):
        """What `_groups` gives, where a text clashes: each is drawn until it shares no sentence with those before it."""
        own = 1 + self.positives
        starts, incomplete, left = (
            np.zeros((len(p), own + self.negatives), np.int64),
            np.zeros(len(p), bool),
            np.arange(len(p)),
        )
        paragraphs, kinds = np.repeat(p[:, None], starts.shape[1], 1), np.full_like(starts[:, 1:], POSITIVE, np.int8)
        attempt = 0
        while left.size and attempt <= REDRAWS:
            starts[left, :own] = self._placed(p[left], a[left], b[left], attempt)
            left, attempt = left[self._clash(starts[left, :own], a[left], b[left])], attempt + 1
        incomplete[left] = True
        for slot in range(self.negatives):
            known, left = (
                self._hashes(starts[:, : own + slot], self._sizes(a, b, own + slot)),
                np.flatnonzero(~incomplete),
            )
            for kind in (HARD, EASY) if slot < self.hard_negatives else (EASY,):
                numbers = self._unlike(p[left], b[left], slot, kind, known[left])
                rows, found = left[numbers >= 0], numbers[numbers >= 0]
                starts[rows, own + slot], paragraphs[rows, own + slot] = self._located(found, b[rows])
                kinds[rows, own + slot - 1] = kind
                left = left[numbers < 0]
            incomplete[left] = True
        return starts, paragraphs, kinds, incomplete

    def _unlike(self, p, b, slot, kind, known):
        """Numbers of spans that hold none of the known sentences: up to REDRAWS fresh draws, afterwards the next one; -1: there is none."""
        pool, numbers = self._pool(p, b, kind), np.full(len(p), -1)
        left = np.flatnonzero(
            pool[1] > (slot if kind == HARD else 0)
        )  # each hard negative before this one has taken a span
        attempt = 0
        while left.size and attempt <= REDRAWS:
            tried = self._number(pool[:, left], self._draw(p[left], slot, attempt, pool[1, left]))
            new = ~_shared(self._hashes_of(tried, b[left]), known[left])
            numbers[left[new]], left, attempt = tried[new], left[~new], attempt + 1
        for row in left:
            numbers[row] = self._next(
                pool[:, row], int(self._draw(p[row], slot, REDRAWS, pool[1, row])), b[row], known[row]
            )
        return numbers

    def _next(self, pool, place, b, known):
        """The number of the next span of a pool, from a place on and round, that holds none of the known sentences; -1: there is none."""
        for turn in range(0, pool[1], WALK):
            places = (place + np.arange(turn, min(turn + WALK, pool[1]))) % pool[1]
            numbers = self._number(pool[:, None], places)
            free = ~np.isin(self._hashes_of(numbers, np.broadcast_to(b, numbers.shape)), known).any(1)
            if free.any():
                return numbers[free.argmax()]
        return -1

    # -------------------------------------------------------------- numbers of spans

    def _pool(self, p, b, kind):
        """The spans of b sentences that a negative may be: those of the document without paragraph p, or of all others.

        Shapes: (B,), (B,) -> (4, B): the lowest number, how many there are, the first number that is left out, how many are
        """
        documents, paragraphs = self.corpus.documents, len(self.corpus.paragraphs) - 1
        d, row = self.corpus.document_of[p], (b - 1) * paragraphs
        document = self.before[row + documents[d]], self.before[row + documents[d + 1]]
        if kind == HARD:
            (low, high), (cut, end) = document, (self.before[row + p], self.before[row + p + 1])
        else:
            (low, high), (cut, end) = (self.before[row], self.before[row + paragraphs]), document
        count = high - low - (end - cut)
        return np.stack(
            [low, count, cut, np.where(count, end - cut, 0)]
        )  # of an empty pool, `low` is drawn, and not kept

    def _draw(self, p, slot, attempt, count):
        return below(keyed(self.key, 2, attempt, p, slot), count)

    def _number(self, pool, place):
        low, _, cut, left_out = pool
        number = low + place
        return number + np.where(number < cut, 0, left_out)

    def _located(self, numbers, b):
        """First sentences and paragraphs of spans of b sentences, from their numbers."""
        row = np.searchsorted(self.before, numbers, side="right") - 1
        q = row - (b - 1) * (len(self.corpus.paragraphs) - 1)
        return self.corpus.paragraphs[q] + numbers - self.before[row], q

    def _placed(self, p, a, b, attempt):
        """Where s_0 and the positives begin. Shapes: (B,) -> (B, 1 + k1)"""
        return self.rule.positive(*self._extent(p), a, b, self.positives, keyed(self.key, 1, attempt, p))

    def _sizes(self, a, b, texts):
        """Sentences of each of the first `texts` texts of groups. Shapes: (B,), (B,) -> (B, texts)"""
        return np.stack([a] + [b] * (texts - 1), 1)

    def _hashes(self, starts, sizes):
        """Hashes of the sentences of spans, the last one repeated up to max_sentences. Shapes: (...), (...) -> (..., max_sentences)"""
        return np.asarray(self.corpus.hashes)[
            starts[..., None] + np.minimum(np.arange(self.max_sentences), sizes[..., None] - 1)
        ]

    def _hashes_of(self, numbers, b):
        return self._hashes(self._located(numbers, b)[0], b)

    def _clash(self, starts, a, b):
        """Groups in which two texts share a sentence, or copies of one. Shapes: (B, texts) -> (B,)"""
        hashes = self._hashes(starts, self._sizes(a, b, starts.shape[1]))
        return np.any([_shared(hashes[:, text], hashes[:, :text]) for text in range(1, starts.shape[1])], 0)

    # -------------------------------------------------------------- batches

    def joined(self, made: Spans) -> ragged_ids.Ragged:
        """Token ids of groups without padding."""
        return pairs.join_slots(self.corpus, made.ranges, self.template, self.slot_tokens)

    def batch(self, indices) -> ragged_ids.Batch:
        """Token ids with every text padded to L. Shapes: input_ids, token_type_ids (B, S*L), lengths (B, S), labels (B, k)."""
        ragged, labels = self.ragged(indices)
        return ragged.slotted(self.template.pad, labels, self.slot_tokens)


def _shared(hashes, known):
    """Whether one of the sentences is known. Shapes: (B, M), (B, texts, M) -> (B,)"""
    return (known[..., None] == hashes[:, None, None]).any((1, 2, 3))
