"""What is kept of parsed packages: the same docstrings without parsing, and nothing that is old, damaged or half-read."""

import gc
import logging

import pytest

from asutil.pydocs import files as docstring_files

FOUND = [("invented", "", "The package."), ("invented.a", "A", "A."), ("invented.a", "A.m", "It has a \ud800 alone.")]


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    root = tmp_path / "invented"
    root.mkdir()
    (root / "__init__.py").write_text('"""The package."""\n')
    (root / "a.py").write_text('class A:\n    """A."""\n    def m(self):\n        """It has a \\ud800 alone."""\n')
    return root


@pytest.fixture
def parsed(monkeypatch):
    """How many files were parsed."""
    files, parse = [], docstring_files._in_file
    monkeypatch.setattr(docstring_files, "_in_file", lambda path: files.append(path) or parse(path))
    return files


def read():
    return list(docstring_files.of_package("invented"))


def kept(tmp_path):
    (path,) = (tmp_path / "cache" / "asutil").iterdir()
    return path


def test_files_are_parsed_once(package, parsed):
    assert read() == FOUND and len(parsed) == 2
    assert read() == FOUND and len(parsed) == 2


@pytest.mark.parametrize("text", ['"""Text."""', "def broken(:"])
def test_the_garbage_collector_is_on_after_a_file(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    assert gc.isenabled()
    docstring_files._in_file(tmp_path / "a.py")
    assert gc.isenabled()


def test_a_package_without_docstrings_is_kept_too(package, parsed):
    for path in package.iterdir():
        path.write_text("x = 1\n")
    assert read() == [] == read() and len(parsed) == 2


@pytest.mark.parametrize("change", ["size", "time", "name"])
def test_what_changed_is_parsed_again(package, parsed, change):
    read()
    path = package / "a.py"
    if change == "size":
        path.write_text('"""Other."""\n')
    elif change == "time":
        text, state = path.read_text(), path.stat()
        path.write_text(text.replace('"""A."""', '"""B."""'))
        assert path.stat().st_size == state.st_size
    else:
        path.rename(package / "b.py")
    expected = {
        "size": [FOUND[0], ("invented.a", "", "Other.")],
        "time": [FOUND[0], ("invented.a", "A", "B."), FOUND[2]],
        "name": [FOUND[0], *(("invented.b", *rest) for _, *rest in FOUND[1:])],
    }
    assert read() == expected[change] and len(parsed) == 4


def test_a_damaged_file_is_never_believed(package, parsed, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    read()
    whole = kept(tmp_path).read_bytes()
    for position in range(len(whole)):
        kept(tmp_path).write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert read() == FOUND and kept(tmp_path).read_bytes() == whole, f"byte {position}"
    kept(tmp_path).write_bytes(whole[: len(whole) // 2])
    assert read() == FOUND and "is parsed anew" in caplog.text
    assert read() == FOUND and kept(tmp_path).read_bytes() == whole


def test_reading_that_stops_keeps_nothing(package, tmp_path):
    assert next(docstring_files.of_package("invented")) == FOUND[0]
    assert not (tmp_path / "cache").exists()


def test_a_home_that_cannot_be_written_only_costs_time(package, parsed, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "cache").write_text("a file, where a folder is needed")
    assert read() == FOUND == read() and len(parsed) == 4
    assert "docstrings are parsed each time" in caplog.text
