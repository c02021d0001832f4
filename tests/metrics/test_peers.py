import numpy as np
import pandas as pd
import pytest

from asutil import metrics
from asutil.metrics import peers
from asutil.metrics.registry import measures


def test_peers_agree_where_there_are_no_ties():
    draw = np.random.default_rng(0)
    questions = np.repeat([f"q{n}" for n in range(40)], 12)
    labels = (draw.random(480) < 0.2).astype(np.int8)
    labels[::12] = 1
    scores = pd.DataFrame({"question_id": questions, "candidate_id": np.arange(480).astype(str), "label": labels})
    scores["score"] = draw.permutation(480).astype(np.float32) - 240  # half of them below zero
    ours = metrics.of(scores).record()
    found = peers.all_of(scores)
    assert set(found) == {"torchmetrics", "trec_eval"}
    for values in found.values():
        assert values == pytest.approx({name: ours[name] for name in values}, abs=1e-6)


def test_titles_are_those_of_the_papers_tables():
    assert [measure.title for measure in measures("question") if measure.trec_eval] == ["P@1", "MAP", "MRR"]
