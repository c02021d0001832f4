"""The records of a paper's rows, and what one says: its split, its figures, the values of every question, the runs that led to it."""

from pathlib import Path

import pandas as pd

from asutil.io import disk, rundir
from asutil.metrics import rankings

from . import papers, runs
from .papers import FOUND, SIDES
from .plan import Job, completed, jobs, settings_key

COMMITTED, HERE = "committed", "this machine"
PER_QUESTION = {"p@1": "p_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
PER_CLAIM = {"label_accuracy": "label_accuracy"}
PER_CONTEXT = {name: name for name in FOUND}


# ------------------------------------------------------------------ what was run


def records(
    paper: str, results: str | Path = "results", runs_dir: str | Path = "runs", folder: str | Path | None = None
) -> pd.DataFrame:
    """Every record of a paper's rows, the committed ones and those of finished runs on this machine.

    A local run belongs to a row when its effective settings are those that the row gives to its notebook at some budget.

    Returns: one row a record: row, dataset (`pretraining` for a pre-training run), budget, seed, source ("committed" | "this machine"),
        name, folder (None for a committed one), record (the dict), earlier (records of the runs that its model came from; of re-ranking
        those of the row that ranked first as well). Where sides of a data set are columns of the paper's tables, as FEVER's are, or the
        dev questions of ASBERT, a run is a row for each that has labels.
    Raises: ValueError naming the file of a result that is damaged or stands in the wrong place.
    """
    data = papers.read(paper, folder)
    found = [*_committed_records(data, rundir.root() / results / paper), *_local(data, runs.read_all(runs_dir), folder)]
    return pd.DataFrame(
        found, columns=["row", "dataset", "budget", "seed", "source", "name", "folder", "record", "earlier"]
    )


def _committed_records(data: dict, folder: Path):
    for path in sorted(folder.glob("*/*.json")):
        try:
            record = disk.read_json(path)
            row, dataset, budget, seed = (record[key] for key in ("row", "dataset", "budget", "seed"))
        except (ValueError, KeyError) as error:
            raise ValueError(f"{folder.name}/{path.parent.name}/{path.name} is damaged: {error}") from error
        place = f"{row}/{dataset}-{budget}-seed{seed}.json"
        if path != folder / place or row not in data["rows"]:
            raise ValueError(
                f"{folder.name}/{path.parent.name}/{path.name} holds the record of {place}, or of a row that the paper lacks"
            )
        yield (
            row,
            dataset,
            budget,
            seed,
            COMMITTED,
            record.get("name", path.stem),
            None,
            record,
            record.get("earlier", []),
        )


def _local(data: dict, made: pd.DataFrame, folder):
    made = made[made["finished"].astype(bool)]
    in_time = sorted(
        made.itertuples(), key=lambda run: run.record.get("created", "")
    )  # of runs on changed data the newest counts
    known = {settings_key(run.notebook, completed(run.notebook, run.record["settings"])): run for run in in_time}

    def find(notebook: str, parameters: dict) -> Path:
        key = settings_key(notebook, runs.settings(notebook, parameters))
        return known[key].folder if key in known else Path("not run") / str(abs(hash(key)))

    by_folder = {run.folder: run for run in made.itertuples()}
    for budget in (name for name in data.get("budgets", {}) if name in set(made["budget"])):
        plan = {job.folder: job for job in jobs(data["slug"], budget, folder_for=find, folder=folder)}
        for job in plan.values():
            if job.folder in by_folder and not job.search:
                run = by_folder[job.folder]
                earlier = [by_folder[need].record for need in _ancestors(job, plan)]
                for dataset in _columns(data, job.dataset, run.record):
                    yield job.row, dataset, budget, job.seed, HERE, run.name, run.folder, run.record, earlier


def _ancestors(job: Job, plan: dict[Path, Job]) -> list[Path]:
    """The folders of the runs that a job goes back to, each after those that it needs."""
    return [folder for need in job.needs for folder in (*_ancestors(plan[need], plan), need)]


def _columns(data: dict, dataset: str, record: dict) -> list[str]:
    """The columns of the paper's tables that a run has figures for: the sides of its data set that are some, those with labels."""
    printed = {name for table in data["tables"].values() for name in table["datasets"]}
    sides = {column: side for column, (name, side) in SIDES.items() if name == dataset and column in printed}
    named = [column for column, side in sides.items() if side in record["metrics"]]
    return named if "test" in sides.values() else [*named, dataset]


# ------------------------------------------------------------------ what a record says


def chain(one) -> list[dict]:
    """The records of the runs that led to a line, first to last."""
    return [*one.earlier, one.record]


def backbone(one) -> str:
    """The model that a line's runs began with; of a re-ranking that of the row that ranked first."""
    settings = {record["name"]: record["settings"] for record in one.earlier}
    model = one.record["settings"].get("first_run") or one.record["settings"].get("model", "")
    while model in settings:
        model = settings[model].get("model", "")
    return model


def no_spread(lines: pd.DataFrame) -> bool:
    """Whether records are those of an encoder that was taken as it is."""
    return len(lines) > 0 and all(
        record.get("settings", {}).get("architecture") == "untrained" for record in lines.record
    )


def reported(one) -> str:
    """The side that a run's record is about: the first that has figures of test, validation and dev."""
    measured = one.record.get("metrics", {})
    return next((name for name in ("test", "validation", "dev") if measured.get(name)), "test")


def side(one) -> str:
    """The side of its data set that a line is about: its column's, else the one that its record is about."""
    return SIDES[one.dataset][1] if one.dataset in SIDES else reported(one)


def figures(one, as_printed: bool = False) -> dict:
    """The metrics of a line's side.

    Args:
        as_printed: of a re-ranking those of its k candidates alone, as table 7 of joint_inference has them; else those of whole lists,
            which alone can be compared with other rows.
    """
    measured = one.record.get("metrics", {})
    return (as_printed and measured.get("top_k")) or measured.get(side(one), {})


def values(lines: pd.DataFrame, metric: str, as_printed: bool = False) -> list[float]:
    """One value a seed, 0 to 1; `as_printed` as of `figures`."""
    measured = [figures(one, as_printed) for one in lines.itertuples()]
    return [found[metric] for found in measured if found.get(metric) is not None]


# ------------------------------------------------------------------ one value a question


def columns(record: dict) -> dict[str, str]:
    """The metrics of a record that have one value a question or claim, and the names of their columns."""
    return {"verify_claims": PER_CLAIM, "find_evidence": PER_CONTEXT}.get(record.get("notebook"), PER_QUESTION)


def per_question(one) -> pd.DataFrame:
    """One record's values of every question or claim, from the record itself or from its run's folder, with their ids as index."""
    if one.folder is not None:
        name = f"per_question{'' if side(one) == reported(one) else '_' + side(one)}.parquet"
        return rundir.read_table(one.folder, name).set_index("question_id")
    return _committed(one, "per_question")


def _committed(one, key: str) -> pd.DataFrame:
    names, values = ["question_id", *columns(one.record).values()], one.record[key]
    if wrong := [row for row in values if not isinstance(row, list) or len(row) != len(names)]:
        place = f"{one.row}/{one.dataset}-{one.budget}-seed{one.seed}.json"
        raise ValueError(f"{place}: {key} is expected to have rows of {', '.join(names)}, got {wrong[0]!r:.80}")
    return pd.DataFrame(values, columns=names).set_index("question_id")


def chosen_on_dev(data: dict, one) -> bool:
    """Whether dev chose anything of a line's runs: the epoch that was kept, or settings."""
    search = data["budgets"].get(one.budget, {}).get("search", {}) | data["rows"][one.row].get("search", {})
    stopped = any(record["settings"].get("patience") is not None for record in chain(one))
    return stopped or one.dataset in search.get("datasets", ())


def dev_questions(data: dict, one) -> pd.DataFrame | None:
    """The values of every dev question of a line about test questions; None where dev chose anything, or where they are not at hand.

    Deviation: D-117.
    """
    if columns(one.record) is not PER_QUESTION or side(one) != "test" or chosen_on_dev(data, one):
        return None
    if one.folder is None:
        return _committed(one, "per_question_dev") if "per_question_dev" in one.record else None
    if "scores_dev.parquet" not in one.record.get("tables_sha256", {}):
        return None
    return rankings.of(rundir.read_table(one.folder, "scores_dev.parquet")).per_question.set_index("question_id")


def pooled(data: dict, one) -> pd.DataFrame | None:
    """The values of every question of dev and test together; None where `dev_questions` are not to be had."""
    dev = dev_questions(data, one)
    return None if dev is None else pd.concat({"dev": dev, "test": per_question(one)})
