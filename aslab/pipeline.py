"""Builds indexes of large sources with datatrove: tasks on this machine or on a Slurm cluster, one shard a task.

A shard is the index of a contiguous share of the documents. When all shards are there, they are concatenated and
removed: the arrays are those that one process would write, whatever the number of shards. datatrove's own files are
in `datatrove/`.
"""

import itertools
import os
import re
import shutil
from functools import partial
from pathlib import Path

from click import Choice
from filelock import FileLock
from tqdm.auto import tqdm

from asutil.corpus import arrays, cleaning, sources
from asutil.corpus import index as corpus_index
from asutil.corpus.plain_tokenizer import PlainTokenizer
from asutil.io import disk, hub, remote

from . import commands
from .commands import argument, option

try:
    from datatrove.pipeline.base import PipelineStep
except ImportError:  # an optional extra: `build` says how to install it
    PipelineStep = object

PLAN, LOGS, TOKENIZER = "plan.json", "datatrove", "tokenizer"
TIME = "24:00:00"
FAILED = "the index {path} failed ({error}); finished shards are kept for the next try"
COUNTS = ("documents_read", *arrays.COUNTED)


def plan(source, tokenizer, tasks, splitter="blingfire", min_sentence_chars=0, limit=None, **lengths: int) -> dict:
    """What is built, and how it is divided: `tasks` share `total` files, or documents if there are fewer files.

    `lengths` are min_paragraph_chars and min_document_chars, as in `cleaning.clean`.
    """
    unit = "files"
    total = 0 if limit else len(_files(source))
    if total < tasks:
        unit = "documents"
        total = sum(1 for _ in tqdm(sources.documents(source, limit=limit), "counting", delay=5))
    if not total:
        raise ValueError(f"{source}: no documents")
    return {
        "format": corpus_index.FORMAT,
        "source": sources.without_paths(source),
        "fingerprint": sources.fingerprint_of_source(source),
        "tokenizer": Path(tokenizer.name_or_path).name,
        "tokenizer_sha256": corpus_index.tokenizer_hash(tokenizer),
        "splitter": splitter,
        "min_sentence_chars": min_sentence_chars,
        **cleaning.LIMITS,
        **lengths,
        "limit": limit,
        "tasks": min(tasks, total),
        "unit": unit,
        "total": total,
    }


def _files(source) -> list[tuple[Path, str, str]]:
    """The files of a source in its order, with text column and paragraph separator; [] if a part is no files."""
    files = []
    for part in sources.parts_of(source):
        hub_id = part.partition(":")[0]
        _, column, separator = sources.HUB_FORMS.get(hub_id, (None, "text", "\n\n"))
        paths = sources.mirrored_files(part, "train")
        if not paths and sources.is_hub_id(part):
            to_do = f"put it into {hub.MIRROR}, or give a limit"
            raise ValueError(f"{part}: not in the mirror, and each task would download it; {to_do}")
        if not paths and part != "pydocs":
            paths = sources.files_of(remote.path_of(part))
        if not paths:
            return []
        files += [(path.resolve(), column, separator) for path in paths]
    return files


def _share(planned: dict, rank: int) -> range:
    """The numbers of the files or documents that a task reads."""
    start, stop = (planned["total"] * k // planned["tasks"] for k in (rank, rank + 1))
    return range(start, stop)


def _documents(source, planned: dict, rank: int):
    share = _share(planned, rank)
    if planned["unit"] == "documents":
        return itertools.islice(sources.documents(source), share.start, share.stop)
    files = _files(source)[share.start : share.stop]
    return itertools.chain.from_iterable(sources.documents(path, None, None, *form) for path, *form in files)


class Index(PipelineStep):
    """Task k of n: writes the index of its share of the documents. The folder appears when it is complete."""

    name, type = "index", "asutil"

    def __init__(self, source: str, out: Path):
        super().__init__()
        self.source, self.out = source, out

    def run(self, data=None, rank=0, world_size=1):
        planned = disk.read_json(self.out / PLAN)
        folder = _shard(self.out, rank)
        if folder.is_dir():
            return
        texts = _documents(self.source, planned, rank)
        tokenizer = PlainTokenizer.load(self.out / TOKENIZER)  # without torch
        tokenizer.name_or_path = planned["tokenizer"]
        options = {name: planned[name] for name in ("source", "splitter", "min_sentence_chars", *cleaning.LIMITS)}
        with self.track_time("task"):
            try:
                counts = corpus_index.build(texts, tokenizer, folder, **options).info
            except corpus_index.EmptyCorpus as error:  # a share without documents: it is left out when all are joined
                counts = dict.fromkeys(COUNTS, 0) | {"documents_read": error.read}
                unfinished = folder.with_name(f".{folder.name}.building")
                disk.write_json(unfinished / "corpus.json", counts)
                unfinished.rename(folder)
        self.stat_update("documents", value=counts["documents_read"])


def join(out: Path, *_) -> None:
    """Concatenate the shards of a folder to one index, and remove them. A finished index stays as it is.

    Raises: ValueError naming a shard that is missing or damaged.
    """
    if not (out / "corpus.json").is_file():
        _concatenate(out)
    for shard in out.glob("shard-*"):
        shutil.rmtree(shard)


def _concatenate(out: Path) -> None:
    planned = disk.read_json(out / PLAN)
    folders = [_shard(out, rank) for rank in range(planned["tasks"])]
    if missing := [folder.name for folder in folders if not folder.is_dir()]:
        of = f"{len(missing)} of {len(folders)} shards are missing, the first is {missing[0]}"
        raise ValueError(f"{out}: {of}; build it again")
    infos = {folder: disk.read_json(folder / "corpus.json") for folder in folders}
    counts = {name: sum(info[name] for info in infos.values()) for name in COUNTS}
    if not counts["documents"]:
        lengths = {name: planned[name] for name in cleaning.LIMITS}
        raise corpus_index.EmptyCorpus(counts["documents_read"], planned["source"], **lengths)
    filled = {folder: info for folder, info in infos.items() if info["documents"]}
    for folder, info in filled.items():
        for name, sha256 in info["sha256"].items():
            disk.check(folder / f"{name}.npy", sha256)
    with disk.naming(out, f"writing {FAILED}"):
        written = arrays.concatenate(list(filled), out)
        settings = {name: value for name, value in next(iter(filled.values())).items() if name != "sha256"}
        sums = {name: hub.sha256(out / f"{name}.npy") for name in arrays.ARRAYS}
        os.sync()
        disk.write_json(out / "corpus.json", {**settings, **planned, **counts, **written, "sha256": sums})


def _shard(out: Path, rank: int) -> Path:
    return out / f"shard-{rank:05d}"


def build(
    source,
    tokenizer,
    out,
    *,
    executor="local",
    tasks=8,
    workers=None,
    partition=None,
    time=TIME,
    memory=4,
    setup=None,
    sbatch=(),
    dry_run=False,
    **options,
):
    """Build the index of a source with datatrove, or go on with a build that was stopped: finished shards are kept.

    Args: as the options of the command; `options` are splitter, min_sentence_chars, min_paragraph_chars, min_document_chars and limit.
    Returns: the opened Corpus; None of a dry run, and of Slurm, which gets two jobs: the tasks, and what writes corpus.json after them.
    Raises: ImportError without datatrove; ValueError; OSError.
    """
    if PipelineStep is object:
        raise ImportError("building through datatrove needs it: pip install 'asutil[cluster]'")
    if min(tasks, 1 if workers is None else workers) < 1:
        raise ValueError(f"tasks and workers must be 1 or more, got {tasks} and {workers}")
    if executor == "slurm" and not (partition and (dry_run or shutil.which("sbatch"))):
        raise ValueError("executor slurm needs a partition, and sbatch where this is no dry run")
    from asutil.corpus import tokenizers

    cleaning.splitter_function(options.get("splitter", "blingfire"))
    out = Path(out).resolve()
    opened = tokenizers.load_tokenizer(tokenizer)
    planned = plan(source, opened, tasks, **options)
    _check(out, planned)
    if dry_run and executor == "local":
        shares = (_share(planned, rank) for rank in range(planned["tasks"]))
        each = (f"{planned['unit']} {share.start:,} to {share[-1]:,}" for share in shares)
        return print(*(f"task {rank}: {share}" for rank, share in enumerate(each)), sep="\n")
    if wrong := [text for text in sbatch if not re.fullmatch(r"[a-z][a-z-]*=\S.*", text)]:
        raise ValueError(f"sbatch: KEY=VALUE expected, as account=me, got {wrong[0]!r}")
    form = {"partition": partition, "time": time, "mem_per_cpu_gb": memory, "env_command": setup}
    form |= {"sbatch_args": dict(text.split("=", 1) for text in sbatch), "qos": None, "with_srun": False}
    jobs = _jobs(executor, [Index(str(source), out)], out, planned["tasks"], workers, form)
    if dry_run:
        return print(*map(_script, jobs), sep="\n")
    return _execute(jobs, out, planned, opened)


def _execute(jobs: list, out: Path, planned: dict, tokenizer) -> corpus_index.Corpus | None:
    """Run the one local job and join its shards, or submit the jobs to Slurm; nothing where the index is complete."""
    with FileLock(out.with_name(f".{out.name}.lock"), timeout=0):
        if not (out / PLAN).is_file():
            with disk.whole_folder(out / TOKENIZER) as part:
                tokenizer.save_pretrained(part)
            disk.write_json(out / PLAN, planned)
        if not (out / "corpus.json").is_file():
            for rank in range(planned["tasks"]):  # datatrove goes only by its marks
                if not _shard(out, rank).is_dir():
                    (out / LOGS / "completions" / f"{rank:05d}").unlink(missing_ok=True)
            if len(jobs) > 1:
                return jobs[-1].launch_job()
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the tasks run in parallel
            with disk.naming(out, f"building {FAILED}"):
                jobs[0].run()
        join(out)
    return corpus_index.Corpus.open(out)


def _check(out: Path, planned: dict) -> None:
    """Refuse a folder that has another build, or something else."""
    if (out / PLAN).is_file():
        before = disk.read_json(out / PLAN)
        for name in planned:
            if before.get(name) != planned[name]:
                other = f"{out} holds a build with {name} {before.get(name)}, got {planned[name]}"
                raise ValueError(f"{other}: delete it, or take another folder")
    elif out.exists() and not (out.is_dir() and {path.name for path in out.glob("[!.]*")} <= {LOGS, TOKENIZER}):
        raise FileExistsError(f"{out} exists already and is no such build: take another folder")


def _jobs(executor: str, steps: list, out: Path, tasks: int, workers, form: dict) -> list:
    """The job of the tasks; on Slurm, where `form` holds for each, also the job after them, which joins the shards."""
    from datatrove.executor import LocalPipelineExecutor, SlurmPipelineExecutor

    logs = str(out / LOGS)
    if executor == "local":
        return [LocalPipelineExecutor(steps, tasks, min(workers or 2, tasks), logs)]
    of_tasks = {"workers": workers or -1, "job_name": "index", "logging_dir": logs}
    first = SlurmPipelineExecutor(steps, tasks, **of_tasks, **form)
    of_join = {"job_name": "join", "logging_dir": f"{logs}/join", "skip_completed": False}
    return [first, SlurmPipelineExecutor([partial(join, out)], 1, depends=first, **of_join, **form)]


def _script(job) -> str:
    """What datatrove gives to sbatch."""
    launched = f"launch_pickled_pipeline {job.logging_dir.resolve_paths('executor.pik')}"
    arguments = job.get_sbatch_args(min(len(job.get_incomplete_ranks()), job.max_array_size))
    return job.get_launch_file_contents(arguments, launched)


SBATCH = "another option of sbatch, as account=me; may come several times"
command = commands.command(
    build,
    argument("source", "pydocs, a hub id, a folder, .parquet, .jsonl, .txt; several joined by commas"),
    option("--tokenizer", "tokenizer of a hub id, a folder or a run", required=True),
    option("--out", "the folder of the index", required=True),
    option("--tasks", "number of tasks; each writes a shard", default=8),
    option("--workers", "number of tasks at the same time; default: 2, on Slurm all", type=int),
    option("--splitter", "sentence splitter", type=Choice(["blingfire", "nltk"]), default="blingfire"),
    option("--min-sentence-chars", "leave shorter sentences out", default=0),
    option("--min-paragraph-chars", "leave shorter paragraphs out", default=cleaning.LIMITS["min_paragraph_chars"]),
    option("--min-document-chars", "leave shorter documents out", default=cleaning.LIMITS["min_document_chars"]),
    option("--limit", "read only the first documents", type=int),
    option("--executor", "where tasks run", type=Choice(["local", "slurm"]), default="local"),
    option("--partition", "partition of Slurm for the jobs"),
    option("--time", "time limit of a task on Slurm", default=TIME),
    option("--memory", "GB of a task on Slurm", default=4),
    option("--setup", "a command that Slurm runs before each task, as 'module load python'"),
    option("--sbatch", SBATCH, multiple=True, metavar="KEY=VALUE"),
    option("--dry-run", "show the plan, or the scripts for Slurm, and start nothing", is_flag=True),
    example="asutil index build wikimedia/wikipedia --tokenizer FacebookAI/roberta-base --out index --tasks 32",
    details="The same command continues a build that was stopped.",
)
