"""The rows of the papers' tables: what was printed, what makes it again, and the runs that a rung of budget needs.

`experiments/<paper>.yml` is read strictly: an unknown key, row, data set or metric is refused with the file and the place.
"""

import json
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from . import runs

PAPERS = ("sentence_objectives", "contextual_as2", "asbert", "joint_inference", "evidence_contrast")
RUNGS = ("laptop", "small", "gpu", "paper")
METRICS = ("p@1", "map", "mrr", "accuracy", "f1", "label_accuracy", "answer_f1", "evidence_f1")
COMMITTED, HERE = "committed", "this machine"
FREE = ("seed", "workers", "micro_tokens", "precision", "validation_examples", "runs_dir")  # settings that a comparison does not ask for
NOTEBOOKS = {"pretrain": "pretraining", "finetune": None}  # the data set that a stage is scored on; None: the rung's

# place -> (keys it must have, keys it may have)
KEYS = {
    "the file": (
        ("slug", "title", "authors", "unit", "rows", "tables"),
        ("venue", "arxiv", "runs", "private", "rungs", "demo", "settings", "claims"),
    ),
    "rungs": (("backbone", "corpus", "datasets", "seeds", "rows"), ()),
    "demo": (("rung", "rows", "seeds"), ()),
    "settings": (("notebook", "are"), ("when",)),
    "rows": (("name", "published"), ("stages",)),
    "stages": (("notebook",), ("objective",)),
    "tables": (("where", "caption", "datasets", "metrics", "rows"), ()),
    "claims": (("id", "where", "claim", "row_a", "row_b", "dataset", "metric", "sign"), ()),
}


@dataclass(frozen=True)
class Job:
    """One notebook run of a row: its parameters, the folder that it makes, and the folders that must be there before."""

    paper: str
    row: str
    rung: str
    dataset: str
    seed: int
    notebook: str
    parameters: dict
    folder: Path
    needs: tuple[Path, ...] = ()

    @property
    def command(self) -> str:
        """`papermill notebooks/finetune.ipynb -p dataset wikiqa ...`"""
        return command(self)


def papers() -> tuple[str, ...]:
    """The slugs of the five papers, in the order of the book."""
    return PAPERS


def read(paper: str, folder: str | Path | None = None) -> dict:
    """The rows, tables, rungs and claims of one paper, checked.

    Args:
        folder: where the YAML files are; the project's experiments/ by default.
    Raises: FileNotFoundError for a paper without a file; ValueError naming file and place for anything that is not as it should be.
    """
    path = _folder(folder) / f"{paper}.yml"
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not in {path.parent.name}/ (papers: {', '.join(PAPERS)})")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> dict:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Strict)
        _check(data, path.stem)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    return data


def _folder(folder) -> Path:
    if folder is not None:
        return Path(folder)
    return runs.root() / "experiments"


class _Strict(yaml.SafeLoader):
    """A key that stands twice is an error: YAML would silently drop the first, a published number among them."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _check(data, paper: str) -> None:
    _keys(data, "the file", "the file")
    for key in ("rows", "tables", "rungs"):
        if not isinstance(data.get(key, {}), dict):
            raise ValueError(f"{key}: a mapping is expected, got {data[key]!r}")
    _one_of(data["slug"], [paper], "slug")
    _one_of(data["unit"], ["percent", "fraction"], "unit")
    rows, datasets = data["rows"], {d for table in data["tables"].values() for d in table.get("datasets", ())}
    for name, row in rows.items():
        _keys(row, "rows", f"row {name}")
        for stage in row.get("stages") or ():
            _keys(stage, "stages", f"a stage of row {name}")
            _one_of(stage["notebook"], NOTEBOOKS, f"a stage of row {name}")
        for dataset, cells in row["published"].items():
            _one_of(dataset, datasets, f"row {name}")
            for metric, cell in cells.items():
                _one_of(metric, METRICS, f"row {name}, {dataset}")
                _cell(cell, f"row {name}, {dataset}, {metric}")
    for name, table in data["tables"].items():
        _keys(table, "tables", name)
        _all_of(table["rows"], rows, name)
        _all_of(table["metrics"], METRICS, name)
    _all_of(data.get("private", ()), datasets, "private")
    runnable = [name for name, row in rows.items() if row.get("stages")]
    for name, rung in data.get("rungs", {}).items():
        _one_of(name, RUNGS, "rungs")
        _keys(rung, "rungs", f"rung {name}")
        _all_of(rung["rows"], runnable, f"rung {name}: rows with stages")
    if "demo" in data:
        _keys(data["demo"], "demo", "demo")
        _one_of(data["demo"]["rung"], data.get("rungs", {}), "demo")
    for rule in data.get("settings", ()):
        _keys(rule, "settings", "a rule of settings")
        _one_of(rule["notebook"], NOTEBOOKS, "a rule of settings")
    for claim in data.get("claims", ()):
        _keys(claim, "claims", f"claim {claim.get('id')}")
        place = f"claim {claim['id']}"
        _all_of([claim["row_a"], claim["row_b"]], rows, place)
        _one_of(claim["dataset"], datasets, place)
        _one_of(claim["metric"], METRICS[:3], place)  # those that have one value a question
        _one_of(claim["sign"], ["+", "-"], place)


def _keys(mapping, kind: str, place: str) -> None:
    if not isinstance(mapping, dict):
        raise ValueError(f"{place}: a mapping is expected, got {mapping!r}")
    must, may = KEYS[kind]
    absent = [key for key in must if key not in mapping]
    if absent:
        raise ValueError(f"{place} lacks {', '.join(absent)}")
    _all_of(mapping, must + may, place, "key")


def _one_of(value, known, place: str, what: str = "value") -> None:
    if value not in known:
        raise ValueError(f"{place}: unknown {what} {value!r}{runs.nearest(value, known)} (expected: {', '.join(map(str, known))})")


def _all_of(values, known, place: str, what: str = "value") -> None:
    for value in values:
        _one_of(value, known, place, what)


def _cell(cell, place: str) -> None:
    numbers = cell if isinstance(cell, list) else list(cell.values()) if isinstance(cell, dict) else [cell]
    shaped = (isinstance(cell, list) and len(cell) == 2) or (isinstance(cell, dict) and list(cell) == ["relative"])
    if cell in (None, "baseline"):
        return
    if not (shaped or not isinstance(cell, list | dict)) or not all(type(n) in (int, float) for n in numbers):
        raise ValueError(f"{place}: expected [mean, std], a number, {{relative: x}}, baseline or null; got {cell!r}")


# ------------------------------------------------------------------ what a rung runs


def stage_parameters(data: dict, row: str, stage: dict, rung: str, dataset: str, seed: int, model: str | None) -> dict:
    """The parameters that one stage of a row gives to its notebook.

    Pre-training is done once, with seed 0, and fine-tuning with every seed, as in the papers.

    Args:
        model: the run that the stage starts from; None for the rung's backbone.
    """
    budget = data["rungs"][rung]
    given = {"rung": rung, **{key: value for key, value in stage.items() if key != "notebook"}}
    given["model"] = model or budget["backbone"]
    if stage["notebook"] == "pretrain":
        return {**given, "corpus": budget["corpus"], "seed": 0}
    return {**given, "dataset": dataset, "seed": seed}


def jobs(paper: str, rung: str, rows=None, seeds=None, folder_for=None, folder=None) -> list[Job]:
    """The notebook runs that make a paper's rows at one rung, each once, every run after those that it needs.

    Args:
        rows: some of the rung's rows; all by default. seeds: the same for seeds.
        folder_for: (notebook, parameters) -> the run's folder; `runs.folder_for` by default.
    Raises: ValueError for a rung or row that the paper does not have, with the nearest name.
    Example:
        >>> stub = lambda notebook, given: Path(f"runs/{notebook}-{given['seed']}")
        >>> plan = jobs("sentence_objectives", "laptop", ["roberta_psd"], folder_for=stub)
        >>> [(job.notebook, job.seed, str(job.parameters["model"])) for job in plan]
        [('pretrain', 0, 'tiny'), ('finetune', 0, 'runs/pretrain-0'), ('finetune', 1, 'runs/pretrain-0')]
        >>> plan[0].command
        'papermill notebooks/pretrain.ipynb -p rung laptop -p objective psd -p model tiny -p corpus pydocs -p seed 0'
    """
    data = read(paper, folder)
    _one_of(rung, data.get("rungs", {}), paper, "rung")
    budget = data["rungs"][rung]
    _all_of(rows or (), budget["rows"], f"{paper}, {rung}", "row")
    _all_of(seeds or (), budget["seeds"], f"{paper}, {rung}", "seed")
    made = {}
    for row in rows or budget["rows"]:
        for dataset in budget["datasets"]:
            for seed in budget["seeds"] if seeds is None else seeds:
                needs, model = (), None
                for stage in data["rows"][row]["stages"]:
                    parameters = stage_parameters(data, row, stage, rung, dataset, seed, model)
                    where = (folder_for or _planned)(stage["notebook"], parameters)
                    scored = NOTEBOOKS[stage["notebook"]] or dataset
                    made.setdefault(where, Job(paper, row, rung, scored, parameters["seed"], stage["notebook"], parameters, where, needs))
                    needs, model = (where,), _named(where)
    return list(made.values())


def _planned(notebook: str, parameters: dict) -> Path:
    return runs.folder_for(notebook, parameters, must_exist=False)


def _named(folder: Path) -> str:
    """How a command names a run: from the project's folder where it lies in it."""
    root = runs.root()
    return (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()


def command(job: Job) -> str:
    """The papermill command line of a job."""
    given = (f"-p {name} {shlex.quote(str(value))}" for name, value in job.parameters.items())
    return " ".join([f"papermill notebooks/{job.notebook}.ipynb", *given])


def at_paper_settings(data: dict, row: str, dataset: str, records: list[dict]) -> bool:
    """Whether the runs of a row's chain, first to last, were made with the paper's own settings and data.

    Every setting must be what the row gives to its notebook at rung `paper`, or one that a rule of `settings:` allows (the paper
    prints a grid, not the choice); only what cannot change a result by design is free.
    """
    stages = (data["rows"][row].get("stages") or [])[: 1 if dataset == "pretraining" else None]
    if not data.get("settings") or "paper" not in data.get("rungs", {}) or not stages or len(stages) != len(records):
        return False
    model = None
    for stage, record in zip(stages, records):
        wanted = runs.settings(stage["notebook"], stage_parameters(data, row, stage, "paper", dataset, record["seed"], model))
        allowed = {name: [value] for name, value in wanted.items()} | _allowed(data["settings"], stage["notebook"], wanted)
        found = record["settings"]
        if record["notebook"] != stage["notebook"] or any(found.get(n) not in values for n, values in allowed.items() if n not in FREE):
            return False
        model = record["name"]
    return True


def _allowed(rules: list[dict], notebook: str, wanted: dict) -> dict[str, list]:
    """What the paper prints for a run: the last rule that speaks of it wins."""
    found = {}
    for rule in rules:
        if rule["notebook"] == notebook and all(wanted.get(key) in values for key, values in rule.get("when", {}).items()):
            found |= {key: values if isinstance(values, list) else [values] for key, values in rule["are"].items()}
    return found


# ------------------------------------------------------------------ what was run


def records(paper: str, results: str | Path = "results", runs_dir: str | Path = "runs", folder: str | Path | None = None) -> pd.DataFrame:
    """Every record of a paper's rows, the committed ones and those of finished runs on this machine.

    A local run belongs to a row when its effective settings are those that the row gives to its notebook at some rung.

    Returns: one row a record: row, dataset (`pretraining` for a pre-training run), rung, seed, source ("committed" | "this machine"),
        name, folder (None for a committed one), record (the dict), earlier (records of the runs that its model came from).
    Raises: ValueError naming the file of a result that is damaged or stands in the wrong place.
    """
    data = read(paper, folder)
    found = [*_committed(data, runs.root() / results / paper), *_local(data, runs.read_all(runs_dir), folder)]
    return pd.DataFrame(found, columns=["row", "dataset", "rung", "seed", "source", "name", "folder", "record", "earlier"])


def _committed(data: dict, folder: Path):
    for path in sorted(folder.glob("*/*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            row, dataset, rung, seed = (record[key] for key in ("row", "dataset", "rung", "seed"))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder.name}/{path.parent.name}/{path.name} is damaged: {error}") from error
        place = f"{row}/{dataset}-{rung}-seed{seed}.json"
        if path != folder / place or row not in data["rows"]:
            raise ValueError(f"{folder.name}/{path.parent.name}/{path.name} holds the record of {place}, or of a row that the paper lacks")
        yield row, dataset, rung, seed, COMMITTED, record.get("name", path.stem), None, record, record.get("earlier", [])


def _local(data: dict, made: pd.DataFrame, folder):
    made = made[made["finished"].astype(bool)]
    in_time = sorted(made.itertuples(), key=lambda run: run.record.get("created", ""))  # of runs on changed data the newest counts
    known = {_key(run.notebook, run.record["settings"]): run for run in in_time}

    def find(notebook: str, parameters: dict) -> Path:
        key = _key(notebook, runs.settings(notebook, parameters))
        return known[key].folder if key in known else Path("not run") / str(abs(hash(key)))

    by_folder = {run.folder: run for run in made.itertuples()}
    for rung in (name for name in data.get("rungs", {}) if name in set(made["rung"])):
        for job in jobs(data["slug"], rung, folder_for=find, folder=folder):
            if job.folder in by_folder:
                run = by_folder[job.folder]
                earlier = [by_folder[need].record for need in job.needs]
                yield job.row, job.dataset, rung, job.seed, HERE, run.name, run.folder, run.record, earlier


def _key(notebook: str, settings: dict) -> str:
    """The effective settings as a record shows them, without those that cannot change a result."""
    kept = {name: value for name, value in runs.shown(settings).items() if name not in ("workers", "micro_tokens")}
    return json.dumps([notebook, kept], sort_keys=True, default=str)
