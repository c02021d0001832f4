"""How time and memory grow: with the corpus, the candidates of a question, the length of an input, vectors on disk, and processes.

Every point is measured in a process of its own, so that its peak of memory is its own: an index built and opened, and examples sampled
from it, of 10 MB to 1 GB of text; questions ranked with up to 100,000 candidates; training steps of pairs of up to 512 tokens; 64
questions searched among up to ten million vectors on disk, where there is room for twice these; and the same training steps in one
process and in several, of one thread each on a CPU, of one GPU each where there are some.

    python benchmarks/growth.py [--quick]

The corpus is local/wikipedia_large of ASUTIL_MIRROR; without it the embedded pydocs. Where more text is asked for than there is, its
documents come again with other words. Models have random weights, and vectors are normal and of length 1. `exponents` are the slopes
of log(time) and of log(memory) over log(size): 1 is linear. The ratio is that of the tokens that two processes train on in a second
to those of one.
"""

import itertools
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import side_by_side
import torch
from made_vectors import unit, written
from transformers import RobertaConfig

from asutil import corpus, sampling, training
from asutil.corpus import arrays, sources, tokenizers
from asutil.data.answers import Candidate, Question
from asutil.io import hub
from asutil.models import loading
from asutil.tasks import rank

GOAL = 1.6
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
MEGABYTES, CANDIDATES, LENGTHS = (10, 50, 155, 1000), (10, 100, 1000, 10_000, 100_000), (64, 128, 256, 512)
MILLIONS, DIMENSIONS, QUESTIONS = (0.3, 1, 3, 10), 384, 64  # vectors on disk
EXAMPLES, STEPS, PAIRS = 100_000, 12, 64
ROUNDS = 3
TIMES = {  # of a kind: its size, and the seconds or milliseconds of a point
    "corpus": ("megabytes", lambda point: point["build_seconds"]),
    "candidates": ("candidates", lambda point: point["milliseconds_a_question"]),
    "lengths": ("length", lambda point: point["length"] / point["tokens_a_second"]),
    "vectors": ("millions", lambda point: point["search_seconds"]),
}


def peak() -> int | None:
    """The most memory of this process since it began, in MiB; of its GPU where there is one."""
    if GPU:
        return torch.cuda.max_memory_allocated() >> 20
    status = Path("/proc/self/status")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) // 1024 if status.exists() else None


def alone(function, *given) -> dict:
    """What a function measures in a fresh process, and that process's peak of memory before and after it."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.apply(_measured, (function, given))


def _measured(function, given) -> dict:
    before = peak()
    done = function(*given)
    return {"peak_memory_mib": peak(), "before_mib": before} | done


def config(tokens: int, tokenizer) -> RobertaConfig:
    return RobertaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=4,
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=tokens + 2,
        type_vocab_size=1,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )


def some(source: str, characters: int):
    """Documents of a source that have so many characters together; when they are read again, a prefix makes most sentences differ."""
    held = 0
    for reading in itertools.count():
        for document in sources.documents(source):
            paragraphs = [document] if isinstance(document, str) else document
            if reading:
                paragraphs = [paragraph.replace(". ", f". In reading {reading} ") for paragraph in paragraphs]
            yield paragraphs
            held += sum(map(len, paragraphs))
            if held >= characters:
                return
        if not held:
            raise ValueError(f"{source} has no text")


def exponent(points: list[dict], size: str, measure) -> float:
    """b of measure = a size^b, by least squares of the logarithms.

    Example:
        >>> exponent([{"n": 1, "s": 3}, {"n": 10, "s": 300}], "n", lambda point: point["s"])
        2.0
    """
    pairs = [(point[size], measure(point)) for point in points]
    return round(float(np.polyfit(*np.log(pairs).T, 1)[0]), 3)


def exponents(measured: dict) -> dict:
    """The exponents of time, and of memory without that of an idle process, for each kind with two sizes or more."""
    fitted = {}
    for kind, (size, seconds) in TIMES.items():
        points = measured.get(kind, ())
        if len(points) > 1:
            fitted[kind] = {"time": exponent(points, size, seconds)}
            if points[0]["before_mib"] is not None and not (GPU and kind == "corpus"):  # that peak is the GPU's
                grown = lambda point: max(1, point["peak_memory_mib"] - point["before_mib"])
                fitted[kind]["memory"] = exponent(points, size, grown)
    return fitted


# ------------------------------------------------------------------ what is measured


def of_corpus(source: str, folder: str, megabytes: int) -> dict:
    """An index of so much text, built by one worker, opened, and sampled from."""
    tokenizer = tokenizers.load_tokenizer(folder)
    with tempfile.TemporaryDirectory() as built:
        started = time.perf_counter()
        found = corpus.build(some(source, megabytes * 10**6), tokenizer, Path(built) / "index")
        building = time.perf_counter() - started
        held = sum((found.folder / f"{name}.npy").stat().st_size for name in arrays.ARRAYS)
        started = time.perf_counter()
        sampler = sampling.Sampler(corpus.Corpus.open(found.folder), "ssp")
        opening = time.perf_counter() - started
        count, started = min(EXAMPLES, len(sampler)), time.perf_counter()
        for numbers in np.array_split(np.arange(count), max(1, count // 4096)):
            sampler.spans(numbers)
        sampled = count / (time.perf_counter() - started)
    seconds = {
        "build_seconds": round(building, 2),
        "sampler_seconds": round(opening, 2),
        "examples_a_second": round(sampled),
    }
    return {"megabytes": megabytes, "tokens": found.info["tokens"], "disk_mb": round(held / 1e6, 1), **seconds}


def of_candidates(folder: str, candidates: int, repeat: int) -> dict:
    """Questions with so many candidates of some twenty words, ranked."""
    tokenizer = tokenizers.load_tokenizer(folder)
    model = loading.from_config(config(128, tokenizer), tokenizer).to(DEVICE)
    draw = np.random.default_rng(0)
    words = [tokenizer.decode([token]).strip() or "word" for token in draw.integers(300, len(tokenizer), 400)]
    text = lambda count: " ".join(draw.choice(words, count))
    questions = [
        Question(
            f"q{n}", text(8), tuple(Candidate(f"c{k}", text(20), int(k == 0), None, None) for k in range(candidates))
        )
        for n in range(repeat)
    ]
    ranker = rank.Ranker(model, 128)
    ranker.score(questions[:1], progress=False)  # warm
    started = time.perf_counter()
    ranker.score(questions, progress=False)
    return {
        "candidates": candidates,
        "milliseconds_a_question": round(1000 * (time.perf_counter() - started) / repeat, 1),
    }


def of_length(folder: str, tokens: int, steps: int) -> dict:
    """Training steps of pairs that are all of so many tokens."""
    tokenizer = tokenizers.load_tokenizer(folder)
    model = loading.from_config(config(tokens, tokenizer), tokenizer)
    batches = Steps(len(tokenizer), tokens, steps, pairs=PAIRS)
    with tempfile.TemporaryDirectory() as out:
        done = trained(model, batches, out)
    return {"length": tokens, "tokens_a_second": round(done["tokens"] / done["seconds"])}


def of_vectors(folder: str, millions: float) -> dict:
    """So many vectors written to disk, and searched a second time, when their lengths are known.

    Its memory is what the first search allocates: the pages of the mapped file are the system's.
    """
    idle = peak()
    questions = unit(QUESTIONS, DIMENSIONS, [1, 1])
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        vectors, writing = written(temporary, round(millions * 10**6), DIMENSIONS)
        tracemalloc.start()
        vectors.search(questions, 10, "dot")
        allocated = tracemalloc.get_traced_memory()[1] >> 20
        tracemalloc.stop()
        started = time.perf_counter()
        vectors.search(questions, 10, "dot")
        searching = time.perf_counter() - started
    done = {"millions": millions, "write_seconds": round(writing, 1), "search_seconds": round(searching, 3)}
    return done | {"peak_memory_mib": (idle or 0) + allocated}


def of_processes(folder: str, processes: int, steps: int) -> dict:
    """The same training steps in some processes; the seconds are those of the first one's loop, without its start."""
    with tempfile.TemporaryDirectory() as out:
        several = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        command = [sys.executable, *several, str(Path(__file__).resolve()), "--worker", folder, out, str(steps)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
        done = json.loads((Path(out) / "done.json").read_text(encoding="utf-8"))
    return {
        "processes": processes,
        "tokens_a_second": round(done["tokens"] / done["seconds"]),
        "peak_memory_mib": done["peak_memory_mib"],
    }


# ------------------------------------------------------------------ training steps


class Steps(torch.utils.data.Dataset):
    """Optimiser batches of random pairs of one length, in micro-batches of 2,048 tokens; a tenth of the tokens is masked."""

    def __init__(self, vocabulary: int, tokens: int, steps: int, pairs: int):
        self.vocabulary, self.tokens, self.steps, self.pairs, self.micro_tokens = vocabulary, tokens, steps, pairs, 2048

    def __len__(self):
        return self.steps

    def __getitem__(self, step: int) -> dict:
        draw, masked = np.random.default_rng(step), self.tokens // 10
        rows = max(1, self.micro_tokens // self.tokens)
        parts = []
        for start in range(0, self.pairs, rows):
            count = min(rows, self.pairs - start)
            ids = draw.integers(300, self.vocabulary, (count, self.tokens))
            places = (np.arange(count)[:, None] * self.tokens + np.arange(1, masked + 1)).ravel()
            part = {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": draw.integers(0, 2, count)}
            part |= {"masked_positions": places, "masked_targets": ids.ravel()[places]}
            parts.append({name: torch.from_numpy(array) for name, array in part.items()})
        return {
            "micro": parts,
            "examples": self.pairs,
            "masked": masked * self.pairs,
            "tokens": self.tokens * self.pairs,
        }


def trained(model, batches, out) -> dict:
    """Tokens and seconds of all steps but the first quarter, by the lines of the log."""
    options = {
        "peak_lr": 1e-4,
        "warmup_steps": 1,
        "weight_decay": 0.01,
        "seed": 0,
        "save_every": 10**6,
        "progress": False,
    }
    first = max(1, len(batches) // 4)
    rows = [row for row in training.train(model, batches, out, log_every=first, **options)["log"] if "tokens" in row]
    return {name: rows[-1][name] - rows[0][name] for name in ("tokens", "seconds")}


def worker(folder: str, out: str, steps: str) -> None:
    """One of several processes."""
    torch.set_num_threads(1)
    tokenizer = tokenizers.load_tokenizer(folder)
    done = trained(
        loading.from_config(config(128, tokenizer), tokenizer),
        Steps(len(tokenizer), 128, int(steps), pairs=2 * PAIRS),
        out,
    )
    if os.environ["RANK"] == "0":
        (Path(out) / "done.json").write_text(json.dumps(done | {"peak_memory_mib": peak()}), encoding="utf-8")


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--folder", default="runs/benchmarks", help="where the tokenizer is kept")
    given = parser.parse_args()
    source = "local/wikipedia_large" if hub.mirror("local/wikipedia_large") else "pydocs"
    folder = Path(given.folder) / "growth-tokenizer"
    if not folder.is_dir():
        texts = (
            "\n\n".join(one) if isinstance(one, list) else one
            for one in itertools.islice(sources.documents(source), 2000)
        )
        tokenizers.train_tokenizer(texts, vocab_size=8192).save_pretrained(folder)
    folder = str(folder.resolve())
    sizes = MEGABYTES[: 2 if given.quick else None]
    room = shutil.disk_usage(given.folder).free
    fitting = [size for size in MILLIONS[: 2 if given.quick else None] if 2 * size * 4 * DIMENSIONS * 10**6 < room]
    steps, rounds = (8, 1) if given.quick else (STEPS, given.rounds or ROUNDS)
    known = sorted({1, 2, torch.cuda.device_count()} - {0}) if torch.cuda.device_count() > 1 else [1] if GPU else [1, 2]
    measured = {
        "corpus": [alone(of_corpus, source, folder, size) for size in sizes],
        "candidates": [
            alone(of_candidates, folder, count, max(1, (300 if given.quick else 2000) // count))
            for count in CANDIDATES[: 3 if given.quick else None]
        ],
        "lengths": [alone(of_length, folder, tokens, steps) for tokens in LENGTHS[: 2 if given.quick else None]],
        "vectors": [] if GPU else [alone(of_vectors, given.folder, size) for size in fitting],
    }
    measured["exponents"] = exponents(measured)
    turns = [
        [of_processes(folder, count, steps) for count in known[:: -1 if number % 2 else 1]] for number in range(rounds)
    ]
    each = {count: [one for turn in turns for one in turn if one["processes"] == count] for count in known}
    measured["processes"] = [
        {
            name: float(np.median([one[name] for one in found])) if found[0][name] is not None else None
            for name in found[0]
        }
        for found in each.values()
    ]
    rates = {count: [one["tokens_a_second"] for one in found] for count, found in each.items()}
    ratio = side_by_side.spread(two / one for one, two in zip(rates[1], rates.get(2, rates[1])))
    settings = {
        "source": source,
        "rounds": rounds,
        "quick": given.quick,
        "model": {"layers": 4, "hidden": 256, "vocabulary": 8192},
    }
    side_by_side.show(
        side_by_side.headline("growth", GOAL, {"two_processes_against_one": ratio}, **measured, **settings)
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
    else:
        main()
