"""A question with its candidate answers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    id: str
    text: str
    label: int
    before: str | None  # the sentence before it in its document, None where it is unknown
    after: str | None


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    candidates: tuple[Candidate, ...]
