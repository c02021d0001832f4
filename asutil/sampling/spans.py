"""What a sampler gives: examples as sentence ranges of an index, and one of them with its text."""

from dataclasses import dataclass

import numpy as np

KINDS = ("positive", "hard", "easy")
POSITIVE, HARD, EASY = range(3)


@dataclass(frozen=True)
class Example:
    """One example, with the text of its parts and where each comes from (rows of the corpus arrays).

    Of mspp the parts are s_0 and its k candidates; label and kind have an entry for each candidate.
    """

    parts: tuple[str, ...]
    label: int | tuple[int, ...]
    kind: str | tuple[str, ...]
    group: int
    document: tuple[int, ...]
    paragraph: tuple[int, ...]
    sentences: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Spans:
    """A batch of examples as sentence ranges: ranges (B, parts, R, 2), paragraphs (B, parts), all others (B,).

    Of mspp labels and kinds (B, k).
    members: which objective of a union an example is of, by its place in UNIONS; 0 where there is one objective.
    """

    ranges: np.ndarray
    paragraphs: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    groups: np.ndarray
    members: np.ndarray

    def example(self, corpus, row=0) -> Example:
        """One of them, with its text."""
        sentences = tuple(tuple(int(n) for begin, end in part for n in range(begin, end)) for part in self.ranges[row])
        paragraphs = tuple(self.paragraphs[row].tolist())
        return Example(
            parts=tuple(corpus.text(part) for part in sentences),
            label=_plain(self.labels[row]),
            kind=_plain(np.take(KINDS, self.kinds[row])),
            group=int(self.groups[row]),
            document=tuple(int(corpus.document_of[p]) for p in paragraphs),
            paragraph=paragraphs,
            sentences=sentences,
        )


def _plain(found):
    """A single value, or a tuple of them."""
    return tuple(found.tolist()) if found.ndim else found.item()
