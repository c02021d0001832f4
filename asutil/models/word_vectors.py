"""Averaged word vectors: GloVe and fastText files, read once and then mapped from the disk."""

import logging
import re
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import platformdirs

from ..io import checkpoints, disk, hub, remote

NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WORD = re.compile(r"\w+?(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:[.,]\w+)*|[^\w\s]")
log = logging.getLogger(__name__)


def words(text: str) -> list[str]:
    """Words and punctuation marks in order: n't, 's, 're, 've, 'll, 'd, 'm are words, 3.5 and 1,000 stay whole.

    Deviation: D-85.

    Example:
        >>> words("Don't pay $1,000 (it's a well-known trick)...")
        ['Do', "n't", 'pay', '$', '1,000', '(', 'it', "'s", 'a', 'well', '-', 'known', 'trick', ')', '.', '.', '.']
    """
    return WORD.findall(text)


class WordVectors:
    """GloVe and fastText: a text is the average of its words' vectors.

    v = (1 / |W|) sum_{w in W} e_w,  W the words of the text that have a vector, with repetitions; 0 where W is empty
    Texts are lower-cased where at most one word in a hundred of the vocabulary has a capital letter. The text file is read once; after
    that its vectors are mapped from the disk, and only its words are in memory.
    Paper: asbert, section 4.4.
    Args:
        model: a file of vectors, or a folder of the disk or of the mirror with one such file (.txt or .vec).
        cache: folder for the vectors once they are read; the user's cache folder where it is left out.
    Raises: FileNotFoundError for an unknown name; ValueError for a damaged file, with its line.
    Deviation: D-85.
    """

    def __init__(self, model: str | Path, cache: str | Path | None = None):
        self.file = _vectors_file(model)
        self._sha256 = hub.sha256(self.file)
        cache = Path(cache or platformdirs.user_cache_path("asutil"))
        folder = _converted(self.file, cache / f"word_vectors_{self._sha256[:12]}")
        try:
            self.vectors = np.asarray(np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{folder} is damaged, or a pickle, which is refused: delete it, and {self.file} is read again"
            ) from error
        self.dimensions = self.vectors.shape[1]
        self.parameters_learnt = self.vectors.size
        vocabulary = (folder / "words.txt").read_bytes().decode().split("\n")[:-1]
        # The first row of a word that is listed twice.
        self.row_of = {word: row for row, word in reversed([*enumerate(vocabulary)])}
        self.lower_case = 100 * sum(word != word.lower() for word in vocabulary) <= len(vocabulary)

    @property
    def identity(self) -> str:
        return checkpoints.fingerprint_of_weights(["word_vectors", self._sha256, WORD.pattern, self.lower_case])

    def rows(self, text: str) -> list[int]:
        """The rows of a text's words that have a vector, in order."""
        rows = (self.row_of.get(word) for word in words(text.lower() if self.lower_case else text))
        return [row for row in rows if row is not None]

    def encode(self, texts: list[str]) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, H) float32"""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        empty = 0
        for n, text in enumerate(texts):
            rows = self.rows(text)
            if rows:
                vectors[n] = self.vectors[rows].mean(0, dtype=np.float64)
            empty += not rows
        if empty:
            log.warning("%s: %d of %d texts have no word with a vector: theirs is 0", self.file.name, empty, len(texts))
        return vectors


def local_path(model: str | Path) -> Path:
    """A file or folder as it is, else a folder of the mirror. Raises: FileNotFoundError."""
    path = remote.path_of(model)
    path = path if path.exists() else hub.mirror(str(model))
    if path is None:
        message = f"{model}: no such file or folder"
        if not str(model).startswith(("/", ".", "~")):
            message += f", and {hub.unreachable(str(model), LookupError('this encoder reads local files'))}"
        raise FileNotFoundError(message)
    return path


def _vectors_file(model: str | Path) -> Path:
    path = local_path(model)
    if path.is_file():
        return path
    vectors = sorted(file for file in path.iterdir() if file.suffix in (".txt", ".vec"))
    if len(vectors) != 1:
        names = ", ".join(file.name for file in vectors) or "none"
        raise ValueError(f"{path}: one file of word vectors (.txt or .vec) expected, got {names}")
    return vectors[0]


def _converted(file: Path, folder: Path) -> Path:
    """The folder with a file's `vectors.npy` and `words.txt` (one word a line, in the same order)."""
    with disk.lock_beside(folder):
        if not folder.is_dir():
            with disk.whole_folder(folder) as part:
                try:
                    _convert(file, part)
                except ValueError:
                    shutil.rmtree(part)  # it can have gigabytes
                    raise
    return folder


def _convert(file: Path, folder: Path) -> None:
    """Write a file's vectors and words. They are written, not mapped, so that a full disk ends in an error and not in a SIGBUS."""
    count, dimensions, header = _shape(file)
    description = {"descr": "<f4", "fortran_order": False, "shape": (count, dimensions)}
    with (folder / "words.txt").open("wb") as vocabulary, (folder / "vectors.npy").open("wb") as table:
        np.lib.format.write_array_header_1_0(table, description)
        for number, line in islice(_lines(file), header, None):
            try:
                word, vector = _parsed(line, dimensions)
            except ValueError as error:
                expected = f"a word and {dimensions} finite numbers expected"
                raise ValueError(f"{file}, line {number}: {expected} ({error})") from error
            vocabulary.write(word + b"\n")
            table.write(vector.tobytes())


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, numbered from 1. Bytes are split at line feeds alone; text is split at characters that can be words."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.rstrip(b" \r\n")


def _shape(file: Path) -> tuple[int, int, int]:
    """The number of words, the dimensions, and the lines of the header: fastText has one of two whole numbers, `N D`."""
    _, first_line = next(_lines(file), (0, b""))
    first = first_line.split(b" ")
    lines = sum(1 for _ in _lines(file))
    header = len(first) == 2 and all(piece.isdigit() for piece in first)
    expected, dimensions = map(int, first) if header else (lines, len(first) - 1)
    if dimensions < 1 or not lines - header:
        raise ValueError(f"{file}, line 1: a word and its numbers expected, got {b' '.join(first)[:60] or 'nothing'}")
    if expected != lines - header:
        raise ValueError(f"{file}: {expected:,} words expected by its first line, got {lines - header:,}")
    return expected, dimensions, int(header)


def _parsed(line: bytes, dimensions: int) -> tuple[bytes, np.ndarray]:
    """A word, which may have spaces in it, and its numbers."""
    word, *values = line.rsplit(b" ", dimensions)
    if len(values) != dimensions or (b" " in word and NUMBER.fullmatch(word.rsplit(b" ", 1)[1])):
        raise ValueError(f"got {line.count(b' ')} values")
    word.decode()
    numbers = np.array([float(value) for value in values])
    if not (np.abs(numbers) <= np.finfo(np.float32).max).all():
        raise ValueError(f"got {next(value for value in numbers if not abs(value) <= np.finfo(np.float32).max)}")
    return word, numbers.astype("<f4")
