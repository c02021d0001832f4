"""Fact verification: a claim and its pieces of evidence in, one of three verdicts out.

A joint model (heads ie_1, ae_1) reads the claim and all its evidence in one input; a pairwise model (pair_max,
pair_weighted) reads each (claim, evidence) pair by itself, and combines the pairs above the backbone.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from ..data.claims import LABELS, Claim
from ..heads import POOLED
from ..inputs.batches import TOKENS_ON_CPU, TOKENS_ON_GPU
from ..inputs.slots import Pairs, Slots
from ..metrics.verdicts import CLASSES
from ..models import loading, scoring
from ..models.joint import JointEncoder

UNKNOWN = -1  # the label of a claim in a blind test set
WINDOW = 1 << 12  # claims that are ordered by length together: memory is bounded by it


def inputs_of(model: JointEncoder, claims: Sequence[Claim]) -> Slots:
    """Claims as the model reads them."""
    return (Pairs if model.HEADS[0] in POOLED else Slots)(model.tokenizer, claims, model.joint.k)


# ------------------------------------------------------------------ verdicts


def predict(model: JointEncoder, claims: Sequence[Claim], max_tokens: int, progress: bool = True) -> pd.DataFrame:
    """The log-probability of each verdict for every claim, in the order of the claims.

    Args:
        max_tokens: of an input, as in training.
    Returns: DataFrame with claim_id, label (int8, -1 where it is unknown), and float32 supports, not_enough_info,
        refutes.
    Raises: ValueError where there are no claims, or for a model of another kind.
    """
    if not claims:
        raise ValueError("expected claims to verify, got none")
    if model.joint is None or model.joint.classes != len(LABELS):
        expected = f"a model of {len(LABELS)} verdicts, as verify_claims trains one"
        raise ValueError(f"expected {expected}, got one with the head {model.HEADS[0]}")
    loading.check_length(model, max_tokens)
    bar = tqdm(total=len(claims), unit=" claims", disable=not progress, dynamic_ncols=True)
    with bar, scoring.evaluating(model) as device:
        scores = torch.empty(len(claims), len(LABELS), device=device)
        for start in range(0, len(claims), WINDOW):
            _window(model, claims[start : start + WINDOW], max_tokens, scores[start : start + WINDOW], bar)
    labels = np.array([UNKNOWN if claim.label is None else claim.label for claim in claims], np.int8)
    columns = {"claim_id": [claim.id for claim in claims], "label": labels}
    return pd.DataFrame(columns | dict(zip(CLASSES, scores.cpu().numpy().T)))


def _window(model, claims, max_tokens: int, scores: torch.Tensor, bar) -> None:
    """Fill in the scores of some claims."""
    inputs, numbers = inputs_of(model, claims), np.arange(len(claims))
    scoring.tell_cut(model, inputs.are_cut(max_tokens), max_tokens, inputs.UNIT)
    micro_tokens = TOKENS_ON_GPU if scores.device.type == "cuda" else TOKENS_ON_CPU
    # Ordered by length, so the claims come in another order: their numbers take the place of the labels.
    micro_batches = inputs.laid_out(inputs.join(numbers, max_tokens), numbers, numbers, micro_tokens)
    for micro in micro_batches:
        micro = scoring.moved(micro, scores.device)
        scores[micro["labels"]] = model(micro)[0].float().log_softmax(-1)
        bar.update(len(micro["labels"]))


# ------------------------------------------------------------------ claims and labels


def measurable(splits: dict) -> list[str]:
    """Those of dev and test whose labels are known; the last one is the split that is reported."""
    return [name for name in ("dev", "test") if splits[name] and splits[name][0].label is not None]


def counted(splits: dict) -> pd.DataFrame:
    """One row per split: claims of each label, claims and pieces of evidence read and kept, what was dropped."""
    rows = {}
    for name, claims in splits.items():
        labels, report = Counter(claim.label for claim in claims), claims.report
        row = {label: labels[number] for number, label in enumerate(LABELS)} | {"label not known": labels[None]}
        for what in ("claims", "evidence"):
            row |= {f"{what}, {state}": report[state][what] for state in ("read", "kept")}
        rows[name] = row | {"dropped": "; ".join(report["dropped"])}
    return pd.DataFrame(rows).T
