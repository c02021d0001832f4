"""Does a ranker read the question? Its scores for other people's questions, and those of a model that sees no question at all."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from .. import draws
from ..data.questions import Question


def exchanged(questions: Sequence[Question], seed: int = 0) -> list[Question]:
    """Each question with its own candidates and labels, and the text of another one.

    A ranker that reads the question falls to chance; what it keeps it knows from the candidates alone.
    Raises: ValueError for fewer than two questions.
    Example:
        >>> [question.text for question in exchanged([Question("1", "who?", ()), Question("2", "where?", ())])]
        ['where?', 'who?']
    """
    if len(questions) < 2:
        raise ValueError(f"two questions or more are needed to exchange their texts, got {len(questions)}")
    asked = list(questions)
    order = draws.choose([question.id for question in asked], len(asked), seed)
    next_of = dict(zip(order, [*order[1:], order[0]]))
    text_of = {question.id: question.text for question in asked}
    return [replace(question, text=text_of[next_of[question.id]]) for question in asked]


def bag_of_words(train: Sequence[Question], test: Sequence[Question]) -> pd.DataFrame:
    """Scores of a logistic regression on the words and pairs of words of a candidate, which sees no question.

    Features: 1 + log of counts times inverse document frequency, of those in two candidates or more; both labels weigh the same.
    Returns: question_id, label, score (float32), in the order of the test questions.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, labels = zip(*((candidate.text, candidate.label) for question in train for candidate in question.candidates))
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(words.fit_transform(texts), labels)
    rows = [(question.id, candidate.label, candidate.text) for question in test for candidate in question.candidates]
    table = pd.DataFrame(rows, columns=["question_id", "label", "text"])
    return table.assign(score=model.decision_function(words.transform(table.pop("text"))).astype(np.float32))
