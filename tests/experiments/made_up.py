"""What the tests of a paper's rows share: plans whose folders need no data, and finished runs that nobody ran."""

import hashlib
import json
from functools import partial
from pathlib import Path

import pandas as pd

from aslab import plan as plans
from aslab import publish, records, runs
from asutil.io import disk


def stub(notebook, given, folder=Path("runs")):
    return folder / f"{notebook}-{hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]}"


def plan(paper, budget, rows=None, seeds=None, folder=Path("runs")):
    return plans.jobs(paper, budget, rows, seeds, folder_for=partial(stub, folder=folder))


def settings_of(job):
    return runs.settings(job.notebook, job.parameters)


def as_record(job):
    """What `plan.at_paper_settings` reads of a run's record."""
    return {"notebook": job.notebook, "name": str(job.folder), "seed": job.seed, "settings": settings_of(job)}


def finish(job, **more):
    """Write the record of a run, after the other files of its folder."""
    job.folder.mkdir(parents=True, exist_ok=True)
    record = as_record(job) | {"name": job.folder.name, "budget": job.budget, "inputs": {}}
    record["settings"] = runs.shown(record["settings"])
    disk.write_json(job.folder / "record.json", record | more | runs.hashes(job.folder))


def found(paper, folder):
    return records.records(paper, folder / "results", folder / "runs")


def published(paper, folder, atol=1e-8):
    """Publish the runs of a folder: their lines before and after, which say the same, and <row>/<name> -> committed record."""
    before = found(paper, folder)
    before = before[before.budget != "laptop"]
    places = publish.publish(paper, folder / "results", folder / "runs")
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
