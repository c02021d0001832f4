"""What is wrong with a user's file is said with file and row."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil import tables
from asutil.questions import load

from .test_questions import folder


@settings(max_examples=150, deadline=None)
@given(
    content=st.binary(max_size=200) | st.text(st.sampled_from('qal01\t\n"\r{}[]:, \0é\u2028')).map(str.encode),
    suffix=st.sampled_from(tables.SUFFIXES),
)
def test_malformed_files_are_refused_by_name(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"malformed{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="malformed"):
        load(path)


HEADER = "question_id\tquestion\tdocument_title\tanswer\tlabel\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (HEADER.encode(), "is empty|no rows"),
        (b"question\tanswer\na\tb\n", r"lacks label; got 'question', 'answer'"),
        ((HEADER + "1\tq\tt\ta\t1\n1\tq\tt\ta\n").encode(), "row 3: expected 5 fields .* got 4"),
        ((HEADER + "1\tq\tt\ta\tb\t1\n").encode(), "row 2: expected 5 fields .* got 6"),
        ((HEADER + "1\tq\tt\ta\t1\n1\tq\tt\tb\t2\n").encode(), "row 3: expected the label 0 or 1, got '2'"),
        ((HEADER + "1\tq\tt\ta\tyes\n").encode(), "row 2: expected the label 0 or 1, got 'yes'"),
        ((HEADER + "1\tq\tt\ta\t\n").encode(), "row 2: expected the label 0 or 1, got ''"),
        ((HEADER + "1\tq\tt\ta\t1\n").encode() + "1\tq\tt\tä\t1\n".encode("latin-1"), "row 3: expected UTF-8 .* 0xe4"),
        ((HEADER + "1\tq\tt\ta\t1\n").encode("utf-16"), "row 1: expected UTF-8"),
        ((HEADER + "1\tq\tt\ta\0b\t1\n").encode(), "row 2: expected UTF-8 .* 0x00"),
        ((HEADER + "1\tq\tt\ta\t1\n\n").encode() + b"x", "row 3: expected 5 fields"),
        ((HEADER + "1\tq\tt\t \t1\n").encode(), "row 2: expected text in 'answer', got ' '"),
        (
            (HEADER + "1\tq\tt\ta\t1\n2\tx\tt\ta\t1\n1\tother\tt\tb\t0\n").encode(),
            "row 4: question_id '1' belongs to 'q' in row 2, got 'other'",
        ),
        (b"question\tanswer\tanswer\tlabel\nq\ta\ta\t1\n", "row 1: expected distinct column names"),
    ],
)
def test_what_is_wrong_with_a_tsv(tmp_path, content, message):
    folder(tmp_path)
    (tmp_path / "train.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"train\.tsv.*{message}|train\.tsv.*({message})"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "q", "answer": "a", "label": NaN}', "row 2: expected the label 0 or 1, got 'nan'"),
        ('{"question": "q", "answer": "a", "label": true}', "row 2: expected the label 0 or 1, got 'True'"),
        ('{"question": "q", "answer": "a"}', "row 2: expected the label 0 or 1, got None"),
        ('{"question": "q", "answer": null, "label": 1}', "row 2: expected text in 'answer', got None"),
        ('{"question": 7, "answer": "a", "label": 1}', "row 2: expected a JSON object with text, question is 7"),
        ('{"question": "q", "answer": "\\u0000", "label": 1}', "row 2: expected no NUL in 'answer'"),
        ('{"question": "q", "answer": "\\ud800", "label": 1}', "row 2: expected a JSON object with text"),
        ('["q", "a", 1]', "row 2: expected a JSON object with text, got list"),
        ("[" * 100_000, "row 2: expected a JSON object"),
        ("", "row 2: expected a JSON object"),
    ],
)
def test_what_is_wrong_with_a_jsonl(tmp_path, line, message):
    good = '{"question": "q", "answer": "a", "label": 1.0}\n'
    (tmp_path / "all.jsonl").write_text(f"{good}{line}\n{good}")
    with pytest.raises(ValueError, match=rf"all\.jsonl, {message}"):
        load(tmp_path / "all.jsonl")


def test_what_is_wrong_with_a_parquet(tmp_path):
    path = tmp_path / "all.parquet"
    columns = {"question": ["q", "r", "s"], "answer": ["a", "b", "c"], "label": [1.0, 1.0, 1.0]}
    pq.write_table(pa.table(columns), path)
    assert [len(split) for split in load(path).values()] == [1, 1, 1]
    for changed, message in [
        ({"label": [1.0, math.nan, 0.0]}, "row 2: expected the label 0 or 1, got 'nan'"),
        ({"label": [1, None, 0]}, "row 2: expected the label 0 or 1, got None"),
        ({"label": [[1], [0], [1]]}, "'label'"),
        ({"question": [1, 2, 3]}, "expected UTF-8 text in the column 'question', got int64"),
        ({"answer": pa.array([b"a", b"\xff", b"c"]).view(pa.string())}, "expected UTF-8 text in the column 'answer'"),
        ({"answer": [b"a", b"b", b"c"]}, "expected UTF-8 text in the column 'answer'"),
    ]:
        pq.write_table(pa.table(columns | changed), path)
        with pytest.raises(ValueError, match=rf"all\.parquet.*{message}"):
            load(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="expected a parquet file"):
        load(path)


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    folder(tmp_path)
    path = tmp_path / "train.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    first = load(tmp_path)["train"][0]
    assert (first.id, [c.label for c in first.candidates]) == ("Q1", [0, 1, 0])
