"""The runs that led to a model: each started from the one before it."""

from collections.abc import Iterator
from pathlib import Path

from asutil.data import answers
from asutil.io import files

from .parameters import effective
from .rundir import find, read_record, with_current_names


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


def trained_on(start: str | None, runs_dir: str | Path | None = None) -> Iterator[dict]:
    """The records of the fine-tunings and embeddings that led to a run: its own, and those of its model and of its teacher."""
    if not start or not (folder := find(start, runs_dir)) or not (folder / "record.json").is_file():
        return
    record = read_record(folder)
    if record["notebook"] in ("finetune", "embed") and record["settings"].get("architecture") != "untrained":
        yield record
    settings = next(earlier(start, runs_dir), {})
    for before in ("model", "teacher"):
        yield from trained_on(settings.get(before), runs_dir)


def other_data(start: str | None, run) -> Iterator[str]:
    """The data sets that a run, or one before it, learnt from and that are not the data of an opened `runs.Run`.

    Their training questions may be among those that this one ranks.
    """
    for record in trained_on(start, run.options.runs_dir):
        named, learnt, here = (
            record["settings"]["dataset"],
            record["inputs"]["dataset"],
            run.identity["inputs"]["dataset"],
        )
        if learnt != here and not answers.of_one_source(named, learnt, here):
            yield named
