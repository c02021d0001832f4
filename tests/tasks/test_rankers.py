"""Rankers by name: BM25 against the formula by hand."""

import json
import math
import re

import huggingface_hub
import pytest

from asutil import load_ranker

QUESTION = "Where is the mill, the old mill?"
TEXTS = ["The mill is by the river.", "By the sea.", "Nothing", "", "The MILL: old, old mill!"]


def by_hand(question, texts, k1=1.5, b=0.75):
    words = [re.findall(r"\w+", text.lower()) for text in texts]
    mean = sum(map(len, words)) / len(words)
    scores = []
    for text in words:
        score = 0.0
        for word in re.findall(r"\w+", question.lower()):
            holding = sum(word in other for other in words)
            often = text.count(word)
            rarity = math.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
            score += rarity * often / (often + k1 * (1 - b + b * len(text) / mean)) if often else 0.0
        scores.append(score)
    return scores


def test_bm25_ranks_by_its_formula():
    ranked = load_ranker("bm25").rank(QUESTION, TEXTS)
    assert [number for number, _ in ranked] == [4, 0, 1, 2, 3]
    assert [score for _, score in sorted(ranked)] == pytest.approx(by_hand(QUESTION, TEXTS), rel=1e-5)


def test_bm25_with_nothing_to_compare():
    model = load_ranker("bm25")
    assert model.rank("mill", []) == []
    assert model.rank("mill", ["", "!"]) == [(0, 0.0), (1, 0.0)]
    assert model.rank("?", ["mill", "river"]) == [(0, 0.0), (1, 0.0)]
    with pytest.raises(ValueError, match="takes no contexts"):
        model.rank("mill", ["river"], contexts=[(None, None)])
    with pytest.raises(ValueError, match="a list of texts expected, got one text"):
        model.rank("mill", "river")


def test_a_name_that_leads_nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("ASUTIL_MIRROR", raising=False)
    with pytest.raises(FileNotFoundError, match="set ASUTIL_MIRROR"):
        load_ranker("nobody/nothing")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_ranker(tmp_path / "absent")


@pytest.mark.parametrize("architectures", [math.nan, "BertForSequenceClassification", [3]])
def test_architectures_that_are_no_list_of_names_are_refused(tmp_path, architectures):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": architectures}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"architectures"):
        load_ranker(tmp_path, "cpu")
