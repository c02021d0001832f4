"""Expected hours of planned runs: the median seconds a token of finished runs like them, times their tokens; and their GPU-hours."""

import itertools
import os
import statistics
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from asutil.data.data_sets import ANSWERS, CLAIMS, LONG

from . import chains, commands, papers, parameters, plan, records, runs

# Runs with the same of these settings are alike; where there are none, those with the same form of an example, then all.
FORM = ("architecture", "head", "k", "max_tokens")
ALIKE = (*FORM, "objective", "data", "dataset")
HERE, OTHERS, OTHER_PRECISION = "runs on this machine", "other runs", "other runs, in another precision"
# Texts of an example of `embed`.
READ_TOGETHER = {"siamese": 2, "triplet": 3}


class Run(NamedTuple):
    """A finished run: its settings, how long it took, the backbone that its chain began with, and where it ran."""

    notebook: str
    settings: dict
    seconds: float
    backbone: str | None
    here: bool
    cores: int | None


class Estimate(NamedTuple):
    """Expected hours of one run, None where unknown, and the runs that they follow from."""

    hours: float | None
    source: str


def finished(slugs, runs_dir: str = "runs") -> list[Run]:
    """The committed runs of some papers, and all runs that this machine finished; those on GPUs are left out."""
    known = []
    for run in runs.read_all(runs_dir).query("finished").itertuples():
        known.append((run.record, chains.started_from(run.record["settings"].get("model"), runs_dir), True))
    for slug in slugs:
        known += [(line.record, records.backbone(line), False) for line in records.committed(slug).itertuples()]
    made = []
    for record, backbone, here in known:
        hardware = record.get("hardware", {})
        if "seconds" in record and not hardware.get("gpu"):
            settings, cores = record["settings"], hardware.get("cpu_cores")
            made.append(Run(record["notebook"], settings, records.seconds(record), backbone, here, cores))
    return made


def of_run(notebook: str, settings: dict, backbone: str | None, known: list[Run], cores: int) -> Estimate:
    """hours = median of (seconds / tokens) of runs like it * tokens / 3600, where tokens are the most that the settings allow.

    The most alike runs count: of these first those on this machine's cores, then those of the same precision, then all.
    A run that trains nothing takes as long as those like it.

    Args:
        known: runs as `finished` gives them.
    """
    tokens = tokens_of(notebook, settings)
    if tokens is None:
        return Estimate(None, "")
    alike = [run for run in known if run.notebook == notebook and tokens_of(notebook, run.settings)]
    if tokens != 1:
        alike = [run for run in alike if run.backbone == backbone]
    bf16 = lambda values: values.get("precision") == "bf16"
    same = [run for run in alike if bf16(run.settings) == bf16(settings)]
    here = [run for run in same if run.here and run.cores == cores]
    levels = (ALIKE, FORM, ()) if tokens != 1 else (ALIKE,)
    for names, (source, group) in itertools.product(levels, {HERE: here, OTHERS: same, OTHER_PRECISION: alike}.items()):
        if like := [run for run in group if all(run.settings.get(name) == settings.get(name) for name in names)]:
            each = statistics.median(run.seconds / tokens_of(notebook, run.settings) for run in like)
            return Estimate(each * tokens / 3600, source)
    return Estimate(None, "")


def tokens_of(notebook: str, settings: dict) -> int | None:
    """The tokens of a run's training at most; 1 where nothing is trained, None where they are not known."""
    try:
        return work(notebook, settings)[1] or 1
    except (ValueError, KeyError, TypeError):
        return None


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
    limit = settings.get("train_limit") or settings.get("question_limit") or settings.get("claim_limit")
    try:
        if notebook == "verify_claims":
            claims = CLAIMS[dataset].counts["train"][0]
            return min(claims, limit or claims), settings["k"] if settings["head"].startswith("pair") else 1
        if notebook == "find_evidence":
            questions = LONG[dataset].counts["train"]["questions"]
            return min(questions, limit or questions), 1
        protocols, protocol = ANSWERS[dataset].counts, settings["protocol"]
        if (dataset, settings.get("train_questions")) == ("wikiqa", "with_positive"):
            protocol = "asbert"  # the same questions
        questions, candidates = protocols[protocol]["train"]
        if limit and limit < questions:
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


def expected(jobs, cores: int | None = None, known: list[Run] | None = None) -> str:
    """A text table of the expected hours on this machine's cores, by paper, budget and notebook.

    Runs of budget `laptop` take minutes, and those with `gpu_hours` need GPUs: "" where there are no other runs.
    """
    jobs = [job for job in jobs if job.budget != "laptop" and not plan.gpu_hours(job)]
    if not jobs:
        return ""
    cores, by_name = cores or os.cpu_count(), {job.folder.name: job for job in jobs}
    known = finished(dict.fromkeys(job.paper for job in jobs)) if known is None else known
    groups = {}
    for job in jobs:
        settings = parameters.settings(job.notebook, job.parameters)
        estimate = of_run(job.notebook, settings, _backbone(settings.get("model"), by_name), known, cores)
        groups.setdefault((job.paper, job.budget, job.notebook), []).append(estimate)
    rows = [(*group, *_summed(estimates)) for group, estimates in groups.items()]
    rows.append(("in all", "", "", *_summed([*itertools.chain(*groups.values())])[:2], ""))
    head = f"Expected hours of the runs to come on {cores} free core{'s' * (cores != 1)} of this machine:"
    return _table(head, ("paper", "budget", "notebook", "runs", "hours", "by"), rows)


def on_gpus(jobs, searches=()) -> str:
    """A text table of the expected hours of one GPU, by paper, budget and notebook.

    Args:
        searches: the tries of each unfinished search, after which runs with the other seeds follow.
    """
    counts, hours = Counter(), Counter()
    follow = [job for tries in searches for job in plan.after(tries)]
    for job, when in [(job, "") for job in jobs] + [(job, "after a search") for job in follow]:
        group = (job.paper, job.budget, job.notebook, when)
        counts[group] += 1
        hours[group] += plan.gpu_hours(job)
    rows = [(*group, f"{count:,}", f"{hours[group]:,}") for group, count in counts.items()]
    rows.append(("in all", "", "", "", f"{counts.total():,}", f"{hours.total():,}"))
    head = "Expected hours of one GPU of the runs to come (gpu_hours in experiments/*.yml; 0 at budgets for CPUs):"
    return _table(head, ("paper", "budget", "notebook", "", "runs", "GPU-hours"), rows)


def _table(head: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Rows as text below a line of words and the names of their columns; numbers are aligned to the right."""
    sides = ["right" if "runs" in name or "hours" in name.lower() else "left" for name in columns]
    text = tabulate([columns, *rows], tablefmt="plain", disable_numparse=True, colalign=sides)
    return "\n".join([head, *(line.rstrip() for line in text.splitlines())])


def _backbone(model: str | None, planned: dict) -> str | None:
    """The backbone that a planned chain begins with."""
    while model and (job := planned.get(Path(model).name)):
        model = parameters.settings(job.notebook, job.parameters).get("model")
    return chains.started_from(model) if model else None


def _summed(estimates: list[Estimate]) -> tuple[str, str, str]:
    hours = [estimate.hours for estimate in estimates if estimate.hours is not None]
    unknown = f" and {len(estimates) - len(hours)} not known" if len(hours) < len(estimates) else ""
    sources = ", ".join(dict.fromkeys(estimate.source for estimate in estimates if estimate.source))
    return f"{len(estimates):,}", f"{sum(hours):,.1f}{unknown}", sources


def of_plan(paper: str, budget: str, cores: int | None) -> list[str]:
    papers.one_of(paper, papers.PAPERS, "paper")
    jobs, searches = plan.jobs_and_searches(paper, budget)
    to_come = lambda some: [job for job in some if not (job.folder / "record.json").is_file()]
    jobs, searches = to_come(jobs), list(filter(to_come, searches.values()))
    return list(filter(None, [on_gpus(jobs, searches), expected(jobs, cores)])) if jobs else ["Every run is finished."]


command = commands.command(
    of_plan,
    commands.argument("paper", "short name of a paper"),
    commands.argument("budget", "laptop, small, gpu or paper"),
    commands.option("--cores", "CPU cores; default: all of this machine", type=int),
    example="asutil hours sentence_objectives small --cores 2",
    details="Hours are the median seconds a token of finished runs like those of the plan, times its tokens.",
)
