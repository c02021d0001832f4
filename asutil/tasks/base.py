"""What every ranker does: questions in, one score per candidate out, window by window. No later step needs a model."""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .. import metrics
from ..data.candidates import Candidate, Question
from ..io import disk, hub

WINDOW = 1 << 15  # candidates that are tokenised and ordered by length together: memory is bounded by it
SEVERAL = (list, tuple, np.ndarray, pd.Series)  # what holds the questions of one call
log = logging.getLogger(__name__)


class BaseRanker(ABC):
    """What every ranker does with its scores: the candidates of one question in order, and the one that answers it."""

    calibration: "metrics.calibration.Calibration | None" = None
    name = ""  # what it was loaded from
    reads_contexts = False
    counts_words = False  # over all candidates that are scored together, for document frequencies

    def score(self, questions: Iterable, progress: bool = True, folder: str | Path | None = None) -> pd.DataFrame:
        """Score every candidate of every question, window by window: memory does not grow with the questions.

        Args:
            questions: of `Question(id, text, candidates)` with `Candidate(id, text, label, before, after)`; any
                iterable, read once. Only models with contexts read `before` and `after`.
            folder: keep the scores of every finished window here, so that a stopped scoring can continue. A window is
                identified by the texts, ids and labels of its questions and by all that its scores follow from, the
                weights included. Delete the folder once the table is written.
        Returns: DataFrame with question_id, candidate_id, label (int8), score (float32), in the order of the questions;
            `nearest.Nearest` adds a column for each scoring function.
        Raises: ValueError where there are no questions.
        """
        count = len(questions.rows()) if hasattr(questions, "rows") else None
        if isinstance(questions, list | tuple):
            sizes = [len(question.candidates) for question in questions]
            count = sum(sizes)
            if without := sizes.count(0):
                log.warning(
                    "questions without candidates: %d of %d; no metric of these scores counts them", without, len(sizes)
                )
        identity = self._identity() if folder else None
        tables = []
        with tqdm(total=count, unit=" pairs", disable=not progress, dynamic_ncols=True) as bar:
            for number, window in enumerate(windows_of(questions, whole=self.counts_words)):
                if not folder:
                    tables.append(self._window(window, bar))
                    continue
                path = Path(folder) / f"window-{number:05d}-{window_hash(identity, window, self.reads_contexts)}"
                scores = _read_window(path)
                if scores is None:
                    scores = self._window(window, bar)
                    _write_window(path, scores)
                else:
                    bar.update(len(scores))
                tables.append(scores)
        if not tables:
            raise ValueError("expected questions with candidates to score, got none")
        return pd.concat(tables, ignore_index=True)

    @abstractmethod
    def _window(self, questions: list, bar: tqdm) -> pd.DataFrame:
        """The scores of some questions; the bar counts candidates."""

    @abstractmethod
    def _identity(self) -> str:
        """A hash of what scores follow from besides the questions."""

    def require_contexts(self, contexts: list[tuple] | None) -> None:
        """Raises: ValueError for contexts that the model does not read."""
        if contexts is not None:
            raise ValueError(f"a {type(self).__name__} reads question and candidate alone: it takes no contexts")

    def rank(
        self,
        question: str | list[str],
        candidates: list[str] | list[list[str]],
        contexts: list | None = None,
        calibrated: bool = False,
    ) -> list[tuple[int, float]] | list[list[tuple[int, float]]]:
        """(candidate number, score), best first; equal scores keep the order of the candidates.

        A list of questions, with a list of candidates (and of contexts) for each, gives a list of rankings: those of
        the questions alone, but the candidates of all are batched together.
        Args:
            contexts: for a model that was trained with contexts, and for no other: (sentence before, sentence after) of
                each candidate, None where there is no such sentence.
            calibrated: the probability that a candidate answers in place of its score; the order is the same.
        Raises: ValueError for contexts that the model does not read, or lacks, or that do not fit the candidates, and
            for probabilities of a ranker that was not calibrated.
        """
        self.require_contexts(contexts)
        fitted = self._calibration() if calibrated else None
        several = isinstance(question, SEVERAL)
        made = as_questions(question, candidates, contexts) if several else as_question(question, candidates, contexts)
        rankings = []
        for scores in self._scores_alone(made if several else [made]):
            ranked = best_first(scores, self.name)
            if fitted is not None and ranked:
                numbers, scores = zip(*ranked)
                ranked = list(zip(numbers, fitted.probabilities(scores).tolist()))
            rankings.append(ranked)
        return rankings if several else rankings[0]

    def _scores_alone(self, asked: list[Question]) -> list[np.ndarray]:
        """The scores of each question's candidates, as if it were asked alone."""
        sizes = [len(question.candidates) for question in asked]
        full = Ordered(question for question in asked if question.candidates)
        tables = [self.score(part, progress=False) for part in self._parts(full)]
        scores = pd.concat(tables)["score"].to_numpy() if tables else np.zeros(0, np.float32)
        return np.split(scores, np.cumsum(sizes)[:-1]) if asked else []

    def _parts(self, questions: Iterable) -> list:
        """Questions in parts whose scores are those of each question alone."""
        if self.counts_words:
            kind = Ordered if getattr(questions, "ordered", False) else list
            return [kind([question]) for question in questions if question.candidates]
        return [questions] if len(questions) else []

    def answer(
        self, question, candidates, contexts: list | None = None, threshold: float | None = None
    ) -> tuple[int, float] | list[tuple[int, float] | None] | None:
        """(candidate number, probability) of the best candidate; None where it is below the threshold, or there is none.

        A list of questions, as `rank` takes it, gives a list.
        Args:
            threshold: a probability; default: the one with the highest F1 of answers on the questions of `calibrate`.
        Raises: ValueError as `rank`, and for a threshold that is no probability.
        """
        least = self._calibration().threshold if threshold is None else threshold
        if not 0 <= least <= 1:
            raise ValueError(f"threshold: a probability from 0 to 1 expected, got {threshold!r}")
        ranked = self.rank(question, candidates, contexts, calibrated=True)
        several = isinstance(question, SEVERAL)
        best = [one[0] if one and one[0][1] >= least else None for one in (ranked if several else [ranked])]
        return best if several else best[0]

    def calibrate(self, questions: Iterable) -> "metrics.calibration.Calibration":
        """Fit probabilities and the threshold on labelled questions that nothing is tested on (`calibration.fit`).

        Args:
            questions: `Question`s, as `load_answers("my_questions.tsv")["dev"]`.
        Raises: ValueError for anything else, for none, and where a higher score does not mean an answer more often.
        """
        questions = [] if isinstance(questions, str | Path) else questions
        if not len(questions) or not isinstance(next(iter(questions)), Question):
            raise ValueError(
                'questions: labelled questions expected, as load_answers("my_questions.tsv")["dev"] gives them'
            )
        tables = [self.score(part, progress=not self.counts_words) for part in self._parts(questions)]
        fitted = metrics.calibration.fit(pd.concat(tables, ignore_index=True))
        if fitted is None:
            raise ValueError(
                "no probability fits: a higher score does not mean an answer more often on these questions"
            )
        self.calibration = fitted
        return fitted

    def _calibration(self) -> "metrics.calibration.Calibration":
        if self.calibration is None:
            expected = "call calibrate(questions) with labelled questions that are not the test's"
            tried = "a fine-tuning run whose dev questions allowed no fit has none either"
            raise ValueError(f"this ranker has no probabilities: {expected} ({tried})")
        return self.calibration


# ------------------------------------------------------------------ texts and rankings of a caller


def as_question(question: str, candidates: list[str], contexts: list[tuple] | None = None) -> Question:
    """A question without ids and labels, as `score` takes it. Raises: ValueError for arguments that do not fit."""
    if isinstance(candidates, str):
        raise ValueError(f"candidates: a list of texts expected, got one text, {candidates!r:.80}")
    if isinstance(candidates, Mapping | Set | pd.DataFrame):  # a list of one has its keys or columns, or no order
        raise ValueError(f"candidates: a list of texts expected, got a {type(candidates).__name__}")
    candidates = list(candidates)  # a column of a table, too
    texts = {"question": question} | {f"candidates[{n}]": text for n, text in enumerate(candidates)}
    for place, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{place}: a text expected, got {text!r:.80}")
    contexts = [(None, None)] * len(candidates) if contexts is None else contexts
    for context in contexts:
        if isinstance(context, str | Mapping | Set) or len(context) != 2:
            raise ValueError(f"contexts: (sentence before, sentence after) of each candidate expected, got {context!r}")
    if len(contexts) != len(candidates):
        raise ValueError(f"contexts: one for each of the {len(candidates)} candidates expected, got {len(contexts)}")
    return Question("", question, tuple(Candidate("", text, 0, *around) for text, around in zip(candidates, contexts)))


def best_first(scores: np.ndarray, name: str = "") -> list[tuple[int, float]]:
    """(candidate number, score), best first; equal scores keep the order of the candidates.

    Raises: ValueError naming the ranker and a candidate whose score is no number.
    Example:
        >>> best_first(np.array([0.5, 2.0, 0.5]))
        [(1, 2.0), (0, 0.5), (2, 0.5)]
    """
    if len(wrong := np.flatnonzero(np.isnan(scores))):
        where = f"{name}, candidate {wrong[0]}" if name else f"candidate {wrong[0]}"
        raise ValueError(f"{where}: a score expected, got {scores[wrong[0]]}: its weights may be damaged")
    return [(int(number), float(scores[number])) for number in np.argsort(-scores, kind="stable")]


def as_questions(questions, candidates, contexts=None) -> list[Question]:
    """Questions with the candidates of each. Raises: ValueError naming the question whose arguments do not fit."""
    questions, candidates = list(questions), [candidates] if isinstance(candidates, str) else list(candidates)
    contexts = [None] * len(questions) if contexts is None else list(contexts)
    for name, each in {"candidates": candidates, "contexts": contexts}.items():
        if len(each) != len(questions):
            raise ValueError(f"{name}: one list for each of the {len(questions)} questions expected, got {len(each)}")
    asked = []
    for number, arguments in enumerate(zip(questions, candidates, contexts)):
        try:
            asked.append(replace(as_question(*arguments), id=str(number)))
        except ValueError as error:
            raise ValueError(f"question {number}: {error}") from error
    return asked


# ------------------------------------------------------------------ many questions, window by window


class Ordered(list):
    """Questions whose contexts are known, even if no candidate has any."""

    ordered = True


def pairs_of(questions: Iterable[Question]) -> list[tuple[Question, Candidate]]:
    return [(question, candidate) for question in questions for candidate in question.candidates]


def rows_of(pairs: list[tuple[Question, Candidate]]) -> pd.DataFrame:
    """question_id, candidate_id and label (int8) of some candidates, each with its question."""
    rows = [(question.id, candidate.id, candidate.label) for question, candidate in pairs]
    return pd.DataFrame(rows, columns=["question_id", "candidate_id", "label"]).astype({"label": np.int8})


def windows_of(questions: Iterable, whole: bool = False) -> Iterator[list]:
    """Questions in windows of some WINDOW candidates: enough to order by length, few enough for memory; `whole`: all in one."""
    kind = Ordered if getattr(questions, "ordered", False) else list
    window, size = kind(), 0
    for question in questions:
        window.append(question)
        size += len(question.candidates)
        if size >= WINDOW and not whole:
            yield window
            window, size = kind(), 0
    if size:
        yield window


def window_hash(identity: str, window: list, context: bool) -> str:
    rows = [
        [q.id, q.text, [[c.id, c.text, int(c.label), *[c.before, c.after] * context] for c in q.candidates]]
        for q in window
    ]
    return hashlib.sha256(json.dumps([identity, rows]).encode()).hexdigest()[:16]


def _write_window(path: Path, scores: pd.DataFrame) -> None:
    table = disk.atomically(path.with_suffix(".parquet"), lambda part: scores.to_parquet(part, index=False))
    disk.write_json(path.with_suffix(".json"), {"sha256": hub.sha256(table)})


def _read_window(path: Path) -> pd.DataFrame | None:
    """The scores of a finished window; None where it is not finished or its files were damaged."""
    if not path.with_suffix(".json").is_file():
        return None
    try:
        sha256 = disk.read_json(path.with_suffix(".json"))["sha256"]
        return pd.read_parquet(disk.check(path.with_suffix(".parquet"), sha256))
    except ValueError as error:
        log.warning("scored again: %s", error)
        return None
