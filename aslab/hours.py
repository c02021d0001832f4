"""Hours of training that planned runs take on this machine's cores: their tokens, by the tokens a second that were measured.

`python -m aslab.hours MODEL 2` measures a backbone on 2 cores.
"""

import argparse
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from asutil.data import answers, claims, long_questions
from asutil.io import disk, rundir

from . import plan, records, runs

SHAPED = ("architecture", "head", "k", "max_tokens")  # settings that the form of an example follows from
ALIKE = (*SHAPED, "objective", "data", "dataset")  # and its texts
COUNTED = (
    "protocol",
    "train_questions",
    "question_limit",
    "triplet_limit",
    "claim_limit",
)  # and those that their number follows from
TEXTS, LENGTH = 32, 64  # what one measured step reads
SECONDS = 3.0  # that a measurement takes, after a first step
READ_TOGETHER = {"siamese": 2, "triplet": 3}  # texts of an example of `embed`
WAIT = 300  # seconds after which a measurement is given up


class Run(NamedTuple):
    """A finished run: what it learnt, and how long it took."""

    notebook: str
    settings: dict
    figures: dict
    seconds: float
    backbone: str | None
    here: bool
    cores: int | None


class Estimate(NamedTuple):
    """Hours of one run, None where they are not known, and what they are reckoned from."""

    hours: float | None
    tokens: str
    speed: str


# ------------------------------------------------------------------ what is known


def finished(papers, runs_dir: str = "runs") -> list[Run]:
    """The runs of some papers that are committed, and all that this machine finished, on processors alone."""
    known = []
    for one in runs.read_all(runs_dir).query("finished").itertuples():
        known.append(_run(one.record, runs.started_from(one.record["settings"].get("model"), runs_dir), here=True))
    for paper in papers:
        found = records.records(paper, runs_dir=Path(runs_dir) / "none")
        known += [_run(one.record, records.backbone(one), here=False) for one in found.itertuples()]
    return [one for one in known if one is not None]


def _run(record: dict, backbone, here: bool) -> Run | None:
    hardware = record.get("hardware", {})
    if hardware.get("gpu") or "seconds" not in record:
        return None
    figures = record.get("figures", {})
    return Run(
        record["notebook"], record["settings"], figures, record["seconds"], backbone, here, hardware.get("cpu_cores")
    )


def _like(known: list[Run], notebook: str, settings: dict, names) -> list[Run]:
    """The finished runs of a notebook that have the same settings of these names."""
    return [
        one
        for one in known
        if one.notebook == notebook and all(one.settings.get(name) == settings.get(name) for name in names)
    ]


# ------------------------------------------------------------------ an estimate


def of_run(
    notebook: str, settings: dict, backbone: str | None, known: list[Run], cores: int, speed_of=None
) -> Estimate:
    """The hours of one run: tokens / (tokens a second), times what such runs take besides training.

    Args:
        known: what `finished` gave. speed_of: (backbone, cores, bf16) -> tokens a second or None; `speed` by default.
    """
    if notebook in ("rerank", "task_difficulty") or settings.get("architecture") == "untrained":
        took = [one.seconds for one in _like(known, notebook, settings, ("dataset", "architecture"))]
        return Estimate(
            statistics.median(took) / 3600 if took else None, "", "runs that trained nothing" if took else ""
        )
    tokens, counted = tokens_of(notebook, settings, known)
    if tokens is None:
        return Estimate(None, counted, "")
    trained = [one for one in known if one.notebook == notebook and one.figures.get("training_seconds")]
    # A run that was taken up again has the seconds of its last call alone.
    besides = (
        statistics.median(max(1.0, one.seconds / one.figures["training_seconds"]) for one in trained)
        if trained
        else 1.0
    )
    bf16 = settings.get("precision") == "bf16"
    own = [one for one in trained if (one.backbone, one.settings.get("precision") == "bf16") == (backbone, bf16)]
    here = [one for one in own if one.here and one.cores == cores]
    reached, said = _median_speed(_like(here, notebook, settings, ALIKE)) or _median_speed(here), "runs on this machine"
    if reached is None and backbone:
        reached, said = (speed_of or speed)(backbone, cores, bf16), "measured now"
    if reached is None:
        reached, said = _median_speed(own) or _median_speed(trained), "committed runs of another machine"
    return Estimate(tokens / reached / 3600 * besides if reached else None, counted, said if reached else "")


def _median_speed(some: list[Run]) -> float | None:
    speeds = [one.figures["tokens"] / one.figures["training_seconds"] for one in some]
    return statistics.median(speeds) if speeds else None


def tokens_of(notebook: str, settings: dict, known: list[Run]) -> tuple[float | None, str]:
    """Tokens that a run reads in training, and where the number comes from: runs like it, else its settings, which give the most."""
    counted_ones = [one for one in known if one.figures.get("examples")]
    alike = _like(counted_ones, notebook, settings, ALIKE)
    same = [one for one in _like(alike, notebook, settings, COUNTED) if one.settings.get("epochs")]
    others = alike or _like(counted_ones, notebook, settings, SHAPED)
    each = statistics.median(one.figures["tokens"] / one.figures["examples"] for one in others) if others else None
    if same:
        examples = statistics.median(one.figures["examples"] / one.settings["epochs"] for one in same)
        return settings["epochs"] * examples * each, "runs like it"
    try:
        most = work(notebook, settings)[1]
        counted = settings["steps"] * settings["batch_size"] if notebook == "pretrain" else None
        examples = counted or settings["epochs"] * examples_of(notebook, settings)[0]
    except ValueError:
        return None, "not known"
    if each is None:
        return float(most), "settings, at most"
    return examples * each, "runs like it" if alike else "runs on other data"


# ------------------------------------------------------------------ what settings say


def work(notebook: str, settings: dict) -> tuple[int, int, int]:
    """Steps, tokens at most, and how many tokens are read together, of one run; 0 steps where nothing is trained.

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
    """Training examples of one epoch, and the texts of each; of groups of k candidates with half of a question's last group empty."""
    dataset, architecture = settings["dataset"], settings.get("architecture")
    try:
        if notebook == "verify_claims":
            return claims.COUNTS[dataset]["train"][0], settings["k"] if settings["head"].startswith("pair") else 1
        if notebook == "find_evidence":
            asked = long_questions.COUNTS[dataset]["train"]["questions"]
            return min(asked, settings.get("question_limit") or asked), 1
        protocols, protocol = answers.COUNTS[dataset], settings["protocol"]
        if (dataset, settings.get("train_questions")) == ("wikiqa", "with_positive"):
            protocol = "asbert"  # the same questions
        asked, candidates = protocols[protocol]["train"]
        if (limit := settings.get("question_limit")) and limit < asked:
            asked, candidates = limit, candidates * limit // asked
        if architecture == "triplet":
            candidates = answers.TRIPLETS[dataset, settings["protocol"]]
            candidates = min(candidates, asked * (settings.get("triplets_per_question") or candidates))
    except KeyError:
        raise ValueError(f"{notebook}: how many examples {dataset!r} has is not known") from None
    if architecture == "joint":
        return round((candidates + asked * (settings["k"] - 1) / 2) / settings["k"]), 1
    return candidates, READ_TOGETHER.get(architecture, 1)


# ------------------------------------------------------------------ tokens a second of this machine


def speed(backbone: str, cores: int, bf16: bool = False) -> float | None:
    """Tokens a second of training steps of a backbone, measured once in a process of its own and kept; None where it is not at hand."""
    key = hashlib.sha256(json.dumps([backbone, cores, bf16]).encode()).hexdigest()[:12]
    kept = rundir.runs_folder() / "shared" / f"speed-{key}.json"
    if not kept.is_file():
        command = [sys.executable, "-m", "aslab.hours", backbone, str(cores), *["--bf16"] * bf16]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, env=environment, check=True)
            reached = float(done.stdout.split()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError):
            return None
        kept.parent.mkdir(parents=True, exist_ok=True)
        disk.write_json(kept, {"backbone": backbone, "cores": cores, "bf16": bf16, "tokens_a_second": reached})
    return disk.read_json(kept)["tokens_a_second"]


def measure(backbone: str, cores: int, bf16: bool = False, seconds: float = SECONDS) -> float:
    """Tokens a second of whole training steps: forward, backward and AdamW, on texts of one length without padding.

    Its clock is the time that processors spent on it, divided by the cores: what else runs now does not count.
    """
    import torch
    from transformers import AutoModel

    from asutil.inputs import packing
    from asutil.io import checkpoints

    torch.set_num_threads(cores)
    model, _ = checkpoints.with_head(AutoModel, checkpoints.source(backbone), backbone)
    optimiser = torch.optim.AdamW(model.train().parameters(), fused=True)
    ids = torch.randint(5, model.config.vocab_size, (TEXTS, LENGTH), generator=torch.Generator().manual_seed(0))

    def step():
        attention = packing.plain_attention(model) if bf16 else contextlib.nullcontext()  # as in training
        with attention, torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            model(
                input_ids=ids, attention_mask=torch.ones_like(ids)
            ).last_hidden_state.float().square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    step()  # the first one is slower
    steps, started = 0, time.process_time()
    while (took := (time.process_time() - started) / cores) < seconds or not steps:
        step()
        steps += 1
    return steps * TEXTS * LENGTH / took


# ------------------------------------------------------------------ in words


def expected(jobs, cores: int | None = None, known: list[Run] | None = None, speed_of=None) -> str:
    """The hours of some runs on this machine's cores, by paper, budget and notebook with what they are reckoned from, in words.

    Runs of budget `laptop` take minutes, and those with `gpu_hours` are made for GPUs: "" where no others are among the runs.
    """
    jobs = [job for job in jobs if job.budget != "laptop" and not plan.gpu_hours(job)]
    if not jobs:
        return ""
    cores, by_name = cores or os.cpu_count(), {job.folder.name: job for job in jobs}
    known = finished(dict.fromkeys(job.paper for job in jobs)) if known is None else known
    groups = {}
    for job in jobs:
        settings = runs.settings(job.notebook, job.parameters)
        reckoned = of_run(job.notebook, settings, _backbone(settings.get("model"), by_name), known, cores, speed_of)
        groups.setdefault((job.paper, job.budget, job.notebook), []).append(reckoned)
    lines = [("paper", "budget", "notebook", "runs", "hours", "tokens from", "tokens a second from")]
    lines += [(*group, *_summed(some)) for group, some in groups.items()]
    lines.append(("in all", "", "", *_summed([one for some in groups.values() for one in some])[:2], "", ""))
    wide = [max(map(len, column)) for column in zip(*lines)]
    shown = [
        "  ".join(
            [*map(str.ljust, line[:3], wide), *map(str.rjust, line[3:5], wide[3:]), *map(str.ljust, line[5:], wide[5:])]
        )
        for line in lines
    ]
    head = f"Expected of what would run, in hours of {cores} free core{'s' * (cores != 1)} of this machine:"
    return "\n".join([head, *(line.rstrip() for line in shown)])


def _backbone(model: str | None, planned: dict) -> str | None:
    """The backbone that a planned chain begins with."""
    while model and Path(model).name in planned:
        model = runs.settings(planned[Path(model).name].notebook, planned[Path(model).name].parameters).get("model")
    return runs.started_from(model) if model else None


def _summed(some: list[Estimate]) -> tuple[str, ...]:
    hours = [one.hours for one in some if one.hours is not None]
    unknown = f" and {len(some) - len(hours)} not known" if len(hours) < len(some) else ""
    words = [
        ", ".join(dict.fromkeys(filter(None, column)))
        for column in ([one.tokens for one in some], [one.speed for one in some])
    ]
    return f"{len(some):,}", f"{sum(hours):,.1f}{unknown}", *words


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m aslab.hours", description="Tokens a second of training steps of a backbone, measured now."
    )
    parser.add_argument("backbone", help="a hub id or a folder")
    parser.add_argument("cores", type=int, help="threads that share a step")
    parser.add_argument("--bf16", action="store_true", help="in bf16 instead of fp32")
    given = parser.parse_args()
    print(measure(given.backbone, given.cores, given.bf16))


if __name__ == "__main__":
    main()
