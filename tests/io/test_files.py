"""Strict reading: what is wrong in a file is said with its name and place, whatever reads it."""

import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from asutil.data import answers
from asutil.io import files, remote


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "here: not JSON"),
        ("[" * 100_000, "here: not JSON \\(nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "here: not JSON \\(Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(text, said):
    with pytest.raises(ValueError, match=said):
        files.parsed(text, "here")


@pytest.mark.parametrize(("text", "said"), [("ab\0", "a NUL byte at character 2"), ("\ud800", "half a character at character 0")])
def test_text_that_no_tokenizer_takes_is_refused_with_its_place(text, said):
    with pytest.raises(ValueError, match=f"here: expected text that UTF-8 can encode, got {said}"):
        files.require_encodable(text, "here")


def test_a_line_ends_at_a_line_feed_alone(tmp_path):
    path = tmp_path / "some.txt"
    path.write_bytes("\ufeffa\u2028b\x85c\x0bd\r\n\ufeffe\rf\n".encode() + b"\xe4")
    found = files.lines(path)
    assert [next(found), next(found)] == [("some.txt line 1", "a\u2028b\x85c\x0bd"), ("some.txt line 2", "e\rf")]
    with pytest.raises(ValueError, match=r"some.txt line 3: expected UTF-8, got byte 0xe4 at 0"):
        next(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"[1]", r"an object is expected, with something in it, got \[1\]"),
        (b"{}", "an object is expected, with something in it"),
        (b"\xff", "expected UTF-8, got byte 0xff"),
        (b'{"seed": "a"}', "seed is expected to be int, got str"),
    ],
)
def test_a_damaged_object_is_named_with_its_folder(tmp_path, content, said):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "record.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"run/record.json is damaged: {said}"):
        files.json_object(path, seed=int)


def claiming(path, rows=5):
    """Another number of rows in the footer: field 3 of Thrift's compact form, 0x16 and twice the number."""
    data = path.read_bytes()
    size = struct.unpack("<I", data[-8:-4])[0]
    footer = data[-8 - size : -8].replace(b"\x16\x06", bytes([0x16, 2 * rows]))
    path.write_bytes(data[: -8 - size] + footer + data[-8:])


READERS = (files.table, lambda path: list(files.rows(files.batches(files.opened(path), path, 2), path)))


@pytest.mark.parametrize("spoil", [claiming, lambda path: path.write_bytes(b"PAR1" + bytes(20) + path.read_bytes()[24:])])
def test_a_parquet_file_with_damaged_pages_or_fewer_rows_than_it_claims_is_refused(tmp_path, spoil):
    path = tmp_path / "three.parquet"
    pq.write_table(pa.table({"a": ["x" * 1000, "y", "z"]}), path)
    for read in READERS:
        read(path)
    spoil(path)
    for read in READERS:
        with pytest.raises(ValueError, match=r"three\.parquet: expected a parquet file, got one that"):
            read(path)
    pq.write_table(pa.table({"a": pa.array([b"x", b"y", b"\xff"]).view(pa.string())}), path)
    with pytest.raises(ValueError, match=r"three\.parquet row 3: 'utf-8' codec"):
        READERS[1](path)


def test_a_table_of_a_run_has_its_columns_and_their_types(tmp_path):
    path = tmp_path / "scores.parquet"
    for columns, said in [
        ({"question_id": ["a"]}, "expected a column 'score', got 'question_id'"),
        ({"question_id": ["a"], "score": ["b"]}, "expected numbers in the column 'score', got string"),
        ({"question_id": [["a"]], "score": [1.0]}, "expected ids in the column 'question_id', got list"),
    ]:
        pq.write_table(pa.table(columns), path)
        with pytest.raises(ValueError, match=rf"/scores\.parquet: {said}"):
            files.frame(path, ("question_id",), ("score",))
    pq.write_table(pa.table({"question_id": ["a"], "score": [1.0]}), path)
    assert files.frame(path, ("question_id",), ("score",)).to_dict("records") == json.loads('[{"question_id": "a", "score": 1.0}]')


def test_yaml_is_what_the_library_reads():
    text = "all: &all [1, 2]\nrows: [*all, *all]\nmore: {a: null, b: x}\nmerged: {<<: {c: 1}}\n"
    assert files.yaml_value(text, yaml.SafeLoader) == yaml.safe_load(text)
    assert files.yaml_value("", yaml.SafeLoader) is None and files.yaml_value(b"a: 1", yaml.SafeLoader) == {"a": 1}


@pytest.mark.parametrize("deep", [3, 9, 40])
def test_aliases_of_aliases_are_counted_as_they_are_written_out(deep):
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]" for n in range(deep)]
    if deep == 3:
        assert len(files.yaml_value("\n".join(lines), yaml.SafeLoader)["a2"][0][0]) == 10
        return
    for text in ("\n".join(lines), "a: &a [1, *a]"):
        with pytest.raises(ValueError, match="more than a million items"):
            files.yaml_value(text, yaml.SafeLoader)


def test_a_user_that_nobody_is_stays_in_the_name_and_a_nul_is_in_none():
    assert remote.path_of("~nobody-here/x") == Path("~nobody-here/x") and remote.path_of("~/x") == Path.home() / "x"
    with pytest.raises(FileNotFoundError, match="~nobody-here"):
        answers.load_answers("~nobody-here/x")
    with pytest.raises(ValueError, match=r"'titles\\x00' is no path"):
        list(files.lines(Path("titles\0")))
