"""The notebook runs that a paper's rows need at a budget, and whether finished runs have the paper's settings."""

import itertools
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from asutil.data.long_questions import KINDS
from asutil.draws import text_hash

from . import identity, parameters, rules, rundir
from .papers import NOTEBOOKS, OWN_TASK, ROBERTA, SPLITS, all_of, datasets, one_of, read, stages
from .papers import seeds as seeds_of

# Settings that may differ from the paper's: they change no result by design.
FREE = "seed workers micro_tokens precision gradient_checkpointing validation_examples also_rank runs_dir".split()
# Parameters that a row decides, so that no value serves all.
PLANNED = "budget model corpus dataset objective teacher seed models first_run joint_run runs_dir".split()
TRANSFER = "transfer"  # instead of a data set, for a run that a later stage starts from


@dataclass(frozen=True)
class Job:
    """One notebook run of a row: its parameters, its folder, and the folders of the runs that it needs."""

    paper: str
    row: str
    budget: str
    dataset: str
    seed: int
    notebook: str
    parameters: dict
    folder: Path
    needs: tuple[Path, ...] = ()
    search: str = ""  # the name of the search that the run is one try of

    @property
    def command(self) -> str:
        """`papermill notebooks/finetune.ipynb -p dataset wikiqa ...`"""
        given = [f"-p {name} {shlex.quote(str(value))}" for name, value in self.parameters.items()]
        return " ".join([f"papermill notebooks/{self.notebook}.ipynb", *given])


# ------------------------------------------------------------------ what a budget runs


def stage_parameters(
    data: dict, row: str, stage: dict, budget: str, dataset: str, seed: int, model=None, first=None, **tried
) -> dict:
    """The parameters that one stage of a row gives to its notebook.

    Args:
        dataset: one of the budget's; for a column that is a split of a data set, the data set is used.
        model: the run that the stage starts from, or learns from with `teacher: previous`; None for the budget's backbone.
        first: the run whose best candidates are re-ranked.
        tried: settings of a search, for a run that ranks.
    """
    entry = data["budgets"][budget]
    dataset = SPLITS.get(dataset, (dataset,))[0]
    chosen = {key: value.get(dataset) if isinstance(value, dict) else value for key, value in stage.items()}
    own = {key: value for key, value in chosen.items() if value is not None and key not in ("notebook", "first")}
    given = {"budget": budget, **own}
    if stage["notebook"] == "rerank":
        return {"budget": budget, "first_run": first, "joint_run": model, "seed": seed} | given
    if stage["notebook"] == "task_difficulty":
        return {"corpus": entry["corpus"], **({"models": model} if model else {}), **given, "seed": 0}
    given.setdefault("model", entry["backbones"][data["rows"][row].get("backbone", ROBERTA)])
    if model:
        given["teacher" if given.get("teacher") == "previous" else "model"] = model
    if stage["notebook"] == "pretrain":
        return {**given, "corpus": entry["corpus"], "seed": seed}
    chosen = {"budget": budget, "model": given["model"], "dataset": dataset, "seed": seed, **tried} | given
    others = entry.get("also_rank", {}).get(chosen["dataset"])
    return chosen | ({"also_rank": ",".join(others)} if others else {})


def jobs(paper: str, budget: str, rows=None, seeds=None, folder_for=None, more=None, data_sets=None) -> list[Job]:
    """The notebook runs that make a paper's rows at one budget, each once, after the runs that it needs.

    The last run of a row is made with every seed, and so is the one before a re-ranking. Earlier runs are made once, with seed 0, or
    on data sets under `pretrain_each` with every seed, too. An untrained encoder is run once, with the budget's first seed. Where the
    budget searches settings, the tries come first; the seeds follow when all have a record, with the settings that are best on dev.

    Args:
        rows, seeds, data_sets: some of the budget's; all by default.
        folder_for: (notebook, parameters) -> the run's folder; `identity.folder_for` by default.
        more: parameters for every notebook that has them, in addition to those of the rows, as `{"precision": "bf16"}`.
    Raises: ValueError for a budget, row, seed, data set or parameter that does not exist, with the nearest name.
    Example:
        >>> stub = lambda notebook, given: Path(f"runs/{notebook}-{given['seed']}")
        >>> plan = jobs("sentence_objectives", "small", ["roberta_psd"], [0, 1], folder_for=stub)
        >>> [(job.notebook, job.seed, str(job.parameters["model"])) for job in plan if job.dataset == "wikiqa"]
        [('finetune', 0, 'runs/pretrain-0'), ('finetune', 1, 'runs/pretrain-0')]
        >>> plan[0].command
        'papermill notebooks/pretrain.ipynb -p budget small -p objective psd -p model ... -p corpus ... -p seed 0'
    """
    return jobs_and_searches(paper, budget, rows, seeds, folder_for, more, data_sets)[0]


def jobs_and_searches(
    paper: str, budget: str, rows=None, seeds=None, folder_for=None, more=None, data_sets=None
) -> tuple[list[Job], dict[str, list[Job]]]:
    """The `jobs` of a budget, and its tries by the name of their search, `<paper>-<budget>-<row>-<data set>`."""
    unique, tries = {}, {}
    folder_for = folder_for or partial(identity.folder_for, must_exist=False)
    for job in _every(paper, budget, rows, seeds, folder_for, more, data_sets):
        if job.search:
            tries.setdefault(job.search, []).append(job)
        known = unique.get(job.folder)
        # A try, or the start of another row, may be a row's own run as well.
        if known is None or known.search or (known.dataset == TRANSFER and job.dataset != TRANSFER):
            unique[job.folder] = job
    return list(unique.values()), tries


def after(tries: list[Job]) -> list[Job]:
    """The runs that follow a search: one for each seed except that of the tries, which has its best run already."""
    first = tries[0]
    seeds = seeds_of(read(first.paper), first.row, first.budget)
    of_seed = lambda seed: replace(first, seed=seed, search="", parameters={**first.parameters, "seed": seed})
    return [of_seed(seed) for seed in seeds if seed != first.seed]


def _every(paper, budget, rows, seeds, folder_for, more, data_sets):
    """The jobs of a budget; those that several rows share come several times."""
    data, more = read(paper), more or {}
    one_of(budget, data.get("budgets", {}), paper, "budget")
    own = data["budgets"][budget]["rows"]
    all_of(rows or (), own, f"{paper}, {budget}", "row")
    all_of(seeds or (), {seed for row in own for seed in seeds_of(data, row, budget)}, f"{paper}, {budget}", "seed")
    datasets_of = {row: datasets(data, row, budget) for row in rows or own}
    all_of(
        data_sets or (), {name for names in datasets_of.values() for name in names}, f"{paper}, {budget}", "data set"
    )
    known = {name for notebook in NOTEBOOKS for name in parameters.parameters(notebook)}
    all_of(more, known - set(PLANNED), "more", "parameter")
    planner = _Planner(paper, data, budget, seeds, folder_for, more)
    for row, names in datasets_of.items():
        for dataset in names:
            if not data_sets or dataset in data_sets:
                yield from planner.of_row(row, dataset)


class Start(NamedTuple):
    """The jobs of a row before its last, and the folder of the model that they end in, if there is one."""

    jobs: list[Job]
    model: tuple[Path, ...]


@dataclass(frozen=True)
class _Planner:
    """Plans the rows of one paper at one budget."""

    paper: str
    data: dict
    budget: str
    seeds: list[int] | None
    folder_for: Callable[[str, dict], Path]
    more: dict

    def of_row(self, row: str, dataset: str):
        """The jobs of a row on one data set, each after those that it needs."""
        *before, last = stages(self.data, row, self.budget)
        rerank = None
        if last["notebook"] == "rerank":
            rerank = last
            *before, last = before
        scored = NOTEBOOKS[last["notebook"]] is None  # on questions or claims; its own task is measured once
        printed = {name for table in self.data["tables"].values() for name in table["datasets"]}
        if scored and dataset in printed and dataset not in self.data["rows"][row]["published"]:
            return  # the row has a dash in a table of the paper
        first = list(self.of_row(rerank["first"], dataset)) if rerank else []
        yield from first
        ranked_first = {job.seed: job.folder for job in first if job.dataset == dataset and not job.search}
        seeds = seeds_of(self.data, row, self.budget, self.seeds)
        entry = self.data["budgets"][self.budget]
        if each := dataset in entry.get("pretrain_each", ()):
            seeds = [seed for seed in seeds if seed in entry["seeds"]]  # `more_seeds` share one pre-training
        if each and not seeds:
            return  # the row has none of the chosen seeds
        starts = {seed: self._start(row, before, dataset, seed) for seed in (seeds if each else [0])}
        for start in starts.values():
            yield from start.jobs
        first_start = next(iter(starts.values()))
        search = self.data["budgets"][self.budget].get("search", {}) | self.data["rows"][row].get("search", {})
        tries = self._tries(row, last, dataset, first_start.model, search)
        yield from tries
        if not all((rundir.root() / job.folder / "record.json").is_file() for job in tries):
            return  # the seeds follow when all tries have a record
        chosen = max(tries, key=dev_figure).parameters if tries else {}  # the first of equals
        best = {name: chosen[name] for name in _searched(search) if tries}
        for seed in seeds if scored else [0]:
            start = starts[seed] if each else first_start
            job = self._job(row, last, dataset, seed, start.model, TRANSFER if rerank else None, **best)
            yield job
            if seed in ranked_first:
                yield self._job(row, rerank, dataset, seed, (job.folder, ranked_first[seed]))

    def _start(self, row: str, before: list[dict], dataset: str, seed: int) -> Start:
        """The jobs of a row before its last, with one seed."""
        start = Start([], ())
        is_measured = any(stage["notebook"] == "task_difficulty" for stage in before)
        for stage in before:
            leads_on = NOTEBOOKS[stage["notebook"]] is None or (is_measured and stage["notebook"] == "pretrain")
            job = self._job(row, stage, dataset, seed, start.model, TRANSFER if leads_on else None)
            measures = stage["notebook"] == "task_difficulty"  # no run starts from one that measures
            start = Start([*start.jobs, job], start.model if measures else (job.folder,))
        return start

    def _tries(self, row, stage, dataset, needs, search) -> list[Job]:
        """One job for each combination of the searched settings; none where there is nothing to choose."""
        if NOTEBOOKS[stage["notebook"]] is not None or dataset not in search.get("datasets", ()):
            return []
        name = f"{self.paper}-{self.budget}-{row}-{dataset}"
        made = (self._job(row, stage, dataset, 0, needs, search=name, **own) for own in _grid(search, name, dataset))
        different = {job.folder: job for job in made}  # the row itself may set some of the searched settings
        return list(different.values()) if len(different) > 1 else []

    def _job(self, row, stage, dataset, seed, needs, column=None, search="", **tried) -> Job:
        notebook = stage["notebook"]
        root = rundir.root()
        # As a command gives them: relative to the project's folder where they are inside.
        inside = (folder.relative_to(root) if folder.is_relative_to(root) else folder for folder in needs)
        starts = (folder.as_posix() for folder in inside)
        given = stage_parameters(self.data, row, stage, self.budget, dataset, seed, *starts, **tried)
        given |= {name: value for name, value in self.more.items() if name in parameters.parameters(notebook)}
        folder = self.folder_for(notebook, given)
        column = column or NOTEBOOKS[notebook] or dataset
        made = (given["seed"], notebook, given, folder, needs, search)
        return Job(self.paper, row, self.budget, column, *made)


def _grid(search: dict, name: str, dataset: str) -> list[dict]:
    """The combinations of the searched settings: all, or as many as the search's `limit`, chosen by a hash.

    {each: values} tries every combination of one value for each question type of the data set, joined by commas.
    """
    choices = {}
    for setting, values in _searched(search).items():
        if isinstance(values, dict):
            combinations = itertools.product(values["each"], repeat=len(KINDS[dataset]))
            values = [",".join(map(str, combination)) for combination in combinations]
        choices[setting] = values
    grid = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    if len(grid) <= search.get("limit", len(grid)):
        return grid
    hashes = [text_hash(f"{name} {json.dumps(tried)}", size=8) for tried in grid]
    lowest = sorted(range(len(grid)), key=hashes.__getitem__)[: search["limit"]]
    return [grid[number] for number in sorted(lowest)]


def _searched(search: dict) -> dict:
    """The settings that a search tries, and the values of each."""
    return {name: values for name, values in search.items() if name not in ("datasets", "limit")}


def dev_figure(job: Job) -> float:
    """The figure on dev that a search maximises: MAP of a ranking, F1 of evidence in a long context."""
    record = rundir.read_record(rundir.root() / job.folder)
    return record["metrics"]["dev"]["evidence_f1" if job.notebook == "find_evidence" else "map"]


def gpu_hours(job: Job) -> int:
    """Expected hours of one GPU by the paper's file; 0 for a budget that is made for CPUs."""
    return read(job.paper)["budgets"][job.budget].get("gpu_hours", {}).get(job.notebook, 0)


# ------------------------------------------------------------------ whether a run has the paper's settings


def at_paper_settings(data: dict, row: str, dataset: str, records: list[dict]) -> bool:
    """Whether the runs of a row's chain, first to last, were made with the paper's own settings and data.

    Every setting must be the one that the row gives at budget `paper`, or one that a rule of `settings:` allows,
    because the paper prints a grid and not the choice, or leaves the setting open. Settings that change no result by
    design (`FREE`) may differ.
    """
    if not data.get("settings") or "paper" not in data.get("budgets", {}):
        return False
    # The chain of a row's figures on a data set, or on its own pre-training task.
    leads = lambda name: NOTEBOOKS[name] is not None if dataset == OWN_TASK else name != "task_difficulty"
    chain = [stage for stage in stages(data, row, "paper") if leads(stage["notebook"])]
    model = first = None
    if chain and "first" in chain[-1]:  # before its last record come those of the row that ranked first
        own = len(chain) - 1
        others, records = records[own:-1], [*records[:own], *records[own:][-1:]]
        if not at_paper_settings(data, chain[-1]["first"], dataset, others):
            return False
        first = others[-1]["name"]
    if not chain or len(chain) != len(records):
        return False
    searched = _searched(data["rows"][row].get("search", {}))
    for stage, record in zip(chain, records):
        notebook = stage["notebook"]
        if record["notebook"] != notebook:
            return False
        given = stage_parameters(data, row, stage, "paper", dataset, record["seed"], model, first)
        wanted, settings = parameters.settings(notebook, given), completed(notebook, record["settings"])
        if not follows_rules(data, row, dataset, notebook, wanted, settings, searched):
            return False
        model = record["name"]
    return True


def follows_rules(
    data: dict, row: str, dataset: str, notebook: str, wanted: dict, settings: dict, searched: dict | None = None
) -> bool:
    """Whether a run's settings are those that its row gives at budget `paper`, or others that the paper's rules allow.

    Args:
        wanted: the settings that the row gives. searched: of some settings, the values that a search tries.
    """
    allowed = {name: [value] for name, value in wanted.items()}
    allowed |= rules.allowed(data["settings"], notebook, row, wanted) | (searched or {})
    compared = [name for name in allowed if name not in FREE]
    return all(rules.accepts(allowed[name], name, settings, dataset) for name in compared)


def completed(notebook: str, settings: dict) -> dict:
    """The settings of a record, with the defaults of parameters that were added to the notebook later."""
    names = parameters.parameters(notebook)
    known = {name: value for name, value in settings.items() if name in names}
    try:
        return parameters.settings(notebook, known) | settings
    except ValueError:  # a value that the notebook does not allow any more
        return settings


def settings_key(notebook: str, settings: dict) -> str:
    """The effective settings as a record shows them, without those that cannot change a result."""
    free = ("workers", "micro_tokens", "precision")
    compared = {name: value for name, value in identity.shown(settings).items() if name not in free}
    return json.dumps([notebook, compared], sort_keys=True, default=str)
