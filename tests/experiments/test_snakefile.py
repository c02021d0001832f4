"""The plan of runs, as Snakemake sees it."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from aslab import identity, own, plan
from aslab import papers as rows

from .made_up import copied_project

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
needs_snakemake = pytest.mark.skipif(not SNAKEMAKE.exists(), reason="snakemake is not installed (extra: matrix)")


def dry_run(target, *file, config=()):
    """The file needs no name in the project's folder."""
    command = [str(SNAKEMAKE), *file, "-c1", "-n", "--forceall", target, *(("--config", *config) if config else ())]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return result.returncode, result.stdout + result.stderr


@needs_snakemake
@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        ("demo", rows.read("sentence_objectives")["demo"]),
        ("sentence_objectives_laptop", {"budget": "laptop"}),
        ("laptop", {"budget": "laptop"}),
    ],
)
def test_targets_run_the_planned_jobs_in_order(target, chosen):
    code, text = dry_run(target, *(("-s", "experiments/Snakefile") if target == "laptop" else ()))
    assert code == 0 and f"rule {target}" in text, text
    papers = rows.PAPERS if target == "laptop" else ["sentence_objectives"]
    with_budget = [paper for paper in papers if "laptop" in rows.read(paper).get("budgets", {})]
    jobs = [job for paper in with_budget for job in plan.jobs(paper, **chosen)]
    outputs = set(re.findall(r"output: runs/(\S+)/record.json", text))
    assert outputs == {job.folder.name for job in jobs}
    for job in jobs:
        assert all(f"runs/{need.name}/record.json" in text for need in job.needs)


@needs_snakemake
def test_an_unknown_target_is_refused():
    code, text = dry_run("sentence_objective_laptop")
    assert code != 0 and "sentence_objective_laptop" in text


@needs_snakemake
def test_one_record_is_made_by_its_job_with_what_it_needs():
    """As on a cluster, whose jobs know no target."""
    job = next(job for job in plan.jobs("sentence_objectives", "paper") if job.needs and not job.search)
    code, text = dry_run(f"runs/{job.folder.name}/record.json")
    assert code == 0, text
    outputs = re.findall(r"output: runs/(\S+)/record.json", text)
    assert set(outputs) == {job.folder.name, *(need.name for need in job.needs)}


@needs_snakemake
def test_own_documents_are_a_target_of_the_same_file(tmp_path):
    corpus = tmp_path / "texts.jsonl"
    paragraph = "The paragraph {} is long enough to stay in the corpus. It has a second sentence, {} words long."
    texts = ("\n\n".join(paragraph.format(n, 10 * n + part) for part in range(3)) for n in range(40))
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    questions = tmp_path / "mine.tsv"
    questions.write_text("question\tanswer\tlabel\n" + "".join(f"{n}?\tyes\t1\n{n}?\tno\t0\n" for n in range(10)))
    config = {"corpus": str(corpus), "questions": str(questions), "seeds": "0,1", "epochs": 1}
    code, text = dry_run("own", config=[f"{name}={value}" for name, value in config.items()])
    assert code == 0 and "corpus: 40 documents, 40 of them long enough\nquestions: 8 train, 1 dev, 1 test" in text, text
    made = own.chain(config)
    outputs = re.findall(r"output: runs/(\S+)/record.json", text)
    assert sorted(outputs) == sorted(job.folder.name for job in made.jobs) and len(outputs) == 5
    needs = re.findall(r"input: runs/(\S+)/record.json\n +output: runs/(\S+)/record.json", text)
    assert sorted(needs) == sorted((made.pretraining.folder.name, job.folder.name) for job in made.pretrained)
    code, text = dry_run("own")
    assert code != 0 and "own: corpus is missing" in text and "questions=my_questions.tsv" in text


def test_jobs_name_the_folder_that_their_command_makes():
    for job in plan.jobs("sentence_objectives", "laptop"):
        words = job.command.split()
        given = {words[i + 1]: yaml.safe_load(words[i + 2]) for i, word in enumerate(words) if word == "-p"}
        assert identity.folder_for(job.notebook, given, must_exist=False) == job.folder


PAPERMILL = '''#!{python}
"""Stands in for papermill: no cell runs, the record is there at once, and more epochs are better. What comes after the record may fail."""
import json, os, pathlib, sys
import yaml
from aslab import identity, runs
from asutil.io import disk

given = {{sys.argv[i + 1]: yaml.safe_load(sys.argv[i + 2]) for i, word in enumerate(sys.argv) if word == "-p"}}
folder = identity.folder_for(pathlib.Path(sys.argv[1]).stem, given)
folder.mkdir(parents=True, exist_ok=True)
reached = {{"map": given.get("epochs", 0) / 10}}
disk.write_json(folder / "record.json", {{**runs.hashes(folder), "seed": given["seed"], "given": given, "metrics": {{"dev": reached}}}})
sys.exit(os.environ.get("AFTER_THE_RECORD", 0))
'''


@pytest.fixture
def made(tmp_path):
    """Makes the runs of a project with two rows and three tries of each, whose notebooks do not run."""

    def change(slug, data):
        if slug == "sentence_objectives":
            laptop = {"rows": ["roberta_base", "roberta_ssp"], "seeds": [0, 1], "search": {"epochs": [2, 3, 1], "datasets": ["pydocs"]}}
            alone = {"more_seeds": {}, "more_datasets": {}, "pretrain_each": []}
            data["budgets"] = {"laptop": data["budgets"]["laptop"] | laptop | alone}
            data["demo"] = {"budget": "laptop", "data_sets": ["pydocs"], "rows": ["roberta_base"], "seeds": [0]}

    copied_project(tmp_path, change, PAPERMILL)

    def make(**more):
        environment = {**os.environ, "ASUTIL_PROJECT": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **more}
        command = [str(SNAKEMAKE), "-s", str(tmp_path / "experiments" / "Snakefile"), "-c1", "sentence_objectives_laptop"]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert result.returncode == 0, result.stderr
        return result.stdout + result.stderr

    return make


@needs_snakemake
def test_no_finished_run_is_made_again_or_loses_its_record(made, tmp_path):
    """A copy gives the record of a run and of the one that it starts from any times, and a plot may fail."""
    made(AFTER_THE_RECORD="1")
    records = {path: path.read_bytes() for path in tmp_path.glob("runs/*/record.json")}
    assert Counter(path.parent.name.partition("-")[0] for path in records) == {"finetune": 8, "pretrain": 1}
    os.utime(*tmp_path.glob("runs/pretrain-*/record.json"), (2e9, 2e9))
    assert "Nothing to be done" in made()
    assert records == {path: path.read_bytes() for path in tmp_path.glob("runs/*/record.json")}


@needs_snakemake
def test_the_seeds_follow_a_search_with_its_best_settings(made, tmp_path):
    made()
    records = [json.loads(path.read_text()) for path in tmp_path.glob("runs/finetune-*/record.json")]
    settings = Counter((record["seed"], record["given"]["epochs"]) for record in records)
    assert settings == {(0, 1): 2, (0, 2): 2, (0, 3): 2, (1, 3): 2}
    tries = json.loads((tmp_path / "runs" / "searches" / "sentence_objectives-laptop-roberta_base-pydocs.json").read_text())
    assert [(one["parameters"]["epochs"], one["dev_figure"]) for one in tries] == [(3, 0.3), (2, 0.2), (1, 0.1)]
