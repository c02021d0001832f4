"""The arrays of an index on disk: concatenated from small indexes, opened and checked, and read in the order of their positions."""

from pathlib import Path

import numpy as np

from ..io import disk
from .tokenizing import gathered

ARRAYS = ("tokens", "sentences", "paragraphs", "documents", "hashes", "document_hashes")
OFFSETS = ("sentences", "paragraphs", "documents")  # arrays that are one longer than what they count
COUNTED = ("documents", "paragraphs", "sentences", "tokens")
VERIFIED_BYTES = 2 << 30  # larger arrays are not hashed when an index is opened


def concatenate(folders: list[Path], out: Path) -> dict[str, int]:
    """Write the arrays of small indexes, in their order, as the arrays of one index into `out`.

    The arrays are written, not mapped, so that a full disk ends in an error and not in a SIGBUS.
    Returns: how many documents, paragraphs, sentences and tokens the index has.
    """
    lengths = {}
    for name in ARRAYS:
        is_offsets = name in OFFSETS
        paths = [folder / f"{name}.npy" for folder in folders]
        lengths[name] = sum(len(_mapped(path)) - is_offsets for path in paths)
        dtype = _mapped(paths[0]).dtype
        description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False}
        with (out / f"{name}.npy").open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, description | {"shape": (lengths[name] + is_offsets,)})
            end = np.zeros(1, dtype)
            if is_offsets:
                end.tofile(stream)
            for array in map(_mapped, paths):
                if is_offsets:
                    shifted = array + end
                    end = shifted[-1:]
                    array = shifted[1:]
                array.tofile(stream)
    return {name: lengths[name] for name in COUNTED}


def open_arrays(folder: Path, sums: dict[str, str]) -> dict[str, np.ndarray]:
    """The memory-mapped arrays of a folder. Those of up to `VERIFIED_BYTES` are checked by their sha256.

    What was checked was read, so it is in memory: these are given as plain arrays, which `read_ranges` reads in any order.
    Raises: ValueError naming a damaged file.
    """
    arrays = {}
    for name in ARRAYS:
        path = folder / f"{name}.npy"
        small = path.is_file() and path.stat().st_size <= VERIFIED_BYTES
        if small:
            disk.check(path, str(sums.get(name)))
        try:
            arrays[name] = np.asarray(_mapped(path)) if small else _mapped(path)
        except Exception as error:  # numpy passes on whatever a damaged header ends in
            raise ValueError(
                f"{path} is damaged, cut short or a pickle, which is refused: build the index again ({error})"
            ) from error
    return arrays


def _mapped(path: Path) -> np.memmap:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def read_ranges(tokens, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The tokens of many ranges, one range after the other; for a position outside the array, the nearest token.

    An array on disk is read in the order of its positions, each token once: a slow disk never goes back to a block.
    Shapes: (R,), (R,) -> (sum of lengths,)

    Example:
        >>> read_ranges(np.arange(10, 20), np.array([5, 0]), np.array([2, 3]))
        array([15, 16, 10, 11, 12])
    """
    if not isinstance(tokens, np.memmap) or not len(starts):
        return np.asarray(tokens).take(gathered(starts, lengths), mode="clip")
    order = np.argsort(starts)
    begins = starts[order]
    ends = (starts + lengths)[order]
    reached = np.maximum.accumulate(np.append(begins[0], ends[:-1]))  # where the ranges before end
    fresh = np.maximum(begins, reached)
    sizes = np.maximum(ends - fresh, 0)
    read = np.asarray(tokens.take(gathered(fresh, sizes), mode="clip"))
    positions = np.empty_like(starts)
    positions[order] = sizes.cumsum() - sizes - np.maximum(reached - begins, 0)
    return read[gathered(positions, lengths)]
