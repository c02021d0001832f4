"""Questions and candidates as a caller gives them, as plain texts, and rankings as a caller gets them."""

from dataclasses import replace

import numpy as np
import pandas as pd

from ..data.candidates import Candidate, Question

SEVERAL = (list, tuple, np.ndarray, pd.Series)  # what holds the questions of one call


def as_question(question: str, candidates: list[str], contexts: list[tuple] | None = None) -> Question:
    """A question without ids and labels, as `score` takes it. Raises: ValueError for arguments that do not fit."""
    if isinstance(candidates, str):
        raise ValueError(f"candidates: a list of texts expected, got one text, {candidates!r:.80}")
    candidates = list(candidates)  # a column of a table, too
    texts = {"question": question} | {f"candidates[{n}]": text for n, text in enumerate(candidates)}
    for place, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{place}: a text expected, got {text!r:.80}")
    contexts = [(None, None)] * len(candidates) if contexts is None else contexts
    for context in contexts:
        if isinstance(context, str) or len(context) != 2:
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
