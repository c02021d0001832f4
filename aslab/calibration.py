"""Measures whether the probabilities of fine-tuned models are right: calibration error on test, before and after a fit on dev.

python -m aslab.calibration RUN [RUN ...] [--out FILE]
"""

import argparse
from pathlib import Path

from asutil import metrics

from . import measured, rundir


def record(folders: list[Path]) -> dict:
    """One entry a run: what was fitted on dev (None: nothing fits), and the figures of dev and test.

    Raises: ValueError for a folder without a finished run of finetune.
    """
    entries = []
    for folder in folders:
        folder = rundir.find(str(folder)) or folder
        run = rundir.read_record(folder)
        if run["notebook"] != "finetune":
            raise ValueError(
                f"{folder.name}: expected a run of finetune, whose scores are logits, got one of {run['notebook']}"
            )
        tables = {"dev": "scores_dev.parquet", "test": "scores.parquet"}
        scores = {split: rundir.read_table(folder, name, numbers=("label", "score")) for split, name in tables.items()}
        fitted = metrics.calibration.fit(scores["dev"])
        figures = (
            {split: metrics.calibration.measured(table, fitted) for split, table in scores.items()} if fitted else {}
        )
        about = measured.of_run(run, "dataset", "protocol", "model", "architecture", "head")
        entries.append(about | {"fitted": fitted and fitted.record(), **figures})
        before, after = (f"{figures['test'][key]:.3f}" if fitted else "-" for key in ("error_before", "error"))
        print(f"{run['name']}: error on test {before}, with temperature and bias {after}")
    return {"runs": entries}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.calibration", description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="run", help="name or folder of a finished run of notebooks/finetune.ipynb"
    )
    measured.main(parser, lambda options: record(options.runs))


if __name__ == "__main__":
    main()
