"""Records of what several models or runs show together, in `results/`: where they are, and the command that writes one."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from asutil.io import disk

from . import commands, rundir, runs

LIMITS = ("train_limit", "test_limit", "question_limit")


def files(name: str) -> list[Path]:
    """The committed records of this name, `<name>.json` and `<name>-<any>.json`: runs are measured where their weights are."""
    folder = rundir.root() / "results"
    return [path for path in (folder / f"{name}.json", *sorted(folder.glob(f"{name}-*.json"))) if path.is_file()]


def read(name: str) -> dict | None:
    """The committed record of this name; None where it was not measured. Raises: ValueError for a damaged file, or for several."""
    paths = files(name)
    if len(paths) > 1:
        raise ValueError(f"results/: one record of {name} is expected, got {', '.join(path.name for path in paths)}")
    return disk.read_json(paths[0]) if paths else None


def of_run(record: dict, *settings: str) -> dict:
    """What tells a finished run from others: its name, seed and weights, and some of its settings."""
    named = {name: record[name] for name in ("name", "seed", "weights_sha256")}
    return named | {name: record["settings"][name] for name in settings} | given(record.get("given", {}))


def given(settings: dict, names=(*LIMITS, "loss")) -> dict:
    """The settings that are set: runs that differ in one of them are not two seeds of one system."""
    return {name: settings[name] for name in names if settings.get(name) is not None}


def words_of(entry: dict) -> str:
    """`given` as titles of tables have it: `, train_limit 50`; "" without any."""
    return "".join(f", {name} {value}" for name, value in given(entry).items())


def command(measure: Callable[..., dict], *parameters: click.Parameter, example: str) -> commands.Command:
    """The command that measures, and with --out writes the figures with versions, commit and time."""

    @wraps(measure)
    def measured(out: Path | None, **options) -> Path | None:
        content = measure(**options)
        if out is None:
            return None
        origin = runs.provenance()
        return disk.write_json(out, content | {name: origin[name] for name in ("versions", "commit", "created")})

    out = commands.option("--out", "also write the figures to this .json file", type=Path)
    return commands.command(measured, *parameters, out, example=example)
