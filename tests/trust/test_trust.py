"""The command itself: what it prints and records, and that a broken promise is its exit status."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from aslab import runs
from asutil.io import disk
from tests.trust import __main__ as command
from tests.trust import traced_benchmarks

from .. import made_up

ROOT = Path(__file__).resolve().parents[2]


def test_every_part_is_a_module_that_checks():
    for part in command.PARTS:
        source = (ROOT / "tests" / "trust" / f"{part}.py").read_text("utf-8")
        assert "\ndef check(full: bool, seed: int, folder: Path) -> dict" in source, part


def test_a_broken_promise_is_the_exit_status(tmp_path, monkeypatch, capsys):
    found = {"numbers": {"metric_sets": 3, "table": {"a": 1}}, "storage": {"broken": "Broken: a write was lost"}}
    monkeypatch.setattr(command, "beside", lambda part, *_: found[part])
    monkeypatch.setattr(command.runs, "provenance", lambda: {"commit": "0123456789"})
    monkeypatch.setattr(sys, "argv", ["trust", "--quick", "--seed", "7", "--record", str(tmp_path / "records"), "numbers", "storage"])
    assert command.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "seed 7" and said[-1].startswith("BROKEN storage | seed 7 | numbers: metric sets 3; storage: broken Broken: a write")
    for part, figures in found.items():
        recorded = disk.read_json(tmp_path / "records" / f"{part}.json")
        assert [recorded[name] for name in ("part", "size", "seed", "figures")] == [part, "quick", 7, figures]
        assert str(Path.home()) not in json.dumps(recorded)
    monkeypatch.setattr(sys, "argv", ["trust", "numbers"])
    assert command.main() == 0 and capsys.readouterr().out.splitlines()[-1].startswith("all promises hold | seed ")


def test_figures_of_a_tree_that_nobody_can_check_out_are_not_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command.runs, "provenance", lambda: {"commit": "0123456789+changes"})
    monkeypatch.setattr(command, "beside", lambda *_: pytest.fail("a part was measured"))
    monkeypatch.setattr(sys, "argv", ["trust", "--record", str(tmp_path / "records"), "numbers"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "files differ from 0123456: commit or stash them" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_an_unknown_part_is_refused():
    ended = subprocess.run([sys.executable, "-m", "tests.trust", "storrage"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2 and "no part storrage; there are matrix, numbers" in ended.stderr


def test_the_page_shows_what_was_counted(tmp_path, directives):
    today = {"commit": "0123456789", "sources_sha256": runs.provenance()["sources_sha256"]}
    before = {"commit": "89abcdef01+changes", "sources_sha256": "00"}
    about = {"size": "quick", "seed": 7, "hardware": {"cpu_cores": 2}, "created": "2026-01-02T03:04:05+00:00", **today}
    numbers = {"metric_sets": 3, "workers": "1/2", "table": {"a": 1}, "seconds": 2}
    records = [
        {"part": "numbers", "figures": numbers, **about},
        {"part": "storage", "figures": {"saves": "a <b>"}, **about, "seed": 8, **before},
    ]
    (tmp_path / "results" / "trust").mkdir(parents=True)
    for record in records:
        disk.write_json(tmp_path / "results" / "trust" / f"{record['part']}.json", record)
    (tmp_path / "book" / "_ext").mkdir(parents=True)
    for name in ("asutil", "aslab"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(directives("as2_trust").WORDS, tmp_path / "book" / "_ext")
    page = directives("as2_trust")
    assert page.figures({"broken": "exit code <1>", "seconds": 3}, {}) == ["broken: exit code <1>"]
    html = page.table(records)
    assert "<b>" not in html
    shown = made_up.cells(html[html.index("<table") : html.index("</table>") + len("</table>")])
    counted = "3 sets of labels and scores, each ranked by several programs; the same examples with 1/2 workers; 2 seconds in all"
    assert shown[1] == ["numbers", counted, "quick size, seed 7, 2 cores, 2026-01-02, at commit 0123456"]
    assert shown[1:] == [list(line) for line in traced_benchmarks.trust(tmp_path)]
    later = "at commit 89abcde with uncommitted changes, before later changes of asutil and aslab"
    assert shown[2][1:] == ["a <b> kinds of save", f"quick size, seed 8, 2 cores, 2026-01-02, {later}"]


def test_every_committed_figure_has_words(directives):
    words = yaml.safe_load(directives("as2_trust").WORDS.read_text("utf-8"))
    paths = sorted((ROOT / "results" / "trust").glob("*.json"))
    assert {path.stem for path in paths} <= set(words) and paths
    for path in paths:
        record = disk.read_json(path)
        single = {name for name, value in record["figures"].items() if not isinstance(value, dict | list)}
        left_out = {"resume": {"weights_sha256"}, "security": {"browser", "pages_read"}}.get(record["part"], set())
        assert single - left_out <= set(words[record["part"]]), path.name
