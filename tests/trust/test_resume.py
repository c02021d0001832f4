"""A sample of the kills, and that work which does not go on where it was is noticed."""

import os
import random
import signal
import time

import pytest

from asutil import corpus
from asutil.corpus import index
from asutil.tasks import base
from asutil.training import trainer
from tests.trust import Broken, kills, resume

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    return resume.Held(tmp_path_factory.mktemp("held"), random.Random(0))


def of(held, folder):
    """The same documents and index, in another folder to work in."""
    one = object.__new__(resume.Held)
    one.__dict__ |= held.__dict__ | {"folder": folder}
    return one


def test_a_killed_pre_training_and_other_settings(held, tmp_path):
    mine = of(held, tmp_path)
    assert resume.pretraining(mine, 3, random.Random(1))["kills"] == 3
    assert resume.others(mine) == 12


def test_dropout_that_is_not_seeded_by_the_step_is_noticed(held, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "step_seed", lambda *step: int.from_bytes(os.urandom(4), "big"))
    with pytest.raises(Broken, match="weights [0-9a-f]{16} expected, as without a kill, got"):
        resume.pretraining(of(held, tmp_path), 1, random.Random(1))


def test_an_index_that_keeps_torn_shards_is_noticed(held, tmp_path, monkeypatch):
    assert resume.index(of(held, tmp_path), 2, random.Random(2)) == 2
    build, draw = corpus.build, random.SystemRandom()
    monkeypatch.setattr(index, "build", lambda made, *given, **named: build(made[: draw.randint(1, len(made))], *given, **named))
    with pytest.raises(Broken, match=r"corpus: .* differ from an index whose building was not killed"):
        resume.index(of(held, tmp_path / "again"), 1, random.Random(2))


class Late(random.Random):
    """Kills as late as they may come: before the first window there is nothing that could be scored again."""

    def uniform(self, low, high):
        return high


def test_windows_that_are_scored_again_are_noticed(held, tmp_path, monkeypatch):
    assert resume.scoring(of(held, tmp_path), 1, random.Random(3)) == 1
    monkeypatch.setattr(base, "_read_window", lambda path: None)
    with pytest.raises(Broken, match="windows scored for 60 and"):
        resume.scoring(of(held, tmp_path / "again"), 1, Late(4))


def test_work_that_fails_is_no_end(tmp_path):
    with pytest.raises(Broken, match="the work failed"):
        kills.again_and_again(lambda folder: 1 / 0, tmp_path, 1, random.Random(0))


def test_work_that_hangs_when_it_is_interrupted_is_noticed(tmp_path, monkeypatch):
    def deaf(folder):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / "begun").touch()
        time.sleep(60)

    monkeypatch.setattr(kills, "SIGNALS", (signal.SIGTERM,))
    monkeypatch.setattr(kills, "LONGEST", 0.5)
    with pytest.raises(Broken, match="the work still ran 0.5 seconds after SIGTERM"):
        kills.begun(deaf, tmp_path, 0, lambda folder: (folder / "begun").exists(), random.Random(0))
