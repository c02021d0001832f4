"""Hours of planned runs: sums by hand, the runs that they follow from, and what a dry run of the matrix prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aslab import hours, parameters, plan
from aslab.commands import asutil
from asutil.io import disk

from ..experiments.made_up import copied_project

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
GRANITE = "ibm-granite/granite-embedding-30m-english"
PAIRS = parameters.settings("finetune", {"budget": "small", "dataset": "wikiqa"})
HERE, ELSEWHERE = "runs on this machine", "other runs"


def run(seconds=150.0, here=True, cores=2, backbone=GRANITE, notebook="finetune", **settings):
    return hours.Run(notebook, PAIRS | settings, seconds, backbone, here, cores)


def estimate(*known, notebook="finetune", backbone=GRANITE, **settings):
    return hours.of_run(notebook, PAIRS | settings, backbone, list(known), cores=2)


def test_hours_by_hand():
    """One epoch took 150 seconds; asked are three, of the same questions or of a tenth of their pairs."""
    assert estimate(run(epochs=1, seed=7), epochs=3) == (pytest.approx(3 * 150 / 3600), HERE)
    pairs = 8_672 * 97 // 873
    assert estimate(run(epochs=1), epochs=1, question_limit=97).hours == pytest.approx(150 * pairs / 8_672 / 3600)
    steps = {"steps": 10, "batch_size": 40, "max_tokens": 128, "objective": "ssp"}
    like = hours.Run("pretrain", steps | {"steps": 2}, 80.0, GRANITE, True, 2)
    assert hours.of_run("pretrain", steps, GRANITE, [like], 2).hours == pytest.approx(5 * 80 / 3600)


def test_of_several_runs_the_median_counts():
    assert estimate(*(run(seconds) for seconds in (10.0, 90.0, 360.0))).hours == pytest.approx(90 / 3600)


def test_the_most_alike_runs_count_and_this_machine_first():
    """In this order: the same data here, the same data elsewhere, the same form of examples, any other."""
    others = [run(1.0, max_tokens=64), run(2.0, dataset="trecqa", here=False), run(3.0, here=False), run(4.0)]
    assert estimate(*others) == (pytest.approx(4 / 3600), HERE)
    assert estimate(*others[:3]) == (pytest.approx(3 / 3600), ELSEWHERE)
    each = 2 / hours.tokens_of("finetune", PAIRS | {"dataset": "trecqa"})
    assert estimate(*others[:2]) == (pytest.approx(each * hours.tokens_of("finetune", PAIRS) / 3600), ELSEWHERE)
    each = 1 / hours.tokens_of("finetune", PAIRS | {"max_tokens": 64})
    assert estimate(*others[:1]).hours == pytest.approx(each * hours.tokens_of("finetune", PAIRS) / 3600)
    assert estimate(run(4.0, cores=8), run(3.0, here=False)).hours == pytest.approx(3.5 / 3600), "other cores: another machine"


def test_runs_of_another_precision_count_where_there_are_no_others():
    other = run(1.0, precision="bf16")
    assert estimate(other) == (pytest.approx(1 / 3600), f"{ELSEWHERE}, in another precision")
    assert estimate(other, run(2.0, here=False)) == (pytest.approx(2 / 3600), ELSEWHERE)


@pytest.mark.parametrize("other", [{"backbone": "owner/other"}, {"notebook": "embed"}])
def test_runs_of_another_backbone_or_notebook_tell_nothing(other):
    assert estimate(run(**other)) == (None, "")


def test_tokens_are_the_most_that_settings_allow():
    """8,672 pairs of WikiQA's questions with a right candidate; the data of a user are not counted."""
    three = PAIRS | {"epochs": 3, "max_tokens": 128}
    assert hours.tokens_of("finetune", three) == 3 * 8_672 * 128
    assert hours.examples_of("finetune", three | {"question_limit": 97})[0] == 8_672 * 97 // 873
    claims = {"dataset": "climate_fever", "head": "ie_1", "k": 5}
    limits = [{}, {"claim_limit": 40}, {"claim_limit": 40, "train_limit": 9}]
    assert [hours.examples_of("verify_claims", claims | limit)[0] for limit in limits] == [981, 40, 9]
    assert hours.tokens_of("finetune", three | {"dataset": "mine.tsv"}) is None
    assert estimate(run(dataset="mine.tsv"), dataset="mine.tsv").hours is None


def test_what_trains_nothing_takes_as_long_as_it_took():
    known = [run(notebook="rerank", seconds=1_800.0), run(notebook="rerank", seconds=60.0, dataset="trecqa")]
    assert estimate(*known, notebook="rerank", backbone=None).hours == 0.5
    assert estimate(known[1], notebook="rerank", backbone=None).hours is None


def test_a_resumed_run_is_not_shorter_than_its_training(tmp_path):
    for number, training in enumerate((50.0, 7_200.0)):
        about = {"notebook": "finetune", "budget": "small", "seed": number, "settings": PAIRS, "hardware": {"cpu_cores": 2}}
        about |= {"seconds": 60.0, "figures": {"training_seconds": training}}
        folder = tmp_path / f"finetune-wikiqa-{number:012x}"
        folder.mkdir()
        disk.write_json(folder / "record.json", about)
    assert [run.seconds for run in hours.finished([], tmp_path)] == [60.0, 7_200.0]


def test_a_table_of_papers_and_their_sum():
    jobs = plan.jobs("sentence_objectives", "small", ["roberta_psd"], [0, 1])
    known = [
        hours.Run(job.notebook, parameters.settings(job.notebook, job.parameters), 3_600.0, GRANITE, True, 2)
        for job in jobs
        if job.dataset != "nq_sentences"
    ]
    told = [re.split(r" {2,}", line) for line in hours.expected(jobs, 2, known).splitlines()]
    fine = [job for job in jobs if job.notebook == "finetune"]
    each = [hours.of_run(job.notebook, parameters.settings(job.notebook, job.parameters), GRANITE, known, 2).hours for job in fine]
    assert told[0] == ["Expected hours of the runs to come on 2 free cores of this machine:"]
    assert told[2] == ["sentence_objectives", "small", "pretrain", "2", "2.0", HERE]
    assert told[3] == ["sentence_objectives", "small", "finetune", str(len(fine)), f"{sum(each):,.1f}", HERE]
    assert told[-1] == ["in all", str(len(jobs)), f"{2 + sum(each):,.1f}"]
    assert hours.expected(jobs, 2, []).splitlines()[-1].endswith(f"0.0 and {len(jobs)} not known")
    assert hours.expected(plan.jobs("sentence_objectives", "laptop"), 2, []) == ""
    assert hours.expected(plan.jobs("sentence_objectives", "gpu", ["roberta_base"]), 2, []) == ""


@pytest.mark.slow
def test_committed_runs_tell_the_hours_of_a_budget(capsys):
    asutil.main(["hours", "joint_inference", "small", "--cores", "2"])
    *_, last = capsys.readouterr().out.splitlines()
    known, jobs = hours.finished(["joint_inference"]), plan.jobs("joint_inference", "small")
    by_name, each = {job.folder.name: job for job in jobs}, []
    for job in jobs:
        settings = parameters.settings(job.notebook, job.parameters)
        each.append(hours.of_run(job.notebook, settings, hours._backbone(settings.get("model"), by_name), known, 2).hours)
    told = re.fullmatch(r"in all +(\d+) +([\d,]+\.\d)(?: and (\d+) not known)?", last)
    assert told.groups("0") == (str(len(jobs)), f"{sum(filter(None, each)):,.1f}", str(each.count(None))) and sum(filter(None, each)) > 1


@pytest.mark.slow
@pytest.mark.skipif(not SNAKEMAKE.exists(), reason="snakemake is not installed (extra: matrix)")
def test_a_dry_run_prints_them(tmp_path):
    def change(slug, data):
        if slug == "sentence_objectives":
            left_out = ("more_seeds", "more_datasets", "pretrain_each", "also_rank")
            small = data["budgets"]["small"] | {"rows": ["roberta_base"], "seeds": [0], "datasets": ["wikiqa"]}
            small = {key: value for key, value in small.items() if key not in left_out}
            data["budgets"] = {"laptop": data["budgets"]["laptop"], "small": small}

    copied_project(tmp_path, change)
    (tmp_path / "runs" / f"finetune-wikiqa-{0:012x}").mkdir(parents=True)
    about = {"notebook": "finetune", "budget": "small", "seed": 1, "settings": PAIRS | {"seed": 1}, "seconds": 7_200.0}
    disk.write_json(tmp_path / "runs" / f"finetune-wikiqa-{0:012x}" / "record.json", about | {"hardware": {"cpu_cores": 2}})
    command = [str(SNAKEMAKE), "-s", str(tmp_path / "experiments" / "Snakefile"), "-c2", "-n", "sentence_objectives_small"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "ASUTIL_PROJECT": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"^sentence_objectives +small +finetune +1 +(\d+\.\d) +(.*)$", done.stdout, re.MULTILINE)
    assert line == ("2.0", HERE)
