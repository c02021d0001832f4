"""Texts embedded once and kept on disk, and those nearest to a question, found exactly and in bounded memory.

A folder of vectors has `vectors.f32`, (N, H) numbers, and `texts.arrows`, an Arrow stream with the columns id and text, both
memory-mapped, and `vectors.json`, which has their encoder, shape, sizes and hashes.

    python -m asutil.tasks.vectors embed answers.jsonl --model RUN --out answers
    python -m asutil.tasks.vectors search answers --model RUN --question "Where does the river rise?"
"""

import argparse
import hashlib
import itertools
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from filelock import FileLock
from tqdm.auto import tqdm

from ..corpus import sources
from ..io import disk, files, hub

BY = ("dot", "cosine", "distance")
ENCODERS = ("transformer", "sentence_transformer", "word_vectors", "infersent", "use")
VECTORS, TEXTS, INFO = "vectors.f32", "texts.arrows", "vectors.json"
ROWS = pa.schema([("id", pa.string()), ("text", pa.large_string())])
SHORTEST, LONGEST = 1e-12, 1e12  # of a vector that is not 0: between them no product or square leaves float32
ROUNDING = 2.0**-23  # twice what one operation in float32 can err, relative to its result
CELLS = 1 << 24  # float32 numbers of a table of questions x vectors: 64 MiB
TOGETHER = 1 << 12  # vectors of one question that are compared in float64, rows of a file, questions of a file
log = logging.getLogger(__name__)


# ------------------------------------------------------------------ embedding


def embed(encoder, texts: Iterable, folder: str | Path, block: int = 1 << 14, progress: bool = True) -> "Vectors":
    """Write the vectors of some texts to a folder, block by block; the same call goes on where it was stopped, or opens what it finished.

    A block that was finished is taken where its texts, all before them and the encoder are the same; from the first other one on, none is.

    Args:
        encoder: anything with `encode(list of texts) -> (n, H)`, `dimensions` and `identity`.
        texts: an iterable of texts, or of (id, text), read once.
        block: texts that are embedded together and held in memory.
    Raises: ValueError naming the text that is none, or whose vector is unsound; FileExistsError for a folder of something else; OSError.
    """
    folder = Path(folder)
    if block < 1:
        raise ValueError(f"block: 1 or more expected, got {block}")
    if isinstance(texts, str):
        raise ValueError("texts is an iterable of texts, got one string")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):  # who comes second finds the folder finished
        finished = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
        part = folder if finished else folder.with_name(f".{folder.name}.embedding")
        part.mkdir(exist_ok=True)
        kept, done = _finished_blocks(part, encoder.dimensions), []
        made_from = hashlib.sha256(
            json.dumps([encoder.identity, encoder.dimensions]).encode()
        )  # goes on over all texts
        rows, count = _rows(texts), 0
        with tqdm(desc="embedding", unit=" texts", disable=not progress, dynamic_ncols=True) as bar:
            while some := list(itertools.islice(rows, block)):
                made_from.update("".join(json.dumps(row) + "\n" for row in some).encode())
                mark = {"texts": count + len(some), "made_from": made_from.hexdigest()}
                if kept and mark.items() <= kept[0].items():
                    done.append(kept.pop(0))
                elif finished:
                    kept = [mark]
                    break
                else:
                    if kept:
                        log.warning(
                            "%s: %d finished blocks were of other texts or of another encoder", folder, len(kept)
                        )
                    kept = []
                    vectors = _sound(
                        encoder.encode([text for _, text in some]), (len(some), encoder.dimensions), "text", count
                    )
                    done.append(mark | {"text_bytes": _write(part, some, vectors, done)})
                    _write_info(part, encoder, done)
                count += len(some)
                bar.update(len(some))
        if finished and kept:
            raise FileExistsError(
                f"{folder} is not what these texts, encoder and block make: take another folder, or delete this one"
            )
        if not done:
            raise ValueError("expected at least one text, got none")
        if not finished:
            files = {
                name: {"bytes": (part / name).stat().st_size, "sha256": hub.sha256(part / name)}
                for name in (VECTORS, TEXTS)
            }
            _write_info(part, encoder, done, files=files)
            if folder.exists():
                folder.rmdir()  # an empty one
            part.rename(folder)
    return Vectors.open(folder)


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


def _finished_blocks(part: Path, dimensions: int) -> list[dict]:
    """The blocks that an embedding finished, also one that was stopped: those that its two files hold to the end."""
    if not (part / INFO).is_file():
        return []
    numbers, text_bytes = ((part / name).stat().st_size if (part / name).is_file() else 0 for name in (VECTORS, TEXTS))
    whole = lambda end: 4 * end["texts"] * dimensions <= numbers and end["text_bytes"] <= text_bytes
    return list(itertools.takewhile(whole, disk.read_json(part / INFO)["blocks"]))


def _write(part: Path, rows: list, vectors: np.ndarray, done: list) -> int:
    """Put a block behind those that are done, over whatever a stopped one left there, and say where its texts end."""
    _put(part / VECTORS, 4 * vectors.shape[1] * done[-1]["texts"] if done else 0, vectors.astype("<f4", copy=False))
    batch = pa.record_batch([list(column) for column in zip(*rows)], schema=ROWS).serialize()
    return _put(part / TEXTS, done[-1]["text_bytes"] if done else 0, *[ROWS.serialize()] * (not done), batch)


def _put(path: Path, at: int, *pieces) -> int:
    try:
        with path.open("r+b" if path.exists() else "w+b") as stream:
            stream.seek(at)
            stream.writelines(pieces)
            stream.truncate()
            stream.flush()
            os.fsync(stream.fileno())
            return stream.tell()
    except OSError as error:
        reason = f"{path} could not be written ({error.strerror or error}); finished blocks are kept for the next try"
        raise OSError(error.errno, reason) from error


def _write_info(part: Path, encoder, done: list, **more) -> None:
    info = {
        "encoder": encoder.identity,
        "dimensions": encoder.dimensions,
        "texts": done[-1]["texts"],
        "blocks": done,
        **more,
    }
    disk.write_json(part / INFO, info)


def _sound(vectors, shape: tuple, what: str, first: int = 0) -> np.ndarray:
    """The vectors as float32. Raises: ValueError for another shape, or naming one that is not finite or of no sensible length."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.shape != shape:
        raise ValueError(f"vectors of the shape {shape} expected for {shape[0]} {what}s, got {vectors.shape}")
    lengths = _lengths(vectors)
    bad = ~((lengths == 0) | ((lengths > SHORTEST) & (lengths < LONGEST)))
    if bad.any():
        number, length = first + int(bad.argmax()), lengths[bad.argmax()]
        raise ValueError(f"{what} {number}: expected a vector of length 0 or {SHORTEST} to {LONGEST}, got {length}")
    return vectors


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("nh,nh->n", vectors, vectors, dtype=np.float64))


# ------------------------------------------------------------------ searching


class Vectors:
    """Vectors on disk and what they are of, memory-mapped: `.vectors` (N, H) float32, `.rows` (id, text), and `.info` (vectors.json)."""

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
            stopped = folder.with_name(f".{folder.name}.embedding").is_dir()
            how = "its embedding was stopped, the same command goes on with it" if stopped else f"{INFO} is missing"
            raise FileNotFoundError(f"{folder} holds no finished vectors: {how}")
        info = disk.read_json(folder / INFO)
        try:
            shape = int(info["texts"]), int(info["dimensions"])
            held = {
                name: (int(info["files"][name]["bytes"]), str(info["files"][name]["sha256"]))
                for name in (VECTORS, TEXTS)
            }
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"{folder / INFO} is damaged: {type(error).__name__}: {error}") from error
        if min(shape) < 1 or 4 * shape[0] * shape[1] != held[VECTORS][0]:
            raise ValueError(
                f"{folder / INFO} is damaged: {shape[0]} texts with {shape[1]} dimensions in {held[VECTORS][0]:,} bytes"
            )
        for name, (size, sha256) in held.items():
            path = folder / name
            if (came := path.stat().st_size if path.is_file() else 0) != size:
                raise ValueError(f"{path} is damaged: {size:,} bytes expected, got {came:,}")
            if verify and hub.sha256(path) != sha256:
                raise ValueError(f"{path} is damaged: sha256 {sha256[:16]} expected, got {hub.sha256(path)[:16]}")
        try:
            rows = pa.ipc.open_stream(pa.memory_map(str(folder / TEXTS))).read_all()
            rows.validate()
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{folder / TEXTS} is damaged: {error}") from error
        if rows.schema != ROWS or len(rows) != shape[0]:
            raise ValueError(
                f"{folder / TEXTS} is damaged: {shape[0]:,} rows of id and text expected, got {len(rows):,} of {rows.schema.names}"
            )
        return cls(folder, info, np.memmap(folder / VECTORS, "<f4", "r", shape=shape), rows)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Vectors({self.folder.name}: {len(self):,} texts, {self.vectors.shape[1]} dimensions)"

    def must_be_of(self, encoder) -> None:
        """Raises: ValueError where another encoder made these vectors, so that they have nothing to do with its own."""
        if encoder.identity != self.info["encoder"]:
            raise ValueError(
                f"{self.folder} was embedded by the encoder {self.info['encoder'][:16]}, got {encoder.identity[:16]}"
            )

    def texts(self, numbers: Iterable[int], column: str = "text") -> list[str | None]:
        """The texts of some numbers; of the column "id" their ids, None where none was given. Raises: IndexError."""
        if wrong := [int(number) for number in numbers if not 0 <= number < len(self)]:
            raise IndexError(f"a number from 0 to {len(self) - 1} expected, got {wrong[0]}")
        return [self.rows[column][int(number)].as_py() for number in numbers]

    @cached_property
    def lengths(self) -> np.ndarray:
        """|v| of every vector, (N,) float32. Raises: ValueError for one that is not finite."""
        found = _lengths(self.vectors)
        if not np.isfinite(found).all():
            raise ValueError(f"{self.folder / VECTORS} is damaged: vector {np.isfinite(found).argmin()} is not finite")
        return found.astype(np.float32)

    def search(
        self, questions: np.ndarray, k: int, by: str = "dot", block: int = 1 << 16
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best vectors of each question, exactly, whatever the block size.

        dot: u.v;  cosine: u.v / (|u| |v|), 0 where a vector is 0;  distance: -|u - v|
        A score is summed in float64 and rounded to float32 once; of equal ones the smaller number is better. Products in float32 only
        choose what is summed: all that could be among the best, as far as they can err.

        Shapes: (Q, H) float32 -> scores (Q, min(k, N)) float32, numbers (Q, min(k, N)) int64; best first
        Args:
            block: vectors that are compared at a time; memory is bounded by it and by Q x k.
        """
        if by not in BY or k < 1 or block < 1:
            raise ValueError(
                f"by, one of {', '.join(BY)}, k and block of 1 or more expected, got {by!r}, {k} and {block}"
            )
        questions = np.asarray(questions)
        questions = _sound(questions, (questions.shape[:1] or (1,)) + self.vectors.shape[1:], "question")
        k, group = min(k, len(self)), max(1, CELLS // block)
        scores, numbers = (
            np.full((len(questions), k), -np.inf, np.float32),
            np.full((len(questions), k), len(self), np.int64),
        )
        for start in range(0, len(self), block):
            for first in range(0, len(questions), group):
                some = slice(first, first + group)
                self._improve(questions[some], scores[some], numbers[some], start, start + block, by)
        return scores, numbers

    def _improve(self, questions, scores, numbers, start: int, stop: int, by: str) -> None:
        """Let the vectors of one block in among the best so far, in place."""
        k, u, v = scores.shape[1], questions.astype(np.float64), self.vectors[start:stop]
        keys, margins = _keys(u, v, self.lengths[start:stop], by)
        worst = scores[:, -1].astype(np.float64)
        if by == "distance":
            worst = (np.square(u).sum(1) - np.square(worst)) / 2
        least = (worst - margins).astype(np.float32)
        for q in range(len(u)):
            near = np.flatnonzero(keys[q] > least[q])
            if len(near) > k:
                kth = np.float64(np.partition(keys[q, near], -k)[-k])
                near = near[keys[q, near] >= kth - 2 * margins[q]]
            for some in np.split(near, range(TOGETHER, len(near), TOGETHER)):
                both = np.append(scores[q], _scores(u[q], v[some], by)), np.append(numbers[q], start + some)
                best = np.lexsort((both[1], -both[0]))[:k]
                scores[q], numbers[q] = both[0][best], both[1][best]


def _keys(u: np.ndarray, v: np.ndarray, lengths: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (Q, n) in float32 in the order of the scores, but for rounding, and for each question how far that can move one (Q,).

    A sum of H products errs by at most H 2^-24 |u| |v|. For the distance the key is u.v - |v|^2 / 2 = (|u|^2 - |u - v|^2) / 2.
    """
    size, most = np.linalg.norm(u, axis=1), float(lengths.max())
    if by == "cosine":
        u = np.divide(u, size[:, None], out=np.zeros_like(u), where=size[:, None] > 0)
    keys = u.astype(np.float32) @ v.T
    if by == "cosine":
        keys *= np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    elif by == "distance":
        keys -= np.square(lengths) / 2
    scale = {"dot": size * most, "cosine": size > 0, "distance": np.square(size + most)}[by]
    return keys, ROUNDING * (
        u.shape[1] + 8
    ) * scale  # 8: for what comes before and after the sum, and scores that float32 makes equal


def _scores(u: np.ndarray, v: np.ndarray, by: str) -> np.ndarray:
    """The scores of some vectors (n, H) for one question (H,), summed in float64."""
    v = v.astype(np.float64)
    if by == "distance":
        return (0 - np.sqrt(np.square(u - v).sum(1))).astype(np.float32)
    dots = (u * v).sum(1)
    if by == "cosine":
        sizes = np.sqrt(np.square(u).sum() * np.square(v).sum(1))
        dots = np.divide(dots, sizes, out=np.zeros_like(dots), where=sizes > 0)
    return dots.astype(np.float32)


# ------------------------------------------------------------------ the command line


def read(path: str | Path, columns: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """(id, text) of every row of a .txt (a text a line), .tsv, .jsonl or .parquet file; the id is that of a column `id`, if there is one.

    Args:
        columns: where the text may stand; the first that a row has is taken.
    Raises: ValueError naming file and row.
    """
    path = Path(path)
    readers = {
        ".txt": _lines,
        ".tsv": _lines,
        ".jsonl": lambda path: sources.read_rows(path, columns[0]),
        ".parquet": _parquet,
    }
    if path.suffix not in readers:
        raise ValueError(f"{path}: expected a file that ends in {', '.join(readers)}, got {path.suffix or 'no ending'}")
    for place, row in readers[path.suffix](path):
        name = next((name for name in ("line", *columns) if name in row), None)
        if not isinstance(row.get(name), str) or not row[name].strip():
            came = f"the columns {', '.join(row)}" if name is None else f"{row[name]!r:.80}"
            raise ValueError(f"{place}: expected text in {name or ' or '.join(columns)}, got {came}")
        yield None if row.get("id") is None else str(row["id"]), row[name]


def _lines(path: Path) -> Iterator[tuple[str, dict]]:
    names = None if path.suffix == ".tsv" else ["line"]
    for place, line in files.lines(path):
        fields = line.split("\t", -1 if path.suffix == ".tsv" else 0)
        if len(fields) != len(names or fields):
            raise ValueError(f"{place}: expected {len(names)} fields as in the header, got {len(fields)}")
        if names:
            yield place, dict(zip(names, fields))
        names = names or fields


def _parquet(path: Path) -> Iterator[tuple[str, dict]]:
    return files.rows(files.batches(files.opened(path), path, TOGETHER), path)


def _loaded(kind: str, name: str):
    """The encoder that the command line names; torch is imported here, not with the module."""
    from ..models import elsewhere, embedder

    return embedder.load(name) if kind == "transformer" else elsewhere.load(kind, name)


def _search(given) -> None:
    from . import nearest

    found = Vectors.open(given.folder, given.verify)
    encoder = _loaded(given.encoder, given.model)
    found.must_be_of(encoder)
    by = given.by or nearest.usual(encoder)
    typed = (line.strip() for line in sys.stdin if line.strip())
    asked = given.question or (
        (text for _, text in read(given.questions, ("question", "text"))) if given.questions else typed
    )
    asked, together = iter(asked), 1 if asked is typed and sys.stdin.isatty() else TOGETHER
    while some := list(itertools.islice(asked, together)):
        for question, scores, numbers in zip(some, *found.search(encoder.encode(some), given.k, by)):
            print(*[] if given.question and len(given.question) == 1 else [f"\n{_shown(question)}\n"], end="")
            rows = zip(scores, numbers, found.texts(numbers, "id"), found.texts(numbers))
            for rank, (score, number, name, text) in enumerate(rows, 1):
                print(
                    rank, f"{score:.4f}", number if name is None else _shown(name), _shown(text), sep="\t", flush=True
                )


def _shown(text: str) -> str:
    """On one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asutil.tasks.vectors", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument(
        "--model", required=True, help="a run of notebooks/embed.ipynb, or a folder that one was saved in"
    )
    model.add_argument(
        "--encoder", default=ENCODERS[0], choices=ENCODERS, help="default: transformer, a trained one; else untrained"
    )
    embeds = commands.add_parser(
        "embed", parents=[model], help="embed the texts of a file; the same command goes on where it was stopped"
    )
    embeds.add_argument(
        "file", help=".txt with a text a line, or .tsv, .jsonl, .parquet with a column answer or text, and id if any"
    )
    embeds.add_argument("--out", type=Path, required=True, help="the folder to write vectors and texts into")
    finds = commands.add_parser(
        "search", parents=[model], help="the nearest texts of questions: rank, score, id or number from 0, text"
    )
    finds.add_argument("folder", help="what embed wrote, with the same model")
    asked = finds.add_mutually_exclusive_group()
    asked.add_argument(
        "--question", action="append", help="may be given several times; without any, a line of the input is a question"
    )
    asked.add_argument("--questions", help="a file of them, as embed takes; its column is question or text")
    finds.add_argument("--k", type=int, default=10, help="how many texts a question (default: %(default)s)")
    finds.add_argument("--by", choices=BY, help="default: distance for a siamese or triplet network, else cosine")
    finds.add_argument("--verify", action="store_true", help="check the hashes of the folder's files first")
    given = parser.parse_args()
    try:
        if given.command == "search":
            _search(given)
        else:
            print(embed(_loaded(given.encoder, given.model), read(given.file, ("answer", "text")), given.out))
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
