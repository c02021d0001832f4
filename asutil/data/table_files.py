"""A user's table of questions in a file: .tsv, .csv, .jsonl, .json or .parquet, as an Arrow table of text, with the row of each line.

Blank lines are skipped. A row is counted as an editor or a spreadsheet counts it: a header is row 1.
"""

import csv
import gzip
import itertools
import json
import logging
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..io import files, hub

SUFFIXES = (".tsv", ".tsv.gz", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".json", ".parquet")
SPREADSHEETS = (".xlsx", ".xls", ".ods")
BATCH = 1 << 13  # objects that are held in memory as such
LONGEST_FIELD = 2**31 - 1  # the csv module refuses fields beyond 131,072 characters unless it is told
log = logging.getLogger(__name__)


def ending_of(path: Path) -> str | None:
    """The ending of a file that `read` takes, in lower case; None for any other file."""
    return next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)


def stem_of(path: Path) -> str:
    """A file's name without its ending, and a hyphen for white space: the ids made from it are fields of TREC's files.

    Example:
        >>> stem_of(Path("my questions (1).TSV.gz"))
        'my-questions-(1)'
    """
    return "-".join(path.name[: -len(ending_of(path))].split())


def read(path: Path) -> tuple[pa.Table, np.ndarray]:
    """All columns of a file, and the number of each of its rows, for error messages.

    Raises: ValueError that names file and row, what was expected and what came.
    """
    ending = ending_of(path)
    if ending is None:
        expected = f"a file that ends in {', '.join(SUFFIXES)}"
        raise ValueError(f"{path}: expected {expected}, got {path.suffix or 'no ending'}{_advice(path)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    if ending == ".parquet":
        table = with_class_names(files.table(path))
        return table, np.arange(len(table)) + 1
    if ending == ".json":
        return _objects(path, enumerate(files.published_json(path, list, "objects (one object a line is .jsonl)"), 1))
    if ".jsonl" in ending:
        return _objects(path, ((row, line) for row, line in enumerate(_lines(path), 1) if line.strip()))
    return _tsv(path) if ".tsv" in ending else _csv(path)


def with_class_names(table: pa.Table) -> pa.Table:
    """The rows with the names of classes in place of their numbers, which may be in any order, where `datasets` wrote the schema."""
    about = files.parsed((table.schema.metadata or {}).get(b"huggingface", b"{}").decode(), "the metadata of datasets")
    features = (about.get("info") or {}).get("features") or {}
    for place, (column, type_) in enumerate(zip(table.column_names, table.schema.types)):
        feature = features.get(column)
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and pa.types.is_integer(type_):
            numbers = pc.if_else(pc.less(table[column], 0), None, table[column])  # -1 is no class
            table = table.set_column(place, column, pa.array(feature["names"], pa.string()).take(numbers))
    return table


def _advice(path: Path) -> str:
    if path.suffix.lower() not in SPREADSHEETS:
        return hub.advice_on_pickle(path)
    convert = f"import pandas; pandas.read_excel({path.name!r}).to_csv({path.stem + '.csv'!r}, index=False)"
    return f'. Convert it once, there: python -c "{convert}"'


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file with their ends, read one by one. Raises: ValueError naming the row of a byte that is no text."""
    unpacked = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with unpacked(path, "rb") as stream:
            for row, line in enumerate(stream, 1):
                raw = line.removeprefix(b"\xef\xbb\xbf") if row == 1 else line
                wrong = raw.find(b"\0")
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    wrong = error.start
                if wrong >= 0:
                    raise ValueError(f"{path}, row {row}: expected UTF-8 text without NUL, got byte 0x{raw[wrong]:02x}")
                yield text
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: expected a file that gzip can unpack, {error}") from None


# ------------------------------------------------------------------ fields between tabs or commas


def _tsv(path: Path) -> tuple[pa.Table, np.ndarray]:
    """Fields between tabs; a quote is a character like any other, since WikiQA's own files have lone ones, unless it is quoting."""
    lines = list(_lines(path))
    raw = [line.removesuffix("\n").removesuffix("\r").split("\t") for line in lines]
    return _columns(path, _quoted_records(path, lines, raw) or raw)


def _csv(path: Path) -> tuple[pa.Table, np.ndarray]:
    records = []
    try:
        for record, _ in _records(_lines(path), ","):
            records.append(record)
    except csv.Error as error:
        expected = "fields between commas, quoted where they have a comma, a quotation mark or a line break"
        raise ValueError(f"{path}, row {len(records) + 1}: expected {expected}, {error}") from None
    return _columns(path, records)


def _records(lines: Iterable[str], separator: str) -> Iterator[tuple[list[str], int]]:
    """The fields of every record, and the number of the line on which it ends."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    for record in reader:
        yield record, reader.line_num


def _quoted_records(path: Path, lines: list[str], raw: list[list[str]]) -> list[list[str]] | None:
    """The records of a .tsv with quoted fields, as spreadsheets and pandas write it; None where quotes have no meaning.

    Fields are quoted if all that begin with a quotation mark are whole quoted fields, and one of them, or the header, shows that they
    are (a text has no other reason for doubled marks), or they are those with a comma, as Excel writes them. A file whose lines differ
    in their number of fields must be whole when it is read as quoted; two lone marks in a raw file never join its rows.
    """
    width = next((len(row) for row in raw if any(map(str.strip, row))), 0)
    marked = [(number, field) for number, row in enumerate(raw, 1) for field in row if field.startswith('"')]
    if not marked:
        return None
    doubled = [number for number, field in marked if _is_quoted(field) and '""' in field[1:-1]]
    if all(len(row) == width or not any(map(str.strip, row)) for row in raw):
        if not all(_is_quoted(field) for _, field in marked):
            if doubled:
                log.warning(
                    "%s: %d fields have doubled quotation marks, the first in row %d; they stay, since other fields have lone ones",
                    *(path, len(doubled), doubled[0]),
                )
            return None
        by_comma = all(("," in field) == field.startswith('"') for row in raw for field in row)
        if not (doubled or by_comma or all(map(_is_quoted, raw[0]))):
            return None
    records = []
    first = 0
    try:
        for record, last in _records(lines, "\t"):
            whole = [len(row) == width for row in raw[first:last]]
            joined = len(whole) > 1 and (any(whole[1:-1]) or (whole[0] and whole[-1]))
            if joined or (len(record) != width and any(map(str.strip, record))):
                return None
            records.append(record)
            first = last
    except csv.Error:
        return None
    log.warning(
        "%s: %d fields are in quotation marks, the first in row %d; the marks around them are left out, and doubled ones are single, "
        "as spreadsheets and pandas write them. If they belong to the texts, save the table as .jsonl",
        *(path, len(marked), marked[0][0]),
    )
    return records


def _is_quoted(field: str) -> bool:
    """Whether a field begins and ends with a quotation mark and has only doubled ones between."""
    return len(field) > 1 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', "")


def _columns(path: Path, records: list[list[str]]) -> tuple[pa.Table, np.ndarray]:
    """The columns that the first record names, of the others. Raises: ValueError for records of another length, or equal names."""
    numbered = [(row, record) for row, record in enumerate(records, 1) if any(map(str.strip, record))]
    if not numbered:
        raise ValueError(f"{path} is empty")
    first, header = numbered.pop(0)
    for row, record in numbered:
        if len(record) != len(header):
            raise ValueError(f"{path}, row {row}: expected {len(header)} fields, {header!s:.99}, got {len(record)}")
    if len(set(header)) < len(header):
        reason = " (its lines end in CR alone)" * ("\r" in "".join(header))
        raise ValueError(f"{path}, row {first}: expected distinct column names, got {header!s:.120}{reason}")
    columns = zip(*(record for _, record in numbered)) if numbered else [()] * len(header)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(header, columns)})
    return table, np.array([row for row, _ in numbered], np.int64)


# ------------------------------------------------------------------ JSON


def _objects(path: Path, numbered: Iterable[tuple[int, object]]) -> tuple[pa.Table, np.ndarray]:
    """The columns of (row, object or its JSON text). Raises: ValueError naming the row of what is no object with text."""
    records, rows, tables = _records_of(path, numbered), [], []
    while part := list(itertools.islice(records, BATCH)):
        rows.append(np.array([row for row, _ in part], np.int64))
        names = dict.fromkeys(name for _, record in part for name in record)
        columns = {name: pa.array([record.get(name) for _, record in part], pa.string()) for name in names}
        tables.append(pa.table(columns))
    if not tables:
        return pa.table({}), np.zeros(0, np.int64)
    return pa.concat_tables(tables, promote_options="default"), np.concatenate(rows)


def _records_of(path: Path, numbered: Iterable[tuple[int, object]]) -> Iterator[tuple[int, dict]]:
    """(row, object) of each record that is not blank; every value of an object is text or None."""
    for row, record in numbered:
        try:
            record = json.loads(record) if path.suffix.lower() != ".json" else record
            if not isinstance(record, dict) or not record:
                raise ValueError(f"got {type(record).__name__}{' without names' * (record == {})}")
            for name in ("question", "answer"):
                if not isinstance(record.get(name), str | None):
                    raise ValueError(f"{name} is {record[name]!r}, no text")
            for name in ("question_id", "document_title"):
                if isinstance(record.get(name), list | dict):
                    raise ValueError(f"{name} is {record[name]!r}, neither text nor a number")
            # What is neither text nor a number can be no column of a question, under another name neither.
            plain = {name: value for name, value in record.items() if not isinstance(value, list | dict)}
            # NaN, which Python writes for a missing value of pandas, is the one value that differs from itself.
            record = {name: None if value is None or value != value else str(value) for name, value in plain.items()}
            "".join(filter(None, record.values())).encode()  # JSON can spell half a character
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, row {row}: expected a JSON object with text, {error}") from None
        yield row, record
