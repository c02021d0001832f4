"""The runs that led to a model: each started from the one before it."""

from collections.abc import Iterator
from pathlib import Path

from asutil.io import files

from .parameters import effective
from .rundir import find, with_current_names


def started_from(model: str, runs_dir: str | Path | None = None) -> str | None:
    """The backbone that a chain of runs began with; a model that is no run is its own. None if run.json is missing."""
    for settings_of_run in earlier(model, runs_dir):
        model = settings_of_run.get("model")
    return model


def earlier(model: str, runs_dir: str | Path | None = None) -> Iterator[dict]:
    """The effective settings of the runs that led to a model, the last one first; empty where a run.json is missing."""
    while model and (folder := find(model, runs_dir)):
        path = folder / "run.json"
        run = with_current_names(files.json_object(path, notebook=str, given=dict)) if path.is_file() else {}
        values = effective(run["notebook"], run["given"]) if run else {}
        yield values
        model = values.get("model")
