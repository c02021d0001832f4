"""The examples that a sampler makes: sentence ranges of an index, and a single example with its text."""

from dataclasses import dataclass

import numpy as np

KINDS = ("positive", "hard", "easy")
POSITIVE, HARD, EASY = range(3)


@dataclass(frozen=True)
class Example:
    """One example: the text of its parts and where each comes from (rows of the corpus arrays).

    The parts of mspp are s_0 and its k candidates; label and kind have an entry for each candidate.
    """

    parts: tuple[str, ...]
    label: int | tuple[int, ...]
    kind: str | tuple[str, ...]
    group: int
    document: tuple[int, ...]
    paragraph: tuple[int, ...]
    sentences: tuple[tuple[int, ...], ...]


class Columns:
    """A table as a dataclass of arrays, one row an example."""

    def take(self, rows):
        """The table of some rows."""
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    def put(self, rows, other) -> None:
        """Write the rows of another table over some rows of this one."""
        for name, column in vars(self).items():
            column[rows] = getattr(other, name)


@dataclass(frozen=True)
class Spans(Columns):
    """A batch of examples as sentence ranges: ranges (B, parts, R, 2), paragraphs (B, parts), all others (B,).

    The labels and kinds of mspp have shape (B, k).
    members: the objective of an example of a union, by its place in `members`; 0 where there is one objective.
    """

    ranges: np.ndarray
    paragraphs: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    groups: np.ndarray
    members: np.ndarray

    def example(self, corpus, row=0) -> Example:
        """The example of one row, with its text."""
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


def _plain(values):
    """A single value, or a tuple of values."""
    return tuple(values.tolist()) if values.ndim else values.item()
