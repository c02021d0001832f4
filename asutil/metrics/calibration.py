"""Scores as probabilities, how far these are from the truth, and when a question is answered."""

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from scipy import special

from .rankings import checked_labels, checked_scores

BINS = 15  # of equal width, as in Guo et al. 2017


@dataclass(frozen=True)
class Calibration:
    """P(label 1) = 1 / (1 + exp(-(s / T + b))); a question is answered if its best candidate has the threshold or more.

    T, the temperature, is above 0: the order of the scores stays.
    """

    temperature: float
    bias: float
    threshold: float

    def probabilities(self, scores) -> np.ndarray:
        """The probability that each candidate answers, in float64."""
        return special.expit(checked_scores(scores).astype(np.float64) / self.temperature + self.bias)

    def record(self) -> dict:
        return asdict(self)


def fit(scores: pd.DataFrame) -> Calibration | None:
    """Temperature and bias with the highest likelihood of the labels of dev, then the threshold with the highest F1 of answers.

    Platt (1999), "Probabilistic outputs for support vector machines": the label of n_1 right candidates counts as
    (n_1 + 1) / (n_1 + 2) and that of n_0 wrong ones as 1 / (n_0 + 2), so that scores without a mistake have a fit, too.
    With b = 0 it would be the temperature of Guo et al. (2017), "On calibration of modern neural networks", which a
    cosine or BM25 cannot do with: their zero is not where both labels are equally likely.
    Args:
        scores: question_id, label, score of a split that nothing is tested on.
    Returns: None where a higher score does not mean an answer more often, or all labels are equal: no temperature above 0 fits.
    Raises: ValueError naming the row of a label that is not 0 or 1, or of a score that is not finite.
    """
    from sklearn.linear_model import LogisticRegression

    right, values = checked_labels(scores["label"]), checked_scores(scores["score"]).astype(np.float64)
    if right.all() or not right.any() or values.std() == 0:
        return None
    targets = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))
    z = (values - values.mean()) / values.std()  # so that the optimiser sees one scale
    labels, weights = np.repeat([1, 0], len(z)), np.concatenate([targets, 1 - targets])
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(np.tile(z, 2)[:, None], labels, weights)
    slope = model.coef_.item() / values.std()
    if slope <= 0:
        return None
    fitted = Calibration(1 / slope, model.intercept_.item() - slope * values.mean(), 0.0)
    curve = answering(scores.assign(score=fitted.probabilities(values), order=values))
    return Calibration(fitted.temperature, fitted.bias, float(curve.threshold[curve.f1.idxmax()]))


def reliability(labels, probabilities, bins: int = BINS) -> pd.DataFrame:
    """Of the candidates in each bin of probability: their number, mean probability, and the share that answers.

    Bin i holds (i / bins, (i + 1) / bins], the first one also 0; empty bins are left out.
    """
    right, values = checked_labels(labels), np.asarray(probabilities, np.float64)
    if len(outside := np.flatnonzero(~((values >= 0) & (values <= 1)))):
        raise ValueError(f"row {outside[0]}: a probability is from 0 to 1, got {values[outside[0]]}")
    number = np.clip(np.ceil(values * bins) - 1, 0, bins - 1)
    table = pd.DataFrame({"probability": values, "right": right}).groupby(number.astype(int))
    return table.agg(candidates=("right", "size"), probability=("probability", "mean"), right=("right", "mean"))


def expected_error(labels, probabilities, bins: int = BINS) -> float:
    """Expected calibration error: sum over bins of n_i / n |share that answers - mean probability|, from 0 to 1.

    Guo et al. (2017), section 2, of the probability that a candidate answers.
    """
    table = reliability(labels, probabilities, bins)
    return float(np.average((table.right - table.probability).abs(), weights=table.candidates))


def answering(scores: pd.DataFrame) -> pd.DataFrame:
    """Precision and answer rate at every threshold on the best candidate of a question: the lowest threshold first.

    A question whose best score is the threshold or more is answered with that candidate; among equals a wrong one.
    precision = right answers / answers,  rate = answers / questions,  recall = right answers / questions with a right
    candidate,  F1 of both: how Yang et al. (2015), the paper of WikiQA, measure answer triggering.
    Args:
        scores: question_id, label, score; where score is a probability, which is 1 for all high scores, order: the score behind it.
    Returns: threshold, precision, rate, recall, f1; one row for each different best score.
    """
    table = pd.DataFrame({"question": scores["question_id"], "right": checked_labels(scores["label"])})
    table["score"] = checked_scores(scores["score"])
    table["order"] = checked_scores(scores["order"]) if "order" in scores else table["score"]
    ordered = table.sort_values(["order", "right"], ascending=[False, True], kind="stable")
    best = ordered.groupby("question", sort=False).first()
    answerable = table.groupby("question").right.any().sum()
    at = best.groupby("score").right.agg(["size", "sum"]).sort_index(ascending=False).cumsum()[::-1]
    recall = at["sum"] / max(answerable, 1)
    f1 = 2 * at["sum"] / (at["size"] + answerable)
    columns = {"precision": at["sum"] / at["size"], "rate": at["size"] / len(best), "recall": recall, "f1": f1}
    return pd.DataFrame(columns).rename_axis("threshold").reset_index()


def measured(scores: pd.DataFrame, calibration: Calibration) -> dict:
    """Of one split: expected calibration error of 1 / (1 + exp(-s)) and of the fitted probability; answers at the threshold."""
    probabilities = calibration.probabilities(scores["score"])
    curve = answering(scores.assign(score=probabilities, order=scores["score"]))
    answered = curve[curve.threshold >= calibration.threshold]
    precision, rate = (float(answered[name].iloc[0]) if len(answered) else None for name in ("precision", "rate"))
    return {
        "error_before": expected_error(scores["label"], special.expit(scores["score"].astype(np.float64))),
        "error": expected_error(scores["label"], probabilities),
        "precision": precision,
        "answer_rate": rate or 0.0,
    }
