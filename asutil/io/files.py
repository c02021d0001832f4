"""Files read strictly: whatever is wrong in one is said with its name, of JSON and UTF-8 also with its place."""

import contextlib
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# ------------------------------------------------------------------ text, JSON and YAML


def decoded(data: bytes, place: str) -> str:
    """The text of some bytes, without a mark in front. Raises: ValueError naming the place and the byte that is no UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: expected UTF-8, got byte 0x{data[error.start]:02x} at {error.start}") from None


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of a text file, counted from 1: a line ends at a line feed alone, not at U+2028, which may stand in a text.

    A mark in front of a line is dropped: files that were joined have one where each began.

    Raises: ValueError that names file and line, of what is no UTF-8.
    """
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is no path: it has a NUL")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            place = f"{path.name} line {number}"
            yield place, decoded(line, place).rstrip("\r\n")


def parsed(text: str, place: str):
    """What a JSON text says. Raises: ValueError naming the place, also for what Python alone refuses: deep nesting, endless numbers."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", error)
        raise ValueError(f"{place}: not JSON ({reason})") from None


def yaml_value(text: str | bytes, loader_class):
    """What a YAML text says. Raises: yaml.YAMLError; ValueError where its aliases, written out, come to more than a million items."""
    loader = loader_class(text)
    try:
        node = loader.get_single_node()
        if node is not None and _items(node, {}) > 1_000_000:
            raise ValueError("its aliases, written out, come to more than a million items")
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _items(node, counted: dict) -> float:
    """Nodes below a node of YAML, each as often as an alias repeats it; infinite below one that holds itself."""
    if id(node) not in counted:
        counted[id(node)] = math.inf
        held = node.value if isinstance(node.value, list) else ()
        counted[id(node)] = 1 + sum(
            _items(one, counted) for pair in held for one in (pair if isinstance(pair, tuple) else (pair,))
        )
    return counted[id(node)]


def expanded(name: str | Path) -> Path:
    """The path of a name that may begin with ~ or ~user; as it stands where there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def json_object(path: Path, **types: type) -> dict:
    """The JSON object in a file that the project wrote.

    Args:
        types: what the values of some keys are, where the object has these.
    Raises: ValueError that names the file with its folder, and says what is wrong; OSError.
    """
    place = f"{path.parent.name}/{path.name} is damaged"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: {error}") from None
    found = parsed(text, place)
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{place}: an object is expected, with something in it, got {str(found)[:80]}")
    for name, expected in types.items():
        if name in found and not isinstance(found[name], expected):
            raise ValueError(f"{place}: {name} is expected to be {expected.__name__}, got {type(found[name]).__name__}")
    return found


# ------------------------------------------------------------------ parquet


@contextlib.contextmanager
def sound(path: Path) -> Iterator[None]:
    """What is read inside is a parquet file. Raises: ValueError that names it, for all that Arrow refuses."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: expected a parquet file, got one that Arrow refuses: {error}") from None


def opened(path: Path) -> pq.ParquetFile:
    """A parquet file, of which nothing but the footer is held. Raises: ValueError that names it."""
    with sound(path):
        return pq.ParquetFile(path, pre_buffer=False)  # else the whole file is kept


def batches(
    file: pq.ParquetFile, path: Path, size: int, columns: Iterable[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of an opened file, some at a time. Raises: ValueError that names it, also behind its last row where it claims others."""
    held = 0
    with sound(path):
        for batch in file.iter_batches(size, columns=columns):
            held += len(batch)
            yield batch
    _counted(file, path, held)


def table(path: Path) -> pa.Table:
    """All rows of a parquet file. Raises: ValueError that names it."""
    file = opened(path)
    with sound(path):
        found = file.read()
    _counted(file, path, len(found))
    return found


def _counted(file: pq.ParquetFile, path: Path, held: int) -> None:
    if held != file.metadata.num_rows:
        raise ValueError(
            f"{path}: expected a parquet file, got one that claims {file.metadata.num_rows:,} rows and holds {held:,}"
        )


def rows(batches: Iterable[pa.RecordBatch], path: Path) -> Iterator[tuple[str, dict]]:
    """(place, row) of all rows, counted from 1. Raises: ValueError that names file and row, of what is no text or no date."""
    before = 0
    for batch in batches:
        try:
            found = batch.to_pylist()
        except (ValueError, OverflowError):  # of one of its rows: which?
            found = [_row(batch, n, f"{path.name} row {before + n + 1}") for n in range(len(batch))]
        yield from ((f"{path.name} row {number}", row) for number, row in enumerate(found, before + 1))
        before += len(batch)


def _row(batch: pa.RecordBatch, n: int, place: str) -> dict:
    try:
        return batch.slice(n, 1).to_pylist()[0]
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from None


def frame(path: Path, ids: Iterable[str], numbers: Iterable[str]) -> pd.DataFrame:
    """The table that a run wrote into a parquet file.

    Args:
        ids, numbers: columns that it must have, of what can be compared, and of numbers.
    Raises: ValueError that names the file with its folder.
    """
    place, found = f"{path.parent.name}/{path.name}", table(path)
    for name in (*ids, *numbers):
        if name not in found.column_names:
            raise ValueError(
                f"{place}: expected a column {name!r}, got {', '.join(map(repr, found.column_names)) or 'none'}"
            )
        came = found.schema.field(name).type
        if pa.types.is_nested(came) or (
            name in numbers and not (pa.types.is_integer(came) or pa.types.is_floating(came))
        ):
            raise ValueError(
                f"{place}: expected {'numbers' if name in numbers else 'ids'} in the column {name!r}, got {came}"
            )
    with sound(path):
        found.validate(full=True)
        return found.to_pandas(ignore_metadata=True)
