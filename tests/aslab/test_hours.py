"""Hours on this machine's cores: sums by hand, what a number is reckoned from, and what a dry run of the matrix prints."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from transformers import AutoModel, RobertaConfig

from aslab import hours, plan, rundir, runs
from asutil.corpus import sources

ROOT = Path(__file__).parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
GRANITE = "ibm-granite/granite-embedding-30m-english"
PAIRS = runs.settings("finetune", {"budget": "small", "dataset": "wikiqa"})


def run(
    tokens=40_000, examples=1_000, training=100.0, seconds=150.0, here=True, cores=2, backbone=GRANITE, notebook="finetune", **settings
):
    figures = {"tokens": tokens, "examples": examples, "training_seconds": training}
    return hours.Run(notebook, PAIRS | settings, figures, seconds, backbone, here, cores)


def never(*_):
    raise AssertionError("nothing had to be measured")


def test_hours_by_hand():
    """One epoch read 1,000 pairs of 40 tokens at 400 a second, half as long again with scoring; asked are three times the epochs."""
    like = run(epochs=1, seed=7)
    found = hours.of_run("finetune", PAIRS | {"epochs": 3}, GRANITE, [like], cores=2, speed_of=never)
    assert found.hours == pytest.approx(3 * 1_000 * 40 / 400 * 1.5 / 3600)
    assert found[1:] == ("runs like it", "runs on this machine")


@pytest.mark.parametrize("other", [{"cores": 8}, {"here": False}, {"backbone": "owner/other"}, {"precision": "bf16"}])
def test_a_speed_of_other_cores_machine_backbone_or_precision_is_measured_again(other):
    asked = []
    found = hours.of_run("finetune", PAIRS, GRANITE, [run(epochs=3, **other)], 2, lambda *one: asked.append(one) or 100.0)
    assert asked == [(GRANITE, 2, False)] and found.speed == "measured now"
    assert found.hours == pytest.approx(1_000 * 40 / 100 * 1.5 / 3600)


def test_without_weights_at_hand_the_committed_speed_is_taken_and_said():
    nothing = lambda *_: None
    found = hours.of_run("finetune", PAIRS, GRANITE, [run(here=False, epochs=3)], 2, nothing)
    assert found.hours == pytest.approx(1_000 * 40 / 400 * 1.5 / 3600) and found.speed == "committed runs of another machine"
    assert hours.of_run("finetune", PAIRS, GRANITE, [], 2, nothing).hours is None


def test_tokens_without_runs_are_the_most_that_settings_allow():
    """8,672 pairs of WikiQA's questions with a right candidate; a limit takes its share of them; 40 examples a step of pre-training."""
    three = PAIRS | {"epochs": 3, "max_tokens": 128}
    assert hours.tokens_of("finetune", three, []) == (3 * 8_672 * 128, "settings, at most")
    assert hours.examples_of("finetune", three | {"question_limit": 97})[0] == 8_672 * 97 // 873
    steps = {"steps": 10, "batch_size": 40, "max_tokens": 128, "objective": "ssp"}
    assert hours.tokens_of("pretrain", steps, []) == (10 * 40 * 128, "settings, at most")
    like = hours.Run("pretrain", steps | {"steps": 2}, {"tokens": 8_000, "examples": 80}, 1.0, GRANITE, False, 2)
    assert hours.tokens_of("pretrain", steps, [like]) == (10 * 40 * 100, "runs like it")
    assert hours.tokens_of("pretrain", steps | {"objective": "psd"}, [like]) == (10 * 40 * 100, "runs on other data")
    assert hours.tokens_of("finetune", three | {"dataset": "mine.tsv"}, []) == (None, "not known")


def test_seconds_of_a_run_that_was_resumed_are_not_less_than_its_training():
    found = hours.of_run("finetune", PAIRS, GRANITE, [run(epochs=3, training=100.0, seconds=9.0)], 2, never)
    assert found.hours == pytest.approx(1_000 * 40 / 400 / 3600)


def test_what_trains_nothing_takes_as_long_as_it_took():
    one = run(notebook="rerank", seconds=1_800.0)
    assert hours.of_run("rerank", PAIRS, None, [one], 2, never).hours == 0.5
    assert hours.of_run("rerank", PAIRS, None, [], 2, never).hours is None


def test_a_speed_is_measured_once_in_a_process_of_its_own(tmp_path, monkeypatch):
    config = RobertaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    AutoModel.from_config(config).save_pretrained(tmp_path / "model")
    monkeypatch.setattr(hours, "SECONDS", 0.1)
    assert hours.measure(str(tmp_path / "model"), cores=1, seconds=0.1) > hours.TEXTS * hours.LENGTH
    monkeypatch.setenv("ASUTIL_PROJECT", str(tmp_path))
    monkeypatch.setattr(rundir, "runs_folder", lambda: tmp_path / "runs")
    started = []
    monkeypatch.setattr(
        subprocess, "run", lambda *one, **_: started.append(one) or subprocess.CompletedProcess(one, 0, "log\n1234.5\n", "")
    )
    assert [hours.speed("a/b", 2), hours.speed("a/b", 2), hours.speed("a/b", 4)] == [1234.5] * 3 and len(started) == 2
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(subprocess.CalledProcessError(1, "x")))
    assert hours.speed("c/d", 2) is None  # not at hand


def test_a_table_of_papers_and_their_sum():
    jobs = plan.jobs("sentence_objectives", "small", ["roberta_psd"], [0, 1])
    told = hours.expected(jobs, 2, [], lambda *_: 1_000.0).splitlines()
    steps = runs.settings("pretrain", jobs[0].parameters)
    assert told[0] == "Expected hours of the runs to come on 2 free cores of this machine:"
    each = [2 * steps["steps"] * steps["batch_size"] * steps["max_tokens"] / 3.6e6]  # NQ sentences: one for each seed
    each += [
        2 * 3 * 8_672 * 128 / 3.6e6
        + sum(
            hours.of_run("finetune", runs.settings("finetune", job.parameters), GRANITE, [], 2, lambda *_: 1e3).hours
            for job in jobs
            if job.notebook == "finetune" and job.dataset != "wikiqa"
        )
    ]
    assert re.split(r" {2,}", told[2])[:5] == ["sentence_objectives", "small", "pretrain", "2", f"{each[0]:,.1f}"]
    assert re.split(r" {2,}", told[3])[:5] == ["sentence_objectives", "small", "finetune", str(len(jobs) - 2), f"{each[1]:,.1f}"]
    assert re.split(r" {2,}", told[-1]) == ["in all", str(len(jobs)), f"{sum(each):,.1f}"]
    assert {name for name in told[2].split("  ") if "at most" in name or "measured" in name} == {"settings, at most", "measured now"}
    assert hours.expected(plan.jobs("sentence_objectives", "laptop"), 2, [], never) == ""
    assert hours.expected(plan.jobs("sentence_objectives", "gpu", ["roberta_base"]), 2, [], never) == ""


@pytest.mark.skipif(not SNAKEMAKE.exists(), reason="snakemake is not installed (extra: matrix)")
def test_a_dry_run_prints_them(tmp_path):
    for name in ("notebooks", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(".*"))
    (tmp_path / "book").mkdir()
    path = tmp_path / "experiments" / "sentence_objectives.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    small = data["budgets"]["small"] | {"rows": ["roberta_base"], "seeds": [0], "datasets": ["wikiqa"]}
    data["budgets"] = {
        "laptop": data["budgets"]["laptop"],
        "small": {key: small[key] for key in small if key not in ("more_seeds", "more_datasets", "pretrain_each", "also_rank")},
    }
    path.write_text(yaml.safe_dump(data))
    environment = {**os.environ, "ASUTIL_PROJECT": str(tmp_path)}
    code = (
        "import subprocess; from aslab import hours; "
        "subprocess.run = lambda *a, **k: subprocess.CompletedProcess(a, 0, '1000.0', ''); "
        f"print(hours.speed({GRANITE!r}, 2))"
    )
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "1000.0\n"
    command = [str(SNAKEMAKE), "-s", str(tmp_path / "experiments" / "Snakefile"), "-c2", "-n", "sentence_objectives_small"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"^sentence_objectives +small +finetune +1 +(\d+\.\d) +(.*)$", done.stdout, re.MULTILINE)
    assert line == (f"{3 * 8_672 * 128 / 1000 / 3600:.1f}", "settings, at most  measured now")


def test_nothing_of_it_imports_torch():
    code = "import sys; from aslab import hours; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("main", "words", "broken"),
    [
        (hours.main, ["some/model", "1"], (hours, "measure")),
        (sources.main, ["owner/texts", "--limit", "3", "--out", "w.parquet"], (sources.hub, "stream")),
    ],
)
def test_a_command_that_fails_says_why_in_a_line(monkeypatch, capsys, main, words, broken):
    def failing(*_):
        raise FileNotFoundError("it could not be loaded from the hub")

    monkeypatch.setattr(*broken, failing)
    monkeypatch.setattr("sys.argv", ["command", *words])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.endswith("error: it could not be loaded from the hub\n")
