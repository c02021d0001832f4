"""Rankers that see no question: texts of questions exchanged, and a bag of words of the candidates."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aslab import blind
from aslab.commands import asutil
from asutil import metrics
from asutil.data.questions import Candidate, Question


def asked(count, right="is a", seed=0):
    """Candidates that contain the words of a definition are right, whatever is asked."""
    draw = np.random.default_rng(seed)
    questions = []
    for number in range(count):
        labels = draw.permutation([1, 0, 0])
        texts = [f"{'this is a' if label else 'nothing of'} thing {draw.integers(9)}" for label in labels]
        candidates = (Candidate(f"{number}-{n}", text, int(label), None, None) for n, (text, label) in enumerate(zip(texts, labels)))
        questions.append(Question(f"q{number}", f"what {number}", tuple(candidates)))
    return questions


@pytest.mark.parametrize("count", [2, 3, 40])
def test_every_question_gets_the_text_of_another_and_keeps_the_rest(count):
    own = asked(count)
    other = blind.exchanged(own, seed=1)
    assert sorted(question.text for question in other) == sorted(question.text for question in own)
    assert all(mine.text != theirs.text for mine, theirs in zip(own, other))
    assert [(question.id, question.candidates) for question in other] == [(question.id, question.candidates) for question in own]
    assert [question.text for question in other] == [question.text for question in blind.exchanged(own, seed=1)]


def test_questions_of_one_text_get_another_one():
    own = [replace(question, text=("who?", "where?", "who?")[number % 3]) for number, question in enumerate(asked(30))]
    assert all(mine.text != theirs.text for mine, theirs in zip(own, blind.exchanged(own)))


def test_one_question_cannot_be_exchanged():
    copies = [replace(one, text=text) for one, text in zip(asked(3), ("Where is Rome?", "where is rome", "Where is  Rome ?"))]
    for own in (asked(1), copies):
        with pytest.raises(ValueError, match="two questions or more are needed to exchange their texts, got 1"):
            blind.exchanged(own)


def test_a_bag_of_words_learns_what_answers_look_like():
    table = blind.bag_of_words(asked(30), asked(20, seed=1))
    found = metrics.ranking(table["question_id"], table["label"], table["score"])
    assert found.p_at_1 == 1 and found.questions == 20 and table["score"].dtype == np.float32


def test_a_bag_of_words_in_a_script_without_spaces():
    """Every right candidate has one character, and no clause is there twice."""
    numbers = itertools.count(0x4E00)
    written = lambda one: replace(one, text=chr(next(numbers)) + "\u9519\u5bf9"[one.label])
    made = lambda *given, **of: [replace(question, candidates=tuple(map(written, question.candidates))) for question in asked(*given, **of)]
    table = blind.bag_of_words(made(30), made(20, seed=1))
    assert metrics.ranking(table["question_id"], table["label"], table["score"]).p_at_1 == 1


def test_a_bag_of_words_needs_both_labels():
    right = [replace(question, candidates=tuple(one for one in question.candidates if one.label)) for question in asked(3)]
    with pytest.raises(ValueError, match="expected training questions with right and wrong candidates, got label 1 alone"):
        blind.bag_of_words(right, asked(3))


def test_the_record_of_a_run_has_its_own_figures_and_those_without_its_questions(tmp_path, monkeypatch, capsys):
    """A ranker that gives the right candidate where the question's number is that of its id, else the last."""

    class Knowing:
        def score(self, questions):
            each = [(q, n, c) for q in questions for n, c in enumerate(q.candidates)]
            rows = [(q.id, c.label, float(c.label if q.text == f"what {q.id[1:]}" else n)) for q, n, c in each]
            return pd.DataFrame(rows, columns=["question_id", "label", "score"])

    settings = {"dataset": "mine", "protocol": "clean", "model": "tiny", "architecture": "pair"}
    settings |= {"question_limit": 20, "train_questions": "all"}
    run = {"notebook": "finetune", "name": "finetune-mine", "seed": 3, "settings": settings, "weights_sha256": {"model": "0"}}
    run |= {"inputs": {"dataset": "of today"}, "given": {"train_limit": 50, "seed": 3}}
    monkeypatch.setattr(blind.answers, "fingerprint_of_answers", lambda dataset: "of today")
    monkeypatch.setattr(blind.rundir, "read_record", lambda folder: run)
    monkeypatch.setattr(blind.tasks.rankers, "load_ranker", lambda folder: Knowing())
    splits = {"train": asked(30), "test": asked(20, seed=1)}
    asked_for = []
    load = lambda dataset, protocol, **options: asked_for.append((dataset, protocol, options)) or splits
    monkeypatch.setattr(blind.answers, "load_answers", load)
    asutil.main(["blind", str(tmp_path), "--out", str(tmp_path / "results" / "blind.json")])
    found = json.loads((tmp_path / "results" / "blind.json").read_text("utf-8"))
    (entry,), (words,) = found["runs"], found["bag_of_words"]
    assert entry["train_limit"] == 50, "another number of training questions is another line"
    last = np.mean([question.candidates[2].label for question in splits["test"]])
    own, exchanged = (entry["readouts"]["score"][which] for which in ("own", "exchanged"))
    assert {name: own[name] for name in ("map", "p@1", "questions")} == {"map": 1, "p@1": 1, "questions": 20}
    for figures in (own, exchanged):  # the values of every question, and nothing of its text
        assert [line[0] for line in figures["per_question"]] == [question.id for question in splits["test"]]
        means = np.mean([line[1:] for line in figures["per_question"]], axis=0)
        assert means[:2].tolist() == pytest.approx([figures["p@1"], figures["map"]], abs=1e-6) and len(means) == 3
    assert not any(question.text in json.dumps(found) for question in splits["test"])
    assert entry["readouts"]["score"]["exchanged"]["p@1"] == pytest.approx(last) and entry["seed"] == 3
    assert asked_for == [("mine", "clean", {"context": False, "train_questions": "all", "limit": 20})]
    assert words.pop("per_question") == own["per_question"]
    assert words == {"dataset": "mine", "protocol": "clean", "train_limit": 50, "map": 1, "p@1": 1, "questions": 20}
    shown = capsys.readouterr().out
    assert "score: MAP 1.0000, exchanged 0." in shown and f"; P@1 1.0000, exchanged {last:.4f} (20 test questions)" in shown
    # Of questions of the user's own, the record keeps no path.
    settings["dataset"], settings["protocol"] = "own:my_questions.tsv", "own"
    with pytest.raises(ValueError, match="name the file or folder of own:my_questions.tsv again"):
        blind.record([tmp_path])
    words = ["blind", str(tmp_path), "--dataset", "here/my_questions.tsv"]
    asutil.main(words)
    assert asked_for[-1][:2] == ("here/my_questions.tsv", "own")
    settings["dataset"], settings["protocol"] = "mine", "clean"
    asutil.main(words)
    assert asked_for[-1][0] == "mine"  # a published data set is found by its name
    run["inputs"] = {"dataset": "of yesterday"}
    with pytest.raises(ValueError, match="mine is not what finetune-mine was made from: fingerprint of yesterday expected, got of today"):
        blind.record([tmp_path])
    settings["architecture"] = "untrained"
    with pytest.raises(ValueError, match="expected a run that trained a model, its encoder was used as it was given"):
        blind.record([tmp_path])
    settings["architecture"] = "pair"
    run["notebook"] = "pretrain"
    with pytest.raises(ValueError, match="expected a run of finetune or embed, got one of pretrain"):
        blind.record([tmp_path])


def test_a_pre_training_is_called_by_its_backbone_and_objective(tmp_path, monkeypatch):
    known = {
        "ssp": {"model": "owner/mini", "objective": "ssp", "labels": "shuffled"},
        "dpc": {"model": "ssp", "objective": "dpc", "labels": None},
        "tuned": {"model": "dpc", "dataset": "wikiqa"},
        "elsewhere": {"model": "gone", "objective": "sp", "labels": None},
    }
    for name in known:
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").touch()
    monkeypatch.setattr(blind.rundir, "find", lambda name: tmp_path / name if name in (*known, "gone") else None)
    monkeypatch.setattr(blind.rundir, "read_record", lambda folder: {"settings": known[folder.name]})
    assert blind._pretrained("owner/mini") == "owner/mini"
    assert blind._pretrained("dpc") == "owner/mini + SSP, shuffled labels + DPC"
    assert blind._pretrained("tuned") == "owner/mini + SSP, shuffled labels + DPC + wikiqa"  # a fine-tuning from a fine-tuning
    assert blind._pretrained("elsewhere") == "gone + SP"  # a run that stayed on another machine
