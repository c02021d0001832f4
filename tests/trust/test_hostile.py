"""A sample of hostile inputs, and that each way of breaking is noticed."""

import json
import os
import signal
import sys
import time

import pytest

from asutil.io import files
from asutil.tasks import vectors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are bounded through Linux's own counters")
if sys.platform == "linux":
    from tests.trust import Broken, hostile

SOME = ("sources.documents documents.jsonl", "answers.load_answers asked.tsv", "claims.load_claims", "vectors.read texts.parquet")


def tried(folder, inputs, *names):
    chosen = [loader for loader in hostile.LOADERS if str(loader).startswith(names)]
    assert len(chosen) == len(names)
    return hostile.figures(hostile.tried(chosen, inputs, 1, folder, large=()), 1)


@pytest.mark.slow
def test_a_sample_is_accepted_with_an_account_or_refused_by_name(tmp_path):
    found = tried(tmp_path, 120, *SOME)
    assert found["inputs"] == 120 == found["accepted"] + found["refused"]
    assert found["accepted"] > 10 and found["refused"] > 10 and found["mutators"] > 30


def test_the_same_seed_gives_the_same_inputs(tmp_path):
    found = [hostile.tried([hostile.LOADERS[0]], 20, seed, tmp_path, large=()) for seed in (1, 1, 2)]
    made = [[(one["mutator"], one["row"], one["verdict"]) for one in some] for some in found]
    assert made[0] == made[1] != made[2]


def test_names_and_loaders_are_distinct():
    assert len({str(loader) for loader in hostile.LOADERS}) == len(hostile.LOADERS)


def read_with(change):
    """vectors.read, its rows changed."""
    read = vectors.read
    return lambda path, columns: change(list(read(path, columns)))


def to_its_end(path, columns):
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (read_with(lambda rows: rows[1:]), "texts: .* expected, got"),
        (read_with(lambda rows: [(name, text.strip("T")) for name, text in rows]), "texts: .* expected, got"),
        (lambda path, columns: {}["x"], "KeyError at"),
        (lambda path, columns: (_ for _ in ()).throw(ValueError("something is wrong")), "refused without the file's name"),
        (lambda path, columns: (_ for _ in ()).throw(ValueError(f"{path.name} is wrong")), "refused without line"),
        (lambda path, columns: [len(bytearray(b"x") * 80_000_000)], "with [789][0-9] MB of memory, more than 50"),
        (lambda path, columns: time.sleep(9), "ended by SIGALRM after 1 s"),
        (lambda path, columns: max(iter(int, 1)), "ended by SIGPROF after 1 s"),
        (to_its_end, "ended by SIGSEGV"),
    ],
    ids=["a row is lost", "a text is changed", "another error", "no file", "no row", "memory", "a hang", "a loop", "a crash"],
)
def test_what_is_broken_is_noticed(tmp_path, monkeypatch, wrong, said):
    monkeypatch.setattr(vectors, "read", wrong)
    monkeypatch.setattr(hostile, "SECONDS", {False: 1 if "after" in said else 30})
    monkeypatch.setattr(hostile, "WAITING", 1 if "SIGALRM" in said else 20)
    monkeypatch.setattr(hostile, "MEGABYTES", {False: 50})
    with pytest.raises(Broken, match=rf"inputs with seed 1, the first:\n(.*\n)*.*{said}"):
        tried(tmp_path, 1 if "SIG" in said else 6, "vectors.read texts.jsonl")


def test_json_that_is_read_without_care_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "parsed", lambda text, place: json.loads(text))
    with pytest.raises(Broken, match="refused without the file's name: JSONDecodeError"):
        tried(tmp_path, 40, "sources.documents documents.jsonl")
