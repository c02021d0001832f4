"""Files read strictly: an error names the file, and for text, JSON and YAML also the line or byte."""

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

UNENCODABLE = re.compile("[\0\ud800-\udfff]")

# ------------------------------------------------------------------ text, JSON and YAML


def decoded(data: bytes, location: str) -> str:
    """The text of some bytes without a byte order mark. Raises: ValueError naming the location and the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{location}: expected UTF-8, got byte 0x{data[error.start]:02x} at {error.start}") from None


def require_encodable(text: str, location: str) -> None:
    """Refuse NUL and halves of characters, which JSON can spell and no tokenizer takes.

    Raises: ValueError naming the location and the character's position.
    """
    if wrong := UNENCODABLE.search(text):
        what = "a NUL byte" if wrong[0] == "\0" else "half a character"
        raise ValueError(f"{location}: expected text that UTF-8 can encode, got {what} at character {wrong.start()}")


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """(location, line) of a text file, counted from 1. Only a line feed ends a line: U+2028 may occur in a text.

    A byte order mark at the start of any line is dropped: files that were joined have one where each began.

    Raises: ValueError naming file and line of what is not UTF-8.
    """
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is no path: it has a NUL")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            location = f"{path.name} line {number}"
            yield location, decoded(line, location).rstrip("\r\n")


def parsed(text: str, location: str):
    """The value of a JSON text. Raises: ValueError naming the location, also for nesting and numbers that are too large for Python."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", error)
        raise ValueError(f"{location}: not JSON ({reason})") from None


def yaml_value(text: str | bytes, loader_class):
    """The value of a YAML text. Raises: yaml.YAMLError; ValueError where its aliases, written out, come to more than a million items."""
    loader = loader_class(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > 1_000_000:
            raise ValueError("its aliases, written out, come to more than a million items")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node, sizes: dict[int, float]) -> float:
    """The number of nodes below a YAML node, aliases written out; infinite for a node that contains itself."""
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        entries = node.value if isinstance(node.value, list) else ()
        children = (child for entry in entries for child in (entry if isinstance(entry, tuple) else (entry,)))
        sizes[id(node)] = 1 + sum(_size(child, sizes) for child in children)
    return sizes[id(node)]


def listing(folder: Path, pattern: str = "*") -> str:
    """The names of the first ten matching files of a folder, for an error message; `nothing` where there are none."""
    return ", ".join(sorted(path.name for path in folder.glob(pattern))[:10]) or "nothing"


def json_object(path: Path, **types: type) -> dict:
    """The JSON object in a file that the project wrote.

    Args:
        types: of the values of some keys, where the object has these keys.
    Raises: ValueError that names the file with its folder and the fault; OSError.
    """
    location = f"{path.parent.name}/{path.name} is damaged"
    content = parsed(decoded(path.read_bytes(), location), location)
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{location}: an object is expected, with something in it, got {str(content)[:80]}")
    for name, expected in types.items():
        if name in content and not isinstance(content[name], expected):
            raise ValueError(
                f"{location}: {name} is expected to be {expected.__name__}, got {type(content[name]).__name__}"
            )
    return content


def published_json(path: Path, kind: type, holds: str) -> dict | list:
    """The JSON of a data set's file, with or without a byte order mark.

    Args:
        kind: list or dict, whichever the file holds.
        holds: what, for the error message.
    Raises: ValueError that names the file, where it is no JSON, of another kind or empty.
    """
    expected = f"{path.name}: expected a JSON {'list' if kind is list else 'object'} of {holds}"
    content = parsed(decoded(path.read_bytes(), path.name), expected)
    if not isinstance(content, kind) or not content:
        raise ValueError(f"{expected}, got {str(content)[:80]}")
    return content


# ------------------------------------------------------------------ parquet


@contextlib.contextmanager
def _naming_parquet(path: Path) -> Iterator[None]:
    """Turn whatever Arrow refuses into a ValueError that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: expected a parquet file, got one that Arrow refuses: {error}") from None


def opened(path: Path) -> "pq.ParquetFile":
    """A parquet file of which only the footer is in memory. Raises: ValueError that names it."""
    import pyarrow.parquet as pq

    with _naming_parquet(path):
        # With pre_buffer the whole file stays in memory.
        return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)


def batches(
    file: "pq.ParquetFile", path: Path, size: int, columns: Iterable[str] | None = None
) -> "Iterator[pa.RecordBatch]":
    """The rows of an opened file, `size` at a time.

    Raises: ValueError that names the file; after the last row also where the footer claims another number of rows.
    """
    count = 0
    with _naming_parquet(path):
        for batch in file.iter_batches(size, columns=columns):
            count += len(batch)
            yield batch
    _check_count(file, path, count)


def table(path: Path) -> "pa.Table":
    """All rows of a parquet file. Raises: ValueError that names it."""
    file = opened(path)
    with _naming_parquet(path):
        content = file.read()
    _check_count(file, path, len(content))
    return content


def _check_count(file: "pq.ParquetFile", path: Path, count: int) -> None:
    if count != file.metadata.num_rows:
        raise ValueError(
            f"{path}: expected a parquet file, got one that claims {file.metadata.num_rows:,} rows and holds {count:,}"
        )


def rows(batches: "Iterable[pa.RecordBatch]", path: Path) -> Iterator[tuple[str, dict]]:
    """(location, row) of all rows, counted from 1. Raises: ValueError naming file and row of what is no text or no date."""
    first = 1
    for batch in batches:
        try:
            values = batch.to_pylist()
        except (ValueError, OverflowError):  # one of its rows is wrong: convert row by row to name it
            values = [_row(batch, n, f"{path.name} row {first + n}") for n in range(len(batch))]
        yield from ((f"{path.name} row {number}", row) for number, row in enumerate(values, first))
        first += len(batch)


def _row(batch: "pa.RecordBatch", n: int, location: str) -> dict:
    try:
        return batch.slice(n, 1).to_pylist()[0]
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{location}: {error}") from None


def frame(path: Path, ids: Iterable[str], numbers: Iterable[str]) -> pd.DataFrame:
    """The table that a run wrote into a parquet file.

    Args:
        ids: columns that it must have, of values that can be compared.
        numbers: columns that it must have, of numbers.
    Raises: ValueError that names the file with its folder.
    """
    import pyarrow as pa

    location = f"{path.parent.name}/{path.name}"
    content = table(path)
    for name in (*ids, *numbers):
        if name not in content.column_names:
            names = ", ".join(map(repr, content.column_names)) or "none"
            raise ValueError(f"{location}: expected a column {name!r}, got {names}")
        came = content.schema.field(name).type
        is_number = pa.types.is_integer(came) or pa.types.is_floating(came)
        if pa.types.is_nested(came) or (name in numbers and not is_number):
            expected = "numbers" if name in numbers else "ids"
            raise ValueError(f"{location}: expected {expected} in the column {name!r}, got {came}")
    with _naming_parquet(path):
        content.validate(full=True)
        return content.to_pandas(ignore_metadata=True)
