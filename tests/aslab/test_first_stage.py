"""What a first stage keeps, against slow loops; its table."""

import numpy as np
import pytest

from aslab import first_stage
from asutil.data import answers
from asutil.data.answers import Candidate, Question
from asutil.data.baselines import bm25
from asutil.metrics import significance
from asutil.tasks.rankers import load_encoder

WORDS = "the old bridge was built in stone by a river near town and later painted red before its long repair".split()


def questions(count=40):
    """Questions of three words with four candidates, one or two right; some sentences belong to several questions."""
    draw, made = np.random.default_rng(3), []
    sentences = [" ".join(draw.choice(WORDS, 6)) for _ in range(90)]
    for number in range(count):
        texts = draw.choice(sentences, 4, replace=False)
        labels = [1, int(draw.random() < 0.3), 0, 0]
        candidates = tuple(Candidate(f"{number}-{n}", text, label, None, None) for n, (text, label) in enumerate(zip(texts, labels)))
        made.append(Question(f"q{number}", " ".join(draw.choice(WORDS, 3)), candidates))
    return made


def kept_by_loop(scores: dict[str, list[float]], asked: list[Question], sentences: list[str], depth: int) -> int:
    """The questions with a right sentence among the best `depth` with a score above zero."""
    kept = 0
    for question in asked:
        right = {candidate.text for candidate in question.candidates if candidate.label}
        order = sorted(range(len(sentences)), key=lambda n: (-scores[question.id][n], sentences[n] in right))[:depth]
        kept += any(sentences[n] in right and scores[question.id][n] > 0 for n in order)
    return kept


@pytest.mark.parametrize("model", ["bm25", "pydocs_roberta"])
def test_recall_is_that_of_a_slow_loop(model, monkeypatch):
    asked = questions()
    monkeypatch.setattr(answers, "load_answers", lambda name: {"test": asked})
    monkeypatch.setattr(first_stage, "DEPTHS", (2, 5, 20))
    (made,) = first_stage.record(["made up"], [model])["sets"]
    sentences = list(dict.fromkeys(candidate.text for question in asked for candidate in question.candidates))
    if model == "bm25":
        scores = {question.id: bm25([question.text], sentences, [len(sentences)]) for question in asked}
    else:
        encoder = load_encoder(model)
        vectors, queries = (np.asarray(encoder.encode(texts)) for texts in (sentences, [question.text for question in asked]))
        norm = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
        scores = dict(zip((question.id for question in asked), 2 + norm(queries) @ norm(vectors).T))
    assert (made["questions"], made["sentences"]) == (40, len(sentences))
    for depth in (2, 5, 20):
        kept = kept_by_loop(scores, asked, sentences, depth)
        assert made["recall"][model][str(depth)] == {"recall": kept / 40, "interval": significance.proportion_interval(kept / 40, 40)}
    assert 0 < made["recall"][model]["2"]["recall"] < made["recall"][model]["20"]["recall"] <= 1


@pytest.mark.parametrize("right", [0, 11])
def test_a_right_sentence_is_behind_the_wrong_ones_of_its_score(right, monkeypatch):
    """Of twelve sentences with one score it is the last, in either order of the rows: it is not among the best ten."""
    candidates = tuple(Candidate(str(n), f"river {n}", int(n == right), None, None) for n in range(12))
    split = {"test": [Question("q", "river?", candidates)]}
    monkeypatch.setattr(answers, "load_answers", lambda name: split)
    (made,) = first_stage.record(["made up"], ["bm25"])["sets"]
    assert [depth["recall"] for depth in made["recall"]["bm25"].values()] == [0, 0, 1, 1]
