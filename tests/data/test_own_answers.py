"""A user's questions: splits that share no text, files of every form, and a warning with a count for all that is left out."""

import gzip
import io
import json
import math
import re
import unicodedata
import zlib
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil.data import answers, load_claims, own_answers, splits, table_files, tables
from asutil.data.answers import load_answers

COLUMNS = ["question_id", "question", "answer", "label"]


def rows_of(texts, each=1):
    """Two candidates for each of `each` ids of every text."""
    return [(f"d{n}-{i}", text, f"answer {k} to {i} of {n}", k) for i, text in enumerate(texts) for n in range(each) for k in (0, 1)]


def table(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def written(path, rows):
    path.write_text("".join(json.dumps(dict(zip(COLUMNS, row))) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path) -> Counter:
    return Counter((q.text, c.text, c.label) for split in load_answers(path).values() for q in split for c in q.candidates)


# ------------------------------------------------------------------ the division


@pytest.mark.parametrize(
    ("texts", "each", "tenths"), [(20, 15, (30, 30)), (300, 1, (30, 30)), (3, 1, (1, 1)), (3, 40, (40, 40)), (12, 15, (15, 15))]
)
def test_all_questions_of_a_text_are_in_one_split(tmp_path, caplog, texts, each, tenths):
    changed = (str.upper, str, lambda text: text.replace(" ", "  "), lambda text: text.replace("?", " ?"))
    rows = [
        (id, changed[number // 2 % 4](text), answer, label)
        for number, (id, text, answer, label) in enumerate(rows_of([f"where is house {n}?" for n in range(texts)], each))
    ]
    splits = load_answers(written(tmp_path / "faq.jsonl", rows))
    known = {split: {" ".join(q.text.casefold().replace("?", " ?").split()) for q in questions} for split, questions in splits.items()}
    assert sum(map(len, known.values())) == len(set().union(*known.values())) == texts
    assert (len(splits["dev"]), len(splits["test"])) == tenths
    assert sum(map(len, splits.values())) == texts * each
    assert not caplog.messages
    order = list(dict.fromkeys(row[0] for row in rows))
    assert all([q.id for q in split] == sorted((q.id for q in split), key=order.index) for split in splits.values())
    backwards = load_answers(written(tmp_path / "faq.jsonl", rows[::-1]))
    assert {q.id for q in backwards["test"]} == {q.id for q in splits["test"]}
    two = [row for row in rows if row[1].split()[3].strip(" ?") in "01"]
    with pytest.raises(ValueError, match=r"at least 3 questions with different texts .* got 2"):
        load_answers(written(tmp_path / "two.jsonl", two))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.sampled_from([1, 1, 1, 2, 5, 40]), min_size=3, max_size=40))
def test_no_split_is_empty_and_dev_and_test_are_a_tenth_at_most_or_one_text(tmp_path_factory, sizes):
    rows = [row for n, size in enumerate(sizes) for row in rows_of([f"text {n}"], size)]
    rows = [(f"q{n // 2}", *row[1:]) for n, row in enumerate(rows)]
    splits = load_answers(written(tmp_path_factory.getbasetemp() / "sizes.jsonl", rows))
    for split in ("dev", "test"):
        texts = {q.text for q in splits[split]}
        assert len(splits[split]) <= max(1, sum(sizes) // 10) or len(texts) == 1
        assert texts.isdisjoint(q.text for q in splits["train"])
    assert len(splits["train"]) and sum(map(len, splits.values())) == sum(sizes)


def test_another_division_is_another_data_set(tmp_path, monkeypatch):
    path = written(tmp_path / "all.jsonl", rows_of("abc"))
    before = answers.fingerprint_of_answers(path)
    monkeypatch.setattr(own_answers, "DIVISION", "by id")
    assert answers.fingerprint_of_answers(path) != before


@settings(deadline=None)
@given(words=st.lists(st.text("abcÄéß½x<7", min_size=1), min_size=1), spaces=st.sampled_from([" ", "\u00a0", "\t ", "\n"]))
def test_copies_of_a_text_are_the_same_text(words, spaces):
    text = " ".join(words)
    copies = [text.upper(), spaces.join(words), f" {text} ?", unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)]
    assert {splits.same_text(copy) for copy in copies} == {splits.same_text(text)}
    assert splits.same_text("?") != splits.same_text("!")
    for text in ("他出生于北京。", "أين ولد الكاتب؟", "वह कहाँ है।"):
        assert splits.same_text(text) == splits.same_text(text[:-1])
    assert len(splits.same_text("." * 90_000 + "a")) == 180_001  # at once: marks before a word are read once


# ------------------------------------------------------------------ limits


def test_a_file_of_claims_is_refused_with_the_names_of_the_files(tmp_path):
    (tmp_path / "claims.jsonl").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"folder with claims that holds train\.jsonl, dev\.jsonl .* got a file"):
        load_claims(tmp_path / "claims.jsonl")


# ------------------------------------------------------------------ what is left out


def test_dev_and_test_leave_out_what_has_no_right_answer_and_say_so(tmp_path, caplog):
    for split in ("train", "dev", "test"):
        rows = [*rows_of([f"{split} {n}?" for n in range(3)]), ("n", f"{split} none?", "no", 0), ("m", f"{split} nothing?", "no", 0)]
        written(tmp_path / f"{split}.jsonl", rows)
    splits = load_answers(tmp_path)
    assert [len(split) for split in splits.values()] == [5, 3, 3]
    assert splits["dev"].report["dropped"] == {"no positive": {"questions": 2, "candidates": 2}}
    assert [message.partition(": no order")[0] for message in caplog.messages] == [
        f"{tmp_path / split}.jsonl: 2 of 5 {split} questions have no candidate with label 1 and are left out, the first in row 7"
        for split in ("dev", "test")
    ]


def test_blank_candidates_are_left_out_and_counted(tmp_path, caplog):
    rows = rows_of([f"q{n}" for n in range(30)])
    blank = [(f"d0-{n}", f"q{n}", " " * (n % 3), 0) for n in range(30)] + [("z", "alone?", "", 0)]
    splits = load_answers(written(tmp_path / "all.jsonl", [*rows, *blank]))
    assert caplog.messages == [
        f"{tmp_path / 'all.jsonl'}: 31 candidates are blank and are left out, the first in row 61; "
        "1 questions have no other and are left out, too"
    ]
    assert read(tmp_path / "all.jsonl") == Counter(row[1:] for row in rows)
    reports = [split.report for split in splits.values()]
    assert sum(report["read"]["candidates"] for report in reports) == len(rows) + 31
    assert [sum(report["dropped"]["blank"][what] for report in reports) for what in ("questions", "candidates")] == [1, 31]
    for report in reports:
        assert report["kept"]["candidates"] + report["dropped"]["blank"]["candidates"] == report["read"]["candidates"]


def titled(size, right=lambda n: n % 5, text="{letter}: answer of {page}"):
    """Questions about pages of five sentences, three about each page; the right one is anywhere."""
    made = [(n, k, text.format(letter="cadbe"[k], page=n // 3, number=k + 1), int(k == right(n))) for n in range(size) for k in range(5)]
    return pd.DataFrame([(f"q{n}", f"{n}?", answer, label, "d") for n, _, answer, label in made], columns=[*COLUMNS, "document_title"])


SORTED = {
    "the right candidates stand first in 100% of the questions": lambda row: -row.label,
    "the right candidates stand last in 100% of the questions": lambda row: row.label,
    "100% of the questions have their candidates in alphabetical order": lambda row: row.answer,
    "neighbours that another question has, too, [1-4][0-9]% are neighbours there in the same order": lambda row: zlib.crc32(
        str(row).encode()
    ),
}


@pytest.mark.parametrize("reason", SORTED)
@pytest.mark.parametrize("divided", [False, True])
def test_rows_that_are_not_in_the_documents_order_give_no_context(divided, reason, tmp_path, caplog):
    """Else the order alone ranks them, and the text before and after a candidate tells its label. Few questions a file are enough."""
    own = titled(57 if "stand" in reason else 90)
    own = own.assign(key=[SORTED[reason](row) for row in own.itertuples()]).sort_values(["question", "key"], kind="stable")
    path = tmp_path / "mine.csv"
    if divided:
        (path := tmp_path / "mine").mkdir()
        for number, (_, part) in enumerate(own.groupby(own.question_id.str[1:].astype(int) * 3 // (len(own) // 5))):
            part.to_csv(path / f"{splits.SPLITS[number]}.csv")
    else:
        own.to_csv(path)
    with pytest.raises(ValueError, match="no sentences before and after a candidate are known.*a warning says where"):
        load_answers(path, context=True)
    assert [
        re.search(f"{path.name}: .*{reason}: rows are not taken for the document's order$", text) is None for text in caplog.messages
    ] == [False]


def apart(own, title):
    """The rows of each question shuffled, under titles of their own: no order of one document, but none of another either."""
    return own.sample(frac=1, random_state=1).sort_values("question_id", kind="stable").assign(document_title=title)


@pytest.mark.parametrize(
    "own",
    [
        titled(90),
        apart(titled(90), lambda own: own.question_id),  # documents that repeat what others say
        pd.concat(
            [titled(90).assign(document_title="d"), apart(titled(90, text="{letter} {page}"), None).assign(label=0)]
        ),  # and no document
        titled(90, text="{number}. {letter} of {page}"),  # as in a law
        titled(90, right=lambda n: 0 if n < 19 else 9),  # the right one first, of few questions with both labels
        titled(12).sort_values(["question_id", "label"], ascending=[True, False]),  # too few to tell
    ],
)
def test_rows_that_may_be_in_the_documents_order_give_a_context(own, tmp_path):
    own.to_csv(tmp_path / "mine.csv")
    assert all(split.ordered for split in load_answers(tmp_path / "mine.csv", context=True).values())


def test_a_split_of_blank_candidates_alone_says_why_it_is_empty(tmp_path):
    for split in ("train", "dev"):
        written(tmp_path / f"{split}.jsonl", rows_of([split]))
    written(tmp_path / "test.jsonl", [("a", "b", "", 0)])
    with pytest.raises(ValueError, match="test: no question is left, of 1 questions and 1 candidates: blank: 1 questions and 1 candidates"):
        load_answers(tmp_path)


def test_repeated_candidates_are_warned_of(tmp_path, caplog):
    rows = [*rows_of("abc"), ("d0-0", "a", " Answer 0 to 0 of 0!", 0), ("d0-1", "b", "answer 0 to 0 of 0", 0)]
    load_answers(written(tmp_path / "all.jsonl", rows))
    (message,) = caplog.messages
    assert "1 rows repeat a candidate of their question, the first is row 7" in message


@pytest.mark.parametrize("change", [lambda text: unicodedata.normalize("NFD", text), lambda text: text.replace(" ", "\u00a0"), str.upper])
def test_a_question_in_two_spellings_is_warned_of(tmp_path, caplog, change):
    texts = ["où est le café", "b c", *map(change, ("où est le café", "b c"))]
    rows = [{"question": text, "answer": f"answer {k}", "label": k} for text in texts for k in (0, 1)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    load_answers(tmp_path, needed=["test"])
    different = len(set(texts)) - 2
    assert f"{different} of {2 + different} questions repeat another one but for case, white space" in caplog.text


def test_what_pandas_writes_for_a_missing_title_is_none(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text(
        "".join(json.dumps({"question": "a", "answer": f"b{k}", "label": k, "document_title": math.nan}) + "\n" for k in (0, 1))
    )
    content, _ = table_files.read(path)
    assert content["document_title"].null_count == 2


# ------------------------------------------------------------------ forms of files


FORMS = {
    ".tsv": lambda frame: frame.to_csv(sep="\t", index=False),
    ".csv": lambda frame: frame.to_csv(index=False),
    ".jsonl": lambda frame: frame.to_json(orient="records", lines=True),
    ".json": lambda frame: frame.to_json(orient="records"),
}
FORMS |= {f"{form}.gz": FORMS[form] for form in (".tsv", ".csv", ".jsonl")}
FORMS[".parquet"] = lambda frame: frame.to_parquet()
WORD = st.text(st.sampled_from('a"é,;\t\n \u2028x'), min_size=1).filter(str.strip)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(texts=st.lists(st.tuples(WORD, WORD), min_size=3, max_size=9), form=st.sampled_from(sorted(FORMS)), capitals=st.booleans())
def test_what_pandas_writes_is_read_as_it_was_labels_too_that_are_true_or_false(tmp_path_factory, texts, form, capitals):
    rows = [(f"q{n}", f"{n} {question}", f"{answer}{k}", k == 1) for n, (question, answer) in enumerate(texts) for k in (0, 1)]
    path = tmp_path_factory.getbasetemp() / f"made{form.upper() if capitals else form}"
    data = FORMS[form](table(rows))
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    try:
        assert read(path) == Counter((question.strip(), *row) for _, question, *row in rows)
    except ValueError:  # a text that looks like rows of the table itself is refused, never split or joined
        assert form.startswith(".tsv") and any("\t" in text and "\n" in text for pair in texts for text in pair)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(texts=st.lists(st.text(st.sampled_from('a" x'), min_size=1).filter(str.strip), min_size=2, max_size=9))
def test_lone_quotes_of_a_tsv_are_characters(tmp_path_factory, texts):
    rows = [(f"q{n}", f"question {n}", text, 1) for n, text in enumerate(['"Yes, he said.', *texts])]
    path = tmp_path_factory.getbasetemp() / "raw.tsv"
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [COLUMNS, *rows]))
    assert read(path) == Counter(row[1:] for row in rows)


def test_a_quoted_tsv_is_read_without_its_quotes_and_a_warning(tmp_path, caplog):
    rows = rows_of([f'the "nest" {n}' for n in range(4)])
    path = tmp_path / "all.tsv"
    path.write_text(table(rows).to_csv(sep="\t", index=False))
    assert read(path) == Counter(row[1:] for row in rows)
    assert "8 fields are in quotation marks, the first in row 2" in caplog.messages[0]
    caplog.clear()
    path.write_text(path.read_text() + '"q9"\tq\t"lone\t1\n')
    assert '"the ""nest"" 0"' in {q for q, _, _ in read(path)}
    assert "8 fields have doubled quotation marks, the first in row 2; they stay" in caplog.messages[0]


@pytest.mark.parametrize("texts", [["a, b", "c", "d"], ["a, b", "c, d", "e, f"]])
def test_fields_that_are_quoted_for_their_commas_lose_their_marks(tmp_path, caplog, texts):
    """As Excel writes text between tabs; where another field has a comma and no marks, the marks are the text's own."""
    rows, quoted = rows_of(texts), lambda text: f'"{text}"' if "," in text else text
    lines = ["\t".join(map(str, row)) for row in [COLUMNS, *((id, quoted(q), quoted(a), label) for id, q, a, label in rows)]]
    (tmp_path / "all.tsv").write_text("\n".join(lines))
    assert read(tmp_path / "all.tsv") == Counter(row[1:] for row in rows) and "in quotation marks" in caplog.text
    (tmp_path / "all.tsv").write_text("\n".join([*lines, "q9\tone, two\tx\t1"]))
    assert any('"' in text for row in read(tmp_path / "all.tsv") for text in row[:2])


def test_blanks_at_the_ends_of_a_question_or_its_id_make_no_other_question(tmp_path):
    lines = ["question\tanswer\tlabel", *(f"q{n}{' ' * (label > 0)}\ta{n} {label}\t{label}" for n in range(30) for label in (0, 1))]
    (tmp_path / "texts.tsv").write_text("\n".join(lines))
    ids = ["question_id\tquestion\tanswer\tlabel", *(f"{n}{' ' * label}\tq{n}\ta {label}\t{label}" for n in range(30) for label in (0, 1))]
    (tmp_path / "ids.tsv").write_text("\n".join(ids))
    for name in ("texts", "ids"):
        splits = load_answers(tmp_path / f"{name}.tsv")
        assert sorted(question.text for split in splits.values() for question in split) == sorted(f"q{n}" for n in range(30))


@pytest.mark.parametrize("value", [{"text": "yes"}, ["yes"]])
def test_a_column_of_lists_or_objects_is_no_text_under_any_name(tmp_path, value):
    rows = [{"query": "q", "passage": "a", "label": 1}, {"query": "q", "passage": value, "label": 0}]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match="row 2: expected text in 'answer', got None"):
        load_answers(tmp_path / "all.jsonl", columns={"question": "query", "answer": "passage"})


def test_lone_quotes_join_no_rows_of_a_tsv_with_a_bad_one(tmp_path):
    lines = ["question\tanswer\tlabel", *[f"q{n}\ta{n}\t1" for n in range(9)]]
    lines[2], lines[4], lines[7] = 'q\t"Yes\t1', "bad\trow\tof\tfour", 'q\tNo"\t0'
    (tmp_path / "all.tsv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="row 5: expected 3 fields, .*, got 4"):
        load_answers(tmp_path / "all.tsv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'question,answer,label\n"q\nr",a,1\n\nq,b,2\n', "row 4: expected the label 0 or 1, got '2'"),
        ("a.csv", 'question,answer,label\nq,"a,1\n', "row 2: expected fields between commas"),
        ("a.csv", 'question,answer,label\nq,"a"b,1\n', "row 2: expected fields between commas"),
        ("a.csv", "question;answer;label\nq;a, b;1\n", r"row 2: expected 1 fields, \['question;answer;label'\], got 2"),
        ("a.csv", "\n\n", "is empty"),
        ("a.json", '[{"question": "q", "answer": "a", "label": 1}, 7]', "row 2: expected a JSON object with text, got int"),
        ("a.json", '{"question": "q"}', "expected a JSON list of objects"),
        ("a.jsonl", '{"question": "q", "answer": "a", "label": 1}\n{}', "row 2: expected a JSON object with text, got dict without names"),
        ("a.jsonl.gz", "{}", "expected a file that gzip can unpack"),
        ("a.csv.gz", gzip.compress(b"question,answer,label\nq,a,1\n", mtime=0)[:-9], "expected a file that gzip can unpack"),
        ("a.xlsx", "x", r"got \.xlsx. Convert it once, there: python -c .*read_excel\('a.xlsx'\).to_csv\('a.csv', index=False\)"),
        ("a.csv", "Question,anser,label\nq,a,1\n", "lacks answer; got .*; rename 'anser' to 'answer'"),
        ("a.csv", "Question,question,Answer,label\nq,r,a,1\n", "expected one column 'question', got 'Question', 'question'"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"(?s)a\.[a-z.]+.*{message}"):
        load_answers(tmp_path / name)


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl"])
def test_blank_lines_are_skipped_and_rows_keep_their_numbers(tmp_path, suffix):
    lines = FORMS[suffix](table(rows_of("abcd"))).splitlines()
    path = tmp_path / f"a{suffix}"
    path.write_text("\n".join([*lines[:3], "", " ", *lines[3:], "", "\n"]))
    assert read(path) == Counter(row[1:] for row in rows_of("abcd"))
    path.write_text(path.read_text().replace("answer 0 to 3 of 0", ""))
    assert tables.read_table(path)["row"].to_pylist()[-1] == len(lines) + 2


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_objects_need_not_have_the_same_names_however_many_are_read_at_a_time(tmp_path, monkeypatch, batch):
    records = [
        {"question": f"{n % 4}", "answer": "" if n == 6 else f"a{n // 8}", "label": n % 2} | ({"note": n} if n > 3 else {})
        for n in range(8)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    monkeypatch.setattr(table_files, "BATCH", batch)
    content, rows = table_files.read(tmp_path / "a.jsonl")
    texts = [{name: str(value) for name, value in one.items()} for one in records]
    assert content.to_pylist() == [{"note": None} | one for one in texts] and list(rows) == list(range(1, 9))
    assert tables.read_table(tmp_path / "a.jsonl")["label"].to_pylist() == [0, 1] * 4


def test_labels_and_column_names_in_any_spelling(tmp_path):
    right, wrong = ["1", " 1 ", "1.0", "TRUE", "True", "yes", "Yes"], ["0", "0.0", "FALSE", "no", " NO ", "false", "False"]
    rows = [(f"q{n}", f"{label}{n}", label) for n, pair in enumerate(zip(right, wrong)) for label in pair]
    frame = pd.DataFrame(rows, columns=["Question ", "ANSWER", "Label"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv") == Counter((q, text, int(label in right)) for q, text, label in rows)


def test_columns_of_wikiqa_in_its_own_spelling(tmp_path):
    """Without its ids questions of one text would be one question."""
    rows = [(f"Q{n}", f"Who won {n % 4}?", "A title", f"answer {n} {label}", label) for n in range(12) for label in (1, 0)]
    pd.DataFrame(rows, columns=["QuestionID", "Question", "DocumentTitle", "Answer", "Label"]).to_csv(tmp_path / "a.csv", index=False)
    assert sum(len(part) for part in answers.load_answers(tmp_path / "a.csv").values()) == 12
    (tmp_path / "b.csv").write_text("questionId,question_id,question,answer,label\n1,a,q,r,1\n1,b,q,s,0\n")
    assert tables.read_table(tmp_path / "b.csv")["question_id"].to_pylist() == ["a", "b"], "the exact name goes first"


def test_training_questions_without_a_right_candidate_are_refused(tmp_path):
    for split, label in (("train", 0), ("dev", 1), ("test", 1)):
        (tmp_path / f"{split}.tsv").write_text(f"question\tanswer\tlabel\nq {split}\ta {split}\t{label}\nq {split}\tb {split}\t0\n")
    with pytest.raises(ValueError, match="train: expected a question with a right candidate, label 1; got none in 1"):
        answers.load_answers(tmp_path)
    assert len(answers.load_answers(tmp_path, needed=["test"])["test"]) == 1, "nothing learns from train"


def test_dev_may_be_called_validation(tmp_path):
    for split in ("train", "validation", "test"):
        table(rows_of([split])).to_csv(tmp_path / f"{split}.CSV", index=False)
    assert [q.text for q in load_answers(tmp_path)["dev"]] == ["validation"]
    table(rows_of(["dev"])).to_csv(tmp_path / "dev.csv", index=False)
    with pytest.raises(ValueError, match=r"expected one file for dev, got dev\.csv, validation\.CSV"):
        load_answers(tmp_path)


@pytest.mark.parametrize("there", [["test"], ["dev", "test"], ["train", "test"]])
def test_a_folder_may_lack_the_splits_that_are_not_needed(tmp_path, caplog, there):
    for split in ("train", "dev", "test"):
        table(rows_of([split, "shared"])).to_csv(tmp_path / f"{split}.csv", index=False)
    missing = [split for split in ("train", "dev") if split not in there]
    whole, known = answers.fingerprint_of_answers(tmp_path), load_answers(tmp_path)
    for split in missing:
        (tmp_path / f"{split}.csv").unlink()
    assert {split: list(few) for split, few in load_answers(tmp_path, needed=["test"]).items()} == {
        name: list(known[name]) for name in there
    }
    assert answers.fingerprint_of_answers(tmp_path) != whole
    assert f"has no file for {' and '.join(missing)}; it holds" in caplog.text
    with pytest.raises(FileNotFoundError, match=f"expected one of {'dev' if 'train' in there else 'train'}.tsv"):
        load_answers(tmp_path)
    (tmp_path / "test.csv").unlink()
    with pytest.raises(FileNotFoundError, match="expected one of test.tsv"):
        load_answers(tmp_path, needed=["test"])


def test_ids_that_are_made_from_a_name_have_no_white_space(tmp_path):
    for name, stem in (("my  questions (1).csv", "my-questions-(1)"), ("plain.v2.csv", "plain.v2"), ("packed.CSV.gz", "packed")):
        text = io.StringIO()
        table(rows_of("abc")).drop(columns="question_id").to_csv(text, index=False)
        data = text.getvalue().encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        ids = {q.id for split in load_answers(tmp_path / name).values() for q in split}
        assert ids == {f"{stem}-{n}" for n in range(3)}
        assert table_files.stem_of(tmp_path / name) == stem
