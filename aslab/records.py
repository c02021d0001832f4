"""The records of a paper's rows, committed or local: split, figures, values of questions, chain of runs."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pandas as pd

from asutil.data.data_sets import ANSWERS
from asutil.io import disk
from asutil.metrics import rankings, registry

from . import identity, papers, parameters, rundir, runs
from .papers import SPLITS, TRANSFER
from .plan import Job, completed, follows_rules, jobs, settings_key

COMMITTED, HERE = "committed", "this machine"
PER_QUESTION, PER_CLAIM, PER_CONTEXT = map(registry.columns, ("question", "claim", "context"))
COLUMN_OF = PER_QUESTION | PER_CLAIM | PER_CONTEXT
# What the records of a notebook have one value of; of others a question.
KINDS = {"pretrain": "split", "verify_claims": "claim", "find_evidence": "context"}
KINDS |= dict.fromkeys(("finetune", "embed", "rerank"), "question")
# The columns of a committed record that names none, whatever measures there are by now.
UNNAMED = {
    "question": ("p_at_1", "average_precision", "reciprocal_rank"),
    "claim": ("label_accuracy",),
    "context": ("answer_f1", "evidence_f1", "map_raw", "map_projected", "map_predicted_type"),
}
# What a record has of its own data set alone.
OF_ITS_OWN = ("metrics", "baselines", "columns", "per_question", "per_question_dev", "chosen", "pca", "transfer")
COLUMNS = ["row", "dataset", "budget", "seed", "source", "name", "folder", "record", "earlier"]  # of `records`


# ------------------------------------------------------------------ what was run


def records(paper: str, results: str | Path = "results", runs_dir: str | Path = "runs") -> pd.DataFrame:
    """Every record of a paper's rows, the committed ones and those of finished runs on this machine.

    A local run belongs to a row when its effective settings are those that the row gives to its notebook at some
    budget; at budget `paper` also where the paper's rules allow them, if no run has the row's own.

    Returns: one row a record with `COLUMNS`: dataset is `pretraining` for a pre-training, folder None for a committed record,
        earlier the records of the runs that its model came from, and for re-ranking those of the row that ranked first.
        A run has a row for each split with labels that is a column of the paper's tables (FEVER, dev questions of ASBERT),
        a committed record one more for each data set that its model also ranked, as `selqa_from_nq_sentences`.
    Raises: ValueError naming the file of a result that is damaged or in the wrong place.
    """
    made = committed(paper, results).itertuples(index=False, name=None)
    local = _local_records(papers.read(paper), runs.read_all(runs_dir))
    return pd.DataFrame([*made, *local], columns=COLUMNS)


def committed(paper: str, results: str | Path = "results") -> pd.DataFrame:
    """The committed records among `records`: files are read, and nothing is planned. Raises: as `records`."""
    files = tuple(sorted((rundir.root() / results / paper).glob("*/*.json")))
    states = tuple((state.st_mtime_ns, state.st_size) for state in map(Path.stat, files))
    return _read(frozenset(papers.read(paper)["rows"]), files, states)


@lru_cache(maxsize=len(papers.PAPERS))  # a page after the other asks for them: read again only where a file has changed
def _read(rows: frozenset, files: tuple[Path, ...], states: tuple) -> pd.DataFrame:
    lines = pd.DataFrame(list(_committed_records(rows, files)), columns=COLUMNS)
    return lines.assign(record=with_zero_shot(lines))


def with_zero_shot(lines: pd.DataFrame) -> list[dict]:
    """The records; that of a data set which its model only ranked has the `zero_shot` of a run on it, of equal budget and first weights."""
    key = lambda line, data: (line.budget, data, chain(line)[0].get("inputs", {}).get("model"))
    known = {
        key(line, line.record.get("inputs", {}).get("dataset")): {"zero_shot": line.record["baselines"]["zero_shot"]}
        for line in lines.itertuples()
        if (line.record.get("baselines") or {}).get("zero_shot")
    }
    completed = []
    for line in lines.itertuples():
        measured = TRANSFER in line.dataset and known.get(key(line, line.record.get("fingerprint")))
        completed.append(line.record | {"baselines": line.record["baselines"] | measured} if measured else line.record)
    return completed


def _committed_records(rows: frozenset, files: tuple[Path, ...]):
    for path in files:
        file = "/".join(path.parts[-3:])
        try:
            record = disk.read_json(path)
            row, dataset, budget, seed = (record[key] for key in COLUMNS[:4])
        except (ValueError, KeyError) as error:
            raise ValueError(f"{file} is damaged: {error}") from error
        own = f"{row}/{dataset}-{budget}-seed{seed}.json"
        if "/".join(path.parts[-2:]) != own or row not in rows:
            raise ValueError(f"{file} holds the record of {own}, or of a row that the paper lacks")
        name, earlier = record.get("name", path.stem), record.get("earlier", [])
        yield row, dataset, budget, seed, COMMITTED, name, None, record, earlier
        own = {name: value for name, value in record.items() if name not in OF_ITS_OWN}
        for ranked, part in record.get("transfer", {}).items():
            yield row, f"{ranked}{TRANSFER}{dataset}", budget, seed, COMMITTED, name, None, own | part, earlier


def _local_records(data: dict, made: pd.DataFrame):
    made = made[made["finished"].astype(bool)]
    # Of runs with the same settings, on data that changed, the newest counts.
    in_time = sorted(made.itertuples(), key=lambda run: run.record.get("created", ""))
    newest = {settings_key(run.notebook, completed(run.notebook, run.record["settings"])): run for run in in_time}

    def find(notebook: str, given: dict) -> Path:
        key = settings_key(notebook, parameters.settings(notebook, given))
        return newest[key].folder if key in newest else Path("not run") / str(abs(hash(key)))

    by_folder = {run.folder: run for run in made.itertuples()}
    for budget in (name for name in data.get("budgets", {}) if name in set(made["budget"])):
        plan = {job.folder: job for job in jobs(data["slug"], budget, folder_for=find)}
        if budget == "paper" and data.get("settings"):
            plan = _by_rules(data, plan, in_time, find)
        for job in plan.values():
            if job.folder in by_folder and not job.search:
                run = by_folder[job.folder]
                earlier = [by_folder[need].record for need in _ancestors(job, plan)]
                for dataset in _columns(data, job.dataset, run.record):
                    yield job.row, dataset, budget, job.seed, HERE, run.name, run.folder, run.record, earlier


def _by_rules(data: dict, plan: dict[Path, Job], in_time: list, find) -> dict[Path, Job]:
    """The plan of budget `paper`, where a job without a run of its own settings gets the newest that the rules accept.

    The tries of a search keep their settings, and a run that is another job's by its settings stays there.
    """
    finished = {run.folder for run in in_time}
    candidates = [run for run in reversed(in_time) if run.folder not in plan]
    new_plan = {}
    folder_of_planned = {}
    for planned, job in plan.items():  # each comes after those that it needs
        given = {name: folder_of_planned.get(value, value) for name, value in job.parameters.items()}
        folder = find(job.notebook, given)
        if folder not in finished and not job.search:
            wanted = identity.shown(parameters.settings(job.notebook, given))
            for run in candidates:
                if (run.notebook, run.record["seed"]) == (job.notebook, job.seed):
                    settings = completed(run.notebook, run.record["settings"])
                    if follows_rules(data, job.row, job.dataset, job.notebook, wanted, settings):
                        folder = run.folder
                        break
        folder_of_planned[planned.as_posix()] = folder.as_posix()
        needs = tuple(Path(folder_of_planned[need.as_posix()]) for need in job.needs)
        new_plan.setdefault(folder, replace(job, folder=folder, needs=needs))
    return new_plan


def _ancestors(job: Job, plan: dict[Path, Job]) -> list[Path]:
    """The folders of the runs that led to a job, each after those that it needs."""
    return [folder for need in job.needs for folder in (*_ancestors(plan[need], plan), need)]


def _columns(data: dict, dataset: str, record: dict) -> list[str]:
    """The columns of the paper's tables that a run has figures for: its data set, and splits of it with labels."""
    printed = {column for table in data["tables"].values() for column in table["datasets"]}
    splits = {column: split for column, (name, split) in SPLITS.items() if name == dataset and column in printed}
    columns = [column for column, split in splits.items() if split in record["metrics"]]
    return columns if "test" in splits.values() else [*columns, dataset]


# ------------------------------------------------------------------ what a record is about


def chain(one) -> list[dict]:
    """The records of the runs that led to a line, and its own, in the order in which they ran."""
    return [*one.earlier, one.record]


def backbone(one) -> str:
    """The model that a line's runs began with; for a re-ranking, that of the row that ranked first."""
    settings = {record["name"]: record["settings"] for record in one.earlier}
    model = one.record["settings"].get("first_run") or one.record["settings"].get("model", "")
    while model in settings:
        model = settings[model].get("model", "")
    return model


def origin(budget: str, source: str) -> str:
    """A budget as tables name it: `small`, or `small, this machine`."""
    return budget + (f", {HERE}" if source == HERE else "")


def no_spread(lines: pd.DataFrame) -> bool:
    """Whether all records are about an untrained encoder, whose figures do not depend on a seed."""
    return {record.get("settings", {}).get("architecture") for record in lines.record} == {"untrained"}


def reported(one) -> str:
    """The split that a run's record is about: the first of test, validation and dev that has figures."""
    measured = one.record.get("metrics", {})
    return next((name for name in ("test", "validation", "dev") if measured.get(name)), "test")


def split(one) -> str:
    """The split that a line is about: its column's, else the one that its record is about."""
    return SPLITS[one.dataset][1] if one.dataset in SPLITS else reported(one)


def figures(one, as_printed: bool = False) -> dict:
    """The metrics of a line's split.

    Args:
        as_printed: for a re-ranking, the metrics of its k candidates only, as in table 7 of joint_inference. By
            default those of whole lists, which can be compared with other rows.
    """
    measured = one.record.get("metrics", {})
    return (as_printed and measured.get("top_k")) or measured.get(split(one), {})


def seconds(record: dict) -> float:
    """How long a run took, at least: `seconds` are those of its last process, `training_seconds` of all that trained."""
    return max(record["seconds"], record.get("figures", {}).get("training_seconds") or 0)


def values(lines: pd.DataFrame, metric: str, as_printed: bool = False) -> list[float]:
    """One value a seed, 0 to 1; `as_printed` as in `figures`."""
    reached = [figures(one, as_printed).get(metric) for one in lines.itertuples()]
    return [value for value in reached if value is not None]


# ------------------------------------------------------------------ one value a question


def kind(record: dict) -> str:
    """What a record has one value of: question, claim or context; split for a pre-training."""
    return KINDS.get(record.get("notebook"), "question")


def columns_entry(values: pd.DataFrame, of: str = "question") -> dict:
    """`columns` of a record, to be read by `value_columns`: nothing where they are those of a record that names none."""
    names = list(values.columns)
    return {} if names == value_columns({}, of) else {"columns": names}


def values_entry(values: pd.DataFrame, of: str = "question") -> dict:
    """The values of every question in a record, and the names of their columns where a reader needs them."""
    return columns_entry(values, of) | {"per_question": rounded(values)}


def value_columns(record: dict, of: str = "question") -> list[str]:
    """The columns of a record's values after the id."""
    return record.get("columns") or list(UNNAMED[of])


def rounded(values: pd.DataFrame) -> list[list]:
    """[id, value, ...] of every question, with six digits; None for a value that it does not have."""
    return [[name, *(None if pd.isna(v) else round(v, 6) for v in row)] for name, *row in values.itertuples()]


def per_question(one) -> pd.DataFrame:
    """The values of every question or claim, with ids as index, from a committed record or from the run's folder."""
    if one.folder is None:
        return _committed(one, "per_question")
    name = "per_question" if split(one) == reported(one) else f"per_question_{split(one)}"
    return rundir.read_table(one.folder, f"{name}.parquet").set_index("question_id")


# Of committed records: id(values) -> (values, table). Holding the values keeps their id from being reused.
_TABLES = {}


def _committed(one, key: str) -> pd.DataFrame:
    names, values = ["question_id", *value_columns(one.record, kind(one.record))], one.record[key]
    if _TABLES.get(id(values), [None])[0] is not values:
        if wrong := [row for row in values if not isinstance(row, list) or len(row) != len(names)]:
            file = f"{one.row}/{one.dataset}-{one.budget}-seed{one.seed}.json"
            raise ValueError(f"{file}: {key} is expected to have rows of {', '.join(names)}, got {wrong[0]!r:.80}")
        _TABLES[id(values)] = values, pd.DataFrame(values, columns=names).set_index("question_id")
    return _TABLES[id(values)][1]


def chosen_on_dev(data: dict, one) -> bool:
    """Whether dev questions chose the epoch or the settings of a line's runs."""
    search = data["budgets"].get(one.budget, {}).get("search", {}) | data["rows"][one.row].get("search", {})
    stopped = any(record["settings"].get("patience") is not None for record in chain(one))
    return stopped or one.dataset in search.get("datasets", ())


def dev_questions(data: dict, one) -> pd.DataFrame | None:
    """Values of every dev question of a line about test questions; None if dev chose something, has no scores, or is another data set's.

    Deviation: D-117.
    """
    if kind(one.record) != "question" or split(one) != "test" or chosen_on_dev(data, one):
        return None
    if one.dataset in ANSWERS and ANSWERS[one.dataset].dev_of:
        return None
    if one.folder is None:
        return _committed(one, "per_question_dev") if "per_question_dev" in one.record else None
    if "scores_dev.parquet" not in one.record.get("tables_sha256", {}):
        return None
    return rankings.of(rundir.read_table(one.folder, "scores_dev.parquet")).per_question.set_index("question_id")


def pooled(data: dict, one) -> pd.DataFrame | None:
    """The values of the questions of dev and test together, of measures that both have; None where `dev_questions` gives None."""
    dev = dev_questions(data, one)
    return None if dev is None else pd.concat({"dev": dev, "test": per_question(one)}, join="inner")
