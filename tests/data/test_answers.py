"""Loading: counts on real data, user files by round trip and by malformed input, context, baselines by hand."""

import functools
import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aslab import parameters
from asutil.data import answers as questions
from asutil.data.answers import load_answers
from asutil.data.baselines import baseline_scores
from asutil.data.data_sets import ANSWERS, Part
from asutil.io import hub
from asutil.pydocs import documents

ROWS = [
    ("Q1", "why?", "Page", "Because.", 0),
    ("Q1", "why?", "Page", "Since then.", 1),
    ("Q1", "why?", "Other", "So that.", 0),
    ("Q2", 'what is a "quote?', "Page", 'An "unbalanced quote.', 1),
    ("Q2", 'what is a "quote?', "Page", "Another thing.", 0),
]
NAMES = ["question_id", "question", "document_title", "answer", "label"]


def write(path, rows, names=NAMES):
    """By hand, so that nothing of the reader is used."""
    if path.suffix == ".tsv":
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [names, *rows]), encoding="utf-8", newline="")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.table({name: list(column) for name, column in zip(names, zip(*rows))}), path)
    return path


def folder(tmp_path, suffix=".tsv", **changed):
    for split in ("train", "dev", "test"):
        write(tmp_path / f"{split}{suffix}", changed.get(split, ROWS))
    return tmp_path


# ------------------------------------------------------------------------------------------------------------ user files


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet"])
def test_a_users_folder(tmp_path, suffix):
    splits = load_answers(folder(tmp_path, suffix))
    assert list(splits) == ["train", "dev", "test"]
    first, second = splits["test"]
    assert (first.id, first.text, second.text) == ("Q1", "why?", 'what is a "quote?')
    assert [c.id for c in first.candidates] == ["Q1-0", "Q1-1", "Q1-2"]
    assert [c.label for c in first.candidates] == [0, 1, 0]
    assert [c.before for c in first.candidates] == [None, "Because.", None], "never across titles"
    assert [c.after for c in first.candidates] == ["Since then.", None, None]
    assert second.candidates[0].text == 'An "unbalanced quote.'
    assert splits["test"].ordered


def test_blank_titles_are_unknown(tmp_path):
    rows = [(*row[:2], " ", *row[3:]) for row in ROWS]
    split = load_answers(folder(tmp_path, test=rows))["test"]
    assert not split.ordered
    assert all(c.before is c.after is None for q in split for c in q.candidates)
    with pytest.raises(ValueError, match="not in document order"):
        baseline_scores(split, "document_order")
    split = load_answers(folder(tmp_path, test=[*rows[:3], *ROWS[3:]]))["test"]
    assert split.ordered
    assert [[c.before for c in q.candidates] for q in split] == [[None] * 3, [None, 'An "unbalanced quote.']]


def test_rows_of_a_question_need_not_stand_together_and_ids_are_optional(tmp_path):
    rows = [("a?", "one.", 0), ("b?", "two.", 1), ("a?", "three.", 1), ("c?", "four.", 1)]
    for split in ("train", "dev", "test"):
        write(tmp_path / f"{split}.tsv", rows, ["question", "answer", "label"])
    expected = [("train-0", "a?", ["one.", "three."]), ("train-1", "b?", ["two."]), ("train-2", "c?", ["four."])]
    assert [(q.id, q.text, [c.text for c in q.candidates]) for q in load_answers(tmp_path)["train"]] == expected


def test_a_split_is_a_sequence(tmp_path):
    split = load_answers(folder(tmp_path))["train"]
    assert split[-1] == split[1] == list(split)[1]
    assert [q.id for q in split[1:]] == ["Q2"]
    assert split[1:].report == {"read": {"questions": 1, "candidates": 2}, "kept": {"questions": 1, "candidates": 2}, "dropped": {}}
    with pytest.raises(IndexError):
        split[2]
    frame = split[1:].frame()
    assert frame.to_dict("list") == {"question_id": ["Q2", "Q2"], "candidate_id": ["Q2-0", "Q2-1"], "label": [1, 0]}


def test_protocols_and_reports_of_a_users_folder(tmp_path):
    rows = [*ROWS, ("Q3", "none?", "Page", "Nothing.", 0), ("Q4", "all?", "Page", "Everything.", 1)]
    folder(tmp_path, train=rows, dev=rows)
    assert len(load_answers(tmp_path)["train"]) == 4
    kept = load_answers(tmp_path, train_questions="with_positive")["train"]
    for split in (kept, load_answers(tmp_path)["dev"], load_answers(tmp_path, "asbert")["dev"]):
        assert [q.id for q in split] == ["Q1", "Q2", "Q4"]
    assert kept.report == {
        "read": {"questions": 4, "candidates": 7},
        "kept": {"questions": 3, "candidates": 6},
        "dropped": {"no positive": {"questions": 1, "candidates": 1}},
    }
    write(tmp_path / "test.tsv", rows[-2:-1])
    for protocol in ("clean", "asbert"):
        with pytest.raises(ValueError, match="test: no question is left, of 1 questions and 1 candidates: no positive: 1 questions and 1"):
            load_answers(tmp_path, protocol)


def test_a_file_that_is_missing_or_of_another_kind(tmp_path):
    (tmp_path / "x.txt").write_text("a")
    with pytest.raises(FileNotFoundError, match=r"no\.tsv does not exist"):
        load_answers(tmp_path / "no.tsv")
    with pytest.raises(ValueError, match=r"ends in \.tsv, .*, \.parquet, got \.txt"):
        load_answers(tmp_path / "x.txt")


# -------------------------------------------------------------------------------------------------------------- the hub


def counting(monkeypatch, name, counts):
    """Other counts than the published ones: protocol -> split -> (questions, candidates)."""
    protocols = {}
    for protocol, splits in counts.items():
        parts = ANSWERS[name].protocols[protocol]
        protocols[protocol] = {split: Part(*parts[split][:2], *count) for split, count in splits.items()}
    monkeypatch.setitem(ANSWERS, name, replace(ANSWERS[name], protocols=protocols))


def as_on_the_hub(tmp_path, monkeypatch, name, rows, files=1, group=50, counts=None, **train):
    """A mirror of ASNQ (rows with a key) or NewsAS2: `files` files for train, in row groups of `group` rows; its counts are asserted.

    Args:
        train: other columns of the first file for train.
    """
    folder = tmp_path / "lucadiliello" / {"newsas2": "news_as2", "asnq": "asnq"}[name] / "data"
    folder.mkdir(parents=True, exist_ok=True)
    hashed = "-0f1e2d3c4b5a6978" if name == "newsas2" else ""
    for split in questions.SPLITS:
        cuts = [len(rows) * n // files for n in range(files + 1)] if split == "train" else [0, len(rows)]
        for n, (start, stop) in enumerate(pairwise(cuts)):
            columns = dict(zip(["question", "answer", "label", "key"], map(list, zip(*rows[start:stop]))))
            columns |= train if split == "train" and n == 0 else {}
            path = folder / f"{split}-{n:05d}-of-{len(cuts) - 1:05d}{hashed}.parquet"
            pq.write_table(pa.table(columns), path, row_group_size=group)
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    counts = counts or (len({row[3 if name == "asnq" else 0] for row in rows}), len(rows))
    counting(monkeypatch, name, {"clean": dict.fromkeys(questions.SPLITS, counts)})
    return folder


def hub_of(tmp_path, monkeypatch, counts):
    """A mirror with rows of WikiQA's form, and the counts that they should have."""
    root = tmp_path / "mirror" / "microsoft" / "wiki_qa"
    root.mkdir(parents=True)
    for stem in ("train", "validation", "test"):
        write(root / f"{stem}.parquet", [*ROWS, ("Q3", "none?", "Page", "Nothing.", 0), ("Q4", "all?", "Page", "Everything.", 1)])
    monkeypatch.setenv(hub.MIRROR, str(tmp_path / "mirror"))
    counting(monkeypatch, "wikiqa", counts)


def test_protocol_rules_on_rows_of_wikiqas_form(tmp_path, monkeypatch):
    clean = {"train": (4, 7), "dev": (2, 5), "test": (2, 5)}
    hub_of(tmp_path, monkeypatch, {"clean": clean, "asbert": dict.fromkeys(clean, (3, 6))})
    splits = load_answers("wikiqa")
    assert [[q.id for q in split] for split in splits.values()] == [["Q1", "Q2", "Q3", "Q4"], ["Q1", "Q2"], ["Q1", "Q2"]]
    assert splits["test"].report["dropped"] == {what: {"questions": 1, "candidates": 1} for what in ("no positive", "only positives")}
    assert [q.id for q in load_answers("wikiqa", "asbert")["dev"]] == ["Q1", "Q2", "Q4"]
    before = questions.fingerprint_of_answers("wikiqa")
    write(tmp_path / "mirror" / "microsoft" / "wiki_qa" / "test.parquet", ROWS)
    assert questions.fingerprint_of_answers("wikiqa") != before


def test_another_count_than_the_published_one_prints_both(tmp_path, monkeypatch):
    hub_of(tmp_path, monkeypatch, {"clean": {"train": (2_118, 20_360)}})
    with pytest.raises(ValueError, match="expected 2,118 questions and 20,360 candidates, got 4 and 7"):
        load_answers("wikiqa")


def test_fingerprint_of_the_hub_is_its_id_before_and_after_the_download(tmp_path, monkeypatch):
    monkeypatch.delenv(hub.MIRROR, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    references = tmp_path / "datasets--microsoft--wiki_qa" / "refs"
    references.mkdir(parents=True)
    (references / "main").write_text("abc123\n")
    assert questions.fingerprint_of_answers("wikiqa") == "microsoft/wiki_qa"


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        *[(name, protocol) for name in ("wikiqa", "trecqa") for protocol in ("clean", "asbert")],
        *[(name, "clean") for name in ("trecqa_transfer", "nq_sentences", "selqa")],
    ],
)
def test_real_counts(mirror, name, protocol):
    splits = load_answers(name, protocol)
    for split, (asked, candidates) in ANSWERS[name].counts[protocol].items():
        content = splits[split]
        found = list(content)
        assert len(found) == len(content) == len({q.id for q in found}) == asked
        assert len({q.text for q in found}) == asked - ((name, split) == ("selqa", "train")), "one text has two ids there"
        assert sum(len(q.candidates) for q in found) == len({c.id for q in found for c in q.candidates}) == candidates
        parts = [content.report["kept"], *content.report["dropped"].values()]
        assert {key: sum(part[key] for part in parts) for key in content.report["read"]} == content.report["read"]
        assert content.ordered == (name in ("wikiqa", "nq_sentences", "selqa"))


@pytest.mark.mirror
def test_trecqa_transfer_is_the_part_of_trecqas_training_questions_with_both_labels(mirror):
    (split,) = load_answers("trecqa_transfer", train_questions="with_positive").values()
    mixed = {q.id: q for q in load_answers("trecqa")["train"] if len({c.label for c in q.candidates}) == 2}
    assert {q.id: q for q in split} == mixed and len(mixed) == 1_158
    with pytest.raises(ValueError, match="trecqa_transfer, test: no sentences before and after"):
        load_answers("trecqa_transfer", context=True)


@pytest.mark.mirror
def test_wikiqa_against_plain_pandas(mirror):
    split = load_answers("wikiqa")["test"]
    table = pd.read_parquet(hub.mirror("microsoft/wiki_qa") / "test.parquet")
    for question in split[::20]:
        rows = table[table.question_id == question.id]
        answers = rows.answer.tolist()
        assert [c.text for c in question.candidates] == answers
        assert [c.label for c in question.candidates] == rows.label.tolist()
        assert [c.before for c in question.candidates] == [None, *answers[:-1]]
        assert [c.after for c in question.candidates] == [*answers[1:], None]


# --------------------------------------------------------------------------------------------------------------- pydocs


@pytest.fixture(scope="module")
def pydocs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "questions", functools.partial(iter, list(documents.questions())))  # read once
        yield load_answers("pydocs")


@pytest.mark.slow
def test_pydocs_is_split_by_the_functions_name(pydocs):
    names = {split: {q.id.split(":")[0].rpartition(".")[2] for q in content} for split, content in pydocs.items()}
    assert not names["train"] & (names["dev"] | names["test"])
    assert not names["dev"] & names["test"]
    sizes = {split: len(content) for split, content in pydocs.items()}
    assert sizes["train"] > 10_000 < 5 * (sizes["dev"] + sizes["test"]) < 2 * sizes["train"]
    ids = [id for split in pydocs.values() for id in split.ids]
    assert len(set(ids)) == len(ids)


def test_pydocs_questions_can_be_answered_and_missed(pydocs):
    for split in pydocs.values():
        positives = split.positives()
        assert (positives > 0).all()
        assert (positives < split.stops - split.starts).all()
        assert split.ordered
        assert split.report["dropped"].keys() == {"no positive", "only positives"}


@pytest.mark.slow
def test_a_question_of_pydocs_by_hand(pydocs):
    """Known from numpy itself: eigh documents UPLO with its own sentences."""
    import numpy.linalg

    found = [q for split in pydocs.values() for q in split if q.id == "numpy.linalg._linalg.eigh:UPLO"]
    question = found[0]
    assert question.text == "What is UPLO in numpy.linalg.eigh?"
    text = " ".join(numpy.linalg.eigh.__doc__.replace("`", "").split())
    described = text[text.index("UPLO : ") : text.index("Returns ---")]
    for candidate in question.candidates:
        assert candidate.label == (candidate.text in described)
    texts = [c.text for c in question.candidates]
    assert [c.before for c in question.candidates] == [None, *texts[:-1]]


def test_limit_on_pydocs_is_spread_over_packages(pydocs):
    few = pydocs["train"].limited(200)
    assert {q.id.split(".")[0] for q in few} == {"numpy", "scipy", "pandas", "sklearn"}


@pytest.mark.usefixtures("_versions_of_the_cards")
def test_the_card_of_pydocs_says_how_much_can_be_remembered(pydocs):
    card = (Path(__file__).parents[2] / "data_cards" / "pydocs.md").read_text(encoding="utf-8")
    assert questions.fingerprint_of_answers("pydocs") in card
    right = {split: [{c.text for c in q.candidates if c.label} for q in pydocs[split].limited(240)] for split in ("train", "test")}
    known = set().union(*right["train"])
    assert f"of their 240 test questions {sum(bool(texts & known) for texts in right['test'])} have a right sentence" in card


@pytest.mark.usefixtures("_versions_of_the_cards")
def test_more_questions_of_pydocs_are_the_test_questions_that_budget_laptop_leaves_out(pydocs):
    limit = parameters.settings("finetune", {"budget": "laptop", "dataset": "pydocs"})["question_limit"]
    read = {split: list(content) for split, content in load_answers("pydocs", limit=limit).items()}
    more = {split: list(content) for split, content in load_answers("pydocs_more").items()}
    assert more["train"] == read["train"] and more["dev"] == read["dev"]
    both = {q.id: q for q in read["test"] + more["test"]}
    assert both == {q.id: q for q in pydocs["test"]} and len(both) == len(read["test"]) + len(more["test"])
    card = (Path(__file__).parents[2] / "data_cards" / "pydocs_more.md").read_text(encoding="utf-8")
    known = {c.text for q in more["train"] for c in q.candidates if c.label}
    repeats = sum(any(c.label and c.text in known for c in q.candidates) for q in more["test"])
    assert f"- {repeats} test questions (7 in 100" in card and round(100 * repeats / len(more["test"])) == 7


# ------------------------------------------------------------------------------------------------------------- baselines


def test_document_order(tmp_path):
    split = load_answers(folder(tmp_path))["test"]
    frame = baseline_scores(split, "document_order")
    assert list(frame) == ["question_id", "candidate_id", "label", "score"]
    assert frame.score.dtype == np.float32
    assert frame.label.tolist() == [0, 1, 0, 1, 0]
    assert frame.score.tolist() == [0, -1, -2, 0, -1]
    with pytest.raises(ValueError, match="did you mean 'bm25'"):
        baseline_scores(split, "bm52")


def test_bm25_calls_no_jax(tmp_path):
    """JAX takes three quarters of a GPU's memory at its first call, and bm25s calls it where it is installed."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax/__init__.py").write_text("")
    (tmp_path / "jax/lax.py").write_text("def top_k(*_): raise SystemExit('JAX was called')")
    imported = "import sys; from asutil.data.baselines import bm25_over; assert bm25_over(['red wine', 'a car'])('wine').argmax() == 0;"
    imported += "import jax.lax; assert jax.lax.top_k and sys.modules['jax.lax'] is jax.lax;"
    command = [sys.executable, "-c", imported + "assert bm25_over(['red wine', 'a car'])('wine').argmax() == 0"]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}."})
