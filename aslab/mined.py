"""Records what mined negatives change: runs of finetune on mined data sets beside runs on the same questions without.

python -m aslab.mined --plain RUN [RUN ...] --mined FOLDER RUN [RUN ...] [--mined FOLDER RUN [RUN ...] ...] [--out FILE]
"""

import argparse
from pathlib import Path

from asutil import metrics
from asutil.io import disk, rundir

from . import compare, runs

METRICS = list(compare.METRICS.values())


def record(plain: list[str], mined: list[list[str]]) -> dict:
    """The runs of each data set, one a seed, with the values of every test question, averaged over them; and the provenance.

    Args:
        mined: for each data set its folder, which has mined.json, and its runs.
    Raises: ValueError for a run that was trained on something else, and for runs with other test questions.
    """
    sets = [_of_runs(plain)]
    for folder, *names in mined:
        made = disk.read_json(Path(folder) / "mined.json")
        sets.append(
            {key: made[key] for key in ("model", "rule", "counts", "fingerprint")}
            | _of_runs(names, made["fingerprint"])
        )
    first = [name for name, *_ in sets[0]["per_question"]]
    for other in sets[1:]:
        if [name for name, *_ in other["per_question"]] != first:
            raise ValueError(
                f"{other['runs'][0]['name']} was tested on other questions than {sets[0]['runs'][0]['name']}"
            )
    for one in sets:
        print(", ".join(run["name"] for run in one["runs"]))
        print("  MAP", *(f"{100 * run['map']:.1f}" for run in one["runs"]))
    return {"sets": sets} | {name: runs.provenance()[name] for name in ("versions", "commit", "created")}


def _of_runs(names: list[str], fingerprint: str | None = None) -> dict:
    entries, tables = [], []
    for name in names:
        run = rundir.read_record(rundir.find(name) or Path(name))
        if run["notebook"] != "finetune" or fingerprint not in (None, run["inputs"]["dataset"]):
            raise ValueError(
                f"{run['name']}: expected a run of finetune on this data set, got one of {run['notebook']} on {run['settings']['dataset']}"
            )
        table = rundir.read_table(rundir.find(name) or Path(name), numbers=("label", "score"))
        tables.append(metrics.of(table).per_question.set_index("question_id")[METRICS])
        about = {key: run["settings"][key] for key in ("dataset", "model", "question_limit")}
        steps = {"examples": run["figures"]["examples"], "map": run["metrics"]["test"]["map"]}
        entries.append(
            {"name": run["name"], "seed": run["seed"], "weights_sha256": run["weights_sha256"]} | about | steps
        )
    mean = sum(tables) / len(tables)
    values = [[name, *(round(float(value), 6) for value in row)] for name, *row in mean.itertuples()]
    return {"runs": entries, "per_question": values}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.mined", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--plain", nargs="+", required=True, metavar="RUN", help="runs on the questions as they are, one a seed"
    )
    mined = "a folder of asutil.tasks.mine, and the runs on it, one a seed"
    parser.add_argument("--mined", nargs="+", action="append", required=True, metavar="FOLDER RUN", help=mined)
    parser.add_argument("--out", type=Path, help="write a record of numbers into this file")
    options = parser.parse_args()
    if short := next((given for given in options.mined if len(given) < 2), None):
        parser.error(f"--mined {short[0]}: a folder and one run or more are expected")
    try:
        content = record(options.plain, options.mined)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        print(disk.write_json(options.out, content))


if __name__ == "__main__":
    main()
