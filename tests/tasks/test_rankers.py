"""Rankers by name: BM25 against the formula by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from transformers import AutoModel, AutoTokenizer

from asutil import load_ranker
from asutil.data import answers, baseline_scores
from asutil.data.questions import Candidate, Question
from asutil.io import disk, hub
from asutil.metrics import calibration
from asutil.tasks import base, rankers

from ..data.test_baselines import slow_bm25

QUESTION = "Where is the mill, the old mill?"
TEXTS = ["The mill is by the river.", "By the sea.", "Nothing", "", "The MILL: old, old mill!"]


def asked(number: int) -> Question:
    """A question whose answer says its words again; every fifth one has none."""
    texts = [f"the mill {number} is here" if number % 5 else "nothing", "a mill", "sea"]
    found = tuple(Candidate(f"{number}-{k}", text, int(k == 0 and number % 5 > 0), None, None) for k, text in enumerate(texts))
    return Question(f"q{number}", f"where is mill {number}", found)


def test_bm25_ranks_by_its_formula():
    ranked = load_ranker("bm25").rank(QUESTION, TEXTS)
    assert [number for number, _ in ranked] == [4, 0, 1, 2, 3]
    assert [score for _, score in sorted(ranked)] == pytest.approx(slow_bm25(QUESTION, TEXTS), rel=1e-5)


def test_bm25_with_nothing_to_compare():
    model = load_ranker("bm25")
    assert model.rank("mill", []) == []
    for question, texts in (("mill", ["", "!"]), ("?", ["mill", "river"])):
        assert model.rank(question, texts) == [(0, 0.0), (1, 0.0)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("mill", ["river"], [(None, None)]), "it takes no contexts"),
        (("mill", "river"), "a list of texts expected, got one text"),
        (("mill", {"a": "river"}), "a list of texts expected, got a dict"),
        (("mill", {"river", "sea"}), "a list of texts expected, got a set"),
        (("mill", pd.DataFrame({"answer": ["river"]})), "a list of texts expected, got a DataFrame"),
        (("Why?", ["So.", None]), r"candidates\[1\]: a text expected, got"),
        ((7, ["So."]), "question: a text expected, got"),
        ((["a", "b"], [TEXTS]), "candidates: one list for each of the 2 questions expected, got 1"),
        ((["a", "b"], [TEXTS, [None]]), r"question 1: candidates\[0\]: a text expected, got None"),
        ((["a", "b"], TEXTS[:2]), "question 0: candidates: a list of texts expected, got one text"),
    ],
)
def test_what_cannot_be_ranked_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        load_ranker("bm25").rank(*given)


def test_contexts_are_pairs_and_no_dictionaries():
    with pytest.raises(ValueError, match=r"\(sentence before, sentence after\) of each candidate expected, got \{'before'"):
        base.as_question("mill", ["river"], [{"before": "So.", "after": None}])


WRONG = [Question(q.id, q.text, tuple(replace(c, label=1 - c.label) for c in q.candidates)) for q in map(asked, range(1, 5))]


@pytest.mark.parametrize("questions", ["my_questions.tsv", [], ["Why?"], WRONG], ids=["name", "none", "texts", "reversed"])
def test_calibrate_says_what_questions_it_takes(questions):
    words = r'labelled questions expected, as load_answers\("my_questions.tsv"\)\["dev"\] gives them'
    with pytest.raises(ValueError, match="a higher score does not mean an answer more often" if questions is WRONG else words):
        load_ranker("bm25").calibrate(questions)


@pytest.mark.parametrize("form", [np.array, pd.Series, iter, tuple])
def test_candidates_may_be_any_column_of_texts(form):
    model = load_ranker("bm25")
    assert model.rank(QUESTION, form(TEXTS)) == model.rank(QUESTION, TEXTS)
    assert model.rank(QUESTION, form([])) == []


def test_a_model_that_was_fine_tuned_is_no_encoder(tmp_path):
    folder = tmp_path / "finetune-mine-0123456789ab"
    (folder / "model").mkdir(parents=True)
    disk.write_json(folder / "record.json", {"name": folder.name, "notebook": "finetune", "weights_sha256": {}, "tables_sha256": {}})
    with pytest.raises(ValueError, match="expected a model that embeds each text by itself, got one of finetune"):
        rankers.load_encoder(folder)


@pytest.mark.parametrize("architectures", [math.nan, "BertForSequenceClassification", [3]])
def test_architectures_that_are_no_list_of_names_are_refused(tmp_path, architectures):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": architectures}), encoding="utf-8")
    with pytest.raises(ValueError, match="architectures in config.json is a list of names"):
        load_ranker(tmp_path, "cpu")


def test_bm25_scores_questions_as_the_baseline_of_a_split_does(tmp_path):
    rows = [f"{q.text}\t{c.text}\t{int(k == 0)}\n" for q in map(asked, range(1, 5)) for k, c in enumerate(q.candidates)]
    (tmp_path / "own.tsv").write_text("question\tanswer\tlabel\n" + "".join(rows))
    split = answers.load_answers(tmp_path / "own.tsv", "asbert")["train"]
    pd.testing.assert_frame_equal(load_ranker("bm25").score(split), baseline_scores(split, "bm25"), check_dtype=False)


def test_no_questions_are_refused_and_stopped_scores_are_kept(tmp_path):
    model = load_ranker("bm25")
    with pytest.raises(ValueError, match="expected questions with candidates to score, got none"):
        model.score([])
    questions = [asked(n) for n in (3, 5)]
    scores = model.score(iter(questions), folder=tmp_path)
    (table,) = tmp_path.glob("*.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(table), scores)


def test_kept_scores_are_of_the_ranker_and_the_questions_that_they_are_asked_of(tmp_path):
    scores, _ = rankers.scored("bm25", {"test": [asked(1)]}, tmp_path / "bm25")
    assert rankers.scored("bm25", {"test": [asked(1)]}, tmp_path / "bm25")[0]["test"].equals(scores["test"])
    with pytest.raises(ValueError, match="bm25: its scores are not those of this test split: take another folder"):
        rankers.scored("bm25", {"test": [replace(asked(1), text="where else?")]}, tmp_path / "bm25")
    with pytest.raises(ValueError, match="bm25: its scores are not those of this dev split"):
        rankers.scored("bm25", {"test": [asked(1)], "dev": [asked(2)]}, tmp_path / "bm25")
    with pytest.raises(ValueError, match="bm25: its scores are not those of this ranker"):
        rankers.scored("pydocs_roberta", {"test": [asked(1)]}, tmp_path / "bm25")
    model = AutoModel.from_pretrained(hub.model_path("pydocs_roberta"))
    for tenth in (1, 2):
        model.embeddings.word_embeddings.weight.data[:10] += tenth
        model.save_pretrained(tmp_path / "own")
        AutoTokenizer.from_pretrained(hub.model_path("pydocs_roberta")).save_pretrained(tmp_path / "own")
        if tenth == 1:
            rankers.scored(tmp_path / "own", {"test": [asked(1)]}, tmp_path / "kept")
    with pytest.raises(ValueError, match="kept: its scores are not those of this ranker's weights"):
        rankers.scored(tmp_path / "own", {"test": [asked(1)]}, tmp_path / "kept")


def test_questions_without_candidates_are_told(caplog):
    scores = load_ranker("bm25").score([asked(1), Question("q2", "where?", ())])
    assert set(scores.question_id) == {"q1"} and caplog.messages[0].startswith("questions without candidates: 1 of 2")


def test_probabilities_and_the_answer_of_a_calibrated_ranker():
    model, question = load_ranker("bm25"), asked(7)
    texts = [candidate.text for candidate in question.candidates]
    with pytest.raises(ValueError, match=r"this ranker has no probabilities: call calibrate\(questions\)"):
        model.rank(question.text, texts, calibrated=True)
    questions = [asked(number) for number in range(100)]
    fitted = model.calibrate(questions)
    alone = pd.concat([model.score([one], progress=False) for one in questions], ignore_index=True)
    assert fitted == calibration.fit(alone) != calibration.fit(model.score(questions)), "by the scores that `rank` has"
    ranked, probable = model.rank(question.text, texts), model.rank(question.text, texts, calibrated=True)
    assert model.answer([question.text] * 2, [texts, []]) == [model.answer(question.text, texts), None]
    for threshold in (2, -0.1, math.nan):
        with pytest.raises(ValueError, match="threshold: a probability from 0 to 1 expected, got"):
            model.answer(question.text, texts, threshold=threshold)
    assert [number for number, _ in probable] == [number for number, _ in ranked]
    assert [probability for _, probability in probable] == pytest.approx(
        [1 / (1 + math.exp(-(score / fitted.temperature + fitted.bias))) for _, score in ranked]
    )
    least = (probable[0][1] + probable[1][1]) / 2
    assert model.answer(question.text, texts, threshold=least) == probable[0]
    assert model.answer(question.text, texts, threshold=probable[0][1] + 1e-9) is None
    assert model.answer(question.text, []) is None


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series])
def test_many_questions_in_one_call_are_ranked_as_each_alone(form):
    """BM25 too, whose document frequencies are of one question's candidates."""
    model = load_ranker("bm25")
    questions = [QUESTION, "river?", "sea", QUESTION]
    candidates = [TEXTS, TEXTS[:2], [], TEXTS[::-1]]
    assert model.rank(form(questions), candidates) == [model.rank(*both) for both in zip(questions, candidates)]
    assert model.rank([], []) == [] and model.rank(form(["sea"]), [[]]) == [[]]
