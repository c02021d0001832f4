"""NewsAS2 from NewsQA: each article in sentences, correct where a sentence holds an annotated answer.

Reads `combined-newsqa-data-v1.json`, which NewsQA's own tools make from its annotations and the CNN stories: an object whose `data` is a
list of stories {storyId, text, type, questions: [{q, consensus, answers: [{sourcerAnswers: [{s, e}]}]}]}; s and e are positions in
the text, the end excluded. Where an annotator found no answer there is `noAnswer` or `badQuestion` instead.
"""

import json
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from ..corpus.cleaning import splitter_function
from . import built
from .data_sets import SPLITS
from .splits import naming


def build(source: str | Path, folder: str | Path, splitter: str = "nltk") -> dict:
    """Write train, dev and test as a folder that `answers.load_answers` reads, with the article as document_title, so with contexts.

    Questions of dev and test without both labels are left out, as everywhere under protocol clean.

    Paper: contextual_as2, section 5 and appendix A.2.
    Deviation: D-36, the released NewsAS2 is not rebuilt row by row: its dev and test are random halves of one set.
    Args:
        source: combined-newsqa-data-v1.json.
        splitter: `nltk`, the paper's, or `blingfire`.
        folder: must not exist.
    Returns: the record, with counts and what was left out.
    Raises: ValueError that names the file and the fault; FileExistsError.
    """
    source, split_text = Path(source), splitter_function(splitter)

    def questions():
        for story in stories(source):
            for group in rows(story, split_text, source):
                yield story["type"], story["type"], group, None if group else "without an answer"

    return built.write(folder, "newsas2", [source], questions(), splits_of_one_label=("train",))


def stories(source: str | Path) -> Iterator[dict]:
    """The stories of NewsQA's combined file."""
    with naming(f"{source}: expected NewsQA's combined JSON, an object with 'data'"):
        data = json.loads(Path(source).read_text(encoding="utf-8"))["data"]
        if not isinstance(data, list):
            raise TypeError(f"'data' is a list of stories, got {type(data).__name__}")
    for number, story in enumerate(data, start=1):
        with naming(f"{source}, story {number}: expected a story of NewsQA"):
            _check_story(story)
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


def rows(story: dict, split: Callable[[str], list[str]], where="release") -> Iterator[list[dict]]:
    """The rows of each question of a story, in the story's order: question, answer, question_id, document_title, label.

    label = 1 where a sentence contains a whole span that an annotator marked. A question whose consensus is no answer has no rows.

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
            f"{where}, story {story['storyId']}: its sentences have {stops[-1]} characters, the text has {before[-1]}"
        )
    ranges = list(zip([0, *stops], stops))
    for number, question in enumerate(story["questions"]):
        if "s" not in question["consensus"]:
            yield []
            continue
        spans = [(before[span["s"]], before[span["e"]]) for span in _annotated(question)]
        labels = [int(any(start <= first < last <= stop for first, last in spans)) for start, stop in ranges]
        id, text = f"{story['storyId']}#{number}", " ".join(question["q"].split())
        yield built.rows_of(id, text, story["storyId"], list(zip(sentences, labels)))


def _annotated(question: dict) -> list[dict]:
    return [span for answer in question["answers"] for span in answer["sourcerAnswers"] if "s" in span]
