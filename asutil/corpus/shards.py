"""The arrays of an index on disk: opened and checked, those of many shards as one, and tokens read in the order of their place."""

from pathlib import Path

import numpy as np

from ..io import disk, hub
from .tokenizing import gathered

ARRAYS = ("tokens", "sentences", "paragraphs", "documents", "hashes", "document_hashes")
VERIFIED_BYTES = 2 << 30  # arrays up to this size, of all shards together, are checked by hash whenever they are opened


def opened(folder: Path, sums: dict, verified=VERIFIED_BYTES) -> dict[str, np.ndarray]:
    """The memory-mapped arrays of a folder, those of up to `verified` bytes checked.

    Raises: ValueError naming a damaged file, or an index of an earlier format.
    """
    if "document_hashes" not in sums:
        raise ValueError(
            f"{folder} was built before documents had hashes, which say what is held out: delete it and build it again"
        )
    found = {}
    for name in ARRAYS:
        path = folder / f"{name}.npy"
        if path.is_file() and path.stat().st_size <= verified and hub.sha256(path) != sums[name]:
            raise ValueError(
                f"{path} is damaged: sha256 {hub.sha256(path)[:16]}, corpus.json says {str(sums[name])[:16]}"
            )
        try:
            found[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # numpy hands on whatever reading a damaged header ends in
            raise ValueError(
                f"{path} is damaged, cut short or a pickle, which is refused: build the index again ({error})"
            ) from error
    return found


def joined(folder: Path, sums: dict) -> dict:
    """The arrays of many indexes as those of one: tokens stay where they are, offsets and hashes are put together in memory.

    Args:
        sums: name of a shard -> sha256 of its corpus.json, which has those of its arrays, in the order of the documents.
    Raises: ValueError, with both hashes, for a shard that is missing or damaged.
    """
    parts = []
    for name, expected in sums.items():
        path = folder / name / "corpus.json"
        came = f"sha256 {hub.sha256(path)[:16]}" if path.is_file() else "there is no such file"
        if not path.is_file() or hub.sha256(path) != expected:
            raise ValueError(f"{path} is missing or damaged: {came}, the corpus.json above it says {expected[:16]}")
        parts.append(opened(path.parent, disk.read_json(path)["sha256"], VERIFIED_BYTES // len(sums)))
    found = {name: np.concatenate([part[name] for part in parts]) for name in ("hashes", "document_hashes")}
    found["tokens"] = Pieces([part["tokens"] for part in parts])
    for name in ("sentences", "paragraphs", "documents"):
        starts = np.cumsum([0] + [int(part[name][-1]) for part in parts])
        found[name] = np.concatenate([[0], *(part[name][1:] + start for part, start in zip(parts, starts))])
    return found


class Pieces:
    """Arrays on disk that are read as one, laid end to end, without being copied: `[number]`, `[slice]`, `[numbers]`, `take`, `len`."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays, self.dtype = [np.asarray(array) for array in arrays], arrays[0].dtype
        self.begins = np.cumsum([0, *map(len, arrays)])
        self.shape = (int(self.begins[-1]),)

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return np.concatenate(self.arrays).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, at):
        if not isinstance(at, slice):
            return self.take(at)[()]
        start, stop, step = at.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        inside = range(np.searchsorted(self.begins, start, side="right") - 1, np.searchsorted(self.begins, stop))
        found = [self.arrays[n][max(start - self.begins[n], 0) : stop - self.begins[n]] for n in inside]
        return np.concatenate([np.zeros(0, self.dtype), *found])

    def take(self, numbers, mode="raise") -> np.ndarray:
        """What stands at some places, each array read once and in order. Raises: IndexError, unless mode is `clip`."""
        numbers = np.asarray(numbers)
        if mode == "clip":
            numbers = numbers.clip(0, len(self) - 1)
        elif numbers.size and not -len(self) <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"places are 0 to {len(self) - 1}, got {numbers.min()} to {numbers.max()}")
        flat = numbers.ravel() % max(len(self), 1)
        order = np.argsort(flat, kind="stable")
        flat, found = flat[order], np.empty(len(flat), self.dtype)
        borders = np.searchsorted(flat, self.begins)
        for n in np.flatnonzero(np.diff(borders)):
            rows = slice(borders[n], borders[n + 1])
            found[order[rows]] = self.arrays[n][flat[rows] - self.begins[n]]
        return found.reshape(numbers.shape)


def taken(tokens, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The tokens of many ranges, one range after the other; of a place outside, the nearest one's.

    What is on disk is read in the order of its place there, each token once: where random reads are slow, no block is come back to.
    Shapes: (R,), (R,) -> (sum of lengths,)

    Example:
        >>> taken(np.arange(10, 20), np.array([5, 0]), np.array([2, 3]))
        array([15, 16, 10, 11, 12])
    """
    held = tokens if isinstance(tokens, Pieces) else np.asarray(tokens)
    if not isinstance(tokens, np.memmap | Pieces) or not len(starts):
        return held.take(gathered(starts, lengths), mode="clip")
    order = np.argsort(starts)
    begins, ends = starts[order], (starts + lengths)[order]
    reached = np.maximum.accumulate(np.append(begins[0], ends[:-1]))  # the end of what ranges before have read
    fresh = np.maximum(begins, reached)
    sizes = np.maximum(ends - fresh, 0)
    found = held.take(gathered(fresh, sizes), mode="clip")
    at = np.empty_like(starts)
    at[order] = sizes.cumsum() - sizes - np.maximum(reached - begins, 0)
    return found[gathered(at, lengths)]
