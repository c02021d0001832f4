"""Questions with evidence: rows of HotpotQA's and QASPER's form by hand, a folder by round trip and by malformed input, the mirror."""

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asutil.data import hotpotqa as hotpotqa_form
from asutil.data import long_questions, qasper, question_rows
from asutil.data.data_sets import LONG
from asutil.data.long_questions import Answer, LongQuestion, Passage, load_evidence, question_types
from asutil.io import hub

CARDS = Path(__file__).parents[2] / "data_cards"


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in rows), encoding="utf-8")
    return path


def card(name):
    return yaml.safe_load((CARDS / f"{name}.md").read_text(encoding="utf-8").split("---\n")[1])


def pointed(questions):
    """The sentences that are evidence; an index error where a pair points nowhere."""
    each = [(question.passages, sorted(answer.evidence)) for question in questions for answer in question.answers]
    return [[passages[i].sentences[j] for i, j in evidence] for passages, evidence in each]


# -------------------------------------------------------------------------------------------------------------- HotpotQA

CONTEXT = {
    "title": ["Oslo", "Bergen", "Oslo"],
    "sentences": [["Oslo is a city.", " It is  large.", ""], ["Bergen rains."], ["Oslo is a city.", " Another one."]],
}


def hotpot(id="h1", question=" Which city\nrains? ", answer="Bergen", facts=(("Bergen", 0),), context=CONTEXT):
    titles, numbers = zip(*facts) if facts else ((), ())
    supporting = {"title": list(titles), "sent_id": list(numbers)}
    made = {"id": id, "question": question, "answer": answer, "type": "bridge", "level": "easy"}
    return {**made, "supporting_facts": supporting, "context": context}


@pytest.fixture
def hotpotqa(tmp_path, monkeypatch):
    """A mirror with HotpotQA's columns; a test overwrites the rows that it is about."""
    folder = tmp_path / "mirror" / "hotpotqa" / "hotpot_qa"
    folder.mkdir(parents=True)
    monkeypatch.setenv(hub.MIRROR, str(tmp_path / "mirror"))

    def written(*rows, stem="train"):
        pq.write_table(pa.Table.from_pylist(list(rows)), folder / f"{stem}.parquet")

    written(hotpot())
    written(hotpot("h2", answer="yes"), stem="validation")
    return written


def test_hotpotqa_by_hand(hotpotqa):
    hotpotqa(
        hotpot(),
        hotpot("h2", answer="yes", facts=[("Oslo", 1), ("Oslo", 2), ("Bergen", 0), ("Bergen", 0), ("Bergen", 3), ("Rome", 0)]),
        hotpot("h3", answer="No", facts=[("Oslo", -1)]),
        hotpot(None, answer="no", facts=[]),
    )
    splits = load_evidence("hotpotqa")
    first, second, third, last = splits["train"]
    passages = (
        Passage("Oslo", ("Oslo is a city.", "It is large.", "")),
        Passage("Bergen", ("Bergen rains.",)),
        Passage("Oslo", ("Oslo is a city.", "Another one.")),
    )
    assert first == LongQuestion("h1", "Which city rains?", passages, (Answer("Bergen", "span", frozenset({(1, 0)})),))
    assert second.answers == (Answer("yes", "yes", frozenset({(0, 1), (2, 1), (0, 2), (1, 0)})),), "a title of two paragraphs names both"
    assert third.answers == (Answer("No", "span", frozenset()),), "kept without evidence; only small letters are yes and no"
    assert last.answers[0].kind == "no" and re.fullmatch("unnamed-[0-9a-f]{16}", last.id)
    assert splits["train"].report == {
        "read": {"questions": 4, "evidence": 9},
        "kept": {"questions": 4, "evidence": 5},
        "dropped": {
            "evidence beyond the end of its paragraph": {"questions": 0, "evidence": 2},
            "evidence in no paragraph": {"questions": 0, "evidence": 1},
            "evidence named twice": {"questions": 0, "evidence": 1},
        },
        "note": "4 questions, of the published 90,447 questions; 1 without an id",
    }
    assert splits["test"] == [] and splits["test"].report["note"] == "no labelled test set"
    assert [question.id for question in splits["dev"]] == ["h2"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([hotpot(), hotpot()], r"train\.parquet, row 2: expected distinct ids, got 'h1' as in .*row 1"),
        ([hotpot(answer=" ")], r"train\.parquet, row 1: expected text in 'answer'"),
        ([hotpot(question=None), hotpot("b")], r"row 1: expected text in 'question', got None"),
        ([hotpot("a\0")], r"row 1: expected text that UTF-8 can encode, got a NUL byte"),
        ([hotpot(context={"title": ["Oslo"], "sentences": [["a"], ["b"]]})], r"row 1: expected context and supporting_facts as HotpotQA"),
        ([hotpot(context={"title": ["Oslo"], "sentences": [["a", None]]})], r"row 1, passage 0: expected a title and a list of sentences"),
        ([hotpot(context={"title": [], "sentences": []})], r"row 1: expected a list of passages, at least one"),
        ([{"id": "a", "question": "b"}], r"train\.parquet: expected the columns .*lacks answer, supporting_facts, context; got id, qu"),
    ],
)
def test_hotpotqa_errors_name_file_and_row(hotpotqa, rows, said):
    hotpotqa(*rows)
    with pytest.raises(ValueError, match=said):
        load_evidence("hotpotqa")


def test_text_that_is_no_utf_8_is_refused_by_file_and_row():
    texts = pa.array([b"a", b"half \xed\xa0\xbd"], pa.binary()).view(pa.string())
    with pytest.raises(ValueError, match=r"train\.parquet row 2: 'utf-8' codec can't decode"):
        list(long_questions.parquet_rows([("owner/train.parquet", pa.table({"question": texts}))], ["question"]))


def counting(monkeypatch, name, counts):
    monkeypatch.setitem(LONG, name, replace(LONG[name], counts=counts))


def put(folder, splits, form="{}-00000-of-00001"):
    for split, rows in splits.items():
        path = folder / f"{form.format(split)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)


def test_counts_are_asserted_where_the_whole_is_read(on_hub, monkeypatch):
    """From a hub with two configurations, of which `fullwiki` is not read."""
    root, _ = on_hub
    folder = root / "datasets/hotpotqa/hotpot_qa/main"
    put(folder / "distractor", {"train": [hotpot(), hotpot("b")], "validation": [hotpot()]})
    put(folder / "fullwiki", {"train": [hotpot("c")], "validation": [hotpot("c")], "test": [hotpot("c")]})
    with pytest.raises(ValueError, match=r"hotpotqa/hotpot_qa/train: expected 90,447 questions, got 2 questions"):
        load_evidence("hotpotqa")
    counting(monkeypatch, "hotpotqa", {"train": {"questions": 2}, "dev": {"questions": 1}})
    splits = load_evidence("hotpotqa")
    assert splits["train"].report["note"] == splits["dev"].report["note"] == ""
    shutil.copytree(folder, root / "mirror/hotpotqa/hotpot_qa")  # as `hf download` writes it
    monkeypatch.setenv(hub.MIRROR, str(root / "mirror"))
    assert [[q.id for q in split] for split in load_evidence("hotpotqa").values()] == [["h1", "b"], ["h1"], []]


def test_cards_have_the_counts_that_loading_asserts():
    counts = {split: {"questions": count["questions"]} for split, count in card("hotpotqa")["counts"]["distractor"].items()}
    assert counts == LONG["hotpotqa"].counts
    counts = {split: dict(zip(("questions", "papers"), count.values())) for split, count in card("qasper")["counts"]["v0.3"].items()}
    assert counts == LONG["qasper"].counts
    assert sum(count["questions"] for count in counts.values()) == 5_049, "the total in the title of QASPER's own page"


def released(row):
    """A row of the hub's form as the release writes it."""
    pairs = lambda columns: [list(pair) for pair in zip(*columns.values(), strict=True)]
    kept = {name: row[name] for name in ("question", "answer", "type", "level")}
    return {"_id": row["id"], **kept, "supporting_facts": pairs(row["supporting_facts"]), "context": pairs(row["context"])}


@pytest.fixture
def hotpot_release(tmp_path, monkeypatch):
    """A folder with HotpotQA's own files, of which test and the whole of Wikipedia are not read, and the rows that are in them."""
    rows = {"train": [hotpot(facts=[("Oslo", 1), ("Oslo", 7)]), hotpot("b", answer="yes")], "dev": [hotpot("c", answer="no", facts=[])]}
    names = {"train": "hotpot_train_v1.1.json", "dev": "hotpot_dev_distractor_v1.json"}
    for split, name in names.items():
        write(tmp_path / "release" / name, [[released(row) for row in rows[split]]])
    for other in ("hotpot_dev_fullwiki_v1.json", "hotpot_test_fullwiki_v1.json"):
        write(tmp_path / "release" / other, [[]])
    counting(monkeypatch, "hotpotqa", {split: {"questions": len(of)} for split, of in rows.items()})
    return tmp_path / "release", rows


def test_the_files_of_hotpotqas_release_are_what_the_hub_has(hotpot_release, hotpotqa):
    folder, rows = hotpot_release
    splits = load_evidence(folder)
    for split, stem in (("train", "train"), ("dev", "validation")):
        hotpotqa(*rows[split], stem=stem)
    mirrored = load_evidence("hotpotqa")
    for split in ("train", "dev"):
        assert len(splits[split]) == len(rows[split]) and splits[split] == mirrored[split]
        assert splits[split].report == mirrored[split].report
    assert splits["train"].report["dropped"] == {"evidence beyond the end of its paragraph": {"questions": 0, "evidence": 1}}
    assert splits["test"] == [] and question_types(folder, splits) == long_questions.KINDS["hotpotqa"]
    before = [long_questions.fingerprint_of_evidence(name) for name in (folder, "hotpotqa")]
    write(folder / "hotpot_dev_distractor_v1.json", [[released(hotpot("other"))]])
    hotpotqa(hotpot("other"))
    assert not {*before} & {long_questions.fingerprint_of_evidence(name) for name in (folder, "hotpotqa")}
    assert long_questions.fingerprint_of_evidence("qasper") == "allenai/qasper", "not in the mirror; its counts are asserted"
    held = folder.parent / "mirror" / "hotpotqa" / "hotpot_qa"
    shutil.rmtree(held)
    write(folder / "hotpot_dev_distractor_v1.json", [[released(row) for row in rows["dev"]]])
    folder.rename(held)
    assert load_evidence("hotpotqa")["train"] == splits["train"], "the release in the mirror, too"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], r": expected a JSON list of questions, got \[\]"),
        ({"a": 1}, r": expected a JSON list of questions, got {.a.: 1}"),
        (7, ": expected a JSON list of questions, got 7"),
        ("{", ": expected a JSON list of questions: not JSON"),
        ([{"_id": "a"}], ", question 1: expected context and supporting_facts .*KeyError: 'question'"),
        ([released(hotpot()) | {"context": [["Oslo"]]}], ", question 1: expected context and supporting_facts .*ValueError"),
        ([released(hotpot()) | {"context": [["Oslo", "a"]]}], ", question 1, passage 0: expected a title and a list of sentences"),
        ([released(hotpot())] * 2, ", question 2: expected distinct ids"),
        ([released(hotpot()), released(hotpot("b"))], ": expected 1 questions, got 2 questions"),
    ],
)
def test_errors_of_hotpotqas_release_name_file_and_question(hotpot_release, content, said):
    folder, _ = hotpot_release
    write(folder / "hotpot_dev_distractor_v1.json", [content])
    with pytest.raises(ValueError, match=rf"hotpot_dev_distractor_v1\.json{said}"):
        load_evidence(folder)


# ---------------------------------------------------------------------------------------------------------------- QASPER


def answered(evidence=(), spans=(), free="", yes_no=None, unanswerable=False):
    made = {"unanswerable": unanswerable, "extractive_spans": list(spans), "yes_no": yes_no, "free_form_answer": free}
    return {**made, "evidence": list(evidence), "highlighted_evidence": []}


ANSWERS = [
    answered(["We  use BERT. ", "A line\nin two."], spans=["BERT", "two"], free="not this"),
    answered(["use BERT.", "FLOAT SELECTED: Table 1", "Not there at all.", ""], free=" A free\nanswer "),
    answered(["We use BERT.", "We use BERT."], yes_no=True),
    answered([], yes_no=False),
    answered(["We use BERT."], unanswerable=True, yes_no=True),
]
SECTIONS = [("Intro", ["We use BERT.", "", "A line in two."]), (None, ["More."]), ("Again", ["We use BERT.", "Then we use BERT. Twice."])]


def paper(answers=ANSWERS, question="What is used?", id="q1", sections=SECTIONS):
    """As in the release, a paper without its id."""
    full_text = [{"section_name": name, "paragraphs": texts} for name, texts in sections]
    asked = {"question": question, "question_id": id, "answers": [{"answer": one, "annotation_id": "a"} for one in answers]}
    return {"title": "T", "abstract": "A.", "full_text": full_text, "qas": [asked]}


def as_on_the_hub(id, paper):
    """The same in the hub's columns: a list of objects is an object of lists there."""

    def lists(objects):
        return {name: [one[name] for one in objects] for name in objects[0]}

    asked = lists([{**one, "answers": lists(one["answers"])} for one in paper["qas"]])
    return {"id": id, "title": paper["title"], "abstract": "A.", "full_text": lists(paper["full_text"]), "qas": asked}


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder with the JSON files of the release, and the counts that they should have."""
    for split in long_questions.SPLITS:
        write(tmp_path / "release" / f"qasper-{split}-v0.3.json", [{"1": paper(), "2": paper(id="q2", answers=ANSWERS[:1])}])
    counting(monkeypatch, "qasper", {split: {"questions": 2, "papers": 2} for split in long_questions.SPLITS})
    return tmp_path / "release"


def test_qasper_by_hand(release, tmp_path, monkeypatch):
    splits = load_evidence(release)
    question = splits["train"][0]
    assert question.passages == (
        Passage("Intro", ("We use BERT.", "A line in two.")),
        Passage("", ("More.",)),
        Passage("Again", ("We use BERT.", "Then we use BERT. Twice.")),
    )
    both = frozenset({(0, 0), (2, 0)})
    assert question.answers == (
        Answer("BERT, two", "extractive", both | {(0, 1)}),
        Answer("A free answer", "abstractive", both | {(2, 1)}),
        Answer("Yes", "yes", both),
        Answer("No", "no", frozenset()),
        Answer("Unanswerable", "unanswerable", frozenset()),
    )
    lost = {"a table or figure": 1, "blank": 1, "named twice": 1, "not in the text": 1, "of an unanswerable question": 1}
    assert splits["train"].report == {
        "read": {"questions": 2, "evidence": 11 + 5},
        "kept": {"questions": 2, "evidence": 11},
        "dropped": {f"evidence {reason}": {"questions": 0, "evidence": number} for reason, number in lost.items()},
        "note": "",
    }
    folder = tmp_path / "mirror" / "allenai" / "qasper"
    folder.mkdir(parents=True)
    monkeypatch.setenv(hub.MIRROR, str(tmp_path / "mirror"))
    rows = [as_on_the_hub("1", paper()), as_on_the_hub("2", paper(id="q2", answers=ANSWERS[:1]))]
    for stem in ("train", "validation"):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{stem}.parquet")
    mirrored = load_evidence("qasper")
    assert mirrored["train"] == splits["train"] and mirrored["dev"] == splits["dev"]
    assert mirrored["test"] == [] and mirrored["test"].report["note"] == "the mirror has no test file"
    each = long_questions.an_answer_each(splits["train"])
    assert [question.id for question in each] == ["q1"] * 5 + ["q2"]
    assert [question.answers[0] for question in each] == [*question.answers, question.answers[0]]
    (release / "qasper-test-v0.3.json").rename(folder / "qasper-test-v0.3.json")
    assert load_evidence("qasper")["test"] == splits["train"], "the release in the mirror, too"
    assert question_types("qasper", splits) == question_types(release, splits) == long_questions.KINDS["qasper"]


def test_qasper_from_the_hub_is_its_parquet_branch(release, on_hub):
    root, _ = on_hub
    rows = [as_on_the_hub("1", paper()), as_on_the_hub("2", paper(id="q2"))]
    folder = root / "datasets/allenai/qasper/refs__convert__parquet/qasper"
    put(folder, dict.fromkeys(("train", "validation", "test"), rows), "{}/0000")
    assert [len(split) for split in load_evidence("qasper").values()] == [2, 2, 2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"1": paper([answered()])}, r"qasper-dev-v0\.3\.json, paper 1, question q1, answer 1: expected an answer, got none"),
        ({"1": paper([answered(spans=[" "])])}, r"paper 1, question q1, answer 1: expected an answer, got none"),
        ({"1": paper([ANSWERS[0], {"unanswerable": False}])}, r"question q1, answer 2: expected an answer as QASPER .*KeyError"),
        ({"1": paper([])}, r"question q1: expected a list of answers, at least one"),
        ({"1": paper(), "2": paper()}, r"paper 2, question q1: expected distinct ids, got 'q1' as in .*paper 1"),
        ({"1": {"qas": []}}, r"paper 1: expected full_text and qas as QASPER has them, got KeyError: 'full_text'"),
        ({"1": []}, r"paper 1: expected full_text and qas"),
        ({"1": paper(sections=[("a", [None])])}, r"paper 1: expected full_text and qas"),
        ({"1": paper(question=" ")}, r"question q1: expected text in 'question'"),
        ([], r"qasper-dev-v0\.3\.json: expected a JSON object of papers, got \[\]"),
        ("{", r"qasper-dev-v0\.3\.json: expected a JSON object of papers: not JSON"),
        ({"1": paper()}, r"qasper-dev-v0\.3\.json: expected 2 questions and 2 papers, got 1 questions and 1 papers"),
    ],
)
def test_qasper_errors_name_file_paper_and_question(release, content, said):
    write(release / "qasper-dev-v0.3.json", [content])
    with pytest.raises(ValueError, match=said):
        load_evidence(release)


def test_a_paper_without_its_text_keeps_its_questions():
    ((_, row, lost),) = qasper.rows("here", paper(ANSWERS[:1], sections=[]))
    assert row["passages"] == [{"title": "T", "sentences": []}] and lost == {"not in the text": 2}


# ---------------------------------------------------------------------------------------------------- a folder of one's own

PASSAGES = [{"title": "Oslo", "sentences": ["It is large.", "It is in Norway."]}, {"title": "Bergen", "sentences": ["It rains."]}]


def row(id="a", answer="large", kind="span", evidence=((0, 0),), passages=PASSAGES, question="How is it?", **more):
    made = {"id": id, "question": question, "passages": passages, "answer": answer, "kind": kind, "evidence": list(map(list, evidence))}
    return {name: value for name, value in (made | more).items() if value != "absent"}


def several(*answers, **more):
    made = row(**more)
    return {name: made[name] for name in ("id", "question", "passages")} | {"answers": list(answers)}


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "dev"):
        write(tmp_path / "own" / f"{split}.jsonl", [row("a"), row("b", "Yes", "yes", [(0, 1), (1, 0)])])
    return tmp_path / "own"


def test_a_folder(folder, caplog):
    copies = [row("c", passages=PASSAGES[::-1]), row("d", question="HOW is  it")]
    write(folder / "test.jsonl", [*copies, row("e", passages=PASSAGES[:1])])  # the last one has another context
    load_evidence(folder)
    copies = ["2 of 2 dev questions are in train", "2 of 3 test questions are in train", "2 of 3 test questions are in dev"]
    assert caplog.messages == [f"{folder}: {text}, too" for text in copies]
    (folder / "test.jsonl").unlink()
    splits = load_evidence(folder)
    assert splits["dev"] == load_evidence(str(folder))["dev"]
    assert pointed(splits["dev"]) == [["It is large."], ["It is in Norway.", "It rains."]]
    assert splits["test"] == [] and splits["test"].report["note"] == "no test file"
    assert question_types(folder, splits) == long_questions.KINDS["hotpotqa"]
    one, other = {"answer": "It rains", "kind": "extractive", "evidence": [[1, 0]]}, {"answer": "no", "kind": "no", "evidence": []}
    for split in ("train", "dev"):
        write(folder / f"{split}.jsonl", [several(one, other), row("b", "no", "no"), row(3, "Unanswerable", "unanswerable", [])])
    splits = load_evidence(folder)
    kinds = [[answer.kind for answer in question.answers] for question in splits["train"]]
    assert kinds == [["extractive", "no"], ["no"], ["unanswerable"]]
    assert question_types(folder, splits) == long_questions.KINDS["qasper"] and splits["train"][2].id == "3"


NAN = json.dumps(row()).replace('"large"', "NaN")
BAD = [
    (["{"], r"line 2: not JSON"),
    (["[1]"], r"line 2: expected an object with 'question', got list"),
    ([{"id": 5, "question": "a"}], r"line 2: expected id, question, passages and answers, lacks passages; got id, question"),
    ([row(id="absent")], r"line 2: .*lacks id"),
    ([row("q"), row("q")], r"line 3: expected distinct ids, got 'q' as in .*line 2"),
    ([row("1st")], r"line 2: expected distinct ids, got '1st' as in .*line 1"),
    ([row(True)], r"line 2: expected an id, a number or text, got True"),
    ([row(" ")], r"line 2: expected an id"),
    ([row(question=" ")], r"line 2: expected text in 'question', got ' '"),
    ([row(passages=[])], r"line 2: expected a list of passages, at least one, got \[\]"),
    ([row(passages="none")], r"line 2: expected a list of passages"),
    ([row(passages=[*PASSAGES, {"title": "c"}])], r"line 2, passage 2: expected a title and a list of sentences"),
    ([row(passages=[["Oslo", ["It is large."]]])], r"line 2, passage 0: expected a title"),
    ([row(passages=[{"title": "a", "sentences": ["large", 3]}])], r"line 2, passage 0: expected a title .*all text"),
    ([row(answer="absent")], r"line 2: expected either answer, kind and evidence, or answers; got id, question"),
    ([row() | {"answers": []}], r"line 2: expected either"),
    ([several()], r"line 2: expected a list of answers, at least one, got \[\]"),
    ([several("large")], r"line 2, answer 1: expected answer, kind and evidence, got 'large'"),
    ([several(row(), {"answer": "a"})], r"line 2, answer 2: expected answer, kind and evidence, lacks kind, evidence"),
    ([several(row(), row())], r"line 2: expected one answer with a span, got 2"),
    ([row(kind="boolean")], r"line 2: expected a kind of span, yes, no, extractive, .*, got 'boolean'"),
    ([row(kind=["yes"])], r"line 2: expected a kind"),
    ([row(answer=" ")], r"line 2: expected text in 'answer', got ' '"),
    ([NAN], r"line 2: expected text in 'answer', got nan"),
    ([row(answer="Large")], r"line 2: expected a span that stands in the context as it is written, got 'Large'"),
    ([row(answer="large. It rains.")], r"line 2: expected a span"),
    ([row(answer="no", kind="yes")], r"line 2: expected the answer 'yes' for that kind, got 'no'"),
    ([row(answer="?", kind="unanswerable", evidence=[])], r"line 2: expected the answer 'unanswerable'"),
    ([row(answer="unanswerable", kind="unanswerable")], r"line 2: expected no evidence for an unanswerable question, got \[\[0, 0\]\]"),
    ([row() | {"evidence": "all"}], r"line 2: expected a list of evidence, got 'all'"),
    ([row(evidence=[(0, 0), (0, 2)])], r"line 2, evidence 2: expected \[passage, sentence\], a sentence of the 2 passages, got \[0, 2\]"),
    ([row(evidence=[(2, 0)])], r"line 2, evidence 1: .*got \[2, 0\]"),
    ([row(evidence=[(0, float("nan"))])], r"line 2, evidence 1: .*nan"),
    *(([row(evidence=[pair])], r"line 2, evidence 1: ") for pair in ((-1, 0), (0, True), (0, 0.0), (0,))),
    ([row(evidence=[(0, 0), (0, 0)])], r"line 2, evidence 2: expected distinct evidence, got \[0, 0\]"),
    ([row(question="a\ud800")], r"line 2: expected text that UTF-8 can encode, got half a character"),
    ([row("b", "It", "extractive")], r"line 2: expected questions of one kind, with types of span, yes, no as .*1, got 1 of extractive"),
]


@pytest.mark.parametrize(("rows", "said"), BAD)
def test_errors_name_file_and_row(folder, rows, said):
    write(folder / "dev.jsonl", [row("1st"), *rows])
    with pytest.raises(ValueError, match=rf"dev\.jsonl {said}"):
        load_evidence(folder)


WORDS = st.text("abcÅ ß\t", min_size=1, max_size=8).filter(str.strip)
CONTEXTS = st.lists(st.tuples(WORDS, st.lists(WORDS | st.just(""), max_size=4)), min_size=1, max_size=4)


@given(st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_folder_round_trip(tmp_path, data):
    def drawn(id):
        context = data.draw(CONTEXTS)
        places = [(i, j) for i, (_, sentences) in enumerate(context) for j in range(len(sentences))]
        pairs = data.draw(st.lists(st.sampled_from(places), unique=True)) if places else []
        passages = tuple(Passage(" ".join(title.split()), tuple(" ".join(text.split()) for text in texts)) for title, texts in context)
        answers = tuple(Answer(kind, kind, frozenset(pairs)) for kind in data.draw(st.lists(st.sampled_from(["yes", "no"]), min_size=1)))
        written = [{"answer": answer.text, "kind": answer.kind, "evidence": pairs} for answer in answers]
        asked = data.draw(WORDS)
        passed = [{"title": title, "sentences": sentences} for title, sentences in context]
        row = {"id": id, "question": asked, "passages": passed, **(written[0] if len(written) == 1 else {"answers": written})}
        return row, LongQuestion(id, " ".join(asked.split()), passages, answers)

    rows, made = zip(*map(drawn, ["a", "b"]))
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.jsonl", rows)
    read = load_evidence(tmp_path)["train"]
    assert read == list(made) and read.report["dropped"] == {}
    assert [len(texts) for texts in pointed(read)] == [len(answer.evidence) for question in made for answer in question.answers]


GIVEN = st.builds(
    Answer, st.sampled_from("ab"), st.sampled_from(["yes", "extractive"]), st.sets(st.tuples(st.just(0), st.integers(0, 1))).map(frozenset)
)
ASKED = st.lists(st.lists(GIVEN, min_size=1, max_size=4).map(tuple), max_size=5)


@given(ASKED)
def test_a_question_comes_once_for_every_answer(answers):
    """By a slow loop; annotators who say the same count once, in the order of the data, and nothing else changes."""
    passages = (Passage("T", ("A.", "B.")),)
    asked = [LongQuestion(f"q{n}", "Which?", passages, given) for n, given in enumerate(answers)]
    before, made, expected = list(asked), long_questions.an_answer_each(iter(asked)), []
    for question in asked:
        seen = []
        for answer in question.answers:
            if answer not in seen:
                seen.append(answer)
                expected.append((question.id, answer))
    assert [(question.id, *question.answers) for question in made] == expected and asked == before
    assert all(question.text == "Which?" and question.passages is passages for question in made)
    alone = [question for question in asked if len(question.answers) == 1]
    assert long_questions.an_answer_each(alone) == alone and long_questions.an_answer_each(made) == made


def test_kinds_that_a_slice_cannot_judge_are_of_the_most_frequent_type():
    """A kind needs its number of answers in train and in dev."""
    passages = (Passage("T", ("A.",)),)
    of = lambda counts: [LongQuestion("q", "?", passages, (Answer("a", kind, frozenset()),)) for kind in Counter(counts).elements()]
    splits = {"train": of({"span": 286, "yes": 25, "no": 9}), "dev": of({"span": 93, "yes": 20, "no": 40}), "test": []}
    kinds = long_questions.KINDS["hotpotqa"]
    for types, all_fewest in {(0, 1, 2): (None, 9), (0, 1, 0): (10, 20), (0, 0, 0): (21, 1000)}.items():
        assert all(long_questions.types_of(kinds, splits, fewest) == [*types] for fewest in all_fewest)
    splits["train"], splits["dev"] = of({"yes": 50, "no": 50, "span": 3}), of({"yes": 30, "no": 40, "span": 3})
    assert long_questions.types_of(kinds, splits, 20) == [1, 0, 1]  # yes, no; spans are of the type of no


FACTS = st.lists(st.tuples(st.sampled_from(["Oslo", "Bergen", "Rome"]), st.integers(-1, 4)), max_size=6)


@given(FACTS)
def test_every_supporting_fact_is_kept_or_counted(facts):
    """By a slow reading: a fact is kept where a paragraph of its title has its sentence."""
    ((_, row, lost),) = hotpotqa_form.rows("here", hotpot(facts=facts))
    question = question_rows.question_of(row, "here")
    wanted = {
        (i, j) for title, j in facts for i, name in enumerate(CONTEXT["title"]) if name == title and 0 <= j < len(CONTEXT["sentences"][i])
    }
    assert question.answers[0].evidence == wanted
    known = {(title, j) for title, j in facts if any(CONTEXT["title"][i] == title and (i, j) in wanted for i in range(3))}
    assert sum(lost.values()) == len(facts) - len(known)
    assert all(question.passages[i].sentences[j] == " ".join(CONTEXT["sentences"][i][j].split()) for i, j in wanted)


# ----------------------------------------------------------------------------------------------------------- the real data


@pytest.mark.mirror
def test_every_supporting_fact_of_the_mirror_is_its_sentence(mirror):
    splits = load_evidence("hotpotqa")
    assert {split: len(made) for split, made in splits.items()} == {"train": 300, "dev": 100, "test": 0}
    for split, stem in (("train", "train"), ("dev", "validation")):
        rows = pq.read_table(hub.mirror("hotpotqa/hotpot_qa") / f"{stem}.parquet").to_pylist()
        for question, raw in zip(splits[split], rows, strict=True):
            facts = zip(raw["supporting_facts"]["title"], raw["supporting_facts"]["sent_id"])
            texts = dict(zip(raw["context"]["title"], raw["context"]["sentences"]))
            wanted = sorted((title, " ".join(texts[title][number].split())) for title, number in facts)
            (answer,) = question.answers
            assert sorted((question.passages[i].title, question.passages[i].sentences[j]) for i, j in answer.evidence) == wanted
            assert answer.text == raw["answer"] and answer.kind == (raw["answer"] if raw["answer"] in ("yes", "no") else "span")
            assert answer.kind != "span" or any(answer.text in text for passage in question.passages for text in passage.sentences)
        assert splits[split].report["dropped"] == {}
    assert Counter(question.answers[0].kind for question in splits["train"]) == {"span": 286, "no": 9, "yes": 5}


@pytest.mark.mirror
def test_qasper_of_the_mirror(mirror):
    splits = load_evidence("qasper")
    assert [len(splits[split]) for split in long_questions.SPLITS] == [2_058, 647, 0]
    assert splits["train"].report["dropped"] == {}, "all evidence is found"
    assert splits["dev"].report["dropped"] == {"evidence a table or figure": {"questions": 0, "evidence": 28}}
    assert splits["dev"].report["read"]["evidence"] == 1_343
    assert "of the published 1,005 questions and 281 papers" in splits["dev"].report["note"]
    for split, stem in (("train", "train"), ("dev", "validation")):
        papers = pq.read_table(hub.mirror("allenai/qasper") / f"{stem}.parquet", columns=["qas"]).to_pylist()
        raw = [one for paper in papers for asked in paper["qas"]["answers"] for one in asked["answer"]]
        texts = [sorted(" ".join(text.split()) for text in one["evidence"] if "FLOAT SELECTED" not in text) for one in raw]
        assert [sorted(texts) for texts in pointed(splits[split])] == texts
    assert Counter(answer.kind for question in splits["train"] for answer in question.answers)["extractive"] == 1_337
