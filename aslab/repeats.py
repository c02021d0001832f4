"""Runs that were made again with equal settings: their records in `results/repeats/`.

`results/repeats/<paper>/<row>/<dataset>-<budget>-seed<k>-<time>.json` is a record besides the one in `results/<paper>/`.
"""

import json
from pathlib import Path

import pandas as pd

from asutil.io import disk

from . import records, rundir
from .identity import STAGES, STARTS
from .plan import completed, settings_key

FOLDER = "repeats"


def key(record: dict, without: tuple = ()) -> str:
    """Settings, data and first weights of a record's runs, without what changes no result by design and without the names of runs.

    Two records with equal keys differ by machine, precision or version of the code alone.

    Args:
        without: other settings that are left out.
    """
    chain = [*record.get("earlier", ()), record]
    names, keys = {run["name"] for run in chain}, []
    for run in chain:
        settings = completed(run["notebook"], run["settings"])
        left_out = {*without, *(name for name in (*STARTS, *STAGES) if settings.get(name) in names)}
        compared = {name: value for name, value in settings.items() if name not in left_out}
        starts = [name for name in STARTS if settings.get(name) and settings[name] not in names]
        data = {name: run.get("inputs", {}).get(name) for name in ("dataset", "corpus", "exclude_titles", *starts)}
        keys.append([settings_key(run["notebook"], compared), data])
    return json.dumps(keys, sort_keys=True)


def path_of(record: dict, results: str | Path = "results") -> Path:
    """The file of a record among the repeats: the time at which it was created is the end of its name."""
    time = record["created"].partition("+")[0].replace("-", "").replace(":", "")
    name = f"{record['dataset']}-{record['budget']}-seed{record['seed']}-{time}.json"
    return rundir.root() / results / FOLDER / record["paper"] / record["row"] / name


def file_for(record: dict, path: Path, results: str | Path = "results") -> Path:
    """Where a record is published: `path`, unless another run with equal settings and data is there; then the repeats."""
    if not path.is_file():
        return path
    there = disk.read_json(path)
    same_run = all(there.get(name) == record.get(name) for name in ("name", "created", "weights_sha256"))
    return path if same_run or key(there) != key(record) else path_of(record, results)


def read(paper: str, results: str | Path = "results") -> pd.DataFrame:
    """A paper's records among the repeats, with the columns of `records.records`.

    Raises: ValueError naming a file that is damaged or in the wrong place.
    """
    lines = []
    for path in sorted((rundir.root() / results / FOLDER / paper).glob("*/*.json")):
        record = disk.read_json(path)
        if path != path_of(record, results):
            file = f"{FOLDER}/{paper}/{path.parent.name}/{path.name}"
            raise ValueError(f"{file} has the record of {path_of(record).name}")
        identity = (record[name] for name in records.COLUMNS[:4])
        lines.append((*identity, FOLDER, record["name"], None, record, record.get("earlier", [])))
    return pd.DataFrame(lines, columns=records.COLUMNS)
