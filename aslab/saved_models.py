"""The models of finished runs, for `asutil.io.checkpoints`: an entry point of the package (pyproject.toml, `asutil.models`)."""

from functools import partial
from pathlib import Path

from asutil.io import disk
from asutil.io.checkpoints import SavedModel

from . import rundir


def resolve(name: str | Path) -> SavedModel | None:
    """The model of a finished run, by the run's name or folder or by a folder of its model; None for anything else.

    Raises: ValueError for a run that is not finished, and for one that kept no model, with the reason.
    """
    run, folder = rundir.find(str(name)), Path(name)
    if run is None and (folder / "model").is_dir() and not (folder / "config.json").is_file():
        run = folder
    if run is None:
        run = _run_around(folder)
    else:
        folder = run / "model"
    if run is None:
        return None
    if not (run / "record.json").is_file():
        raise ValueError(f"{run.name} is not a finished run (it has no record.json): run its command to the end first")
    record = rundir.read_record(run)
    settings = record.get("settings", {})
    if not folder.is_dir():
        raise ValueError(f"{run.name} kept no model, because {_instead(record, settings)}")
    return SavedModel(
        folder,
        check=partial(_check, run, record),
        trained_by=record.get("notebook"),
        max_tokens=settings.get("max_tokens"),
        rank_by=settings.get("rank_by"),
        calibration=(record.get("calibration") or {}).get("fitted"),
    )


def _run_around(folder: Path) -> Path | None:
    """The run whose model a folder is, or is part of."""
    around = (folder.resolve(), *folder.resolve().parents) if folder.is_dir() else ()
    return next((m.parent for m in around if m.name == "model" and (m.parent / "record.json").is_file()), None)


def _instead(record: dict, settings: dict) -> str:
    model, encoder = settings.get("model"), settings.get("encoder", "transformer")
    if record.get("notebook") == "rank":
        return f"it ranked with the models of others: load one of them, {settings.get('models')}"
    if encoder in ("transformer", "sentence_transformer"):
        return f"nothing was trained: load its encoder itself, {model}"
    return f"nothing was trained: asutil vectors takes its encoder, --encoder {encoder} --model {model}"


def _check(run: Path, record: dict) -> None:
    if "model_sha256" in record:
        disk.check_all(run / "model", record["model_sha256"], f"{run.name}/record.json")
    else:  # of an earlier version, which listed weights alone
        for file, sha256 in record["weights_sha256"].items():
            disk.check(run / "model" / file, sha256)
