"""Runs, records, results and models as inputs: what `tests.trust.loaders` is for data."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from aslab import gpus, identity, launch, papers, parameters, pipeline, records, rundir, runs, stages, trec
from aslab.analysis import costs
from aslab.show import plots
from asutil import corpus
from asutil.corpus import sources, tokenizers
from asutil.data import answers, claims, long_questions
from asutil.io import checkpoints, disk
from asutil.models import loading
from asutil.tasks import rankers, vectors
from asutil.training import checkpoints as saved

from . import damage, loaders, must, saves
from .loaders import Loader, same, written

RUN = "runs/finetune-made-up-0123456789ab"
SCORES = [
    {"question_id": f"q{n}", "candidate_id": f"q{n}-{k}", "label": int(k == 1), "score": (n * k) % 5 / 4}
    for n in range(4)
    for k in range(3)
]
VALUES = [{"question_id": f"q{n}", "p_at_1": 1.0, "average_precision": 0.5, "reciprocal_rank": 0.5} for n in range(6)]
RECORD = disk.sealed({
    "notebook": "finetune", "name": Path(RUN).name, "hash": "0123456789ab", "budget": "small", "seed": 0, "given": {"dataset": "wikiqa"},
    "settings": {"dataset": "wikiqa", "model": "tiny", "protocol": "clean", "max_tokens": 32},
    "inputs": {"dataset": "0" * 64}, "metrics": {"test": {"p@1": 0.5, "map": 0.6, "mrr": 0.6, "questions": 6}},
    "baselines": {"random": {"p@1": 0.1}}, "seconds": 2.0, "created": "2026-01-01T00:00:00+00:00",
    "figures": {"examples": 10, "tokens": 100, "training_seconds": 1.0}, "weights_sha256": {}, "tables_sha256": {
        f"{name}.parquet": hashlib.sha256(damage.encoded(rows, ".parquet")).hexdigest()
        for name, rows in {"scores": SCORES, "per_question": VALUES}.items()},
})  # fmt: skip
PAPER = "sentence_objectives"
RESULT = disk.sealed({**RECORD, "paper": PAPER, "row": "roberta_base", "dataset": "wikiqa", "earlier": [],
          "per_question": [[f"q{n}", 1.0, 0.5, 0.5] for n in range(6)]})  # fmt: skip
LOG = [{"step": n, "loss": 1 / n, **({"eval_map": 0.5} if n == 3 else {})} for n in range(1, 5)]
NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["1/0"], "metadata": {}, "outputs": [
    {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}]}]}  # fmt: skip


def record(path: Path) -> None:
    same(disk.sealed(rundir.read_record(path.parent)), json.loads(path.read_bytes()), "the record")


def all_records(path: Path) -> None:
    found = runs.read_all(path.parents[1])
    same([found.name.tolist(), found.finished.tolist()], [[path.parent.name], [path.is_file()]], "runs")


def exported(path: Path) -> None:
    out = path.parents[2] / "exported"
    shutil.rmtree(out, ignore_errors=True)
    run, qrels = trec.export(path.parent, out)
    held = written(path.with_name("scores.parquet"))
    same([len(file.read_bytes().splitlines()) for file in (run, qrels)], [len(held)] * 2, "lines")


def first_scores(path: Path) -> None:
    same(len(stages.first_scores(path.parent, path.parent)), len(written(path)), "rows")


class One:
    """A line of the table of records: of a run on this machine."""

    def __init__(self, folder: Path):
        self.folder, self.dataset, self.record = folder, "wikiqa", RECORD


def values(path: Path) -> None:
    same(len(records.per_question(One(path.parent))), len(written(path)), "rows")


def committed(path: Path) -> None:
    folder = path.parents[3]
    found = records.records(PAPER, folder / "results", folder / "no runs")
    same(found.row.tolist(), [RESULT["row"]] * path.exists(), "records")
    if not path.exists():
        return
    same(len(records.per_question(next(found.itertuples()))), len(json.loads(path.read_bytes())["per_question"]), "questions")


def cost(path: Path) -> None:
    same(
        len(costs.trained(path.parents[2])),
        int(path.exists() and "examples" in json.loads(path.read_bytes()).get("figures", {})),
        "kinds of runs",
    )


def paper(path: Path) -> None:
    data = papers.read(PAPER, path.parent)
    must(data["slug"] == PAPER, "another paper was accepted")


def curves(path: Path) -> None:
    plots.training_curves({"made up": path})


def last_error(path: Path) -> None:
    must(isinstance(gpus.last_error(path.parent), str), "no words")


def given_parameters(path: Path) -> None:
    given = launch.given_parameters(
        {f"parameters_{name}": [] for name in ("base64", "yaml", "raw")} | {"parameters_file": [str(path)], "parameters": []}
    )
    must(all(name.isidentifier() for name in given), "a parameter that is no name")
    try:
        parameters.check("finetune", given)
    except ValueError as error:  # by the parameter's name; the file is the one that was given
        must(any(name in str(error) for name in given) and len(str(error)) < 10_000, f"refused in {len(str(error)):,} characters: {error}")
        raise ValueError(f"{path.name}: {error}") from error


def checkpoint(path: Path) -> None:
    must(isinstance(saved.damage_of(path.parent), str), "a checkpoint without weights is whole")


def ranker(path: Path) -> None:
    model = rankers.load_ranker(path.parent, "cpu")
    same(sorted(number for number, _ in model.rank("Where?", ["There.", "Here."])), [0, 1], "ranked")


def in_the_runs_folder(name: str) -> None:
    folder = identity.folder_for("finetune", {"dataset": name, "model": "tiny"})
    must(folder.parent == rundir.runs_folder(), f"the run of {name[:99]!r} lies in {folder.parent}")
    must(re.fullmatch(r"finetune[\w.+-]*-[0-9a-f]{12}", folder.name) is not None, f"the run of {name[:99]!r} is called {folder.name!r}")


READERS = {
    "answers.load_answers": answers.load_answers,
    "claims.load_claims": claims.load_claims,
    "evidence.load_evidence": long_questions.load_evidence,
    "sources.documents": lambda name: list(sources.documents(name)),
    "sources.read_titles": sources.read_titles,
    "vectors.read": lambda name: list(vectors.read(name, ("text",))),
    "vectors.Vectors.open": vectors.Vectors.open,
    "corpus.Corpus.open": corpus.Corpus.open,
    "runs.read_record": lambda name: rundir.read_record(rundir.find(name) or name),
    "trec.export": lambda name: trec.export(name, Path("out")),
    "identity.folder_for": in_the_runs_folder,
    "experiments.read": papers.read,
    "weights.source": checkpoints.source,
}


def named(reader: str) -> Callable[[Path], None]:
    """A name that somebody gives: refused in words that have it, and never a way out of the folder of runs."""

    def load(path: Path) -> None:
        try:
            name = str(json.loads(path.read_bytes())["name"])
            name.encode("utf-8", "surrogateescape")  # else no file is called so
        except (ValueError, LookupError, TypeError, RecursionError):
            name = path.name
        try:
            READERS[reader](name)
        except (ValueError, OSError) as error:
            part = max(re.split(r"\W+", name), key=len)[:20]
            must(part in str(error), f"the name {name[:60]!r} was refused without it: {type(error).__name__}: {str(error)[:200]}")
            raise ValueError(f"{path.name}: {error}") from error

    return load


LOADERS = [
    Loader("runs.read_record", f"{RUN}/record.json", RECORD, record),
    Loader("runs.read_all", f"{RUN}/record.json", RECORD, all_records),
    Loader("trec.export", f"{RUN}/record.json", RECORD, exported, beside={f"{RUN}/scores.parquet": SCORES}),
    Loader("trec.export", f"{RUN}/scores.parquet", SCORES, exported, beside={f"{RUN}/record.json": RECORD}),
    Loader("stages.first_scores", f"{RUN}/scores.parquet", SCORES, first_scores, beside={f"{RUN}/record.json": RECORD}),
    Loader("comparisons.per_question", f"{RUN}/per_question.parquet", VALUES, values, beside={f"{RUN}/record.json": RECORD}),
    Loader("experiments.records", f"results/{PAPER}/roberta_base/wikiqa-small-seed0.json", RESULT, committed),
    Loader("costs.trained", f"results/{PAPER}/roberta_base/wikiqa-small-seed0.json", RESULT, cost),
    Loader("experiments.read", f"{PAPER}.yml", (rundir.root() / "experiments" / f"{PAPER}.yml").read_bytes(), paper),
    Loader("report.training_curves", "log.jsonl", LOG, curves, "line {}"),
    Loader("matrix.last_error", "notebook.ipynb", NOTEBOOK, last_error),
    Loader("launch.given_parameters", "parameters.yml", {"dataset": "wikiqa", "epochs": 2, "peak_lr": 1e-5}, given_parameters),
    Loader("saved.damage_of", f"checkpoint-1/{saved.MARKER}", disk.sealed({"model.safetensors": "0" * 64}), checkpoint),
    *(
        Loader("encoders.load_ranker", f"model/{name}", None, ranker, named="model", prepared="model")
        for name in ("config.json", "model.safetensors", "head.safetensors", "tokenizer.json", "tokenizer_config.json")
    ),
    *(Loader(f"name for {reader}", "name.json", {"name": "nobody-0123456789ab"}, named(reader)) for reader in READERS),
]


# ------------------------------------------------------------------ before processes are forked


def prepare(base: Path) -> None:
    """What is read whole and made by the project itself: a tokenizer, indexes, vectors, a model."""
    made = [row["text"] for row in loaders.DOCUMENTS]
    tokenizer = tokenizers.train_tokenizer(made, vocab_size=300)
    tokenizer.save_pretrained(base / "tokenizer")
    corpus.build(made, tokenizer, base / "index", source="made up")
    shards = base / "shards"
    tokenizer.save_pretrained(shards / "tokenizer")
    (shards / "documents.jsonl").write_bytes(damage.encoded(loaders.DOCUMENTS, ".jsonl"))
    made = pipeline.plan(shards / "documents.jsonl", tokenizers.load_tokenizer(shards / "tokenizer"), 2)
    disk.write_json(shards / pipeline.PLAN, made)
    for rank in range(2):
        texts = pipeline._documents(shards / "documents.jsonl", made, rank)
        corpus.build(texts, tokenizer, pipeline._shard(shards, rank))
    vectors.embed(saves.Lengths(), [row["answer"] for row in loaders.TEXTS], base / "vectors", progress=False)
    loading.start_from("tiny", tokenizer, 32).save(base / "model")


def warm(folder: Path) -> None:
    """What is imported at its first use is imported once, before processes are forked."""
    (folder / "log.jsonl").write_text('{"step": 1, "loss": 1.0}\n')
    curves(folder / "log.jsonl")
    (folder / "parameters.yml").write_text("epochs: 1\n")
    given_parameters(folder / "parameters.yml")
