"""The plan of runs, as Snakemake sees it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from asutil import experiments, runs

ROOT = Path(__file__).parents[1]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")


def dry_run(target):
    command = [str(SNAKEMAKE), "-s", str(ROOT / "experiments" / "Snakefile"), "-c1", "-n", "--forceall", target]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.skipif(not SNAKEMAKE.exists(), reason="snakemake is not installed (extra: matrix)")
@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        ("demo", experiments.read("sentence_objectives")["demo"]),
        ("sentence_objectives_laptop", {"rung": "laptop"}),
        ("laptop", {"rung": "laptop"}),
    ],
)
def test_targets_run_the_planned_jobs_in_order(target, chosen):
    code, text = dry_run(target)
    assert code == 0, text
    jobs = experiments.jobs("sentence_objectives", **chosen)
    outputs = set(re.findall(r"output: runs/(\S+)/record.json", text))
    assert outputs == {job.folder.name for job in jobs}
    for job in jobs:
        assert all(f"runs/{need.name}/record.json" in text for need in job.needs)


def test_an_unknown_target_is_refused():
    if not SNAKEMAKE.exists():
        pytest.skip("snakemake is not installed (extra: matrix)")
    code, text = dry_run("sentence_objective_laptop")
    assert code != 0 and "sentence_objective_laptop" in text


def test_jobs_name_the_folder_that_their_command_makes():
    for job in experiments.jobs("sentence_objectives", "laptop"):
        words = job.command.split()
        given = {words[i + 1]: yaml.safe_load(words[i + 2]) for i, word in enumerate(words) if word == "-p"}
        assert runs.folder_for(job.notebook, given, must_exist=False) == job.folder
