"""Builds selqa from SelQA's files for analysis: questions about a section of a Wikipedia article, with its sentences.

Reads `selqa-ass-train.json`, `selqa-ass-dev.json` and `selqa-ass-test.json`, each a list of objects with question,
article, section, candidates = the sentences of the section in order, and answers = the numbers of the right ones, from 0.
"""

import runpy
from pathlib import Path

from tqdm.auto import tqdm

from ..io import files
from . import built
from .data_sets import SPLITS
from .splits import require, require_fields, require_text

FIELDS = ("question", "article", "section", "candidates", "answers")
DEV_TENTHS = 2  # of the articles, where the dev set has to serve as train and dev


def build(source: str | Path, folder: str | Path) -> dict:
    """Write train, dev and test as they were released; without the file of train, dev is divided by article.

    Blank sentences are left out, and questions that then lack one of the labels.

    Args:
        source: a folder with SelQA's files, or the repository that has them in `ass/`.
        folder: must not exist.
    Returns: the record, with counts and what was left out.
    Raises: FileNotFoundError; FileExistsError; ValueError that names file and row.
    """
    source = Path(source)
    inside = source / "ass" if (source / "ass").is_dir() else source
    paths = {split: inside / f"selqa-ass-{split}.json" for split in SPLITS}
    if missing := [paths[split].name for split in ("dev", "test") if not paths[split].is_file()]:
        expected = f"{', '.join(missing)} of github.com/emorynlp/selqa"
        raise FileNotFoundError(f"{inside}: expected {expected}; it holds {files.listing(inside)}")
    released = [path for path in paths.values() if path.is_file()]

    def questions():
        for path in released:
            of_file = path.stem.removeprefix("selqa-ass-")
            divided = of_file == "dev" and paths["train"] not in released
            objects = files.published_json(path, list, "questions of SelQA")
            for number, question in enumerate(tqdm(objects, path.name, unit=" questions", delay=5)):
                rows = question_rows(question, f"{of_file}-{number}", f"{path.name}, question {number + 1}")
                yield path.name, built.split_of(question["article"], DEV_TENTHS) if divided else of_file, rows, None

    return built.write(folder, "selqa", released, questions())


def question_rows(question: dict, id: str, location: str) -> list[dict]:
    """The sentences of a question's section with their labels.

    Raises: ValueError naming the location of what has another form.
    Example:
        >>> question = {"question": "Who won?", "article": "Ann", "section": "Life", "answers": [1]}
        >>> question |= {"candidates": ["", "Ann won.", "Ben lost."]}
        >>> [(row["answer"], row["label"], row["document_title"]) for row in question_rows(question, "dev-0", "row 1")]
        [('Ann won.', 1, 'Ann / Life'), ('Ben lost.', 0, 'Ann / Life')]
    """
    require(isinstance(question, dict), location, "an object", question)
    require_fields(question, FIELDS, "a question of SelQA", location)
    require_text(question, "question", location)
    for name in ("article", "section"):
        require(isinstance(question[name], str), location, f"text in {name!r}", question[name])
    candidates, answers = question["candidates"], question["answers"]
    is_list = isinstance(candidates, list) and all(isinstance(text, str) for text in candidates)
    require(is_list, location, "a list of texts in 'candidates'", candidates)
    numbers = isinstance(answers, list) and all(type(n) is int and 0 <= n < len(candidates) for n in answers)
    require(numbers, location, f"numbers of the {len(candidates)} candidates in 'answers'", answers)
    files.require_encodable(" ".join([question["article"], question["section"], *candidates]), location)
    sentences = [(text, int(number in answers)) for number, text in enumerate(candidates)]
    return built.rows_of(id, question["question"], f"{question['article']} / {question['section']}", sentences)


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "build selqa"})
