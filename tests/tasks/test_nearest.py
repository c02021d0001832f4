"""Ranking by vectors: against loops in float64, the siamese probability, windows that are kept, what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from asutil import metrics
from asutil.data.answers import Candidate, Question
from asutil.models import embedder
from asutil.tasks import nearest

from ..inputs.test_triplets import asked
from ..models.test_embedder import settings_of, small_backbone


class Given:
    """Vectors that depend on a text alone, in the place of a model."""

    identity, dimensions = "given", 5

    def __init__(self):
        self.calls = []

    def encode(self, texts):
        self.calls.append(list(texts))
        return np.array([np.random.default_rng(list(text.encode())).normal(size=5) for text in texts], np.float32)


def by_hand(u, v, by):
    u, v = u.astype(float).tolist(), v.astype(float).tolist()
    dot = sum(x * y for x, y in zip(u, v))
    if by == "dot":
        return dot
    if by == "cosine":
        return dot / math.sqrt(sum(x * x for x in u)) / math.sqrt(sum(y * y for y in v))
    return -math.sqrt(sum((x - y) ** 2 for x, y in zip(u, v)))


@pytest.mark.parametrize("by", ["distance", "cosine", "dot"])
def test_scores_are_those_of_a_loop(by):
    made, encoder = asked([[1, 0, 0], [0], [1, 1, 0, 0]]), Given()
    scores = nearest.Nearest(encoder, by).score(made, progress=False)
    rows = [(q, c) for q in made for c in q.candidates]
    expected = [by_hand(encoder.encode([q.text])[0], encoder.encode([c.text])[0], by) for q, c in rows]
    assert scores["score"].to_numpy() == pytest.approx(expected, rel=1e-5)
    assert scores["score"].dtype == np.float32 and scores["label"].dtype == np.int8
    assert scores[["question_id", "candidate_id"]].to_numpy().tolist() == [[q.id, c.id] for q, c in rows]


def test_a_text_without_a_vector_is_like_nothing():
    assert nearest.similarity(np.zeros((1, 3)), np.ones((1, 3)), "cosine").tolist() == [0.0]


def test_a_text_is_embedded_once_a_window():
    candidates = tuple(Candidate(str(n), text, 0, None, None) for n, text in enumerate(["same", "same", "other"]))
    encoder = Given()
    scores = nearest.Nearest(encoder, "cosine").score(
        [Question("a", "same", candidates), Question("b", "other", candidates)], progress=False
    )
    assert encoder.calls == [["same", "other"]] and scores["score"].tolist()[:2] == [1.0, 1.0]


@pytest.fixture(scope="module")
def siamese(tokenizer):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return embedder.Embedder(small_backbone(tokenizer), tokenizer, settings_of("siamese"))


def test_a_siamese_network_ranks_by_distance_and_its_probability_is_an_option(siamese):
    made = asked([[1, 0, 0], [1, 1, 0, 0]])
    rows = [(q, c) for q in made for c in q.candidates]
    u, v = (torch.from_numpy(siamese.encode([one.text for one in texts])) for texts in zip(*rows))
    scores = nearest.Nearest(siamese).score(made, progress=False)["score"].to_numpy()
    assert scores == pytest.approx(-np.linalg.norm(u - v, axis=1), rel=1e-4)
    with torch.no_grad():
        expected = (torch.cat([u, v, (u - v).abs()], 1) @ siamese.siamese.linear.weight[0] + siamese.siamese.linear.bias).numpy()
    by_probability = nearest.Nearest(siamese, "probability").score(made, progress=False)["score"].to_numpy()
    assert by_probability == pytest.approx(expected, abs=1e-5)


def test_one_scoring_has_every_readout_and_encodes_once(siamese):
    made, encoder = asked([[1, 0, 0], [0], [1, 1, 0, 0]]), Given()
    scores = nearest.Nearest(encoder, "dot").score(made, progress=False)
    assert len(encoder.calls) == 1 and "probability" not in scores
    for by in ("distance", "cosine", "dot"):
        alone = nearest.Nearest(Given(), by).score(made, progress=False)["score"]
        np.testing.assert_array_equal(scores[by], alone)
        assert scores[by].dtype == np.float32
    np.testing.assert_array_equal(scores["score"], scores["dot"])
    scores = nearest.Nearest(siamese).score(made, progress=False)
    alone = nearest.Nearest(siamese, "probability").score(made, progress=False)
    np.testing.assert_array_equal(scores["probability"], alone["score"])


def test_metrics_of_every_readout_are_those_of_a_ranking_by_hand():
    """Two candidates, the right one nearer but shorter: first by distance, second by dot product."""
    table = pd.DataFrame({"question_id": ["a", "a"], "candidate_id": ["a-0", "a-1"], "label": [1, 0]})
    table = table.assign(distance=[-0.5, -2.0], cosine=[0.9, 0.9], dot=[0.4, 1.5], score=[-0.5, -2.0])
    found = nearest.measured({"dev": table, "test": table.assign(dot=[2.0, 1.5])})
    assert {by: [splits[split]["map"] for split in ("dev", "test")] for by, splits in found.items()} == {
        "distance": [1.0, 1.0],
        "cosine": [0.5, 0.5],  # of equal scores the wrong candidate ranks first
        "dot": [0.5, 1.0],
    }
    assert found["cosine"]["test"]["tied_questions"] == 1


def test_what_ranks_nothing_is_refused(siamese, tokenizer):
    with pytest.raises(ValueError, match="only a siamese network gives a probability"):
        nearest.Nearest(Given(), "probability")
    with pytest.raises(ValueError, match="rank_by: one of distance, cosine, dot, manhattan, probability expected, got 'norm'"):
        nearest.Nearest(siamese, "norm")
    with pytest.raises(ValueError, match="expected questions with candidates"):
        nearest.Nearest(siamese).score([])


def test_rank_gives_numbers_and_scores_best_first():
    encoder = Given()
    ranked = nearest.Nearest(encoder, "dot").rank("which", ["river", "garden", "river", "matrix"])
    scores = encoder.encode(["river", "garden", "river", "matrix"]) @ encoder.encode(["which"])[0]
    assert [n for n, _ in ranked] == sorted(range(4), key=lambda n: (-scores[n], n))
    assert nearest.Nearest(encoder).rank("which", []) == []


def test_finished_windows_are_kept_and_found_again(tmp_path, monkeypatch):
    from asutil.tasks import base

    monkeypatch.setattr(base, "WINDOW", 3)
    made, encoder = asked([[1, 0], [0, 1], [1, 0, 0], [1, 0]]), Given()
    whole = nearest.Nearest(encoder, "dot").score(made, progress=False, folder=tmp_path)
    asked_for = len(encoder.calls)
    assert asked_for > 1
    again = nearest.Nearest(encoder, "dot").score(made, progress=False, folder=tmp_path)
    assert len(encoder.calls) == asked_for and again.equals(whole)
    nearest.Nearest(encoder, "cosine").score(made, progress=False, folder=tmp_path)
    assert len(encoder.calls) == 2 * asked_for, "another order is another score"
    assert metrics.of(whole).record()["questions"] == 4
