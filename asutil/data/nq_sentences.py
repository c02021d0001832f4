"""Builds nq_sentences from QED: Natural Questions with the sentences of the paragraph that holds the answer.

Reads `qed-train.jsonlines` and `qed-dev.jsonlines`, JSON objects with example_id, title_text, question_text,
paragraph_text, sentence_starts and original_nq_answers = a list of answers, each a list of spans {start, end, string};
the end is excluded. The first upload of QED has its training questions in several files, `nq-train-00-qed.jsonlines` and
so on, with answer_spans = [[start, end], ...].
"""

import runpy
from itertools import pairwise
from pathlib import Path

from tqdm.auto import tqdm

from ..corpus import sources
from ..io import files
from . import built
from .splits import naming, require, require_fields, require_id, require_text, same_text

FIELDS = ("example_id", "title_text", "question_text", "paragraph_text", "sentence_starts")


def build(source: str | Path, folder: str | Path) -> dict:
    """Write train, dev and test: test is QED's dev set, dev the questions of a tenth of the titles of its training set.

    A sentence is right where it overlaps a short answer. Only questions with both labels are kept, each question text
    once, and no training question whose text is in QED's dev set.

    Args:
        source: a folder with QED's files.
        folder: must not exist.
    Returns: the record, with counts and what was left out.
    Raises: FileNotFoundError; FileExistsError; ValueError that names file and row.
    """
    source = Path(source)
    release = source / "qed-train.jsonlines"
    training = [release] if release.is_file() else sorted(source.glob("nq-train-*-qed.jsonlines"))
    test = source / "qed-dev.jsonlines"
    if not training or not test.is_file():
        expected = "expected qed-train.jsonlines and qed-dev.jsonlines of github.com/google-research-datasets/QED"
        raise FileNotFoundError(f"{source}: {expected}; it holds {files.listing(source)}")

    def questions():
        seen = {"train": set(), "test": set()}
        for path in (test, *training):  # test first: none of its questions may be in train
            own = seen["test" if path == test else "train"]
            rows_of_file = sources.read_rows(path, "question_text")
            for location, row in tqdm(rows_of_file, path.name, unit=" questions", delay=5):
                rows = question_rows(row, location)
                text = same_text(row["question_text"])
                reason = None
                if rows is None:
                    reason = "an answer is not where its span says"
                elif {row["label"] for row in rows} != {0, 1}:
                    reason = "without both labels"
                elif text in own:
                    reason = "asked before"
                elif text in seen["test"]:
                    reason = "asked in test"
                else:
                    own.add(text)
                yield path.name, "test" if path == test else built.split_of(row["title_text"], tenths=1), rows, reason

    return built.write(folder, "nq_sentences", [*training, test], questions())


def question_rows(row: dict, location: str) -> list[dict] | None:
    """The sentences of a row's paragraph with their labels; None where the text at a span is not the span's own.

    Text before the first sentence belongs to none.

    Raises: ValueError naming the location of what has another form.
    Example:
        >>> row = {"example_id": 1, "title_text": "Ann", "question_text": "who won"}
        >>> row |= {"paragraph_text": "It was close . Ann won ."}
        >>> row |= {"sentence_starts": [0, 15], "original_nq_answers": [[{"start": 15, "end": 18, "string": "Ann"}]]}
        >>> [(sentence["answer"], sentence["label"]) for sentence in question_rows(row, "line 1")]
        [('It was close .', 0), ('Ann won .', 1)]
    """
    require_fields(row, FIELDS, "a question of QED", location)
    for name in ("title_text", "question_text", "paragraph_text"):
        require_text(row, name, location)
    paragraph, starts = row["paragraph_text"], row["sentence_starts"]
    whole = isinstance(starts, list) and all(type(start) is int for start in starts)
    inside = whole and starts == sorted(set(starts)) and all(0 <= start < len(paragraph) for start in starts)
    require(inside, location, f"rising positions in a text of {len(paragraph)} characters in 'sentence_starts'", starts)
    spans = _spans(row, location)
    if any(string not in (None, paragraph[start:end]) for start, end, string in spans):
        return None
    sentences = []
    for start, stop in pairwise([*starts, len(paragraph)]):
        label = int(any(first < stop and start < last for first, last, _ in spans))
        sentences.append((paragraph[start:stop], label))
    id = require_id(row["example_id"], location)
    return built.rows_of(id, row["question_text"], row["title_text"], sentences)


def _spans(row: dict, location: str) -> list[tuple[int, int, str | None]]:
    """(start, end, text) of every short answer; the first upload has no text."""
    require("original_nq_answers" in row or "answer_spans" in row, location, "'original_nq_answers'", list(row))
    with naming(f"{location}: expected answers as lists of spans {{start, end, string}}"):
        if "original_nq_answers" in row:
            answers = row["original_nq_answers"]
            spans = [(span["start"], span["end"], span["string"]) for answer in answers for span in answer]
        else:
            spans = [(start, end, None) for start, end in row["answer_spans"]]
    size = len(row["paragraph_text"])
    for start, end, _ in spans:
        inside = type(start) is type(end) is int and 0 <= start < end <= size
        require(inside, location, f"a span in a text of {size} characters", (start, end))
    return spans


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "build nq_sentences"})
