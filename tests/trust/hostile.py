"""Hostile inputs: whatever a file holds, it is read with an account of its rows, or refused by its name and row.

Every loader (`loaders`, `run_loaders`) is given spoilt inputs (`damage`), many of them in one forked process with a clock
and a bound on its memory: what kills that process, or what keeps it busy, is found as well.
"""

import faulthandler
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import click
from tqdm.auto import tqdm

from asutil.io import hub

from . import Broken, damage, loaders, must, run_loaders
from .loaders import Loader

INPUTS = {True: 10_000, False: 1_000}
LOADERS = [*loaders.LOADERS, *run_loaders.LOADERS]
# Those that are given a text of 100 MB as well; the first two of them also at the quick size.
LARGE = ("sources.documents documents.jsonl", "answers.load_answers asked.tsv", "sources.documents documents.parquet")
LARGE += ("sources.read_titles titles.txt", "answers.load_answers asked.jsonl", "claims.load_claims train.jsonl", "vectors.read texts.txt")
TOGETHER = 25  # inputs of one process
SECONDS = {False: 20, True: 60}  # of a processor that one input may take; True: one with a text of 100 MB
WAITING = 20  # times as long by the clock: a machine may be busy, but what only waits is a hang too
MEGABYTES = {False: 300, True: 2_500}  # of memory that it may add; the account that is taken of it included
ADDRESSES = 6 << 30  # what a process may ask for beyond what it has: a loader that runs wild ends there
# What is said of a file, a question or a side, and of no row.
OF_ALL = re.compile("no question is left|columns? |belongs to|order of their documents|expected \d+ fields|distinct")


def check(full: bool, seed: int, folder: Path) -> dict:
    """Raises: Broken, with the inputs that were neither accepted with an account nor refused by name; they stay in the folder."""
    run_loaders.prepare(folder / "prepared")
    run_loaders.warm(folder)
    return figures(tried(LOADERS, INPUTS[full], seed, folder, LARGE if full else LARGE[:2]), seed)


def figures(found: list[dict], seed: int) -> dict:
    """What became of all inputs, in numbers. Raises: Broken, with the first that broke something."""
    broken = [one for one in found if one["verdict"] not in ("accepted", "refused")]
    shown = [f"{one['loader']}, input {one['number']} ({one['mutator']}; {kept(one)}): {one['verdict'][:300]}" for one in broken[:10]]
    must(not broken, f"{len(broken)} of {len(found):,} inputs with seed {seed}, the first:\n" + "\n".join(shown))
    verdicts, small = Counter(one["verdict"] for one in found), [one for one in found if not one["large"]]
    return {
        "inputs": len(found),
        "loaders": len({one["loader"] for one in found}),
        "mutators": len({one["mutator"] for one in found}),
        **verdicts,
        "slowest_seconds": max(one["seconds"] for one in found),
        "largest_MB": max(one["megabytes"] for one in small),
        "largest_MB_of_100_MB_lines": max((one["megabytes"] for one in found if one["large"]), default=0),
    }


def tried(some: list[Loader], inputs: int, seed: int, folder: Path, large=LARGE) -> list[dict]:
    """What became of the inputs, shared out over the loaders, and of those with a text of 100 MB."""
    found = []
    tasks = [(loader, [(loader, number, False) for number in range(n, inputs, len(some))]) for n, loader in enumerate(some)]
    tasks += [(loader, [(loader, 0, True)]) for loader in some if str(loader) in large]
    with tqdm(total=sum(len(given) for _, given in tasks), desc="hostile", unit=" inputs", dynamic_ncols=True) as bar:
        for _, waiting in tasks:
            while waiting:
                done = in_a_process(waiting[:TOGETHER], seed, folder)
                waiting = waiting[len(done) :]
                found += done
                bar.update(len(done))
    return found


def in_a_process(given: list[tuple], seed: int, folder: Path) -> list[dict]:
    """What became of the inputs that one process got through; of the one that ended it, what ended it."""
    log = folder / "log.jsonl"
    log.write_text("")
    process = multiprocessing.get_context("fork").Process(target=_work, args=(given, seed, folder, log))
    process.start()
    process.join()
    lines = list(map(json.loads, log.read_text().splitlines()))
    done = [line for line in lines if "verdict" in line]
    if process.exitcode:
        must(len(lines) > len(done) * 2, f"a process ended before its first input: {process.exitcode}, see {folder / 'output.txt'}")
        end = signal.Signals(-process.exitcode).name if process.exitcode < 0 else f"exit {process.exitcode}"
        late = f" after {SECONDS[lines[-1]['large']] * (1 if end == 'SIGPROF' else WAITING)} s" if end in ("SIGPROF", "SIGALRM") else ""
        done.append({**lines[-1], "verdict": f"its process ended by {end}{late}", "seconds": 0, "megabytes": 0})
    return done


def _work(given: list[tuple], seed: int, folder: Path, log: Path) -> None:
    faulthandler.disable()  # a crash is a verdict here
    tqdm.set_lock(threading.RLock())  # who is killed must not take the one of this process' bars with it
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    hub._downloaded = hub.stream = _no_hub
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ADDRESSES, resource.RLIM_INFINITY))
    with log.open("a") as stream:
        for loader, number, large in given:
            draw = random.Random(f"{seed} {loader} {number}")
            path, about = laid(loader, number, large, draw, folder)
            stream.write(json.dumps(about) + "\n")
            stream.flush()
            stream.write(json.dumps(about | measured(loader, path, about, folder)) + "\n")
            stream.flush()


def _no_hub(hub_id, **options):
    raise FileNotFoundError(hub.unreachable(hub_id, ConnectionError("nothing here asks a network")))


def laid(loader: Loader, number: int, large: bool, draw: random.Random, folder: Path) -> tuple[Path, dict]:
    """The spoilt file, among what stands beside it, and what was done to it."""
    work = folder / "work"
    os.chdir(folder)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    os.chdir(work)
    if loader.prepared:
        shutil.copytree(folder / "prepared" / loader.prepared, work / loader.prepared)
    path = work / loader.file
    for name, content in loader.beside.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(damage.encoded(content, Path(name).suffix))
    path.parent.mkdir(parents=True, exist_ok=True)
    content = loader.content
    if content is None:
        content = json.loads(path.read_bytes()) if path.suffix == ".json" else path.read_bytes()
    kind, name = ("large", "a text of 100 MB") if large else draw.choice(damage.mutators(content, path.suffix))
    row = damage.spoil(path, content, kind, name, draw)
    return path, {"loader": str(loader), "number": number, "mutator": f"{kind}: {name}", "row": row, "large": large}


def measured(loader: Loader, path: Path, about: dict, folder: Path) -> dict:
    """The verdict on one input, its seconds and the memory that it added; what is broken is kept."""
    if path.is_file() and not about["large"]:
        shutil.copyfile(path, folder / kept(about))  # before it is read: whatever ends this process leaves it there
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: writing the input had one of its own
    before, started = _memory("VmRSS"), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS[about["large"]])
    signal.alarm(WAITING * SECONDS[about["large"]])
    try:
        verdict = judged(loader, path, about["row"])
    except Broken as error:
        verdict = str(error)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.alarm(0)
    megabytes = (_memory("VmHWM") - before) // 1024
    if megabytes > MEGABYTES[about["large"]]:
        verdict = f"{verdict}, with {megabytes:,} MB of memory, more than {MEGABYTES[about['large']]:,}"
    if verdict in ("accepted", "refused"):
        (folder / kept(about)).unlink(missing_ok=True)
    return {"verdict": verdict, "seconds": round(time.process_time() - started, 1), "megabytes": megabytes}


def _memory(name: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def kept(about: dict) -> str:
    """The name under which an input that broke something stays."""
    return re.sub(r"[^\w.]+", "-", f"{about['number']}-{about['loader']}")


def judged(loader: Loader, path: Path, row: int | None) -> str:
    """`accepted` or `refused`. Raises: Broken for an account that is wrong, a message without file or row, and any other error."""
    try:
        loader.load(path)
        return "accepted"
    except Broken:
        raise
    except (ValueError, OSError, click.UsageError) as error:
        message = str(getattr(error, "message", error))
        must(
            path.name in message or bool(loader.named and loader.named in message),
            f"refused without the file's name: {type(error).__name__}: {message}",
        )
        place = loader.row.format(row)
        told = row is None or not loader.row or re.search(rf"{place}\b", message) or OF_ALL.search(message)
        must(bool(told), f"refused without {place}: {message}")
        return "refused"
    except BaseException as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise Broken(f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {error}") from error
