"""Files of an index, a checkpoint, scores, a record, vectors, models and mined data: cut short, with a flipped bit, or with another value.

They are read by the calls that users make, with the defaults.
"""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm.auto import tqdm

from aslab import export, rundir
from asutil import corpus
from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.io import disk
from asutil.models import loading
from asutil.tasks import rankers, vectors
from asutil.training import checkpoints as saved
from tests.trust import damage, must, saves

HASHES = re.compile(r"[0-9a-f]{16}.*[0-9a-f]{16}|[\d,]+ bytes expected, got [\d,]+", re.S)


class Kind(NamedTuple):
    """Files that are read together, and how; whether each of them has a known hash."""

    name: str
    read: Callable[[], object]
    files: list[Path]
    hashed: bool = False


def check(full: bool, seed: int, folder: Path) -> dict:
    """How many damaged files were refused, all of them; every flip in a file with a known hash with both values."""
    draw = random.Random(seed)
    counts = [refused(kind, 20 if full else 4, draw) for kind in kinds(folder / "damaged")]
    return {"damaged_files": sum(tried for tried, _ in counts), "with_both_values": sum(both for _, both in counts)}


def refused(kind: Kind, rounds: int, draw: random.Random) -> tuple[int, int]:
    """How many damaged files were refused, and how many of them with both hashes or sizes. Raises: Broken where one was read."""
    tried = both = 0
    for path in tqdm(kind.files, desc=f"damaged {kind.name}", unit=" files", dynamic_ncols=True):
        whole = path.read_bytes()
        # without its last line's end JSON says the same
        end = len(whole.rstrip())
        for _ in range(rounds):
            spoilt = {"cut short": whole[: draw.randrange(end)], "flipped": flipped(whole, draw, end)}
            if path.suffix == ".json":
                spoilt["edited"] = edited(whole, draw)
            for how, content in spoilt.items():
                written(path, content)
                message = _refused(kind.read, f"{kind.name}: {path.name} {how}", path)
                tried, both = tried + 1, both + bool(HASHES.search(message))
        written(path, whole)
    kind.read()
    must(both == tried or not kind.hashed, f"{kind.name}: {tried - both} of {tried} refusals without both hashes or sizes")
    return tried, both


def written(path: Path, content: bytes) -> None:
    """Write and let the file have a time of its own: two writes can be so near that the clock of the disk is the same."""
    before = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 1000, before + 1000))


def flipped(content: bytes, draw: random.Random, end: int | None = None) -> bytes:
    """One bit is another one, of the bytes before the end."""
    place = draw.randrange(len(content) if end is None else end)
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def edited(content: bytes, draw: random.Random) -> bytes:
    """JSON in which one value is another one of the same type, in the form in which transformers writes it."""
    value = json.loads(content)
    places = [(container, key) for container, key in damage.places(value) if not isinstance(container[key], dict | list)]
    container, key = draw.choice(places)
    before = container[key]
    if isinstance(before, bool) or before is None:
        container[key] = not before
    else:
        container[key] = before + ("s" if isinstance(before, str) else 1)
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _refused(read: Callable, what: str, path: Path) -> str:
    """The message with which something damaged was refused. Raises: Broken where it was read, or refused without its name."""
    try:
        found = read()
    except (ValueError, OSError) as error:
        must(path.name in str(error) or path.parent.name in str(error), f"{what}: refused without its name: {error}")
        return str(error)
    must(False, f"{what}: it was read all the same: {str(found)[:80]}")


def kinds(folder: Path) -> Iterator[Kind]:
    folder.mkdir()
    tokenizer = tokenizers.train_tokenizer(saves.TEXTS, vocab_size=300)
    index = corpus.build(saves.TEXTS, tokenizer, folder / "index").folder
    yield Kind("index", lambda: corpus.Corpus.open(index), [*index.glob("*.npy"), index / "corpus.json"])
    vectors.embed(saves.Lengths(), saves.TEXTS, folder / "vectors", progress=False)
    yield Kind("vectors", lambda: vectors.Vectors.open(folder / "vectors"), sorted((folder / "vectors").iterdir()))
    save = saves.checkpoints(tokenizer)
    save.prepare(folder / "checkpoint")
    (newest,) = (folder / "checkpoint" / "run" / "checkpoints").glob("checkpoint-*")

    def whole() -> None:
        if damage := saved.damage_of(newest):
            raise ValueError(damage)

    yield Kind("checkpoint", whole, sorted(newest.iterdir()))
    run = saves.finished(folder / "finetune-made-up-0123456789ab", loading.tiny(tokenizer, seed=1), saves.SCORES[1])
    yield Kind("record", lambda: rundir.read_record(run), [run / "record.json"])
    yield Kind("scores", lambda: rundir.read_table(run), [run / "scores.parquet"])
    yield Kind("model", lambda: rankers.load_ranker(run, "cpu"), sorted((run / "model").iterdir()), hashed=True)
    exported = export.export(run, folder / "exported")
    files = [path for path in sorted(exported.iterdir()) if path.suffix in (".json", ".safetensors") and path.name != disk.LIST]
    yield Kind("export", lambda: rankers.load_ranker(exported, "cpu"), files, hashed=True)
    saves.mined(saves.asked(folder / "asked")).save(folder)
    yield Kind("mined data", lambda: answers.load_answers(folder / "mined"), sorted((folder / "mined").iterdir()))
