"""Questions about a long context as rows: a JSON object with id, question, passages = [{title, sentences}, ...] and answers.

The answer is `answer`, `kind` and `evidence` = [[passage, sentence], ...], numbers from 0, in the row itself; or, where there are several
annotators, answers = [{answer, kind, evidence}, ...].
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..io import files
from .data_sets import LONG
from .qasper import plain
from .splits import Examples, require, require_fields, require_id, require_list, require_text

KINDS = {name: data.kinds for name, data in LONG.items()}
ALL_KINDS = tuple(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))


@dataclass(frozen=True, slots=True)
class Passage:
    """HotpotQA: a paragraph and its sentences; QASPER: a section and its paragraphs. A sentence is the unit of evidence."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    kind: str  # one of KINDS
    evidence: frozenset[tuple[int, int]]  # (passage number, sentence number)


@dataclass(frozen=True, slots=True)
class LongQuestion:
    id: str
    text: str
    passages: tuple[Passage, ...]
    answers: tuple[Answer, ...]  # one an annotator; HotpotQA has one


class LongQuestions(Examples):
    """One split of a data set; `report` counts questions and evidence that were read, kept and dropped, by reason, with a note."""

    UNIT = "questions"

    def __init__(self, questions=(), dropped: dict | None = None, note: str = ""):
        super().__init__(questions, dropped, note)

    @staticmethod
    def evidence_of(question: LongQuestion) -> int:
        return sum(len(answer.evidence) for answer in question.answers)


def questions_of(rows: Iterable[tuple[str, dict, dict]]) -> LongQuestions:
    """The questions of (location, row, lost evidence by reason). Raises: ValueError naming the location of what is wrong."""
    questions = []
    locations = {}  # id -> location
    lost = Counter()
    for location, row, lost_evidence in rows:
        question = question_of(row, location)
        if question.id in locations:
            raise ValueError(f"{location}: expected distinct ids, got {question.id!r} as in {locations[question.id]}")
        locations[question.id] = location
        questions.append(question)
        lost.update(lost_evidence)
    dropped = {f"evidence {reason}": {"questions": 0, "evidence": count} for reason, count in sorted(lost.items())}
    return LongQuestions(questions, dropped)


def question_of(row: dict, location: str) -> LongQuestion:
    """The question of one row. Raises: ValueError naming the location, what was expected and what came."""
    require_fields(row, ("id", "question", "passages"), "id, question, passages and answers", location)
    id = require_id(row["id"], location)
    text = require_text(row, "question", location)
    passages = enumerate(require_list(row, "passages", location, least=1))
    passages = tuple(_passage(passage, f"{location}, passage {number}") for number, passage in passages)
    if ("answers" in row) == ("answer" in row):
        raise ValueError(f"{location}: expected either answer, kind and evidence, or answers; got {', '.join(row)}")
    if "answers" in row:
        annotated = enumerate(require_list(row, "answers", location, least=1), 1)
        answers = tuple(_answer(answer, passages, f"{location}, answer {number}") for number, answer in annotated)
    else:
        answers = (_answer(row, passages, location),)
    return LongQuestion(id, plain(text), passages, answers)


def _passage(passage, location: str) -> Passage:
    """A passage; its sentences may be blank, as evidence counts them."""
    fields = passage if isinstance(passage, dict) else {}
    title, sentences = fields.get("title"), fields.get("sentences")
    is_list = isinstance(sentences, list) and all(isinstance(text, str) for text in sentences)
    require(isinstance(title, str) and is_list, location, "a title and a list of sentences, all text", passage)
    files.require_encodable(" ".join([title, *sentences]), location)
    return Passage(plain(title), tuple(map(plain, sentences)))


def _answer(answer, passages: tuple[Passage, ...], location: str) -> Answer:
    require(isinstance(answer, dict), location, "answer, kind and evidence", answer)
    require_fields(answer, ("answer", "kind", "evidence"), "answer, kind and evidence", location)
    kind = answer["kind"]
    require(kind in ALL_KINDS, location, f"a kind of {', '.join(ALL_KINDS)}", kind)
    text = require_text(answer, "answer", location)
    if kind in ("yes", "no", "unanswerable"):
        require(text.strip().lower() == kind, location, f"the answer {kind!r} for that kind", text)
    pairs = []
    for number, pair in enumerate(require_list(answer, "evidence", location), 1):
        where = f"{location}, evidence {number}"
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and all(type(part) is int for part in pair)
        passage, sentence = pair if is_pair else (-1, -1)
        is_sentence = passage in range(len(passages)) and sentence in range(len(passages[passage].sentences))
        require(is_sentence, where, f"[passage, sentence], a sentence of the {len(passages)} passages", pair)
        require((passage, sentence) not in pairs, where, "distinct evidence", pair)
        pairs.append((passage, sentence))
    fits = kind != "unanswerable" or not pairs
    require(fits, location, "no evidence for an unanswerable question", answer["evidence"])
    return Answer(plain(text), kind, frozenset(pairs))
