"""Where documents come from: the embedded `pydocs`, a hub id or its mirror, a folder or a file, also behind a URL.

`documents` yields them one after the other, and names the file and row of what it refuses.

`asutil fetch` keeps a slice of a source as a file, for machines without a network.
"""

import hashlib
import itertools
import logging
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .. import plugins
from ..io import files, hub, remote
from . import cleaning


class Form(NamedTuple):
    """How the rows of a hub data set are read."""

    config: str | None = None
    text_column: str = "text"
    separator: str = "\n\n"  # of paragraphs


HUB_FORMS = {
    "wikimedia/wikipedia": Form("20231101.en"),
    "lucadiliello/bookcorpusopen": Form(),
    "Skylion007/openwebtext": Form(),
    "vblagoje/cc_news": Form(separator="\n"),
}
SUFFIXES = (".parquet", ".jsonl", ".txt")
SPLIT = re.compile(r"(train|validation|dev|test)(?![a-z])", re.I)  # how the name of a split's file begins
NOT_LEFT_OUT = "corpus %s: no document has %d of the %d titles of exclude_titles, such as %s"
log = logging.getLogger(__name__)


def documents(source, split="train", limit=None, text_column=None, paragraph_separator=None, exclude_titles=()):
    """The documents of a source, one after the other, never all in memory.

    Args:
        source: `pydocs`, a folder, a `.parquet`, `.jsonl` or `.txt` file (one document a file), a hub id `owner/name` or
            `owner/name:config` (looked for in the mirror first), a URL that fsspec knows (`s3://bucket/texts`, `hf://`), or several
            of these joined by commas.
        exclude_titles: documents whose `title` is one of these are left out, with a warning where there are none.
    Returns: an iterator of documents, each a string with blank lines between its paragraphs or a list of paragraphs.
    Raises: FileNotFoundError, ValueError naming the file and the row.
    """
    options = (split, text_column, paragraph_separator, frozenset(exclude_titles))
    parts = (_documents_of_one(part, *options) for part in parts_of(source))
    return itertools.islice(itertools.chain.from_iterable(parts), limit)


def parts_of(source) -> list[str]:
    """The sources that are joined by commas. A path may have a comma of its own."""
    source = str(source)
    parts = [source] if Path(source).exists() and source else [part.strip() for part in source.split(",")]
    if not all(parts):
        expected = "pydocs, a hub id owner/name, a folder or a file, several joined by commas"
        raise ValueError(f"corpus {source!r}: expected {expected}; one is empty")
    return parts


def without_paths(source) -> str:
    """The name of a source without paths of this machine: `own:documents.jsonl` for a path, everything else as it is."""
    parts = (part if part == "pydocs" or is_hub_id(part) else f"own:{Path(part).name}" for part in parts_of(source))
    return ",".join(parts)


def _documents_of_one(source, split, text_column, separator, exclude_titles):
    if source == "pydocs":
        if exclude_titles:
            log.warning(NOT_LEFT_OUT, source, len(exclude_titles), len(exclude_titles), min(exclude_titles))
        return plugins.pydocs("documents").documents()
    hub_id, _, config = source.partition(":")
    form = HUB_FORMS.get(hub_id, Form())
    column = text_column or form.text_column
    if hub.mirror(hub_id) is None and is_hub_id(source):
        stream = hub.stream(hub_id, split, config or form.config)
        rows = _without_nul(((f"{hub_id} row {number}", row) for number, row in enumerate(stream, 1)), column)
    else:
        paths = mirrored_files(source, split) or files_of(remote.path_of(source))
        if not paths:
            holds = files.listing(remote.path_of(source))
            raise FileNotFoundError(f"corpus {source}: no .parquet, .jsonl or .txt file; it holds {holds}")
        tables = [path for path in paths if path.suffix != ".txt"]
        named = ((path, SPLIT.match(path.name) or SPLIT.fullmatch(path.parent.name)) for path in tables)
        of_splits = {name[1].lower(): path.name for path, name in named if name}
        if "train" in of_splits and len(of_splits) > 1:
            several = ", ".join(of_splits.values())
            log.warning("corpus %s: all of its files are read, though splits are among them: %s", source, several)
        rows = itertools.chain.from_iterable(read_rows(path, column) for path in paths)
    given = (separator or "").replace("\\n", "\n").replace("\\t", "\t")  # as a command line passes them
    return _texts(source, rows, column, given or form.separator, exclude_titles)


def mirrored_files(source: str, split: str) -> list[Path]:
    """The files of `owner/name` or `owner/name:config` in the mirror; none where the mirror does not have it.

    A mirror without folders of configurations holds the configuration that is read by default.
    """
    hub_id, _, config = source.partition(":")
    folder, default = hub.mirror(hub_id), HUB_FORMS.get(hub_id, Form()).config
    if folder is None:
        return []
    if config and config != default and not (folder / config).is_dir():
        holds = files.listing(folder)
        raise FileNotFoundError(f"corpus {source}: the mirror has no folder {config} in {hub_id}; it holds {holds}")
    return hub.parquet_files(hub_id, split, config or default)


def _without_nul(rows, column: str) -> Iterator[tuple[str, dict]]:
    """Rows of the hub or of parquet files, a blank for each NUL: OpenWebText has some.

    In files of text a NUL stays an error, since there it shows an encoding that is not UTF-8.
    """
    for location, row in rows:
        text = row.get(column)
        yield location, {**row, column: text.replace("\0", " ")} if isinstance(text, str) and "\0" in text else row


def read_titles(path: str | None) -> tuple[str, ...]:
    """The titles to leave out: one a line of a text file."""
    if not path:
        return ()
    titles = (line.strip() for _, line in files.lines(Path(path)))
    return tuple(title for title in titles if title)


def is_hub_id(source: str) -> bool:
    """Whether a name that is no path here has the form of a hub id, `owner/name` or `owner/name:config`."""
    form = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*(:[\w.-]+)?", source)
    return form is not None and not Path(source).exists() and Path(source).suffix not in SUFFIXES


def files_of(path: Path) -> list[Path]:
    """The files of a folder in their order, or the file itself."""
    if path.is_dir():
        return sorted(file for file in _leaves(path) if file.suffix.lower() in SUFFIXES)
    if not path.is_file():
        expected = "pydocs, a hub id owner/name, a folder or a file"
        raise FileNotFoundError(f"corpus {str(path)!r} does not exist (expected {expected})")
    if path.suffix.lower() not in SUFFIXES:
        unpack = f": unpack it first (gunzip --keep {path.name})" * (path.suffix.lower() == ".gz")
        raise ValueError(
            f"{path}: expected .parquet, .jsonl or .txt, got {path.suffix or 'no suffix'}{unpack}{hub.advice_on_pickle(path)}"
        )
    return [path]


def not_read(source) -> str:
    """How many files in the folders of a source are no documents, with their endings: `2 files are not read: 1 .md, 1 hidden`."""
    folders = [path for part in parts_of(source) if (path := remote.path_of(part)).is_dir()]
    leaves = (file for folder in folders for file in _leaves(folder))
    others = Counter(file.suffix for file in leaves if file.suffix.lower() not in SUFFIXES)
    others += Counter(hidden=sum(len(_leaves(folder, hidden=True)) for folder in folders))
    endings = ", ".join(f"{count} {suffix or 'without an ending'}" for suffix, count in sorted(others.items()))
    return f"{others.total()} files are not read: {endings}" if others else ""


def _leaves(folder: Path, hidden: bool = False) -> list[Path]:
    """All files but hidden ones, or those alone: copies that an editor or a Mac keeps are no documents.

    A broken link counts as a file, so that opening it fails: else nobody would miss its documents. Raises: ValueError for a linked folder.
    """
    is_hidden = lambda file: any(part.startswith(".") for part in file.relative_to(folder).parts)
    every = [file for file in folder.rglob("*") if is_hidden(file) == hidden]
    if linked := next((file for file in every if file.is_symlink() and file.is_dir()), None):
        raise ValueError(f"{linked}: expected a folder, got a link to one: give that folder, too, joined by a comma")
    return [file for file in every if file.is_file() or (file.is_symlink() and not file.exists())]


def read_rows(path: Path, column: str) -> Iterator[tuple[str, dict]]:
    """(location, row) of every row of a file, where a location is its name and the row's number.

    Raises: ValueError naming the location of a row that is no object, or a file of parquet that lacks the column.
    """
    if path.suffix.lower() == ".parquet":
        file = files.opened(path)
        names = file.schema_arrow.names
        if column not in names:
            raise ValueError(f"{path.name}: expected a column {column!r}, got {', '.join(names)}")
        columns = [name for name in (column, "title") if name in names]
        yield from _without_nul(files.rows(files.batches(file, path, 256, columns), path), column)
    elif path.suffix.lower() == ".txt":
        yield path.name, {column: files.decoded(path.read_bytes(), str(path))}
    else:
        for location, line in files.lines(path):
            if not line.strip():
                continue
            row = files.parsed(line, location)
            if not isinstance(row, dict):
                raise ValueError(f"{location}: expected an object with {column!r}, got {type(row).__name__}")
            yield location, row


def _texts(source: str, rows, column: str, separator: str, exclude_titles: frozenset):
    left_out = set()
    for location, row in rows:
        text = row.get(column)
        if not isinstance(text, str):
            came = f"{type(text).__name__} (columns: {', '.join(row)})"
            raise ValueError(f"{location}: expected text in {column!r}, got {came}")
        files.require_encodable(text, f"{location}, {column!r}")
        title = row.get("title")
        if isinstance(title, str) and title in exclude_titles:
            left_out.add(title)
        elif separator == "\n\n":
            yield text
        else:  # blocks of markup go before a line of them can become a paragraph; tags go with the paragraph that they stand in
            yield cleaning.without_blocks(text).split(separator)
    if others := set(exclude_titles) - left_out:
        log.warning(NOT_LEFT_OUT, source, len(others), len(exclude_titles), min(others))


def fingerprint_of_source(source: str) -> str:
    """What identifies the data of a source: hashes of files, versions of the packages behind `pydocs`, or the hub id itself."""
    fingerprints = [_fingerprint_of_one(part) for part in parts_of(source)]
    if len(fingerprints) == 1:
        return fingerprints[0]
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest()


def _fingerprint_of_one(source: str) -> str:
    hub_id, _, configuration = source.partition(":")
    if hub_id == "pydocs":
        return plugins.pydocs("documents").fingerprint_of_docstrings()
    if folder := hub.mirror(hub_id):
        whole = hub.sha256(folder)
        return hashlib.sha256(f"{whole}:{configuration}".encode()).hexdigest() if configuration else whole
    if is_hub_id(source):
        return source
    path = remote.path_of(source)
    if (path / "corpus.json").is_file():  # an index: the file describes its origin
        return hub.sha256(path / "corpus.json")
    # The ending of a file decides how it is read.
    kinds = (f"{file.suffix.lower()} {hub.sha256(file)}" for file in files_of(path))
    return hashlib.sha256("\n".join(kinds).encode()).hexdigest()


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "fetch"})
