"""From the rows of a paper's YAML to jobs: the notebook runs that a budget needs, and what their settings say of them."""

import hashlib
import itertools
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from asutil.data.long_questions import KINDS
from asutil.io import rundir

from . import runs
from .papers import NOTEBOOKS, ROBERTA, SPLITS, all_of, datasets, one_of, read, stages
from .papers import seeds as seeds_of

# settings that a comparison does not ask for
FREE = ("seed", "workers", "micro_tokens", "precision", "gradient_checkpointing", "validation_examples", "runs_dir")
TRANSFER = "transfer"  # where the record of a run stands that a later stage starts from


@dataclass(frozen=True)
class Job:
    """One notebook run of a row: its parameters, the folder that it makes, and the folders that must be there before."""

    paper: str
    row: str
    budget: str
    dataset: str
    seed: int
    notebook: str
    parameters: dict
    folder: Path
    needs: tuple[Path, ...] = ()
    search: str = ""  # the search that it is a try of

    @property
    def command(self) -> str:
        """`papermill notebooks/finetune.ipynb -p dataset wikiqa ...`"""
        return command(self)


# ------------------------------------------------------------------ what a budget runs


def stage_parameters(
    data: dict, row: str, stage: dict, budget: str, dataset: str, seed: int, model=None, first=None, **tried
) -> dict:
    """The parameters that one stage of a row gives to its notebook.

    Args:
        dataset: of the budget; a column that is one side of a data set stands for it.
        model: the run that the stage starts from; None for the budget's backbone.
        first: the run whose best candidates are re-ranked.
        tried: settings of a search, for a run that ranks.
    """
    entry, dataset = data["budgets"][budget], SPLITS.get(dataset, (dataset,))[0]
    chosen = {key: value.get(dataset) if isinstance(value, dict) else value for key, value in stage.items()}
    given = {
        "budget": budget,
        **{key: value for key, value in chosen.items() if value is not None and key not in ("notebook", "first")},
    }
    if stage["notebook"] == "rerank":
        return {"budget": budget, "first_run": first, "joint_run": model, "seed": seed} | given
    if stage["notebook"] == "task_difficulty":
        return {"corpus": entry["corpus"], **({"models": model} if model else {}), **given, "seed": 0}
    given.setdefault("model", entry["backbones"][data["rows"][row].get("backbone", ROBERTA)])
    if model:
        given["model"] = model
    if stage["notebook"] == "pretrain":
        return {**given, "corpus": entry["corpus"], "seed": 0}
    return {"budget": budget, "model": given["model"], "dataset": dataset, "seed": seed, **tried} | given


def jobs(paper: str, budget: str, rows=None, seeds=None, folder_for=None, folder=None, more=None) -> list[Job]:
    """The notebook runs that make a paper's rows at one budget, each once, every run after those that it needs.

    Only the last run of a row is made with every seed, and the one that it re-ranks with; those before are made once, with seed 0.
    An untrained encoder is run once, with the budget's first seed, whichever are asked for. Where the budget searches settings, the tries
    come first; the seeds follow once all tries have a record, with the settings that do best on dev.

    Args:
        rows: some of the budget's rows; all by default. seeds: the same for seeds.
        folder_for: (notebook, parameters) -> the run's folder; `runs.folder_for` by default.
        more: parameters for every notebook that has them, beside those of the rows, as `{"precision": "bf16"}`.
    Raises: ValueError for a budget or row that the paper does not have, with the nearest name.
    Example:
        >>> stub = lambda notebook, given: Path(f"runs/{notebook}-{given['seed']}")
        >>> plan = jobs("sentence_objectives", "small", ["roberta_psd"], [0, 1], folder_for=stub)
        >>> [(job.notebook, job.seed, str(job.parameters["model"])) for job in plan][1:]
        [('finetune', 0, 'runs/pretrain-0'), ('finetune', 1, 'runs/pretrain-0')]
        >>> plan[0].command
        'papermill notebooks/pretrain.ipynb -p budget small -p objective psd -p model ... -p corpus local/wikipedia_large -p seed 0'
    """
    made = {}
    for job in _every(paper, budget, rows, seeds, folder_for or _planned, folder, more):
        known = made.get(job.folder)
        if (
            known is None or known.search or known.dataset == TRANSFER
        ):  # a try, or where another row starts, may be a row's own run as well
            made[job.folder] = job
    return list(made.values())


def searches(paper: str, budget: str, folder=None, more=None) -> dict[str, list[Job]]:
    """The tries of a budget by the name of their search, `<paper>-<budget>-<row>-<data set>`; empty where it searches nothing."""
    found, data = {}, read(paper, folder)
    one_of(budget, data.get("budgets", {}), paper, "budget")
    if not any(place.get("search", {}).get("datasets") for place in (data["budgets"][budget], *data["rows"].values())):
        return found  # without planning a single run
    for job in _every(paper, budget, None, None, _planned, folder, more):
        if job.search:
            found.setdefault(job.search, []).append(job)
    return found


def after(tries: list[Job]) -> list[Job]:
    """The runs that follow a search, one a seed but for that of the tries, which are runs of the best settings already."""
    first = tries[0]
    wanted = seeds_of(read(first.paper), first.row, first.budget)
    return [
        replace(first, seed=s, search="", parameters={**first.parameters, "seed": s}) for s in wanted if s != first.seed
    ]


def _every(paper, budget, rows, seeds, folder_for, folder, more):
    """The jobs of a budget, also those that several rows share."""
    data = read(paper, folder)
    one_of(budget, data.get("budgets", {}), paper, "budget")
    entry, tested = data["budgets"][budget], {name for table in data["tables"].values() for name in table["datasets"]}
    all_of(rows or (), entry["rows"], f"{paper}, {budget}", "row")
    all_of(
        seeds or (),
        {seed for row in entry["rows"] for seed in seeds_of(data, row, budget)},
        f"{paper}, {budget}",
        "seed",
    )
    all_of(more or (), {name for notebook in NOTEBOOKS for name in runs.parameters(notebook)}, "more", "parameter")

    def job(row, stage, dataset, seed, needs, scored=None, search="", start=False, **tried) -> Job:
        parameters = stage_parameters(data, row, stage, budget, dataset, seed, *map(_named, needs), **tried)
        parameters |= {
            name: value for name, value in (more or {}).items() if name in runs.parameters(stage["notebook"])
        }
        where = folder_for(stage["notebook"], parameters)
        scored = TRANSFER if start else NOTEBOOKS[stage["notebook"]] or scored or dataset
        return Job(paper, row, budget, scored, parameters["seed"], stage["notebook"], parameters, where, needs, search)

    def of_row(row, dataset):
        *before, last = stages(data, row, budget)
        rerank = last if last["notebook"] == "rerank" else None
        if rerank:
            *before, last = before
        needs, best, ranks, first = (), {}, NOTEBOOKS[last["notebook"]] is None, {}
        if ranks and dataset in tested and dataset not in data["rows"][row]["published"]:
            return  # the paper has a dash there
        if rerank:
            yield from (made := list(of_row(rerank["first"], dataset)))
            first = {one.seed: one.folder for one in made if one.dataset == dataset and not one.search}
        measured = any(stage["notebook"] == "task_difficulty" for stage in before)
        for stage in before:
            yield (
                one := job(row, stage, dataset, 0, needs, TRANSFER, start=measured and stage["notebook"] == "pretrain")
            )
            if stage["notebook"] != "task_difficulty":  # nothing starts from what it measures
                needs = (one.folder,)
        search = entry.get("search", {}) | data["rows"][row].get("search", {})
        if ranks and dataset in search.get("datasets", ()):
            name = f"{paper}-{budget}-{row}-{dataset}"
            every = [job(row, last, dataset, 0, needs, search=name, **tried) for tried in _grid(search, name, dataset)]
            tries = list(
                {one.folder: one for one in every}.values()
            )  # a row may give some of the searched settings itself
            if len(tries) > 1:
                yield from tries
                best = _best(tries, search)
        for seed in () if best is None else seeds_of(data, row, budget, seeds):
            yield (one := job(row, last, dataset, seed, needs, TRANSFER if rerank else None, **best))
            if seed in first:
                yield job(row, rerank, dataset, seed, (one.folder, first[seed]))

    for row in rows or entry["rows"]:
        for dataset in datasets(data, row, budget):
            yield from of_row(row, dataset)


def _grid(search: dict, name: str, dataset: str) -> list[dict]:
    """The combinations of the searched settings: every one, or as many as the search's `limit`, picked by a hash with its name.

    {each: values} is one of the values for each question type of the data set, joined by commas.
    """
    tried = {}
    for setting in _searched(search):
        values = search[setting]
        if isinstance(values, dict):
            values = [
                ",".join(map(str, some)) for some in itertools.product(values["each"], repeat=len(KINDS[dataset]))
            ]
        tried[setting] = values
    grid = [dict(zip(tried, values)) for values in itertools.product(*tried.values())]
    if len(grid) <= search.get("limit", len(grid)):
        return grid
    hashed = [hashlib.blake2b(f"{name} {json.dumps(one)}".encode(), digest_size=8).digest() for one in grid]
    picked = sorted(range(len(grid)), key=hashed.__getitem__)[: search["limit"]]
    return [grid[place] for place in sorted(picked)]


def _searched(search: dict) -> list[str]:
    """The settings that a search tries."""
    return [name for name in search if name not in ("datasets", "limit")]


def _best(tries: list[Job], search: dict) -> dict | None:
    """The settings that do best on dev, the first of equals; None while a try has no record."""
    if not all((rundir.root() / job.folder / "record.json").is_file() for job in tries):
        return None
    best = max(tries, key=dev_figure)
    return {name: best.parameters[name] for name in _searched(search)}


def dev_figure(job: Job) -> float:
    """What a search goes by: MAP on dev of a finished run, of evidence in a long context its F1."""
    return rundir.read_record(rundir.root() / job.folder)["metrics"]["dev"][
        "evidence_f1" if job.notebook == "find_evidence" else "map"
    ]


def gpu_hours(job: Job) -> int:
    """Expected hours of one GPU, as the paper's file says; 0 for a budget that is made for CPUs."""
    return read(job.paper)["budgets"][job.budget].get("gpu_hours", {}).get(job.notebook, 0)


def _planned(notebook: str, parameters: dict) -> Path:
    return runs.folder_for(notebook, parameters, must_exist=False)


def _named(folder: Path) -> str:
    """How a command names a run: from the project's folder where it lies in it."""
    root = rundir.root()
    return (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()


def command(job: Job) -> str:
    """The papermill command line of a job."""
    given = (f"-p {name} {shlex.quote(str(value))}" for name, value in job.parameters.items())
    return " ".join([f"papermill notebooks/{job.notebook}.ipynb", *given])


def at_paper_settings(data: dict, row: str, dataset: str, records: list[dict]) -> bool:
    """Whether the runs of a row's chain, first to last, were made with the paper's own settings and data.

    Every setting must be what the row gives to its notebook at budget `paper`, or one that a rule of `settings:` allows (the paper
    prints a grid, not the choice); only what cannot change a result by design is free.
    """
    if not data.get("settings") or "paper" not in data.get("budgets", {}):
        return False
    chain, model, first = (
        [stage for stage in stages(data, row, "paper") if _leads_to(dataset, stage["notebook"])],
        None,
        None,
    )
    if chain and "first" in chain[-1]:  # before the last of its own runs stand those of the row that ranked first
        own = len(chain) - 1
        others, records = records[own:-1], [*records[:own], *records[own:][-1:]]
        if not at_paper_settings(data, chain[-1]["first"], dataset, others):
            return False
        first = others[-1]["name"]
    if not chain or len(chain) != len(records):
        return False
    searched = {
        name: of for name, of in data["rows"][row].get("search", {}).items() if name not in ("datasets", "limit")
    }
    for stage, record in zip(chain, records):
        wanted = runs.settings(
            stage["notebook"], stage_parameters(data, row, stage, "paper", dataset, record["seed"], model, first)
        )
        allowed = (
            {name: [value] for name, value in wanted.items()}
            | _allowed(data["settings"], stage["notebook"], wanted)
            | searched
        )
        found = completed(record["notebook"], record["settings"])
        if record["notebook"] != stage["notebook"] or any(
            not _among(found.get(n), of, dataset) for n, of in allowed.items() if n not in FREE
        ):
            return False
        model = record["name"]
    return True


def _leads_to(dataset: str, notebook: str) -> bool:
    """Whether a stage of a row is one of those that make its figures on a data set, or on its own task."""
    return NOTEBOOKS[notebook] is not None if dataset == NOTEBOOKS["pretrain"] else notebook != "task_difficulty"


def _among(value, allowed: list, dataset: str) -> bool:
    """Whether a setting is one of the allowed values.

    {each: values} allows one of them for each question type, joined by commas; {at_most: number} any number up to it.
    """
    for one in allowed:
        if isinstance(one, dict) and "each" in one:
            parts = [float(part) for part in str(value).split(",")]
            return len(parts) == len(KINDS[dataset]) and set(parts) <= set(one["each"])
        if isinstance(one, dict) and type(value) in (int, float) and value <= one["at_most"]:
            return True
    return value in allowed


def _allowed(rules: list[dict], notebook: str, wanted: dict) -> dict[str, list]:
    """What the paper prints for a run: the last rule that speaks of it wins."""
    found = {}
    for rule in rules:
        if rule["notebook"] == notebook and all(
            wanted.get(key) in values for key, values in rule.get("when", {}).items()
        ):
            found |= {key: values if isinstance(values, list) else [values] for key, values in rule["are"].items()}
    return found


def completed(notebook: str, settings: dict) -> dict:
    """The settings of a record with what a parameter that came later would have been."""
    names = runs.parameters(notebook)
    try:
        return runs.settings(notebook, {name: value for name, value in settings.items() if name in names}) | settings
    except ValueError:  # a value that the notebook does not allow any more
        return settings


def settings_key(notebook: str, settings: dict) -> str:
    """The effective settings as a record shows them, without those that cannot change a result."""
    kept = {
        name: value
        for name, value in runs.shown(settings).items()
        if name not in ("workers", "micro_tokens", "precision")
    }
    return json.dumps([notebook, kept], sort_keys=True, default=str)
