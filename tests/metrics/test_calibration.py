"""Probabilities against torchmetrics and a plain optimiser, answers against a slow loop."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, special
from torchmetrics.classification import BinaryCalibrationError

from asutil.metrics import calibration
from asutil.metrics.calibration import Calibration


def made_up(seed: int, slope: float = 2.0, bias: float = -1.0, questions: int = 200) -> pd.DataFrame:
    """Candidates whose labels are drawn from a known probability of their scores."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, questions)
    scores = rng.normal(0, 1.5, sizes.sum()).astype(np.float32)
    labels = (rng.random(len(scores)) < special.expit(slope * scores + bias)).astype(np.int8)
    return pd.DataFrame({"question_id": np.repeat([f"q{n}" for n in range(questions)], sizes), "label": labels, "score": scores})


def test_the_fit_has_the_highest_likelihood():
    scores = made_up(0)
    right, s = scores.label.to_numpy(bool), scores.score.to_numpy(float)
    targets = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))

    def loss(x):
        z = s * x[0] + x[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    slope, bias = optimize.minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).x
    fitted = calibration.fit(scores)
    assert (1 / fitted.temperature, fitted.bias) == pytest.approx((slope, bias), abs=1e-4)
    assert (slope, bias) == pytest.approx((2, -1), abs=0.3)  # what the labels were drawn from


def test_probabilities_that_were_wrong_become_right():
    dev, test = made_up(1, slope=0.3), made_up(2, slope=0.3, questions=2000)
    fitted = calibration.fit(dev)
    measured = calibration.measured(test, fitted)
    assert measured["error"] < 0.03 < 0.1 < measured["error_before"]


def test_the_order_stays_and_shifted_scores_have_the_same_probabilities():
    scores = made_up(3)
    fitted = calibration.fit(scores)
    shifted = scores.assign(score=scores.score.astype(float) * 1000 + 50_000)  # of another ranker, such as BM25
    other = calibration.fit(shifted)
    probabilities = fitted.probabilities(scores.score)
    assert (np.argsort(probabilities, kind="stable") == np.argsort(scores.score.to_numpy(), kind="stable")).all()
    assert other.probabilities(shifted.score) == pytest.approx(probabilities, abs=1e-5)
    assert other.threshold == pytest.approx(fitted.threshold, abs=1e-5)


def test_scores_without_a_mistake_have_a_fit():
    scores = pd.DataFrame({"question_id": [0, 0, 1, 1], "label": [1, 0, 1, 0], "score": [3.0, -3.0, 2.0, -1.0]})
    fitted = calibration.fit(scores)
    assert np.isfinite([fitted.temperature, fitted.bias]).all() and fitted.temperature > 0


@pytest.mark.parametrize(
    ("labels", "scores"), [([1, 0, 1, 0], [0.0, 1.0, 0.0, 1.0]), ([1, 0, 1, 0], [1.0] * 4), ([1, 1, 1, 1], [0.0, 1.0, 2.0, 3.0])]
)
def test_what_has_no_fit(labels, scores):
    assert calibration.fit(pd.DataFrame({"question_id": [0, 0, 1, 1], "label": labels, "score": scores})) is None


@pytest.mark.parametrize("bins", [5, 15])
def test_the_error_equals_torchmetrics(bins):
    rng = np.random.default_rng(4)
    probabilities, labels = rng.random(3000) ** 2, rng.integers(0, 2, 3000)
    theirs = BinaryCalibrationError(n_bins=bins, norm="l1")(torch.tensor(probabilities), torch.tensor(labels))
    assert calibration.expected_error(labels, probabilities, bins) == pytest.approx(theirs.item(), abs=1e-6)


def test_a_probability_outside_is_named():
    with pytest.raises(ValueError, match="row 1: a probability is from 0 to 1, got 1.5"):
        calibration.expected_error([0, 1], [0.5, 1.5])


def test_answers_against_a_slow_loop():
    scores = made_up(5, questions=60)
    scores["score"] = scores.score.round(1)  # ties, within questions and between them
    curve = calibration.answering(scores).set_index("threshold")
    groups = [group for _, group in scores.groupby("question_id")]
    assert len(curve) == len({group.score.max() for group in groups})
    for threshold, row in curve.iterrows():
        answers = [group for group in groups if group.score.max() >= threshold]
        right = sum(group.label[group.score == group.score.max()].min() for group in answers)
        answerable = sum(group.label.max() for group in groups)
        precision, recall = right / len(answers), right / answerable
        assert row.to_dict() == pytest.approx(
            {"precision": precision, "rate": len(answers) / len(groups), "recall": recall, "f1": 2 * right / (len(answers) + answerable)}
        )


def test_the_threshold_has_the_best_f1_on_dev_and_is_used_on_test():
    dev, test = made_up(6), made_up(7)
    fitted = calibration.fit(dev)
    curve = calibration.answering(dev.assign(score=fitted.probabilities(dev.score)))
    assert fitted.threshold == curve.threshold[curve.f1.argmax()]
    best = test.assign(score=fitted.probabilities(test.score)).sort_values("score").groupby("question_id").last()
    answered = best[best.score >= fitted.threshold]
    measured = calibration.measured(test, fitted)
    assert measured["answer_rate"] == pytest.approx(len(answered) / len(best))
    assert measured["precision"] == pytest.approx(answered.label.mean())


def test_certain_candidates_keep_their_order():
    """Both probabilities are 1 in float64, and the right candidate has the higher score."""
    scores = pd.DataFrame({"question_id": ["q", "q"], "label": [1, 0], "score": np.float32([400, 300])})
    fitted = Calibration(1.0, 0.0, 0.5)
    assert fitted.probabilities(scores.score).tolist() == [1, 1] and calibration.measured(scores, fitted)["precision"] == 1


def test_a_threshold_that_no_question_reaches():
    measured = calibration.measured(made_up(8), Calibration(1.0, -50.0, 0.9))
    assert measured["precision"] is None and measured["answer_rate"] == 0
