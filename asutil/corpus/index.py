"""The token index of a corpus: built from documents, prepared once a source, opened memory-mapped.

The index is flat arrays: `tokens`, and int64 offsets `sentences` (into tokens), `paragraphs` (into sentences) and `documents` (into
paragraphs), each offset array one longer than what it counts; `hashes` has a 64-bit hash of every sentence, `document_hashes` one of
every document's cleaned text. `corpus.json` describes how the index was made and has the sha256 of every array. It is written last, so
that a folder without it is never read.

`asutil index verify` hashes all arrays of an index.
"""

import hashlib
import json
import logging
import os
import re
import runpy
import shlex
import shutil
from functools import cached_property
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from ..io import disk, hub
from .arrays import ARRAYS, COUNTED, OFFSETS, VERIFIED_BYTES, concatenate, open_arrays
from .cleaning import LIMITS, MIN_DOCUMENT, MIN_PARAGRAPH, splitter_function
from .shards import build_shards
from .sources import documents, fingerprint_of_source, not_read, without_paths

VALIDATION_SHARE = 0.02
MIN_VALIDATION = 2
MANY_HELD = 0.1  # of the documents
SAMPLE = 200  # sentences, from all of a corpus, whose tokens and characters are counted
UNPARTED = "no document has two paragraphs, so no example has a hard negative; a blank line, or paragraph_separator, parts paragraphs"
MANY_UNKNOWN = 0.1  # share of unknown tokens that is worth a warning
FORMAT = 3  # of an index: 2 has the hashes of documents, 3 no tag that goes on after a blank line
OF_DOCUMENTS = ("split", "limit", "text_column", "paragraph_separator", "exclude_titles")  # arguments of `documents`
log = logging.getLogger(__name__)


class EmptyCorpus(ValueError):
    """No document was kept of `read`."""

    def __init__(self, read: int, source: str = "", min_paragraph_chars=MIN_PARAGRAPH, min_document_chars=MIN_DOCUMENT):
        needs = f"(a document needs {min_document_chars} characters in paragraphs of {min_paragraph_chars} or more; "
        needs += "lower min_document_chars and min_paragraph_chars for a script such as Chinese)"
        super().__init__(f"empty corpus: {read} documents read, none kept {needs}{source and f': {source}'}")
        self.read = read


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
    min_paragraph_chars=None,
    min_document_chars=None,
):
    """Write the index of `documents` to the folder `out`; the same bytes for any number of workers.

    A build that was stopped goes on at its first unfinished shard.

    Args:
        documents: iterable of documents as `clean` takes them.
        tokenizer: a fast tokenizer; a byte-level one with a prefix space, as `tokenizers.load_tokenizer` sets it.
        splitter: `blingfire`, or `nltk` (contextual_as2), whose data are installed separately.
        min_sentence_chars: shorter sentences are left out (contextual_as2 takes 20).
        workers: processes that clean, split and tokenise.
        min_paragraph_chars, min_document_chars: shorter ones are left out; None: 60 and 200, as in sentence_objectives.
    Returns: the opened Corpus. A warning says what would make it useless: few documents, paragraphs of one sentence, text of single bytes.
    Raises: ValueError for an empty corpus or a tokenizer that does not join sentences exactly; OSError naming the path; LookupError for
        a splitter without its data.
    """
    splitter_function(splitter)  # before anything is read or written
    out = Path(out)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise FileExistsError(f"{out} exists already: open it with Corpus.open, or delete it to build again")
    parts = out.with_name(f".{out.name}.building")
    parts.mkdir(parents=True, exist_ok=True)
    name = Path(tokenizer.name_or_path).name or "unnamed"
    settings = {"format": FORMAT, "tokenizer": name, "tokenizer_sha256": tokenizer_hash(tokenizer)}
    settings |= {"splitter": splitter, "min_sentence_chars": min_sentence_chars}
    lengths = {"min_paragraph_chars": min_paragraph_chars, "min_document_chars": min_document_chars}
    lengths = {name: LIMITS[name] if value is None else value for name, value in lengths.items()}
    settings |= lengths | {"source": source, "licence": licence}
    with disk.naming(out, "writing the index {path} failed ({error}); finished shards are kept for the next try"):
        shards, read = build_shards(documents, tokenizer, parts, settings, workers, progress)
        counts = concatenate(shards, parts) if shards else {"documents": 0}
        if not counts["documents"]:
            raise EmptyCorpus(read, source, **lengths)
        tokenizer.save_pretrained(parts / "tokenizer")
        sums = {name: hub.sha256(parts / f"{name}.npy") for name in ARRAYS}
        commits = {name: commit for name, commit in hub.commits.items() if name in source}
        settings |= {"hub_commits": commits} if commits else {}
        disk.write_json(parts / "corpus.json", {**settings, "documents_read": read, **counts, "sha256": sums})
        for shard in (*parts.glob("shard-*"), *parts.glob(".shard-*")):  # also of an earlier try with more documents
            shutil.rmtree(shard)
        os.sync()
        parts.rename(out)
    index = Corpus.open(out)
    _warn_of_form(index, splitter, tokenizer.backend_tokenizer)
    return index


def _warn_of_form(index: "Corpus", splitter: str, backend) -> None:
    """Say where much is held out, a splitter parts no paragraphs, or a tokenizer knows no words, as of a language not made for."""
    sizes = np.diff(index.paragraphs)
    if MANY_HELD < (held := index.validation).mean() < 1:
        log.warning(
            "%s: %d of %d documents are held out for validation: divide long documents, so that training reads more of them",
            *(index.folder.name, held.sum(), len(held)),
        )
    if len(index.documents) == len(index.paragraphs) > 2:
        log.warning("%s: %s", index.folder.name, UNPARTED)
    if 4 * (sizes == 1).sum() > 3 * len(sizes):  # docstrings have a half of such paragraphs, Wikipedia a sixth
        log.warning(
            "%s: %d of %d paragraphs have one sentence by the splitter %s, so SSP and SP can make few examples of them, or none",
            *(index.folder.name, (sizes == 1).sum(), len(sizes), splitter),
        )
    last = index.info["sentences"] - 1
    numbers = np.unique(np.linspace(0, last, SAMPLE).astype(int))
    ids = np.concatenate([index.tokens[index.sentences[n] : index.sentences[n + 1]] for n in numbers])
    special = [id for id, token in backend.get_added_tokens_decoder().items() if token.special]
    unknown = np.isin(ids, special).mean()  # text is read as text, so that no other special token occurs
    if unknown > MANY_UNKNOWN:
        log.warning(
            "%s: %.0f %% of the tokens are unknown to the tokenizer, which was not made for this language: a model cannot tell them apart",
            *(index.folder.name, 100 * unknown),
        )
    characters = len(backend.decode(ids.tolist(), skip_special_tokens=False))
    if len(ids) > characters:
        log.warning(
            "%s: the tokenizer makes %.1f tokens of a character; English has one in four: it was not made for this language",
            *(index.folder.name, len(ids) / characters),
        )


def prepare(source, tokenizer, folder, **options) -> "Corpus":
    """The index of a named source under `folder`: built at the first call, opened afterwards. An index as source is only opened.

    Args:
        options: of `documents` and of `build`.
    The name of the index has a hash of the source's fingerprint, the tokenizer and the options: changed data is another index.
    """
    reading = {name: value for name in OF_DOCUMENTS if (value := options.pop(name, None))}
    building = {n: value for n, value in options.items() if n not in {"workers", "progress"} and value is not None}
    if (Path(source) / "corpus.json").is_file():
        index = Corpus.open(source, tokenizer)
        for name, value in (reading | building).items():
            if index.info.get(name) != value:
                raise ValueError(
                    f"{name}: the index {index.folder.name} was built with {index.info.get(name)!r}, got {value!r}"
                )
        return index
    identity = [FORMAT, fingerprint_of_source(source), tokenizer_hash(tokenizer), reading, building]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    slug = re.sub(r"[^A-Za-z0-9]+", "-", str(source))[-40:].strip("-")
    out = Path(folder) / f"{slug}-{digest}"
    with disk.lock_beside(out):
        if not out.is_dir():
            if others := not_read(source):
                log.warning("%s: %s", without_paths(source), others)
            build(documents(source, **reading), tokenizer, out, source=without_paths(source), **options)
    return Corpus.open(out, tokenizer)


def tokenizer_hash(tokenizer) -> str:
    """sha256 of a fast tokenizer's own description, without its present padding and truncation."""
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    description.pop("truncation", None)
    description.pop("padding", None)
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


class Corpus:
    """An index on disk, memory-mapped: `.tokens .sentences .paragraphs .documents .hashes .document_hashes`, and `.info` (corpus.json)."""

    def __init__(self, folder: Path, info: dict, arrays: dict[str, np.ndarray]):
        self.folder, self.info = folder, info
        self.tokens, self.sentences, self.paragraphs = (arrays[name] for name in ARRAYS[:3])
        self.documents, self.hashes, self.document_hashes = (arrays[name] for name in ARRAYS[3:])

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
        arrays = open_arrays(folder, info.get("sha256", {}))
        for name in COUNTED:
            count = len(arrays[name]) - (name in OFFSETS)
            if info.get(name) != count:
                raise ValueError(
                    f"{folder / 'corpus.json'} is damaged: {name} is {info.get(name)!r}, the index holds {count:,}"
                )
        if info.get("format") != FORMAT:
            log.warning("%s: made by an earlier version, which cleaned text in another way: build it again", folder)
        index = cls(folder, info, arrays)
        if not index.verified:
            verify_it = f"asutil index verify {shlex.quote(str(folder))}"
            log.warning(
                "%s: not verified, for arrays above %d GiB are not hashed: %s", folder, VERIFIED_BYTES >> 30, verify_it
            )
        return index

    def __repr__(self):
        counts = ", ".join(f"{self.info[name]:,} {name}" for name in COUNTED)
        read = self.info.get("documents_read", self.info["documents"])
        dropped = f", of {read:,} documents read" * (read > self.info["documents"])
        return f"Corpus({self.info['source'] or self.folder.name}: {counts}{dropped})"

    @property
    def verified(self) -> bool:
        """Whether all arrays were checked by their hashes when the index was opened; the larger ones stay on disk, unchecked."""
        return not any(isinstance(getattr(self, name), np.memmap) for name in ARRAYS)

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
        """How many sentences before each position occur more than once in the corpus: a range without any equals no other range.

        Takes 16 bytes a sentence, since the papers' corpora have hundreds of millions; `np.unique` with counts takes 65.
        """
        ordered = np.sort(self.hashes)
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        del ordered
        counts = np.zeros(len(self.hashes) + 1, np.int64)
        for start in range(0, len(self.hashes), 2**20) if len(repeated) else ():
            part = self.hashes[start : start + 2**20]
            places = np.searchsorted(repeated[:-1], part)
            counts[start + 1 : start + 1 + len(part)] = repeated[places] == part
        return np.cumsum(counts, out=counts)

    def text(self, sentence_numbers) -> str:
        """The text of some sentences, joined by one space: lossless for byte-level BPE, the tokenizer's normalised text otherwise."""
        numbers = np.atleast_1d(np.asarray(sentence_numbers, np.int64))
        ids = np.concatenate([self.tokens[self.sentences[n] : self.sentences[n + 1]] for n in numbers] or [[]])
        text = self.tokenizer.decode(ids.astype(np.int64).tolist(), clean_up_tokenization_spaces=False)
        return text.removeprefix(" ")


def verify(folder: str | Path) -> Corpus:
    """Check the hashes of all arrays of an index, whatever their size, and its tokenizer.

    Raises: ValueError, with both hashes, naming a damaged file.
    """
    index = Corpus.open(folder)
    for name in tqdm(ARRAYS, desc="verifying", unit=" arrays", dynamic_ncols=True):
        disk.check(index.folder / f"{name}.npy", index.info["sha256"][name])
    index.tokenizer  # noqa: B018  reading it checks it
    return index


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "index"})
