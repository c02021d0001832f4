"""Measures what a first stage loses: how many questions keep a right sentence among the nearest of all sentences of a data set."""

import tempfile
from pathlib import Path

import numpy as np

from asutil.data import answers
from asutil.metrics import significance
from asutil.tasks.ranked_sentences import BM25, MiningQuestion, Neighbours
from asutil.tasks.rankers import load_encoder

from . import commands, measured
from .parameters import names_of

DEPTHS = (5, 10, 30, 100)
LIST = {"type": names_of, "required": True}


def record(datasets: list[str], models: list[str]) -> dict:
    """Recall of each ranker by depth, with its 95 % interval (Wilson): the share of test questions with a right one among the best k.

    The distinct candidates of all test questions of a data set (protocol clean) are ranked for each question; a sentence
    counts as right for the questions that it is labelled for.

    Args:
        models: bm25, and encoders as `load_encoder` takes them.
    """
    sets = []
    for dataset in datasets:
        sentences, questions = _pooled(answers.load_answers(dataset)["test"])
        recall = {model: _recall(model, sentences, questions) for model in models}
        sets.append({"dataset": dataset, "questions": len(questions), "sentences": len(sentences), "recall": recall})
        for model, depths in recall.items():
            print(f"{dataset}, {model}: " + ", ".join(f"{100 * own['recall']:.1f} at {k}" for k, own in depths.items()))
    return {"sets": sets}


def _pooled(test) -> tuple[list[str], list[MiningQuestion]]:
    """The distinct candidates of all questions, and each question with the numbers of its right ones."""
    numbers, questions = {}, []
    for question in test:
        every = [numbers.setdefault(candidate.text, len(numbers)) for candidate in question.candidates]
        right = [number for number, candidate in zip(every, question.candidates) if candidate.label == 1]
        questions.append(MiningQuestion(question.text, [], right))
    return list(numbers), questions


def _recall(model: str, sentences: list[str], questions: list[MiningQuestion]) -> dict[str, dict]:
    with tempfile.TemporaryDirectory(prefix="first-stage-") as folder:
        if model == "bm25":
            ranker = BM25(sentences)
        else:
            ranker = Neighbours(sentences, load_encoder(model), Path(folder) / "vectors")
        most = max(DEPTHS) + max(len(question.right) for question in questions)
        before = []  # wrong sentences before the first right one, those of its score among them; infinite without a right one
        for question, (best, scores, _) in zip(questions, ranker.ranked(questions, most)):
            right = np.isin(best, question.right)
            before.append((scores[~right] >= scores[right].max()).sum() if right.any() else np.inf)
    recall = {}
    for depth in DEPTHS:
        kept = int((np.array(before) < depth).sum())
        interval = significance.proportion_interval(kept / len(questions), len(questions))
        recall[str(depth)] = {"recall": kept / len(questions), "interval": interval}
    return recall


command = measured.command(
    record,
    commands.option("--datasets", "names of data sets", metavar="NAME,...", **LIST),
    commands.option("--models", "bm25, encoders", metavar="NAME,...", **LIST),
    example="asutil first-stage --datasets wikiqa --models bm25,ibm-granite/granite-embedding-30m-english",
)
