"""Every kind of save of the project, in a form that can be tried again and again: what was there before, the save, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from asutil import corpus, training
from asutil.corpus import tokenizers
from asutil.io import disk, rundir
from asutil.models import loading
from asutil.tasks import vectors
from asutil.training import checkpoints as saved
from tests.trust.loaders import DOCUMENTS

STEPS = 6
FORMER, NEW = 3, 6  # steps with a checkpoint
USUAL = {"peak_lr": 1e-3, "warmup_steps": 2, "weight_decay": 0.01, "seed": 1, "save_every": FORMER, "log_every": 2, "progress": False}
TEXTS = [row["text"] for row in DOCUMENTS]


@dataclass(frozen=True)
class Save:
    """`prepare(folder)` makes what is there before, `save` the next, `read` says which one is read (`former` or `new`)."""

    name: str
    prepare: Callable
    save: Callable
    read: Callable
    former: object
    new: object
    finish: Callable | None = None  # what the next start does; the save itself where left out

    def again(self, folder: Path):
        """What is read after the next start, which does the save once more."""
        (self.finish or self.save)(folder)
        return self.read(folder)


def all_of(folder: Path) -> list[Save]:
    """Checkpoints and best weights, a model, a record and its table, an index, vectors."""
    tokenizer = tokenizers.train_tokenizer(TEXTS, vocab_size=300)
    return [checkpoints(tokenizer), model(tokenizer, folder), record(), table(), index(tokenizer), embedded()]


# ------------------------------------------------------------------ checkpoints


class Batches:
    """Batches of one text; the run is stopped before the step `until`."""

    def __init__(self, tokenizer, until: int):
        self.ids, self.until = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"][:, :12], until

    def __len__(self):
        return STEPS

    def __getitem__(self, step: int) -> dict:
        if step == self.until:
            raise KeyboardInterrupt
        micro = {"input_ids": self.ids, "attention_mask": self.ids * 0 + 1, "labels": self.ids[:, 0] * 0 + step % 2}
        return {"micro": [micro], "examples": 1, "masked": 0, "tokens": 12}


def checkpoints(tokenizer) -> Save:
    """A run that has a checkpoint, and best weights, of step 3, and saves those of step 6."""
    rising = lambda model: {"map": float(sum(weight.abs().sum() for weight in model.parameters()))}

    def run(folder: Path, until: int = STEPS) -> None:
        model = loading.tiny(tokenizer, seed=1)
        training.train(model, Batches(tokenizer, until), folder / "run", **USUAL, evaluate=rising, evaluate_every=3, patience=9)

    def before(folder: Path) -> None:
        (folder / "run").mkdir(parents=True)
        try:
            run(folder, FORMER)
        except KeyboardInterrupt:
            return

    def newest(folder: Path) -> int:
        found = saved.newest_checkpoint(folder / "run" / "checkpoints")
        return int(found.name.split("-")[1]) if found else 0

    return Save("checkpoint", before, run, newest, FORMER, NEW)


def model(tokenizer, folder: Path) -> Save:
    """A trained model, over one with other weights."""
    ours, known = {seed: loading.tiny(tokenizer, seed=seed) for seed in (1, 2)}, {}
    for seed, one in ours.items():
        one.save(folder / f"model {seed}")
        known[_files(folder / f"model {seed}")] = seed

    def read(folder: Path):
        loading.load(folder / "model")
        return known.get(_files(folder / "model"), "other files")

    return Save("model", lambda folder: ours[1].save(folder / "model"), lambda folder: ours[2].save(folder / "model"), read, 1, 2)


def _files(folder: Path) -> str:
    return str(disk.hashes(folder, "**/*.*"))


# ------------------------------------------------------------------ records and tables


def record() -> Save:
    """A run's record, over none."""

    def before(folder: Path) -> None:
        (folder / "run").mkdir(parents=True)

    def save(folder: Path) -> None:
        disk.lock_folder(folder / "run")
        disk.write_json(folder / "run" / "record.json", {"metrics": {"test": {"map": 0.5}}, "per_question": list(range(5000))})

    def read(folder: Path):
        return rundir.read_record(folder / "run")["metrics"]["test"]["map"] if (folder / "run" / "record.json").is_file() else None

    return Save("record", before, save, read, None, 0.5)


def table() -> Save:
    """A table of scores, over another one."""
    scores = {seed: pd.DataFrame({"question_id": [f"q{n}" for n in range(3000)], "score": np.arange(3000.0) + seed}) for seed in (1, 2)}

    def write(folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        disk.sweep(folder)
        disk.atomically(folder / "scores.parquet", lambda path: scores[seed].to_parquet(path, index=False))

    def read(folder: Path):
        return int(pd.read_parquet(folder / "scores.parquet")["score"][0])

    return Save("scores", lambda folder: write(folder, 1), lambda folder: write(folder, 2), read, 1, 2)


# ------------------------------------------------------------------ indexes and vectors


def index(tokenizer) -> Save:
    """An index, over none."""

    def read(folder: Path):
        return len(corpus.Corpus.open(folder / "index").documents) - 1 if (folder / "index").exists() else None

    def save(folder: Path) -> None:
        if not (folder / "index").exists():
            corpus.build(TEXTS, tokenizer, folder / "index")

    return Save("index", lambda folder: folder.mkdir(parents=True), save, read, None, len(TEXTS))


class Lengths:
    """An encoder whose vectors are told from the lengths of texts."""

    identity, dimensions = "lengths", 4

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), text.count(" "), 1, 0] for text in texts], np.float32)


def embedded() -> Save:
    """Vectors in blocks of two, over none."""

    def read(folder: Path):
        return len(vectors.Vectors.open(folder / "vectors", verify=True)) if (folder / "vectors").exists() else None

    save = lambda folder: vectors.embed(Lengths(), TEXTS, folder / "vectors", block=2, progress=False)
    return Save("vectors", lambda folder: folder.mkdir(parents=True), save, read, None, len(TEXTS))
