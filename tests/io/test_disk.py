"""Files that are whole or not there: what is refused, what stays, and who waits for whom."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from asutil.io import disk

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(0, 99), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_what_is_sealed_is_read_back(tmp_path_factory, content):
    path = disk.write_json(tmp_path_factory.mktemp("json") / "record.json", content)
    content.pop(disk.SEAL, None)
    assert disk.read_json(path) == json.loads(json.dumps(content))
    assert disk.sealed(disk.sealed(content)) == disk.sealed(content)


def test_every_changed_byte_is_refused_or_says_the_same(tmp_path):
    path = disk.write_json(tmp_path / "record.json", {"map": 0.5, "seed": 1, "name": "finetune", "each": [1, 2]})
    whole, content, refused = path.read_bytes(), disk.read_json(path), 0
    for place in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                assert disk.read_json(path) == content  # white space
            except ValueError as error:
                assert f"{tmp_path.name}/record.json is damaged" in str(error)
                refused += 1
    assert refused > 7 * len(whole)
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"record\.json is damaged"):
            disk.read_json(path)
    path.write_bytes(whole.replace(b"0.5", b"0.6"))
    came = disk.sealed(content | {"map": 0.6})[disk.SEAL][:16]
    with pytest.raises(ValueError, match=f"sha256 {disk.sealed(content)[disk.SEAL][:16]} expected, its content has {came}"):
        disk.read_json(path)


def test_a_number_that_is_none_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        disk.write_json(tmp_path / "record.json", {"map": float("nan")})
    assert not list(tmp_path.iterdir())


KILLED = """
import os, sys
from pathlib import Path
from asutil.io import disk

Path.replace = lambda *_: os.kill(os.getpid(), 9)
disk.write_json(Path(sys.argv[1]), {"map": 0.5})
"""


def test_what_a_killed_process_left_of_a_file_goes_with_its_next_writing(tmp_path):
    path, living = tmp_path / "index.json", tmp_path / f".index.json.{os.getppid()}.part"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)]).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".index.json.") and not path.exists()
    other, folder = left.with_name(left.name.replace("index", "other index")), tmp_path / ".index.json.part"
    for stays in (living, other):
        stays.write_text("half")
    folder.mkdir()
    disk.write_json(path, {"map": 0.5})
    assert {*tmp_path.iterdir()} == {path, living, other, folder}


def test_a_changed_or_missing_file_is_refused_with_both_hashes(tmp_path):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"abc")
    known = disk.hashes(tmp_path)
    assert known == {path.name: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}  # FIPS 180-2, appendix B.1
    assert disk.check(path, known[path.name]) == path
    with pytest.raises(ValueError, match=r"scores\.parquet is damaged or was changed: sha256 no such file expected, got ba7816bf8f01cfea"):
        disk.check(path, None)
    path.unlink()
    with pytest.raises(ValueError, match=r"scores\.parquet .*: sha256 ba7816bf8f01cfea expected, got no such file"):
        disk.check(path, known[path.name])


def test_an_error_names_the_path_and_leaves_the_former_file(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("former")

    def fails(part):
        part.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=rf"\[Errno 28\] {path} could not be written: .*No space left"):
        disk.atomically(path, fails)
    assert path.read_text() == "former" and [path] == list(tmp_path.iterdir())


def killed():
    raise KeyboardInterrupt


@pytest.mark.parametrize(("hidden", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_colleague_reads_what_new_files_let_him_read(tmp_path, hidden, mode):
    before = os.umask(hidden)
    try:
        with disk.whole_folder(tmp_path / "model") as part:
            (part / "deeper").mkdir()
            for path in (part / "config.json", part / "deeper" / "a.json"):
                path.write_text("{}")
            save_file({"a": np.zeros(2)}, part / "model.safetensors")
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in files] == [mode] * 3
    assert (tmp_path / "model" / "deeper").stat().st_mode & 0o777 == 0o777 & ~hidden


@pytest.mark.parametrize("swept", [True, False])
def test_a_folder_that_a_killed_program_was_replacing_is_not_lost(tmp_path, monkeypatch, swept):
    folder = tmp_path / "model"
    with disk.whole_folder(folder) as part:
        (part / "weights").write_text("old")
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda path, target: rename(path, target) if path == folder else killed())
    with pytest.raises(KeyboardInterrupt), disk.whole_folder(folder) as part:
        (part / "weights").write_text("new")
    monkeypatch.undo()
    assert not folder.exists()
    if swept:
        disk.sweep(tmp_path)
        assert (folder / "weights").read_text() == "old"
    with pytest.raises(KeyboardInterrupt), disk.whole_folder(folder):
        killed()
    assert (folder / "weights").read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["model"]


HOLDER = """
import sys, time
from pathlib import Path
from asutil.io import disk
held = disk.lock_folder(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_has_one_process_at_a_time_and_none_that_was_killed(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    start = lambda: subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    first = start()
    assert first.stdout.readline() == "held\n"
    (folder / ".record.json.7.part").write_text("{")  # of the first, which writes it just now
    second = start()
    assert second.stdout.readline() == "run is open in another process: waiting for it to end\n"
    assert (folder / ".record.json.7.part").exists()
    time.sleep(0.2)
    first.kill()
    assert second.stdout.readline() == "held\n"
    assert not (folder / ".record.json.7.part").exists()
    second.kill()
    first.wait(), second.wait()
    held = [disk.lock_folder(folder), disk.lock_folder(folder)]  # the same process may ask twice
    assert held[0] is held[1]
    held[0].release(force=True)
