"""A user's own questions: a folder with three files or one file that is divided, with warnings of what makes figures wrong."""

import itertools
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..draws import text_hash
from ..io import disk, files
from . import document_order, table_files, tables
from .questions import Split, grouped
from .splits import SPLITS, file_of_split, same_text

ALL_RIGHT = "every order of them is right; add wrong candidates, such as other sentences of a right one's document"
# Part of the fingerprint of a divided file: another division is another data set.
DIVISION = "by question text without its final mark"
log = logging.getLogger(__name__)


def load(
    path: Path, protocol: str, columns: dict[str, str] | None = None, needed: Sequence[str] = SPLITS
) -> dict[str, Split]:
    """The splits of a user's folder or file, as `of_tables` makes them. Args: columns, needed: as in `load_answers`."""
    disk.check_made(path)
    paths = split_files(path, needed) if path.is_dir() else {"all": path}
    if missing := [split for split in SPLITS if path.is_dir() and split not in paths]:
        log.warning("%s has no file for %s; it holds %s", path, " and ".join(missing), files.listing(path))
    return of_tables({split: tables.read_table(file, columns) for split, file in paths.items()}, paths, path, protocol)


def of_tables(read: dict[str, pa.Table], paths: dict, path, protocol: str) -> dict[str, Split]:
    """The splits of three tables, or of one under the name `all`, which is divided.

    Dev and test have no question without a right candidate: nothing can rank it.
    Args: paths, path: what messages call each table, and all of them.
    """
    splits = {split: _grouped(split, table, paths[split]) for split, table in read.items()}
    measured = [document_order.measure(questions) for questions in splits.values() if questions.ordered]
    if measured and (reasons := document_order.contradictions(document_order.Order(*map(sum, zip(*measured))))):
        log.warning("%s: %s: rows are not taken for the document's order", path, "; ".join(reasons))
        splits = {split: replace(questions, ordered=False) for split, questions in splits.items()}
    if "all" in splits:
        paths = dict.fromkeys(SPLITS, path)
        splits = divided(splits["all"], path)
    else:
        _warn_of_leaks(splits, path)
    for split, questions in splits.items():
        whole = questions.without_blank()
        splits[split] = whole.under("all" if protocol == "clean" and split == "train" else "positive")
        without = np.flatnonzero(whole.positives() == 0)
        if len(without) and protocol == "clean" and split != "train":
            row = whole.table["row"][int(whole.starts[without[0]])].as_py()
            log.warning(
                "%s: %d of %d %s questions have no candidate with label 1 and are left out, the first in row %d: "
                "no order of their candidates is better than another",
                *(paths[split], len(without), len(whole), split, row),
            )
        kept = splits[split]
        if len(kept) and (kept.positives() == kept.stops - kept.starts).all():
            log.warning("%s: every candidate of the %d %s questions has label 1: %s", path, len(kept), split, ALL_RIGHT)
    return splits


def split_files(folder: Path, needed: Sequence[str] = SPLITS) -> dict[str, Path]:
    """The file of each split that is there, or needed. The hub calls dev `validation`, and a user's folder may."""
    paths = {}
    for split in SPLITS:
        names = ["{}", *["validation"] * (split == "dev")]
        forms = [f"{name}{suffix}" for name in names for suffix in tables.SUFFIXES]
        paths[split] = file_of_split(folder, split, forms, optional=split not in needed)
    return {split: path for split, path in paths.items() if path}


def _grouped(split: str, table: pa.Table, path) -> Split:
    """The questions of a table, with blank candidates still among them. Without an id they are numbered by the file, or the split."""
    titled = "document_title" in table.column_names and table["document_title"].null_count < len(table)
    stem = table_files.stem_of(path) if isinstance(path, Path) else split
    questions = grouped(split, table, stem, path, titled, table["row"].to_numpy())
    texts = questions.texts() if "question_id" not in table.column_names else ()
    if repeated := len(texts) - len(set(map(same_text, texts))):
        log.warning(
            "%s: %d of %d questions repeat another one but for case, white space, forms of characters or marks at the end: "
            "their candidates are ranked apart",
            *(path, repeated, len(texts)),
        )
    _warn_of_candidates(questions, path)
    return questions


def _warn_of_candidates(questions: Split, path) -> None:
    """Say how many candidates of a question are blank, are repeated, or have both labels, with the rows of the first."""
    texts = (text for chunk in questions.table["answer"].chunks for text in chunk.to_pylist())
    rows = questions.table.select(["label", "row"]).to_pandas()
    rows["question"] = np.repeat(np.arange(len(questions)), questions.stops - questions.starts)
    rows["text"] = np.fromiter((text_hash(same_text(text)) for text in texts), np.int64, len(rows))
    blank = tables.is_blank(questions.table["answer"]).to_numpy()
    if count := blank.sum():
        alone = len(questions) - rows["question"][~blank].nunique()
        lost = f"; {alone} questions have no other and are left out, too" * bool(alone)
        first = rows["row"][blank].min()
        log.warning("%s: %d candidates are blank and are left out, the first in row %d%s", path, count, first, lost)
    rows = rows[~blank].sort_values("row").loc[lambda row: row.duplicated(["question", "text"], keep=False)]
    each = rows.groupby(["question", "text"], sort=False).agg({"label": ["min", "max"], "row": ["min", "max"]})
    both = each[each["label", "min"] < each["label", "max"]]
    if len(both):
        first, last = both.sort_values(("row", "min"))["row"].iloc[0]
        log.warning("%s: %d candidates have both labels, the first in the rows %d to %d", path, len(both), first, last)
    repeats = rows[rows.duplicated(["question", "text", "label"])]
    if len(repeats):
        log.warning(
            "%s: %d rows repeat a candidate of their question, the first is row %d: a repeated candidate counts as often as it is there",
            *(path, len(repeats), repeats["row"].iloc[0]),
        )


def _warn_of_leaks(splits: dict[str, Split], folder) -> None:
    """Say which splits share questions: figures on them are too high."""
    right = {split: _right_answers(questions) for split, questions in splits.items()}
    for one, other in itertools.combinations(splits, 2):
        shared = [text for text in right[other] if text in right[one]]
        if shared:
            known = sum(bool(right[other][text] & right[one][text]) for text in shared)
            log.warning(
                "%s: %d of %d %s questions are in %s, too; %d of them with a right answer that it has there (case, white space and "
                "marks at the end do not count)",
                *(folder, len(shared), len(right[other]), other, one, known),
            )


def _right_answers(questions: Split) -> dict[str, set[str]]:
    """The right answers of every question text, as `same_text` has them."""
    right = defaultdict(set)
    table = questions.table
    for question, answer, label in zip(*(table[name].to_pylist() for name in ("question", "answer", "label"))):
        right[same_text(question)].update([same_text(answer)] * label)
    return right


def divided(whole: Split, path) -> dict[str, Split]:
    """The questions of one file as train, dev and test, 8 : 1 : 1; all questions of one text are in one split.

    Texts come in the order of their hashes. Test, then dev, take every text whose questions fit into their tenth, at least one text.
    """
    members = defaultdict(list)
    for number, start in enumerate(whole.starts):
        members[same_text(whole.table["question"][int(start)].as_py())].append(number)
    if len(members) < 3:
        expected = "at least 3 questions with different texts to share out as train, dev and test"
        raise ValueError(f"{path}: expected {expected}, got {len(members)}")
    order = sorted(members, key=lambda text: text_hash(text, "side"))
    tenth = max(1, len(whole) // 10)
    numbers = {"train": [], "dev": [], "test": []}
    for split, reserved in (("test", 2), ("dev", 1)):  # texts that the other splits need
        waiting = []
        for number, text in enumerate(order):
            fits = len(numbers[split]) + len(members[text]) <= tenth
            if fits and len(waiting) + len(order) - number > reserved:
                numbers[split] += members[text]
            else:
                waiting.append(text)
        if not numbers[split]:
            smallest = min(waiting, key=lambda text: len(members[text]))
            waiting.remove(smallest)
            numbers[split] += members[smallest]
        order = waiting
    numbers["train"] = [number for text in order for number in members[text]]
    return {split: replace(whole._take(np.sort(numbers[split])), name=split) for split in SPLITS}
