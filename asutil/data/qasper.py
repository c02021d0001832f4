"""QASPER's papers, from the hub's parquet files or from the JSON files of its release, as rows of questions about their paragraphs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from ..io import files
from . import splits

COLUMNS = ("id", "full_text", "qas")
FLOAT = "FLOAT SELECTED"  # evidence that is a table or a figure: the text is its caption


def release(path: Path) -> Iterator[tuple[str, dict]]:
    """(location, paper) of a file of the release, one JSON object whose keys are the papers' ids. Raises: ValueError naming the file."""
    for id, paper in files.published_json(path, dict, "papers").items():
        yield f"{path.name}, paper {id}", paper


def rows(location: str, paper: dict) -> Iterator[tuple[str, dict, Counter]]:
    """(location, row, lost evidence by reason) of every question of a paper; a passage is a section, its sentences are paragraphs.

    Paper: evidence_contrast, section 4.1; the order of answer types is that of QASPER's evaluator.
    Raises: ValueError that names file, paper and question.
    """
    with splits.naming(f"{location}: expected full_text and qas as QASPER has them"):
        passages = [
            {"title": section["section_name"] or "", "sentences": list(filter(None, map(plain, section["paragraphs"])))}
            for section in _objects(paper["full_text"])
        ]
        questions = []
        for question in _questions(paper):
            annotated = [annotation["answer"] for annotation in _objects(question["answers"])]
            questions.append((question["question_id"], question["question"], annotated))
    if not passages:  # a paper without its text keeps its questions
        passages = [{"title": plain(paper.get("title") or ""), "sentences": []}]
    places = defaultdict(list)  # paragraph -> [(passage, sentence), ...]
    for i, passage in enumerate(passages):
        for j, text in enumerate(passage["sentences"]):
            places[text].append((i, j))
    for id, text, annotated in questions:
        lost = Counter()
        answers = []
        for number, answer in enumerate(annotated, 1):
            where = f"{location}, question {id}, answer {number}"
            with splits.naming(f"{where}: expected an answer as QASPER has them"):
                kind, answer_text = _answer(answer)
                evidence = list(map(plain, answer["evidence"] or []))
            if not answer_text:
                came = "no span, no free form, neither yes nor no, not unanswerable"
                raise ValueError(f"{where}: expected an answer, got none: {came}")
            pairs = _places(evidence, places, kind, lost)
            answers.append({"answer": answer_text, "kind": kind, "evidence": pairs})
        yield f"{location}, question {id}", {"id": id, "question": text, "passages": passages, "answers": answers}, lost


def _questions(paper: dict) -> list[dict]:
    """The hub has the questions, as the sections, in one list a field."""
    questions = paper["qas"]
    if isinstance(questions, dict):
        questions = {name: questions[name] for name in ("question", "question_id", "answers")}
    return _objects(questions)


def _objects(field) -> list[dict]:
    if isinstance(field, list):
        return field
    return [dict(zip(field, values)) for values in zip(*field.values(), strict=True)]


def _answer(answer: dict) -> tuple[str, str]:
    if answer["unanswerable"]:
        return "unanswerable", "Unanswerable"
    if answer["extractive_spans"]:
        return "extractive", plain(", ".join(answer["extractive_spans"]))
    if answer["free_form_answer"]:
        return "abstractive", plain(answer["free_form_answer"])
    if answer["yes_no"]:
        return "yes", "Yes"
    return "no", "" if answer["yes_no"] is None else "No"


def _places(evidence: list[str], places: dict[str, list], kind: str, lost: Counter) -> list[tuple[int, int]]:
    """The paragraphs that an evidence text equals, else those that contain it, as in QASPER's reader."""
    pairs = []
    for text in evidence:
        if not text:
            lost["blank"] += 1
            continue
        if FLOAT in text:
            lost["a table or figure"] += 1
            continue
        if kind == "unanswerable":
            lost["of an unanswerable question"] += 1
            continue
        matching = places.get(text)
        if not matching:
            matching = [pair for paragraph, same in places.items() if text in paragraph for pair in same]
        new = [pair for pair in matching if pair not in pairs]
        pairs += new
        if matching and not new:
            lost["named twice"] += 1
        elif not new:
            lost["not in the text"] += 1
    return pairs


def plain(text: str) -> str:
    """The text with single blanks for white space."""
    return " ".join(text.split())
