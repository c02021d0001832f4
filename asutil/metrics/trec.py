"""The scores of a finished run as the two files that trec_eval and its relatives read.

`python -m asutil.metrics.trec finetune-wikiqa-small-dcdff303f569 --out exported` writes `exported/run.txt` and `exported/qrels.txt`.
"""

import argparse
from pathlib import Path

from ..io import disk, rundir
from . import rankings


def export(run: str | Path, out: str | Path) -> tuple[Path, Path]:
    """Write `run.txt` (question Q0 candidate rank score tag) and `qrels.txt` (question 0 candidate label) of a run's test questions.

    Each file is written whole or not at all; a finished pair of files is replaced by the next.
    Args:
        run: name or folder of a finished run that has scores; its name, without white space, is the tag.
    Returns: the two paths.
    Raises: ValueError for a run that is not finished or has no scores, and for what the format cannot hold: an id that is empty or has
        white space, a candidate that stands twice in a question.
    """
    folder, out = rundir.find(str(run)) or Path(run), Path(out)
    name = rundir.read_record(folder).get("name", folder.name)
    scores, tag = rundir.read_table(folder, numbers=("label", "score")), "_".join(name.split())
    out.mkdir(parents=True, exist_ok=True)
    found = out / "run.txt", out / "qrels.txt"
    try:
        disk.atomically(
            found[0], lambda run: disk.atomically(found[1], lambda qrels: rankings.write_trec(scores, run, qrels, tag))
        )
    except ValueError as error:
        raise ValueError(f"{folder.name}/scores.parquet, {error}") from error
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asutil.metrics.trec", description=f"{__doc__.splitlines()[0]}")
    parser.add_argument("run", help="name or folder of a finished run that has scores.parquet")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write run.txt and qrels.txt into")
    given = parser.parse_args()
    try:
        print(*export(given.run, given.out))
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
