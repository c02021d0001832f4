"""A few mistakes are put in and noticed; what is not noticed, or fails without a mistake, breaks the promise."""

import ast
import random
from pathlib import Path

import pytest
import yaml

mutants = pytest.importorskip("tests.trust.mutants", reason="needs mutmut, which is for developers")

from tests.trust import Broken  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GONE = mutants.Mutant("metrics/rankings", "ranking", "a line", "another", "")


def made(line: str, becomes: str):
    """A mistake in `significance`."""
    text = (ROOT / "asutil" / "metrics" / "significance.py").read_text("utf-8")
    assert text.count(line) == 1
    return mutants.Mutant("metrics/significance", "smallest_gain", line, becomes, text.replace(line, becomes))


def test_a_mistake_is_noticed_by_the_tests_of_its_module_and_one_that_changes_nothing_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "TESTS", {"metrics/significance": ()})  # the examples in the module are tests enough
    monkeypatch.setattr(mutants, "PRELOADED", ("tests.trust.mutants",))
    wrong, same = (made("return gained - lost", becomes) for becomes in ("return gained + lost", "return -lost + gained"))
    noticed, survived = mutants.tested([wrong, same], tmp_path)
    assert (noticed.code, noticed.failed) == (1, "asutil/metrics/significance.py::asutil.metrics.significance.smallest_gain")
    assert (survived.code, survived.failed) == (0, "")
    assert sorted(path.name for path in tmp_path.glob("mutant-*")) == [
        "mutant-0.txt",
        "mutant-1.txt",
    ]  # their trees are gone, their logs are not
    with pytest.raises(Broken, match="tests pass without a mistake"):  # what fails anyhow notices nothing
        mutants.passing(tmp_path / "whole", ["asutil/metrics/significance.py::no_such_test"])


def test_mutants_are_drawn_by_the_seed_and_differ_from_the_module_in_the_lines_they_name(monkeypatch):
    monkeypatch.setattr(mutants, "TESTS", {"metrics/significance": (), "losses": ()})
    drawn = mutants.drawn(4, random.Random(3))
    assert [one.name for one in drawn] == [one.name for one in mutants.drawn(4, random.Random(3))]
    assert len({one.name for one in drawn}) == 4
    for one in drawn:
        text = (ROOT / "asutil" / f"{one.module}.py").read_text("utf-8")
        ast.parse(one.text)
        assert one.text != text and one.line != one.becomes
        assert all(line in text for line in one.line.splitlines())


def test_the_lines_of_a_mutation_are_those_that_differ():
    assert mutants.differing("a\n  b\nc\nd\n", "a\n  x\n  y\nd\n") == ("b\nc", "x\ny")
    assert mutants.differing("a\nb\nb\nc\n", "a\nb\nc\n") == ("b", "")


def test_a_mistake_that_kills_its_process_is_noticed_and_one_that_is_not_noticed_counts():
    ran = [mutants.Ran(2, 9.0, ""), mutants.Ran(-9, 1.0, ""), *[mutants.Ran(1, 1.0, "t")] * 7]
    names = [GONE._replace(line=str(number)) for number in range(10)]
    figures = mutants.judged(names, [*ran, mutants.Ran(0, 1.0, "")])
    assert {name: figures[name] for name in ("mutants", "noticed", "equivalent", "missed")} == {
        **{"mutants": 10, "noticed": 9, "equivalent": 0, "missed": 1}
    }
    with pytest.raises(Broken, match=r"90% of 10 mistakes are noticed, 8 were; not\nmetrics/rankings.ranking: 8\n  -> another"):
        mutants.judged(names, [*ran[:-1], *[mutants.Ran(0, 1.0, "")] * 2])
    for code in (4, None):  # nothing was tested; the tests came to no end
        with pytest.raises(Broken, match=f"pytest ended with {code}"):
            mutants.judged(names[:1], [mutants.Ran(code, 1.0, "")])
    assert mutants.judged(names[:1], [mutants.Ran(4, 1.0, "tests/conftest.py")])["noticed"] == 1  # no test can even be read


def test_a_survivor_that_is_listed_as_equivalent_is_not_missed(monkeypatch, tmp_path):
    listed = tmp_path / "survivors.yml"
    listed.write_text(yaml.safe_dump([dict(zip(mutants.Mutant._fields, GONE.name)) | {"judgement": "equivalent", "why": "it is"}]))
    monkeypatch.setattr(mutants, "SURVIVORS", listed)
    figures = mutants.judged([GONE], [mutants.Ran(0, 1.0, "")])
    assert (figures["equivalent"], figures["missed"]) == (1, 0)


def test_the_test_that_stood_when_time_was_over_is_found_in_the_log():
    assert mutants.failed_first("x\nFAILED tests/test_a.py::test_b[1 2] - assert 1\n") == "tests/test_a.py::test_b[1 2]"
    assert mutants.failed_first("ERROR tests/test_a.py - ValueError: x\n") == "tests/test_a.py"
    assert mutants.failed_first("ImportError while loading conftest '/t/x/tests/conftest.py'.\n") == "tests/conftest.py"
    stood = 'Timeout (0:02:00)!\n  File "/t/asutil/a.py", line 3 in f\n  File "/t/tests/test_a.py", line 7 in test_b\n'
    assert mutants.failed_first(stood) == "tests/test_a.py::test_b"
    assert mutants.failed_first("3 passed\n") == ""


def test_every_listed_survivor_stands_in_its_module_and_says_why():
    for one in yaml.safe_load(mutants.SURVIVORS.read_text("utf-8")):
        text = (ROOT / "asutil" / f"{one['module']}.py").read_text("utf-8")
        assert all(line in text for line in one["line"].splitlines()), one
        assert one["judgement"] in ("equivalent", "missed") and one["why"]
