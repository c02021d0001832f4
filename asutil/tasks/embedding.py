"""Texts embedded block by block into a folder that `vector_search.Vectors` opens; a stopped embedding continues."""

import hashlib
import itertools
import json
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tqdm.auto import tqdm

from ..io import disk, hub
from .vector_search import INFO, ROWS, TEXTS, VECTORS, Vectors, sound_vectors

log = logging.getLogger(__name__)


def embed(encoder, texts: Iterable, folder: str | Path, block: int = 1 << 14, progress: bool = True) -> Vectors:
    """Write the vectors of some texts to a folder, block by block.

    The same call continues a stopped embedding, and opens a finished one. A finished block is reused if its texts, all
    texts before them, and the encoder are the same; from the first different block on, all are embedded again.

    Args:
        encoder: anything with `encode(list of texts) -> (n, H)`, `dimensions` and `identity`.
        texts: an iterable of texts, or of (id, text), read once.
        block: texts that are embedded together and held in memory.
    Raises: ValueError naming the item that is no text, or the text without a sound vector; FileExistsError for a folder
        of something else; OSError.
    """
    folder = Path(folder)
    if block < 1:
        raise ValueError(f"block: 1 or more expected, got {block}")
    if isinstance(texts, str):
        raise ValueError("texts is an iterable of texts, got one string")
    blocks = _blocks_of(encoder, texts, block)
    bar = tqdm(desc="embedding", unit=" texts", disable=not progress, dynamic_ncols=True)
    with disk.lock_beside(folder), bar:
        if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
            _write_blocks(folder, folder, encoder, blocks, bar)
        else:
            part = folder.with_name(f".{folder.name}.embedding")
            part.mkdir(exist_ok=True)
            _write_blocks(part, folder, encoder, blocks, bar)
            if folder.exists():
                folder.rmdir()  # an empty one
            part.rename(folder)
    return Vectors.open(folder)


def _blocks_of(encoder, texts: Iterable, block: int) -> Iterator[tuple[list, dict]]:
    """The rows (id, text) of each block, and its mark: the number of texts so far, and a hash of encoder and texts."""
    made_from = hashlib.sha256(json.dumps([encoder.identity, encoder.dimensions]).encode())
    rows, count = _rows(texts), 0
    while some := list(itertools.islice(rows, block)):
        made_from.update("".join(json.dumps(row) + "\n" for row in some).encode())
        count += len(some)
        yield some, {"texts": count, "made_from": made_from.hexdigest()}


def _rows(texts: Iterable) -> Iterator[tuple]:
    """(id or None, text) of every text. Raises: ValueError naming the item that is no text or cannot be written."""
    for number, item in enumerate(texts):
        name, text = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (isinstance(name, str | None) and isinstance(text, str)):
            raise ValueError(f"text {number}: expected a text, or its id and text, got {item!r:.80}")
        try:
            f"{name}{text}".encode()
        except UnicodeEncodeError:
            raise ValueError(f"text {number}: half of a surrogate pair in {(name, text)!r:.80}") from None
        yield name, text


def encoded(encoder, texts: list[str], role: str) -> np.ndarray:
    """The vectors of texts as queries or as documents, where an encoder (`elsewhere.SentenceTransformerEncoder`) tells them apart."""
    return encoder.encode(texts, role=role) if getattr(encoder, "asymmetric", False) else encoder.encode(texts)


def _write_blocks(part: Path, folder: Path, encoder, blocks: Iterator, bar) -> None:
    """Write all blocks to `part`, but for those that it already has, and finish it; the folder itself must have just these."""
    finished, done = _finished_blocks(part, encoder.dimensions), []
    advice = "take another folder, or delete this one"
    other = FileExistsError(f"{folder} is not what these texts, encoder and block make: {advice}")
    for rows, mark in blocks:
        if finished and mark.items() <= finished[0].items():
            done.append(finished.pop(0))
        elif part == folder:
            raise other
        else:
            if finished:
                log.warning("%s: %d finished blocks were of other texts or of another encoder", folder, len(finished))
                finished = []
            shape = (len(rows), encoder.dimensions)
            texts = [text for _, text in rows]
            vectors = sound_vectors(encoded(encoder, texts, "document"), shape, "text", first=mark["texts"] - len(rows))
            done.append(mark | {"text_bytes": _append(part, rows, vectors, done)})
            _write_info(part, encoder, done)
        bar.update(len(rows))
    if part == folder and finished:
        raise other
    if part == folder:
        return
    if not done:
        raise ValueError("expected at least one text, got none")
    paths = {name: part / name for name in (VECTORS, TEXTS)}
    files = {name: {"bytes": path.stat().st_size, "sha256": hub.sha256(path)} for name, path in paths.items()}
    _write_info(part, encoder, done, files=files)


def _finished_blocks(part: Path, dimensions: int) -> list[dict]:
    """The blocks in a folder that are listed in its vectors.json and whole in its two other files."""
    if not (part / INFO).is_file():
        return []
    sizes = {name: (part / name).stat().st_size if (part / name).is_file() else 0 for name in (VECTORS, TEXTS)}

    def whole(block: dict) -> bool:
        return 4 * block["texts"] * dimensions <= sizes[VECTORS] and block["text_bytes"] <= sizes[TEXTS]

    return list(itertools.takewhile(whole, disk.read_json(part / INFO)["blocks"]))


def _append(part: Path, rows: list, vectors: np.ndarray, done: list) -> int:
    """Write a block behind those that are done, over what a stopped one left there. Returns: where its texts end."""
    vectors_end = 4 * vectors.shape[1] * done[-1]["texts"] if done else 0
    _write_at(part / VECTORS, vectors_end, vectors.astype("<f4", copy=False))
    batch = pa.record_batch([list(column) for column in zip(*rows)], schema=ROWS).serialize()
    if done:
        return _write_at(part / TEXTS, done[-1]["text_bytes"], batch)
    return _write_at(part / TEXTS, 0, ROWS.serialize(), batch)


def _write_at(path: Path, start: int, *pieces) -> int:
    """Write from `start` on, to the disk; the file ends there. Returns: its length."""
    try:
        with path.open("ab") as stream:
            stream.truncate(start)
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
            return stream.tell()
    except OSError as error:
        reason = f"{path} could not be written ({error.strerror or error}); finished blocks are kept for the next try"
        raise OSError(error.errno, reason) from error


def _write_info(part: Path, encoder, done: list, **more) -> None:
    info = {"encoder": encoder.identity, "dimensions": encoder.dimensions, "texts": done[-1]["texts"], "blocks": done}
    disk.write_json(part / INFO, info | more)
