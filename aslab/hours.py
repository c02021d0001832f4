"""Expected hours of planned runs on this machine's cores: the tokens of their training / measured tokens a second.

`python -m aslab.hours MODEL 2` measures a backbone on 2 cores.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from asutil.data.data_sets import ANSWERS, CLAIMS, LONG
from asutil.io import disk

from . import chains, gpus, plan, records, rundir, runs

SHAPED = ("architecture", "head", "k", "max_tokens")  # settings that decide the form of an example
ALIKE = (*SHAPED, "objective", "data", "dataset")  # the same, and those that decide its texts
# Settings that decide how many there are.
COUNTED = ("protocol", "train_questions", "question_limit", "train_limit", "triplet_limit", "claim_limit")
TEXTS, LENGTH = 32, 64  # texts of one measured step, and tokens of each
SECONDS = 3.0  # of a measurement, after a first step
READ_TOGETHER = {"siamese": 2, "triplet": 3}  # texts of an example of `embed`
WAIT = 300  # seconds after which a measurement is given up


class Run(NamedTuple):
    """A finished run: its settings and figures, and how long it took."""

    notebook: str
    settings: dict
    figures: dict
    seconds: float
    backbone: str | None
    here: bool
    cores: int | None


class Estimate(NamedTuple):
    """Expected hours of one run, None where unknown, and the sources of its tokens and speed."""

    hours: float | None
    tokens: str
    speed: str


# ------------------------------------------------------------------ finished runs


def finished(papers, runs_dir: str = "runs") -> list[Run]:
    """The committed runs of some papers, and all runs that this machine finished; those on GPUs are left out."""
    known = []
    for run in runs.read_all(runs_dir).query("finished").itertuples():
        known.append(_run(run.record, chains.started_from(run.record["settings"].get("model"), runs_dir), here=True))
    for paper in papers:
        committed = records.records(paper, runs_dir=Path(runs_dir) / "none")
        known += [_run(line.record, records.backbone(line), here=False) for line in committed.itertuples()]
    return [run for run in known if run is not None]


def _run(record: dict, backbone, here: bool) -> Run | None:
    hardware = record.get("hardware", {})
    if hardware.get("gpu") or "seconds" not in record:
        return None
    figures, cores = record.get("figures", {}), hardware.get("cpu_cores")
    return Run(record["notebook"], record["settings"], figures, record["seconds"], backbone, here, cores)


def _like(known: list[Run], notebook: str, settings: dict, names) -> list[Run]:
    """The finished runs of a notebook that have the same settings of these names."""
    wanted = [settings.get(name) for name in names]
    return [run for run in known if run.notebook == notebook and [run.settings.get(name) for name in names] == wanted]


# ------------------------------------------------------------------ an estimate


def of_run(
    notebook: str, settings: dict, backbone: str | None, known: list[Run], cores: int, speed_of=None
) -> Estimate:
    """hours = tokens / (tokens a second), times the share of such runs' whole time to their training time.

    Args:
        known: runs as `finished` gives them.
        speed_of: (backbone, cores, bf16) -> tokens a second or None; `speed` by default.
    """
    if notebook in ("rerank", "task_difficulty") or settings.get("architecture") == "untrained":
        seconds = [run.seconds for run in _like(known, notebook, settings, ("dataset", "architecture"))]
        if not seconds:
            return Estimate(None, "", "")
        return Estimate(statistics.median(seconds) / 3600, "", "runs that trained nothing")
    tokens, tokens_from = tokens_of(notebook, settings, known)
    if tokens is None:
        return Estimate(None, tokens_from, "")
    trained = [run for run in known if run.notebook == notebook and run.figures.get("training_seconds")]
    # A continued run has the seconds of its last call only.
    shares = [max(1.0, run.seconds / run.figures["training_seconds"]) for run in trained]
    whole_to_training = statistics.median(shares) if shares else 1.0
    bf16 = settings.get("precision") == "bf16"
    own = [run for run in trained if run.backbone == backbone and (run.settings.get("precision") == "bf16") == bf16]
    here = [run for run in own if run.here and run.cores == cores]
    rate = _median_speed(_like(here, notebook, settings, ALIKE)) or _median_speed(here)
    rate_from = "runs on this machine"
    if rate is None and backbone:
        rate = (speed_of or speed)(backbone, cores, bf16)
        rate_from = "measured now"
    if rate is None:
        rate = _median_speed(own) or _median_speed(trained)
        rate_from = "committed runs of another machine"
    if rate is None:
        return Estimate(None, tokens_from, "")
    return Estimate(tokens / rate / 3600 * whole_to_training, tokens_from, rate_from)


def _median_speed(some: list[Run]) -> float | None:
    speeds = [run.figures["tokens"] / run.figures["training_seconds"] for run in some]
    return statistics.median(speeds) if speeds else None


def tokens_of(notebook: str, settings: dict, known: list[Run]) -> tuple[float | None, str]:
    """Tokens that a run reads in training, and their source: runs like it, else its settings (an upper bound)."""
    with_examples = [run for run in known if run.figures.get("examples")]
    alike = _like(with_examples, notebook, settings, ALIKE)
    same = [run for run in _like(alike, notebook, settings, COUNTED) if run.settings.get("epochs")]
    others = alike or _like(with_examples, notebook, settings, SHAPED)
    each = statistics.median(run.figures["tokens"] / run.figures["examples"] for run in others) if others else None
    if same:
        examples = statistics.median(run.figures["examples"] / run.settings["epochs"] for run in same)
        return settings["epochs"] * examples * each, "runs like it"
    try:
        most = work(notebook, settings)[1]
        if notebook == "pretrain":
            examples = settings["steps"] * settings["batch_size"]
        else:
            examples = settings["epochs"] * examples_of(notebook, settings)[0]
    except ValueError:
        return None, "not known"
    if each is None:
        return float(most), "settings, at most"
    return examples * each, "runs like it" if alike else "runs on other data"


# ------------------------------------------------------------------ from settings


def work(notebook: str, settings: dict) -> tuple[int, int, int]:
    """Steps of one run, its tokens at most, and the length of an input; 0 steps where nothing is trained.

    Example:
        >>> work("pretrain", {"steps": 100, "batch_size": 8, "max_tokens": 128})
        (100, 102400, 128)
    """
    length = settings.get("max_tokens") or 0
    if notebook == "pretrain":
        return settings["steps"], settings["steps"] * settings["batch_size"] * length, length
    if notebook in ("task_difficulty", "rerank") or settings.get("architecture") == "untrained":
        return 0, 0, length
    examples, texts = examples_of(notebook, settings)
    steps = settings["epochs"] * -(-examples // settings["batch_size"])
    return steps, settings["epochs"] * examples * texts * length, length


def examples_of(notebook: str, settings: dict) -> tuple[int, int]:
    """Training examples of one epoch, and texts of each. A question's last group of a joint model is half empty."""
    dataset, architecture = settings["dataset"], settings.get("architecture")
    try:
        if notebook == "verify_claims":
            return CLAIMS[dataset].counts["train"][0], settings["k"] if settings["head"].startswith("pair") else 1
        if notebook == "find_evidence":
            questions = LONG[dataset].counts["train"]["questions"]
            return min(questions, _train_limit(settings) or questions), 1
        protocols, protocol = ANSWERS[dataset].counts, settings["protocol"]
        if (dataset, settings.get("train_questions")) == ("wikiqa", "with_positive"):
            protocol = "asbert"  # the same questions
        questions, candidates = protocols[protocol]["train"]
        if (limit := _train_limit(settings)) and limit < questions:
            candidates = candidates * limit // questions
            questions = limit
        if architecture == "triplet":
            candidates = ANSWERS[dataset].triplets[settings["protocol"]]
            candidates = min(candidates, questions * (settings.get("triplets_per_question") or candidates))
    except KeyError:
        raise ValueError(f"{notebook}: how many examples {dataset!r} has is not known") from None
    if architecture == "joint":
        return round((candidates + questions * (settings["k"] - 1) / 2) / settings["k"]), 1
    return candidates, READ_TOGETHER.get(architecture, 1)


def _train_limit(settings: dict) -> int | None:
    return settings.get("train_limit") or settings.get("question_limit")


# ------------------------------------------------------------------ tokens a second of this machine


NOT_MEASURED: set[Path] = set()  # files that a failed measurement of this process would have written


def speed(backbone: str, cores: int, bf16: bool = False) -> float | None:
    """Tokens a second of a backbone's training steps, measured once in a process and stored; None if that fails."""
    key = hashlib.sha256(json.dumps([backbone, cores, bf16]).encode()).hexdigest()[:12]
    stored = rundir.runs_folder() / "shared" / f"speed-{key}.json"
    if stored in NOT_MEASURED:
        return None
    if not stored.is_file():
        command = [sys.executable, "-m", "aslab.hours", backbone, str(cores), *["--bf16"] * bf16]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, env=environment, check=True)
            rate = float(done.stdout.split()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError):
            NOT_MEASURED.add(stored)  # the plan asks for every run
            return None
        stored.parent.mkdir(parents=True, exist_ok=True)
        disk.write_json(stored, {"backbone": backbone, "cores": cores, "bf16": bf16, "tokens_a_second": rate})
    return disk.read_json(stored)["tokens_a_second"]


def measure(backbone: str, cores: int, bf16: bool = False, seconds: float = SECONDS) -> float:
    """Tokens a second of whole training steps: forward, backward and AdamW, on texts of one length without padding.

    The clock counts processor time divided by the cores, so other running programs do not matter.
    """
    import torch
    from transformers import AutoModel

    from asutil.io import checkpoints
    from asutil.training import cpu

    torch.set_num_threads(cores)
    model, _ = checkpoints.with_head(AutoModel, checkpoints.source(backbone), backbone)
    optimiser = torch.optim.AdamW(model.train().parameters(), fused=True)
    ids = torch.randint(5, model.config.vocab_size, (TEXTS, LENGTH), generator=torch.Generator().manual_seed(0))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            hidden = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            hidden.float().square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    with cpu.fast(model, cpu.KeyedDropout(), bf16):
        step()  # the first one is slower
        steps, started = 0, time.process_time()
        while (took := (time.process_time() - started) / cores) < seconds or not steps:
            step()
            steps += 1
    return steps * TEXTS * LENGTH / took


# ------------------------------------------------------------------ a table


def expected(jobs, cores: int | None = None, known: list[Run] | None = None, speed_of=None) -> str:
    """A text table of the expected hours on this machine's cores, by paper, budget and notebook, with their sources.

    Runs of budget `laptop` take minutes, and those with `gpu_hours` need GPUs: "" where there are no other runs.
    """
    jobs = [job for job in jobs if job.budget != "laptop" and not plan.gpu_hours(job)]
    if not jobs:
        return ""
    cores, by_name = cores or os.cpu_count(), {job.folder.name: job for job in jobs}
    known = finished(dict.fromkeys(job.paper for job in jobs)) if known is None else known
    groups = {}
    for job in jobs:
        settings = runs.settings(job.notebook, job.parameters)
        estimate = of_run(job.notebook, settings, _backbone(settings.get("model"), by_name), known, cores, speed_of)
        groups.setdefault((job.paper, job.budget, job.notebook), []).append(estimate)
    rows = [("paper", "budget", "notebook", "runs", "hours", "tokens from", "tokens a second from")]
    rows += [(*group, *_summed(estimates)) for group, estimates in groups.items()]
    count, hours, *_ = _summed([estimate for estimates in groups.values() for estimate in estimates])
    rows.append(("in all", "", "", count, hours, "", ""))
    head = f"Expected hours of the runs to come on {cores} free core{'s' * (cores != 1)} of this machine:"
    return "\n".join([head, *gpus.aligned(rows, right={3, 4})])


def _backbone(model: str | None, planned: dict) -> str | None:
    """The backbone that a planned chain begins with."""
    while model and Path(model).name in planned:
        model = runs.settings(planned[Path(model).name].notebook, planned[Path(model).name].parameters).get("model")
    return chains.started_from(model) if model else None


def _summed(estimates: list[Estimate]) -> tuple[str, str, str, str]:
    hours = [estimate.hours for estimate in estimates if estimate.hours is not None]
    unknown = f" and {len(estimates) - len(hours)} not known" if len(hours) < len(estimates) else ""
    tokens = ", ".join(dict.fromkeys(estimate.tokens for estimate in estimates if estimate.tokens))
    speeds = ", ".join(dict.fromkeys(estimate.speed for estimate in estimates if estimate.speed))
    return f"{len(estimates):,}", f"{sum(hours):,.1f}{unknown}", tokens, speeds


def main() -> None:
    description = "Measures the training speed of a backbone on this machine, in tokens a second."
    parser = argparse.ArgumentParser(prog="python -m aslab.hours", description=description)
    parser.add_argument("backbone", help="the backbone: a hub id or a folder")
    parser.add_argument("cores", type=int, help="number of CPU threads")
    parser.add_argument("--bf16", action="store_true", help="train in bf16 instead of fp32")
    given = parser.parse_args()
    try:
        print(measure(given.backbone, given.cores, given.bf16))
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
