"""Vectors on disk, and those nearest to a question, found exactly and in bounded memory.

A folder of vectors has `vectors.f32`, (N, H) numbers, and `texts.arrows`, an Arrow stream with the columns id and text,
both memory-mapped, and `vectors.json`, which has their encoder, shape, sizes and hashes.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..io import disk

BY = ("dot", "cosine", "distance", "manhattan")
VECTORS, TEXTS, INFO = "vectors.f32", "texts.arrows", "vectors.json"
ROWS = pa.schema([("id", pa.string()), ("text", pa.large_string())])
SHORTEST, LONGEST = 1e-12, 1e12  # of a vector that is not 0: between them no product or square leaves float32
ROUNDING = 2.0**-23  # twice the largest relative error of one operation in float32
SPARE_ROUNDINGS = 8  # for operations before and after a sum, and for scores that float32 makes equal
CELLS = 1 << 24  # float32 numbers of a table of questions x vectors: 64 MiB
TOGETHER = 1 << 12  # vectors of one question that are compared in float64


class Vectors:
    """Vectors on disk with their texts, memory-mapped.

    `.vectors` (N, H) float32, `.rows` (id, text), and `.info` (vectors.json).
    """

    def __init__(self, folder: Path, info: dict, vectors: np.ndarray, rows: pa.Table):
        self.folder, self.info, self.vectors, self.rows = folder, info, vectors, rows

    @classmethod
    def open(cls, folder: str | Path, verify: bool = True) -> "Vectors":
        """Open a finished folder; the sizes and hashes of its files are checked.

        Args:
            verify: False checks sizes alone. Hashes need a second for every 1 to 2 GB, once in a process and file.
        Raises: FileNotFoundError for an unfinished folder; ValueError, with both values, naming a damaged file.
        """
        folder = Path(folder)
        if not (folder / INFO).is_file():
            stopped = folder.with_name(f".{folder.name}.embedding").is_dir()
            how = "its embedding was stopped, the same command goes on with it" if stopped else f"{INFO} is missing"
            raise FileNotFoundError(f"{folder} holds no finished vectors: {how}")
        info = disk.read_json(folder / INFO)
        shape = _checked_files(folder, info, verify)
        try:
            rows = pa.ipc.open_stream(pa.memory_map(str(folder / TEXTS))).read_all()
            rows.validate()
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{folder / TEXTS} is damaged: {error}") from error
        if rows.schema != ROWS or len(rows) != shape[0]:
            came = f"{len(rows):,} of {rows.schema.names}"
            raise ValueError(f"{folder / TEXTS} is damaged: {shape[0]:,} rows of id and text expected, got {came}")
        return cls(folder, info, np.memmap(folder / VECTORS, "<f4", "r", shape=shape), rows)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Vectors({self.folder.name}: {len(self):,} texts, {self.vectors.shape[1]} dimensions)"

    def must_be_of(self, encoder) -> None:
        """Refuse an encoder that did not make these vectors: its own are not comparable. Raises: ValueError."""
        if encoder.identity != self.info["encoder"]:
            expected, came = self.info["encoder"][:16], encoder.identity[:16]
            raise ValueError(f"{self.folder} was embedded by the encoder {expected}, got {came}")

    def texts(self, numbers: Iterable[int], column: str = "text") -> list[str | None]:
        """The texts of some numbers; with column "id" their ids, None for a text without an id. Raises: IndexError."""
        if wrong := [int(number) for number in numbers if not 0 <= number < len(self)]:
            raise IndexError(f"a number from 0 to {len(self) - 1} expected, got {wrong[0]}")
        return [self.rows[column][int(number)].as_py() for number in numbers]

    @cached_property
    def lengths(self) -> np.ndarray:
        """|v| of every vector, (N,) float32. Raises: ValueError for one that is not finite."""
        norms = _lengths(self.vectors)
        if not np.isfinite(norms).all():
            raise ValueError(f"{self.folder / VECTORS} is damaged: vector {np.isfinite(norms).argmin()} is not finite")
        return norms.astype(np.float32)

    def search(self, questions: np.ndarray, k: int, by: str, block: int = 1 << 16) -> tuple[np.ndarray, np.ndarray]:
        """The k best vectors of each question, exactly, whatever the block size.

        dot: u.v;  cosine: u.v / (|u| |v|), 0 where a vector is 0;  distance: -|u - v|;  manhattan: -sum_i |u_i - v_i|
        A score is summed in float64 and rounded to float32 once; of equal scores the smaller number is better.
        Products in float32 only select what is summed: all vectors that could be among the best, given how far float32 can err.

        Shapes: (Q, H) float32 -> scores (Q, min(k, N)) float32, numbers (Q, min(k, N)) int64; best first
        Args:
            by: what the encoder ranks by, as `nearest.usual_of_vectors` says.
            block: vectors that are compared at a time; memory is bounded by it and by Q x k.
        """
        if by not in BY or k < 1 or block < 1:
            came = f"{by!r}, {k} and {block}"
            raise ValueError(f"by, one of {', '.join(BY)}, k and block of 1 or more expected, got {came}")
        questions = np.asarray(questions)
        questions = sound_vectors(questions, (questions.shape[:1] or (1,)) + self.vectors.shape[1:], "question")
        k = min(k, len(self))
        group = max(1, CELLS // block)
        scores = np.full((len(questions), k), -np.inf, np.float32)
        numbers = np.full((len(questions), k), len(self), np.int64)
        for start in range(0, len(self), block):
            for first in range(0, len(questions), group):
                some = slice(first, first + group)
                self._improve(questions[some], scores[some], numbers[some], start, start + block, by)
        return scores, numbers

    def _improve(self, questions, scores, numbers, start: int, stop: int, by: str) -> None:
        """Put the vectors of one block among the best so far, in place."""
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
                merged_scores = np.append(scores[q], _scores(u[q], v[some], by))
                merged_numbers = np.append(numbers[q], start + some)
                best = np.lexsort((merged_numbers, -merged_scores))[:k]
                scores[q], numbers[q] = merged_scores[best], merged_numbers[best]


def _checked_files(folder: Path, info: dict, verify: bool) -> tuple[int, int]:
    """N and H, once the files have the sizes (and hashes) of vectors.json."""
    for name in (VECTORS, TEXTS):
        path, expected = folder / name, info["files"][name]
        if (came := path.stat().st_size if path.is_file() else 0) != expected["bytes"]:
            raise ValueError(f"{path} is damaged: {expected['bytes']:,} bytes expected, got {came:,}")
        if verify:
            disk.check(path, expected["sha256"])
    return info["texts"], info["dimensions"]


def sound_vectors(vectors, shape: tuple, what: str, first: int = 0) -> np.ndarray:
    """The vectors as float32.

    Args:
        what: what they are of, and `first` the number of the first, for the message.
    Raises: ValueError for another shape, or naming a vector that is not finite or of no sensible length.
    """
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


def _keys(u: np.ndarray, v: np.ndarray, lengths: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (Q, n) in float32 in the order of the scores but for rounding, and how far rounding can move them (Q,).

    A sum of H products errs by at most H 2^-24 |u| |v|. For the distance the key is
    u.v - |v|^2 / 2 = (|u|^2 - |u - v|^2) / 2.
    """
    sizes, longest = np.linalg.norm(u, axis=1), float(lengths.max())
    rounding = ROUNDING * (u.shape[1] + SPARE_ROUNDINGS)
    if by == "manhattan":  # sum_i |u_i - v_i| <= sqrt(H) |u - v|
        keys = np.stack([-np.abs(v - row).sum(1) for row in u.astype(np.float32)])
        return keys, rounding * np.sqrt(u.shape[1]) * (sizes + longest)
    if by == "cosine":
        u = np.divide(u, sizes[:, None], out=np.zeros_like(u), where=sizes[:, None] > 0)
    keys = u.astype(np.float32) @ v.T
    if by == "cosine":
        keys *= np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    elif by == "distance":
        keys -= np.square(lengths) / 2
    scale = {"dot": sizes * longest, "cosine": sizes > 0, "distance": np.square(sizes + longest)}[by]
    return keys, rounding * scale


def _scores(u: np.ndarray, v: np.ndarray, by: str) -> np.ndarray:
    """The scores of some vectors (n, H) for one question (H,), summed in float64."""
    v = v.astype(np.float64)
    if by == "distance":
        return (0 - np.sqrt(np.square(u - v).sum(1))).astype(np.float32)
    if by == "manhattan":
        return (0 - np.abs(u - v).sum(1)).astype(np.float32)
    dots = (u * v).sum(1)
    if by == "cosine":
        sizes = np.sqrt(np.square(u).sum() * np.square(v).sum(1))
        dots = np.divide(dots, sizes, out=np.zeros_like(dots), where=sizes > 0)
    return dots.astype(np.float32)
