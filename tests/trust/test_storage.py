"""A sample of the faults, and that a save which loses something is noticed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from asutil.io import disk
from tests.trust import Broken, damaged, storage

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="faults are injected by a library in C")

TRIED = """
import json, random, sys, tempfile
from pathlib import Path
from tests.trust import saves, storage
from asutil.io import disk
faults = storage.Faults()
for writer in (disk.atomically, lambda path, write: write(path) or path):  # ours, and a careless one
    disk.atomically = writer
    folder, table = Path(tempfile.mkdtemp(dir=sys.argv[1])), saves.table()
    table.prepare(folder / "before")
    writes = storage._in_a_child(table, folder / "before", folder, faults, 10**9, 0)["writes"]
    points = [(number, kind) for number in range(1, writes + 1) for kind in range(len(storage.KINDS))]
    wrong = [storage._in_a_child(table, folder / "before", folder, faults, *point)["wrong"] for point in points]
    print(json.dumps([writes, sum(map(bool, wrong)), next(filter(None, wrong), "nothing")]))
"""


@needs_compiler
def test_a_table_is_whole_whatever_write_fails_and_a_careless_writer_is_noticed(tmp_path):
    environment = {**os.environ, "LD_PRELOAD": str(storage.compiled(tmp_path)), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", TRIED, str(tmp_path)], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (writes, wrong, first), (_, wrong_of_careless, _) = map(json.loads, done.stdout.splitlines())
    assert writes > 3 and wrong == 0, first
    assert wrong_of_careless > 0


def test_a_reader_without_hashes_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "check", lambda path, sha256: path)
    with pytest.raises(Broken, match="it was read all the same"):
        damaged.check(False, 0, tmp_path)
