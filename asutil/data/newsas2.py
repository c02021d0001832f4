"""NewsAS2 from NewsQA: each article in sentences, correct where a sentence holds an annotated answer.

Reads `combined-newsqa-data-v1.json`, which NewsQA's own tools make from its annotations and the CNN stories: an object whose `data` is a
list of stories {storyId, text, type, questions: [{q, consensus, answers: [{sourcerAnswers: [{s, e}]}]}]}; s and e are positions in
the text, the end excluded. Where an annotator found no answer there is `noAnswer` or `badQuestion` instead.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..corpus.cleaning import splitter_function
from ..io import disk
from .splits import SPLITS


def build(source: str | Path, folder: str | Path, splitter: str = "nltk") -> dict:
    """Write train, dev and test as a folder that `answers.load_answers` reads, with the article as document_title, so with contexts.

    Questions of dev and test without both labels are left out, as everywhere under protocol clean.

    Paper: contextual_as2, section 5 and appendix A.2.
    Deviation: D-36, the released NewsAS2 is not rebuilt row by row: its dev and test are random halves of one set.
    Args:
        source: combined-newsqa-data-v1.json.
        splitter: `nltk`, the paper's, or `blingfire`.
    Returns: split -> questions and candidates written, and `left_out`, the questions that were not, by reason.
    Raises: ValueError that names the file and the fault; FileExistsError for a file that is there.
    """
    split_text = splitter_function(splitter)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        if (folder / f"{split}.parquet").exists():
            raise FileExistsError(f"{folder} has {split}.parquet already: delete it to build again")
    questions = {split: [] for split in SPLITS}
    left_out = {split: Counter() for split in SPLITS}
    for story in stories(source):
        try:
            answerable = list(rows(story, split_text))
        except ValueError as error:
            raise ValueError(f"{source}, {error}") from None
        split = story["type"]
        kept = [group for group in answerable if split == "train" or len({row["label"] for row in group}) == 2]
        questions[split] += kept
        left_out[split]["without an answer"] += len(story["questions"]) - len(answerable)
        left_out[split]["without both labels"] += len(answerable) - len(kept)
    counts = {}
    for split, groups in questions.items():
        table = pa.Table.from_pylist([row for group in groups for row in group])
        table = table.rename_columns({"key": "question_id"}) if groups else table
        disk.atomically(folder / f"{split}.parquet", lambda path, table=table: pq.write_table(table, path))
        counts[split] = {"questions": len(groups), "candidates": len(table), "left_out": dict(+left_out[split])}
    return counts


def stories(source: str | Path) -> Iterator[dict]:
    """The stories of NewsQA's combined file."""
    try:
        data = json.loads(Path(source).read_text(encoding="utf-8"))["data"]
        if not isinstance(data, list):
            raise TypeError(f"'data' is a list of stories, got {type(data).__name__}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{source}: expected NewsQA's combined JSON, an object with 'data', {type(error).__name__}: {error}"
        ) from None
    for number, story in enumerate(data, start=1):
        try:
            _check_story(story)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{source}, story {number}: expected a story of NewsQA, {type(error).__name__}: {error}"
            ) from None
        yield story


def _check_story(story: dict) -> None:
    if story["type"] not in SPLITS:
        raise ValueError(f"type is {story['type']!r}, expected one of {', '.join(SPLITS)}")
    if not isinstance(story["storyId"], str):
        raise ValueError(f"storyId is {story['storyId']!r}, expected text")
    size = len(story["text"])
    for question in story["questions"]:
        marked = [*_annotated(question), question["consensus"]]
        spans = [(span["s"], span["e"]) for span in marked if "s" in span]
        if not question["q"].strip() or any(not 0 <= start < end <= size for start, end in spans):
            raise ValueError(f"question {question['q']!r} with spans {spans}, in a text of {size} characters")


def rows(story: dict, split: Callable[[str], list[str]]) -> Iterator[list[dict]]:
    """The rows of each answerable question of a story, in the story's order: key, question, answer, label, document_title.

    label = 1 where a sentence contains a whole span that an annotator marked. Questions whose consensus is no answer are left out.

    Paper: contextual_as2, appendix A.2.
    Example:
        >>> question = {"q": "Who won?", "consensus": {"s": 14, "e": 17}, "answers": [{"sourcerAnswers": [{"s": 14, "e": 17}]}]}
        >>> story = {"storyId": "a", "text": "It was close! Ann won.", "questions": [question]}
        >>> [(row["answer"], row["label"]) for row in next(rows(story, lambda text: ["It was close!", "Ann won."]))]
        [('It was close!', 0), ('Ann won.', 1)]
    """
    sentences = [text for text in (" ".join(sentence.split()) for sentence in split(story["text"])) if text]
    # Splitters change white space, so positions are counted in all other characters.
    before = [0, *accumulate(not sign.isspace() for sign in story["text"])]
    stops = list(accumulate(len(text.replace(" ", "")) for text in sentences))
    if stops[-1:] != before[-1:]:
        raise ValueError(
            f"story {story['storyId']}: its sentences have {stops[-1]} characters, the text has {before[-1]}"
        )
    ranges = list(zip([0, *stops], stops))
    for number, question in enumerate(story["questions"]):
        if "s" not in question["consensus"]:
            continue
        spans = [(before[span["s"]], before[span["e"]]) for span in _annotated(question)]
        key = f"{story['storyId']}#{number}"
        text = " ".join(question["q"].split())
        group = []
        for sentence, (start, stop) in zip(sentences, ranges):
            label = int(any(start <= first < last <= stop for first, last in spans))
            row = {"key": key, "question": text, "answer": sentence, "label": label}
            group.append(row | {"document_title": story["storyId"]})
        yield group


def _annotated(question: dict) -> list[dict]:
    return [span for answer in question["answers"] for span in answer["sourcerAnswers"] if "s" in span]
