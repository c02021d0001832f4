"""Writes the scores of a finished run as the two files that trec_eval reads, `run.txt` and `qrels.txt`."""

from pathlib import Path

from asutil.metrics.trec import write_trec

from . import commands, rundir


def export(run: str | Path, out: str | Path) -> tuple[Path, Path]:
    """Write a run's scores of the test questions to `run.txt` and `qrels.txt` in a folder.

    The run's name, without white space, is the tag.
    Raises: ValueError as `write_trec`, and for a run that is not finished or has no scores; FileExistsError for a file that is there.
    """
    folder, record = rundir.finished(run)
    name, files = record.get("name", folder.name), [Path(out) / "run.txt", Path(out) / "qrels.txt"]
    if there := [path for path in files if path.exists()]:
        raise FileExistsError(f"{there[0]} exists: give another folder")
    scores = rundir.read_table(folder, numbers=("label", "score"))
    try:
        return write_trec(scores, *files, tag="_".join(name.split()))
    except ValueError as error:
        raise ValueError(f"{folder.name}/scores.parquet, {error}") from error


command = commands.command(
    export,
    commands.argument("run", "a finished run that has scores.parquet"),
    commands.option("--out", "the folder to write run.txt and qrels.txt into", type=Path, required=True),
    example="asutil trec finetune-wikiqa-small-dcdff303f569 --out exported",
)
