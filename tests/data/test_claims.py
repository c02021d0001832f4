"""Claims: files of KernelGAT's form by round trip and by malformed input, and the leaderboard's file."""

import json
import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from asutil.data import claims
from asutil.data.claims import Claim, Evidence, load_claims
from asutil.data.data_sets import CLAIMS
from asutil.io import hub

from .test_long_questions import write

CARDS = Path(__file__).parents[2] / "data_cards"
PIECE = ["Fight_Club_-LRB-film-RRB-", 3, "It is `` bleak '' -LRB- 1999 -RRB- .", 0.97]


def row(id=1, claim="Fight Club is bleak.", label="SUPPORTS", evidence=(PIECE,)):
    made = {"id": id, "claim": claim, "label": label, "evidence": list(evidence)}
    return {name: value for name, value in made.items() if value != "absent"}


@pytest.fixture
def folder(tmp_path):
    """A folder with two rows a split; a test overwrites what it is about."""
    for split in claims.SPLITS:
        write(tmp_path / f"{split}.jsonl", [row(1), row(2, label="REFUTES", evidence=[])])
    return tmp_path


@pytest.fixture
def fever(tmp_path, monkeypatch):
    """A mirror with rows of FEVER's form, and the counts that they should have."""
    root = tmp_path / "mirror" / "local" / "fever"
    write(root / "bert_train.json", [row(1), row(2, label="REFUTES", evidence=[PIECE] * 5), row(3, label="NOT ENOUGH INFO", evidence=[])])
    write(root / "bert_dev.json", [row(4, evidence=[PIECE, PIECE[:3]])])
    write(
        root / "bert_test.json", [row(9, label="absent"), row(7, label="absent", evidence=[[*PIECE[:1], i, *PIECE[2:]] for i in range(7)])]
    )
    monkeypatch.setenv(hub.MIRROR, str(tmp_path / "mirror"))
    counts = {"train": (3, 6), "dev": (1, 2), "test": (2, 6)}
    monkeypatch.setitem(CLAIMS, "fever", replace(CLAIMS["fever"], counts=counts))
    return root


# ----------------------------------------------------------------------------------------------------------------- FEVER


def test_fever_by_hand(fever):
    splits = load_claims("fever")
    assert list(splits) == ["train", "dev", "test"]
    assert [(claim.id, claim.label, len(claim.evidence)) for claim in splits["train"]] == [("1", 0, 1), ("2", 2, 5), ("3", 1, 0)]
    evidence = Evidence("Fight_Club_-LRB-film-RRB-", 3, 'Fight Club (film). It is " bleak " (1999) .')
    assert splits["train"][0] == Claim("1", "Fight Club is bleak.", 0, (evidence,))
    assert splits["dev"][0].evidence == (evidence, evidence), "with and without a score"
    assert [(claim.id, claim.label) for claim in splits["test"]] == [("9", None), ("7", None)], "no labels, the file's order"
    assert [piece.sentence for piece in splits["test"][1].evidence] == [0, 1, 2, 3, 4]
    assert splits["test"].report == {
        "read": {"claims": 2, "evidence": 8},
        "kept": {"claims": 2, "evidence": 6},
        "dropped": {"evidence beyond the first 5": {"claims": 0, "evidence": 2}},
    }
    assert claims.load_claims is load_claims


def test_evidence_that_one_label_alone_lacks_is_warned_of(folder, caplog):
    rows = [
        row(n, f"It rains {n}.", label=label, evidence=[PIECE] * (label != "NOT ENOUGH INFO")) for n, label in enumerate(claims.LABELS * 2)
    ]
    write(folder / "train.jsonl", rows)
    load_claims(folder)
    (told,) = [text for text in caplog.messages if "labelled" in text]
    assert told.startswith(f"{folder}: claims labelled NOT ENOUGH INFO have no evidence, those labelled SUPPORTS have: its absence tells")
    caplog.clear()
    write(folder / "train.jsonl", [*rows, row(9, "It rains, too.", label="NOT ENOUGH INFO")])
    load_claims(folder)
    assert not [text for text in caplog.messages if "labelled" in text]


def test_claims_of_two_splits_are_warned_of(folder, caplog):
    for split, text in {"train": "It rains.", "dev": "It snows."}.items():
        write(folder / f"{split}.jsonl", [row(1, text), row(2, f"{text} Today.")])
    write(folder / "test.jsonl", [row(1, "It hails."), row(2, "it  SNOWS")])
    load_claims(folder)
    assert caplog.messages == [f"{folder}: 1 of 2 test claims are in dev, too"]


def test_fever_test_labels_are_not_read_and_count_for_the_fingerprint(fever):
    before = claims.fingerprint_of_claims("fever")
    write(fever / "bert_test.json", [row(9, label="NOT ENOUGH INFO"), row(7, label="whatever", evidence=[PIECE] * 5)])
    assert [claim.label for claim in load_claims("fever")["test"]] == [None, None]
    assert claims.fingerprint_of_claims("fever") != before


@pytest.mark.parametrize("counts", [(2, 6), (2, 8)], ids=["among the first five", "in the file"])
def test_fever_counts_hold_before_or_after_the_cut(fever, monkeypatch, counts):
    monkeypatch.setitem(CLAIMS["fever"].counts, "test", counts)
    assert len(load_claims("fever")["test"]) == 2


@pytest.mark.parametrize(("split", "wrong"), [("train", (4, 6)), ("dev", (1, 3)), ("test", (2, 7))])
def test_fever_counts_are_asserted(fever, monkeypatch, split, wrong):
    came = {"train": "3 and 6", "dev": "1 and 2", "test": r"2 and 8 \(6 of them"}[split]
    monkeypatch.setitem(CLAIMS["fever"].counts, split, wrong)
    expected = rf"fever, {split} \(bert_{split}\.json\): expected {wrong[0]} claims and {wrong[1]} pieces of evidence, got {came}"
    with pytest.raises(ValueError, match=expected):
        load_claims("fever")


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (None, rf"local/fever is on no hub.*{hub.MIRROR} is now"),
        ("", rf"local/fever is on no hub.*{hub.MIRROR} is now"),
        ("local/fever/bert_train.json", r"bert_dev\.json.*it holds bert_train\.json"),
    ],
)
def test_without_fever_the_error_says_what_is_expected_and_whence(tmp_path, monkeypatch, held, words):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path)) if held is not None else monkeypatch.delenv(hub.MIRROR, raising=False)
    if held:
        write(tmp_path / held, [row()])
    with pytest.raises(FileNotFoundError, match=rf"{words}.*bert_train\.json, bert_dev\.json and bert_test\.json.*KernelGAT"):
        load_claims("fever")


# ------------------------------------------------------------------------------------------------------------- the reader


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Savages_-LRB-2012_film-RRB-", "Savages_(2012_film)"),  # underscores are a title's matter
        ("Ann LRB LSB ` æn RSB ; born 1964 RRB acts .", "Ann (; born 1964) acts ."),
        ("Ann -LRB- -LSB- ` æn -RSB- -RRB- acts .", "Ann acts ."),
        ("2001-COLON- A Space Odyssey", "2001: A Space Odyssey"),
        ("`` Yes '' -- he said", '" Yes " -- he said'),
        ("The LRBX and COLONEL stay ( as ) they are", "The LRBX and COLONEL stay ( as ) they are"),
        ("a -LSB- b", "a [ b"),
    ],
)
def test_readable(text, read):
    assert claims.readable(text) == read


@given(st.text())
def test_text_without_marks_stays(text):
    if not re.search("RB|SB|CB|COLON|``|''", text):
        assert claims.readable(text) == " ".join(text.split())


@pytest.mark.parametrize("form", claims.FILES)
def test_a_users_folder(tmp_path, form):
    for split in ("train", "dev"):
        evidence = [["", 0, "Only a  sentence."], ["Only_a_title", 1, ""], ["", 2, "An LSB is a bit, the RSB as well: 5'' COLON"]]
        write(tmp_path / form.format(split), [row("a-1", evidence=evidence)])
    splits = load_claims(tmp_path)
    assert splits["test"] == [] and splits["test"].report["read"] == {"claims": 0, "evidence": 0}
    assert splits["dev"] == load_claims(str(tmp_path))["dev"]
    assert [piece.text for piece in splits["dev"][0].evidence] == ["Only a sentence.", "Only a title", evidence[2][2]]
    assert splits["dev"][0].id == "a-1"


BAD = [
    (["{"], r"line 2: not JSON"),
    (["[1]"], r"line 2: expected an object with 'claim', got list"),
    ([{"id": 5, "claim": "a"}], r"line 2: expected id, claim, label and evidence, lacks evidence; got id, claim"),
    ([row("absent")], r"line 2: .*lacks id"),
    ([row(5, label="TRUE")], r"line 2: expected a label of SUPPORTS, NOT ENOUGH INFO, REFUTES, got 'TRUE'"),
    ([row(5, label=1)], r"line 2: expected a label .*, got 1"),
    ([row(5, label=["SUPPORTS"])], r"line 2: expected a label"),
    ([row(5, claim="absent")], r"line 2: .*lacks claim"),
    ([row(5, label="absent")], r"line 2: expected a label in every row of a file or in none, got none, and \S+ line 1 has one"),
    ([row(5), row(5)], r"line 3: expected distinct ids, got '5' as in .*line 2"),
    ([row("1")], r"line 2: expected distinct ids, got '1' as in .*line 1"),
    ([row(True)], r"line 2: expected an id, a number or text, got True"),
    ([row(" ")], r"line 2: expected an id"),
    ([row(5, claim=" ")], r"line 2: expected text in 'claim', got ' '"),
    ([row(5, claim=None)], r"line 2: expected text in 'claim', got None"),
    ([row(5, claim="a\0")], r"line 2: expected text that UTF-8 can encode, got a NUL byte at character 1"),
    ([row(5, claim="a\ud800")], r"line 2: expected text that UTF-8 can encode, got half a character"),
    ([row(5, evidence=[PIECE, ["Title", 1, "b\ud800", 1.0]])], r"line 2, evidence 2: expected text that UTF-8 can encode"),
    ([row(5) | {"evidence": "none"}], r"line 2: expected a list of evidence, got 'none'"),
    ([row(5, evidence=[PIECE, PIECE[:2]])], r"line 2, evidence 2: expected \[title, sentence number, sentence\]"),
    ([row(5, evidence=[["Title", "3", "Text.", 1.0]])], r"line 2, evidence 1: .*got \['Title', '3'"),
    *(
        ([row(5, evidence=[piece])], r"line 2, evidence 1: expected \[title")
        for piece in ([*PIECE, 1], [[1, 2, "Page", 3]], ["Title", True, "Text."], ["Title", 3, None, 1.0], ["Title", 3, "Text.", "high"])
    ),
    ([row(5, evidence=[["", 3, " ", 1.0]])], r"line 2, evidence 1: .*with some text"),
]


@pytest.mark.parametrize(("rows", "said"), BAD)
@pytest.mark.parametrize("split", ["train", "test"])
def test_errors_name_file_and_row(folder, split, rows, said):
    write(folder / f"{split}.jsonl", [row(1), *rows])
    with pytest.raises(ValueError, match=rf"{split}\.jsonl {said}"):
        load_claims(folder)


def test_labels_are_in_every_row_or_in_none(folder):
    write(folder / "test.jsonl", [row(1, label="absent"), row(2, label=None)])
    assert [claim.label for claim in load_claims(folder)["test"]] == [None, None]
    write(folder / "test.jsonl", [row(1, label="absent"), row(2)])
    with pytest.raises(ValueError, match=r"test\.jsonl line 2: .* or in none, got 'SUPPORTS', and test\.jsonl line 1 has none"):
        load_claims(folder)
    write(folder / "dev.jsonl", [row(1, label="absent")])
    with pytest.raises(ValueError, match=r"dev\.jsonl line 1: expected a label .*only a test set"):
        load_claims(folder)


def test_cards_and_the_papers_table_have_the_counts_that_loading_asserts():
    counted = {name: data.counts for name, data in CLAIMS.items() if data.counts}
    for name, expected in counted.items():
        card = yaml.safe_load((CARDS / f"{name}.md").read_text(encoding="utf-8").split("---\n")[1])
        (counts,) = card["counts"].values()
        assert {split: tuple(count.values()) for split, count in counts.items()} == expected
    assert counted["fever"] == {"train": (145_406, 722_473), "dev": (19_998, 98_915), "test": (19_998, 98_839)}
    means = [round(evidence / asserted, 2) for asserted, evidence in counted["fever"].values()]
    assert means == [4.97, 4.95, 4.94], "the last column of the paper's table 6"


# -------------------------------------------------------------------------------------------------------- the leaderboard


def test_leaderboard(fever, tmp_path):
    test = load_claims("fever")["test"]
    path = claims.leaderboard(test, [2, 1], tmp_path / "predictions.jsonl")
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [
        {"id": 9, "predicted_label": "REFUTES", "predicted_evidence": [["Fight_Club_-LRB-film-RRB-", 3]]},
        {"id": 7, "predicted_label": "NOT ENOUGH INFO", "predicted_evidence": [["Fight_Club_-LRB-film-RRB-", i] for i in range(5)]},
    ]


@pytest.mark.parametrize(
    ("ids", "predictions", "said"),
    [
        (["1", "2"], [0], "expected a prediction for every claim: got 1 for 2 claims"),
        (["1", "2"], [0, 3], r"claim '2': .*got class 3"),
        (["1", "2"], [0, -1], r"claim '2': .*got class -1"),
        (["1", "2b"], [0, 1], r"claim '2b': expected a whole number without leading zeros as id"),
        (["7", "007"], [0, 1], r"claim '007': expected a whole number without leading zeros as id"),
    ],
)
def test_leaderboard_refuses_and_leaves_the_old_file(tmp_path, ids, predictions, said):
    path = tmp_path / "predictions.jsonl"
    path.write_text("old")
    with pytest.raises(ValueError, match=said):
        claims.leaderboard([Claim(id, "a", None, ()) for id in ids], predictions, path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------------------------------------------------- Climate-FEVER


@pytest.mark.mirror
def test_climate_fever(mirror):
    splits = load_claims("climate_fever")
    assert {split: len(made) for split, made in splits.items()} == {"train": 981, "dev": 200, "test": 0}
    assert Counter(claim.label for claim in splits["dev"]) == {0: 107, 1: 67, 2: 26}
    for line, claim in zip((hub.mirror("local/climate_fever") / "dev.jsonl").open(encoding="utf-8"), splits["dev"], strict=True):
        raw = json.loads(line)
        assert (str(raw["id"]), raw["claim"], raw["label"]) == (claim.id, claim.text, claims.LABELS[claim.label])
        for piece, (title, number, sentence, _) in zip(claim.evidence, raw["evidence"], strict=True):
            assert (piece.title, piece.sentence) == (title, number)
            assert piece.text == " ".join(f"{title}. {sentence}".replace("''", '"').split())
    assert not {claim.text for claim in splits["train"]} & {claim.text for claim in splits["dev"]}


def test_a_long_text_is_readable_in_a_moment():
    started = time.process_time()
    for hostile in ("LRB" + " " * 200_000 + "x", "LSB " * 50_000, "LSB " * 50_000 + "RSB"):
        claims.readable(hostile)
    assert time.process_time() - started < 6
