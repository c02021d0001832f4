"""Answers to questions about long contexts and the evidence for them, by the official rules of HotpotQA and QASPER.

Every figure is a mean over all gold questions, from 0 to 1. A question without a prediction counts 0; their number is
reported.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

# ASCII alone: a curly quotation mark stays.
PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
# HotpotQA: these answers are right as a whole or not at all, so "no" shares nothing with "no one".
INDIVISIBLE = frozenset({"yes", "no", "noanswer"})
# QASPER: kind of an answer -> official type
TYPES = {kind: kind for kind in ("extractive", "abstractive")}
TYPES |= {"yes": "boolean", "no": "boolean", "unanswerable": "none"}
# QASPER: answers that the kind alone defines
FIXED_TEXTS = {"yes": "Yes", "no": "No", "unanswerable": "Unanswerable"}
HOTPOTQA = tuple(f"{part}{name}" for part in ("", "sp_", "joint_") for name in ("em", "f1", "prec", "recall"))


@dataclass(frozen=True)
class Measured:
    """`means` over the questions by name, `counts` that a reader needs with them, and one row per question."""

    means: dict
    counts: dict
    per_question: pd.DataFrame

    def record(self) -> dict:
        """The figures by the names that records and tables use."""
        return {**self.means, **self.counts}


# ------------------------------------------------------------------ two answers


def normalised(text: str) -> str:
    """An answer as it is compared: lower case, without ASCII punctuation, without a, an, the, one space between words.

    Example:
        >>> normalised("The  U.S. of an A-Team!"), normalised("A."), normalised("the-end")
        ('us of ateam', '', 'theend')
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> bool:
    """Whether both answers are the same once normalised, empty ones included."""
    return normalised(prediction) == normalised(gold)


def token_f1(prediction: str, gold: str) -> tuple[float, float, float]:
    """F1, precision and recall of the words of two normalised answers; all 0 where an answer has no word.

    shared = sum_w min(#w in prediction, #w in gold)
    P = shared / |prediction|,  R = shared / |gold|,  F1 = 2 P R / (P + R)
    Paper: evidence_contrast, section 4.2: SQuAD's F1, as QASPER's evaluator has it.

    Example:
        >>> token_f1("the cat sat", "cat")
        (0.6666666666666666, 0.5, 1.0)
    """
    predicted = Counter(normalised(prediction).split())
    right = Counter(normalised(gold).split())
    return _overlap((predicted & right).total(), predicted.total(), right.total())


def f1(prediction: str, gold: str) -> tuple[float, float, float]:
    """`token_f1` by HotpotQA's rule: all three are 0 where one answer is yes, no or noanswer and the other one differs.

    Example:
        >>> f1("No one", "no"), token_f1("No one", "no")
        ((0.0, 0.0, 0.0), (0.6666666666666666, 0.5, 1.0))
    """
    different = normalised(prediction) != normalised(gold)
    if different and INDIVISIBLE & {normalised(prediction), normalised(gold)}:
        return 0.0, 0.0, 0.0
    return token_f1(prediction, gold)


def paragraph_f1(prediction, gold) -> float:
    """F1 of two collections of evidence paragraphs by QASPER's rule: 1 where both are empty.

    Shared paragraphs are counted once, but a repeated paragraph adds to its list's length.

    Example:
        >>> paragraph_f1([], []), paragraph_f1(["p"], []), paragraph_f1(["p", "q", "r"], ["p"])
        (1.0, 0.0, 0.5)
    """
    if not len(prediction) and not len(gold):
        return 1.0
    return _overlap(len(set(prediction) & set(gold)), len(prediction), len(gold))[0]


def _overlap(shared: int, predicted: int, right: int) -> tuple[float, float, float]:
    """F1, precision and recall from three counts."""
    precision = shared / predicted if predicted else 0.0
    recall = shared / right if right else 0.0
    return _harmonic(precision, recall), precision, recall


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# ------------------------------------------------------------------ the two data sets


def hotpotqa(predictions: dict, golds: dict) -> Measured:
    """HotpotQA's official metrics of answers, of supporting facts (sp) and of both together (joint).

    joint P = P sp_P,  joint R = R sp_R,  joint F1 = 2 P R / (P + R) of these two,  joint EM = EM sp_EM
    Paper: evidence_contrast, table 3.
    Args:
        predictions: question id -> (answer text, supporting facts); facts are (passage, sentence) pairs, in any order
            and once each. None is a missing answer or missing facts, which count 0; an empty text or set is compared.
        golds: question id -> (answer text, supporting facts); predictions for other questions are ignored.
    Returns: a Measured; `means` and the columns of `per_question` after question_id are those of the official script:
        em, f1, prec, recall, sp_em, ..., joint_recall; `counts` are questions, missing_answers, missing_facts.
    Raises: ValueError naming the question for an answer that is no text or facts that are no pairs, and without golds.

    Example:
        >>> golds = {"q": ("the 1990s", {(0, 1), (3, 0)}), "r": ("yes", {(2, 2)})}
        >>> found = hotpotqa({"q": ("early 1990s", {(0, 1)})}, golds)
        >>> [round(found.means[name], 3) for name in ("em", "f1", "sp_em", "sp_f1", "joint_f1")]
        [0.0, 0.333, 0.0, 0.333, 0.25]
        >>> found.counts["missing_answers"]
        1
    """
    _require_questions(golds)
    rows, counts = [], {"questions": len(golds), "missing_answers": 0, "missing_facts": 0}
    for question, (gold_answer, gold_facts) in golds.items():
        answer, facts = predictions.get(question, (None, None))
        counts["missing_answers"] += answer is None
        counts["missing_facts"] += facts is None
        # Exact match, F1, precision, recall.
        of_answer = of_facts = (0.0, 0.0, 0.0, 0.0)
        if answer is not None:
            texts = _text(question, answer), _text(question, gold_answer)
            of_answer = (float(exact_match(*texts)), *f1(*texts))
        if facts is not None:
            facts, right = _pairs(question, facts), _pairs(question, gold_facts)
            of_facts = (float(facts == right), *_overlap(len(facts & right), len(facts), len(right)))
        em, _, precision, recall = (one * other for one, other in zip(of_answer, of_facts))
        rows.append((question, *of_answer, *of_facts, em, _harmonic(precision, recall), precision, recall))
    table = pd.DataFrame(rows, columns=["question_id", *HOTPOTQA])
    return Measured(_means(table, HOTPOTQA), counts, table)


def qasper(predictions: dict, golds: dict) -> Measured:
    """QASPER's official Answer F1 and Evidence F1, each by the reference that fits it best.

    answer F1_q = max_r token_f1(prediction, r),  evidence F1_q = max_r paragraph_f1(prediction, r)
    Paper: evidence_contrast, table 2.
    Args:
        predictions: question id -> (answer text, collection of evidence paragraphs, by their text or their names).
        golds: question id -> references, one per annotator: (text, kind, collection of evidence), kind one of TYPES.
            Several extractive spans are one text, joined by ", ". The text of yes, no and unanswerable is ignored, and
            so is the evidence of unanswerable.
    Returns: a Measured; `means`: answer_f1, evidence_f1, and answer_f1_TYPE for the official types extractive,
        abstractive, boolean and none: a question has the type of the reference with the best answer F1, the first of
        equals, and no type where its prediction is missing; 0 for a type without questions. `counts`: questions,
        missing, questions_TYPE. `per_question` has question_id, answer_f1, evidence_f1, type.
    Raises: ValueError naming the question for no reference, an unknown kind, an answer that is no text or evidence that
        is a text, and without golds.

    Example:
        >>> references = [("two corpora", "extractive", ["p1", "p2"]), ("", "yes", ["p3"])]
        >>> golds = {"q": references, "r": [("", "unanswerable", [])]}
        >>> found = qasper({"q": ("Yes.", ["p1"]), "r": ("corpora", [])}, golds)
        >>> [round(found.means[name], 3) for name in ("answer_f1", "evidence_f1", "answer_f1_boolean")]
        [0.5, 0.833, 1.0]
        >>> found.counts["questions_none"]
        1
    """
    _require_questions(golds)
    rows = []
    for question, references in golds.items():
        references = _references(question, references)
        if question not in predictions:
            rows.append((question, 0.0, 0.0, None))
            continue
        answer, evidence = _text(question, predictions[question][0]), _units(question, predictions[question][1])
        answer_f1s = [token_f1(answer, text)[0] for text, _, _ in references]
        best = int(np.argmax(answer_f1s))
        evidence_f1 = max(paragraph_f1(evidence, gold) for _, _, gold in references)
        rows.append((question, answer_f1s[best], evidence_f1, references[best][1]))
    table = pd.DataFrame(rows, columns=["question_id", "answer_f1", "evidence_f1", "type"])
    means = _means(table, ("answer_f1", "evidence_f1"))
    counts = {"questions": len(table), "missing": int(table.type.isna().sum())}
    for name in dict.fromkeys(TYPES.values()):
        of_type = table.answer_f1[table.type == name]
        means[f"answer_f1_{name}"] = float(of_type.mean()) if len(of_type) else 0.0
        counts[f"questions_{name}"] = len(of_type)
    return Measured(means, counts, table)


def _require_questions(golds: dict) -> None:
    if not golds:
        raise ValueError("golds: at least one question expected, got none")


def _references(question, references) -> list[tuple]:
    """(text, official type, evidence) of every reference."""
    if not references:
        raise ValueError(f"question {question!r}: at least one reference expected, got none")
    checked = []
    for text, kind, evidence in references:
        if kind not in TYPES:
            raise ValueError(f"question {question!r}: kind is one of {', '.join(TYPES)}; got {kind!r}")
        evidence = [] if kind == "unanswerable" else _units(question, evidence)
        checked.append((_text(question, FIXED_TEXTS.get(kind, text)), TYPES[kind], evidence))
    return checked


def _text(question, answer) -> str:
    if not isinstance(answer, str):
        raise ValueError(f"question {question!r}: an answer is text, got {answer!r}")
    return answer


def _pairs(question, facts) -> set[tuple]:
    facts = list(_units(question, facts))  # what a zip gives can be read once
    for fact in facts:
        if isinstance(fact, str) or not np.iterable(fact) or len(fact) != 2:
            raise ValueError(f"question {question!r}: a supporting fact is a pair (passage, sentence), got {fact!r}")
    return {tuple(fact) for fact in facts}


def _units(question, evidence):
    if isinstance(evidence, str) or not np.iterable(evidence):
        raise ValueError(f"question {question!r}: evidence is a list or a set, got {evidence!r}")
    return evidence


def _means(table: pd.DataFrame, columns) -> dict:
    return {column: float(table[column].mean()) for column in columns}
