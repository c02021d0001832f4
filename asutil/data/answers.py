"""Answer sentence selection data: questions, their candidates in order, and protocols with their published counts."""

import hashlib
import itertools
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..corpus import docstrings
from ..draws import text_hash
from ..io import disk, files, hub
from . import document_order, tables
from .questions import Candidate, Question, Split, grouped
from .splits import SPLITS, file_of_split, require_limit, require_one_of

ALL_RIGHT = "every order of them is right; add wrong candidates, such as other sentences of a right one's document"
log = logging.getLogger(__name__)
__all__ = ["SPLITS", "Candidate", "Question", "Split", "fingerprint_of_answers", "load_answers"]

# Data set -> hub id, and protocol -> split -> (file, which questions stay). TREC-QA's files are filtered already.
HUB = {
    "wikiqa": (
        "microsoft/wiki_qa",
        {
            "clean": {"train": ("train", "all"), "dev": ("validation", "mixed"), "test": ("test", "mixed")},
            "asbert": {"train": ("train", "positive"), "dev": ("validation", "positive"), "test": ("test", "positive")},
        },
    ),
    "trecqa": (
        "lucadiliello/trecqa",
        {
            "clean": {"train": ("train", "all"), "dev": ("dev_clean", "mixed"), "test": ("test_clean", "mixed")},
            "asbert": {
                "train": ("train_manual", "positive"),
                "dev": ("dev_clean", "positive"),
                "test": ("test_clean", "positive"),
            },
        },
    ),
    "asnq": ("lucadiliello/asnq", {"clean": {split: (split, "all") for split in SPLITS}}),
    "newsas2": (
        "lucadiliello/news_as2",
        {"clean": {"train": ("train", "all"), "dev": ("dev", "mixed"), "test": ("test", "mixed")}},
    ),
}
# Data sets that are too large for memory -> whether the rows of one key are a question; else the rows of one text are.
STREAMED = {"asnq": True, "newsas2": False}
ORDERED = {"wikiqa"}  # data sets whose rows stand in document order, as its check found
# (questions, candidates). sentence_objectives, table 4; contextual_as2, table 2; asbert, table 2, counted again without losing rows to
# quotes (data_cards/wikiqa.md). The counts of streamed data sets are of all rows.
COUNTS = {
    "wikiqa": {
        "clean": {"train": (2_118, 20_360), "dev": (122, 1_126), "test": (237, 2_341)},
        "asbert": {"train": (873, 8_672), "dev": (126, 1_130), "test": (243, 2_351)},
    },
    "trecqa": {
        "clean": {"train": (1_226, 53_417), "dev": (69, 1_343), "test": (68, 1_442)},
        "asbert": {"train": (89, 5_914), "dev": (69, 1_343), "test": (68, 1_442)},
    },
    "asnq": {"clean": {"train": (57_242, 20_377_568), "dev": (1_336, 463_914), "test": (1_336, 466_148)}},
    "newsas2": {"clean": {"train": (71_561, 1_840_533), "dev": (2_102, 51_844), "test": (2_083, 51_472)}},
}
# contextual_as2, appendix A.2, in per cent of "sentences per query"; in the release probably positives a question (data_cards/newsas2.md).
POSITIVES = {"newsas2": {"train": 1.69, "dev": 1.66, "test": 1.68}}
# (Data set, protocol) -> triplets of its whole train split.
TRIPLETS = {("wikiqa", "asbert"): 8_995, ("trecqa", "asbert"): 83_923}
UNORDERED = {
    "trecqa": "a question's candidates come from many documents and the right ones come first: the rows around one would tell its label"
}
NAMES = (*HUB, "pydocs")
PROTOCOLS = ("clean", "asbert")


def load_answers(
    name, protocol="clean", train_questions="all", limit: int | None = None, context: bool = False
) -> dict[str, Split]:
    """The splits of an answer sentence selection data set under a protocol.

    Args:
        name: `wikiqa`, `trecqa`, `asnq`, `newsas2`, `pydocs`, a folder with train, dev and test as .tsv, .jsonl or .parquet, or one such
            file, whose questions are then divided 8 : 1 : 1 by a hash. Columns question, answer, label; optional question_id and
            document_title (rows of a question are then in document order). TSV has a header line and no quoting.
        protocol: `clean` (wikiqa: dev and test questions with both labels; a user's file: a dev or test question without a positive
            is an error) or `asbert` (questions with a positive, in every split; not for asnq, newsas2 and pydocs).
        train_questions: `all`, or `with_positive` for those alone.
        limit: at most that many questions a split, chosen by a hash of their ids.
        context: every candidate has the sentences before and after it. Where only the order of rows shows which these are (asnq,
            newsas2), that order is checked first (`document_order.check`); a data set that cannot give them is refused.
    Returns: {"train", "dev", "test"}, each a lazy `Split` of `Question`s.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    require_one_of("protocol", protocol, COUNTS.get(name, ("clean",) if name == "pydocs" else PROTOCOLS))
    require_one_of("train_questions", train_questions, ("all", "with_positive"))
    require_limit(limit, "question")
    if name in HUB:
        splits = _published(name, protocol, context)
    elif name == "pydocs":
        splits = _pydocs()
    else:
        splits = _own(_path(name), protocol)
    if context and (unordered := [split for split, questions in splits.items() if not questions.ordered]):
        advice = "a file needs a column document_title, and the rows of a question in the document's order"
        raise ValueError(
            f"{name}, {unordered[0]}: no sentences before and after a candidate are known, so that only pairs of question and "
            f"candidate can be made; {UNORDERED.get(name, advice)}"
        )
    if train_questions == "with_positive":
        splits["train"] = splits["train"].under("positive")
    splits = {split: questions.limited(limit) for split, questions in splits.items()}
    for split, questions in splits.items():
        if not len(questions):
            read, dropped = questions.report["read"], questions.report["dropped"]
            raise ValueError(f"{name}, {split}: no question is left, of {read}: {dropped}")
    return splits


def fingerprint_of_answers(name) -> str:
    """What identifies a data set: a hash of its files, of pydocs' package versions, or the hub id (its counts are asserted).

    The name of a file counts, too: the ids of questions without one, and so the division into splits, follow from it.
    """
    if name == "pydocs":
        return docstrings.fingerprint_of_docstrings(docstrings.NUMPYDOC)
    if name in HUB:
        hub_id, _ = HUB[name]
        folder = hub.mirror(hub_id)
        return hub.sha256(folder) if folder else hub_id
    path = _path(name)
    hashes = [path.stem, hub.sha256(path)] if path.is_file() else [hub.sha256(_file_of_split(path, s)) for s in SPLITS]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def of_one_source(name, fingerprint: str, other: str) -> bool:
    """Whether two fingerprints are of one published data set, read from a mirror and from the hub."""
    return name in HUB and HUB[name][0] in (fingerprint, other)


# ---------------------------------------------------------------------------------------------------------- the sources


def _published(name: str, protocol: str, context: bool) -> dict[str, Split]:
    """The splits of a data set of the hub, whose counts are asserted."""
    hub_id, protocols = HUB[name]
    splits = {}
    for split, (stem, rule) in protocols[protocol].items():
        where = f"{hub_id}/{stem}"
        if name in STREAMED:
            table = tables.open_parquet(hub.parquet_files(hub_id, stem), keyed=STREAMED[name])
        else:
            table = tables.checked(hub.table(hub_id, stem), where, first_row=1)
        whole = grouped(split, table, stem, where, first_row=1, ordered=name in ORDERED)
        questions = whole.under(rule)
        counted = whole if name in STREAMED else questions
        came, expected = tuple(counted.report["kept"].values()), COUNTS[name][protocol][split]
        if came != expected:
            raise ValueError(
                f"{name}, protocol {protocol}, {split}: expected {expected[0]:,} questions and {expected[1]:,} candidates, "
                f"got {came[0]:,} and {came[1]:,} (from {where})"
            )
        if name in POSITIVES:
            _check_positives(counted, POSITIVES[name][split], where)
        if context and name in STREAMED:
            document_order.check(whole, where)
            questions = replace(questions, ordered=True)
        splits[split] = questions
    return splits


def _check_positives(questions: Split, published: float, where: str) -> None:
    """The published share of positives, as per cent of the candidates or as positives a question."""
    positives = int(questions.positives().sum())
    came = [100 * positives / questions.report["kept"]["candidates"], positives / len(questions)]
    if all(abs(value - published) > 0.01 for value in came):
        raise ValueError(
            f"{where}: expected {published} positives in 100 candidates or a question, got {came[0]:.2f} and {came[1]:.2f}"
        )


def _own(path: Path, protocol: str) -> dict[str, Split]:
    """The splits of a user's folder or file."""
    disk.check_mined(path)
    if path.is_dir():
        splits = {split: _own_file(_file_of_split(path, split), split) for split in SPLITS}
        _warn_of_leaks(splits, path)
    else:
        splits = _divided(_own_file(path, "all"), path)
    for split in SPLITS:
        if (splits[split].positives() == splits[split].stops - splits[split].starts).all():
            log.warning(
                "%s: every candidate of the %d %s questions has label 1: %s", path, len(splits[split]), split, ALL_RIGHT
            )
    if protocol == "asbert":
        return {split: questions.under("positive") for split, questions in splits.items()}
    for split in ("dev", "test"):
        questions = splits[split]
        without = np.flatnonzero(questions.positives() == 0)
        if len(without):
            first = without[0]
            where = path if path.is_file() else _file_of_split(path, split)
            row = questions.table["row"][int(questions.starts[first])].as_py()
            raise ValueError(
                f"{where}, row {row}: protocol clean expects a candidate with label 1 for every {split} question, got none for "
                f"question {questions.ids[first]!r} ({len(without)} such); protocol asbert leaves such questions out"
            )
    return splits


def _own_file(path: Path, split: str) -> Split:
    table = tables.read_table(path)
    _warn_of_contradictions(table, path)
    titled = "document_title" in table.column_names and table["document_title"].null_count < len(table)
    return grouped(split, table, path.stem, path, table["row"][0].as_py(), ordered=titled)


def _warn_of_contradictions(table: pa.Table, path: Path) -> None:
    """Say how many candidates of a question have both labels, with the rows of the first."""
    same = [name for name in ("question_id", "question", "answer") if name in table.column_names]
    each = table.group_by(same).aggregate([("label", "min"), ("label", "max"), ("row", "min"), ("row", "max")])
    both = each.filter(pc.less(each["label_min"], each["label_max"])).sort_by("row_min")
    if len(both):
        first, last = both["row_min"][0], both["row_max"][0]
        log.warning("%s: %d candidates have both labels, the first in the rows %s to %s", path, len(both), first, last)


def _warn_of_leaks(splits: dict[str, Split], folder: Path) -> None:
    """Say which splits share questions: figures on them are too high."""
    texts = {split: set(questions.table["question"].unique().to_pylist()) for split, questions in splits.items()}
    for one, other in itertools.combinations(SPLITS, 2):
        if shared := len(texts[one] & texts[other]):
            log.warning("%s: %d of %d %s questions are in %s, too", folder, shared, len(texts[other]), other, one)


def _divided(whole: Split, path: Path) -> dict[str, Split]:
    """The questions of one file as train, dev and test, 8 : 1 : 1 by a hash of their ids."""
    if len(whole) < 3:
        raise ValueError(f"{path}: expected at least 3 questions to share out as train, dev and test, got {len(whole)}")
    order = np.argsort([text_hash(id, "side") for id in whole.ids])
    tenth = max(1, len(whole) // 10)
    numbers = {"train": order[2 * tenth :], "dev": order[tenth : 2 * tenth], "test": order[:tenth]}
    return {split: replace(whole._take(np.sort(numbers[split])), name=split) for split in SPLITS}


def _pydocs() -> dict[str, Split]:
    columns = {split: {"question_id": [], "question": [], "answer": [], "label": []} for split in SPLITS}
    for question in docstrings.questions():
        column = columns[docstrings.split_of(question.function)]
        size = len(question.sentences)
        column["question_id"] += [question.id] * size
        column["question"] += [question.text] * size
        column["answer"] += question.sentences
        column["label"] += [int(i in question.positive) for i in range(size)]
    splits = {}
    for split, column in columns.items():
        table = tables.checked(pa.table(column), "pydocs", 1)
        splits[split] = grouped(split, table, "pydocs", "pydocs", 1, ordered=True).under("mixed")
    return splits


def _path(name) -> Path:
    path = files.expanded(name)
    if not path.exists():
        if isinstance(name, Path) or len(path.parts) > 1 or path.suffix in tables.SUFFIXES:
            raise FileNotFoundError(
                f"{path} does not exist: expected a folder, or a file that ends in {', '.join(tables.SUFFIXES)}"
            )
        require_one_of("data set (and no such file or folder)", str(name), NAMES)
    return path


def _file_of_split(folder: Path, split: str) -> Path:
    return file_of_split(folder, split, [f"{{}}{suffix}" for suffix in tables.SUFFIXES])
