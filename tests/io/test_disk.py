"""Files that are whole or not there: what is refused, what stays, and who waits for whom."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import save_file

from asutil.io import disk

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(0, 99), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
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
    entries = json.loads(whole)
    path.write_text(json.dumps({name: entries[name] for name in sorted(entries, reverse=True)}))
    assert disk.read_json(path) == content  # in another order
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
    path = tmp_path / "index.json"
    living = tmp_path / f".index.json.{disk._machine()}.{os.getppid()}.0123abcd.part"
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


def test_a_folder_has_the_listed_files_and_no_others(tmp_path):
    for name in ("model/config.json", "list.json", "README.md", ".cache/etag"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    sums = {"model/config.json": disk.hashes(tmp_path / "model")["config.json"]}
    disk.check_all(tmp_path, sums, "list.json")
    with pytest.raises(ValueError, match=r"^list\.json is damaged: names and hashes of files are expected, got \['model/config"):
        disk.check_all(tmp_path, list(sums), "list.json")
    with pytest.raises(ValueError, match=r"config\.json is damaged .* got .*; make it again$"):
        disk.check_all(tmp_path, {"model/config.json": "0" * 64}, "list.json", "; make it again")
    with pytest.raises(ValueError, match=r"config\.json is not in the list of list\.json: move it from .*; make it again$"):
        disk.check_all(tmp_path, {}, "list.json", "; make it again")


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(28, "No space left on device"), 28),
        (SafetensorError("I/O error: No space left on device (os error 28)"), 28),
        (Exception("No space left on device (os error 28)"), 28),  # as tokenizers end
        (SafetensorError("No space left"), 5),
    ],
)
def test_an_error_names_the_path_and_leaves_the_former_file(tmp_path, error, number):
    path = tmp_path / "table.parquet"
    path.write_text("former")

    def fails(part):
        part.write_text("half")
        raise error

    with pytest.raises(OSError, match=rf"\[Errno {number}\] {path} could not be written: .*No space left"):
        disk.atomically(path, fails)
    assert path.read_text() == "former" and [path] == list(tmp_path.iterdir())


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


def written(folder: Path, text: str) -> None:
    with disk.whole_folder(folder) as part:
        (part / "weights").write_text(text)


WRITER = """
import os, sys
from pathlib import Path
from asutil.io import disk

folder, exchanges, calls = Path(sys.argv[1]), sys.argv[2] == "exchange", int(sys.argv[3])

def counted(rename):
    def call(*given, **options):
        global calls
        calls -= 1
        if not calls:
            os.kill(os.getpid(), 9)
        return rename(*given, **options)
    return call

Path.rename = counted(Path.rename)
disk._exchanged = counted(disk._exchanged) if exchanges else lambda *_: False
disk.shutil.rmtree = counted(disk.shutil.rmtree)
with disk.whole_folder(folder) as part:
    (part / "weights").write_text("new")
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_a_folder_is_the_old_or_the_new_one_whenever_its_writer_is_killed(tmp_path, way):
    """The writer is killed before each of its renames and removals in turn, until it ends by itself."""
    folder, read, ended, call = tmp_path / "model", [], None, 0
    while ended != 0:
        call += 1
        shutil.rmtree(folder, ignore_errors=True)
        written(folder, "old")
        ended = subprocess.run([sys.executable, "-c", WRITER, folder.name, way, str(call)], cwd=tmp_path).returncode
        assert ended in (0, -9)
        if way == "two renames" and not folder.exists():
            read.append("none until the next writing")
            disk.sweep(tmp_path)
        read.append((folder / "weights").read_text())
        with pytest.raises(KeyboardInterrupt), disk.whole_folder(folder):
            raise KeyboardInterrupt
        assert (folder / "weights").read_text() == read[-1] and [path.name for path in tmp_path.iterdir()] == ["model"]
    assert read[0] == "old" and read[-1] == "new"
    assert read.count("none until the next writing") == (way == "two renames")


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_folder_whose_renames_fail_is_still_the_old_one(tmp_path, monkeypatch, failing):
    folder, renames, rename = tmp_path / "model", [], Path.rename
    written(folder, "old")

    def fails(path, target):
        renames.append(path)
        if len(renames) == failing:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(disk, "_exchanged", lambda *_: False)
    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match=rf"{folder} could not be written: .*Input/output error"):
        written(folder, "new")
    assert (folder / "weights").read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_rename_is_on_the_disk_before_the_writer_goes_on(tmp_path, monkeypatch):
    calls, opened, real = [], {}, {name: getattr(os, name) for name in ("open", "fsync", "replace", "rename")}

    def opens(path, *given, **options):
        handle = real["open"](path, *given, **options)
        opened[handle] = Path(os.fsdecode(path))
        return handle

    monkeypatch.setattr(os, "open", opens)
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append(opened[handle]) or real["fsync"](handle))
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, lambda *given, name=name: calls.append(name) or real[name](*given))
    disk.write_json(tmp_path / "record.json", {"map": 0.5})
    assert calls[0].name.startswith(".record.json.") and calls[1:] == ["replace", tmp_path]
    for text in ("old", "new"):
        calls.clear()
        written(tmp_path / "model", text)
        assert [path.name.rpartition(".")[2] for path in calls[:2]] == ["weights", "part"] and calls[-1] == tmp_path


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name, write in (("record.json", lambda path, text: disk.write_json(path, {"text": text})), ("model", written)):
        link, target = tmp_path / name, tmp_path / "elsewhere" / name
        link.symlink_to(target)
        for text in ("old", "new"):
            write(link, text)
            assert link.is_symlink() and not target.is_symlink()
            file = target if target.is_file() else target / "weights"
            assert text in file.read_text()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", *["model"] * 2, *["record.json"] * 2, "weights"]


def test_a_missing_folder_is_made_and_a_missing_file_named_by_itself(tmp_path):
    assert disk.write_json(tmp_path / "no folder" / "record.json", {}).is_file()
    with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\] No such file or directory: 'questions.tsv'$"):
        disk.atomically(tmp_path / "record.json", lambda part: part.write_text(Path("questions.tsv").read_text()))


@pytest.mark.parametrize(
    ("machine", "process", "seconds", "stays"),
    [
        ("here", "ended", 0, False),
        ("here", "living", 90_000, True),
        ("another", "ended", 80_000, True),
        ("another", "living", 90_000, False),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder", "folder in the making"])
def test_whose_half_written_copies_are_removed(tmp_path, monkeypatch, kind, machine, process, seconds, stays):
    """An id of a process says nothing about one of another machine, also where a living process has that id here."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    path, write = tmp_path / "result", (lambda path, text: disk.write_json(path, {"text": text})) if kind == "file" else written
    monkeypatch.setattr(os, "getpid", lambda: os.getppid() if process == "living" else child.pid)
    with monkeypatch.context() as faked:
        if machine == "another":
            faked.setattr(socket, "gethostname", lambda: "node-2.cluster")
        half = disk._new_part(disk._new_part(path) if kind == "folder in the making" else path)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert machine == "here" or ".node-2-cluster-" in half.name
    inside = half if kind == "file" else half / "weights"
    inside.parent.mkdir(exist_ok=True)
    inside.write_text("half")
    for each in {inside, half}:
        os.utime(each, (time.time() - seconds,) * 2)
    write(path, "whole")
    assert half.exists() == stays
    disk.sweep(tmp_path)  # nobody else writes here
    assert [path] == list(tmp_path.iterdir())


TOGETHER = """
import sys
from pathlib import Path
from asutil.io import disk

for number in range(60):
    disk.write_json(Path(sys.argv[1]) / "record.json", {"writer": sys.argv[2], "numbers": [number] * 500})
    with disk.whole_folder(Path(sys.argv[1]) / "model") as part:
        for name in "ab":
            (part / name).write_text(f"{sys.argv[2]} {number}")
"""


def test_processes_that_write_one_file_and_one_folder_at_once_lose_nothing(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", TOGETHER, str(tmp_path), name], stderr=subprocess.PIPE) for name in ("x", "y")]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        if (tmp_path / "model").exists() and (tmp_path / "record.json").exists():
            assert len(set(disk.read_json(tmp_path / "record.json")["numbers"])) == 1
            assert {path.name for path in (tmp_path / "model").iterdir()} <= {"a", "b"}
            reads += 1
    assert [writer.communicate()[1].decode() for writer in writers] == ["", ""] and reads > 10
    first, second = ((tmp_path / "model" / name).read_text() for name in "ab")
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "record.json"]


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


def test_who_waits_for_another_s_file_says_so(tmp_path, capsys):
    made = []

    def second():
        with disk.lock_beside(tmp_path / "index"):
            made.append("second")

    with disk.lock_beside(tmp_path / "index"):
        waits = threading.Thread(target=second)
        waits.start()
        out = ""
        while not out:  # the test's own limit ends it
            out = capsys.readouterr().out
        assert out.startswith("index is being made by another process: waiting for it") and not made
    waits.join(10)
    assert made == ["second"]
