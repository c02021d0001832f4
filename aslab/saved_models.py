"""The models of finished runs, for `asutil.io.checkpoints`: an entry point of the package (pyproject.toml, `asutil.models`)."""

from functools import partial
from pathlib import Path

from asutil.io import disk
from asutil.io.checkpoints import SavedModel

from . import rundir


def resolve(name: str | Path) -> SavedModel | None:
    """The model of a finished run, by the run's name or folder or by a folder of its model; None for anything else.

    Raises: FileNotFoundError for a run that does not exist; ValueError for one that is not finished, and for one that kept no model,
        with the reason.
    """
    run, folder = rundir.find(str(name)), Path(name)
    if run is None and (folder / "model").is_dir() and not (folder / "config.json").is_file():
        run = folder
    if run is not None:
        folder = run / "model"
    else:  # maybe it is the model of a run, or part of it
        around = (folder.resolve(), *folder.resolve().parents) if folder.is_dir() else ()
        models = (path for path in around if path.name == "model" and (path.parent / "record.json").is_file())
        run = next((path.parent for path in models), None)
    if run is None:
        return None
    if not run.is_dir():
        raise FileNotFoundError(f"{run.name}: no such run in {run.parent.name}/")
    if not (run / "record.json").is_file():
        raise ValueError(f"{run.name} is not a finished run (it has no record.json): run its command to the end first")
    record = rundir.read_record(run)
    settings = record.get("settings", {})
    if not folder.is_dir():
        model, encoder = settings.get("model"), settings.get("encoder", "transformer")
        reason = f"nothing was trained: asutil vectors takes its encoder, --encoder {encoder} --model {model}"
        if record.get("notebook") == "rank":
            reason = f"it ranked with the models of others: load one of them, {settings.get('models')}"
        elif encoder in ("transformer", "sentence_transformer"):
            reason = f"nothing was trained: load its encoder itself, {model}"
        raise ValueError(f"{run.name} kept no model, because {reason}")
    return SavedModel(
        folder,
        check=partial(disk.check_all, run / "model", record.get("model_sha256", {}), f"{run.name}/record.json"),
        trained_by=record.get("notebook"),
        max_tokens=settings.get("max_tokens"),
        rank_by=settings.get("rank_by"),
        calibration=(record.get("calibration") or {}).get("fitted"),
    )
