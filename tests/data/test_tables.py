"""What is wrong with a user's file is said with file and row, and a data set of ASNQ's form is read without holding its texts."""

import math
import random
import re
import shutil
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil.data import tables
from asutil.data.answers import load_answers
from asutil.data.baselines import baseline_scores
from asutil.data.data_sets import ANSWERS
from asutil.io import hub

from .test_answers import as_on_the_hub, folder


@settings(max_examples=150, deadline=None)
@given(
    content=st.binary(max_size=200) | st.text(st.sampled_from('qal01\t\n"\r{}[]:, \0é\u2028')).map(str.encode),
    suffix=st.sampled_from(tables.SUFFIXES),
)
def test_malformed_files_are_refused_by_name(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"malformed{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="malformed"):
        load_answers(path)


HEADER = "question_id\tquestion\tdocument_title\tanswer\tlabel\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (HEADER.encode(), "is empty: expected at least one row"),
        (b"question\tanswer\n", r"lacks label; got 'question', 'answer'"),
        (b"question\tanswer\na\tb\n", r"lacks label; got 'question', 'answer'"),
        ((HEADER + "1\tq\tt\ta\t1\n1\tq\tt\ta\n").encode(), "row 3: expected 5 fields, .* got 4"),
        ((HEADER + "1\tq\tt\ta\tb\t1\n").encode(), "row 2: expected 5 fields, .* got 6"),
        ((HEADER + "1\tq\tt\ta\t1\n1\tq\tt\tb\t2\n").encode(), "row 3: expected the label 0 or 1, got '2'"),
        ((HEADER + "1\tq\tt\ta\tmaybe\n").encode(), "row 2: expected the label 0 or 1, got 'maybe'"),
        ((HEADER + "1\tq\tt\ta\t2\n" * 3).encode(), r"row 2: expected the label 0 or 1, got '2' \(3 such rows\)"),
        ((HEADER + "1\t \tt\ta\t1\n" * 3).encode(), r"row 2: expected text in 'question', got ' ' \(3 such rows\)"),
        ((HEADER + "1\tq\tt\ta\t0\n1\tq\tt\t\t1\n").encode(), "row 3: expected text in 'answer', got '' with label 1"),
        ((HEADER + "1\tq\tt\ta\t\n").encode(), "row 2: expected the label 0 or 1, got ''"),
        ((HEADER + "1\tq\tt\ta\t1\n").encode() + "1\tq\tt\tä\t1\n".encode("latin-1"), "row 3: expected UTF-8 .* 0xe4"),
        ((HEADER + "1\tq\tt\ta\t1\n").encode("utf-16"), "row 1: expected UTF-8"),
        ((HEADER + "1\tq\tt\ta\0b\t1\n").encode(), "row 2: expected UTF-8 .* 0x00"),
        ((HEADER + "1\tq\tt\ta\t1\n\n \n").encode() + b"x", "row 5: expected 5 fields, .* got 1"),
        ((HEADER + "1\tq\tt\t \t1\n").encode(), "row 2: expected text in 'answer', got ' '"),
        (
            (HEADER + "1\tq\tt\ta\t1\n2\tx\tt\ta\t1\n1\tother\tt\tb\t0\n").encode(),
            "row 4: question_id '1' belongs to 'q' in row 2, got 'other'",
        ),
        (b"question\tanswer\tanswer\tlabel\nq\ta\ta\t1\n", "row 1: expected distinct column names"),
        (
            b"question\tanswer\tlabel\r" + b"q\ta\t1\r" * 999,
            r"row 1: expected distinct column names, got .{1,120} \(its lines end in CR alone\)$",
        ),
    ],
)
def test_what_is_wrong_with_a_tsv(tmp_path, content, message):
    folder(tmp_path)
    (tmp_path / "train.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"train\.tsv.*{message}|train\.tsv.*({message})"):
        load_answers(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "q", "answer": "a", "label": NaN}', "row 2: expected the label 0 or 1, got None"),
        ('{"question": "q", "answer": "a", "label": "maybe"}', "row 2: expected the label 0 or 1, got 'maybe'"),
        ('{"question": "q", "answer": "a"}', "row 2: expected the label 0 or 1, got None"),
        ('{"question": "q", "answer": null, "label": 1}', "row 2: expected text in 'answer', got None"),
        (
            '{"question": "q", "answer": "a", "label": 1, "question_id": ["Q1"]}',
            r"row 2: expected a JSON object with text, question_id is \['Q1'\], neither",
        ),
        ('{"question": 7, "answer": "a", "label": 1}', "row 2: expected a JSON object with text, question is 7"),
        ('{"question": "q", "answer": "\\u0000", "label": 1}', "row 2: expected no NUL in 'answer'"),
        ('{"question": "q", "answer": "\\ud800", "label": 1}', "row 2: expected a JSON object with text"),
        ('["q", "a", 1]', "row 2: expected a JSON object with text, got list"),
        ("[" * 100_000, "row 2: expected a JSON object"),
        ("\n\n \n[]", "row 5: expected a JSON object"),
    ],
)
def test_what_is_wrong_with_a_jsonl(tmp_path, line, message):
    good = '{"question": "q", "answer": "a", "label": 1.0}\n'
    (tmp_path / "all.jsonl").write_text(f"{good}{line}\n{good}")
    with pytest.raises(ValueError, match=rf"all\.jsonl, {message}"):
        load_answers(tmp_path / "all.jsonl")


LEAKED = "with a right answer that it has there (case, white space and marks at the end do not count)"


def test_rows_that_contradict_each_other_and_shared_questions_are_warned_of(tmp_path, caplog):
    head, rows = "question\tanswer\tlabel\n", [f"q{n}\ta{k}\t{k}\n" for n in range(6) for k in (0, 1)]
    (tmp_path / "all.tsv").write_text(head + "".join(rows) + "q5\ta1\t0\n")
    load_answers(tmp_path / "all.tsv")
    assert caplog.messages == [f"{tmp_path / 'all.tsv'}: 1 candidates have both labels, the first in the rows 13 to 14"]
    caplog.clear()
    spelt = [row.replace("q2", " Q2 ?").replace("a", "A").replace("\t1", " !\t1") for row in rows[4:8]]
    for split, own in (("train", rows[:6]), ("dev", spelt), ("test", rows[8:])):
        (tmp_path / "divided").mkdir(exist_ok=True)
        (tmp_path / "divided" / f"{split}.tsv").write_text(head + "".join(own))
    load_answers(tmp_path / "divided")
    assert caplog.messages == [f"{tmp_path / 'divided'}: 1 of 2 dev questions are in train, too; 1 of them {LEAKED}"]
    caplog.clear()
    (tmp_path / "divided" / "dev.tsv").write_text(head + "q9\ta\t1\n")
    load_answers(tmp_path / "divided")
    (message,) = caplog.messages
    assert "every candidate of the 1 dev questions has label 1: every order of them is right; add wrong candidates" in message
    caplog.clear()
    (tmp_path / "all.tsv").write_text(head + "".join(f"q{n}\ta\t1\n" for n in range(6)))
    load_answers(tmp_path / "all.tsv")
    assert [re.search(r"the \d+ (\w+) questions", message)[1] for message in caplog.messages] == ["train", "dev", "test"]


def test_what_is_wrong_with_a_parquet(tmp_path):
    path = tmp_path / "all.parquet"
    columns = {"question": ["q", "r", "s"], "answer": ["a", "b", "c"], "label": [1.0, 1.0, 1.0]}
    pq.write_table(pa.table(columns), path)
    assert [len(split) for split in load_answers(path).values()] == [1, 1, 1]
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
            load_answers(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="expected a parquet file"):
        load_answers(path)


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    folder(tmp_path)
    path = tmp_path / "train.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    first = load_answers(tmp_path)["train"][0]
    assert (first.id, [c.label for c in first.candidates]) == ("Q1", [0, 1, 0])


# ------------------------------------------------------------------------------- a data set that is too large for memory


def candidates_of(number, count=7):
    """(question, answer, label, key) of one question; its first answer is right."""
    return [(f"who is {number}?", f"{number} is {k}.", int(k == 0), number) for k in range(count)]


ROWS = [row for number in (4, 9, 2, 7) for row in candidates_of(number, number)]


ORDERS = {
    "as they come": range(len(ROWS)),
    "interleaved": sorted(range(len(ROWS)), key=lambda i: (i % 3, i)),
    "scattered": np.random.default_rng(0).permutation(len(ROWS)).tolist(),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize(("files", "group"), [(1, 100), (1, 5), (3, 3), (5, 1)])
def test_asnq_is_grouped_by_key_across_row_groups_and_files(tmp_path, monkeypatch, files, group, order):
    rows, by_key = [ROWS[i] for i in order], {}
    for question, answer, label, key in rows:
        by_key.setdefault((f"train-{key}", question), []).append((answer, label))
    as_on_the_hub(tmp_path, monkeypatch, "asnq", rows, files, group)
    split = load_answers("asnq")["train"]
    assert [((q.id, q.text), [(c.text, c.label) for c in q.candidates]) for q in split] == list(by_key.items())
    assert [[c.id for c in q.candidates] for q in split] == [[f"{q.id}-{i}" for i in range(len(q.candidates))] for q in split]
    assert all(c.before is c.after is None for q in split for c in q.candidates) and not split.ordered
    assert split[-1] == list(split)[-1] and split[1:3][0] == split[1]
    assert split.frame().label.tolist() == [c.label for q in split for c in q.candidates]
    assert baseline_scores(split, "bm25").candidate_id.tolist() == [c.id for q in split for c in q.candidates]


def test_asnq_protocols_limits_and_positives(tmp_path, monkeypatch):
    rows = [row for number in range(40) for row in candidates_of(number)]
    rows = [(*row[:2], row[2] * (row[3] % 2), row[3]) for row in rows]  # every other question has no right answer
    as_on_the_hub(tmp_path, monkeypatch, "asnq", rows, files=3, group=4)
    assert [len(split) for split in load_answers("asnq").values()] == [40, 40, 40]
    right = load_answers("asnq", train_questions="with_positive")
    assert [int(q.id.split("-")[1]) % 2 for q in right["train"]] == [1] * 20 and len(right["dev"]) == 40
    few = load_answers("asnq", limit=5)["train"]
    assert [(q.text, len(q.candidates)) for q in few] == [(f"who is {id.split('-')[1]}?", 7) for id in few.ids]
    assert few.report["dropped"] == {"beyond the limit": {"questions": 35, "candidates": 245}}
    with pytest.raises(ValueError, match=r"protocol: one of clean expected, got 'asbert'"):
        load_answers("asnq", "asbert")


def test_asnq_has_the_published_counts_and_no_others(tmp_path, monkeypatch):
    assert ANSWERS["asnq"].counts == {"clean": {"train": (57242, 20377568), "dev": (1336, 463914), "test": (1336, 466148)}}
    as_on_the_hub(tmp_path, monkeypatch, "asnq", ROWS, counts=(57_242, 20_377_568))
    with pytest.raises(ValueError, match=r"asnq.*train: expected 57,242 questions and 20,377,568 candidates, got 4 and 22"):
        load_answers("asnq")


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("label", 6, 2, "row 7: expected the label 0 or 1, got '2'"),
        ("question", 5, " ", "row 6: expected text in 'question', got ' '"),
        ("answer", 5, None, "row 6: expected text in 'answer', got None"),
        ("key", 8, None, "row 9: expected a key, got None"),
        ("question", 6, "who else?", r"row 7: key 9 belongs to 'who is 9\?', got 'who else\?'"),
        ("key", None, ["a"] * len(ROWS), "expected whole numbers in the column 'key'"),
    ],
)
def test_what_is_wrong_with_asnq_is_said_with_file_and_row(tmp_path, monkeypatch, column, row, value, message):
    values = [given[["question", "answer", "label", "key"].index(column)] for given in ROWS]
    values = value if row is None else [*values[:row], value, *values[row + 1 :]]
    monkeypatch.setattr(tables, "BATCH", 4)
    as_on_the_hub(tmp_path, monkeypatch, "asnq", ROWS, **{column: values})
    with pytest.raises(ValueError, match=rf"train-00000-of-00001\.parquet.*{message}"):
        load_answers("asnq")


def test_asnq_files_that_are_cut_off_missing_or_without_a_key(tmp_path, monkeypatch):
    folder = as_on_the_hub(tmp_path, monkeypatch, "asnq", ROWS, files=2, group=5)
    path = folder / "train-00001-of-00002.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"train-00001-of-00002\.parquet: expected a parquet file"):
        load_answers("asnq")
    path.unlink()
    with pytest.raises(ValueError, match="expected 4 questions and 22 candidates, got"):
        load_answers("asnq")
    path.write_bytes(whole)
    (folder / "dev-00000-of-00001.parquet").rename(folder / "dev_clean.parquet")
    with pytest.raises(FileNotFoundError, match=r"expected dev\.parquet or dev-00000-of-00001\.parquet, its folder holds dev_clean"):
        load_answers("asnq")
    pq.write_table(pq.read_table(path).drop_columns("key"), folder / "train-00000-of-00002.parquet")
    with pytest.raises(ValueError, match=r"train-00000-of-00002\.parquet: expected whole numbers in the column 'key'"):
        load_answers("asnq")
    for path in folder.glob("train*"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(ValueError, match=r"train-00000-of-00002\.parquet is empty"):
        load_answers("asnq")


def test_an_answer_of_asnq_may_be_blank(tmp_path, monkeypatch):
    as_on_the_hub(tmp_path, monkeypatch, "asnq", ROWS, answer=["", " ", *(row[1] for row in ROWS[2:])])
    assert [c.text for c in load_answers("asnq")["train"][0].candidates[:3]] == ["", " ", "4 is 2."]


def test_asnq_from_the_hub_takes_the_files_of_each_split_alone(tmp_path, on_hub, monkeypatch):
    as_on_the_hub(tmp_path, monkeypatch, "asnq", ROWS, files=3)
    monkeypatch.delenv(hub.MIRROR)
    root, _ = on_hub
    shutil.copytree(tmp_path / "lucadiliello/asnq", root / "datasets/lucadiliello/asnq/main")
    assert [len(split) for split in load_answers("asnq").values()] == [4, 4, 4]


def test_texts_are_read_by_row_groups_and_once(tmp_path, monkeypatch):
    rows = [row for number in range(60) for row in candidates_of(number, 10)]
    reads, read_row_group = [], pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *given, **more: reads.append(given) or read_row_group(*given, **more))
    for made in (rows, random.Random(0).sample(rows, 600)):
        as_on_the_hub(tmp_path, monkeypatch, "asnq", made, files=2, group=25)
        train = load_answers("asnq")["train"]
        assert not reads
        assert len(list(train)) == 60 and len(reads) == 24  # 2 files of 300 rows
        reads.clear()


def test_memory_of_asnq_is_a_few_numbers_a_row(tmp_path, monkeypatch):
    """Kilobytes of text a row, of which none is held: neither by Arrow nor by Python."""
    draw = random.Random(0)
    rows = [(f"who is {i // 50}?", draw.randbytes(500).hex(), i % 2, i // 50) for i in range(5_000)]
    monkeypatch.setattr(tables, "BATCH", 100)
    as_on_the_hub(tmp_path, monkeypatch, "asnq", rows, files=2, group=100)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    splits = load_answers("asnq")
    held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert len(splits["train"]) == 100
    assert held < 3 * sum(len(row[1]) for row in rows) / 8
