"""Exact resume: work that is killed at any moment and begun again by the same call ends as work that was left alone.

Pre-training and fine-tuning with early stopping in the same weights, byte for byte, every example once; scoring in the same scores,
no finished window twice; an index, also one in shards, in the same bytes. What has other settings or other data is never gone on with.
"""

import hashlib
import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import torch

from aslab import identity, pipeline
from asutil import corpus, inputs, metrics, sampling, training
from asutil.corpus import shards as corpus_shards
from asutil.corpus import tokenizers
from asutil.data.answers import Candidate, Question
from asutil.io import disk
from asutil.models import loading
from asutil.tasks import base, rank
from asutil.training import checkpoints as saved
from tests.conftest import WORDS, made_up_documents
from tests.trust import kills, must

STEPS = 40
USUAL = {"peak_lr": 3e-3, "warmup_steps": 4, "weight_decay": 0.01, "seed": 5, "save_every": 4, "log_every": 5, "progress": False}


def check(full: bool, seed: int, folder: Path) -> dict:
    """Kills of each kind of work, of which a third of the first at least are inside a save."""
    torch.set_num_threads(1)
    draw, count = random.Random(seed), 100 if full else 20
    held = Held(folder, random.Random(seed))
    found = pretraining(held, count, draw)
    rest = {
        "fine_tuning_kills": fine_tuning(held, count if full else 8, draw),
        "scoring_kills": scoring(held, count if full else 8, draw),
        "index_kills": index(held, count if full else 5, draw),
        "shards_kills": shards(held, count if full else 3, draw),
        "other_settings_refused": others(held),
    }
    return found | rest


class Held:
    """What all of it is about: made-up documents and questions, a tokenizer, an index."""

    def __init__(self, folder: Path, draw: random.Random):
        self.folder = folder
        self.documents = made_up_documents(60, draw.randrange(2**31), paragraphs=(3, 6), sentences=(2, 6))
        self.tokenizer = tokenizers.train_tokenizer((" ".join(" ".join(p) for p in d) for d in self.documents), vocab_size=400)
        self.index = corpus.build(self.documents, self.tokenizer, folder / "corpus")
        self.asked = [_question(draw, number) for number in range(40)]

    def model(self):
        return loading.tiny(self.tokenizer, seed=3)


def _question(draw, number: int) -> Question:
    words, right = draw.sample(WORDS, 4), draw.randrange(6)
    texts = [" ".join(draw.choices(WORDS, k=8)) + (" " + " ".join(words)) * (i == right) for i in range(6)]
    found = tuple(Candidate(f"q{number}-{i}", text, int(i == right), None, None) for i, text in enumerate(texts))
    return Question(f"q{number}", f"Where is the {' '.join(words)}?", found)


# ------------------------------------------------------------------ training


class Noted:
    """Batches that note which examples a step reads, when it reads them."""

    def __init__(self, batches, log: Path, names):
        self.batches, self.log, self.names = batches, log, names
        self.begun = False  # the first read is no step: it tells the data

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, step: int) -> dict:
        if self.begun:
            kills.noted(self.log, json.dumps([step, self.names(self.batches.examples(step))]))
        self.begun = True
        return self.batches[step]


def _batches(held: Held) -> inputs.PretrainingBatches:
    make = lambda epoch: sampling.Sampler(held.index, "psd", 5, epoch=epoch, max_tokens=64)
    return inputs.PretrainingBatches(make, STEPS, 8, 1024, 5)


def _pretrain(held: Held, folder: Path) -> None:
    names = lambda parts: [[epoch, int(number)] for epoch, numbers in parts for number in numbers]
    model = held.model()
    training.train(model, Noted(_batches(held), folder / "seen.jsonl", names), folder, **USUAL)
    model.save(folder / "model")


def _finetune(held: Held, folder: Path) -> None:
    model = held.model()
    pairs = rank.Ranker(model, 48).inputs_of(held.asked[:16])
    batches = inputs.FinetuningBatches(pairs, 8, 32, 48, 1024, 5)
    evaluate = lambda model: metrics.of(rank.Ranker(model, 48).score(held.asked[30:], progress=False)).record()
    names = lambda numbers: [int(number) for number in numbers]
    stopping = {"evaluate": evaluate, "evaluate_every": batches.steps_an_epoch, "patience": 2}
    history = training.train(model, Noted(batches, folder / "seen.jsonl", names), folder, **USUAL, **stopping)
    model.save(folder / "model")
    (folder / "best.json").write_text(json.dumps([history["best"], history["steps"]]))


def _half_written(folder: Path) -> bool:
    """Whether a checkpoint, or the best weights, are being saved just now."""
    return any((folder / "checkpoints").glob(".*.part")) or any((folder / "checkpoints").glob(".*.former"))


def pretraining(held: Held, count: int, draw) -> dict:
    """Kills of pre-training, half of them inside a save."""
    found, weights, seen = _trained(held, "pretraining", lambda folder: _pretrain(held, folder), count, draw)
    examples = [tuple(one) for step in sorted(seen) for one in seen[step]]
    must(len(examples) == STEPS * 8 and max(Counter(examples).values()) == 1, "pre-training: an example was lost or read twice")
    enough = found.inside >= 0.3 * found.kills or count < 20
    must(enough, f"pre-training: {found.inside} of {found.kills} kills were inside a save, expected 3 in 10")
    return {"kills": found.kills, "inside_saves": found.inside, "runs": len(found.finished), "weights_sha256": weights[:12]}


def fine_tuning(held: Held, count: int, draw) -> int:
    """Kills of fine-tuning with early stopping, which must stop at the same step with the same best weights."""
    found, _, _ = _trained(held, "fine_tuning", lambda folder: _finetune(held, folder), count, draw)
    whole = (found.whole / "best.json").read_text()
    for folder in found.finished:
        came = (folder / "best.json").read_text()
        must(came == whole, f"{folder}: best and last step {whole} expected, got {came}")
    return found.kills


def _trained(held: Held, name: str, work, count: int, draw):
    """The kills, the sha256 of the final weights, and the examples of every step, which are the same in every run."""
    found = kills.again_and_again(work, held.folder / name, count, draw, _half_written)
    expected, seen = _weights(found.whole), _examples(found.whole)
    for folder in found.finished:
        must(_weights(folder) == expected, f"{folder}: weights {expected[:16]} expected, as without a kill, got {_weights(folder)[:16]}")
        must(_examples(folder) == seen, f"{folder}: other examples than without a kill")
        must(_without_time(folder) == _without_time(found.whole), f"{folder}: another log.jsonl than without a kill")
        must(not _half_written(folder), f"{folder}: a half-written checkpoint is left behind")
        must("unfinished or damaged" not in (folder / "output.txt").read_text(), f"{folder}: a kill left a checkpoint that cannot be read")
        shutil.rmtree(folder / "checkpoints")
    return found, expected, seen


def _weights(folder: Path) -> str:
    return hashlib.sha256((folder / "model" / "model.safetensors").read_bytes()).hexdigest()


def _examples(folder: Path) -> dict[int, list]:
    """step -> its examples. Raises: Broken where a step read others when it was done again, or where steps were left out."""
    found, before = {}, None
    for line in kills.lines(folder / "seen.jsonl"):
        step, names = json.loads(line)
        must(found.setdefault(step, names) == names, f"{folder}: step {step} read other examples the second time")
        must(step <= (-1 if before is None else before) + 1, f"{folder}: step {step} came after {before}")
        must(
            step > (before or 0) - 2 * USUAL["save_every"] or not step,
            f"{folder}: step {step} after {before}: more than two saves were lost",
        )
        before = step
    return found


def _without_time(folder: Path) -> list[dict]:
    rows = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


# ------------------------------------------------------------------ scoring and indexes


def scoring(held: Held, count: int, draw) -> int:
    """Kills of a scoring by windows: the same scores, and a window that was finished is not scored again."""
    model, window = held.model().eval(), base.WINDOW

    def work(folder: Path) -> None:
        base.WINDOW, ranker, score = 12, rank.Ranker(model, 48), rank.Ranker._scores

        def noted(self, pairs, *rest):
            scores = score(self, pairs, *rest)
            kills.noted(folder / "scored.txt", pairs.question_ids[0])
            return scores

        rank.Ranker._scores = noted
        scores = ranker.score(held.asked * 3, progress=False, folder=folder / "parts")
        disk.atomically(folder / "scores.parquet", lambda path: scores.to_parquet(path))

    found = kills.again_and_again(work, held.folder / "scoring", count, draw)
    whole = pd.read_parquet(found.whole / "scores.parquet")
    must(window == base.WINDOW, "the size of a window is this process' own")
    for folder in found.finished:
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "scores.parquet"), whole, rtol=0, atol=0)
        scored = len(list(kills.lines(folder / "scored.txt")))
        must(60 <= scored <= 60 + found.kills, f"{folder}: {scored} windows scored for 60 and {found.kills} kills")
    return found.kills


def _same_bytes(folder: Path, whole: Path, name: str) -> None:
    ours, theirs = (_contents(one / name) for one in (folder, whole))
    other = sorted(str(path) for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path))
    must(not other, f"{folder / name}: {', '.join(other)} differ from an index whose building was not killed")
    leftovers = [path.name for path in (folder / name).parent.glob(f".{name}.*") if path.suffix != ".lock"]
    must(not leftovers, f"{folder}: {', '.join(leftovers)} left behind")


def _contents(folder: Path) -> dict:
    """Path -> bytes, but for datatrove's logs, which have times."""
    files = (path for path in folder.rglob("*") if path.is_file() and "datatrove" not in path.parts)
    return {path.relative_to(folder): path.read_bytes() for path in files}


def index(held: Held, count: int, draw) -> int:
    """Kills of the building of an index by two processes, in some 8 shards."""

    def work(folder: Path) -> None:
        corpus_shards.SHARD_CHARACTERS = 10_000
        if not (folder / "corpus").is_dir():
            corpus.build(held.documents * 3, held.tokenizer, folder / "corpus", workers=2)

    return _built(held, "index", work, count, draw)


def shards(held: Held, count: int, draw) -> int:
    """Kills of the building of an index in 4 shards, two at a time, by datatrove."""
    source, tokenizer = held.folder / "documents.jsonl", held.folder / "tokenizer"
    texts = ("\n\n".join(" ".join(paragraph) for paragraph in document) for document in held.documents * 3)
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    held.tokenizer.save_pretrained(tokenizer)

    def work(folder: Path) -> None:
        pipeline.build(str(source), str(tokenizer), folder / "corpus", tasks=4, workers=2, limit=180)

    return _built(held, "shards", work, count, draw)


def _built(held: Held, name: str, work, count: int, draw) -> int:
    found = kills.again_and_again(work, held.folder / name, count, draw)
    for folder in found.finished:
        _same_bytes(folder, found.whole, "corpus")
        corpus.Corpus.open(folder / "corpus", held.tokenizer)
    return found.kills


# ------------------------------------------------------------------ other settings, other data


def others(held: Held) -> int:
    """Every changed setting of a training is refused, and every changed parameter or file of a run makes another run."""
    folder, refused = held.folder / "pretraining" / "whole", 0
    changes = {"peak_lr": 1e-3, "warmup_steps": 5, "weight_decay": 0.1, "seed": 6, "mlm_weight": 0.5, "objective_weight": 2.0}
    for name, value in changes.items():
        try:
            training.train(held.model(), _batches(held), folder, **USUAL | {name: value})
        except ValueError as error:
            must(f"this one has {name} {value}" in str(error), f"{name} {value}: {error}")
            refused += 1
        else:
            must(False, f"a checkpoint of {name} {USUAL.get(name)} was gone on with at {value}")
    must(saved.newest_checkpoint(folder / "checkpoints") is not None, "the checkpoint of the first settings is gone")
    mine = held.folder / "mine.txt"
    names = {identity.of_run("pretrain", {"corpus": str(mine), **given})["name"] for given in _changes(mine)}
    must(len(names) == 6, f"6 runs expected of 6 changes of parameters or data, got {len(names)}")
    return refused + len(names)


def _changes(path: Path):
    """Parameters of runs, each with one change, the last two of the file that they read."""
    for given in ({}, {"steps": 7}, {"seed": 1}, {"objective": "sp"}):
        path.write_text("One text. " * 50)
        yield given
    for text in ("One text. " * 49 + "Two text. ", "One text. " * 51):
        path.write_text(text)
        yield {}
