"""Training: gradients against one whole batch, kills and resumes against a run that was left alone, every option."""

import contextlib
import itertools
import json
import math
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_model
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import RobertaConfig

from asutil import inputs, sampling, training
from asutil.inputs import packing
from asutil.models import electra, loading, scoring
from asutil.training import checkpoints as saved
from asutil.training import loop, trainer
from asutil.training.options import Options

from ..conftest import Later, Stopping
from ..conftest import bytes_of as weights

pytestmark = pytest.mark.slow

CONFIG = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
USUAL = {"peak_lr": 3e-3, "warmup_steps": 3, "weight_decay": 0.01, "seed": 3, "save_every": 4, "log_every": 5, "progress": False}


class Batches(torch.utils.data.Dataset):
    """Steps of 12 pairs in micro-batches: the label is whether the second token is 6, the masked tokens are always 7."""

    def __init__(self, steps=18, micro=3, mlm=True):
        self.steps, self.micro, self.mlm = steps, micro, mlm

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        draw = np.random.default_rng(step)
        ids, labels = draw.integers(8, 50, (12, 10)), draw.integers(0, 2, 12)
        ids[:, 0], ids[:, 1] = 0, 5 + labels
        lengths = draw.integers(6, 11, 12)
        parts = []
        for rows in np.array_split(np.arange(12), self.micro):
            mask = np.arange(10) < lengths[rows, None]
            part = {"input_ids": np.where(mask, ids[rows], 1), "attention_mask": mask.astype(np.int64), "labels": labels[rows]}
            if self.mlm:
                positions = np.arange(len(rows)) * 10 + 3
                part |= {"masked_positions": positions, "masked_targets": np.full(len(rows), 7)}
            parts.append({name: torch.from_numpy(array) for name, array in part.items()})
        return {"micro": parts, "examples": 12, "masked": 12 if self.mlm else 0, "tokens": int(lengths.sum())}


def new_model(mlm=True, **config):
    settings = CONFIG | {"max_position_embeddings": 20, "type_vocab_size": 1} | config
    return loading.from_config(RobertaConfig(**settings), None, seed=1, mlm=mlm)


def run(folder, model=None, batches=None, **options):
    model = new_model() if model is None else model
    result = training.train(model, Batches() if batches is None else batches, folder, **USUAL | options)
    return model, result


def rows(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    model, result = run(folder)
    return folder, weights(model), result


# ------------------------------------------------------------------ losses and gradients


def test_a_training_run_equals_a_plain_loop(tmp_path):
    """No dropout: AdamW, warm-up, decay and clipping written out by hand give the same weights."""
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model, _ = run(tmp_path, new_model(**still), weight_decay=0.1)
    plain, batches = new_model(**still).train(), Batches(micro=1)
    decayed = [
        p for name, p in plain.named_parameters() if not name.endswith("bias") and "LayerNorm" not in name and "layer_norm" not in name
    ]
    others = [p for p in plain.parameters() if not any(p is q for q in decayed)]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)
    for step in range(18):
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * (step / 3 if step < 3 else (18 - step) / 15)
        batch = batches[step]
        plain.losses(plain(batch["micro"][0]), batch["micro"][0], batch).sum().backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5, msg=name)


def test_a_model_without_mlm_trains_on_its_labels(tmp_path):
    _, result = run(tmp_path, new_model(mlm=False), Batches(mlm=False))
    assert {row["mlm_loss"] for row in result["log"]} == {0}
    assert all(row["loss"] == row["objective_loss"] for row in result["log"])


# ------------------------------------------------------------------ what is written


def test_log_result_and_tensorboard_say_the_same(whole):
    folder, _, result = whole
    assert rows(folder) == result["log"]
    assert [row["step"] for row in result["log"]] == [5, 10, 15, 18]
    assert [row["learning_rate"] for row in result["log"]] == pytest.approx([3e-3 * (18 - step) / 15 for step in (4, 9, 14, 17)])
    for row in result["log"]:
        assert row["loss"] == pytest.approx(row["mlm_loss"] + row["objective_loss"])
        assert "detection_loss" not in row
    tokens = sum(int(micro["attention_mask"].sum()) for batch in map(Batches().__getitem__, range(18)) for micro in batch["micro"])
    assert result["steps"] == 18
    assert result["tokens"] == tokens == result["log"][-1]["tokens"]
    assert 0 < result["seconds"] < 60
    assert result["best"] is None
    board = EventAccumulator(str(folder / "tensorboard")).Reload()
    shown = [(event.step, event.value) for event in board.Scalars("mlm_loss")]
    assert shown == [(row["step"], pytest.approx(row["mlm_loss"])) for row in result["log"]]


def test_the_last_two_checkpoints_are_kept_and_hold_no_pickle(whole):
    folder, last, _ = whole
    checkpoints = folder / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["checkpoint-16", "checkpoint-18"]
    files = {path.name for path in (checkpoints / "checkpoint-18").iterdir()}
    assert {Path(name).suffix for name in files} == {".json", ".safetensors"}
    saved = new_model()
    load_model(saved, checkpoints / "checkpoint-18" / "model.safetensors")
    assert weights(saved) == last


def test_the_bar_is_shown_only_when_asked_for(tmp_path, capfd):
    run(tmp_path / "a")
    quiet = capfd.readouterr()
    run(tmp_path / "b", progress=True)
    shown = capfd.readouterr()
    assert "18/18" not in quiet.err
    assert "loss" not in quiet.out
    assert "18/18" in shown.err


# ------------------------------------------------------------------ kills and resumes

KILLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from tests.training.test_loop import MOMENTS, STOPPING, Batches, run
owners = {"fsync": os, "rename": Path, "replace": Path, "__getitem__": Batches, "rmtree": shutil}

def dying(function, calls):
    left = [calls]
    def call(*given, **named):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)
    return call

for how, moments in MOMENTS.items():
    folder = Path(sys.argv[1]) / how
    folder.mkdir()
    for what, number in moments:
        child = os.fork()
        if child == 0:
            setattr(owners[what], what, dying(getattr(owners[what], what), number))
            run(folder, **STOPPING if how == "stopping" else {})
            os._exit(0)
        _, status = os.waitpid(child, 0)
        held = sorted(path.name for path in (folder / "checkpoints").iterdir())
        print(how, what, number, "killed" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "ended", *held)
"""
# At the n-th call of these a run is killed (the first batch is read once more at the start): before its first step, in a step, while a
# file of a checkpoint or of the best weights is written, before they are renamed, while the log is taken up again, while an old
# checkpoint is removed.
PLAIN = [("__getitem__", 2), ("__getitem__", 4), ("fsync", 4), ("replace", 1), ("fsync", 9), ("rename", 1), ("rmtree", 5), ("fsync", 12)]
MOMENTS = {"plain": PLAIN, "stopping": [("fsync", 3), ("rename", 1), ("fsync", 8), ("__getitem__", 7), ("rename", 3)]}


@pytest.fixture(scope="module")
def kills(tmp_path_factory):
    """Runs that were killed again and again: their folders, and what lay in `checkpoints` after each kill."""
    folder, here = tmp_path_factory.mktemp("killed"), Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(folder)], env=environment, cwd=here, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def without_time(log):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in log]


def near_fifty(model):
    """A metric that rises, then falls: how near the weights' way from the start is to 50 (it is 42 after 6 steps, 56 after 9)."""
    way = sum((now - then).abs().sum().item() for now, then in zip(model.parameters(), new_model().parameters()))
    return {"map": -abs(way - 50)}


STOPPING = {"evaluate": near_fifty, "evaluate_every": 3, "patience": 2}


def test_killed_at_many_moments_a_run_ends_in_the_same_bytes(whole, kills):
    folder, output = kills[0] / "plain", kills[1]
    assert output.count("plain") == len(MOMENTS["plain"])
    assert "ended" not in output, output
    assert ".checkpoint-" in output  # one at least lay there half written
    model, result = run(folder)
    assert weights(model) == whole[1], output
    assert without_time(result["log"]) == without_time(whole[2]["log"]) == without_time(rows(folder))
    assert result["tokens"] == whole[2]["tokens"]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["checkpoint-16", "checkpoint-18"]
    model, again = run(folder, batches=Untouchable())
    assert weights(model) == whole[1]
    assert without_time(again["log"]) == without_time(result["log"])


class Untouchable(Batches):
    """Batches of a finished run, which trains no more: the first is read once, and tells the data."""

    left = 1

    def __getitem__(self, step):
        assert self.left and step == 0
        self.left = 0
        return super().__getitem__(step)


def test_tensorboard_shows_a_killed_run_without_the_steps_that_were_lost(whole, kills):
    run(kills[0] / "plain")
    board = EventAccumulator(str(kills[0] / "plain" / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("loss")] == [row["step"] for row in whole[2]["log"]]


def test_dropout_is_seeded_by_the_step(tmp_path, monkeypatch):
    used, seed = [], torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda value: used.append(value) or seed(value))
    run(tmp_path)
    assert used[-54:] == [trainer.step_seed(3, step, micro) for step in range(18) for micro in range(3)]
    assert len({trainer.step_seed(a, b, c) for a in range(12) for b in range(112) for c in range(3)}) == 12 * 112 * 3


def test_early_stopping_survives_kills(kills, tmp_path):
    left_alone, result = run(tmp_path, **STOPPING)
    assert (result["steps"], result["best"]["step"]) == (15, 9)
    folder = kills[0] / "stopping"
    for batches in (Batches(), Untouchable()):
        model, again = run(folder, batches=batches, **STOPPING)
        assert weights(model) == weights(left_alone), kills[1]
        assert again["best"] == result["best"]
        assert without_time(again["log"]) == without_time(result["log"])


@pytest.mark.parametrize(("warmup_steps", "warns"), [(2, False), (3, True), (30, True)])
def test_a_warm_up_that_never_ends_is_warned_of(tmp_path, caplog, warmup_steps, warns):
    run(tmp_path, batches=Batches(steps=3), warmup_steps=warmup_steps)
    told = f"warm-up takes {warmup_steps} steps and the training has 3: the learning rate never reaches its peak, 0.003; set warmup_steps"
    assert (told in caplog.text) == warns


@pytest.mark.parametrize("damage", ["no marker", "a byte", "a file less", "a torn marker"])
def test_a_checkpoint_that_is_not_whole_is_never_taken(whole, tmp_path, damage, caplog):
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    newest = tmp_path / "checkpoints" / "checkpoint-18"
    if damage == "no marker":
        (newest / "complete.json").unlink()
    elif damage == "a byte":
        content = bytearray((newest / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (newest / "model.safetensors").write_bytes(content)
    elif damage == "a file less":
        (newest / "optimizer.safetensors").unlink()
    else:
        (newest / "complete.json").write_text('{"model.safe')
    assert saved.newest_checkpoint(tmp_path / "checkpoints").name == "checkpoint-16"
    assert not newest.exists()
    assert "checkpoint-18 is unfinished or damaged" in caplog.text
    assert weights(run(tmp_path)[0]) == whole[1]


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    for name in (".checkpoint-99.part", ".best.former", "best"):
        (tmp_path / name).mkdir()
    assert saved.newest_checkpoint(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_a_full_disk_leaves_the_former_checkpoint(whole, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Filling(Batches):
        def __getitem__(self, step):
            if step == 10:
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
            return super().__getitem__(step)

    try:
        with pytest.raises(OSError, match=r"checkpoints/checkpoint-12 could not be written"):
            run(tmp_path, batches=Filling())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-8"]
    assert weights(run(tmp_path)[0]) == whole[1]


def test_no_pickle_is_read_or_written(whole, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle")

    for function in ("load", "save"):
        monkeypatch.setattr(torch, function, refuse)
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints" / "checkpoint-18")
    assert weights(run(tmp_path)[0]) == whole[1]


@pytest.mark.parametrize("place", ["checkpoint-18", "checkpoint-20", "."])
def test_a_pickle_among_the_checkpoints_is_refused_and_nothing_removed(whole, tmp_path, place):
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    checkpoints = tmp_path / "checkpoints"
    (checkpoints / place).mkdir(exist_ok=True)
    (checkpoints / place / "rng_state.pth").write_bytes(b"a pickle")
    before = sorted(checkpoints.rglob("*"))
    with pytest.raises(ValueError, match=r"rng_state.pth: a pickle can run any code when it is opened, so it is refused.* python -c "):
        run(tmp_path)
    assert sorted(checkpoints.rglob("*")) == before


def test_checkpoints_of_other_settings_are_refused(whole):
    with pytest.raises(ValueError, match="this one has best_metric mrr instead of map"):  # the best weights are those of map
        run(whole[0], best_metric="mrr")
    with pytest.raises(ValueError, match=r"checkpoint-18 is of another training, this one has peak_lr 0\.1 instead of 0\.003: give an"):
        run(whole[0], peak_lr=0.1)


class Stated(Batches):
    """`Batches` that say what they hold."""

    def __init__(self, content, **given):
        super().__init__(**given)
        self.content = content

    def __getitem__(self, step):
        return super().__getitem__(step) | {"content": self.content}


def test_checkpoints_of_other_batches_are_refused(whole, tmp_path):
    run(tmp_path, batches=Stated(7, steps=4))
    run(tmp_path, batches=Stated(7, steps=4, micro=2))  # cut otherwise
    with pytest.raises(ValueError, match="this one has first_batch 8 instead of 7"):
        run(tmp_path, batches=Stated(8, steps=4))


# ------------------------------------------------------------------ evaluation and early stopping


def scripted(values):
    """An `evaluate` that gives these values, and the weights that it saw."""
    seen = []

    def evaluate(model):
        assert not model.training
        seen.append(weights(model))
        return {"map": values[len(seen) - 1], "p@1": 0.5}

    return evaluate, seen


def test_evaluation_is_logged_and_changes_nothing(whole, tmp_path):
    evaluate, seen = scripted([0.1, 0.9, 0.3])
    rows = []
    model, result = run(tmp_path, evaluate=evaluate, evaluate_every=8, on_log=rows.append)
    assert rows == result["log"]
    evaluated = [(row["step"], row["eval_map"], row["eval_p@1"]) for row in result["log"] if "eval_map" in row]
    assert evaluated == [(8, 0.1, 0.5), (16, 0.9, 0.5), (18, 0.3, 0.5)]
    assert weights(model) == seen[-1] == whole[1]  # no patience: the last weights stay
    assert not (tmp_path / "checkpoints" / "best").exists()
    _, result = run(tmp_path / "last", evaluate=scripted([0.1])[0])
    assert [row["step"] for row in result["log"] if "eval_map" in row] == [18]


@pytest.mark.parametrize(
    ("values", "patience", "metric", "steps", "best"),
    [
        ([0.1, 0.4, 0.4, 0.3, 0.9], 2, "map", 12, 1),  # an equal value is no better one
        ([0.1, 0.4, 0.3, 0.5, 0.2, 0.1], 2, "map", 18, 3),
        ([0.5, 0.4, 0.3, 0.2, 0.1, 0.6], 9, "map", 18, 5),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1, "p@1", 6, 0),
    ],
)
def test_patience_stops_and_gives_the_best_weights_back(tmp_path, values, patience, metric, steps, best):
    evaluate, seen = scripted(values)
    model, result = run(tmp_path, evaluate=evaluate, evaluate_every=3, patience=patience, best_metric=metric)
    assert result["steps"] == steps
    assert result["best"] == {"step": 3 * (best + 1), metric: values[best] if metric == "map" else 0.5}
    assert weights(model) == seen[best]
    assert len(seen) == steps // 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 2}, "needs `evaluate`"),
        (STOPPING | {"best_metric": "loss"}, "better where it is higher, got 'loss'; let `evaluate`"),
        ({"evaluate": scripted([0.1])[0], "patience": 2}, "and `evaluate_every`"),
        (STOPPING | {"evaluate": scripted([0.1])[0], "best_metric": "mrr"}, "should give mrr, to stop by; it gave map, p@1"),
        ({"warmup_steps": 0.1}, "warmup_steps: a whole number of steps expected, no share of them, got 0.1"),
        ({"evaluate": scripted([math.nan])[0], "evaluate_every": 3, "patience": 2}, "step 3: evaluate gave map nan"),
        ({"mlm_weight": 7.0, "model": new_model(mlm=False), "batches": Batches(mlm=False)}, "mlm_weight: the model has no masked-"),
        ({"detection_weight": 5.0}, "detection_weight: only ELECTRA detects tokens, 5 came for another model"),
        ({"precision": "fp16"}, "precision: one of auto, fp32, bf16 expected, got 'fp16'"),
        ({"batches": Batches(steps=0)}, "no steps"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, message):
    with pytest.raises((ValueError, FloatingPointError), match=message):
        run(tmp_path, **options)


# ------------------------------------------------------------------ options


OTHERS = {"seed": 4, "peak_lr": 1e-3, "warmup_steps": 9, "weight_decay": 0.5, "precision": "bf16"}
OTHERS |= {"mlm_weight": 0.0, "objective_weight": 0.0}


@pytest.mark.parametrize("name", OTHERS)
def test_every_option_changes_the_weights(whole, tmp_path, name):
    option = {name: OTHERS[name]}
    model, result = run(tmp_path, **option)
    assert weights(model) != whole[1]
    parts = {name: option.get(f"{name}_weight", 1.0) for name in ("mlm", "objective")}
    for row in result["log"]:
        assert row["loss"] == pytest.approx(sum(weight * row[f"{name}_loss"] for name, weight in parts.items()))


def test_how_often_to_save_and_to_log(whole, tmp_path):
    model, result = run(tmp_path, save_every=5, log_every=6)
    assert weights(model) == whole[1]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["checkpoint-15", "checkpoint-18"]
    assert [row["step"] for row in result["log"]] == [6, 12, 18]


class Slow(Batches):
    """Each step takes 50 seconds by a clock of its own."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.now = 0.0

    def __getitem__(self, step):
        self.now += 50
        return super().__getitem__(step)

    def monotonic(self):
        return self.now


@pytest.mark.parametrize(
    ("options", "saved"),
    [
        ({}, [3, 6, 9, 12, 15, 18]),  # after 150 seconds; two steps are 100
        ({"save_seconds": 300}, [6, 12, 18]),
        ({"save_seconds": 0}, list(range(1, 19))),
        ({"save_every": 2, "save_seconds": 90}, [2, 4, 6, 8, 10, 12, 14, 16, 18]),
        ({"save_every": 5}, [3, 5, 8, 10, 13, 15, 18]),  # any checkpoint starts the time anew
    ],
)
def test_a_checkpoint_is_written_in_time_whatever_the_steps(whole, tmp_path, monkeypatch, options, saved):
    batches, steps, save = Slow(), [], trainer.checkpoints.save
    monkeypatch.setattr(trainer, "time", batches)
    monkeypatch.setattr(trainer.checkpoints, "save", lambda *given: steps.append(given[-1]["step"]) or save(*given))
    model, _ = run(tmp_path, batches=batches, **{"save_every": 10**6} | options)
    assert steps == saved and weights(model) == whole[1]


@pytest.mark.parametrize("stop", [1, 7, 17])
def test_a_run_of_one_epoch_goes_on_where_the_clock_saved_it(whole, tmp_path, stop):
    options = {"save_every": 10**6, "save_seconds": 0}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, batches=Stopping(Batches(), stop), **options)
    assert saved.newest_checkpoint(tmp_path / "checkpoints").name == f"checkpoint-{stop}"
    model, result = run(tmp_path, batches=Later(Batches(), stop), **options)
    assert weights(model) == whole[1] and without_time(result["log"]) == without_time(whole[2]["log"])


@pytest.mark.parametrize(("patience", "roughly"), [(None, "about"), (9, "at most")])
def test_the_size_and_the_time_of_a_training_are_told_once(whole, tmp_path, monkeypatch, capfd, patience, roughly):
    """By hand: 18 steps; the clock of 50 seconds a step is read after the second, so 16 are left: 800 seconds."""
    batches = Slow()
    monkeypatch.setattr(trainer.expectation, "time", batches)
    better = itertools.count()  # the last weights are the best
    evaluations = {"evaluate": lambda model: {"map": next(better)}, "evaluate_every": 3}
    model, _ = run(tmp_path, batches=batches, progress=True, patience=patience, **evaluations)
    first, second = [line.strip() for line in capfd.readouterr().out.splitlines() if "steps" in line]
    tokens = 18 * Batches()[0]["tokens"]
    assert first.startswith("18 steps to train, about ")
    assert abs(int(first.split()[-2].replace(",", "")) - tokens) <= 0.05 * tokens
    assert second == f"{roughly} 13 minutes for the 16 steps left, by the first 2"
    assert weights(model) == whole[1]


def test_what_is_short_or_hidden_is_not_estimated(tmp_path, capfd):
    run(tmp_path / "short", progress=True)
    assert [line.split(",")[0] for line in capfd.readouterr().out.splitlines() if "steps" in line] == ["18 steps to train"]
    run(tmp_path / "hidden")
    assert "steps" not in capfd.readouterr().out


def test_the_best_weights_and_their_row_are_kept_together(tmp_path):
    """Else a run that is killed just after, and is worse at that step when it repeats it, ends in weights that no row tells of."""
    rare = {"evaluate_every": 3, "patience": 9, "save_every": 100}
    evaluate, seen = scripted([0.5, 0.9])
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, batches=Stopping(Batches(), 7), evaluate=evaluate, **rare)
    model, result = run(tmp_path, evaluate=scripted([0.4] * 6)[0], **rare)
    assert result["best"] == {"step": 6, "map": 0.9} and weights(model) == seen[1]


def test_precision(whole, tmp_path):
    named = "bf16" if torch.cuda.is_available() else "fp32"
    assert weights(run(tmp_path / "a", precision=named)[0]) == weights(run(tmp_path / "b", precision="auto")[0])
    (micro,), seen = Batches(micro=1)[0]["micro"], []
    half, _ = run(tmp_path / "c", precision="bf16", evaluate=lambda model: seen.append(model(micro)[1].detach()) or {"map": 1.0})
    assert {p.dtype for p in half.parameters()} == {torch.float32}
    assert half(micro)[1].dtype == torch.float32
    assert torch.allclose(half.eval()(micro)[1], seen[0], rtol=0, atol=1e-5) or torch.cuda.is_available()  # scored in fp32
    assert not hasattr(half.forward, "__wrapped__")  # autocast is gone after training


def test_a_run_keeps_the_precision_that_auto_was_where_it_began(tmp_path):
    """One that was begun on a GPU in bf16 goes on elsewhere, and is opened there when it is finished."""
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a", batches=Stopping(Batches(), 13), precision="bf16")
    gone_on, _ = run(tmp_path / "a", precision="auto")
    assert weights(gone_on) == weights(run(tmp_path / "b", precision="bf16")[0])
    assert weights(run(tmp_path / "b", precision="auto")[0]) == weights(gone_on)
    with pytest.raises(ValueError, match="this one has bf16 False instead of True"):
        run(tmp_path / "b", precision="fp32")


def test_bf16_is_for_a_gpu_that_computes_in_it(monkeypatch):
    """One from before Ampere imitates it, and has no flash attention."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "T4")
    for computes in (True, False):
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda including_emulation=True, computes=computes: including_emulation or computes
        )
        assert Options(**USUAL, precision="auto").bf16 == computes
        assert scoring.has_bf16(torch.device("cuda")) == computes and not scoring.has_bf16(torch.device("cpu"))
        assert not Options(**USUAL, precision="fp32").bf16
    with pytest.raises(ValueError, match="bf16: T4 does not compute in it; take precision=fp32"):
        _ = Options(**USUAL, precision="bf16").bf16
    with pytest.raises(ValueError, match="T4 does not compute in it"):
        scoring.require_bf16(True, torch.device("cuda"))


def test_a_gpu_compiles_only_what_is_long_enough():
    """Compiling takes longer than it saves in a short training. An option decides for itself, on a CPU too."""
    trained = SimpleNamespace(options=Options(**USUAL), steps=500, batches=[{"micro": [{}, {}]}], device=torch.device("cuda"))
    assert loop._compiles(trained)
    trained.steps = 499
    assert not loop._compiles(trained)
    trained.options = Options(**USUAL, compile=True)
    assert loop._compiles(trained)
    trained.options, trained.steps = Options(**USUAL, compile=False), 10**6
    assert not loop._compiles(trained)
    trained.options, trained.device = Options(**USUAL), torch.device("cpu")
    assert not loop._compiles(trained)


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the fused attention is the fast one")
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_cpu_trains_with_plain_attention(tmp_path, monkeypatch, precision):
    model, seen = new_model(), set()
    forward = model.backbone.forward
    monkeypatch.setattr(
        model.backbone, "forward", lambda *args, **given: seen.add(model.backbone.config._attn_implementation) or forward(*args, **given)
    )
    run(tmp_path, model, precision=precision)
    assert seen == {"eager"} and model.backbone.config._attn_implementation == "sdpa"
    model.backbone.embeddings.LayerNorm.weight.data[0] = float("nan")
    with pytest.raises(FloatingPointError):
        run(tmp_path / "broken", model, precision=precision)
    assert model.backbone.config._attn_implementation == "sdpa"


def test_plain_attention_gives_the_same_gradients_for_every_part_of_a_model(corpus, tokenizer):
    """An ELECTRA: its generator has a config of its own."""
    model = electra.tiny(tokenizer, seed=1).eval()
    batch = inputs.PretrainingBatches(lambda epoch: sampling.Sampler(corpus, "ssp", max_tokens=64), 1, 8, 10**6, 1)[0]
    counts, found = {name: batch[name] for name in ("masked", "examples", "tokens")}, []
    for context in (contextlib.nullcontext(), packing.plain_attention(model)):
        with context:
            torch.manual_seed(0)
            parts = model.losses(model(batch["micro"][0]), batch["micro"][0], counts)
            assert model.generator.config._attn_implementation == ("eager" if found else "sdpa")
        model.zero_grad()
        (parts @ torch.tensor([1.0, 1.0, 50.0])).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-4)
    assert found[0].abs().sum() > 0 and model.generator.config._attn_implementation == "sdpa"


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    model = new_model()
    with torch.no_grad():
        model.backbone.embeddings.LayerNorm.weight[0] = float("nan")
    with pytest.raises(FloatingPointError, match="step 5: the loss is nan"):
        run(tmp_path, model)
