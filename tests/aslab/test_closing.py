"""The last sentences of a run: what its limits left out, counted by hand, and whether its model is ahead of what needs no training."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from aslab import closing, parameters, runs
from asutil import metrics
from asutil.metrics import significance


def split(kept, lost=0, unit="questions", others=0):
    dropped = {"no positive": {unit: others}} if others else {}
    dropped |= {"beyond the limit": {unit: lost, "candidates": 9 * lost}} if lost else {}
    return SimpleNamespace(report={"kept": {unit: kept, "candidates": 9 * kept}, "dropped": dropped})


NONE = {"question_limit": None, "claim_limit": None, "train_limit": None, "test_limit": None}


@pytest.mark.parametrize(
    ("splits", "settings", "sentence"),
    [
        ({"train": split(40), "dev": split(5, others=3), "test": split(5)}, {}, None),
        ({"train": split(3), "test": split(3)}, {"question_limit": 3}, None),  # it had no more
        (
            {"train": split(240, 3760), "dev": split(240, 260), "test": split(99, others=7)},
            {"question_limit": 240},
            "left out by question_limit=240: 3,760 of 4,000 training questions, 260 of 500 dev questions",
        ),
        (
            {"train": split(100, 20), "dev": split(9, 1), "test": split(9, 2)},
            {"question_limit": 9, "train_limit": 100},
            "left out by train_limit=100: 20 of 120 training questions; by question_limit=9: 1 of 10 dev questions, 2 of 11 test questions",
        ),
        (
            {"train": split(8, 2, "claims"), "dev": split(1, 5, "claims"), "test": split(0, 0, "claims")},
            {"claim_limit": 8, "test_limit": 1},
            "left out by claim_limit=8: 2 of 10 training claims; by test_limit=1: 5 of 6 dev claims",
        ),
    ],
)
def test_what_a_limit_left_out(splits, settings, sentence):
    assert closing.left_out(splits, NONE | settings) == ([sentence] if sentence else [])


class Triplets(list):
    all = 5_200


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({"triplet_limit": 4000, "triplets_per_question": None}, "triplet_limit=4000"),
        ({"triplet_limit": 4000, "triplets_per_question": 9}, "triplet_limit=4000 and triplets_per_question=9"),
    ],
)
def test_triplets_that_were_left_out(settings, limits):
    assert closing.left_out({}, NONE | settings, Triplets(range(4000))) == [f"left out by {limits}: 1,200 of 5,200 triplets"]
    assert closing.left_out({}, NONE | settings, Triplets(range(5200))) == []
    assert closing.left_out({}, NONE | settings, [1, 2]) == []  # pairs have no such limit


def test_candidates_that_were_cut_are_counted():
    longer = SimpleNamespace(are_cut=lambda most: np.arange(1, 4001) * most > 2800 * 128)
    sentence = "cut at max_tokens=128: 1,200 of 4,000 training candidates"
    assert closing.left_out({}, NONE | {"max_tokens": 128}, longer) == [sentence]
    both = closing.left_out({"train": split(3, 2)}, NONE | {"question_limit": 3, "max_tokens": 128}, longer)
    assert both == ["left out by question_limit=3: 2 of 5 training questions", sentence]
    longer.UNIT = "pieces of evidence"
    assert closing.left_out({}, NONE | {"max_tokens": 128}, longer) == [sentence.replace("candidates", "pieces of evidence")]
    longer.are_cut = lambda most: np.zeros(4000, bool)
    assert closing.left_out({}, NONE | {"max_tokens": 128}, longer) == []


def ranking(ranks):
    """A ranking of one right candidate among five for each question, at these ranks."""
    rows = [(f"q{n}", f"c{place}", int(place == rank), -place) for n, rank in enumerate(ranks) for place in range(1, 6)]
    return metrics.of(pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score"]))


def mean(ranks):
    return 100 * sum(1 / rank for rank in ranks) / len(ranks)


MIXED = [1, 2, 3, 4, 5] * 8


@pytest.mark.parametrize(
    ("ours", "bm25", "start"),
    [
        (
            [5] * 40,
            [1] * 40,
            "Not worth using yet: on the 40 test questions BM25, which needs no training, has MAP 100.0, this model 20.0: ",
        ),
        (MIXED, MIXED, "Not worth using yet: on the 40 test questions BM25, which needs no training, has MAP 45.7, this model 45.7: "),
        (
            [1, *MIXED[2:], 2],
            [2, *MIXED[2:], 2],
            "Not shown to be better: on the 40 test questions BM25, which needs no training, has MAP ",
        ),
        ([1] * 40, [2] * 40, None),
        ([1] * 5, [2] * 5, "Not shown to be better: on the 5 test questions BM25"),
    ],
)
def test_a_model_that_is_not_shown_to_be_ahead_is_said_so(ours, bm25, start):
    worse = ranking([5] * len(ours))
    told = closing.ahead(ranking(ours), {"random": worse, "bm25": ranking(bm25), "zero_shot": worse})
    if start is None:
        assert told == []
        return
    (sentence,) = told
    assert sentence.startswith(start)
    precision = [np.array([1 / rank for rank in ranks]) for ranks in (ours, bm25)]
    low, high = (100 * edge for edge in significance.paired_bootstrap(*precision).interval)
    assert f"MAP {mean(ours) - mean(bm25):+.1f} points (95 % interval {low:+.1f} to {high:+.1f}, p by" in sentence
    assert ("may be chance" in sentence) == (mean(ours) > mean(bm25))
    assert ("Fewer than 6 test questions" in sentence) == (len(ours) < 6)


def test_the_best_of_what_needs_no_training_is_compared():
    untrained = {"random": ranking([4] * 30), "bm25": ranking([3] * 30), "before training": ranking([2] * 30)}
    (sentence,) = closing.ahead(ranking([3] * 30), untrained)
    assert "the untrained encoder, which needs no training, has MAP 50.0, this model 33.3" in sentence


def test_the_sentences_follow_the_name_of_the_run(tmp_path, capsys):
    options = SimpleNamespace()
    settings = {"budget": "laptop", "seed": 0}
    run = runs.Run("rank", tmp_path, {}, {"hash": "0", "settings": settings, "inputs": {}}, options)
    run.finish(["one sentence", "another"], metrics={})
    assert capsys.readouterr().out.splitlines() == [f"finished: {tmp_path.name}", "one sentence", "another"]
    run.finish(metrics={})
    assert capsys.readouterr().out.splitlines() == [f"finished: {tmp_path.name}"]


# ------------------------------------------------------------------ the data of a user at budget laptop


CUTS = ("question_limit", "claim_limit", "triplet_limit", "triplets_per_question", "train_limit", "test_limit", "distractors")


@pytest.mark.parametrize(
    ("notebook", "given", "tokens"),
    [
        ("finetune", {}, 128),
        ("finetune", {"architecture": "context"}, 256),
        ("finetune", {"architecture": "joint"}, 252),
        ("embed", {}, 128),
        ("embed", {"architecture": "siamese"}, 128),
        ("embed", {"architecture": "untrained"}, 128),
        ("rank", {}, None),
        ("verify_claims", {}, 252),
        ("verify_claims", {"head": "pair_max"}, 128),
        ("find_evidence", {}, 512),
    ],
)
def test_a_users_data_is_taken_whole_at_every_budget(notebook, given, tokens):
    for dataset in ("mine.tsv", "folder/of/mine", "wikiqa", "fever"):
        settings = parameters.settings(notebook, {"dataset": dataset} | given)
        assert settings["budget"] == "laptop" and not [name for name in CUTS if settings.get(name) is not None], dataset
        assert settings.get("max_tokens") == tokens
        assert parameters.settings(notebook, {"dataset": dataset, "train_limit" if "train_limit" in settings else "test_limit": 5} | given)
    for budget in ("small", "gpu", "paper"):
        settings = parameters.settings(notebook, {"dataset": "mine.tsv", "budget": budget} | given)
        assert not [name for name in CUTS if settings.get(name) is not None] and settings.get("train_questions") in (None, "all")
    embedded = parameters.settings(notebook, given)
    assert embedded["dataset"].startswith("pydocs") and any(embedded.get(name) for name in ("question_limit", "claim_limit"))
    assert tokens is None or embedded["max_tokens"] < tokens
