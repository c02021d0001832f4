"""Every kind of save of the project, in a form that can be tried again and again: what was there before, the save, and how it is read."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from aslab import own, pipeline, rundir, runs
from asutil import corpus, training
from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.io import disk
from asutil.metrics.trec import read_run, write_trec
from asutil.models import loading
from asutil.models.word_vectors import WordVectors
from asutil.tasks import base, mine, rank, rankers, vectors
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


def over_none(name: str, place: str, save: Callable, read: Callable, new) -> Save:
    """A save where nothing was; it is there, and not made again, once there is a path like `place`."""
    there = lambda folder: any(folder.glob(place))
    reading = lambda folder: read(folder) if there(folder) else None
    return Save(name, lambda folder: folder.mkdir(parents=True), lambda folder: there(folder) or save(folder), reading, None, new)


def all_of(folder: Path) -> list[Save]:
    """What trainings, runs, indexes, vectors and exports write, by the calls that users make."""
    tokenizer = tokenizers.train_tokenizer(TEXTS, vocab_size=300)
    ours = {seed: loading.tiny(tokenizer, seed=seed) for seed in (1, 2)}
    questions = asked(folder / "asked")
    runs_and_models = [checkpoints(tokenizer), model(ours), record(), table(), trec(), scoring(ours[1], questions, folder)]
    data = [index(tokenizer), shards(tokenizer, folder), embedded(), mined(questions), word_vectors(folder)]
    return [*runs_and_models, *data, exported(ours, folder)]


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


def ranking(ranker) -> list:
    """What a ranker, or the one in a folder, gives for some texts."""
    ranker = rankers.load_ranker(ranker, "cpu") if isinstance(ranker, Path) else ranker
    return [[number, round(score, 6)] for number, score in ranker.rank("Where is Ada?", TEXTS[:4])]


def model(ours: dict) -> Save:
    """A trained model, over one with other weights."""
    expected = {seed: ranking(rank.Ranker(encoder.eval())) for seed, encoder in ours.items()}
    save = lambda seed: lambda folder: ours[seed].save(folder / "model")
    return Save("model", save(1), save(2), lambda folder: ranking(folder / "model"), expected[1], expected[2])


# ------------------------------------------------------------------ records, tables and scores

PAIRS = {"question_id": [f"q{n // 2}" for n in range(3000)], "candidate_id": [f"c{n}" for n in range(3000)], "label": np.arange(3000) % 2}
SCORES = {seed: pd.DataFrame(PAIRS | {"score": np.arange(3000.0) + seed}) for seed in (1, 2)}


def _run(folder: Path) -> runs.Run:
    return runs.start("finetune", {"runs_dir": str(folder / "runs")})


def record() -> Save:
    """A run's record and the table that it lists, over none."""

    def save(folder: Path) -> None:
        run = _run(folder)
        run.write("scores.parquet", SCORES[1])
        run.finish(metrics={"test": {"map": 0.5}}, per_question=list(range(5000)))

    def read(folder: Path):
        (path,) = (folder / "runs").glob("*/record.json")
        return rundir.read_record(path.parent)["metrics"]["test"]["map"], len(rundir.read_table(path.parent))

    return over_none("record", "runs/*/record.json", save, read, (0.5, 3000))


def table() -> Save:
    """A table of scores of a run, over another one."""

    def read(folder: Path):
        (path,) = (folder / "runs").glob("*/scores.parquet")
        return int(pd.read_parquet(path)["score"][0])

    save = lambda seed: lambda folder: _run(folder).write("scores.parquet", SCORES[seed])
    return Save("scores", save(1), save(2), read, 1, 2)


def trec() -> Save:
    """A run file of TREC over another one; the judgements are the same."""

    def save(folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_trec(SCORES[seed], folder / "run.txt", folder / "qrels.txt")

    def read(folder: Path):
        return int(read_run(folder / "run.txt")["score"].min())

    return Save("TREC files", lambda folder: save(folder, 1), lambda folder: save(folder, 2), read, 1, 2)


def asked(folder: Path) -> Path:
    """A data set of made-up questions."""
    folder.mkdir()
    for split in ("train", "dev", "test"):
        numbers = [(question, number) for question in range(6) for number in range(4)]
        rows = [{"question": f"Where is {split} {q}?", "answer": f"{TEXTS[n]} {q}", "label": int(q % 4 == n)} for q, n in numbers]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def scoring(ours, questions: Path, folder: Path) -> Save:
    """The scores of a ranker for some questions, in two windows, over none."""
    path, split = ours.save(folder / "ranker"), answers.load_answers(questions)["test"]

    def scores(folder: Path) -> int:
        base.WINDOW = 12
        return len(rankers.scored(path, {"test": split}, folder / "scores")[0]["test"])

    return over_none("windows of scores", "scores/figures.json", scores, scores, 24)


# ------------------------------------------------------------------ what is handed on


def finished(folder: Path, model, scores: pd.DataFrame) -> Path:
    """A finished run of finetune, whose record says little."""
    model.save(folder / "model")
    scores.to_parquet(folder / "scores.parquet", index=False)
    settings = {"dataset": "mine", "model": "tiny", "max_tokens": 48, "protocol": "clean"}
    record = {"notebook": "finetune", "name": folder.name, "budget": "laptop", "seed": 3, "settings": settings, "metrics": {}}
    disk.write_json(folder / "record.json", record | runs.hashes(folder))
    return folder


def exported(ours: dict, folder: Path) -> Save:
    """The ranker of a run for other libraries, over that of another run."""
    made = {}
    for seed, encoder in ours.items():
        made[seed] = finished(folder / f"finetune-own-{seed:012d}", encoder, SCORES[seed])
        own.export(str(made[seed]), folder / f"exported {seed}")
    expected = {seed: ranking(folder / f"exported {seed}") for seed in made}
    save = lambda seed: lambda folder: own.export(str(made[seed]), folder / "ranker")
    return Save("export", save(1), save(2), lambda folder: ranking(folder / "ranker"), expected[1], expected[2])


def mined(questions: Path) -> Save:
    """A data set with mined negatives, over none."""

    save = lambda folder: mine.mine(questions, "candidates", "random", folder / "mined")
    return over_none("mined data", "mined", save, lambda folder: len(answers.load_answers(folder / "mined")["train"]), 6)


def word_vectors(folder: Path) -> Save:
    """Vectors of words, as they are kept once their text file is read; over none."""
    file = folder / "words.txt"
    file.write_text("".join(f"word{n} {n} 1 0 {n / 7:.5f}\n" for n in range(3000)), encoding="utf-8")
    total = lambda folder: float(WordVectors(file, folder / "shared").vectors[:, 0].sum())
    return over_none("word vectors", "shared/word_vectors_*", total, total, 2999 * 3000 / 2)


# ------------------------------------------------------------------ indexes and vectors


def _documents(folder: Path) -> int:
    return len(corpus.Corpus.open(folder / "index").documents) - 1


def index(tokenizer) -> Save:
    """An index, over none."""
    return over_none("index", "index", lambda folder: corpus.build(TEXTS, tokenizer, folder / "index"), _documents, len(TEXTS))


def shards(tokenizer, folder: Path) -> Save:
    """An index in two shards, over none."""
    source, saved_tokenizer = folder / "documents.jsonl", str(folder / "tokenizer")
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    tokenizer.save_pretrained(saved_tokenizer)
    save = lambda folder: pipeline.build(str(source), saved_tokenizer, folder / "index", tasks=2, workers=1, limit=100)
    return over_none("shards", "index/corpus.json", save, _documents, len(TEXTS))


class Lengths:
    """An encoder whose vectors are told from the lengths of texts."""

    identity, dimensions = "lengths", 4

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), text.count(" "), 1, 0] for text in texts], np.float32)


def embedded() -> Save:
    """Vectors in blocks of two, over none."""

    save = lambda folder: vectors.embed(Lengths(), TEXTS, folder / "vectors", block=2, progress=False)
    return over_none("vectors", "vectors", save, lambda folder: len(vectors.Vectors.open(folder / "vectors")), len(TEXTS))
