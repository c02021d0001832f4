"""Texts embedded once and kept on disk, and those nearest to a question: `embed` and `Vectors`; the command is `asutil vectors`."""

import itertools
import runpy
from collections.abc import Iterator
from pathlib import Path

from ..corpus import sources
from ..data import table_files
from ..io import files
from .embedding import embed
from .vector_search import BY, INFO, TEXTS, VECTORS, Vectors

__all__ = ["BY", "INFO", "TEXTS", "VECTORS", "Vectors", "embed", "read"]
SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
TOGETHER = 1 << 12  # rows of a file, or questions of a file, that are read at a time


def read(path: str | Path, columns: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """(id, text) of every row of a .txt (one text per line), .tsv, .csv, .jsonl or .parquet file.

    Ids are in a column `id`, if there is one.

    Args:
        columns: possible names of the text's column; the first that a row has is read.
    Raises: ValueError naming file and row.
    """
    path = Path(path)
    if path.suffix == ".txt":
        columns = ("line",)
        rows = ((place, {"line": line}) for place, line in files.lines(path))
    elif path.suffix == ".parquet":
        rows = files.rows(files.batches(files.opened(path), path, TOGETHER), path)
    elif path.suffix in (".tsv", ".csv"):  # whole, with the quoting of spreadsheets
        table, numbers = table_files.read(path)
        each = itertools.chain.from_iterable(batch.to_pylist() for batch in table.to_batches(TOGETHER))
        rows = zip((f"{path.name} row {number}" for number in numbers), each)
    elif path.suffix == ".jsonl":
        rows = sources.read_rows(path, columns[0])
    else:
        raise ValueError(f"{path}: expected a file that ends in {', '.join(SUFFIXES)}, got {path.suffix or 'nothing'}")
    for place, row in rows:
        column = next((column for column in columns if column in row), None)
        text = row.get(column)
        if not isinstance(text, str) or not text.strip():
            came = f"the columns {', '.join(row)}" if column is None else f"{text!r:.80}"
            raise ValueError(f"{place}: expected text in {column or ' or '.join(columns)}, got {came}")
        yield None if row.get("id") is None else str(row["id"]), text


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "vectors"})
