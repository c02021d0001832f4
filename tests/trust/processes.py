"""The same numbers from any number of processes: indexes by workers, batches by a loader's workers, weights by processes that train."""

import copy
import hashlib
import inspect
import json
import multiprocessing
import os
import socket
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import RobertaConfig

from asutil import corpus as c
from asutil import inputs, sampling, training
from asutil.corpus import shards
from asutil.data.answers import Candidate, Question
from asutil.data.claims import Claim, Evidence
from asutil.data.long_questions import Answer, LongQuestion, Passage
from asutil.inputs import groups, slots, triplets
from asutil.inputs import long as long_inputs
from asutil.io import disk
from asutil.models import joint, loading, settings
from asutil.models import pair as pair_models
from asutil.sampling import Sampler
from asutil.training import trainer

from . import must
from .gradients import modules

WORKERS, PROCESSES = (1, 2, 4, 8), (1, 2, 3)
SHARDS = 16  # at least, of an index, so that all workers have some
TRAINED = ("all", "context_all", "mspp")  # a pair head, one for each objective of a union, and a joint model
WAIT = 300  # seconds for processes that train
APART = 1e-9  # of 64-bit weights, from sums in another order
USUAL = {"peak_lr": 3e-3, "warmup_steps": 2, "weight_decay": 0.01, "save_every": 1000, "log_every": 1, "progress": False}


def check(documents: list, tokenizer, steps: int, seed: int, folder: Path) -> dict:
    """Indexes, batches and training of some documents. Returns: how many workers, processes and kinds of batches there were."""
    index = check_indexes(documents, tokenizer, folder)
    kinds = check_loaders(index, seed)
    check_ranks(index.folder, steps, seed, folder)
    return {"workers": len(WORKERS), "ranks": len(PROCESSES), "batches": kinds}


# ------------------------------------------------------------------ indexes


def check_indexes(documents: list, tokenizer, folder: Path) -> c.Corpus:
    """One index by each number of workers: the same files, byte for byte."""
    characters = sum(shards.characters(n, document) for n, document in enumerate(documents))
    made = {}
    with mock.patch.object(shards, "SHARD_CHARACTERS", characters // (SHARDS + 1)):
        for workers in WORKERS:
            index = c.build(documents, tokenizer, folder / f"index-{workers}", workers=workers, source="documents")
            made[workers] = disk.hashes(index.folder, "**/*")
            different = [name for name in made[WORKERS[0]] | made[workers] if made[WORKERS[0]].get(name) != made[workers].get(name)]
            must(not different, f"{workers} workers make another index than {WORKERS[0]}: {', '.join(different)}")
    return c.Corpus.open(folder / f"index-{WORKERS[0]}")


# ------------------------------------------------------------------ batches


def check_loaders(index, seed: int) -> int:
    """Batches of every kind through a loader without workers and with each number of them: the same bytes. Returns: kinds."""
    kinds = batches(index, seed)
    classes = {v for module in modules() for name, v in vars(module).items() if inspect.isclass(v) and name.endswith("Batches")}
    unread = classes - {type(made) for made in kinds.values()}
    must(not unread, f"batches that no worker read: {', '.join(found.__qualname__ for found in unread)}")
    asked = [(name, step) for name, made in kinds.items() for step in range(len(made))]
    together = [(kinds[name], step) for name, step in asked]
    expected = [digest(made[step]) for made, step in together]
    for name, made in kinds.items():
        own = {found for found, (of, _) in zip(expected, asked) if of == name}
        must(len(own) > 1, f"{name}: all {len(made)} steps have one batch")
    for workers in tqdm(WORKERS, "workers that make batches", unit="", dynamic_ncols=True):
        loader = DataLoader(Made(together), batch_size=None, num_workers=workers)
        for found, one, (name, step) in zip(map(digest, loader), expected, asked, strict=True):
            must(found == one, f"{name}: another batch of step {step} from {workers} workers")
    return len(kinds)


class Made(Dataset):
    """Steps of several kinds of batches, one after the other."""

    def __init__(self, steps: list):
        self.steps = steps

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, number: int) -> dict:
        batches, step = self.steps[number]
        return batches[step]


def batches(index, seed: int, steps: int = 5) -> dict:
    """Optimiser batches of every objective and layout, and of every form of fine-tuning."""
    made = {}
    for objective in sampling.OBJECTIVES:
        make = lambda epoch, objective=objective: Sampler(index, objective, seed, epoch)
        for layout in ("ordered", "packed"):
            made[f"{objective}, {layout}"] = inputs.PretrainingBatches(make, steps, 12, 1000, seed, layout=layout)
    tokenizer, asked = index.tokenizer, questions(index)
    pairs = {
        "pair": inputs.Pairs(tokenizer, asked),
        "context": inputs.Pairs(tokenizer, asked, True),
        "joint": groups.Groups(tokenizer, asked, 3),
    }
    for name, read in pairs.items():
        made[name] = inputs.FinetuningBatches(read, 2, 4, 128, 500, seed)
    made["lists"] = inputs.ListBatches(groups.Lists(pairs["pair"], 3), 2, 4, 128, 500, seed)
    for architecture in ("siamese", "triplet"):
        made[architecture] = triplets.TripletBatches(triplets.examples_for(architecture, tokenizer, asked), 2, 5, 64, 500, seed)
    marked = copy.deepcopy(tokenizer)
    long_inputs.add_markers(marked)
    for kind, longest in ((slots.Slots, 96), (slots.Pairs, 64)):
        made[f"claims, {kind.__name__.lower()}"] = slots.ClaimBatches(kind(tokenizer, claims(asked), 5), 2, 3, longest, 400, seed)
    long = long_inputs.Contexts(marked, long_questions(index), ("span", "yes"), 400)
    return made | {"evidence": inputs.LongBatches(long, 2, 3, 400, seed), "written": inputs.LongBatches(long, 2, 3, 400, seed, True)}


def questions(index, count=8) -> list[Question]:
    """Made of an index: a sentence asks, those of a paragraph answer."""
    longest = np.argsort(-np.diff(index.paragraphs), kind="stable")[:count]
    made = []
    for paragraph in longest.tolist():
        texts = [index.text([n]) for n in range(*index.paragraphs[paragraph : paragraph + 2])][:7]
        around = zip([None, *texts], texts, [*texts[1:], None])
        candidates = [Candidate(f"c{n}", text, int(n % 3 == 1), before, after) for n, (before, text, after) in enumerate(around)]
        made.append(Question(f"q{paragraph}", texts[0], tuple(candidates)))
    return made


def claims(asked: list[Question]) -> list[Claim]:
    """The same as claims with their evidence, which some have less of."""
    evidence = [tuple(Evidence("a title", n, candidate.text) for n, candidate in enumerate(one.candidates)) for one in asked]
    return [Claim(one.id, one.text, number % 3, evidence[number][: number % 7]) for number, one in enumerate(asked)]


def long_questions(index, count=8) -> list[LongQuestion]:
    """Made of the same paragraphs: each question has two of them as passages, and a word of the second as its answer."""
    made = questions(index, count + 1)
    passages = [Passage(f"passage {n}", tuple(candidate.text for candidate in one.candidates)) for n, one in enumerate(made)]
    answers = [Answer(two.sentences[0].split()[0], "span", frozenset({(1, 0)})) for two in passages[1:]]
    pairs = zip(made, passages, passages[1:], answers)
    return [LongQuestion(question.id, question.text, (one, two), (answer,)) for question, one, two, answer in pairs]


def digest(value) -> str:
    """A hash of a batch: names, types, shapes and bytes of all that is in it."""
    found = hashlib.sha256()
    for name, part in _leaves(value):
        content = part.numpy().tobytes() if torch.is_tensor(part) else repr(part).encode()
        shape = f"{part.dtype} {tuple(part.shape)}" if torch.is_tensor(part) else ""
        found.update(f"{name} {shape} ".encode() + content)
    return found.hexdigest()


def _leaves(value, name=""):
    if isinstance(value, dict | list):
        for key, part in sorted(value.items()) if isinstance(value, dict) else enumerate(value):
            yield from _leaves(part, f"{name}/{key}")
    else:
        yield name, value


# ------------------------------------------------------------------ processes that train together


def check_ranks(index: Path, steps: int, seed: int, folder: Path) -> None:
    """Models trained by each number of processes, with dropout: the same weights, and every micro-batch taken by one of them."""
    for processes in tqdm(PROCESSES, "processes that train", unit="", dynamic_ncols=True):
        start(processes, index, steps, seed, folder / f"ranks-{processes}")
    for objective in TRAINED:
        each = {processes: outcome(folder / f"ranks-{processes}", objective) for processes in PROCESSES}
        for processes, (weights, rows, taken) in each.items():
            one_weights, one_rows, one_taken = each[PROCESSES[0]]
            said = f"{objective} by {processes} processes"
            for step in range(steps):
                numbers = [number for of_process in taken for number, _ in of_process[step]]
                must(sorted(numbers) == list(range(len(one_taken[0][step]))), f"{said}: each micro-batch once, step {step} took {numbers}")
                same = sorted(tuple(pair) for of_process in taken for pair in of_process[step])
                must(same == [tuple(pair) for pair in one_taken[0][step]], f"{said}: other micro-batches at step {step}")
            must(len(taken) == processes and all(any(steps) for steps in taken), f"{said}: each takes some")
            apart = max(float(np.abs(weights[name] - one_weights[name]).max()) for name in one_weights)
            must(apart < APART, f"{said}: weights {apart:.2g} away from those of one, at most {APART}")
            must(len(rows) == len(one_rows) and all(map(_alike, rows, one_rows)), f"{said}: another log of losses and gradients")


def _alike(row: dict, other: dict) -> bool:
    names = (row.keys() | other.keys()) - {"seconds"}
    return all(abs(row[name] - other[name]) <= 1e-5 * abs(other[name]) for name in names)


def start(processes: int, *given) -> None:
    """Train in so many processes at once, which meet by gloo. Raises: Broken where one of them fails or does not end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # what takes long is imported once
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [context.Process(target=train, args=(rank, processes, port, *given)) for rank in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join(WAIT)
    ended = [process.exitcode for process in started]
    for process in started:
        process.kill()  # one that waits for another that failed
    must(ended == [0] * processes, f"{processes} processes that train end well, got exit codes {ended}")


def train(rank: int, processes: int, port: int, index: Path, steps: int, seed: int, folder: Path) -> None:
    """One of the processes: a few steps of each model; what it took, and of the first one the weights."""
    if processes > 1:
        here = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in here.items()})
    opened = c.Corpus.open(index)
    for objective in TRAINED:
        taken, own = [], folder / objective
        own.mkdir(parents=True, exist_ok=True)
        model, read = new_model(opened.tokenizer, objective), new_batches(opened, objective, steps, seed)
        with mock.patch.object(trainer.StepTrainer, "gradients", _watched(taken)):
            training.train(model, read, own, seed=seed, **USUAL)
        (own / f"taken-{rank}.json").write_text(json.dumps(taken), encoding="utf-8")
        if rank == 0:
            save_file({name: value.detach().numpy() for name, value in model.named_parameters()}, own / "final.safetensors")


def _watched(taken: list):
    """StepTrainer's way to gradients, noting number and hash of every micro-batch that the model is given."""
    plain = trainer.StepTrainer.gradients

    def gradients(self, batch):
        given, forward = [], self.model.forward
        numbers = {digest(micro): number for number, micro in enumerate(batch["micro"])}

        def noted(micro):
            given.append((numbers[digest(micro)], digest(micro)))
            return forward(micro)

        with mock.patch.object(self.model, "forward", noted):
            found = plain(self, batch)
        taken.append(sorted(given))
        return found

    return gradients


def new_model(tokenizer, objective: str):
    """A small model in float64 with dropout, of the kind that an objective is learnt with."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    more = {"pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": 140, "type_vocab_size": 1}
    model = loading.from_config(RobertaConfig(vocab_size=len(tokenizer), **size, **more), tokenizer, seed=1)
    if objective == "context_all":
        pair_models.widen_types(model)
        settings.keep_parts(model.backbone.config, 3)
        model.give_members(3)
    if objective == "mspp":
        model = joint.over(model, joint.shape(True, "ae_k", 5, 6 * 20, "released", "absolute"))
    return model.double()


def new_batches(index, objective: str, steps: int, seed: int):
    """Batches of many micro-batches: more than there are processes, so that `processes.share` leaves them as they are."""
    longest = 6 * 20 if objective == "mspp" else 64
    make = lambda epoch: Sampler(index, objective, seed, epoch, max_tokens=longest)
    return inputs.PretrainingBatches(make, steps, 20 if objective != "mspp" else 10, 250, seed)


def outcome(folder: Path, objective: str) -> tuple[dict, list, list]:
    """Weights, the log's rows, and for each process what it took at each step."""
    own = folder / objective
    taken = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(own.glob("taken-*.json"))]
    rows = [json.loads(line) for line in (own / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return load_file(own / "final.safetensors"), rows, taken
