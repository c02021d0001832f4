"""Indexes of large sources, built by datatrove: tasks on this machine or on a Slurm cluster, each of which writes one shard.

    python -m aslab.pipeline build wikimedia/wikipedia --tokenizer FacebookAI/roberta-base --out index --tasks 32 --workers 2
    python -m aslab.pipeline build wikimedia/wikipedia --tokenizer FacebookAI/roberta-base --out index --executor slurm --partition cpu

A shard is an index of its own, of a contiguous share of the documents. When all shards are there, they are concatenated and removed: the
arrays are those that one process would write, whatever the number of shards. datatrove's own files are in `datatrove/`.
"""

import argparse
import itertools
import os
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from filelock import FileLock
from tqdm.auto import tqdm

from asutil.corpus import arrays, cleaning, sources
from asutil.corpus import index as corpus_index
from asutil.io import disk, hub

from . import pipeline

try:
    from datatrove.pipeline.base import PipelineStep
except ImportError:  # an optional extra: `build` says how to install it
    PipelineStep = object

PLAN, LOGS, TOKENIZER = "plan.json", "datatrove", "tokenizer"
COUNTS = ("documents_read", "documents", "paragraphs", "sentences", "tokens")


def plan(source, tokenizer, tasks, splitter="blingfire", min_sentence_chars=0, limit=None) -> dict:
    """What is built, and how it is shared out: `tasks`, and the `total` of a `unit`, files, or documents where files are fewer."""
    unit, total = "files", 0 if limit else len(_files(source))
    if total < tasks:
        unit, total = "documents", sum(1 for _ in tqdm(sources.documents(source, limit=limit), "counting", delay=5))
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
        "limit": limit,
        "tasks": min(tasks, total),
        "unit": unit,
        "total": total,
    }


def _files(source) -> list[tuple[Path, str, str]]:
    """The files of a source in the order of its documents, each with text column and paragraph separator; none if it is not all files."""
    found = []
    for one in sources.parts_of(source):
        hub_id = one.partition(":")[0]
        form, folder = sources.HUB_FORMS.get(hub_id, (None, "text", "\n\n")), hub.mirror(hub_id)
        if folder is None and sources.is_hub_id(one):
            raise ValueError(
                f"{one}: not in the mirror, and each task would download it; put it into {hub.MIRROR}, or give a limit"
            )
        held = (
            sorted(folder.glob("train*.parquet")) if folder else sources.files_of(Path(one)) if one != "pydocs" else []
        )
        if not held:
            return []
        found += [(path.resolve(), *form[1:]) for path in held]
    return found


def _share(planned: dict, rank: int) -> range:
    return range(*(planned["total"] * k // planned["tasks"] for k in (rank, rank + 1)))


def _documents(source, planned: dict, rank: int):
    share = _share(planned, rank)
    if planned["unit"] == "documents":
        return itertools.islice(sources.documents(source), share.start, share.stop)
    held = _files(source)[share.start : share.stop]
    return itertools.chain.from_iterable(sources.documents(path, None, None, *form) for path, *form in held)


class Index(PipelineStep):
    """Task k of n: the index of its share of the documents, in a folder that appears when it is whole and is not made again."""

    name, type = "index", "asutil"

    def __init__(self, source: str, out: Path):
        super().__init__()
        self.source, self.out = source, out

    def run(self, data=None, rank=0, world_size=1):
        from tokenizers import Tokenizer

        planned, folder = disk.read_json(self.out / PLAN), _shard(self.out, rank)
        if folder.is_dir():
            return
        backend = Tokenizer.from_file(str(self.out / TOKENIZER / "tokenizer.json"))
        backend.encode_special_tokens = (
            True  # as tokenizers.load_tokenizer has it; no task needs transformers and torch
        )
        files = partial(shutil.copytree, self.out / TOKENIZER, dirs_exist_ok=True)
        tokenizer = SimpleNamespace(backend_tokenizer=backend, name_or_path=planned["tokenizer"], save_pretrained=files)
        texts, form = _documents(self.source, planned, rank), (planned["splitter"], planned["min_sentence_chars"])
        with self.track_time("task"):
            try:
                counts = corpus_index.build(texts, tokenizer, folder, *form, source=planned["source"]).info
            except corpus_index.EmptyCorpus as error:  # of this share: `join` leaves it out
                counts, part = (
                    dict.fromkeys(COUNTS, 0) | {"documents_read": error.read},
                    folder.with_name(f".{folder.name}.building"),
                )
                disk.write_json(part / "corpus.json", counts)
                part.rename(folder)
        self.stat_update("documents", value=counts["documents_read"])


def join(out: Path, *_) -> None:
    """Concatenate the shards of a folder to one index, and remove them. A finished index stays as it is.

    Raises: ValueError naming a shard that is missing or damaged.
    """
    if not _is_joined(out):
        _concatenate(out)
    for shard in out.glob("shard-*"):
        shutil.rmtree(shard)


def _is_joined(out: Path) -> bool:
    """Whether the index is finished; one of version 0.1 lists shards that are still to be concatenated."""
    return (out / "corpus.json").is_file() and "shards" not in disk.read_json(out / "corpus.json")


def _concatenate(out: Path) -> None:
    planned = disk.read_json(out / PLAN)
    folders = [_shard(out, rank) for rank in range(planned["tasks"])]
    missing = [folder.name for folder in folders if not folder.is_dir()]
    if missing:
        raise ValueError(
            f"{out}: {len(missing)} of {len(folders)} shards are missing, the first is {missing[0]}; build it again"
        )
    found = {folder.name: disk.read_json(folder / "corpus.json") for folder in folders}
    for name, info in found.items():
        if lacking := [count for count in COUNTS if count not in info]:
            raise ValueError(f"{out / name / 'corpus.json'} is damaged: it lacks {lacking[0]}")
    counts = {name: sum(info[name] for info in found.values()) for name in COUNTS}
    if not counts["documents"]:
        raise corpus_index.EmptyCorpus(counts["documents_read"], planned["source"])
    filled = [folder for folder in folders if found[folder.name]["documents"]]
    for folder in filled:
        for name, sha256 in found[folder.name]["sha256"].items():
            disk.check(folder / f"{name}.npy", sha256)
    with disk.naming(out, "writing the index {path} failed ({error}); finished shards are kept for the next try"):
        written = arrays.concatenate(filled, out)
        settings = {name: value for name, value in found[filled[0].name].items() if name != "sha256"}
        sums = {name: hub.sha256(out / f"{name}.npy") for name in arrays.ARRAYS}
        os.sync()
        disk.write_json(out / "corpus.json", {**settings, **planned, **counts, **written, "sha256": sums})


def _shard(out: Path, rank: int) -> Path:
    return out / f"shard-{rank:05d}"


def build(
    source,
    tokenizer,
    out,
    executor="local",
    tasks=8,
    workers=None,
    partition=None,
    time="24:00:00",
    dry_run=False,
    **options,
):
    """Build the index of a source by datatrove, or go on where that was stopped: finished shards stay as they are.

    Args:
        tokenizer: a hub id, a folder or a run.
        tasks: how many shards; fewer where there are fewer documents.
        executor: `local`, or `slurm`, which submits two jobs and returns: the tasks, and what writes corpus.json after them.
        workers: tasks at a time; None: 2, on Slurm all.
        dry_run: print the plan, or what sbatch would be given, and start nothing.
        options: splitter, min_sentence_chars, and limit, for the first documents alone.
    Returns: the opened Corpus; None of a dry run and of Slurm. Raises: ImportError without datatrove; ValueError; OSError.
    """
    if PipelineStep is object:
        raise ImportError("building through datatrove needs it: pip install 'asutil[cluster]'")
    if min(tasks, 1 if workers is None else workers) < 1:
        raise ValueError(f"tasks and workers must be 1 or more, got {tasks} and {workers}")
    if executor == "slurm" and not (partition and (dry_run or shutil.which("sbatch"))):
        raise ValueError("executor slurm needs a partition, and sbatch where this is no dry run")
    from asutil.corpus import tokenizers

    cleaning.splitter_function(options.get("splitter", "blingfire"))
    out, opened = Path(out).resolve(), tokenizers.load_tokenizer(tokenizer)
    planned = plan(source, opened, tasks, **options)
    _check(out, planned)
    if dry_run and executor == "local":
        return print(_shown(planned))
    jobs = _jobs(str(source), out, planned, executor, workers, partition, time)
    if dry_run:
        return print(*map(_script, jobs), sep="\n")
    out.mkdir(parents=True, exist_ok=True)
    with FileLock(out.with_name(f".{out.name}.lock"), timeout=0):
        if not (out / PLAN).is_file():
            opened.save_pretrained(out / TOKENIZER)
            disk.write_json(out / PLAN, planned)
        if not _is_joined(out):
            for rank in range(planned["tasks"]):  # datatrove goes by its marks alone
                if not _shard(out, rank).is_dir():
                    (out / LOGS / "completions" / f"{rank:05d}").unlink(missing_ok=True)
            if executor == "slurm":
                return jobs[-1].launch_job()
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # tasks are what runs side by side
            jobs[0].run()
        join(out)
    return corpus_index.Corpus.open(out)


def _check(out: Path, planned: dict) -> None:
    if (out / PLAN).is_file():
        before = disk.read_json(out / PLAN)
        for name, value in planned.items():
            if before.get(name) != value:
                raise ValueError(
                    f"{out} holds a build with {name} {before.get(name)}, got {value}: delete it, or take another folder"
                )
    elif out.exists() and not (out.is_dir() and {path.name for path in out.glob("[!.]*")} <= {LOGS, TOKENIZER}):
        raise FileExistsError(f"{out} exists already and is no such build: take another folder")


def _jobs(source, out, planned, executor, workers, partition, time) -> list:
    """datatrove's executors: of the tasks, and for Slurm of what comes after them."""
    from datatrove.executor import LocalPipelineExecutor, SlurmPipelineExecutor

    index, tasks, logs = [Index(source, out)], planned["tasks"], str(out / LOGS)
    if executor == "local":
        return [LocalPipelineExecutor(index, tasks, min(workers or 2, tasks), logs)]
    form = {"time": time, "partition": partition, "mem_per_cpu_gb": 4, "qos": None, "with_srun": False}
    first = SlurmPipelineExecutor(index, tasks, workers=workers or -1, job_name="index", logging_dir=logs, **form)
    form |= {"job_name": "join", "logging_dir": f"{logs}/join", "skip_completed": False}
    return [first, SlurmPipelineExecutor([partial(join, out)], 1, depends=first, **form)]


def _script(job) -> str:
    """What datatrove gives to sbatch."""
    command = f"launch_pickled_pipeline {job.logging_dir.resolve_paths('executor.pik')}"
    return job.get_launch_file_contents(
        job.get_sbatch_args(min(len(job.get_incomplete_ranks()), job.max_array_size)), command
    )


def _shown(planned: dict) -> str:
    shares = enumerate(_share(planned, rank) for rank in range(planned["tasks"]))
    return "\n".join(f"task {rank}: {planned['unit']} {share.start:,} to {share[-1]:,}" for rank, share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.pipeline", description=__doc__.splitlines()[0])
    builds = parser.add_subparsers(required=True, metavar="build").add_parser(
        "build", help="build an index, or go on building it"
    )
    builds.add_argument(
        "source", help="documents: pydocs, a hub id, a folder, .parquet, .jsonl or .txt; several joined by commas"
    )
    builds.add_argument("--tokenizer", required=True, help="a hub id, a folder or a run")
    builds.add_argument("--out", required=True, help="the folder of the index")
    builds.add_argument("--tasks", type=int, default=8, help="how many shards (default: %(default)s)")
    builds.add_argument("--workers", type=int, help="tasks at a time (default: 2, on Slurm all)")
    builds.add_argument(
        "--splitter", choices=("blingfire", "nltk"), default="blingfire", help="of sentences (default: %(default)s)"
    )
    builds.add_argument(
        "--min-sentence-chars", type=int, default=0, help="leave shorter sentences out (default: %(default)s)"
    )
    builds.add_argument("--limit", type=int, help="the first documents alone")
    builds.add_argument(
        "--executor", choices=("local", "slurm"), default="local", help="where tasks run (default: %(default)s)"
    )
    builds.add_argument("--partition", help="of Slurm")
    builds.add_argument("--time", default="24:00:00", help="of a task on Slurm, at most (default: %(default)s)")
    builds.add_argument(
        "--dry-run", action="store_true", help="show the plan, or the scripts that Slurm would be given; start nothing"
    )
    given = parser.parse_args()
    try:
        built = build(**vars(given))
    except (ValueError, OSError, LookupError, ImportError) as error:
        parser.error(str(error))
    if built:
        print(built)


if __name__ == "__main__":
    pipeline.main()
