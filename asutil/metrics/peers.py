"""The same scores, measured by other implementations: their values stand beside ours in the notebooks."""

import contextlib

import numpy as np
import pandas as pd


def all_of(scores: pd.DataFrame) -> dict[str, dict]:
    """P@1, MAP and MRR of a table of scores by trec_eval (where pytrec_eval is installed) and by torchmetrics.

    Both break ties by their own rules, so their values may differ from ours where `tied_questions` is not 0.
    """
    found = {"torchmetrics": by_torchmetrics(scores)}
    with contextlib.suppress(ImportError):
        found["trec_eval"] = by_trec_eval(scores)
    return found


def by_trec_eval(scores: pd.DataFrame) -> dict:
    """trec_eval's P_1, map and recip_rank, averaged over questions."""
    import pytrec_eval

    judged = {
        question: dict(zip(rows["candidate_id"], map(int, rows["label"])))
        for question, rows in scores.groupby("question_id")
    }
    ranked = {
        question: dict(zip(rows["candidate_id"], map(float, rows["score"])))
        for question, rows in scores.groupby("question_id")
    }
    values = pytrec_eval.RelevanceEvaluator(judged, {"P_1", "map", "recip_rank"}).evaluate(ranked)
    means = pd.DataFrame(values).T.mean()
    return {"p@1": means["P_1"], "map": means["map"], "mrr": means["recip_rank"]}


def by_torchmetrics(scores: pd.DataFrame) -> dict:
    """torchmetrics' retrieval metrics. It drops scores <= 0 (since 1.7.4), so it is given ranks in (0, 1], which keep order and ties."""
    import torch
    from torchmetrics import retrieval

    _, ranks = np.unique(scores["score"].to_numpy(), return_inverse=True)
    given = torch.from_numpy((ranks + 1) / (ranks.max() + 1))
    target = torch.from_numpy(scores["label"].to_numpy().astype(np.int64))
    indexes = torch.from_numpy(pd.factorize(scores["question_id"])[0].astype(np.int64))
    kinds = {
        "p@1": retrieval.RetrievalPrecision(top_k=1),
        "map": retrieval.RetrievalMAP(),
        "mrr": retrieval.RetrievalMRR(),
    }
    return {name: float(kind(given, target, indexes=indexes)) for name, kind in kinds.items()}
