"""A user's question files, and any table of questions, as Arrow tables with checked columns; those of large data sets stay on disk."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tqdm.auto import tqdm

from ..io import files
from ..io.spelling import require_one_of
from . import table_files

SUFFIXES = table_files.SUFFIXES
COLUMNS = ("question_id", "question", "answer", "document_title", "label")
REQUIRED = ("question", "answer", "label")
TEXTS = pa.schema([("question", pa.string()), ("answer", pa.string())])
# The label of a candidate in lower case, as files of several forms spell it.
RIGHT = ("1", "1.0", "true", "yes")
WRONG = ("0", "0.0", "false", "no")
BATCH = 1 << 16  # rows of a large file that are checked together


def read_table(path: Path, named: dict[str, str] | None = None) -> pa.Table:
    """The table of a user's file, as `of_user` checks it. A row is the line of a text file (a header is line 1), else its number."""
    content, rows = table_files.read(path)
    return of_user(content, rows, path, named)


def of_user(content: pa.Table, rows: Sequence[int], where, named: dict[str, str] | None = None) -> pa.Table:
    """The known columns of a table, checked, and `row`. Wrong candidates may be blank; a right one may not.

    Args:
        rows, where: what an error message calls the rows and the table.
        named: one of `COLUMNS` -> what the table calls it.
    Raises: ValueError that names file and row, what was expected and what came.
    """
    table = checked(_known(content, where, named or {}), where, rows, blank_answers=True)
    for name in {"question", "question_id"}.intersection(table.column_names):  # blanks at an end make no other question
        trimmed = pc.utf8_trim_whitespace(table[name])
        table = table.set_column(table.column_names.index(name), name, trimmed)
    table = table.append_column("row", pa.array(rows, pa.int64()))
    blank = pc.and_(is_blank(table["answer"]), pc.equal(table["label"], 1))
    if (first := pc.index(blank, True).as_py()) >= 0:
        came = table["answer"][first].as_py()
        raise ValueError(
            f"{where}, row {rows[first]}: expected text in 'answer', got {came!r:.80} with label 1{_others(blank)}"
        )
    return table


def is_blank(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.equal(pc.utf8_trim_whitespace(column), "")


def _known(table: pa.Table, path, named: dict[str, str]) -> pa.Table:
    """The table with the known columns' names as they are in `COLUMNS`: case and blanks do not count, nor `_` (`QuestionID`)."""
    for name, own in named.items():
        require_one_of(f"{path}: columns", name, COLUMNS)
        require_one_of(f"{path}: columns, {name}", own, table.column_names)
        table = table.drop_columns([name] * (name in table.column_names and name != own))
        table = table.rename_columns([name if column == own else column for column in table.column_names])
    plain = ["_".join(name.casefold().split()) for name in table.column_names]
    joined = {name.replace("_", ""): name for name in COLUMNS if name not in plain}
    known = joined | dict(zip(COLUMNS, COLUMNS))
    names = [known.get(one, name) for one, name in zip(plain, table.column_names)]
    for name in COLUMNS:
        if names.count(name) > 1:
            several = ", ".join(repr(old) for new, old in zip(names, table.column_names) if new == name)
            raise ValueError(f"{path}: expected one column {name!r}, got {several}")
    return table.rename_columns(names)


def _others(wrong: pa.ChunkedArray) -> str:
    count = pc.sum(wrong).as_py()
    return f" ({count} such rows)" * (count > 1)


def checked(table: pa.Table, where, rows: Sequence[int] | None = None, blank_answers: bool = False) -> pa.Table:
    """The known columns with their types: labels 0 or 1, texts that are not blank.

    Args:
        where, rows: what an error message calls the table and its rows; None: they are counted from 1.
        blank_answers: whether answers may be blank.
    Raises: ValueError that names the row, what was expected and what came.
    """
    if missing := [name for name in REQUIRED if name not in table.column_names]:
        came = ", ".join(map(repr, table.column_names)) or "no rows"
        others = [name for name in table.column_names if name not in COLUMNS]
        near = {name: difflib.get_close_matches(name, others, 1) for name in missing}
        hints = "".join(f"; rename {close[0]!r} to {name!r}" for name, close in near.items() if close)
        raise ValueError(
            f"{where}: expected the columns 'question', 'answer', 'label', lacks {', '.join(missing)}; got {came}{hints}"
        )
    if len(table) == 0:
        raise ValueError(f"{where} is empty: expected at least one row")

    def refuse(column: pa.ChunkedArray, wrong: pa.ChunkedArray, expected: str) -> None:
        wrong = pc.fill_null(wrong, True)
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            came = column[row].as_py()
            if came is not None and len(str(came)) >= 80:
                came = f"{str(came)[:80]}..."
            raise ValueError(f"{where}, row {rows[row]}: expected {expected}, got {came!r}{_others(wrong)}")

    rows = range(1, len(table) + 1) if rows is None else rows
    columns = {}
    for name in COLUMNS:
        if name not in table.column_names:
            continue
        column = _as_text(table, name, where)
        may_be_blank = blank_answers and name == "answer"
        blank = pc.is_null(column) if may_be_blank else is_blank(column)
        refuse(column, pc.fill_null(pc.match_substring(column, "\0"), False), f"no NUL in {name!r}")
        if name == "label":
            plain = pc.utf8_lower(pc.utf8_trim_whitespace(column))
            refuse(column, pc.invert(pc.is_in(plain, pa.array([*WRONG, *RIGHT]))), "the label 0 or 1")
            column = pc.is_in(plain, pa.array(RIGHT)).cast(pa.int8())
        elif name == "document_title":
            column = pc.if_else(blank, None, column)  # a blank title is an unknown one
        else:
            refuse(column, blank, f"text in {name!r}")
        columns[name] = column
    return pa.table(columns)


def _as_text(table: pa.Table, name: str, where) -> pa.ChunkedArray:
    came = table.schema.field(name).type
    try:
        if name in TEXTS.names and not pa.types.is_null(came) and "string" not in str(came):
            raise pa.ArrowTypeError(f"got {came}")
        column = table[name].cast(pa.string())
        column.validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(f"{where}: expected UTF-8 text in the column {name!r}, {error}") from None
    return column


def question_order(table, where, rows: Sequence[int] | None = None) -> tuple[str, np.ndarray, np.ndarray]:
    """How the rows of each question come together: in order of the first appearance of their key, question_id or else question text.

    Args:
        table: a pyarrow.Table or `Parquet`. where, rows: what an error message calls the table and its rows, as in `checked`.
    Returns: the column that tells questions apart, the order of the rows, and where in that order each question starts.
    Raises: ValueError naming the row of a question_id with two question texts.
    """

    def codes(name: str) -> np.ndarray:
        return pc.dictionary_encode(table[name].combine_chunks()).indices.to_numpy()

    by = next(name for name in ("key", "question_id", "question") if name in table.column_names)
    groups = codes(by)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    if by == "question_id":
        texts = codes("question")
        first = order[starts][groups]  # for every row the first row of its question
        if len(other := np.flatnonzero(texts != texts[first])):
            row = int(other[0])
            earlier = int(first[row])
            numbers = range(1, len(table) + 1) if rows is None else rows
            id, text = table["question_id"][row].as_py(), table["question"][row].as_py()
            raise ValueError(
                f"{where}, row {numbers[row]}: question_id {id!r} belongs to {table['question'][earlier].as_py()[:80]!r} "
                f"in row {numbers[earlier]}, got {text[:80]!r}"
            )
    return by, order, starts


@dataclass(frozen=True)
class Parquet:
    """Rows of parquet files with the part of a pyarrow.Table's interface that `Split` uses; texts are read when they are needed."""

    in_memory: pa.Table  # label (int8) and key (int64) of every row
    starts: np.ndarray  # the first row of each row group
    read: Callable[[int], pa.Table]  # question and answer of a row group; the last groups stay in memory
    order: np.ndarray | None = None  # the rows of the files in another order; None: as in the files

    def __len__(self) -> int:
        return len(self.in_memory)

    @property
    def column_names(self) -> list[str]:
        return [*TEXTS.names, *self.in_memory.column_names]

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        table = self.in_memory if name in self.in_memory.column_names else self.slice(0, len(self))
        return table[name]

    def slice(self, start: int, length: int) -> pa.Table:
        """Question, answer and label of some rows; where rows were moved, also a document_title that adjacent rows of the files share."""
        rows = np.arange(start, start + length) if self.order is None else self.order[start : start + length]
        groups = np.searchsorted(self.starts, rows, side="right") - 1
        cuts = np.flatnonzero(np.diff(groups)) + 1
        runs = zip(np.split(groups, cuts), np.split(rows - self.starts[groups], cuts))
        texts = pa.concat_tables([self.read(int(group[0])).take(pa.array(numbers)) for group, numbers in runs])
        texts = texts.append_column("label", self.in_memory["label"].slice(start, length))
        if self.order is None:
            return texts
        return texts.append_column("document_title", pa.array(rows - np.arange(length)))

    def take(self, rows: pa.Array) -> "Parquet":
        """The same rows in another order, their texts still unread."""
        order = rows.to_numpy() if self.order is None else self.order[rows]
        visits = np.count_nonzero(np.diff(np.searchsorted(self.starts, order, side="right")))
        # Where adjacent rows are far apart in the files, all row groups that were read stay in memory, so that none is read twice.
        read = lru_cache(None)(self.read.__wrapped__) if visits > 4 * len(self.starts) else self.read
        return Parquet(self.in_memory.take(rows), self.starts, read, order)


def open_parquet(paths: list[Path], keyed: bool = True) -> Parquet:
    """Check every row of the files once; labels and keys stay in memory.

    Args:
        keyed: whether the files have a column `key`; without, a question's key is its number, in order of first appearance.
    Raises: ValueError that names file and row, also for a key whose rows have different questions.
    """
    tables = []
    groups = []
    questions = {}
    columns = ["question", "answer", "label", *["key"] * keyed]
    labels_of = _label_and_key if keyed else _label_and_number
    title = f"checking {paths[0].stem.partition('-')[0]}"
    with tqdm(desc=title, unit=" rows", unit_scale=True, delay=5, leave=False) as bar:
        for path in paths:
            file = files.opened(path)
            groups += [(file, group) for group in range(file.num_row_groups)]
            row = 1
            for batch in files.batches(file, path, BATCH, columns):
                tables.append(labels_of(pa.Table.from_batches([batch]), path, row, questions))
                row += len(batch)
                bar.update(len(batch))
    if not tables:
        raise ValueError(f"{paths[0]} is empty: expected at least one row")

    @lru_cache(2)
    def read(number: int) -> pa.Table:
        file, group = groups[number]
        return file.read_row_group(group, columns=TEXTS.names).select(TEXTS.names).cast(TEXTS)

    sizes = [file.metadata.row_group(group).num_rows for file, group in groups]
    return Parquet(pa.concat_tables(tables).combine_chunks(), np.cumsum([0, *sizes[:-1]]), read)


def _label_and_key(table: pa.Table, path: Path, first_row: int, questions: dict[int, str]) -> pa.Table:
    """`questions` collects the question of each key."""
    columns = checked(table, path, range(first_row, first_row + len(table)), blank_answers=True)
    try:
        keys = table["key"].cast(pa.int64())
    except (KeyError, pa.ArrowException) as error:
        raise ValueError(f"{path}: expected whole numbers in the column 'key', {error}") from None
    if keys.null_count:
        raise ValueError(f"{path}, row {pc.index(keys.is_null(), True).as_py() + first_row}: expected a key, got None")
    pairs = pa.table({"key": keys, "question": columns["question"]})
    for pair in pairs.group_by(pairs.column_names, use_threads=False).aggregate([]).to_pylist():
        key, text = pair["key"], pair["question"]
        expected = questions.setdefault(key, text)
        if text != expected:
            row = pc.index(pc.and_(pc.equal(keys, key), pc.equal(pairs["question"], text)), True).as_py() + first_row
            raise ValueError(f"{path}, row {row}: key {key} belongs to {expected[:80]!r}, got {text[:80]!r}")
    return pa.table({"label": columns["label"], "key": keys})


def _label_and_number(table: pa.Table, path: Path, first_row: int, numbers: dict[str, int]) -> pa.Table:
    """`numbers` collects the number of each question."""
    columns = checked(table, path, range(first_row, first_row + len(table)), blank_answers=True)
    texts = pc.dictionary_encode(columns["question"].combine_chunks())
    keys = pa.array([numbers.setdefault(text, len(numbers)) for text in texts.dictionary.to_pylist()], pa.int64())
    return pa.table({"label": columns["label"], "key": keys.take(texts.indices)})
