"""Which measures there are: tables, comparisons and records ask here.

A measure of rankings is a file of `asutil/metrics/measures/` that ends with `register`; nothing else names it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

import numpy as np

from ..registry import Registry

# Columns of values stand in this order, and those of other measures after them.
FIRST = ("p@1", "map", "mrr")
MEASURES = Registry("measures")


@dataclass(frozen=True)
class Ranks:
    """Where the R right candidates of Q questions stand: question by question, the best first.

    Shapes: question, rank (R,), number of the question and rank from 1 on; size, right (Q,), candidates and right
        candidates of each question
    """

    question: np.ndarray
    rank: np.ndarray
    size: np.ndarray
    right: np.ndarray

    @cached_property
    def nth(self) -> np.ndarray:
        """1 for the best right candidate of its question, 2 for the next. Shapes: (R,)"""
        return np.arange(len(self.rank)) - (np.cumsum(self.right) - self.right)[self.question] + 1

    @cached_property
    def first(self) -> np.ndarray:
        """The rank of each question's best right candidate, infinite where it has none. Shapes: (Q,)"""
        ranks = np.full(len(self.size), np.inf)
        ranks[self.question[self.nth == 1]] = self.rank[self.nth == 1]
        return ranks


@dataclass(frozen=True)
class Measure:
    """A measure from 0 to 1 by the names that records, papers' files and tables have for it.

    Args:
        key: in records and in `experiments/*.yml`; title: in tables.
        of: what a record has one value of: "question", "claim" or "context"; "split" where it has the mean alone.
        column: of these values; the key by default.
        value: `Ranks` -> one value a question, 0 for a question without a right candidate.
        at_random: (candidates, right ones) of a question with a right one -> its mean over all orders of the candidates.
        printed: a paper may print it. log: it is a column of the log of a training. curve: it is drawn by step.
        card: its place among the few that say how a run ended; 0: it is none of them.
        trec_eval, torchmetrics: its name there, and for torchmetrics top_k.
    """

    key: str
    title: str
    of: str
    column: str = ""
    value: Callable[[Ranks], np.ndarray] | None = None
    at_random: Callable[[int, int], float] | None = None
    printed: bool = True
    log: bool = False
    curve: bool = False
    card: int = 0
    trec_eval: str = ""
    torchmetrics: tuple[str, int | None] | None = None


def register(key: str, title: str, column: str = "", value=None, at_random=None, **about) -> None:
    """Make a `Measure` known; one with `value` is of questions and in the log of a training.

    Raises: ValueError for a key that another one has.
    """
    about = {"log": value is not None, "of": "question" if value else "split"} | about
    MEASURES.add(key, Measure(key, title, column=column or key, value=value, at_random=at_random, **about))


def measures(of: str | None = None) -> list[Measure]:
    """All measures, or those that have one value a question, claim or context."""
    import_module(f"{__package__}.measures")
    chosen = [measure for measure in MEASURES.values() if of in (None, measure.of)]
    return sorted(chosen, key=lambda measure: FIRST.index(measure.key) if measure.key in FIRST else len(FIRST))


def columns(of: str) -> dict[str, str]:
    """The keys of the measures that have one value a question, claim or context, and the columns of these values."""
    return {measure.key: measure.column for measure in measures(of)}


def titles() -> dict[str, str]:
    """The keys of all measures and what tables call them."""
    return {measure.key: measure.title for measure in measures()}


def card(of: str) -> list[str]:
    """The keys of the few measures that say how a run ended."""
    chosen = [measure for measure in measures(of) if measure.card]
    return [measure.key for measure in sorted(chosen, key=lambda measure: measure.card)]
