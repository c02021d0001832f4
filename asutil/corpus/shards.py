"""Shards of an index that is being built: documents in groups of about SHARD_CHARACTERS, each cleaned, split and tokenised on its own.

A shard is a folder with the arrays of a small index. A build that was stopped keeps its finished shards.
"""

import hashlib
import json
import logging
import multiprocessing
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from ..draws import mix
from ..io import disk, files
from .cleaning import LIMITS as USUAL
from .cleaning import clean, splitter_function
from .tokenizing import tokenized

SHARD_CHARACTERS = 4_000_000
VALIDATION_KEY = b"validation"
LIMITS = ("min_sentence_chars", "min_paragraph_chars", "min_document_chars")  # characters below which text is left out
FORMAT = 2  # of a shard's arrays; 2 has offsets where earlier shards had lengths
MADE_UP = ["Is it one?", "(The 2nd) isn't."]  # sentences that a tokenizer must join exactly
log = logging.getLogger(__name__)


def build_shards(
    documents, tokenizer, out: Path, settings: dict, workers: int, progress: bool
) -> tuple[list[Path], int]:
    """Write the shards of some documents into `out`, and count the documents that were read.

    Args:
        settings: of the index, as in corpus.json; a shard that was made with other settings is made again.
    Raises: ValueError for documents that are no text, and for a tokenizer that does not join sentences exactly.
    """
    backend = tokenizer.backend_tokenizer
    options = {"backend": backend.to_str(), "as_text": backend.encode_special_tokens}
    make = partial(make_shard, **options, settings=settings, out=out)
    folders = []
    read = 0
    with tqdm(desc="index", unit=" documents", disable=not progress) as bar:
        for folder, size in _in_order(make, enumerate(grouped(documents)), workers):
            folders.append(folder)
            read += size
            bar.update(size)
    return folders, read


def _in_order(function: Callable, arguments: Iterable[tuple], workers: int) -> Iterator:
    """The function's results in the order of its arguments: of this process for one worker, else of a pool of processes."""
    if workers < 1:
        raise ValueError(f"workers must be 1 or more, got {workers}")
    if workers == 1:
        yield from (function(*values) for values in arguments)
        return
    # fork, so that a plain script without a __main__ guard can ask for workers; the workers use no threads
    method = "fork" if sys.platform == "linux" else "spawn"
    # Ctrl-C reaches all processes: a worker that it ended in the middle of a message could leave the pool waiting for ever.
    undisturbed = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    with ProcessPoolExecutor(workers, multiprocessing.get_context(method), **undisturbed) as pool:
        waiting = deque()
        try:
            for values in arguments:
                waiting.append(pool.submit(function, *values))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def grouped(documents) -> Iterator[list]:
    """Documents in groups of about SHARD_CHARACTERS: the borders depend on the documents alone."""
    if isinstance(documents, str):
        raise ValueError("documents is an iterable of documents, got one string")
    group = []
    size = 0
    for number, document in enumerate(documents):
        group.append(document)
        size += characters(number, document)
        if size >= SHARD_CHARACTERS:
            yield group
            group = []
            size = 0
    if group:
        yield group


def characters(number: int, document) -> int:
    """The size of a document. Raises: ValueError naming a document that is no text, or whose text cannot be written."""
    parts = [document] if isinstance(document, str) else document
    if not isinstance(parts, list | tuple):
        expected = "text, a list of paragraphs or a list of lists of sentences"
        raise ValueError(f"document {number}: expected {expected}, got {document!r:.80}")
    texts = [text for part in parts for text in (part if isinstance(part, list | tuple) else [part])]
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"document {number}: expected text, got {text!r:.80}")
        files.require_encodable(text, f"document {number}")
    return sum(map(len, texts))


def make_shard(
    number: int, documents: list, backend: str, as_text: bool, settings: dict, out: Path
) -> tuple[Path, int]:
    """Write one shard, unless an earlier build wrote it from the same documents with the same settings.

    Args:
        backend: the description of a `tokenizers.Tokenizer`. as_text: its `encode_special_tokens`, which the description lacks.
    Returns: the shard's folder and the number of its documents.
    """
    folder = out / f"shard-{number:06d}"
    identity = hashlib.sha256(json.dumps([FORMAT, documents, settings], sort_keys=True).encode()).hexdigest()
    if folder.is_dir():
        if _is_whole(folder, identity):
            return folder, len(documents)
        shutil.rmtree(folder)
    if multiprocessing.parent_process():
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
    limits = {name: settings[name] for name in LIMITS}
    arrays = index(documents, _loaded(backend, as_text), settings["splitter"], **limits)
    temporary = out / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name, array in arrays.items():
        np.save(temporary / f"{name}.npy", array)
    disk.write_json(temporary / "shard.json", {"identity": identity, "sha256": disk.hashes(temporary)})
    temporary.rename(folder)
    return folder, len(documents)


def _is_whole(shard: Path, identity: str) -> bool:
    """Whether an earlier build made this shard of the same documents and its files are unchanged."""
    try:
        saved = disk.read_json(shard / "shard.json")
        if saved["identity"] != identity:
            return False
        for name, sha256 in saved["sha256"].items():
            disk.check(shard / name, sha256)
    except (OSError, ValueError) as error:
        log.warning("a finished shard is built again: %s", error)
        return False
    return True


@lru_cache(maxsize=1)  # reading a vocabulary takes a tenth of a shard's time
def _loaded(description: str, as_text: bool):
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(description)
    backend.encode_special_tokens = as_text
    backend.no_truncation()
    backend.no_padding()
    return backend


def index(documents: Iterable, backend, splitter="blingfire", **limits: int) -> dict[str, np.ndarray]:
    """The arrays of the index of a few documents; `limits` as in `laid_out`."""
    sentences, arrays = laid_out(documents, splitter, **limits)
    tokens, lengths = tokenized(backend, sentences)
    _check_joins(backend, sentences[:2], tokens[: lengths[:2].sum()].tolist())
    tokens = tokens.astype(np.uint16 if backend.get_vocab_size() <= 1 << 16 else np.uint32)
    offsets = _offsets(lengths)
    return arrays | {"tokens": tokens, "sentences": offsets, "hashes": sentence_hashes(tokens, offsets)}


def laid_out(
    documents: Iterable, splitter="blingfire", min_sentence_chars=0, **lengths: int
) -> tuple[list[str], dict[str, np.ndarray]]:
    """The sentences of a few documents, and the arrays of the index that need no tokens: paragraphs, documents, document_hashes.

    `lengths` are those of `clean`.
    """
    split = splitter_function(splitter)
    sentences, paragraph_sizes, document_sizes, document_hashes = [], [], [], []
    for document in documents:
        cleaned = clean(document, **lengths)
        paragraphs_before = len(paragraph_sizes)
        for paragraph in cleaned:
            texts = split(paragraph) if isinstance(paragraph, str) else paragraph
            texts = (" ".join(text.split()) for text in texts)
            texts = [text for text in texts if text and len(text) >= min_sentence_chars]
            if texts:
                sentences.extend(texts)
                paragraph_sizes.append(len(texts))
        if len(paragraph_sizes) > paragraphs_before:
            document_sizes.append(len(paragraph_sizes) - paragraphs_before)
            # Of the text by the usual limits, so that runs with other ones hold out the same documents.
            usual = cleaned if USUAL | lengths == USUAL else clean(document) or cleaned
            document_hashes.append(document_hash(usual))
    return sentences, {
        "paragraphs": _offsets(paragraph_sizes),
        "documents": _offsets(document_sizes),
        "document_hashes": np.array(document_hashes, np.uint64),
    }


def _offsets(sizes) -> np.ndarray:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _check_joins(backend, sentences: list[str], apart: list[int]) -> None:
    """Refuse a tokenizer for which the ids of the first two sentences, or of two made-up ones, together are not their ids joined."""
    made_up = [id for sentence in MADE_UP for id in backend.encode(sentence, add_special_tokens=False).ids]
    for texts, ids in ((sentences, apart), (MADE_UP, made_up)):
        together = backend.encode(" ".join(texts), add_special_tokens=False).ids
        if together != ids:
            raise ValueError(
                "a model with this tokenizer cannot be pre-trained here; fine-tuning is possible. Its tokenizer gives other ids to two "
                "sentences together than apart; a byte-level one needs its prefix space "
                f"(load it with asutil.corpus.load_tokenizer): {together[:8]}... against {ids[:8]}..."
            )


def document_hash(paragraphs: list) -> int:
    """Keyed 64-bit hash of a document as `clean` returns it: of its text alone, whatever splits or tokenises it.

    Example:
        >>> document_hash(["One. Two.", "Three."]) == document_hash([["One.", "Two."], ["Three."]])
        True
    """
    text = "\n".join(paragraph if isinstance(paragraph, str) else " ".join(paragraph) for paragraph in paragraphs)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=VALIDATION_KEY).digest(), "little")


def sentence_hashes(tokens: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """64-bit hash of every sentence: sum over its tokens of mix(token, position), so that equal texts and only those agree."""
    lengths = np.diff(offsets)
    positions = np.arange(len(tokens), dtype=np.uint64) - np.repeat(offsets[:-1], lengths).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix(tokens.astype(np.uint64) + (positions << np.uint64(32)) + np.uint64(1))
        sums = np.concatenate([np.zeros(1, np.uint64), mixed.cumsum(dtype=np.uint64)])
        return mix(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.astype(np.uint64))
