"""What the papers' rows cost: runs, steps, tokens and GPU-hours of the plans in `experiments/`, and what committed runs took.

Tokens are an upper bound, as in the papers' own counts: every example has its greatest length, and every epoch is done.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd

from asutil.io.disk import read_json

from .. import papers, parameters, plan, records, rundir
from ..hours import work


def planned(paper: str, budget: str = "paper") -> list:
    """Every run of a paper's budget: the tries of its searches and the seeds after them. Needs no data or model."""
    jobs, searches = plan.jobs_and_searches(paper, budget, folder_for=planned_folder)
    return jobs + [job for tries in searches.values() for job in plan.after(tries)]


def planned_folder(notebook: str, parameters: dict) -> Path:
    """A folder name for a run that will not be run; unlike a run's own, it needs no fingerprint of any file."""
    digest = hashlib.sha256(json.dumps([notebook, parameters], sort_keys=True, default=str).encode()).hexdigest()
    return Path("runs") / f"{notebook}-{digest[:12]}"


def table(paper: str, budget: str = "paper") -> pd.DataFrame:
    """One line a run: notebook, row, dataset, seed, steps, tokens, and gpu_hours as the paper's file expects them.

    Raises: ValueError for a data set whose size is not known.
    """
    hours = papers.read(paper)["budgets"][budget].get("gpu_hours", {})
    lines = []
    for job in planned(paper, budget):
        steps, tokens, _ = work(job.notebook, parameters.settings(job.notebook, job.parameters))
        line = {"notebook": job.notebook, "row": job.row, "dataset": job.dataset, "seed": job.seed}
        lines.append(line | {"steps": steps, "tokens": tokens, "gpu_hours": hours.get(job.notebook, 0)})
    return pd.DataFrame(lines)


def by_notebook(paper: str) -> pd.DataFrame:
    """`table` of budget paper, summed by notebook: runs, steps, tokens, gpu_hours."""
    by = table(paper).groupby("notebook", sort=False)
    summed = by[["steps", "tokens", "gpu_hours"]].sum()
    summed.insert(0, "runs", by.size())
    return summed


def budgets() -> pd.DataFrame:
    """One line a paper and budget: the number of runs and the GPU-hours that the paper's file expects of them."""
    lines = []
    for paper in papers.PAPERS:
        for budget in papers.read(paper).get("budgets", {}):
            jobs = planned(paper, budget)
            hours = sum(map(plan.gpu_hours, jobs))
            lines.append({"paper": paper, "budget": budget, "runs": len(jobs), "gpu_hours": hours})
    return pd.DataFrame(lines)


def trained(folder: str | Path = "results") -> pd.DataFrame:
    """Committed runs that trained on CPUs, one line a kind and budget, with the median of their figures.

    A number of training questions is a kind of its own.

    Columns: notebook, kind, dataset, budget, longest (input, in tokens), tokens (an example), speed (tokens a
    second), hours (of a whole run), runs (how many).
    """
    measured = {}
    for path in sorted((rundir.root() / folder).glob("*/*/*.json")):
        record = read_json(path)
        if record.get("figures", {}).get("examples") and not record.get("hardware", {}).get("gpu"):
            try:
                settings, figures = record["settings"], record["figures"]
                names = [settings[name] for name in ("objective", "architecture", "head") if settings.get(name)]
                kind = (names or ["pair"])[0] + (f", pairs of {settings['data']}" if settings.get("data") else "")
                kind += f", {settings['loss']}" if settings.get("loss") else ""
                kind += f", {settings['train_limit']:,} questions" if settings.get("train_limit") else ""
                dataset = settings.get("dataset") or settings.get("corpus")
                group = (record["notebook"], kind, dataset, record["budget"], settings["max_tokens"])
                tokens, speed = (figures["tokens"] / figures[by] for by in ("examples", "training_seconds"))
                measured[record["name"]] = (*group, tokens, speed, records.seconds(record) / 3600)
            except (KeyError, TypeError, ArithmeticError) as error:
                name = f"{path.parent.name}/{path.name}"
                raise ValueError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    kinds, figures = ["notebook", "kind", "dataset", "budget", "longest"], ["tokens", "speed", "hours"]
    by = pd.DataFrame(list(measured.values()), columns=[*kinds, *figures]).groupby(kinds)
    return by[figures].median().assign(runs=by.size()).reset_index()
