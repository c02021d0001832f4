"""Finished runs as inputs: the project's folder, the folder of a run, and the record and tables in it."""

import os
import re
from functools import cache
from pathlib import Path

import pandas as pd

from asutil.io import disk, files

NAME = re.compile(r"[\w.+ -]{1,200}-[0-9a-f]{12}")  # of a run: no character has a meaning in paths or HTML
BUDGETS = ("laptop", "small", "gpu", "paper")  # the smallest first


def root() -> Path:
    """The project's folder: `ASUTIL_PROJECT`, else the checkout that the package lies in, else the working folder or one above it."""
    return _root(os.environ.get("ASUTIL_PROJECT"), Path.cwd())


@cache  # a plan of all rows calls it some 50,000 times
def _root(project: str | None, working: Path) -> Path:
    if project:
        return Path(project).resolve()
    for folder in (Path(__file__).resolve().parents[1], working, *working.parents):
        if (folder / "notebooks").is_dir() and (folder / "book").is_dir():
            return folder
    raise FileNotFoundError("no project here: expected a folder with notebooks/ and book/ (set ASUTIL_PROJECT to it)")


def find(name: str, runs_dir: str | Path | None = None) -> Path | None:
    """The folder of a run by its name or path, which need not exist; None where `name` is not the name of a run.

    What only ends like a run, in a time stamp say, is none: it has no run.json or record.json, and no notebook's name before a hyphen.
    A plus sign above the last part of a path joins rankers (`bm25+runs/finetune-...`), unless there is such a folder.

    Raises: ValueError for a name that is a link, which may lead out of the folder of runs.
    """
    if not NAME.fullmatch(Path(name).name):
        return None
    if (path := Path(name)).exists():
        known = path / "run.json", path / "record.json", root() / "notebooks" / f"{path.name.partition('-')[0]}.ipynb"
        return path if path.is_dir() and any(file.is_file() for file in known) else None
    if "+" in str(Path(name).parent):
        return None
    default = no_link(runs_folder(runs_dir) / Path(name).name)
    return next((folder for folder in (default, root() / name) if folder.is_dir()), default)


def no_link(folder: Path) -> Path:
    """The folder itself. Raises: ValueError for a link, which may lead out of the folder of runs."""
    if folder.is_symlink():
        reason = f"{folder.name} is a link, which may lead out of {folder.parent.name}/"
        raise ValueError(f"{reason}: give the path that it leads to")
    return folder


def runs_folder(runs_dir: str | Path | None = None) -> Path:
    """The folder of all runs: a relative name is below the project, not below the working folder."""
    return root() / (runs_dir or "runs")


def folders(runs_dir: str | Path | None = None) -> list[Path]:
    """The folders of runs, finished or not. Symbolic links and folders with other names are no runs: skipped."""
    paths = sorted(runs_folder(runs_dir).glob("*-*"))
    return [path for path in paths if NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]


def read_record(folder: str | Path) -> dict:
    """The record of a finished run. Raises: ValueError for a run that is not finished or whose record is damaged, naming the file."""
    folder = Path(folder)
    path = folder / "record.json"
    if not path.is_file():
        run = folder.name if folder.is_absolute() else folder  # no absolute path of this machine
        raise ValueError(f"{run} is not a finished run: {path.name} is missing")
    return disk.read_json(path)


def finished(run: str | Path, *notebooks: str) -> tuple[Path, dict]:
    """The folder and the record of a finished run, of one of these notebooks if some are named. Raises: ValueError for another one."""
    folder = find(str(run)) or Path(run)
    record = read_record(folder)
    if notebooks and record["notebook"] not in notebooks:
        raise ValueError(f"{folder.name}: expected a run of {' or '.join(notebooks)}, got one of {record['notebook']}")
    return folder, record


def read_table(folder: str | Path, name: str = "scores.parquet", ids=("question_id",), numbers=()) -> pd.DataFrame:
    """A table of a finished run, unchanged since the run finished; `ids` and `numbers` are columns that it must have.

    Raises: ValueError for a run that made no such table, and, with both hashes, for a table that is damaged.
    """
    path = Path(folder) / name
    sums = read_record(folder)["tables_sha256"]
    if name not in sums:
        expected = "expected a run that makes one, as finetune makes scores.parquet"
        expected += "; repeat the command of an older run" * (name != "scores.parquet")
        raise ValueError(f"{path.parent.name} has no {name}: {expected}")
    return files.frame(disk.check(path, sums[name]), ids, numbers)
