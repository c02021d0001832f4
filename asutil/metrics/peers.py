"""The same scores, measured by trec_eval and torchmetrics: the notebooks show their values next to ours."""

import contextlib

import numpy as np
import pandas as pd

from .registry import measures


def all_of(scores: pd.DataFrame) -> dict[str, dict]:
    """The measures of a table of scores by trec_eval (where pytrec_eval is installed) and by torchmetrics.

    Both break ties by their own rules, so their values may differ from ours where `tied_questions` is not 0.
    """
    values = {"torchmetrics": by_torchmetrics(scores)}
    with contextlib.suppress(ImportError):
        values["trec_eval"] = by_trec_eval(scores)
    return values


def by_trec_eval(scores: pd.DataFrame) -> dict:
    """trec_eval's values of the measures that it has, averaged over questions."""
    import pytrec_eval

    labels, run = {}, {}
    for question, rows in scores.groupby("question_id"):
        labels[question] = dict(zip(rows["candidate_id"], map(int, rows["label"])))
        run[question] = dict(zip(rows["candidate_id"], map(float, rows["score"])))
    names = {measure.key: measure.trec_eval for measure in measures("question") if measure.trec_eval}
    evaluator = pytrec_eval.RelevanceEvaluator(labels, set(names.values()))
    means = pd.DataFrame(evaluator.evaluate(run)).T.mean()
    return {key: means[name] for key, name in names.items()}


def torchmetrics_classes() -> dict:
    """torchmetrics' retrieval metrics by the keys of the measures that it has."""
    from torchmetrics import retrieval

    known = {measure.key: measure.torchmetrics for measure in measures("question") if measure.torchmetrics}
    return {key: getattr(retrieval, name)(top_k=top_k) for key, (name, top_k) in known.items()}


def by_torchmetrics(scores: pd.DataFrame) -> dict:
    """torchmetrics' values of the measures that it has.

    Since 1.7.4 torchmetrics drops scores <= 0. So it gets ranks in (0, 1], which keep the order and the ties.
    """
    import torch

    _, ranks = np.unique(scores["score"].to_numpy(), return_inverse=True)
    positive = torch.from_numpy((ranks + 1) / (ranks.max() + 1))
    target = torch.from_numpy(scores["label"].to_numpy().astype(np.int64))
    indexes = torch.from_numpy(pd.factorize(scores["question_id"])[0].astype(np.int64))
    return {key: float(metric(positive, target, indexes=indexes)) for key, metric in torchmetrics_classes().items()}
