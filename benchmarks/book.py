"""`make book` from a fresh clone with every package installed, again with nothing changed, and after a change of one page.

The ratios are the goals divided by the seconds: three minutes for a fresh clone, ten seconds where nothing changed. The clone is of the
last commit, so that nothing of this checkout's runs and built pages is in it.

    python benchmarks/book.py
    python benchmarks/book.py --quick

The last line is one JSON object.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import side_by_side

ROOT = Path(__file__).resolve().parents[1]
GOALS = {"fresh clone": 180.0, "nothing changed": 10.0}  # seconds
PAGE = "book/glossary.md"
DECIDING = ("ASUTIL_", "AS2_", "MAKE")  # beginnings of variables that change what is built


def build(clone: Path) -> float:
    """Seconds of `make book` in a clone, with the packages of this interpreter.

    Raises: SystemExit where it fails, with the end of its output.
    """
    environment = Path(sys.prefix)
    command = [
        "make",
        f"VENV={environment}",
        "-o",
        str(environment / ".ready"),
        "book",
    ]  # the packages count as installed
    alone = {name: value for name, value in os.environ.items() if not name.startswith(DECIDING)} | {
        "PYTHONPATH": str(clone)
    }
    began = time.perf_counter()
    made = subprocess.run(command, cwd=clone, env=alone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        raise SystemExit(f"make book ended with status {made.returncode}:\n{made.stdout[-2000:]}")
    return time.perf_counter() - began


def times(folder: Path) -> dict[str, float]:
    """Seconds of the first build, of one with nothing changed, and of one after a change of a page."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    seconds = {"fresh clone": build(clone), "nothing changed": build(clone)}
    with (clone / PAGE).open("a") as page:
        page.write("\nOne more line.\n")
    return seconds | {"one page changed": build(clone)}


def main():
    given = side_by_side.arguments(__doc__).parse_args()
    measured = []
    for number in range(given.rounds or (1 if given.quick else 3)):
        with tempfile.TemporaryDirectory() as folder:
            measured.append(times(Path(folder)))
        print(
            f"round {number + 1}:",
            ", ".join(f"{name} {seconds:.1f} s" for name, seconds in measured[-1].items()),
            flush=True,
        )
    side_by_side.show(
        side_by_side.headline(
            "book",
            1.0,
            {name: side_by_side.spread(goal / seconds[name] for seconds in measured) for name, goal in GOALS.items()},
            seconds={name: side_by_side.spread(seconds[name] for seconds in measured) for name in measured[0]},
            seconds_wanted=GOALS,
        )
    )


if __name__ == "__main__":
    main()
