"""Data sets that are built from a release: rules on rows of the true form, copies that are incomplete, what their cards say of overlap."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from aslab.commands import asutil
from asutil.data import built, nq_sentences, selqa
from asutil.data.answers import load_answers
from asutil.data.baselines import baseline_scores
from asutil.data.data_sets import ANSWERS
from asutil.io import disk, hub
from asutil.metrics import at_random, of

from ..made_up import refused

BUILT = [name for name, data in ANSWERS.items() if data.built]
MISSING = object()

CARDS = Path(__file__).parents[2] / "data_cards"
SENTENCES = ["A tower stands there . ", "It was built in 1901 . ", "Ben and Ann paid for it ."]
PARAGRAPH = "".join(SENTENCES)
TITLES = {split: [t for t in (f"Tower {n}" for n in range(60)) if built.split_of(t, 1) == split] for split in ("train", "dev")}


def span(text):
    return {"start": PARAGRAPH.index(text), "end": PARAGRAPH.index(text) + len(text), "string": text}


def qed(number, title, *spans, **changed):
    """A row of QED as it is released, about PARAGRAPH."""
    row = {"example_id": number, "title_text": title, "url": f"https://example.org/{number}", "question_text": f"question {number}"}
    row |= {"paragraph_text": PARAGRAPH, "sentence_starts": [0, len(SENTENCES[0]), len(SENTENCES[0] + SENTENCES[1])]}
    row |= {"original_nq_answers": [[span(text) for text in answer] for answer in spans]}
    return row | {"annotation": {"explanation_type": "none"}} | changed


def lines(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(row) + "\n" for row in rows))  # with a blank line between two rows
    return path


def released(tmp_path, *training, test=None):
    lines(tmp_path / "QED" / "qed-train.jsonlines", *training)
    lines(tmp_path / "QED" / "qed-dev.jsonlines", *(test or [qed(-1, "Other", ["1901"])]))
    return tmp_path / "QED"


BOTH = (qed(1, TITLES["train"][0], ["1901"]), qed(2, TITLES["dev"][0], ["Ann"], ["Ben and Ann"]))


def labels(path, split):
    table = pd.read_parquet(path / f"{split}.parquet")
    return {id: rows.label.tolist() for id, rows in table.groupby("question_id", sort=False)}


# ------------------------------------------------------------------------------------------------------------- the rules


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([["1901"]], [0, 1, 0]),
        ([["Ann"], ["tower"]], [1, 0, 1]),  # two annotators
        ([["there . It was"]], [1, 1, 0]),  # over the end of a sentence
        ([["tower", "Ben"]], [1, 0, 1]),  # one answer of two spans
        ([["there . "]], [1, 0, 0]),  # up to the end of a sentence, no further
        ([["It"]], [0, 1, 0]),  # from the start of one
    ],
)
def test_a_sentence_is_right_where_it_overlaps_a_short_answer(tmp_path, spans, expected):
    source = released(tmp_path, *BOTH, qed(3, TITLES["train"][1], *spans))
    nq_sentences.build(source, tmp_path / "made")
    assert labels(tmp_path / "made", "train")["3"] == expected
    splits = load_answers(tmp_path / "made", context=True)
    question = next(q for q in splits["train"] if q.id == "3")
    texts = [text.strip() for text in SENTENCES]
    assert [(c.text, c.before, c.after) for c in question.candidates] == list(zip(texts, [None, *texts], [*texts[1:], None]))


def test_what_is_left_out_is_counted(tmp_path):
    train, dev = TITLES["train"], TITLES["dev"]
    misplaced = qed(6, train[1], ["1901"])
    misplaced["original_nq_answers"][0][0] |= {"start": 1, "end": 5}
    rows = [
        *BOTH,
        qed(3, train[1]),  # no answer
        qed(4, train[1], ["there . It was built in 1901 . Ben"]),  # every sentence is right
        qed(5, train[1], ["1901"], question_text="Question -1 ?"),  # a question of the test set
        misplaced,
        qed(7, train[1], ["Ann"], question_text="question 1"),  # asked before
        qed(8, train[1], ["Ann"], sentence_starts=[len(SENTENCES[0]), len(SENTENCES[0] + SENTENCES[1])]),
    ]
    record = nq_sentences.build(released(tmp_path, *rows, test=[qed(-1, dev[0], ["1901"])]), tmp_path / "made")
    assert record["counts"] == {"train": [2, 5], "dev": [1, 3], "test": [1, 3]}
    reasons = {"without both labels": 2, "asked in test": 1, "an answer is not where its span says": 1, "asked before": 1}
    assert record["left_out"] == {"qed-train.jsonlines": reasons, "qed-dev.jsonlines": {}}
    assert labels(tmp_path / "made", "train") == {"1": [0, 1, 0], "8": [0, 1]}, "text before the first sentence is none"
    assert labels(tmp_path / "made", "test") == {"-1": [0, 1, 0]}, "a title of dev may be one of test, too"
    kept = sum(asked for asked, _ in record["counts"].values())
    assert kept + sum(reasons.values()) == len(rows) + 1


def test_the_first_upload_has_its_training_questions_in_several_files(tmp_path):
    source = released(tmp_path, *BOTH)
    nq_sentences.build(source, tmp_path / "release")
    (source / "qed-train.jsonlines").unlink()
    for number, row in enumerate(map(dict, BOTH)):
        spans = [[one["start"], one["end"]] for answer in row.pop("original_nq_answers") for one in answer]
        lines(source / f"nq-train-0{number}-qed.jsonlines", row | {"answer_spans": spans})
    nq_sentences.build(source, tmp_path / "upload")
    for split in ("train", "dev", "test"):
        assert labels(tmp_path / "upload", split) == labels(tmp_path / "release", split)


def section(number, article, answers, candidates=("One.", "", "Two.", "Three."), **changed):
    """An object of SelQA's files for analysis."""
    row = {"question": f"Question {number}?", "article": article, "section": "Life", "topic": "ART", "q_types": ["who"]}
    return row | {"is_paraphrase": False, "candidates": list(candidates), "answers": answers} | changed


def selqa_files(tmp_path, **files):
    folder = tmp_path / "selqa" / "ass"
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in files.items():
        (folder / f"selqa-ass-{split}.json").write_text(json.dumps(rows))
    return tmp_path / "selqa"


def test_selqa_with_and_without_its_training_file(tmp_path):
    articles = {split: [a for a in map(str, range(40)) if built.split_of(a, 2) == split] for split in ("train", "dev")}
    dev = [section(n, article, [2]) for n, article in enumerate(articles["train"][:3] + articles["dev"][:2])]
    dev += [section(8, articles["dev"][0], []), section(9, articles["dev"][0], [0, 2, 3]), section(9, "1", [1])]
    source = selqa_files(tmp_path, dev=dev, test=[section(5, "Ann", [0, 3])])
    record = selqa.build(source, tmp_path / "parts")
    assert record["counts"] == {"train": [3, 9], "dev": [2, 6], "test": [1, 3]}
    assert record["left_out"]["selqa-ass-dev.json"] == {"without both labels": 3}
    assert labels(tmp_path / "parts", "test") == {"test-0": [1, 0, 1]}, "numbers are those of the list with its blank sentence"
    assert labels(tmp_path / "parts", "train").keys() == {"dev-0", "dev-1", "dev-2"}
    question = load_answers(tmp_path / "parts", context=True)["test"][0]
    assert [(c.text, c.before) for c in question.candidates] == [("One.", None), ("Two.", "One."), ("Three.", "Two.")]
    selqa_files(tmp_path, train=[section(1, articles["dev"][0], [0])])
    assert selqa.build(source / "ass", tmp_path / "whole")["counts"] == {"train": [1, 3], "dev": [5, 15], "test": [1, 3]}


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sentence_starts": [0, 5, 5]}, "rising positions in a text of 71 characters in 'sentence_starts'"),
        ({"sentence_starts": [0, 71]}, "rising positions"),
        ({"sentence_starts": ["0"]}, "rising positions"),
        *(({name: MISSING}, rf"expected .*{name}") for name in ("example_id", "paragraph_text", "sentence_starts", "original_nq_answers")),
        ({"original_nq_answers": [[{"start": 3, "end": 72, "string": "x"}]]}, r"a span in a text of 71 characters, got \(3, 72\)"),
        ({"original_nq_answers": [[{"start": 3, "end": 3, "string": ""}]]}, "a span in a text"),
        ({"original_nq_answers": [{"start": 3}]}, "answers as lists of spans {start, end, string}, got TypeError"),
        ({"question_text": " "}, "text in 'question_text'"),
        ({"title_text": 7}, "text in 'title_text'"),
        ({"example_id": True}, "an id"),
        ({"paragraph_text": "a\0b"}, "got a NUL byte"),
    ],
)
def test_a_wrong_row_of_qed_is_named(tmp_path, changed, message):
    row = qed(3, TITLES["train"][1], ["1901"]) | changed
    source = released(tmp_path, *BOTH, {name: value for name, value in row.items() if value is not MISSING})
    with pytest.raises(ValueError, match=rf"qed-train\.jsonlines line 5.*{message}"):
        nq_sentences.build(source, tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (section(1, "Ann", [4]), "numbers of the 4 candidates in 'answers'"),
        (section(1, "Ann", [-1]), "numbers of the 4"),
        (section(1, "Ann", [0], candidates=["a", 2]), "a list of texts in 'candidates'"),
        (section(1, 7, [0]), "text in 'article'"),
        (section(1, "Ann", [0], question=" "), "text in 'question'"),
        ("text", "an object"),
        ({"question": "who?"}, "a question of SelQA, lacks article, section, candidates, answers"),
    ],
)
def test_a_wrong_row_of_selqa_is_named(tmp_path, row, message):
    source = selqa_files(tmp_path, dev=[section(0, "Ann", [0]), row], test=[section(5, "Ann", [0])])
    with pytest.raises(ValueError, match=rf"selqa-ass-dev\.json, question 2: expected {message}"):
        selqa.build(source, tmp_path / "made")


def test_missing_files_folders_that_exist_and_splits_without_questions(tmp_path):
    (tmp_path / "QED").mkdir()
    with pytest.raises(FileNotFoundError, match=r"qed-train\.jsonlines and qed-dev\.jsonlines of .*; it holds nothing"):
        nq_sentences.build(tmp_path / "QED", tmp_path / "made")
    with pytest.raises(FileNotFoundError, match=r"expected selqa-ass-test\.json of"):
        selqa.build(selqa_files(tmp_path, dev=[section(0, "Ann", [0])]), tmp_path / "made")
    with pytest.raises(ValueError, match="dev: no question is left to write"):
        nq_sentences.build(released(tmp_path, BOTH[0]), tmp_path / "made")
    nq_sentences.build(released(tmp_path, *BOTH), tmp_path / "made")
    with pytest.raises(FileExistsError, match="made exists already"):
        nq_sentences.build(tmp_path / "QED", tmp_path / "made")


# ------------------------------------------------------------------------------------------------- loading by name


def test_a_built_copy_is_loaded_by_name_with_its_own_counts_unless_it_is_incomplete_or_altered(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path / "mirror"))
    folder = tmp_path / "mirror" / "local" / "nq_sentences"
    folder.parent.mkdir(parents=True)
    nq_sentences.build(released(tmp_path, *BOTH), folder)
    splits = load_answers("nq_sentences", context=True)
    assert {split: len(questions) for split, questions in splits.items()} == {"train": 1, "dev": 1, "test": 1}
    assert splits["test"][0].candidates[1].before == SENTENCES[0].strip()

    table = pd.read_parquet(folder / "test.parquet")
    table.assign(answer=table.answer.str.upper()).to_parquet(folder / "test.parquet", index=False)
    for name in ("nq_sentences", str(folder)):
        with pytest.raises(ValueError, match=r"nq_sentences/test\.parquet is damaged or was changed"):
            load_answers(name)
    (folder / disk.BUILT).unlink()
    with pytest.raises(ValueError, match="train: expected 5,668 questions and 27,930 candidates, got 1 and 3"):
        load_answers("nq_sentences")
    assert len(load_answers(folder)["test"]) == 1, "a folder loaded by its path claims nothing"


@pytest.mark.parametrize("name", BUILT)
def test_without_a_copy_the_error_says_how_to_build_one(tmp_path, monkeypatch, name):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"local/{name} is on no hub.*asutil build {name} RELEASE --to"):
        load_answers(name)
    monkeypatch.delenv(hub.MIRROR)
    with pytest.raises(FileNotFoundError, match=f"{hub.MIRROR} is now not set. Build it"):
        load_answers(name)


def test_the_command_line(tmp_path, capsys):
    source = released(tmp_path, *BOTH)
    words = ["build", "nq_sentences", str(source), "--to", str(tmp_path / "made")]
    asutil.main(words)
    text = capsys.readouterr().out
    assert "test: 1 questions, 3 candidates" in text and "other counts than those of the committed results: train, dev, test" in text
    assert "made exists already" in refused(capsys, *words)


# ------------------------------------------------------------------------------------------- real data, and the cards


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nq_sentences", {"random": ".548", "bm25": ".664", "document_order": ".713"}),
        ("selqa", {"random": ".307", "bm25": ".849", "document_order": ".409"}),
        ("wikiqa", {"bm25": ".590", "document_order": ".633"}),
    ],
)
def test_untrained_orders_are_those_of_the_card(mirror, name, expected):
    card = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    test = load_answers(name)["test"]
    came = {"random": at_random(test.frame())} | {order: of(baseline_scores(test, order)) for order in ("bm25", "document_order")}
    assert {order: f"{came[order].map:.3f}".lstrip("0") for order in expected} == expected
    assert all(value in card for value in expected.values())


@pytest.mark.mirror
@pytest.mark.parametrize("name", BUILT)
def test_the_overlap_that_a_card_states(mirror, name):
    card = " ".join((CARDS / f"{name}.md").read_text(encoding="utf-8").split())
    folder = hub.mirror("local/wikipedia_large").parents[1]
    read = lambda path, *columns: pd.read_parquet(folder / path, columns=[*columns])
    article = lambda titles: titles.str.split(" / ").str[0] if name == "selqa" else titles
    parts = {s: read(f"local/{name}/{s}.parquet", "question_id", "document_title", "answer", "label") for s in ("train", "dev", "test")}
    asked = {s: article(part.drop_duplicates("question_id").document_title) for s, part in parts.items()}
    wiki = {s: set(read(f"microsoft/wiki_qa/{s}.parquet", "document_title").document_title) for s in ("train", "validation", "test")}
    corpora = {s: set(read(f"local/wikipedia_{s}/train.parquet", "title").title) for s in ("large", "small")}
    shared = lambda titles: (len(set(asked["test"]) & titles), int(asked["test"].isin(titles).sum()))
    others = shared(set(asked["train"]) | (set(asked["dev"]) if name == "selqa" else set()))
    right = {s: part[part.label == 1] for s, part in parts.items()}
    known = right["test"][right["test"].answer.isin(set(right["train"].answer))].question_id.nunique()
    of_wikiqa, of_large, of_small = shared(set().union(*wiki.values())), shared(corpora["large"]), shared(corpora["small"])
    assert not set(asked["train"]) & set(asked["dev"])
    for sentence in (
        f"{others[0]} of the {asked['test'].nunique():,} test articles are",
        f"{known} test questions have a correct sentence",
        f"{of_wikiqa[0]} test articles ({of_wikiqa[1]} questions) are in WikiQA, {shared(wiki['train'])[0]} of them",
        f"{of_large[0]} test articles ({of_large[1]} questions) are in `local/wikipedia_large`, {of_small[0]} ({of_small[1]} questions)",
    ):
        assert sentence in re.sub(r"\s+", " ", card), sentence
