"""Every promise tested, and one line of figures a part.

python -m tests.trust                  all parts at full size: some hours on 2 cores
python -m tests.trust --quick          all parts, each smaller: under 15 minutes
python -m tests.trust resume storage   some of them
"""

import argparse
import contextlib
import importlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from aslab import runs
from asutil.io import disk

PARTS = ("matrix", "numbers", "mutants", "resume", "pages", "security", "hostile", "storage")  # the longest first


def checked(part: str, full: bool, seed: int, folder: Path) -> dict:
    """The figures of a part, and `broken` where a promise does not hold."""
    started = time.monotonic()
    try:
        figures = importlib.import_module(f"tests.trust.{part}").check(full, seed, folder)
    except Exception as error:
        traceback.print_exc()
        figures = {"broken": f"{type(error).__name__}: {error}"}
    return figures | {"seconds": round(time.monotonic() - started)}


def beside(part: str, full: bool, seed: int, folder: Path) -> dict:
    """The figures of a part that is checked in a process of its own, whose output is kept in `output.txt` of its folder."""
    place = folder / part
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.trust", "--seed", str(seed), "--alone", str(place), part, *["--quick"] * (not full)]
    with (place / "output.txt").open("w") as output:
        ended = subprocess.run(command, stdout=output, stderr=output, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if not (place / "figures.json").is_file():
        return {"broken": f"its process ended with {ended.returncode}: {(place / 'output.txt').read_text(errors='replace')[-1000:]}"}
    return disk.read_json(place / "figures.json")


def line(part: str, figures: dict) -> str:
    """The figures of a part on one line: `resume: kills 100, seconds 412`."""
    short = {name.replace("_", " "): value for name, value in figures.items() if not isinstance(value, dict | list)}
    return f"{part}: " + ", ".join(f"{name} {value}" for name, value in short.items())


def together(parts: list[str], full: bool, seed: int, folder: Path, jobs: int, records: Path | None) -> dict:
    """part -> figures, so many parts at a time; each part's are recorded when it is done."""
    found = {}
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(beside, part, full, seed, folder): part for part in parts}
        for done in as_completed(waiting):
            part, figures = waiting[done], done.result()
            found[part] = figures
            print(line(part, figures), flush=True)
            if records:
                about = {"part": part, "size": "full" if full else "quick", "seed": seed}
                disk.write_json(records / f"{part}.json", {**about, "figures": figures, **runs.provenance()})
    return {part: found[part] for part in parts}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer kills, inputs and mutants")
    parser.add_argument("--seed", type=int, help="of everything that is drawn (default: another one each time, printed)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parts at a time (default: as many as there are cores)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work in an empty folder that stays (default: a temporary one)")
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="write each part's figures as JSON, which the book shows; needs a commit"
    )
    parser.add_argument("--alone", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if given.keep and given.keep.is_dir() and any(given.keep.iterdir()):
        parser.error(f"--keep {given.keep} is not empty")
    commit = runs.provenance()["commit"] if given.record else ""
    if commit.endswith("+changes"):
        parser.error(f"--record: what is recorded belongs to a commit, and files differ from {commit[:7]}: commit or stash them")
    return given


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would what is killed here
    given = options()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    if given.alone:
        figures = checked(given.parts[0], not given.quick, seed, given.alone)
        disk.write_json(given.alone / "figures.json", figures)
        return "broken" in figures
    if given.record:
        given.record.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trust-")))
        found = together(given.parts or list(PARTS), not given.quick, seed, folder.resolve(), given.jobs, given.record)
    broken = [part for part, figures in found.items() if "broken" in figures]
    everything = "; ".join(line(part, figures) for part, figures in found.items())
    print(f"\n{'BROKEN ' + ', '.join(broken) if broken else 'all promises hold'} | seed {seed} | {everything}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
