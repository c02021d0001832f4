"""The runs that led to a model: each started from the one before it."""

from collections.abc import Iterator
from pathlib import Path

from asutil.data import answers
from asutil.io import disk, files

from .parameters import effective
from .rundir import find


def settings_of(folder: Path) -> dict:
    """The effective settings of a run, finished or not; empty where its run.json is missing."""
    path = folder / "run.json"
    run = files.json_object(path, notebook=str, given=dict) if path.is_file() else {}
    return effective(run["notebook"], run["given"]) if run else {}


def started_from(model: str | None, runs_dir: str | Path | None = None) -> str | None:
    """The backbone that a chain of runs began with; a model that is no run is its own. None if a run.json is missing."""
    while model and (folder := find(model, runs_dir)):
        model = settings_of(folder).get("model")
    return model


def leading_to(start: str | None, runs_dir: str | Path | None = None) -> Iterator[Path]:
    """The folder of a run, and those of the runs that its model and its teacher came from; none for what is no run."""
    if start and (folder := find(start, runs_dir)):
        yield folder
        settings = settings_of(folder)
        for name in ("model", "teacher"):
            yield from leading_to(settings.get(name), runs_dir)


def other_data(start: str | None, run) -> Iterator[str]:
    """The data sets that a run, or one that led to it, learnt from and that are not the data of an opened `runs.Run`.

    Their training questions may be among those that this one ranks.
    """
    for path in (folder / "record.json" for folder in leading_to(start, run.options.runs_dir)):
        record = disk.read_json(path) if path.is_file() else {}
        settings = record.get("settings", {})
        if record.get("notebook") in ("finetune", "embed") and settings.get("architecture") != "untrained":
            named, learnt, here = settings["dataset"], record["inputs"]["dataset"], run.identity["inputs"]["dataset"]
            if learnt != here and not (named == run.options.dataset and answers.of_one_source(named, learnt, here)):
                yield named
