"""What the benchmarks share: turns, ratios, and figures that are kept with their machine. No benchmark itself is run here."""

import ast
import doctest
import getpass
import itertools
import json
import platform
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if "--quick" in path.read_text("utf-8") and path.stem != "side_by_side"]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.syspath_prepend(FOLDER.parent / "book" / "_ext")
    yield
    for name in ("side_by_side", "record", "as2_benchmarks", "as2_pages"):
        sys.modules.pop(name, None)


@pytest.fixture
def shared():
    import side_by_side

    return side_by_side


@pytest.fixture
def keeping():
    import record

    return record


def test_sides_take_turns_and_each_round_is_timed_alone(shared, monkeypatch):
    clock, called = itertools.count(), []
    costs = {"ours": 1, "peer": 10}

    def side(name):
        called.append(name)
        for _ in range(costs[name]):
            next(clock)

    monkeypatch.setattr(shared.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(shared.time, "process_time", lambda: 0.0)
    wall, processor = shared.seconds({name: lambda name=name: side(name) for name in costs}, rounds=3)
    assert called == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert wall == {"ours": [2.0] * 3, "peer": [11.0] * 3}
    assert processor == {"ours": [0.0] * 3, "peer": [0.0] * 3}


def test_ratios_are_of_speeds_in_the_same_round(shared):
    assert doctest.testmod(shared).failed == 0
    # twice the work in half the time, then in the same time
    assert shared.ratios([1.0, 2.0], [2.0, 2.0], ours_work=2, their_work=1) == {"median": 3.0, "least": 2.0, "most": 4.0}


def test_the_lowest_median_is_the_headline_and_the_last_line_is_json(shared, keeping, capsys):
    compared = {"a": {"median": 3.0, "least": 2.5, "most": 9.0}, "b": {"median": 2.0, "least": 1.9, "most": 2.2}}
    result = shared.headline("speed", 1.5, compared, quick=True, nested={"a": compared["a"]}, words="on pydocs")
    shared.show(result)
    printed = capsys.readouterr().out
    assert json.loads(printed.splitlines()[-1]) == result
    assert result["ratio"] == 2.0 and result["spread"] == compared["b"] and result["goal"] == 1.5
    assert keeping.last_line(printed) == result


@pytest.mark.parametrize("output", ["", "no json", '{"name": "x"}', "[1, 2]"])
def test_output_without_a_result_is_refused(keeping, output):
    with pytest.raises(ValueError, match="expected a last line of JSON with name, ratio and goal"):
        keeping.last_line(output)


def test_figures_are_kept_with_their_machine_and_without_its_name(keeping, tmp_path):
    result = {"name": "speed", "ratio": 2.0, "goal": 1.5}
    kept = json.loads(keeping.record(result, tmp_path, None).read_text("utf-8"))
    assert kept | result == kept
    assert kept["machine"]["cores"] >= 1 and kept["machine"]["processor"] and kept["machine"]["versions"]["torch"]
    text = json.dumps(kept["machine"])
    assert str(Path.home()) not in text and (platform.node() or "a host") not in text
    assert f'"{getpass.getuser()}"' not in text
    assert keeping.record(result, tmp_path, "a GPU").name == "speed-gpu.json"
    assert json.loads((tmp_path / "speed-gpu.json").read_text("utf-8"))["machine"]["gpu"] == "a GPU"


def test_a_script_that_fails_leaves_no_figures(keeping, tmp_path, monkeypatch, capfd):
    (tmp_path / "broken.py").write_text('print("{}")\nraise SystemExit(3)\n')
    (tmp_path / "fine.py").write_text('print("first")\nprint("last")\n')
    monkeypatch.setattr(keeping, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"broken\.py ended with status 3"):
        keeping.run("broken")
    assert keeping.run("fine") == "first\nlast\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_it_measures_and_how_to_run_it(path):
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert f"python benchmarks/{path.name}" in doc
    assert len(doc.splitlines()[0]) > 40


# ------------------------------------------------------------------ on the book's page


def committed(**changes):
    result = {
        "name": "speed",
        "ratio": 2.5,
        "goal": 2,
        "spread": {"median": 2.5, "least": 2.25, "most": 12345.6},
        "by_part": {"a <b>": {"median": 1.0, "least": 0.5, "most": 2.0, "goal": 3}},
        "quick": False,
        "machine": {"processor": "CPU <7>", "cores": 2, "system": "Linux", "gpu": None, "python": "3.12", "versions": {"torch": "2.13"}},
    }
    return result | changes


def test_the_page_shows_ratio_goal_spread_and_machine():
    import as2_benchmarks

    known = committed()
    html = as2_benchmarks.overview(["speed", "other"], {"speed": known}) + as2_benchmarks.details(known)
    assert ">2.5<" in html and ">2.25 to 12,346<" in html and ">2<" in html
    assert ">reached<" in html and html.count(">not run<") == 1
    assert "2 cores of CPU &lt;7&gt;, Linux, Python 3.12" in html
    assert "by part: a &lt;b&gt;</th><td>1 (0.5 to 2)<" in html
    assert "by part: a &lt;b&gt;: goal</th><td>3<" in html
    assert "quick</th><td>no<" in html and "torch 2.13" in html
    assert "<b>" not in html
    below = as2_benchmarks.overview(["speed"], {"speed": committed(ratio=1.9)})
    assert ">not reached<" in below and ">reached<" not in below
    assert "a GPU, Linux" in as2_benchmarks.overview(["speed"], {"speed": committed(machine=known["machine"] | {"gpu": "a GPU"})})


def test_committed_figures_are_of_whole_runs():
    for path in (FOLDER.parent / "results" / "benchmarks").glob("*.json"):
        result = json.loads(path.read_text("utf-8"))
        assert path.stem == result["name"] + "-gpu" * bool(result["machine"]["gpu"])
        assert not result.get("quick")
