"""Measures whether the probabilities of fine-tuned models are right: calibration error on test, before and after a fit on dev."""

from pathlib import Path

from asutil import metrics

from . import commands, measured, rundir


def record(folders: list[Path]) -> dict:
    """One entry a run: what was fitted on dev (None: nothing fits), and the figures of dev and test.

    Raises: ValueError for a folder without a finished run of finetune.
    """
    entries = []
    for folder in folders:
        folder, run = rundir.finished(folder, "finetune")
        tables = {"dev": "scores_dev.parquet", "test": "scores.parquet"}
        scores = {split: rundir.read_table(folder, name, numbers=("label", "score")) for split, name in tables.items()}
        fitted = metrics.calibration.fit(scores["dev"])
        figures = {split: metrics.calibration.measured(table, fitted) for split, table in scores.items() if fitted}
        about = measured.of_run(run, "dataset", "protocol", "model", "architecture", "head")
        entries.append(about | {"fitted": fitted and fitted.record(), **figures})
        before, after = (f"{figures['test'][key]:.3f}" if fitted else "-" for key in ("error_before", "error"))
        print(f"{run['name']}: error on test {before}, with temperature and bias {after}")
    return {"runs": entries}


command = measured.command(
    record,
    commands.argument("folders", "finished runs of finetune", type=Path, nargs=-1, metavar="RUN..."),
    example="asutil calibration runs/finetune-<hash> --out results/calibration.json",
)
