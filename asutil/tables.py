"""A user's question files, and any table of questions, as an Arrow table whose columns are known to be sound."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SUFFIXES = (".tsv", ".jsonl", ".parquet")


def read(path: Path) -> pa.Table:
    """The file's known columns, checked, and `row`: the line of a text file (a TSV's header is line 1), the row of a parquet file.

    Raises: ValueError that names file and row, what was expected and what came.
    """
    readers = {".tsv": (_read_tsv, 2), ".jsonl": (_read_jsonl, 1), ".parquet": (_read_parquet, 1)}
    if path.suffix not in readers:
        raise ValueError(f"{path}: expected a file that ends in {', '.join(readers)}, got {path.suffix or 'no ending'}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    reader, first_row = readers[path.suffix]
    table = checked(reader(path), path, first_row)
    return table.append_column("row", pa.array(np.arange(len(table)) + first_row))


def _lines(path: Path) -> list[str]:
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    bad = data.find(b"\0")
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        row = data.count(b"\n", 0, bad) + 1
        raise ValueError(f"{path}, row {row}: expected UTF-8 text without NUL, got the byte 0x{data[bad]:02x}")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _read_tsv(path: Path) -> pa.Table:
    """Fields between tabs, a quote is a character like any other: WikiQA's own files have unbalanced ones."""
    header, *rows = [line.split("\t") for line in _lines(path) or [""]]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}, row {number}: expected {len(header)} fields as in the header, got {len(row)}")
    if len(set(header)) < len(header):
        raise ValueError(f"{path}, row 1: expected distinct column names, got {header}")
    return pa.table({name: pa.array(values, pa.string()) for name, values in zip(header, zip(*rows))} if rows else {})


def _read_jsonl(path: Path) -> pa.Table:
    records = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"got {type(record).__name__}")
            if wrong := [name for name in ("question", "answer") if not isinstance(record.get(name, ""), str | None)]:
                raise ValueError(f"{wrong[0]} is {record[wrong[0]]!r}, no text")
            record = {name: value if value is None else str(value) for name, value in record.items()}
            "".join(filter(None, record.values())).encode()  # JSON can spell half a character
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, row {number}: expected a JSON object with text, {error}") from None
        records.append(record)
    names = dict.fromkeys(name for record in records for name in record)
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in names})


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: expected a parquet file, got one that Arrow refuses: {error}") from None


def checked(table: pa.Table, where, first_row: int) -> pa.Table:
    """The known columns with their types: text that is not blank, labels 0 or 1."""
    if missing := [name for name in ("question", "answer", "label") if name not in table.column_names]:
        came = ", ".join(map(repr, table.column_names)) or "no rows"
        raise ValueError(f"{where}: expected the columns 'question', 'answer', 'label', lacks {', '.join(missing)}; got {came}")
    if len(table) == 0:
        raise ValueError(f"{where} is empty: expected at least one row")

    def refuse(column, bad, expected):
        if (row := pc.index(pc.fill_null(bad, True), True).as_py()) >= 0:
            got = column[row].as_py()
            got = got if got is None or len(str(got)) < 80 else str(got)[:80] + "..."
            raise ValueError(f"{where}, row {row + first_row}: expected {expected}, got {got!r}")

    columns = {}
    for name in filter(table.column_names.__contains__, ("question_id", "question", "answer", "document_title", "label")):
        came, column = table.schema.field(name).type, table[name]
        try:
            if name in ("question", "answer") and not pa.types.is_null(came) and "string" not in str(came):
                raise pa.ArrowTypeError(f"got {came}")
            column = column.cast(pa.string())
            column.validate(full=True)
        except pa.ArrowException as error:
            raise ValueError(f"{where}: expected UTF-8 text in the column {name!r}, {error}") from None
        blank = pc.equal(pc.utf8_trim_whitespace(column), "")
        refuse(column, pc.fill_null(pc.match_substring(column, "\0"), False), f"no NUL in {name!r}")
        if name == "label":
            refuse(column, pc.invert(pc.is_in(column, pa.array(["0", "1", "0.0", "1.0"]))), "the label 0 or 1")
            column = pc.starts_with(column, "1").cast(pa.int8())
        elif name == "document_title":
            column = pc.if_else(blank, None, column)  # an unknown title is no title
        else:
            refuse(column, blank, f"text in {name!r}")
        columns[name] = column
    return pa.table(columns)
