"""Rankers of others on the papers' questions, as `experiments/rankers.yml` lists them: their runs, their records, what is known of them."""

import hashlib
import json
import logging
from pathlib import Path

import pandas as pd
import yaml

from asutil import metrics
from asutil.io import disk

from . import chains, identity, parameters, provenance, records, rundir, runs
from .plan import Job, completed, settings_key

log = logging.getLogger(__name__)
SLUG = "rankers"
SCORES = "scores_of_rankers.parquet"  # of the test questions, in the folder of a run of `rank`


def read() -> dict:
    return yaml.safe_load((rundir.root() / "experiments" / f"{SLUG}.yml").read_text("utf-8"))


def pairs_before(name: str) -> str:
    """Whether a released model was trained on questions with answers: yes, no, likely or not known."""
    return read()["pairs_before"].get(name.rsplit("/", 1)[-1], "not known")


def jobs(budget: str, runs_dir: str | Path | None = None, more: dict | None = None) -> list[Job]:
    """One run of the notebook `rank` for each data set of a budget; none where the budget is not listed. `more`: as of `plan.jobs`."""
    made = []
    listed = read()["budgets"].get(budget, {"datasets": []})
    for dataset in listed["datasets"]:
        given = {"budget": budget, "dataset": dataset, "models": ",".join(listed["rankers"])}
        given |= {name: value for name, value in (more or {}).items() if name in parameters.parameters("rank")}
        folder = identity.folder_for("rank", given, runs_dir, must_exist=False)
        made.append(Job(SLUG, "all", budget, dataset, 0, "rank", given, folder))
    return made


def scored(run: runs.Run, splits: dict) -> tuple[dict[str, dict[str, pd.DataFrame]], dict[str, dict]]:
    """The scores of each ranker of a run of `rank`, kept beside the runs for every list that has the ranker.

    A warning names the runs among them that learnt from other data, which may have the same questions.
    Returns: ranker -> split -> scores; ranker -> its figures and whether it was trained on questions with answers.
    """
    from asutil.tasks import rankers

    scores, figures = {}, {}
    names = identity.models(run.options.models, run.options.budget, run.options.runs_dir)
    shown = [identity.ranker_shown(name) for name in names]
    # before the first of them scores for minutes
    if several := [short for short in shown if shown.count(short) > 1]:
        raise ValueError(f"models: two rankers are called {several[0]}: give their folders different names")
    for name, short in zip(names, shown):
        parts = identity.fused(name, run.options.runs_dir)
        folder = run.shared / "scores" / _scores_of(name, parts, run)
        scores[short], figures[short] = rankers.scored(name, splits, folder)
        figures[short]["pairs_before"] = pairs_before(short)
        for part in parts:
            for named in chains.other_data(part, run):
                log.warning("models %s: trained on %s, whose training questions may be among these", short, named)
    return scores, figures


def _scores_of(name: str, parts: list[str], run: runs.Run) -> str:
    """Names the scores of a ranker by what they follow from. A run that was deleted and made again has its name, not its weights."""
    given = run.given | {"models": name, "seed": 0}  # the seed draws for tests, not for scores
    made = [rundir.read_record(folder) for part in parts if (folder := rundir.find(part, run.options.runs_dir))]
    weights = [record.get("weights_sha256") for record in made]
    follows_from = [identity.of_run("rank", given)["hash"], provenance.sources_sha256(), weights]
    return hashlib.sha256(json.dumps(follows_from).encode()).hexdigest()[:12]


def publish(results: str | Path = "results", runs_dir: str | Path = "runs") -> list[Path]:
    """Write `results/rankers/<dataset>-<budget>.json` for finished runs of what is listed, without text. Returns the files.

    A run belongs to what is listed by its settings; of several, on models that changed, the newest counts.
    """
    made, written = runs.read_all(runs_dir), []
    finished = made[made.finished.astype(bool) & (made.notebook == "rank")]
    newest = sorted(finished.itertuples(), key=lambda run: run.record.get("created", ""), reverse=True)
    for budget in read()["budgets"]:
        for job in jobs(budget, runs_dir):
            wanted = settings_key("rank", parameters.settings("rank", job.parameters))
            keys = (settings_key("rank", completed("rank", run.record["settings"])) for run in newest)
            run = next((run for run, key in zip(newest, keys) if key == wanted), None)
            if run is not None:
                file = rundir.root() / results / SLUG / f"{job.dataset}-{budget}.json"
                written.append(disk.write_json(file, published(run.folder)))
    return written


def published(folder: Path) -> dict:
    """The record of a run of `rank`, with the values of every test question for each ranker."""
    record = rundir.read_record(folder)
    scores = rundir.read_table(folder, SCORES, ("ranker", "question_id"), ("label", "score"))
    of_rankers = scores.groupby("ranker", sort=False)
    each = {name: metrics.of(own).per_question.set_index("question_id") for name, own in of_rankers}
    entry = records.columns_entry(next(iter(each.values())))
    return record | entry | {"per_question": {name: records.rounded(own) for name, own in each.items()}}


def committed(results: str | Path = "results") -> dict[str, dict]:
    """Data set -> its committed record of the largest budget. Raises: ValueError naming a damaged file."""
    found = {}
    for budget in rundir.BUDGETS:
        for path in sorted((rundir.root() / results / SLUG).glob(f"*-{budget}.json")):
            found[path.name.removesuffix(f"-{budget}.json")] = disk.read_json(path)
    return found


def questions_of(record: dict) -> dict[str, pd.DataFrame]:
    """Ranker -> the values of its questions, with question_id as index."""
    columns = ["question_id", *records.value_columns(record)]
    each = {name: pd.DataFrame(rows, columns=columns) for name, rows in record["per_question"].items()}
    return {name: table.set_index("question_id") for name, table in each.items()}
