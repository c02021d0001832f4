"""Answers to questions about long contexts, and the evidence for them, measured by the official rules of HotpotQA and QASPER.

Every figure is a mean over all questions asked, from 0 to 1: one without a prediction counts 0, and how many there are is reported.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import rankings

PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII alone: a curly quotation mark stays
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
WHOLE = frozenset(
    {"yes", "no", "noanswer"}
)  # HotpotQA: right as a whole or not at all, so "no" shares nothing with "no one"
TYPES = {
    "extractive": "extractive",
    "abstractive": "abstractive",
    "yes": "boolean",
    "no": "boolean",
    "unanswerable": "none",
}
FIXED = {"yes": "Yes", "no": "No", "unanswerable": "Unanswerable"}  # QASPER: the answer's text where the kind gives it
FLOAT = "FLOAT SELECTED"  # QASPER: evidence with these words is a table or a figure
HOTPOTQA = tuple(f"{part}{name}" for part in ("", "sp_", "joint_") for name in ("em", "f1", "prec", "recall"))


@dataclass(frozen=True)
class Measured:
    """`means` over the questions by name, `counts` that a reader must know beside them, and a row a question."""

    means: dict
    counts: dict
    per_question: pd.DataFrame

    def record(self) -> dict:
        """The figures by the names that records and tables use."""
        return {**self.means, **self.counts}


# ------------------------------------------------------------------ one answer against one


def normalised(text: str) -> str:
    """What two answers are compared by: lower case without ASCII punctuation, without a, an, the, words one space apart.

    Example:
        >>> normalised("The  U.S. of an A-Team!"), normalised("A."), normalised("the-end")
        ('us of ateam', '', 'theend')
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> bool:
    """Whether both answers are the same once normalised, empty ones included."""
    return normalised(prediction) == normalised(gold)


def token_f1(prediction: str, gold: str) -> tuple[float, float, float]:
    """F1, precision and recall of the words of two normalised answers, repeated words counted; all 0 where one has none.

    shared = sum_w min(#w in prediction, #w in gold),  P = shared / |prediction|,  R = shared / |gold|,  F1 = 2 P R / (P + R)
    Paper: evidence_contrast, section 4.2: SQuAD's F1, as QASPER's evaluator has it.

    Example:
        >>> token_f1("the cat sat", "cat")
        (0.6666666666666666, 0.5, 1.0)
    """
    predicted, right = normalised(prediction).split(), normalised(gold).split()
    return _overlap((Counter(predicted) & Counter(right)).total(), len(predicted), len(right))


def f1(prediction: str, gold: str) -> tuple[float, float, float]:
    """`token_f1` by HotpotQA's rule: where one answer is yes, no or noanswer and the other is not the same, all three are 0.

    Example:
        >>> f1("No one", "no"), token_f1("No one", "no")
        ((0.0, 0.0, 0.0), (0.6666666666666666, 0.5, 1.0))
    """
    both = {normalised(prediction), normalised(gold)}
    return (0.0, 0.0, 0.0) if len(both) == 2 and both & WHOLE else token_f1(prediction, gold)


def paragraph_f1(prediction, gold) -> float:
    """F1 of two collections of evidence paragraphs by QASPER's rule: 1 where both are empty; a repeated one adds to a list's length.

    Example:
        >>> paragraph_f1([], []), paragraph_f1(["p"], []), paragraph_f1(["p", "q", "r"], ["p"])
        (1.0, 0.0, 0.5)
    """
    return (
        _overlap(len(set(prediction) & set(gold)), len(prediction), len(gold))[0]
        if len(prediction) or len(gold)
        else 1.0
    )


def _overlap(shared: int, predicted: int, right: int) -> tuple[float, float, float]:
    precision, recall = shared / predicted if predicted else 0.0, shared / right if right else 0.0
    return _harmonic(precision, recall), precision, recall


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# ------------------------------------------------------------------ the two data sets


def hotpotqa(predictions: dict, golds: dict) -> Measured:
    """HotpotQA's official metrics of answers, of supporting facts (sp) and of both together (joint).

    joint P = P sp_P,  joint R = R sp_R,  joint F1 = 2 P R / (P + R) of these two,  joint EM = EM sp_EM
    Paper: evidence_contrast, table 3.
    Args:
        predictions: question id -> (answer text, supporting facts); facts are (passage, sentence) pairs, in any order and once each.
            None stands for an answer or facts that are missing: they count 0, where an empty text or set is compared.
        golds: question id -> (answer text, supporting facts); predictions for other questions are not looked at.
    Returns: a Measured; `means` and the columns of `per_question` after question_id are those of the official script: em, f1, prec,
        recall, sp_em, ..., joint_recall; `counts` are questions, missing_answers, missing_facts.
    Raises: ValueError naming the question for an answer that is no text or facts that are no pairs, and without golds.

    Example:
        >>> golds = {"q": ("the 1990s", {(0, 1), (3, 0)}), "r": ("yes", {(2, 2)})}
        >>> found = hotpotqa({"q": ("early 1990s", {(0, 1)})}, golds)
        >>> [round(found.means[name], 3) for name in ("em", "f1", "sp_em", "sp_f1", "joint_f1")], found.counts["missing_answers"]
        ([0.0, 0.333, 0.0, 0.333, 0.25], 1)
    """
    rows, missing = [], Counter()
    for question, (answer, facts) in _asked(golds):
        answered, chosen = predictions.get(question, (None, None))
        missing.update(answers=answered is None, facts=chosen is None)
        em, *of_answer = _answer_figures(question, answered, answer)
        sp_em, *of_facts = _fact_figures(question, chosen, facts)
        precision, recall = (of_answer[i] * of_facts[i] for i in (1, 2))
        rows.append(
            (question, em, *of_answer, sp_em, *of_facts, em * sp_em, _harmonic(precision, recall), precision, recall)
        )
    table = pd.DataFrame(rows, columns=["question_id", *HOTPOTQA])
    counts = {"questions": len(table), "missing_answers": missing["answers"], "missing_facts": missing["facts"]}
    return Measured(_means(table, HOTPOTQA), counts, table)


def qasper(predictions: dict, golds: dict, text_evidence_only: bool = False) -> Measured:
    """QASPER's official Answer F1 and Evidence F1: of each the best over a question's references, which may be two different ones.

    answer F1_q = max_r token_f1(prediction, r),  evidence F1_q = max_r paragraph_f1(prediction, r)
    Paper: evidence_contrast, table 2.
    Args:
        predictions: question id -> (answer text, collection of evidence); evidence is the paragraphs' text or whatever else names them.
        golds: question id -> references, one an annotator: (text, kind, collection of evidence), kind one of TYPES. Several extractive
            spans are one text, joined by ", ". What stands as text of yes, no and unanswerable is not read, nor evidence of the last.
        text_evidence_only: leave references' evidence out that is text with the words FLOAT SELECTED, a table or a figure.
    Returns: a Measured; `means`: answer_f1, evidence_f1, and answer_f1_TYPE for the official types extractive, abstractive, boolean
        and none: a question is of the type of its best reference, the first of equals, and of no type where its prediction is
        missing; 0 for a type without questions. `counts`: questions, missing, questions_TYPE. `per_question` has question_id,
        answer_f1, evidence_f1, type.
    Raises: ValueError naming the question for no reference, an unknown kind, an answer that is no text or evidence that is one,
        and without golds.

    Example:
        >>> golds = {"q": [("two corpora", "extractive", ["p1", "p2"]), ("", "yes", ["p3"])], "r": [("", "unanswerable", [])]}
        >>> found = qasper({"q": ("Yes.", ["p1"]), "r": ("corpora", [])}, golds)
        >>> [round(found.means[name], 3) for name in ("answer_f1", "evidence_f1", "answer_f1_boolean")], found.counts["questions_none"]
        ([0.5, 0.833, 1.0], 1)
    """
    rows = []
    for question, references in _asked(golds):
        references = _references(question, references, text_evidence_only)
        if question not in predictions:
            rows.append((question, 0.0, 0.0, None))
            continue
        answer, evidence = predictions[question]
        answer, evidence = _text(question, answer), _units(question, evidence)
        best, kind = max(((token_f1(answer, text)[0], kind) for text, kind, _ in references), key=lambda pair: pair[0])
        rows.append((question, best, max(paragraph_f1(evidence, right) for _, _, right in references), kind))
    table = pd.DataFrame(rows, columns=["question_id", "answer_f1", "evidence_f1", "type"])
    means, counts = (
        _means(table, ("answer_f1", "evidence_f1")),
        {"questions": len(table), "missing": int(table.type.isna().sum())},
    )
    for kind in dict.fromkeys(TYPES.values()):
        of_kind = table.answer_f1[table.type == kind]
        means[f"answer_f1_{kind}"], counts[f"questions_{kind}"] = (
            float(of_kind.mean()) if len(of_kind) else 0.0,
            len(of_kind),
        )
    return Measured(means, counts, table)


def _asked(golds: dict):
    if not golds:
        raise ValueError("golds: at least one question expected, got none")
    return golds.items()


def _answer_figures(question, answered, answer) -> tuple[float, ...]:
    if answered is None:
        return (0.0,) * 4
    answered, answer = _text(question, answered), _text(question, answer)
    return float(exact_match(answered, answer)), *f1(answered, answer)


def _fact_figures(question, chosen, facts) -> tuple[float, ...]:
    if chosen is None:
        return (0.0,) * 4
    chosen, facts = _pairs(question, chosen), _pairs(question, facts)
    return float(chosen == facts), *_overlap(len(chosen & facts), len(chosen), len(facts))


def _references(question, references, text_evidence_only: bool) -> list[tuple]:
    if not references:
        raise ValueError(f"question {question!r}: at least one reference expected, got none")
    found = []
    for text, kind, evidence in references:
        if kind not in TYPES:
            raise ValueError(f"question {question!r}: kind is one of {', '.join(TYPES)}; got {kind!r}")
        evidence = [] if kind == "unanswerable" else _units(question, evidence)
        if text_evidence_only:
            evidence = [unit for unit in evidence if not (isinstance(unit, str) and FLOAT in unit)]
        found.append((_text(question, FIXED.get(kind, text)), TYPES[kind], evidence))
    return found


def _text(question, answer) -> str:
    if not isinstance(answer, str):
        raise ValueError(f"question {question!r}: an answer is text, got {answer!r}")
    return answer


def _pairs(question, facts) -> set[tuple]:
    wrong = [
        fact for fact in _units(question, facts) if isinstance(fact, str) or not np.iterable(fact) or len(fact) != 2
    ]
    if wrong:
        raise ValueError(f"question {question!r}: a supporting fact is a pair (passage, sentence), got {wrong[0]!r}")
    return {tuple(fact) for fact in facts}


def _units(question, evidence):
    if isinstance(evidence, str) or not np.iterable(evidence):
        raise ValueError(f"question {question!r}: evidence is a list or a set, got {evidence!r}")
    return evidence


def _means(table: pd.DataFrame, columns) -> dict:
    return {column: float(table[column].mean()) for column in columns}


# ------------------------------------------------------------------ evidence by scores, one row a sentence


def evidence_map(question_ids, labels, scores) -> rankings.Ranking:
    """Question-evidence mAP: a question's sentences ranked by score, such as their cosine similarity to it.

    Paper: evidence_contrast, section 4.2 and table 1.
    Returns: the Ranking of `metrics.ranking` over questions that have evidence; `empty_questions` have none and are left out.

    Example:
        >>> found = evidence_map(["q", "q", "q", "r"], [1, 0, 1, 0], [0.9, 0.5, 0.1, 0.3])
        >>> round(found.map, 4), found.questions, found.empty_questions
        (0.8333, 1, 1)
    """
    return rankings.ranking(question_ids, labels, scores, empty="skip")
