"""Where documents come from: the embedded `pydocs`, a hub id or its mirror, a folder, or a file.

`documents` yields them one after the other, and names the file and row of what it refuses.

`python -m asutil.corpus.sources wikimedia/wikipedia:20231101.en --limit 626 --out $ASUTIL_MIRROR/local/wikipedia_small/train.parquet`
keeps a slice of a source as a file, for machines without a network and for the budgets `small` and `gpu`.
"""

import argparse
import hashlib
import itertools
import re
from pathlib import Path

from ..io import files, hub

# Hub data sets whose rows differ from `text` with a blank line between paragraphs: (configuration, text column, paragraph separator).
HUB_FORMS = {
    "wikimedia/wikipedia": ("20231101.en", "text", "\n\n"),
    "lucadiliello/bookcorpusopen": (None, "text", "\n\n"),
    "Skylion007/openwebtext": (None, "text", "\n\n"),
    "vblagoje/cc_news": (None, "text", "\n"),
}
SUFFIXES = (".parquet", ".jsonl", ".txt")
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # JSON can spell NUL and half a character


def documents(source, split="train", limit=None, text_column=None, paragraph_separator=None, exclude_titles=()):
    """The documents of a source, one after the other, never all in memory.

    Args:
        source: `pydocs`, a folder, a `.parquet`, `.jsonl` or `.txt` file (one document a file), a hub id `owner/name` or
            `owner/name:config` (looked for in the mirror first), or several of these joined by commas.
        exclude_titles: documents whose `title` is one of these are left out.
    Returns: an iterator of documents, each a string with blank lines between its paragraphs or a list of paragraphs.
    Raises: FileNotFoundError, ValueError naming the file and the row.
    """
    options = (split, text_column, paragraph_separator, frozenset(exclude_titles))
    return itertools.islice(itertools.chain.from_iterable(_source(one, *options) for one in _several(source)), limit)


def _several(source) -> list[str]:
    """The sources that are joined by commas; a path may have a comma of its own."""
    source = str(source)
    parts = [source] if Path(source).exists() and source else [part.strip() for part in source.split(",")]
    if not all(parts):
        raise ValueError(
            f"corpus {source!r}: expected pydocs, a hub id owner/name, a folder or a file, several joined by commas; one is empty"
        )
    return parts


def shown(source) -> str:
    """A source without any place on this machine: `own:documents.jsonl` for a path, everything else as it is."""
    return ",".join(
        part if part == "pydocs" or is_hub_id(part) else f"own:{Path(part).name}" for part in _several(source)
    )


def _source(source, split, text_column, separator, exclude_titles):
    if source == "pydocs":
        from . import docstrings

        return docstrings.documents()
    hub_id, _, config = source.partition(":")
    form = HUB_FORMS.get(hub_id, (None, "text", "\n\n"))
    column, separator = text_column or form[1], separator or form[2]
    if hub.mirror(hub_id) is None and is_hub_id(source):
        rows = enumerate(hub.stream(hub_id, split, config or form[0]), 1)
        rows = ((f"{hub_id} row {number}", row) for number, row in rows)
    else:
        folder = hub.mirror(hub_id)
        held = sorted(folder.glob(f"{split}*.parquet")) if folder else _files(Path(source))
        if not held:
            wanted = f"{split}*.parquet in the mirror" if folder else ".parquet, .jsonl or .txt file"
            raise FileNotFoundError(f"corpus {source}: no {wanted}")
        rows = itertools.chain.from_iterable(_rows(path, column) for path in held)
    return _texts(rows, column, separator, exclude_titles)


def read_titles(path: str | None) -> tuple[str, ...]:
    """The titles to leave out: one a line of a text file."""
    return tuple(title for _, line in files.lines(Path(path)) if (title := line.strip())) if path else ()


def is_hub_id(source: str) -> bool:
    """Whether a name that is no path here has the form of a hub id, `owner/name` or `owner/name:config`."""
    form = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*(:[\w.-]+)?", source)
    return form is not None and not Path(source).exists() and Path(source).suffix not in SUFFIXES


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        # A link that leads nowhere is taken too, and is an error when it is opened: its documents would be missed by nobody.
        return sorted(
            p for p in path.rglob("*") if p.suffix in SUFFIXES and (p.is_file() or (p.is_symlink() and not p.exists()))
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"corpus {str(path)!r} does not exist (expected pydocs, a hub id owner/name, a folder or a file)"
        )
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: expected .parquet, .jsonl or .txt, got {path.suffix or 'no suffix'}{hub.why_not(path)}"
        )
    return [path]


def _rows(path: Path, column: str):
    """(place, row) of one file; a row is a dict."""
    if path.suffix == ".parquet":
        file = files.opened(path)
        known = file.schema_arrow.names
        if column not in known:
            raise ValueError(f"{path.name}: expected a column {column!r}, got {', '.join(known)}")
        wanted = [name for name in (column, "title") if name in known]
        yield from files.rows(files.batches(file, path, 256, wanted), path)
    elif path.suffix == ".txt":
        yield path.name, {column: files.decoded(path.read_bytes(), path.name)}
    else:
        for place, line in files.lines(path):
            row = files.parsed(line, place)
            if not isinstance(row, dict):
                raise ValueError(f"{place}: expected an object with {column!r}, got {type(row).__name__}")
            yield place, row


def _texts(rows, column, separator, exclude_titles):
    for place, row in rows:
        text = row.get(column)
        if not isinstance(text, str):
            raise ValueError(
                f"{place}: expected text in {column!r}, got {type(text).__name__} (columns: {', '.join(row)})"
            )
        if bad := UNWRITABLE.search(text):
            raise ValueError(
                f"{place}: {'NUL byte' if bad[0] == chr(0) else 'half a character'} at character {bad.start()} of {column!r}"
            )
        title = row.get("title")
        if not isinstance(title, str) or title not in exclude_titles:
            yield text if separator == "\n\n" else text.split(separator)


def fingerprint(source: str) -> str:
    """What identifies the data of a source: hashes of files, versions of the packages behind `pydocs`, or the hub id itself."""
    prints = []
    for one in _several(source):
        hub_id = one.partition(":")[0]
        if hub_id == "pydocs":
            from . import docstrings

            prints.append(docstrings.fingerprint())
        elif held := hub.mirror(hub_id):
            prints.append(hub.sha256(held))
        elif (Path(one) / "corpus.json").is_file():  # an index, which says what it was made of
            prints.append(hub.sha256(Path(one) / "corpus.json"))
        elif is_hub_id(one):
            prints.append(one)
        else:
            prints.append(hashlib.sha256("".join(hub.sha256(path) for path in _files(Path(one))).encode()).hexdigest())
    return prints[0] if len(prints) == 1 else hashlib.sha256("".join(prints).encode()).hexdigest()


def main() -> None:
    """Write the first rows of a hub data set into a parquet file, with its own columns."""
    import pyarrow
    import pyarrow.parquet
    from tqdm.auto import tqdm

    from ..io.disk import atomically

    parser = argparse.ArgumentParser(prog="python -m asutil.corpus.sources", description=main.__doc__)
    parser.add_argument("source", help="a hub id owner/name or owner/name:config")
    parser.add_argument("--split", default="train")
    parser.add_argument("--limit", type=int, required=True, help="rows to keep")
    parser.add_argument("--out", type=Path, required=True, help="the .parquet file to write")
    given = parser.parse_args()
    hub_id, _, config = given.source.partition(":")
    rows = itertools.islice(hub.stream(hub_id, given.split, config or HUB_FORMS.get(hub_id, (None,))[0]), given.limit)
    table = pyarrow.Table.from_pylist(list(tqdm(rows, total=given.limit, unit=" rows")))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    atomically(given.out, lambda path: pyarrow.parquet.write_table(table, path))
    print(f"{table.num_rows:,} rows, {', '.join(table.column_names)}: {given.out}")


if __name__ == "__main__":
    main()
