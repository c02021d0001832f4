"""Measures what mined negatives change: fine-tuning runs on mined data sets against runs on the same questions without them."""

import itertools
from pathlib import Path

from asutil import metrics
from asutil.io import disk

from . import compare, measured, records, rundir
from .commands import option
from .parameters import names_of

METRICS = list(compare.METRICS.values())
MINED = "a folder of asutil mine, and a run for each seed"
LIST = {"type": names_of, "required": True}


def record(plain: list[str], mined: list[list[str]]) -> dict:
    """The runs of each data set, one a seed, with the values of every test question, averaged over them.

    Args:
        mined: for each data set its folder, which has mined.json, and its runs.
    Raises: ValueError for a run that was trained on something else, or in another way, or is named twice, and for other test questions.
    """
    sets = [_of_runs(plain)]
    for folder, *names in mined:
        if not names:
            raise ValueError(f"--mined {folder}: a folder and one run or more are expected")
        made = disk.read_json(Path(folder) / "mined.json")
        about = {key: made[key] for key in ("model", "rule", "counts", "fingerprint")}
        sets.append(about | _of_runs(names, made["fingerprint"]))
        for name in plain:
            if rundir.finished(name)[1]["inputs"]["dataset"] != made["dataset"]["fingerprint"]:
                raise ValueError(f"{name}: expected a run on the data that were mined, got one on other data")
    every = [*plain, *itertools.chain.from_iterable(names for _, *names in mined)]
    if len(set(map(rundir.find, every))) < len(every):
        raise ValueError(f"expected each run once, got {', '.join(every)}")
    if len(differ := compare.settings(every).drop(index=["dataset", "seed"], errors="ignore")):
        raise ValueError(f"expected runs that differ in data and seed alone, got other {', '.join(differ.index)}")
    asked = [[question for question, *_ in data_set["per_question"]] for data_set in sets]
    for data_set, questions in zip(sets, asked):
        if questions != asked[0]:
            other, first = (of["runs"][0]["name"] for of in (data_set, sets[0]))
            raise ValueError(f"{other} was tested on other questions than {first}")
        for run in data_set["runs"]:
            print(f"{run['name']}: MAP {run['map']:.4f}")
    return {"sets": sets}


def _of_runs(names: list[str], fingerprint: str | None = None) -> dict:
    entries, tables = [], []
    for name in names:
        folder, run = rundir.finished(name)
        if run["notebook"] != "finetune" or fingerprint not in (None, run["inputs"]["dataset"]):
            came = f"{run['notebook']} on {run['settings']['dataset']}"
            raise ValueError(f"{run['name']}: expected a run of finetune on this data set, got one of {came}")
        table = rundir.read_table(folder, numbers=("label", "score"))
        tables.append(metrics.of(table).per_question.set_index("question_id")[METRICS])
        if not tables[-1].index.equals(tables[0].index):
            raise ValueError(f"{run['name']} was tested on other questions than {entries[0]['name']}")
        figures = {"examples": run["figures"]["examples"], "map": run["metrics"]["test"]["map"]}
        entries.append(measured.of_run(run, "dataset", "model", "question_limit") | figures)
    mean = sum(tables) / len(tables)
    return {"runs": entries, "per_question": records.rounded(mean)}


command = measured.command(
    record,
    option("--plain", "runs on the questions as they are, one for each seed", metavar="RUN,...", **LIST),
    option("--mined", MINED, metavar="FOLDER,RUN,...", multiple=True, **LIST),
    example="asutil mined --plain runs/finetune-<a> --mined bm25,runs/finetune-<b> --mined random,runs/finetune-<c>",
)
