"""Every promise tested, and one line of figures a part.

python -m trust                  all parts at full size: some hours on 2 cores
python -m trust --quick          all parts, each smaller: under 15 minutes
python -m trust resume storage   some of them
"""

import argparse
import contextlib
import importlib
import json
import secrets
import sys
import tempfile
import time
import traceback
from pathlib import Path

from asutil import disk, runs

PARTS = ("resume", "matrix", "storage", "hostile", "security", "numbers", "pages", "mutants")


def checked(part: str, full: bool, seed: int, folder: Path) -> dict:
    """The figures of a part, and `broken` where a promise does not hold."""
    started, folder = time.monotonic(), folder / part
    folder.mkdir(parents=True)
    try:
        figures = importlib.import_module(f"trust.{part}").check(full, seed, folder)
    except Exception as error:
        traceback.print_exc()
        figures = {"broken": f"{type(error).__name__}: {error}"}
    return figures | {"seconds": round(time.monotonic() - started)}


def line(part: str, figures: dict) -> str:
    """The figures of a part on one line: `resume: kills 100, seconds 412`."""
    return f"{part}: " + ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in figures.items() if not isinstance(value, dict | list)
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trust", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer kills, inputs and mutants")
    parser.add_argument("--seed", type=int, help="of everything that is drawn (default: another one each time, printed)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work in an empty folder that stays (default: a temporary one)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the figures as JSON, which the book shows")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if given.keep and given.keep.is_dir() and any(given.keep.iterdir()):
        parser.error(f"--keep {given.keep} is not empty")
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    found = {}
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trust-")))
        for part in given.parts or PARTS:
            found[part] = checked(part, not given.quick, seed, folder.resolve())
            print(line(part, found[part]), flush=True)
    broken = [part for part, figures in found.items() if "broken" in figures]
    if given.record:
        made = {"size": "quick" if given.quick else "full", "seed": seed, "parts": found, **runs.provenance()}
        disk.atomically(given.record, lambda path: path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8"))
    everything = "; ".join(line(part, figures) for part, figures in found.items())
    print(f"\n{'BROKEN ' + ', '.join(broken) if broken else 'all promises hold'} | seed {seed} | {everything}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
