"""QASPER's papers, from the hub's parquet files or from the JSON files of its release, as rows of questions about their paragraphs."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

COLUMNS = ("id", "full_text", "qas")
FLOAT = "FLOAT SELECTED"  # evidence that is a table or a figure: the text is its caption


def release(path: Path) -> Iterator[tuple[str, dict]]:
    """(place, paper) of a file of the release, one JSON object whose keys are the papers' ids.

    Raises: ValueError that names the file.
    """
    try:
        papers = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: expected a JSON object of papers, not JSON ({error})") from None
    if not isinstance(papers, dict) or not papers:
        raise ValueError(
            f"{path.name}: expected a JSON object of papers, got {type(papers).__name__} of {len(papers or ())}"
        )
    for id, paper in papers.items():
        yield f"{path.name}, paper {id}", paper


def rows(place: str, paper: dict) -> Iterator[tuple[str, dict, Counter]]:
    """(place, row, evidence that is lost, by reason) of every question of a paper; a passage is a section, its sentences are paragraphs.

    Paper: evidence_contrast, section 4.1; the order of answer types is that of QASPER's evaluator.
    Raises: ValueError that names file, paper and question.
    """
    try:
        sections = [(section["section_name"], section["paragraphs"]) for section in _objects(paper["full_text"])]
        passages = [
            {"title": title or "", "sentences": [text for text in map(plain, texts) if text]}
            for title, texts in sections
        ]
        asked = [
            (one["question_id"], one["question"], [other["answer"] for other in _objects(one["answers"])])
            for one in _asked(paper)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{place}: expected full_text and qas as QASPER has them, got {type(error).__name__}: {error}"
        ) from None
    passages = passages or [
        {"title": plain(paper.get("title") or ""), "sentences": []}
    ]  # a paper without its text keeps its questions
    found = {}
    for i, passage in enumerate(passages):
        for j, text in enumerate(passage["sentences"]):
            found.setdefault(text, []).append((i, j))
    for id, question, answers in asked:
        lost, made = Counter(), []
        for number, answer in enumerate(answers, 1):
            where = f"{place}, question {id}, answer {number}"
            try:
                kind, text = _answer(answer)
                evidence = list(map(plain, answer["evidence"] or []))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{where}: expected an answer as QASPER has them, got {type(error).__name__}: {error}"
                ) from None
            if not text:
                raise ValueError(
                    f"{where}: expected an answer, got none: no span, no free form, neither yes nor no, not unanswerable"
                )
            made.append({"answer": text, "kind": kind, "evidence": _places(evidence, found, kind, lost)})
        yield f"{place}, question {id}", {"id": id, "question": question, "passages": passages, "answers": made}, lost


def _asked(paper: dict) -> list[dict]:
    """The hub keeps the questions, as the sections, in one list a field."""
    asked = paper["qas"]
    return (
        asked
        if isinstance(asked, list)
        else _objects({name: asked[name] for name in ("question", "question_id", "answers")})
    )


def _objects(field) -> list[dict]:
    return (
        field if isinstance(field, list) else [dict(zip(field, values)) for values in zip(*field.values(), strict=True)]
    )


def _answer(answer: dict) -> tuple[str, str]:
    if answer["unanswerable"]:
        return "unanswerable", "Unanswerable"
    if answer["extractive_spans"]:
        return "extractive", plain(", ".join(answer["extractive_spans"]))
    if answer["free_form_answer"]:
        return "abstractive", plain(answer["free_form_answer"])
    return ("yes", "Yes") if answer["yes_no"] else ("no", "" if answer["yes_no"] is None else "No")


def _places(evidence: list[str], found: dict[str, list], kind: str, lost: Counter) -> list[tuple[int, int]]:
    """The paragraphs that an evidence text equals, else those that contain it, as in QASPER's reader."""
    places = []
    for text in evidence:
        if kind == "unanswerable" or FLOAT in text or not text:
            lost["blank" if not text else "a table or figure" if FLOAT in text else "of an unanswerable question"] += 1
            continue
        matched = found.get(text) or [place for paragraph, same in found.items() if text in paragraph for place in same]
        new = [place for place in matched if place not in places]
        places += new
        if not new:
            lost["named twice" if matched else "not in the text"] += 1
    return places


def plain(text: str) -> str:
    return " ".join(text.split())
