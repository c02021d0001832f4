"""The profiles of the matrix, and what a call says before and after: with a stand-in for papermill, and without Slurm."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from aslab import gpus, papers
from aslab import hours as preview
from aslab import plan as plans
from aslab.analysis import costs

from .made_up import copied_project

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
needs_snakemake = pytest.mark.skipif(not SNAKEMAKE.exists(), reason="snakemake is not installed (extra: matrix)")

PAPERMILL = '''#!{python}
"""Stands in for papermill: notes when it had which GPU, writes an executed notebook, and a record where nothing is set to fail."""
import json, os, sys, time
from pathlib import Path

begun, root = time.time(), Path(os.environ["ASUTIL_PROJECT"])
folder = root / "runs" / json.loads((root / "plan.json").read_text())[" ".join(sys.argv[1:])]
folder.mkdir(parents=True, exist_ok=True)
broken = os.environ.get("BROKEN") in sys.argv
time.sleep(0 if broken else float(os.environ.get("STAND_IN_SECONDS", 0)))
outputs = [{{"output_type": "error", "ename": "ValueError", "evalue": "this row\\nwas made to fail"}}] * broken
(folder / "notebook.ipynb").write_text(json.dumps({{"cells": [{{"cell_type": "markdown"}}, {{"cell_type": "code", "outputs": outputs}}]}}))
with (root / "calls.jsonl").open("a") as stream:
    stream.write(json.dumps([folder.name, os.environ.get("CUDA_VISIBLE_DEVICES"), begun, time.time()]) + "\\n")
if broken:
    sys.exit(1)
(folder / "record.json").write_text("{{}}")
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    """One paper at budget laptop, with two rows that pre-train and fine-tune, and papermill's stand-in."""
    monkeypatch.setenv("ASUTIL_PROJECT", str(tmp_path))

    def change(slug, data):
        data["budgets"] = {name: of for name, of in data["budgets"].items() if (slug, name) == ("sentence_objectives", "laptop")}
        if data["budgets"]:
            alone = {"more_seeds": {}, "more_datasets": {}, "pretrain_each": []}
            data["budgets"]["laptop"] |= {"rows": ["roberta_ssp", "roberta_psd"], "seeds": [0]} | alone
            data["demo"] = {"budget": "laptop", "data_sets": ["pydocs"], "rows": ["roberta_psd"], "seeds": [0]}

    copied_project(tmp_path, change, PAPERMILL)
    plan = {" ".join(shlex.split(job.command)[1:]): job.folder.name for job in plans.jobs("sentence_objectives", "laptop")}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return tmp_path


def call(project, profile, *options, target="sentence_objectives_laptop", **environment):
    known = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    path = f"{project / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    known |= {"PATH": path, "TMPDIR": str(project), **environment}
    command = [str(SNAKEMAKE), "-s", "experiments/Snakefile", "--profile", f"experiments/profiles/{profile}", *options, "--", target]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, env=known)
    return done.returncode, done.stdout + done.stderr


def calls(project) -> list:
    path = project / "calls.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


@needs_snakemake
def test_a_failed_row_is_named_and_the_next_call_runs_it_alone(project):
    code, said = call(project, "machine", "--cores", "2", BROKEN="psd", STAND_IN_SECONDS="3", CUDA_VISIBLE_DEVICES="5,7,9")
    made = calls(project)
    assert code != 0 and sorted(name.split("-")[0] for name, *_ in made) == ["finetune", "pretrain", "pretrain"]  # the other row is done
    assert {device for _, device, *_ in made} == {"5,7,9"}  # without the profile of GPUs a run sees those that you see
    (failed,) = (name for name, *_ in made if name.startswith("pretrain-psd"))
    assert "1 run failed:" in said and "sentence_objectives, row roberta_psd, pretraining, seed 0, budget laptop" in said
    assert f"folder: runs/{failed}\n" in said and "error:  ValueError: this row was made to fail\n" in said
    (alone,) = re.findall(r"alone: +(papermill .*)", said)
    assert alone.startswith("papermill notebooks/pretrain.ipynb") and "-p objective psd" in alone
    (waits,) = re.findall(r"1 more did not start: (\S+)", said)
    assert waits.startswith("finetune-")

    code, said = call(project, "machine")
    assert code == 0 and "failed:" not in said
    assert [name for name, *_ in calls(project)] == [failed, waits]


def without_links(folder, names):
    return [name for name in names if (Path(folder) / name).is_symlink()]


@needs_snakemake
def test_a_killed_call_goes_on_in_a_copy_of_the_project_that_has_no_links(project):
    """As on Windows, and from some archives. A lock that the killed call left, and what it had begun, would refuse the next."""
    shutil.copy(ROOT / "Snakefile", project)
    for name in ("experiments", "profiles"):
        if not (ROOT / name).is_symlink():
            changed = {path.name: path.read_bytes() for path in (project / name).glob("*.yml")}
            shutil.rmtree(project / name, ignore_errors=True)
            shutil.copytree(ROOT / name, project / name, ignore=without_links)
            for file, content in changed.items():
                (project / name / file).write_bytes(content)
    path = f"{project / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [str(SNAKEMAKE), "-c2", "sentence_objectives_laptop"]
    known = {**os.environ, "PATH": path, "TMPDIR": str(project), "STAND_IN_SECONDS": "5"}
    killed = subprocess.Popen(command, cwd=project, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list((project / "runs").glob("*")):
        assert killed.poll() is None
        time.sleep(0.1)
    killed.kill()
    killed.wait()
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, env=known | {"STAND_IN_SECONDS": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((project / "runs").glob("*/record.json"))) == 4


@needs_snakemake
def test_two_runs_at_once_never_share_a_gpu(project):
    code, said = call(project, "gpus", "--resources", "gpu=2", "--cores", "8", STAND_IN_SECONDS="2", CUDA_VISIBLE_DEVICES="5,7,9")
    assert code == 0, said
    made = calls(project)
    assert len(made) == 4 and {device for _, device, *_ in made} == {"5", "7"}
    assert any(start < ended and begun < end for n, (_, _, begun, ended) in enumerate(made) for _, _, start, end in made[:n])
    for number, (_, device, begun, ended) in enumerate(made):
        for _, other, start, end in made[:number]:
            assert device != other or end <= begun or ended <= start


@needs_snakemake
def test_slurm_is_planned_without_slurm_and_asks_for_twice_the_expected_hours(project):
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the Slurm executor is not installed (extra: cluster)")
    path = project / "experiments" / "sentence_objectives.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["budgets"]["gpu"] = data["budgets"]["laptop"] | {"gpu_hours": {"pretrain": 12, "finetune": 1}}
    path.write_text(yaml.safe_dump(data))
    code, said = call(project, "slurm", "-n", "--cores", "8", target="sentence_objectives_gpu")
    assert code == 0, said
    asked = re.findall(r"threads: (\d+)\s+resources:.*gpu_hours=(\d+).*gpu=(\d), runtime=(\d+)", said)
    assert sorted(asked) == [("8", "1", "1", "120")] * 2 + [("8", "12", "1", "1440")] * 2
    assert re.search(r"pretrain +2 +24\n", said) and re.search(r"finetune +2 +2\n", said) and re.search(r"in all +4 +26$", said, re.M)


SBATCH = '#!/bin/sh\necho "$@" >> {said}\necho no cluster here >&2\nexit 1\n'


@needs_snakemake
def test_a_call_with_slurm_submits_each_job_with_what_it_asks_for(project):
    """The commands of Slurm are stand-ins; sbatch refuses every job."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the Slurm executor is not installed (extra: cluster)")
    said = project / "submitted"
    for name in ("sbatch", "sacct", "sinfo", "squeue", "scancel", "scontrol", "sacctmgr", "sshare"):
        stand_in = project / "bin" / name
        stand_in.write_text(SBATCH.format(said=said) if name == "sbatch" else "#!/bin/sh\n")
        stand_in.chmod(0o755)
    quick = ("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1")
    several = ("--set-resources", "run:gpu=4")
    code, shown = call(project, "slurm", *quick, *several, "--default-resources", "slurm_account=me", "slurm_partition=gpu")
    assert code != 0 and "no cluster here" in shown
    submitted = said.read_text().splitlines()
    assert submitted and all("--cpus-per-task=8" in line and "-A me" in line and "gpus=4" in line for line in submitted), submitted


@pytest.mark.parametrize("name", ["machine", "gpus", "slurm"])
def test_a_profile_goes_on_and_repeats_nothing_blindly(name):
    profile = yaml.safe_load((ROOT / "experiments" / "profiles" / name / "config.yaml").read_text("utf-8"))
    assert (profile["keep-going"], profile["rerun-incomplete"], profile["retries"]) == (True, True, 0)
    assert ("cores" in profile) == (name != "slurm")


# ------------------------------------------------------------------ a GPU for each run


def held(tmp_path, count, seconds="0", **environment):
    said = f'echo "$CUDA_VISIBLE_DEVICES $WORD"; exec sleep {seconds}'
    command = [sys.executable, "-m", "asutil", "gpus", str(count), "WORD=said", "sh", "-c", said]
    known = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return subprocess.Popen(command, env=known | {"TMPDIR": str(tmp_path), **environment}, stdout=subprocess.PIPE, text=True)


def test_a_gpu_is_held_until_its_command_ends_however_that_ends(tmp_path):
    first = held(tmp_path, 2, "60")
    assert first.stdout.readline() == "0 said\n"
    second = held(tmp_path, 2, "60")
    assert second.stdout.readline() == "1 said\n"
    third = held(tmp_path, 2)
    time.sleep(1)
    assert third.poll() is None  # both are taken
    first.kill()
    assert third.communicate(timeout=60)[0] == "0 said\n" and third.returncode == 0
    second.kill()


def test_no_gpu_is_made_up():
    with pytest.raises(ValueError, match="gpu=3: expected 1 to 2 of the GPUs in CUDA_VISIBLE_DEVICES=4,6"):
        gpus.gpus(3, "4,6")
    with pytest.raises(ValueError, match="gpu=1: expected 1 to 0"):
        gpus.gpus(1, "")
    with pytest.raises(ValueError, match="gpu=0"):
        gpus.gpus(0)


# ------------------------------------------------------------------ what is said


def test_hours_of_a_selection_by_hand():
    jobs = plans.jobs("contextual_as2", "paper", ["roberta_dpc"], [0, 1], folder_for=costs.planned_folder)
    said = preview.on_gpus(jobs)
    assert re.search(r"contextual_as2 +paper +pretrain +1 +120\n", said)
    assert re.search(r"contextual_as2 +paper +finetune +6 +120\n", said)
    assert re.search(r"in all +7 +240$", said)


def test_seeds_after_a_search_are_expected_too():
    jobs = plans.jobs("sentence_objectives", "paper", ["roberta_base"], folder_for=costs.planned_folder)
    tries = [job for job in jobs if job.search.endswith("-wikiqa")]
    hours, seeds = plans.gpu_hours(tries[0]), papers.seeds(papers.read("sentence_objectives"), "roberta_base", "paper")
    said = preview.on_gpus(tries, [tries])
    assert len(tries) == 12 and re.search(rf"finetune +12 +{12 * hours}\n", said)
    assert re.search(rf"finetune +after a search +{len(seeds) - 1} +{(len(seeds) - 1) * hours}\n", said)


def test_an_older_notebook_says_nothing_of_this_call(tmp_path):
    assert gpus.last_error(tmp_path).startswith("none in a notebook")
    errors = {"KeyError": "'a'", "OSError": "full\n disk"}
    outputs = [{"output_type": "error", "ename": name, "evalue": value} for name, value in errors.items()]
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": [{"outputs": outputs}, {"source": ""}]}))
    assert gpus.last_error(tmp_path) == "OSError: full disk"
    assert gpus.last_error(tmp_path, since=time.time() + 60).startswith("none in a notebook")
    for damaged in ("{ half", "[]", '{"cells": [7]}', '{"cells": [{"outputs": [{"output_type": "error"}]}]}', "[" * 100_000):
        (tmp_path / "notebook.ipynb").write_text(damaged)
        assert gpus.last_error(tmp_path).startswith("none in a notebook")
