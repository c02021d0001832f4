"""What the book shows of measurements, counted again as in `traced`: benchmarks, cosines, what runs took, and these drills."""

import hashlib
import json
import statistics
from pathlib import Path

import yaml

from .traced import NAMES, NONE

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BACKENDS = {
    "torch": "Granite, fine-tuned as a pair model",
    "onnx": "Granite pair model, ONNX",
    "onnx_int8": "Granite pair model, ONNX in 8 bits",
}


def benchmark(root: Path, name: str) -> dict | None:
    path = root / "results" / "benchmarks" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def machine(known: dict) -> str:
    device = known["gpu"] or f"{known['cores']} cores of {known['processor']}"
    return f"{device}, {known['system']}, Python {known['python']}"


def shown(value) -> str:
    """Three digits that count, thousands marked; words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


MEASURED = {
    "sampling": ["Making pre-training examples", "tokenizing, padding and masking finished pairs of text"],
    "index": ["Building the token index", "a sentence splitter and a tokenizer alone"],
    "training_step": ["Training, tokens a second", "Trainer of transformers, padded to 128 tokens"],
    "cpu_step": ["A training step on a CPU", "a plain PyTorch loop, ordered by length"],
    "start": ["From a command to the first training step", "8 seconds"],
    "book": ["Building this book", "three minutes, ten seconds where nothing changed"],
    "scoring": ["Scoring candidates", "CrossEncoder.predict of sentence-transformers"],
    "scoring-gpu": ["Scoring candidates", "CrossEncoder.predict as it comes, float32; ours bf16"],
    "metrics": ["Ranking metrics", "torchmetrics and trec_eval"],
    "latency": ["A joint model, all questions in batches", "the pair model on the same candidates"],
    "search": ["Exact search among a million vectors", "sentence-transformers"],
    "encoding": ["Texts to vectors", "SentenceTransformer.encode"],
    "contention": ["A run beside others on the same cores", "its fair share of the cores"],
    "own_questions": ["Memory to read 500,000 questions", "three times the size of their file"],
}


def benchmarks(root: Path, *names: str):
    """The overview of all, then the figures of each."""
    found = {name: benchmark(root, name) for name in names}
    for name, one in found.items():
        title, peer = MEASURED.get(name) or MEASURED[name.removesuffix("-gpu")]
        what = [f"{title}, GPU" if name.endswith("-gpu") else title, peer]
        if one is None:
            yield [*what, "", "", "", "not run"]
            continue
        reached = "reached" if one["ratio"] >= one["goal"] else "not reached"
        between = f"{shown(one['spread']['least'])} to {shown(one['spread']['most'])}"
        yield [*what, shown(one["ratio"]), between, shown(one["goal"]), reached]
    for one in filter(None, found.values()):
        yield from details(one)


def details(one: dict):
    """Every figure of a benchmark, and where and when it was measured."""
    apart = ("name", "ratio", "goal", "spread", "machine", "commit", "created")
    yield from ([label, text] for label, text in flat({key: value for key, value in one.items() if key not in apart}))
    yield ["measured on", machine(one["machine"])]
    yield ["versions", ", ".join(f"{name} {version}" for name, version in one["machine"]["versions"].items())]
    yield from ([word, one.get(key, "unknown")] for word, key in (("commit", "commit"), ("date", "created")))


def backends(root: Path):
    """What stands above the table, a line for each backend, then all figures."""
    one = benchmark(root, "backends")
    if one is None:
        return
    where = f"{one['model']} on the {one['questions']:,} test questions of {one['dataset']}, {one['pairs']:,} pairs"
    yield f"{where}; medians of {one['rounds']} rounds, {one['threads']} threads, {machine(one['machine'])}; MAP in points."
    for side, title in (("torch", "torch, float32"), ("onnx", "ONNX, float32"), ("onnx_int8", "ONNX, weights of 8 bits")):
        own, times, lost = one[side], "1", "–"
        if side != "torch":
            low, high = (100 * float(edge) for edge in own["interval"].split(" to "))
            times, lost = (
                f"{own['times_torch']['median']:.1f}",
                f"{100 * own['map'] - 100 * one['torch']['map']:+.1f} [{low:+.1f}, {high:+.1f}]",
            )
        yield [title, f"{own['pairs_a_second']['median']:,.0f}", times, f"{100 * own['map']:.1f}", lost, f"{own['megabytes']:.0f}"]
    yield from details(one)


def flat(found: dict, before: str = ""):
    """(name, text) of every figure in nested dictionaries; a median is one with its least and most."""
    for name, value in found.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            if {"median", "least", "most"} <= set(value):
                yield label, f"{shown(value['median'])} ({shown(value['least'])} to {shown(value['most'])})"
            yield from flat(
                {key: one for key, one in value.items() if key not in ("median", "least", "most") or "most" not in value}, f"{label}: "
            )
        elif value is not None:
            yield label, shown(value)


def latency(root: Path):
    """The words under the plot, then the ratios by number of candidates."""
    for one in filter(None, (benchmark(root, name) for name in ("latency", "latency-gpu"))):
        model, rounds, paper = one["model"], one["rounds"], one["published"]
        yield (
            f"Time to rank the first k candidates of {one['questions']:,} questions of {one['dataset']} from texts to scores, "
            f"{one['questions_alone']:,} of them also one at a time: the median over {rounds} round{'s' * (rounds > 1)}, by "
            f"{model['name']} ({model['layers']} layers of {model['hidden']}) on {machine(one['machine'])}. Padded: every text to "
            f"{one['slot_tokens']} tokens, as in the paper's formula, whose lines start from the time of padded pairs."
        )
        for k, at in one["by_k"].items():
            found = [ratio["median"] for way in ("joint_by_pair", "joint_by_pair_padded") for ratio in at[way].values()]
            printed = f"{paper['joint_seconds']} / {paper['pair_seconds']} = {paper['joint_seconds'] / paper['pair_seconds']:.2f}"
            yield [k, *(f"{value:.2f}" for value in (*found, *at["formula"].values())), printed if int(k) == paper["k"] else NONE]


def slot_cosines(root: Path):
    """The words under the plot, then each model's cosines after its last layer."""
    for one in filter(None, [cosines(root)]):
        yield (
            f"Mean cosine between two {one.get('between', 'slots')} of one input, after the embeddings (0) and after each layer, before "
            "any training: "
            f"{one['inputs']} inputs of {one['dataset']}. At 1 they are all one vector. Types: the standard deviation of fresh slot types."
        )
        for model in one["models"]:
            last = [model[name][-1] for name in ("first", "first_least", "mean", "mean_least")]
            yield [slotted(model), *(f"{value:.4f}" for value in last)]


def cosines(root: Path) -> dict | None:
    path = root / "results" / "joint_inference" / "slot_cosines.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def slotted(model: dict) -> str:
    name = model["model"].rpartition("/")[2]
    return f"{'RoBERTa-Base, random weights' if name == 'random' else name}, types {model['init']:g}"


def start(root: Path):
    """A line a part: median, least and most of its seconds."""
    for one in filter(None, [benchmark(root, "start")]):
        for part, at in one["seconds"].items():
            if part != "whole":
                yield [part, f"{at['median']:.1f} ({at['least']:.1f} to {at['most']:.1f})", ""]


def growth(root: Path):
    """The words under the plot, then the memory of the smallest and the largest size."""
    grows = {"corpus": "megabytes", "candidates": "candidates", "lengths": "length", "vectors": "millions", "processes": "processes"}
    words = ("corpus, MB of text", "candidates of a question", "tokens of an input", "vectors on disk, millions", "processes")
    for one in filter(None, (benchmark(root, name) for name in ("growth", "growth-gpu"))):
        yield (
            "Time grows in proportion to the size (dashed). Each point was measured in a process of its own, on "
            f"{machine(one['machine'])}; text of {one['source']}, a model of {one['model']['layers']} layers of "
            f"{one['model']['hidden']}, one thread a process. Two processes train on {one['ratio']:.2f} times the tokens of one "
            f"({one['spread']['least']:.2f} to {one['spread']['most']:.2f} from round to round)."
        )
        for (name, size), label in zip(grows.items(), words):
            ends = [at for at in one.get(name, ()) if at["peak_memory_mib"] is not None]
            if ends:
                first, last = ends[0], ends[-1]
                memory = f"{first['peak_memory_mib']:,.0f} to {last['peak_memory_mib']:,.0f}"
                powers = one.get("exponents", {}).get(name, {})
                fitted = [f"{powers[of]:.2f}" if of in powers else NONE for of in ("time", "memory")]
                yield [label, f"{first[size]:,.10g} to {last[size]:,.10g}", memory, *fitted]


def trained(root: Path):
    """The committed runs that trained on CPUs, by kind: the number of cores they ran on, and medians."""
    kinds, found = {}, {}
    for path in sorted((root / "results").glob("*/*/*.json")):
        one = json.loads(path.read_text("utf-8"))
        if one.get("figures", {}).get("examples") and not one["hardware"].get("gpu"):
            found[one["name"]] = one
    for one in found.values():
        settings = one["settings"]
        kind = next((settings[name] for name in ("objective", "architecture", "head") if settings.get(name)), "pair")
        kind += f", pairs of {settings['data']}" if settings.get("data") else ""
        more = [settings.get("loss"), f"{settings['train_limit']:,} questions" if settings.get("train_limit") else None]
        kind = ", ".join([kind, *filter(None, more)])
        about = one["notebook"], kind, settings.get("dataset") or settings.get("corpus"), one["budget"], settings["max_tokens"]
        kinds.setdefault(about, []).append(one)
    cores = {one["hardware"]["cpu_cores"] for one in found.values()}
    on = "two" if cores == {2} else " or ".join(map(str, sorted(cores)))
    yield f"Committed runs on {on} CPU cores: the median of each kind. An example of joint is a candidate, not a group."
    for (notebook, kind, data, budget, longest), of in sorted(kinds.items()):
        measured = [(one["figures"]["tokens"], one["figures"]["examples"], one["figures"]["training_seconds"]) for one in of]
        tokens, speed = (statistics.median(each) for each in ([t / n for t, n, _ in measured], [t / s for t, _, s in measured]))
        share = f"{tokens / longest:.0%}" if notebook in ("pretrain", "finetune") and kind != "joint" else NONE
        hours = statistics.median(max(one["seconds"], s) / 3600 for one, (_, _, s) in zip(of, measured))
        figures = [str(len(of)), str(longest), f"{tokens:.0f}", share, f"{speed:,.0f}", f"{hours:.2f}"]
        yield [notebook, kind, NAMES.get(data, data), budget, *figures]


def trust(root: Path):
    """The figures of each part of `python -m tests.trust` in their words, and what they were measured with."""
    words = yaml.safe_load((root / "book" / "_ext" / "trust.yml").read_text("utf-8"))
    records = sorted((root / "results" / "trust").glob("*.json"))
    sources = hashlib.sha256()
    for package in ("asutil", "aslab"):
        for name in sorted(path.relative_to(root / package).as_posix() for path in (root / package).rglob("*.py")):
            digest = hashlib.sha256((root / package / name).read_bytes()).hexdigest()
            sources.update(f"{package}/{name}\0{digest}\n".encode())
    for path in records:
        record = json.loads(path.read_text("utf-8"))
        counted = [(said, record["figures"].get(name)) for name, said in words[record["part"]].items()]
        told = [
            said.replace("{}", str(count) if isinstance(count, float | str) else f"{count:,}")
            for said, count in counted
            if count is not None
        ]
        if broken := record["figures"].get("broken"):
            told = [f"broken: {broken}"]
        cores, day = record["hardware"]["cpu_cores"], record["created"].split("T")[0]
        commit = record["commit"][:7] + " with uncommitted changes" * record["commit"].endswith("+changes")
        later = ", before later changes of asutil and aslab" * (record["sources_sha256"] != sources.hexdigest())
        origin = f"{record['size']} size, seed {record['seed']}, {cores} cores, {day}, at commit {commit}{later}"
        yield [record["part"], "; ".join(told), origin]
    if not records:
        yield "Not run: make trust measures it."


def choices(root: Path):
    """Accuracy and time of a ranker: from the record of `rank`, and from that of the backends on the same questions."""
    record = json.loads((root / "results" / "rankers" / "wikiqa-small.json").read_text("utf-8"))
    measured = json.loads((root / "results" / "benchmarks" / "backends.json").read_text("utf-8"))
    yield (
        f"WikiQA, {measured['questions']} test questions; MAP in points. Time: {measured['threads']} CPU cores, from the "
        "mean time of a candidate. With candidates embedded beforehand a question takes milliseconds. MiniLM after triplets has the "
        "time of MiniLM, since it computes the same."
    )
    each = measured["pairs"] / measured["questions"]
    for name, *words in (("bm25", "BM25", "words in common"), (MINILM, "MiniLM, as released", "two vectors")):
        seconds = 1000 * record["figures"][name]["seconds_a_question"] / each
        yield [*words, f"{100 * record['metrics'][name]['test']['map']:.1f}", f"{seconds:.{1 if seconds >= 0.1 else 2}f}"]
    runs = [json.loads(path.read_text("utf-8")) for path in (root / "results/asbert/triplet_bert").glob("wikiqa-small-*.json")]
    asked = {question for question, *_ in record["per_question"][MINILM]}
    reached = [average for run in runs for question, _, average, _ in run["per_question"] if question in asked]
    assert len(reached) == len(runs) * len(asked)
    yield ["MiniLM, after triplets", "two vectors", f"{100 * sum(reached) / len(reached):.1f}", f"{seconds:.1f}"]
    for name, words in BACKENDS.items():
        seconds = 1000 / measured[name]["pairs_a_second"]["median"]
        yield [words, "both texts together", f"{100 * measured[name]['map']:.1f}", f"{seconds:.1f}"]
