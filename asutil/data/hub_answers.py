"""Questions of any data set of the hub, or of one that `datasets` has loaded, whose rows have a question, an answer and a label."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ..corpus import sources
from ..io import hub
from . import own_answers, table_files, tables
from .data_sets import SPLITS
from .questions import Split

# What data sets call the splits; an ending, as in train_de, is that of one part of the data.
NAMES = {"train": ("train",), "dev": ("validation", "dev", "valid", "val"), "test": ("test",)}


def is_data_set(name) -> bool:
    """Whether it is a hub id, or an object of `datasets`, and no path."""
    if not isinstance(name, str):
        return not isinstance(name, os.PathLike)
    return sources.is_hub_id(name) and table_files.ending_of(Path(name)) is None


def load(name, protocol: str, columns: dict[str, str] | None, needed: Sequence[str] = SPLITS) -> dict[str, Split]:
    """The splits of a data set: its own, or those of one split, which is divided as a file is.

    Args:
        name: `owner/name`, `owner/name:configuration`, `owner/name:de` for splits that are called train_de and so on; a `Dataset`
            or `DatasetDict`.
        columns, needed: as in `load_answers`.
    Raises: FileNotFoundError, or ValueError that names the splits or the columns that came.
    """
    title = name if isinstance(name, str) else "Dataset"
    parts = _parts(name, title, needed)
    wheres = {split: title if len(parts) == 1 else f"{title}, {split}" for split in parts}
    read = {
        split: tables.of_user(part, range(1, len(part) + 1), wheres[split], columns) for split, part in parts.items()
    }
    return own_answers.of_tables(read, wheres, title, protocol)


def fingerprint(name) -> str:
    """A hash of the rows, by split and column; the same for a mirror and for the hub."""
    whole = hashlib.sha256()
    for split, part in _parts(name, name, ("test",)).items():
        for column in part.column_names:
            whole.update(f"{split}\0{column}\0{len(part)}\0".encode())
            for value in part[column].to_pylist():
                whole.update(f"{value!r}\0".encode())
    return whole.hexdigest()


def _parts(given, title, needed: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of each split that is there, or needed; of a data set with one split, other than a test split, under the name `all`."""
    import datasets

    ending = ""
    if isinstance(given, str):
        hub_id, _, part = given.partition(":")
        try:
            given, ending = hub.data_set(hub_id, part)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{given}: no such file or folder, and {error}") from error
    if isinstance(given, datasets.Dataset):
        given = {"all": given}
    if not isinstance(given, dict) or not all(isinstance(part, datasets.Dataset) for part in given.values()):
        expected = "a hub id, a path, a Dataset or a DatasetDict"
        raise ValueError(f"expected {expected} (loaded without streaming), got {type(given).__name__}")
    if len(given) == 1 and next(iter(given)).partition("_")[0] != "test":
        given = {"all": next(iter(given.values()))}
    else:
        forms = {split: [f"{name}{ending}" for name in names] for split, names in NAMES.items()}
        there = [split for split in forms if split in needed or given.keys() & {*forms[split]}]
        given = {split: _split_of(given, forms[split], title) for split in there}
    # The rows of a data set that was filtered or shuffled are those that it lists, in its order.
    return {split: table_files.with_class_names(part.with_format("arrow")[:]) for split, part in given.items()}


def _split_of(given: dict, names: list[str], title: str):
    """The only split with one of the names. Raises: ValueError that lists the splits, and the endings of their names."""
    there = [name for name in names if name in given]
    if len(there) != 1:
        parts = [
            f"{title}:{name.removeprefix('test_')}" for name in given if name.startswith("test_") and ":" not in title
        ]
        hint = f"; name one of {', '.join(parts)}" * bool(parts)
        raise ValueError(f"{title}: expected one split {' or '.join(names)}, got {', '.join(given)}{hint}")
    return given[there[0]]
