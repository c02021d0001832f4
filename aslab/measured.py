"""Records of what several models or runs show together, in `results/`: where they are, and the command that writes one."""

import argparse
from collections.abc import Callable
from pathlib import Path

from asutil.io import disk, rundir

from . import runs


def files(name: str) -> list[Path]:
    """The committed records of this name, `<name>.json` and `<name>-<any>.json`, as runs of different machines are measured on each."""
    folder = rundir.root() / "results"
    return [path for path in (folder / f"{name}.json", *sorted(folder.glob(f"{name}-*.json"))) if path.is_file()]


def read(name: str) -> dict[str, list] | None:
    """The lists of the committed records, one after the other; None where nothing was measured. Raises: ValueError for a damaged file."""
    joined = {}
    for record in map(disk.read_json, files(name)):
        for key, value in record.items():
            if isinstance(value, list):
                joined.setdefault(key, []).extend(value)
    return joined or None


def of_run(record: dict, *settings: str) -> dict:
    """What tells a finished run from others: its name, seed and weights, and some of its settings."""
    named = {name: record[name] for name in ("name", "seed", "weights_sha256")}
    return named | {name: record["settings"][name] for name in settings}


def main(parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], dict]) -> None:
    """Measure what the command line asks for, and with --out write it with versions, commit and time.

    A ValueError or OSError of `measure` ends the command with its message.
    """
    parser.add_argument("--out", type=Path, help="also write the figures to this .json file")
    options = parser.parse_args()
    try:
        content = measure(options)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if options.out:
        origin = {name: runs.provenance()[name] for name in ("versions", "commit", "created")}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        print(disk.write_json(options.out, content | origin))
