"""Sentences of a corpus, ranked for questions: by BM25, by vectors, or at random; what hard negatives are mined from."""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import tasks
from ..data import baselines
from . import vectors
from .embedding import encoded

Ranked = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


class MiningQuestion(NamedTuple):
    """The text of a question, and the numbers of its candidates and of its right ones among the distinct sentences."""

    text: str
    own: list[int]
    right: list[int]


class SentenceList:
    """Sentences in memory."""

    def __init__(self, sentences: Iterable[str]):
        self._sentences = list(sentences)

    def __len__(self) -> int:
        return len(self._sentences)

    def texts(self, numbers: Iterable[int]) -> list[str]:
        return [self._sentences[number] for number in numbers]


class BM25(SentenceList):
    """Sentences ranked by BM25; one that shares no word with a question has no rank."""

    def __init__(self, sentences: Iterable[str]):
        super().__init__(sentences)
        self.identity = {"readout": "bm25", "k1": 1.5, "b": 0.75}
        self._scores = baselines.bm25_over(self._sentences)

    def ranked(self, questions: list[MiningQuestion], depth: int) -> Ranked:
        """For each question numbers and scores of the `depth` best sentences, and the scores of its right candidates."""
        for question in questions:
            scores = self._scores(question.text)
            numbers = np.setdiff1d(np.flatnonzero(scores), question.own)
            best = numbers[np.argsort(-scores[numbers], kind="stable")[:depth]]
            yield best, scores[best], scores[question.right]


class RandomOrder(SentenceList):
    """Sentences in a random order, which a hash of the question decides: the control for what choosing them gains."""

    def __init__(self, sentences: Iterable[str]):
        super().__init__(sentences)
        self.identity = {"readout": "random"}

    def ranked(self, questions: list[MiningQuestion], depth: int) -> Ranked:
        """For each question `depth` sentences with score -inf, which every margin lets pass, and score 1 for its right candidates."""
        for question in questions:
            others = np.setdiff1d(np.arange(len(self)), question.own)
            drawn = np.random.default_rng(list(key_of(question.text))).permutation(others)[:depth]
            yield drawn, np.full(len(drawn), -np.inf), np.ones(len(question.right))


class Neighbours:
    """Sentences ranked by their vectors, exactly, under the encoder's own readout; the vectors are kept in a folder."""

    def __init__(self, sentences: Iterable[str], encoder, folder: Path):
        self._encoder, self._by = encoder, tasks.nearest.usual_of_vectors(encoder)
        self._vectors = vectors.embed(encoder, sentences, folder)
        self.identity = {"readout": self._by, "identity": encoder.identity}

    def __len__(self) -> int:
        return len(self._vectors)

    def texts(self, numbers: Iterable[int]) -> list[str]:
        return self._vectors.texts(numbers)

    def ranked(self, questions: list[MiningQuestion], depth: int) -> Ranked:
        """For each question numbers and scores of the `depth` best sentences, and the scores of its right candidates."""
        queries = encoded(self._encoder, [question.text for question in questions], "query")
        most = depth + max(len(question.own) for question in questions)
        for question, query, scores, numbers in zip(questions, queries, *self._vectors.search(queries, most, self._by)):
            others = np.flatnonzero(~np.isin(numbers, question.own))[:depth]
            right = self._vectors.vectors[question.right]
            of_right = tasks.nearest.similarity(np.tile(query, (len(right), 1)), right, self._by)
            yield numbers[others], scores[others], of_right


class Judged:
    """The best sentences of one ranking, scored again by a ranker that reads question and sentence together (`base.BaseRanker`)."""

    def __init__(self, first, judge):
        self._first, self._judge = first, judge
        self.identity, self.texts = first.identity, first.texts

    def __len__(self) -> int:
        return len(self._first)

    def ranked(self, questions: list[MiningQuestion], depth: int) -> Ranked:
        """For each question the first ranking's `depth` best sentences, the judge's best first, and its scores of the right candidates."""
        for question, (numbers, _, _) in zip(questions, self._first.ranked(questions, depth)):
            judged = dict(self._judge.rank(question.text, self.texts([*numbers, *question.right])))
            scores = np.array([judged[place] for place in range(len(judged))])
            order = np.argsort(-scores[: len(numbers)], kind="stable")
            yield numbers[order], scores[order], scores[len(numbers) :]


RANKED = {"bm25": BM25, "random": RandomOrder}


def key_of(text: str) -> bytes:
    """A hash of a text in NFC, without its case and its kind of white space: less memory than the text."""
    plain = unicodedata.normalize("NFC", " ".join(text.split()).casefold())
    return hashlib.blake2b(plain.encode(), digest_size=16).digest()
