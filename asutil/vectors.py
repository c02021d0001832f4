"""Texts embedded once and kept on disk, and those nearest to a question, found exactly and in bounded memory.

A folder of vectors has `vectors.npy` (N, H) float32, `texts.arrows` (an Arrow stream with the columns id and text), both memory-mapped,
and `vectors.json`, which says what they were made from and has their sizes and hashes.

    python -m asutil.vectors embed answers.jsonl --model RUN --out answers
    python -m asutil.vectors search answers --model RUN --question "Where does the river rise?"
"""

import contextlib
import errno
import hashlib
import io
import itertools
import json
import logging
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from tqdm.auto import tqdm

from . import hub, runs, sources

BY = ("dot", "cosine", "distance")
ENCODERS = ("transformer", "sentence_transformer", "word_vectors", "infersent", "use")
VECTORS, TEXTS, INFO = "vectors.npy", "texts.arrows", "vectors.json"
ROWS = pa.schema([("id", pa.string()), ("text", pa.large_string())])
SHORTEST, LONGEST = 1e-12, 1e12  # of a vector that is not 0: between them no product or square leaves float32
ROUNDING = 2.0**-23  # twice what one operation in float32 can err, relative to its result
CELLS = 1 << 24  # float32 numbers of a table of questions x vectors: 64 MiB
RESCORED = 1 << 12  # vectors that are compared in float64 at a time
ASKED = 1024  # questions of a file that are searched together
log = logging.getLogger(__name__)


# ------------------------------------------------------------------ embedding


def embed(encoder, texts: Iterable, folder: str | Path, block: int = 1 << 14, progress: bool = True) -> "Vectors":
    """Write the vectors of some texts to a folder, block by block; the same call goes on where it was stopped.

    Blocks that were finished are taken as long as they are of the same texts by the same encoder. A folder that is finished is opened.

    Args:
        encoder: anything with `encode(list of texts) -> (n, H)`, `dimensions` and `identity`.
        texts: an iterable of texts, or of (id, text), read once.
        block: texts that are embedded together and held in memory.
    Returns: the opened Vectors.
    Raises: ValueError naming the text that is none, or whose vector is unsound; FileExistsError for a folder of something else; OSError.
    """
    folder = Path(folder)
    if block < 1:
        raise ValueError(f"block: 1 or more expected, got {block}")
    if isinstance(texts, str):
        raise ValueError("texts is an iterable of texts, got one string")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):  # who comes second finds the folder finished
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            _must_be_same(encoder, texts, folder)
        else:
            _embed(encoder, texts, folder, block, progress)
    return Vectors.open(folder)


def _embed(encoder, texts, folder, block, progress):
    part = folder.with_name(f".{folder.name}.embedding")
    part.mkdir(exist_ok=True)
    kept, done, made_from = _finished_blocks(part, encoder.dimensions), [], _made_from(encoder)
    info = {"encoder": encoder.identity, "dimensions": encoder.dimensions, "texts": 0, "blocks": done}
    rows = _rows(texts)
    with tqdm(desc="embedding", unit=" texts", disable=not progress, dynamic_ncols=True) as bar:
        while some := list(itertools.islice(rows, block)):
            _hash(made_from, some)
            mark = {"texts": info["texts"] + len(some), "made_from": made_from.hexdigest()}
            if kept and mark.items() <= kept[0].items():
                done.append(kept.pop(0))
            else:
                if kept:
                    log.warning("%s: %d finished blocks are of other texts or of another encoder: embedded anew", folder, len(kept))
                kept = []
                vectors = _sound(encoder.encode([text for _, text in some]), (len(some), encoder.dimensions), "text", info["texts"])
                with _kept_for_later(folder):
                    done.append(mark | {"text_bytes": _write(part, some, vectors, done)})
                    _write_info(part, info)
            info["texts"] = mark["texts"]
            bar.update(len(some))
    if not done:
        part.rmdir()
        raise ValueError("expected at least one text, got none")
    with _kept_for_later(folder):
        _finish(part, folder, info)


def _rows(texts: Iterable) -> Iterator[tuple]:
    """(id or None, text) of every text. Raises: ValueError naming the one that is no text, or no text that can be written."""
    for number, item in enumerate(texts):
        row = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (isinstance(row[0], str | None) and isinstance(row[1], str)):
            raise ValueError(f"text {number}: expected a text, or its id and text, got {item!r:.80}")
        try:
            "".join(filter(None, row)).encode()
        except UnicodeEncodeError:
            raise ValueError(f"text {number}: half of a surrogate pair in {row!r:.80}") from None
        yield row


def _made_from(encoder):
    """A hash that goes on with every text: that of a block holds for all before it, and the last does not depend on the block size."""
    return hashlib.sha256(json.dumps([encoder.identity, encoder.dimensions]).encode())


def _hash(made_from, rows) -> None:
    made_from.update("".join(json.dumps(row) + "\n" for row in rows).encode())


def _must_be_same(encoder, texts, folder) -> None:
    if not (folder / INFO).is_file():
        raise FileExistsError(f"{folder} exists already and holds no vectors: choose another folder")
    rows, made_from = _rows(texts), _made_from(encoder)
    while some := list(itertools.islice(rows, RESCORED)):
        _hash(made_from, some)
    if made_from.hexdigest() != Vectors.open(folder).info["blocks"][-1]["made_from"]:
        raise FileExistsError(f"{folder} has the vectors of other texts or of another encoder: choose another folder, or delete it")


def _finished_blocks(part: Path, dimensions: int) -> list[dict]:
    """The blocks that an embedding finished before it was stopped: those that its two files hold to the end."""
    if not (part / INFO).is_file():
        return []
    sizes = [(part / name).stat().st_size if (part / name).is_file() else 0 for name in (VECTORS, TEXTS)]
    found = json.loads((part / INFO).read_text(encoding="utf-8"))["blocks"]
    whole = lambda end: _place(end["texts"], dimensions) <= sizes[0] and end["text_bytes"] <= sizes[1]
    return list(itertools.takewhile(whole, found))


def _header(count: int, dimensions: int) -> bytes:
    """Of a .npy file; numpy leaves room in it, so that it is as long for any count."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (count, dimensions)})
    return stream.getvalue()


def _place(count: int, dimensions: int) -> int:
    """Where in its file the vector after so many begins."""
    return len(_header(0, dimensions)) + 4 * count * dimensions


def _write(part: Path, rows: list, vectors: np.ndarray, done: list) -> int:
    """Put a block behind those that are done, over whatever a stopped one left there, and say where its texts end."""
    dimensions = vectors.shape[1]
    at = _place(done[-1]["texts"], dimensions) if done else 0
    _put(part / VECTORS, at, *[_header(0, dimensions)] * (not done), vectors.astype("<f4", copy=False))
    batch = pa.record_batch([list(column) for column in zip(*rows)], schema=ROWS).serialize()
    return _put(part / TEXTS, done[-1]["text_bytes"] if done else 0, *[ROWS.serialize()] * (not done), batch)


def _put(path: Path, at: int, *pieces) -> int:
    with path.open("r+b" if path.exists() else "w+b") as stream:
        stream.seek(at)
        for piece in pieces:
            stream.write(piece)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
        return stream.tell()


def _write_info(part: Path, info: dict) -> None:
    runs.atomically(part / INFO, lambda path: path.write_text(json.dumps(info, indent=1) + "\n", encoding="utf-8"))


def _finish(part: Path, folder: Path, info: dict) -> None:
    with (part / VECTORS).open("r+b") as stream:
        stream.write(_header(info["texts"], info["dimensions"]))
        stream.flush()
        os.fsync(stream.fileno())
    files = {name: {"bytes": (part / name).stat().st_size, "sha256": hub.sha256(part / name)} for name in (VECTORS, TEXTS)}
    _write_info(part, info | {"files": files})
    if folder.exists():
        folder.rmdir()  # an empty one
    part.rename(folder)


@contextlib.contextmanager
def _kept_for_later(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"writing the vectors {folder} failed ({error.strerror or error}); finished blocks are kept for the next try"
        raise OSError(error.errno or errno.EIO, reason) from error


def _sound(vectors, shape: tuple, what: str, first: int = 0) -> np.ndarray:
    """The vectors as float32. Raises: ValueError for another shape, or naming one that is not finite or of no sensible length."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.shape != shape:
        raise ValueError(f"vectors of {shape} expected for {shape[0]} {what}s, got {vectors.shape}")
    lengths = np.concatenate([np.linalg.norm(some.astype(np.float64), axis=1) for some in _sliced(vectors)])
    bad = ~((lengths == 0) | ((lengths > SHORTEST) & (lengths < LONGEST)))
    if bad.any():
        n = int(bad.argmax())
        raise ValueError(f"{what} {first + n}: expected a vector of length 0 or {SHORTEST} to {LONGEST}, got {lengths[n]}")
    return vectors


def _sliced(vectors: np.ndarray) -> Iterator[np.ndarray]:
    return (vectors[start : start + RESCORED] for start in range(0, max(1, len(vectors)), RESCORED))


# ------------------------------------------------------------------ searching


class Vectors:
    """Vectors on disk and the texts that they are of, memory-mapped: `.vectors` (N, H) float32, and `.info` (vectors.json)."""

    def __init__(self, folder: Path, info: dict, vectors: np.ndarray, rows: pa.Table):
        self.folder, self.info, self.vectors, self.rows = folder, info, vectors, rows

    @classmethod
    def open(cls, folder: str | Path, verify: bool = False) -> "Vectors":
        """Open a finished folder; its files' sizes are checked.

        Args:
            verify: check their hashes too, which reads all of them.
        Raises: FileNotFoundError for an unfinished folder; ValueError, with both values, naming a damaged file.
        """
        folder = Path(folder)
        if not (folder / INFO).is_file():
            unfinished = folder.with_name(f".{folder.name}.embedding").is_dir()
            how = "its embedding was stopped, the same command goes on" if unfinished else f"{INFO} is missing"
            raise FileNotFoundError(f"{folder} holds no finished vectors: {how}")
        try:
            info = json.loads((folder / INFO).read_text(encoding="utf-8"))
            expected = {name: (info["files"][name]["bytes"], info["files"][name]["sha256"]) for name in (VECTORS, TEXTS)}
            shape = info["texts"], info["dimensions"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder / INFO} is damaged: {type(error).__name__}: {error}") from error
        for name, (size, sha256) in expected.items():
            path = folder / name
            if (came := path.stat().st_size if path.is_file() else 0) != size:
                raise ValueError(f"{path} is damaged: {size:,} bytes expected, got {came:,}")
            if verify and hub.sha256(path) != sha256:
                raise ValueError(f"{path} is damaged: sha256 {sha256[:16]} expected, got {hub.sha256(path)[:16]}")
        try:
            vectors, rows = np.load(folder / VECTORS, mmap_mode="r"), pa.ipc.open_stream(pa.memory_map(str(folder / TEXTS))).read_all()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise ValueError(f"{folder} is damaged: {error}") from error
        if vectors.shape != shape or vectors.dtype != np.float32 or len(rows) != shape[0]:
            came = f"{vectors.dtype} {vectors.shape} and {len(rows)} texts"
            raise ValueError(f"{folder} is damaged: float32 {shape} and {shape[0]} texts expected, got {came}")
        return cls(folder, info, vectors, rows)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Vectors({self.folder.name}: {len(self):,} texts, {self.vectors.shape[1]} dimensions)"

    def must_be_of(self, encoder) -> None:
        """Raises: ValueError where another encoder made these vectors, so that they have nothing to do with its own."""
        if encoder.identity != self.info["encoder"]:
            raise ValueError(f"{self.folder.name} was embedded by the encoder {self.info['encoder'][:16]}, got {encoder.identity[:16]}")

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """The texts of some numbers."""
        return self._column("text", numbers)

    def ids(self, numbers: Iterable[int]) -> list[str]:
        """The ids of some numbers: those that were given, else the numbers themselves."""
        return [str(number) if name is None else name for number, name in zip(numbers, self._column("id", numbers))]

    def _column(self, name: str, numbers: Iterable[int]) -> list:
        for number in numbers:
            if not 0 <= number < len(self):
                raise IndexError(f"a number from 0 to {len(self) - 1} expected, got {number}")
        return [self.rows[name][int(number)].as_py() for number in numbers]

    @cached_property
    def lengths(self) -> np.ndarray:
        """|v| of every vector, (N,) float32. Raises: ValueError for one that is not finite."""
        found = np.concatenate([np.sqrt(np.einsum("nh,nh->n", some, some)) for some in _sliced(self.vectors)])
        if not np.isfinite(found).all():
            raise ValueError(f"{self.folder / VECTORS} is damaged: vector {int((~np.isfinite(found)).argmax())} is not finite")
        return found

    def search(self, questions: np.ndarray, k: int, by: str = "dot", block: int = 1 << 16) -> tuple[np.ndarray, np.ndarray]:
        """The k best vectors of each question, exactly: the same for every block size.

        dot: u.v;  cosine: u.v / (|u| |v|), 0 where a vector is 0;  distance: -|u - v|
        A score is summed in float64 and rounded to float32 once; of equal ones the smaller number is better. Products in float32 only
        choose what is summed: all that could be among the best, as far as they can err.

        Shapes: (Q, H) float32 -> scores (Q, min(k, N)) float32, numbers (Q, min(k, N)) int64; best first
        Args:
            block: vectors that are compared at a time; memory is bounded by it and by Q x k.
        Raises: ValueError.

        Example:
            >>> from types import SimpleNamespace
            >>> import tempfile
            >>> lengths = SimpleNamespace(encode=lambda texts: [[len(text), 1] for text in texts], dimensions=2, identity="lengths")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     found = embed(lengths, ["one", "three", "eleven"], f"{folder}/numbers", progress=False)
            ...     scores, numbers = found.search(np.float32([[5, 1]]), k=2, by="distance")
            ...     print(scores.tolist(), found.texts(numbers[0]))
            [[-0.0, -1.0]] ['three', 'eleven']
        """
        if by not in BY:
            raise ValueError(f"by: one of {', '.join(BY)} expected, got {by!r}")
        for name, value in {"k": k, "block": block}.items():
            if value < 1:
                raise ValueError(f"{name}: 1 or more expected, got {value}")
        questions = np.asarray(questions)
        questions = _sound(questions, (len(questions) if questions.ndim else 0, self.vectors.shape[1]), "question")
        k, group = min(k, len(self)), max(1, CELLS // block)
        scores, numbers = np.full((len(questions), k), -np.inf, np.float32), np.full((len(questions), k), len(self), np.int64)
        for start in range(0, len(self), block):
            for first in range(0, len(questions), group):
                some = slice(first, first + group)
                self._improve(questions[some], scores[some], numbers[some], slice(start, start + block), by)
        return scores, numbers

    def _improve(self, questions, scores, numbers, place: slice, by: str) -> None:
        """Let the vectors of one block into the best k so far, in place."""
        k, u = scores.shape[1], questions.astype(np.float64)
        keys, margins = _keys(u, self.vectors[place], self.lengths[place], by)
        worst = scores[:, -1].astype(np.float64)
        if by == "distance":
            worst = (np.square(u).sum(1) - np.square(worst)) / 2
        least = np.nextafter((worst - margins).astype(np.float32), np.float32(-np.inf))
        for q in range(len(u)):
            near = np.flatnonzero(keys[q] > least[q])
            if len(near) > k:
                kth = np.float64(np.partition(keys[q, near], -k)[-k])
                near = near[keys[q, near] >= kth - 2 * margins[q]]
            if len(near):
                exact = [
                    _scores(u[q], self.vectors[place.start + part], by) for part in np.split(near, range(RESCORED, len(near), RESCORED))
                ]
                both = np.concatenate([scores[q], *exact]), np.concatenate([numbers[q], place.start + near])
                best = np.lexsort((both[1], -both[0]))[:k]
                scores[q], numbers[q] = both[0][best], both[1][best]


def _keys(u: np.ndarray, v: np.ndarray, lengths: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (Q, n) in float32 in the order of the scores, but for rounding, and for each question how far that can move one (Q,).

    The sum of H products errs by at most H 2^-24 |u| |v|. Of the distance the key is u.v - |v|^2 / 2 = (|u|^2 - |u - v|^2) / 2.
    """
    size, most = np.linalg.norm(u, axis=1), float(lengths.max())
    if by == "cosine":
        u = np.divide(u, size[:, None], out=np.zeros_like(u), where=size[:, None] > 0)
    keys = u.astype(np.float32) @ v.T
    if by == "dot":
        moved = size * most
    elif by == "cosine":
        keys *= np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        moved = np.float64(size > 0)
    else:
        keys -= np.square(lengths) / 2
        moved = np.square(size + most)
    return keys, ROUNDING * (u.shape[1] + 8) * moved  # 8: for what is done before and after the sum, and for scores that become equal


def _scores(u: np.ndarray, v: np.ndarray, by: str) -> np.ndarray:
    """The scores of some vectors (n, H) for one question (H,), summed in float64."""
    v = v.astype(np.float64)
    if by == "distance":
        return -np.sqrt(np.square(u - v).sum(1)).astype(np.float32)
    dots = (u * v).sum(1)
    if by == "cosine":
        sizes = np.sqrt(np.square(u).sum() * np.square(v).sum(1))
        dots = np.divide(dots, sizes, out=np.zeros_like(dots), where=sizes > 0)
    return dots.astype(np.float32)


# ------------------------------------------------------------------ the command line


def read(path: str | Path, columns: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """(id, text) of every row of a .txt (a text a line), .jsonl, .tsv or .parquet file; the id is that of a column `id`, if there is one.

    Args:
        columns: where the text may stand; the first that a row has is taken.
    Raises: ValueError naming file and row.
    """
    path = Path(path)
    readers = {".txt": _lines, ".tsv": _tsv, ".jsonl": lambda file: sources._rows(file, columns[0]), ".parquet": _parquet}
    if path.suffix not in readers:
        raise ValueError(f"{path}: expected a file that ends in {', '.join(readers)}, got {path.suffix or 'no ending'}")
    for place, row in readers[path.suffix](path):
        held = [row[name] for name in (columns if path.suffix != ".txt" else row) if name in row]
        if not held or not isinstance(held[0], str) or not held[0].strip():
            came = repr(held[0])[:80] if held else f"the columns {', '.join(map(repr, row))}"
            raise ValueError(f"{place}: expected text in {' or '.join(map(repr, columns))}, got {came}")
        yield None if row.get("id") is None else str(row["id"]), held[0]


def _lines(path: Path) -> Iterator[tuple[str, dict]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            place = f"{path.name} line {number}"
            yield place, {"line": sources._decode(line, place).rstrip("\r\n")}


def _tsv(path: Path) -> Iterator[tuple[str, dict]]:
    names = None
    for place, row in _lines(path):
        fields = row["line"].split("\t")
        names = names or fields
        if len(fields) != len(names):
            raise ValueError(f"{place}: expected {len(names)} fields as in the header, got {len(fields)}")
        if fields is not names:
            yield place, dict(zip(names, fields))


def _parquet(path: Path) -> Iterator[tuple[str, dict]]:
    try:
        batches = pq.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=RESCORED)
        rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
        yield from ((f"{path.name} row {number}", row) for number, row in enumerate(rows, 1))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: expected a parquet file, got one that Arrow refuses: {error}") from None
