"""Documents -> clean paragraphs -> sentences -> a memory-mapped token index on disk.

The index is flat arrays: `tokens`, and int64 offsets `sentences` (into tokens), `paragraphs` (into sentences) and `documents` (into
paragraphs), each offset array one longer than what it counts; `hashes` has a 64-bit hash of every sentence, `document_hashes` one of
every document's cleaned text. `corpus.json` says how it was made and has the sha256 of every array; it is written last, so that a
folder without it is never read.
"""

import hashlib
import json
import logging
import multiprocessing
import os
import re
import shutil
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from filelock import FileLock

from ..draws import mix
from ..io import disk, hub
from .cleaning import MIN_DOCUMENT, MIN_PARAGRAPH, clean, splitter_function
from .shards import ARRAYS, joined, opened
from .sources import documents, fingerprint, shown
from .tokenizing import tokenized

SHARD_CHARACTERS = 4_000_000
VALIDATION_SHARE, MIN_VALIDATION, VALIDATION_KEY = 0.02, 2, b"validation"
FORMAT = 2  # of an index: 2 has the hashes of documents
log = logging.getLogger(__name__)


class EmptyCorpus(ValueError):
    """No document was kept of `read`."""

    def __init__(self, read: int, source: str = ""):
        needs = f"(a document needs {MIN_DOCUMENT} characters in paragraphs of {MIN_PARAGRAPH} or more)"
        super().__init__(f"empty corpus: {read} documents read, none kept {needs}{source and f': {source}'}")
        self.read = read


# ------------------------------------------------------------------ building


def build(
    documents,
    tokenizer,
    out,
    splitter="blingfire",
    min_sentence_chars=0,
    workers=1,
    source="",
    licence="",
    progress=False,
):
    """Write the index of `documents` to the folder `out`; the same bytes for any number of workers.

    A build that was stopped goes on at its first unfinished shard.

    Args:
        documents: iterable of documents as `clean` takes them.
        tokenizer: a fast tokenizer; byte-level ones with a prefix space (`tokenizers.load_tokenizer` sees to it).
        splitter: `blingfire`, or `nltk` (contextual_as2), whose data are installed apart.
        min_sentence_chars: shorter sentences are left out (contextual_as2 takes 20).
        workers: processes that clean, split and tokenise.
    Returns: the opened Corpus.
    Raises: ValueError for an empty corpus or a tokenizer that does not join sentences exactly; OSError naming the path; LookupError for
        a splitter without its data.
    """
    splitter_function(splitter)  # before anything is read or written
    out = Path(out)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise FileExistsError(f"{out} exists already: open it with Corpus.open, or delete it to build again")
    parts = out.with_name(f".{out.name}.building")
    parts.mkdir(parents=True, exist_ok=True)
    settings = {
        "format": FORMAT,
        "tokenizer": Path(tokenizer.name_or_path).name or "unnamed",
        "tokenizer_sha256": tokenizer_hash(tokenizer),
        "splitter": splitter,
        "min_sentence_chars": min_sentence_chars,
        "min_paragraph_chars": MIN_PARAGRAPH,
        "min_document_chars": MIN_DOCUMENT,
        "source": source,
        "licence": licence,
    }
    with disk.naming(out, "writing the index {path} failed ({error}); finished shards are kept for the next try"):
        shards = _build_shards(documents, tokenizer, parts, settings, workers, progress)
        counts = _merge(shards, parts, source)
        tokenizer.save_pretrained(parts / "tokenizer")
        sums = {name: hub.sha256(parts / f"{name}.npy") for name in ARRAYS}
        disk.write_json(parts / "corpus.json", {**settings, **counts, "sha256": sums})
        for shard in [
            *parts.glob("shard-*"),
            *parts.glob(".shard-*"),
        ]:  # also those of an earlier try with more documents
            shutil.rmtree(shard)
        os.sync()
        parts.rename(out)
    return Corpus.open(out)


def prepare(source, tokenizer, folder, **options) -> "Corpus":
    """The index of a named source under `folder`, built at the first call and opened afterwards; an index itself is only opened.

    Its name has a hash of the source's fingerprint, the tokenizer and the options, so that changed data is another index.
    """
    chosen = {
        name: options.pop(name, None)
        for name in ("split", "limit", "text_column", "paragraph_separator", "exclude_titles")
    }
    chosen = {name: value for name, value in chosen.items() if value}
    named = {name: value for name, value in options.items() if name not in {"workers", "progress"}}
    if (Path(source) / "corpus.json").is_file():
        return _as_built(Corpus.open(source, tokenizer), chosen | named)
    identity = json.dumps([FORMAT, fingerprint(source), tokenizer_hash(tokenizer), chosen, named], sort_keys=True)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", str(source))[-40:].strip("-")
    out = Path(folder) / f"{slug}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    out.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(out.with_name(f".{out.name}.lock")):  # runs that start together build it once
        if not out.is_dir():
            build(documents(source, **chosen), tokenizer, out, source=shown(source), **options)
    return Corpus.open(out, tokenizer)


def _as_built(index, options):
    for name, value in options.items():
        if index.info.get(name) != value:
            raise ValueError(
                f"{name}: the index {index.folder.name} was built with {index.info.get(name)!r}, got {value!r}"
            )
    return index


def _build_shards(documents, tokenizer, parts, settings, workers, progress):
    from tqdm.auto import tqdm

    backend = tokenizer.backend_tokenizer
    work = partial(
        _shard, backend=backend.to_str(), as_text=backend.encode_special_tokens, settings=settings, parts=parts
    )
    shards, waiting = [], deque()
    bar = tqdm(desc="index", unit=" documents", disable=not progress)
    with _pool(workers) as submit:
        for number, texts in enumerate(_grouped(documents)):
            waiting.append((len(texts), submit(work, number, texts)))
            while len(waiting) > 2 * workers:
                _finish(waiting, shards, bar)
        while waiting:
            _finish(waiting, shards, bar)
    bar.close()
    return shards


def _finish(waiting, shards, bar):
    size, result = waiting.popleft()
    shards.append(result())
    bar.update(size)


class _pool:
    """`submit(function, *arguments) -> result getter`, in this process for one worker, else in a pool of processes."""

    def __init__(self, workers):
        if workers < 1:
            raise ValueError(f"workers must be 1 or more, got {workers}")
        # fork, so that a plain script without a __main__ guard can ask for workers; the workers use no threads
        method = "fork" if sys.platform == "linux" else "spawn"
        self.executor = ProcessPoolExecutor(workers, multiprocessing.get_context(method)) if workers > 1 else None

    def __enter__(self):
        if self.executor is None:
            return lambda function, *arguments: partial(function, *arguments)
        return lambda function, *arguments: self.executor.submit(function, *arguments).result

    def __exit__(self, *_):
        if self.executor:
            self.executor.shutdown(cancel_futures=True)


def _grouped(documents):
    """Documents in shards of about SHARD_CHARACTERS: the borders depend on the documents alone."""
    if isinstance(documents, str):
        raise ValueError("documents is an iterable of documents, got one string")
    group, size = [], 0
    for number, document in enumerate(documents):
        group.append(document)
        size += _characters(number, document)
        if size >= SHARD_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _characters(number: int, document) -> int:
    """The size of a document. Raises: ValueError naming the document that is no text, or no text that can be written."""
    parts = [document] if isinstance(document, str) else document
    if not isinstance(parts, list | tuple):
        raise ValueError(
            f"document {number}: expected text, a list of paragraphs or a list of lists of sentences, got {document!r:.80}"
        )
    texts = [text for part in parts for text in (part if isinstance(part, list | tuple) else [part])]
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"document {number}: expected text, got {text!r:.80}")
        if "\0" in text:
            raise ValueError(f"document {number}: NUL byte in {text!r:.80}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"document {number}: half of a surrogate pair at character {error.start}") from None
    return sum(map(len, texts))


def _shard(number, texts, backend, as_text, settings, parts) -> Path:
    """Clean, split and tokenise one shard into its own folder, unless that was done before from the same documents."""
    folder = parts / f"shard-{number:06d}"
    identity = hashlib.sha256(json.dumps([texts, settings], sort_keys=True).encode()).hexdigest()
    if folder.is_dir():
        if _is_whole(folder, identity):
            return folder
        shutil.rmtree(folder)
    arrays = index(texts, _backend(backend, as_text), settings["splitter"], settings["min_sentence_chars"])
    temporary = parts / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name, array in arrays.items():
        np.save(temporary / f"{name}.npy", array)
    counts = {"read": len(texts), **{name: len(arrays[name]) for name in ARRAYS}}
    disk.write_json(
        temporary / "shard.json", {"identity": identity, "counts": counts, "sha256": disk.hashes(temporary)}
    )
    temporary.rename(folder)
    return folder


def _is_whole(shard: Path, identity: str) -> bool:
    """Whether an earlier try made this shard of the same documents, and nothing became of it since."""
    try:
        known = disk.read_json(shard / "shard.json")
        return known["identity"] == identity and all(
            disk.check(shard / name, sha256) for name, sha256 in known["sha256"].items()
        )
    except (OSError, ValueError) as error:
        log.warning("a finished shard is built again: %s", error)
        return False


def _backend(text: str, as_text: bool):
    from tokenizers import Tokenizer

    if multiprocessing.parent_process():
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
    backend = Tokenizer.from_str(text)
    backend.encode_special_tokens = as_text  # the description does not carry it
    backend.no_truncation()
    backend.no_padding()
    return backend


def index(texts, backend, splitter="blingfire", min_sentence_chars=0) -> dict[str, np.ndarray]:
    """Arrays of a few documents, with lengths in place of offsets: tokens a sentence, sentences a paragraph, paragraphs a document."""
    split = splitter_function(splitter)
    sentences, paragraphs, counts, document_hashes = [], [], [], []
    for text in texts:
        before, cleaned = len(paragraphs), clean(text)
        for paragraph in cleaned:
            found = split(paragraph) if isinstance(paragraph, str) else paragraph
            found = [
                s for s in (" ".join(sentence.split()) for sentence in found) if s and len(s) >= min_sentence_chars
            ]
            if found:
                sentences.extend(found)
                paragraphs.append(len(found))
        if len(paragraphs) > before:
            counts.append(len(paragraphs) - before)
            document_hashes.append(document_hash(cleaned))
    tokens, lengths = tokenized(backend, sentences)
    _check_joins(backend, sentences[:2], tokens[: lengths[:2].sum()].tolist())
    tokens = tokens.astype(np.uint16 if backend.get_vocab_size() <= 1 << 16 else np.uint32)
    offsets = np.concatenate([[0], lengths.cumsum()])
    return {
        "tokens": tokens,
        "sentences": lengths,
        "paragraphs": np.array(paragraphs, np.int64),
        "documents": np.array(counts, np.int64),
        "hashes": sentence_hashes(tokens, offsets),
        "document_hashes": np.array(document_hashes, np.uint64),
    }


def _check_joins(backend, sentences, apart):
    """A span must have its sentences' ids joined: refuse a tokenizer for which the first two sentences say otherwise."""
    joined = backend.encode(" ".join(sentences), add_special_tokens=False).ids
    if joined != apart:
        raise ValueError(
            "this tokenizer gives other ids to two sentences together than apart; a byte-level one needs its prefix space "
            f"(load it with asutil.corpus.load_tokenizer): {joined[:8]}... against {apart[:8]}..."
        )


def document_hash(paragraphs: list) -> int:
    """Keyed 64-bit hash of a document as `clean` gives it: of its text alone, whatever splits or tokenises it.

    Example:
        >>> document_hash(["One. Two.", "Three."]) == document_hash([["One.", "Two."], ["Three."]])
        True
    """
    text = "\n".join(paragraph if isinstance(paragraph, str) else " ".join(paragraph) for paragraph in paragraphs)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=VALIDATION_KEY).digest(), "little")


def sentence_hashes(tokens: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """64-bit hash of every sentence: sum over its tokens of mix(token, place), so that equal texts and only those agree."""
    lengths = np.diff(offsets)
    place = np.arange(len(tokens), dtype=np.uint64) - np.repeat(offsets[:-1], lengths).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix(tokens.astype(np.uint64) + (place << np.uint64(32)) + np.uint64(1))
        sums = np.concatenate([np.zeros(1, np.uint64), mixed.cumsum(dtype=np.uint64)])
        return mix(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.astype(np.uint64))


def _merge(shards, parts, source) -> dict:
    counted = [disk.read_json(shard / "shard.json")["counts"] for shard in shards]
    read = sum(counts["read"] for counts in counted)
    totals = {name: sum(counts[name] for counts in counted) for name in ARRAYS}
    if not totals["documents"]:
        raise EmptyCorpus(read, source)
    for name in ARRAYS:
        offsets = name in {"sentences", "paragraphs", "documents"}
        dtype = np.load(shards[0] / f"{name}.npy", mmap_mode="r", allow_pickle=False).dtype
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": (totals[name] + offsets,),
        }
        with (parts / f"{name}.npy").open(
            "wb"
        ) as stream:  # written, not mapped: a full disk is then an error and not a SIGBUS
            np.lib.format.write_array_header_1_0(stream, header)
            total = 0
            np.zeros(int(offsets), dtype).tofile(stream)
            for shard in shards:
                array = np.load(shard / f"{name}.npy", allow_pickle=False)
                if offsets:
                    array = total + array.cumsum()
                    total = int(array[-1]) if len(array) else total
                array.tofile(stream)
    kept = {name: totals[name] for name in ("documents", "paragraphs", "sentences", "tokens")}
    return {"documents_read": read, **kept}


def tokenizer_hash(tokenizer) -> str:
    """sha256 of a fast tokenizer's own description, whatever its padding and truncation are set to at the moment."""
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    described.pop("truncation", None)
    described.pop("padding", None)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


# ------------------------------------------------------------------ the opened index


class Corpus:
    """An index on disk, memory-mapped: `.tokens .sentences .paragraphs .documents .hashes .document_hashes`, and `.info` (corpus.json).

    Of several shards (`aslab.pipeline`) all but the tokens are held in memory, and `.tokens` is a `shards.Pieces`.
    """

    def __init__(self, folder: Path, info: dict, arrays: dict):
        self.folder, self.info = folder, info
        self.tokens, self.sentences, self.paragraphs, self.documents = (arrays[name] for name in ARRAYS[:4])
        self.hashes, self.document_hashes = (arrays[name] for name in ARRAYS[4:])

    @classmethod
    def open(cls, out, tokenizer=None) -> "Corpus":
        """Open a finished index.

        Args:
            tokenizer: refuse the index where it was made with another one.
        Raises: FileNotFoundError for an unfinished index; ValueError, with both values, for another tokenizer or a damaged array.
        """
        folder = Path(out)
        if not (folder / "corpus.json").is_file():
            raise FileNotFoundError(f"{folder} is no finished index: corpus.json is missing")
        info = disk.read_json(folder / "corpus.json")
        if tokenizer is not None and tokenizer_hash(tokenizer) != info["tokenizer_sha256"]:
            raise ValueError(
                f"{folder.name} was made with tokenizer {info['tokenizer']} ({info['tokenizer_sha256'][:16]}), "
                f"got {tokenizer.name_or_path} ({tokenizer_hash(tokenizer)[:16]})"
            )
        arrays = joined(folder, info["shards"]) if "shards" in info else opened(folder, info["sha256"])
        for name in ("documents", "paragraphs", "sentences", "tokens"):
            if info.get(name) != (held := len(arrays[name]) - (name != "tokens")):
                raise ValueError(
                    f"{folder / 'corpus.json'} is damaged: {name} is {info.get(name)!r}, the index holds {held:,}"
                )
        return cls(folder, info, arrays)

    def __repr__(self):
        counts = ", ".join(f"{self.info[name]:,} {name}" for name in ("documents", "paragraphs", "sentences", "tokens"))
        return f"Corpus({self.info['source'] or self.folder.name}: {counts})"

    @cached_property
    def tokenizer(self):
        """The tokenizer that the index was made with, from its own files."""
        from . import tokenizers

        tokenizer = tokenizers.load_tokenizer(self.folder / "tokenizer")
        if tokenizer_hash(tokenizer) != self.info["tokenizer_sha256"]:
            raise ValueError(f"{self.folder / 'tokenizer'} is not the tokenizer that the index was made with")
        return tokenizer

    @cached_property
    def validation(self) -> np.ndarray:
        """Which documents are validation: those whose hash lies in the lowest 2 % of the range, in every corpus that has them.

        Of a corpus with fewer than 2 different ones among these, the 2 with the smallest hashes.
        Deviation: D-08.
        """
        limit = np.uint64(VALIDATION_SHARE * 2**64)
        if len(np.unique(self.document_hashes[self.document_hashes <= limit])) < MIN_VALIDATION:
            limit = np.unique(self.document_hashes)[:MIN_VALIDATION][-1]
        return np.asarray(self.document_hashes <= limit)

    @cached_property
    def document_of(self) -> np.ndarray:
        """The document of every paragraph."""
        return np.repeat(np.arange(len(self.documents) - 1), np.diff(self.documents))

    @cached_property
    def repeated_before(self) -> np.ndarray:
        """How many sentences before each place stand more than once in the corpus: a range with none of them equals no other."""
        _, inverse, counts = np.unique(self.hashes, return_inverse=True, return_counts=True)
        return np.concatenate([[0], (counts[inverse] > 1).cumsum()])

    def text(self, sentence_numbers) -> str:
        """The text of some sentences, joined by one space: lossless for byte-level BPE, the tokenizer's normalised text otherwise."""
        numbers = np.atleast_1d(np.asarray(sentence_numbers, np.int64))
        ids = np.concatenate([self.tokens[self.sentences[n] : self.sentences[n + 1]] for n in numbers] or [[]])
        return self.tokenizer.decode(ids.astype(np.int64).tolist(), clean_up_tokenization_spaces=False).removeprefix(
            " "
        )
