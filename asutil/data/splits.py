"""What the loaders of labelled data share: lists of examples with a report, limits, the file of a split, checks of rows."""

import contextlib
import hashlib
import itertools
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import regex

from .. import plugins
from ..draws import text_hash
from ..io import files, hub
from .data_sets import SPLITS

__all__ = ["SPLITS", "Examples"]
BEYOND = "beyond the limit"
# Characters; a longer text is compared as it is: the list of its words takes 20 times its memory.
LONGEST_COPY = 100_000
END = regex.compile(r"(?r)[ \p{Sentence_Terminal}\u2026]+$")  # full stops of any script, an ellipsis
log = logging.getLogger(__name__)


class Examples(list):
    """The examples of one split; `report` counts examples and evidence that were read, kept and dropped, by reason.

    A subclass has `UNIT`, what the report calls the examples, and `evidence_of`, how many pieces of evidence an example has.
    """

    UNIT = "examples"

    def __init__(self, examples=(), dropped: dict | None = None, note: str | None = None):
        super().__init__(examples)
        kept = self._counts(self)
        dropped = dropped or {}
        read = {what: count + sum(lost[what] for lost in dropped.values()) for what, count in kept.items()}
        self.report = {"read": read, "kept": kept, "dropped": dropped} | ({} if note is None else {"note": note})

    def _counts(self, examples) -> dict[str, int]:
        return {self.UNIT: len(examples), "evidence": sum(map(self.evidence_of, examples))}

    def limited(self, limit: int | None):
        """At most `limit` examples, chosen by a hash of their ids, in the order they had; all of them for None."""
        if limit is None or limit >= len(self):
            return self
        chosen = lowest_hashes([example.id for example in self], limit, hash_size=8)
        left_out = [example for example, stays in zip(self, chosen) if not stays]
        dropped = self.report["dropped"] | {BEYOND: self._counts(left_out)}
        return type(self)((self[i] for i in np.flatnonzero(chosen)), dropped, self.report.get("note"))


def fingerprint(name, hub_ids: dict[str, str | None], paths: Callable[[], dict[str, Path | None]]) -> str:
    """What identifies a data set: a hash of its files, of the package versions behind pydocs, or the hub id (its counts are asserted).

    Args:
        hub_ids: of the data sets with a name; None for those of pydocs. paths: the file of each split of any other.
    """
    if name in hub_ids and hub_ids[name] is None:
        documents = plugins.pydocs("documents")
        return documents.fingerprint_of_docstrings(documents.NUMPYDOC)
    if name in hub_ids:
        folder = hub.mirror(hub_ids[name])
        return hub.sha256(folder) if folder else hub_ids[name]
    hashes = [f"{split} {hub.sha256(path)}" for split, path in paths().items() if path]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def same_text(text: str) -> str:
    """A text without what a copy of it may change: case, white space, the form of its characters, marks at its end.

    Example:
        >>> same_text("When  was it BUILT ?") == same_text("When was it built")
        True
        >>> same_text("x > 0") == same_text("x < 0")
        False
    """
    if len(text) > LONGEST_COPY:
        return text
    words = re.findall(r"\w+|[^\w\s]", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))
    return END.sub("", " ".join(words)) or " ".join(words)


def warn_of_shared(splits: dict[str, Examples], key: Callable, path) -> None:
    """Say which splits share examples, by the texts that `key` gives of each: results on dev or test are too high then."""
    texts = {split: [tuple(map(same_text, key(example))) for example in examples] for split, examples in splits.items()}
    for one, other in itertools.combinations(SPLITS, 2):
        known = set(texts[one])
        if count := sum(text in known for text in texts[other]):
            unit = splits[other].UNIT
            log.warning("%s: %d of %d %s %s are in %s, too", path, count, len(texts[other]), other, unit, one)


def lowest_hashes(ids: Iterable[str], limit: int, hash_size: int) -> np.ndarray:
    """Which ids have the `limit` lowest hashes of `hash_size` bytes. Shapes: N ids -> (N,) bool"""
    hashes = np.array([text_hash(id, "limit", hash_size) for id in ids], np.uint64)
    chosen = np.zeros(len(hashes), bool)
    chosen[np.argsort(hashes, kind="stable")[:limit]] = True
    return chosen


def require(condition: bool, location: str, expected: str, came) -> None:
    """Raises: ValueError naming a location, what was expected there and what came."""
    if not condition:
        raise ValueError(f"{location}: expected {expected}, got {came!r:.80}")


def require_fields(row: dict, names: tuple[str, ...], form: str, location: str) -> None:
    """Raises: ValueError naming the location, the form of a row, what it lacks and what it has."""
    if missing := [name for name in names if name not in row]:
        raise ValueError(
            f"{location}: expected {form}, lacks {', '.join(missing)}; got {', '.join(map(str, row)) or 'nothing'}"
        )


def require_id(id, location: str) -> str:
    """An id as text. Raises: ValueError naming the location of an id that is no whole number and no text that can be written."""
    is_id = isinstance(id, int | str) and not isinstance(id, bool) and str(id).strip()
    require(is_id, location, "an id, a number or text", id)
    files.require_encodable(str(id), location)
    return str(id)


def require_text(row: dict, name: str, location: str) -> str:
    """The text under a name. Raises: ValueError naming the location of what is no text, blank, or cannot be written."""
    text = row[name]
    require(isinstance(text, str) and text.strip(), location, f"text in {name!r}", text)
    files.require_encodable(text, location)
    return text


def require_list(row: dict, name: str, location: str, least: int = 0) -> list:
    value = row[name]
    is_list = isinstance(value, list) and len(value) >= least
    require(is_list, location, f"a list of {name}{', at least one' * least}", value)
    return value


def require_limit(limit: int | None, unit: str, name="limit") -> None:
    if limit is not None and not (isinstance(limit, (int, np.integer)) and limit >= 1):
        raise ValueError(f"{name} must be at least 1 {unit}, got {limit!r}")


def limits_of(limit: int | None, train_limit: int | None, test_limit: int | None, unit: str) -> dict[str, int | None]:
    """The limit of each split: `train_limit` or `test_limit` (dev has it, too), else `limit`. Raises: ValueError for one below 1."""
    limits = {"limit": limit, "train_limit": train_limit, "test_limit": test_limit}
    for name, value in limits.items():
        require_limit(value, unit, name)
    own = {"train": train_limit, "dev": test_limit, "test": test_limit}
    return {split: limit if value is None else value for split, value in own.items()}


def file_of_split(folder: Path, split: str, forms: Iterable[str], optional=False, hint="") -> Path | None:
    """The file of a split: the only one of the names that `forms` (such as `{}.jsonl`) give; None where an optional one is missing.

    A file's name may be in capitals.

    Raises: FileNotFoundError that lists what the folder has, followed by the hint; ValueError where several files are there.
    """
    names = [form.format(split) for form in forms]
    there = sorted(folder.iterdir())
    paths = [path for name in names for path in there if path.name.lower() == name and path.is_file()]
    if len(paths) > 1:
        raise ValueError(f"{folder}: expected one file for {split}, got {', '.join(path.name for path in paths)}")
    if not paths and not optional:
        raise FileNotFoundError(f"{folder}: expected one of {', '.join(names)}; it holds {files.listing(folder)}{hint}")
    if paths:
        return paths[0]
    if unread := [path.name for path in there if path.is_file() and path.name.lower().partition(".")[0] == split]:
        log.warning("%s: %s is not read: its name is none of %s", folder, ", ".join(unread), ", ".join(names))
    return None


@contextlib.contextmanager
def naming(expected: str) -> Iterator[None]:
    """Say what was expected where an object of a published file has another form. Raises: ValueError with it, and what came."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{expected}, got {type(error).__name__}: {error}") from None
