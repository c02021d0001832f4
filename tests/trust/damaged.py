"""Files of an index, a checkpoint, scores, a record, vectors, a model and mined data: cut short, with a flipped bit, or with another value.

They are read by the calls that users make, with the defaults.
"""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

from tqdm.auto import tqdm

from aslab import rundir, runs
from asutil import corpus
from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.io import disk
from asutil.models import loading
from asutil.tasks import rankers, vectors
from asutil.training import checkpoints as saved
from tests.trust import damage, must, saves

HASHES = re.compile(r"[0-9a-f]{16}.*[0-9a-f]{16}|[\d,]+ bytes expected, got [\d,]+", re.S)


def check(full: bool, seed: int, folder: Path) -> dict:
    """How many damaged files were refused, all of them; every flip in a file with a known hash with both values."""
    draw, tried, both = random.Random(seed), 0, 0
    for name, read, files in _all_of(folder / "damaged"):
        for path in tqdm(files, desc=f"damaged {name}", unit=" files", dynamic_ncols=True):
            whole = path.read_bytes()
            end = len(whole.rstrip())  # without its last line's end JSON says the same
            for _ in range(20 if full else 4):
                spoilt = {"cut short": whole[: draw.randrange(end)], "flipped": _flipped(whole, draw)}
                if path.suffix == ".json":
                    spoilt["edited"] = _edited(whole, draw)
                for kind, content in spoilt.items():
                    path.write_bytes(content)
                    message = _refused(read, f"{name}: {path.name} {kind}", path)
                    tried, both = tried + 1, both + bool(HASHES.search(message))
            path.write_bytes(whole)
        read()
    return {"damaged_files": tried, "with_both_values": both}


def _flipped(content: bytes, draw: random.Random) -> bytes:
    """One bit is another one, not of white space, which says nothing in JSON."""
    places = [place for place in draw.sample(range(len(content)), min(50, len(content))) if not content[place : place + 1].isspace()]
    return content[: places[0]] + bytes([content[places[0]] ^ 1]) + content[places[0] + 1 :]


def _edited(content: bytes, draw: random.Random) -> bytes:
    """JSON in which one value is another one of the same type."""
    value = json.loads(content)
    places = [(container, key) for container, key in damage.places(value) if not isinstance(container[key], dict | list)]
    container, key = draw.choice(places)
    before = container[key]
    container[key] = not before if isinstance(before, bool) else f"{before}x" if isinstance(before, str) else (before or 0) + 1
    return json.dumps(value, indent=1).encode()


def _refused(read: Callable, what: str, path: Path) -> str:
    """The message with which something damaged was refused. Raises: Broken where it was read, or refused without its name."""
    try:
        found = read()
    except (ValueError, OSError) as error:
        must(path.name in str(error) or path.parent.name in str(error), f"{what}: refused without its name: {error}")
        return str(error)
    must(False, f"{what}: it was read all the same: {str(found)[:80]}")


def _all_of(folder: Path):
    """(name, how it is read, its files) of each kind."""
    folder.mkdir()
    tokenizer = tokenizers.train_tokenizer(saves.TEXTS, vocab_size=300)
    index = corpus.build(saves.TEXTS, tokenizer, folder / "index").folder
    yield "index", lambda: corpus.Corpus.open(index), [*index.glob("*.npy"), index / "corpus.json"]
    vectors.embed(saves.Lengths(), saves.TEXTS, folder / "vectors", progress=False)
    yield "vectors", lambda: vectors.Vectors.open(folder / "vectors"), sorted((folder / "vectors").iterdir())
    save = saves.checkpoints(tokenizer)
    save.prepare(folder / "checkpoint")
    (newest,) = (folder / "checkpoint" / "run" / "checkpoints").glob("checkpoint-*")

    def whole() -> None:
        if damage := saved.damage_of(newest):
            raise ValueError(damage)

    yield "checkpoint", whole, sorted(newest.iterdir())
    run = folder / "finetune-made-up-0123456789ab"
    loading.tiny(tokenizer, seed=1).save(run / "model")
    saves.SCORES[1].to_parquet(run / "scores.parquet", index=False)
    settings = {"max_tokens": 48}
    disk.write_json(run / "record.json", {"notebook": "finetune", "name": run.name, "settings": settings, **runs.hashes(run)})
    yield "record", lambda: rundir.read_record(run), [run / "record.json"]
    yield "scores", lambda: rundir.read_table(run), [run / "scores.parquet"]
    yield "model", lambda: rankers.load_ranker(run, "cpu"), sorted((run / "model").iterdir())
    save = saves.mined(saves.asked(folder / "asked"))
    save.save(folder)
    yield "mined data", lambda: answers.load_answers(folder / "mined"), sorted((folder / "mined").iterdir())
