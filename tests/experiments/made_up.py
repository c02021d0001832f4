"""What the tests of a paper's rows share: plans whose folders need no data, and finished runs that nobody ran."""

import hashlib
import json
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from aslab import identity, parameters, publish, records, runs
from aslab import plan as plans
from asutil import metrics
from asutil.io import disk

ROOT = Path(__file__).resolve().parents[2]


def stub(notebook, given, folder=Path("runs")):
    return folder / f"{notebook}-{hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]}"


def plan(paper, budget, rows=None, seeds=None, folder=Path("runs")):
    return plans.jobs(paper, budget, rows, seeds, folder_for=partial(stub, folder=folder))


def settings_of(job):
    return parameters.settings(job.notebook, job.parameters)


def as_record(job):
    """What `plan.at_paper_settings` reads of a run's record."""
    return {"notebook": job.notebook, "name": str(job.folder), "seed": job.seed, "settings": settings_of(job)}


def chain_of(job, known):
    """The records of the runs that led to a job, and its own; `known`: folder -> job."""
    return [*(record for need in job.needs for record in chain_of(known[need], known)), as_record(job)]


def chain(paper, row, dataset, seed=0):
    """The records of the runs behind a row's figures at budget paper; of a search, of its first try."""
    known = {job.folder: job for job in plan(paper, "paper", [row], [seed]) if job.notebook != "task_difficulty"}
    return chain_of(next(job for job in known.values() if (job.row, job.dataset) == (row, dataset)), known)


def copied_project(folder, change, papermill=None):
    """Notebooks and experiments of a project, its papers' files as `change(slug, data)` leaves them; `papermill`: source of a stand-in."""
    for name in ("notebooks", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".*"))
    (folder / "book").mkdir()
    for path in (folder / "experiments").glob("*.yml"):
        data = yaml.safe_load(path.read_text("utf-8"))
        change(path.stem, data)
        path.write_text(yaml.safe_dump(data))
    if papermill:
        (folder / "bin").mkdir()
        (folder / "bin" / "papermill").write_text(papermill.format(python=sys.executable))
        (folder / "bin" / "papermill").chmod(0o755)
    return folder


def finish(job, **more):
    """Write the record of a run, after the other files of its folder."""
    job.folder.mkdir(parents=True, exist_ok=True)
    record = as_record(job) | {"name": job.folder.name, "budget": job.budget, "inputs": {}}
    record["settings"] = identity.shown(record["settings"])
    disk.write_json(job.folder / "record.json", record | more | runs.hashes(job.folder))


def two_candidates(right, prefix="q"):
    """Scores of questions with two candidates each; the right one is first where `right` is true."""
    ids = [f"{prefix}{i}" for i in range(len(right))]
    scores = pd.DataFrame({"question_id": np.repeat(ids, 2), "candidate_id": [f"{q}-{n}" for q in ids for n in range(2)]})
    scores["label"] = np.array([1, 0] * len(right), np.int8)
    scores["score"] = np.stack([right, ~right], 1).ravel().astype(np.float32)
    return scores


def write_scores(folder, scores, suffix=""):
    """The tables of a run that ranked, and its metrics."""
    ranking = metrics.of(scores)
    scores.to_parquet(folder / f"scores{suffix}.parquet")
    ranking.per_question.to_parquet(folder / f"per_question{suffix}.parquet")
    return ranking.record()


def recorded(paper, folder):
    return records.records(paper, folder / "results", folder / "runs")


def published(paper, folder, atol=1e-8):
    """Publish the runs of a folder: their lines before and after, which say the same, and <row>/<name> -> committed record."""
    before = recorded(paper, folder)
    before = before[before.budget != "laptop"]
    places = list(publish.publish(paper, folder / "results", folder / "runs"))
    after = records.records(paper, folder / "results", folder / "no runs")
    assert set(after.source) == {records.COMMITTED} and len(after) == len(before) == len(places)
    key = ["dataset", "row", "seed"]
    for one, other in zip(before.sort_values(key).itertuples(), after.sort_values(key).itertuples(), strict=True):
        assert [getattr(one, name) for name in key] == [getattr(other, name) for name in key]
        left, right = records.per_question(one), records.per_question(other)
        pd.testing.assert_frame_equal(left[[*right]], right, check_dtype=False, atol=atol)
        assert records.figures(one) == records.figures(other)
    held = {f"{path.parent.name}/{path.stem}": json.loads(path.read_text()) for path in places}
    return before, after, held
