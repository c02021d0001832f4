"""The same scores, measured by trec_eval and torchmetrics: the notebooks show their values next to ours."""

import contextlib

import numpy as np
import pandas as pd


def all_of(scores: pd.DataFrame) -> dict[str, dict]:
    """P@1, MAP and MRR of a table of scores by trec_eval (where pytrec_eval is installed) and by torchmetrics.

    Both break ties by their own rules, so their values may differ from ours where `tied_questions` is not 0.
    """
    values = {"torchmetrics": by_torchmetrics(scores)}
    with contextlib.suppress(ImportError):
        values["trec_eval"] = by_trec_eval(scores)
    return values


def by_trec_eval(scores: pd.DataFrame) -> dict:
    """trec_eval's P_1, map and recip_rank, averaged over questions."""
    import pytrec_eval

    labels, run = {}, {}
    for question, rows in scores.groupby("question_id"):
        labels[question] = dict(zip(rows["candidate_id"], map(int, rows["label"])))
        run[question] = dict(zip(rows["candidate_id"], map(float, rows["score"])))
    evaluator = pytrec_eval.RelevanceEvaluator(labels, {"P_1", "map", "recip_rank"})
    means = pd.DataFrame(evaluator.evaluate(run)).T.mean()
    return {"p@1": means["P_1"], "map": means["map"], "mrr": means["recip_rank"]}


def by_torchmetrics(scores: pd.DataFrame) -> dict:
    """torchmetrics' retrieval metrics.

    Since 1.7.4 torchmetrics drops scores <= 0. So it gets ranks in (0, 1], which keep the order and the ties.
    """
    import torch
    from torchmetrics import retrieval

    _, ranks = np.unique(scores["score"].to_numpy(), return_inverse=True)
    positive = torch.from_numpy((ranks + 1) / (ranks.max() + 1))
    target = torch.from_numpy(scores["label"].to_numpy().astype(np.int64))
    indexes = torch.from_numpy(pd.factorize(scores["question_id"])[0].astype(np.int64))
    p_at_1 = retrieval.RetrievalPrecision(top_k=1)
    metrics = {"p@1": p_at_1, "map": retrieval.RetrievalMAP(), "mrr": retrieval.RetrievalMRR()}
    return {name: float(metric(positive, target, indexes=indexes)) for name, metric in metrics.items()}
