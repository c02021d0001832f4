"""The record of calibration, from the scores of made-up runs."""

import numpy as np
import pandas as pd
import pytest
from pages import believed
from scipy import special

from aslab import calibration, rundir
from asutil.io import disk
from asutil.metrics import calibration as figures

from ..made_up import cells, finished


def run(folder, seed, notebook="finetune", scale=1.0):
    """A finished run whose logits are `scale` times too large."""
    rng, tables = np.random.default_rng(seed), {}
    for name in ("scores_dev", "scores"):
        logits = rng.normal(-1, 2, 600)
        labels = (rng.random(600) < special.expit(logits)).astype(np.int8)
        table = {"question_id": np.repeat([f"q{n}" for n in range(60)], 10), "label": labels, "score": (scale * logits).astype(np.float32)}
        tables[name] = pd.DataFrame(table)
    settings = {"dataset": "wikiqa", "protocol": "clean", "model": "a/model", "architecture": "pair", "head": None}
    return finished(folder / f"{notebook}-made-{seed:012d}", {"notebook": notebook, "seed": seed, "settings": settings}, **tables)


def test_too_large_logits_are_mended_and_the_table_has_the_mean_over_seeds(tmp_path, monkeypatch):
    made = calibration.record([run(tmp_path, seed, scale=4.0) for seed in (1, 2)])
    tests = [one["test"] for one in made["runs"]]
    assert all(one["error"] < 0.08 < 0.12 < one["error_before"] for one in tests)
    assert [one["fitted"]["temperature"] for one in made["runs"]] == pytest.approx([4, 4], rel=0.3)
    scores = pd.read_parquet(tmp_path / made["runs"][0]["name"] / "scores.parquet")
    assert tests[0]["error_before"] == figures.expected_error(scores.label, special.expit(scores.score.astype(float)))
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    assert believed.calibration_table() == "", "no record, no table"
    (tmp_path / "results").mkdir()
    disk.write_json(tmp_path / "results" / "calibration.json", made)
    (line,) = cells(believed.calibration_table())[1:]
    assert line[:2] == ["WikiQA, clean: pair, model", "2"]
    mean = 100 * np.mean([one["error"] for one in tests])
    assert line[3].startswith(f"{mean:.1f} ± ")


def test_a_run_without_logits_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected a run of finetune, got one of embed"):
        calibration.record([run(tmp_path, 1, "embed")])


def test_the_words_about_our_own_runs():
    """The sentences above the table in book/findings.md: where the fit helps, and where it does not."""
    path = rundir.root() / "results" / "calibration.json"
    errors = {}
    for run in disk.read_json(path)["runs"]:
        errors.setdefault((run["dataset"], run["architecture"]), []).append([run["test"][key] for key in ("error_before", "error")])
    shares = {kind: np.mean(values, axis=0)[1] / np.mean(values, axis=0)[0] for kind, values in errors.items()}
    assert shares["wikiqa", "pair"] < 0.4 and 0.4 < shares["trecqa", "pair"] < 0.6 and shares["pydocs", "joint"] > 1
