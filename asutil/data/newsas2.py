"""NewsAS2 from NewsQA: each article in sentences, correct where a sentence holds an annotated answer.

Reads `combined-newsqa-data-v1.json`, which NewsQA's own tools make from its annotations and the CNN stories: an object whose `data` is a
list of stories {storyId, text, type, questions: [{q, consensus, answers: [{sourcerAnswers: [{s, e}]}]}]}; s and e are positions in
the text, the end excluded; `noAnswer` or `badQuestion` stand in their place where an annotator found none.
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

SIDES = ("train", "dev", "test")  # NewsQA's own


def build(source: str | Path, folder: str | Path, splitter: str = "nltk") -> dict:
    """Write train, dev and test as a folder that `answers.load_answers` reads, with the article as document_title, so with contexts.

    Questions of dev and test without both labels are left out, as everywhere under protocol clean.

    Paper: contextual_as2, section 5 and appendix A.2.
    Deviation: D-36, the released NewsAS2 is not rebuilt row by row: its dev and test are random halves of one set.
    Args:
        source: combined-newsqa-data-v1.json. splitter: `nltk`, the paper's, or `blingfire`.
    Returns: side -> questions and candidates written, and `left_out`, the questions that were not, by reason.
    Raises: ValueError that names the file and what is wrong in it; FileExistsError for a file that is there.
    """
    split, folder = splitter_function(splitter), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if there := [path.name for side in SIDES if (path := folder / f"{side}.parquet").exists()]:
        raise FileExistsError(f"{folder} has {there[0]} already: delete it to build again")
    kept, left_out = {side: [] for side in SIDES}, {side: Counter() for side in SIDES}
    for story in stories(source):
        try:
            side, groups = story["type"], list(rows(story, split))
        except ValueError as error:
            raise ValueError(f"{source}, {error}") from None
        ranked = [group for group in groups if side == "train" or len({row["label"] for row in group}) == 2]
        kept[side] += ranked
        left_out[side]["without an answer"] += len(story["questions"]) - len(groups)
        left_out[side]["without both labels"] += len(groups) - len(ranked)
    for side, groups in kept.items():
        table = pa.Table.from_pylist([row for group in groups for row in group])
        table = table.rename_columns({"key": "question_id"}) if groups else table
        disk.atomically(folder / f"{side}.parquet", lambda path, table=table: pq.write_table(table, path))
    counts = {side: {"questions": len(groups), "candidates": sum(map(len, groups))} for side, groups in kept.items()}
    return {side: {**counts[side], "left_out": dict(+left_out[side])} for side in SIDES}


def stories(source: str | Path) -> Iterator[dict]:
    """The stories of NewsQA's combined file."""
    try:
        found = json.loads(Path(source).read_text(encoding="utf-8"))["data"]
        if not isinstance(found, list):
            raise TypeError(f"'data' is a list of stories, got {type(found).__name__}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{source}: expected NewsQA's combined JSON, an object with 'data', {type(error).__name__}: {error}"
        ) from None
    for number, story in enumerate(found, start=1):
        try:
            if story["type"] not in SIDES:
                raise ValueError(f"type is {story['type']!r}, expected one of {', '.join(SIDES)}")
            if not isinstance(story["storyId"], str):
                raise ValueError(f"storyId is {story['storyId']!r}, expected text")
            for question in story["questions"]:
                spans = [
                    (span["s"], span["e"]) for span in [*_annotated(question), question["consensus"]] if "s" in span
                ]
                if not question["q"].strip() or any(not 0 <= start < end <= len(story["text"]) for start, end in spans):
                    raise ValueError(
                        f"question {question['q']!r} with spans {spans}, in a text of {len(story['text'])} characters"
                    )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{source}, story {number}: expected a story of NewsQA, {type(error).__name__}: {error}"
            ) from None
        yield story


def rows(story: dict, split: Callable[[str], list[str]]) -> Iterator[list[dict]]:
    """The rows of each answerable question of a story, in the story's order: key, question, answer, label, document_title.

    label = 1 where a sentence holds the whole of a span that an annotator marked. Questions whose consensus is no answer are left out.

    Paper: contextual_as2, appendix A.2.
    Example:
        >>> asked = {"q": "Who won?", "consensus": {"s": 14, "e": 17}, "answers": [{"sourcerAnswers": [{"s": 14, "e": 17}]}]}
        >>> story = {"storyId": "a", "text": "It was close! Ann won.", "questions": [asked]}
        >>> [(row["answer"], row["label"]) for row in next(rows(story, lambda text: ["It was close!", "Ann won."]))]
        [('It was close!', 0), ('Ann won.', 1)]
    """
    sentences = [text for text in (" ".join(sentence.split()) for sentence in split(story["text"])) if text]
    # Splitters change white space, so places are counted in the characters beside it.
    before = [0, *accumulate(not sign.isspace() for sign in story["text"])]
    stops = list(accumulate(len(text.replace(" ", "")) for text in sentences))
    if stops[-1:] != before[-1:]:
        raise ValueError(
            f"story {story['storyId']}: its sentences have {stops[-1]} characters, the text has {before[-1]}"
        )
    for number, question in enumerate(story["questions"]):
        if "s" in question["consensus"]:
            spans = [(before[span["s"]], before[span["e"]]) for span in _annotated(question)]
            labels = [any(start <= s < e <= stop for s, e in spans) for start, stop in zip([0, *stops], stops)]
            both = {"key": f"{story['storyId']}#{number}", "question": " ".join(question["q"].split())}
            yield [
                {**both, "answer": text, "label": int(label), "document_title": story["storyId"]}
                for text, label in zip(sentences, labels)
            ]


def _annotated(question: dict) -> list[dict]:
    return [span for answer in question["answers"] for span in answer["sourcerAnswers"] if "s" in span]
