"""Fact verification: a claim and its pieces of evidence in, one of three verdicts out, by a joint model or by a pairwise one.

The heads ie_1 and ae_1 read the claim and all its evidence in one input; pair_max and pair_weighted read each (claim, evidence) pair by
itself and put the pairs together above the backbone.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from ..data.claims import LABELS, Claim
from ..inputs.batches import TOKENS_ON_CPU, TOKENS_ON_GPU
from ..inputs.slots import Pairs, Slots
from ..metrics.verdicts import CLASSES
from ..models.heads import POOLED
from ..models.joint import JointEncoder

UNKNOWN = -1  # the label of a claim in a blind test set
WINDOW = 1 << 12  # claims that are ordered by length together: memory is bounded by it


def inputs_of(model: JointEncoder, claims: Sequence[Claim]) -> Slots:
    """Claims as the model reads them."""
    kind = Pairs if model.HEADS[0] in POOLED else Slots
    return kind(model.tokenizer, claims, model.shape["k"])


# ------------------------------------------------------------------ verdicts


@torch.no_grad()
def predict(model: JointEncoder, claims: Sequence[Claim], max_tokens: int, progress: bool = True) -> pd.DataFrame:
    """The log-probability of each verdict for every claim, in the order given.

    Args:
        max_tokens: of an input, as in training.
    Returns: DataFrame with claim_id, label (int8, -1 where it is not known), and float32 supports, not_enough_info, refutes.
    Raises: ValueError where there are no claims, or for a model of another kind.
    """
    if not claims:
        raise ValueError("expected claims to verify, got none")
    if len(LABELS) != (getattr(model.backbone.config, "joint", None) or {}).get("classes"):
        raise ValueError(
            f"expected a model of {len(LABELS)} verdicts, as verify_claims trains one, got one with the head {model.HEADS[0]}"
        )
    device, training = next(model.parameters()).device, model.training
    found = torch.empty(len(claims), len(LABELS), device=device)
    model.eval()
    with tqdm(total=len(claims), unit=" claims", disable=not progress, dynamic_ncols=True) as bar:
        for start in range(0, len(claims), WINDOW):
            _window(model, claims[start : start + WINDOW], max_tokens, found[start : start + WINDOW], bar)
    model.train(training)
    labels = np.array([UNKNOWN if claim.label is None else claim.label for claim in claims], np.int8)
    return pd.DataFrame(
        {"claim_id": [claim.id for claim in claims], "label": labels} | dict(zip(CLASSES, found.cpu().numpy().T))
    )


def _window(model, claims, max_tokens: int, found: torch.Tensor, bar) -> None:
    read, numbers = inputs_of(model, claims), np.arange(len(claims))
    budget = TOKENS_ON_GPU if found.device.type == "cuda" else TOKENS_ON_CPU
    # Ordered by length, so the claims come in another order: their numbers go along in the place of the labels.
    for micro in read.laid_out(read.join(numbers, max_tokens), numbers, numbers, budget):
        micro = {name: tensor.to(found.device, non_blocking=True) for name, tensor in micro.items()}
        rows = micro.pop("labels")
        with torch.autocast(found.device.type, torch.bfloat16, enabled=found.device.type == "cuda"):
            found[rows] = model(micro)[0].float().log_softmax(-1)
        bar.update(len(rows))


# ------------------------------------------------------------------ claims and labels


def measurable(sides: dict) -> list[str]:
    """Of dev and test those whose labels are known; the last of them is the side that is reported."""
    return [side for side in ("dev", "test") if sides[side] and sides[side][0].label is not None]


def counted(sides: dict) -> pd.DataFrame:
    """Claims a label, claims and pieces of evidence, kept and dropped, a line a side."""
    rows = {}
    for side, claims in sides.items():
        labels, report = Counter(claim.label for claim in claims), claims.report
        rows[side] = {name: labels[number] for number, name in enumerate(LABELS)} | {"label not known": labels[None]}
        rows[side] |= {
            f"{what}, {state}": report[state][what] for what in ("claims", "evidence") for state in ("read", "kept")
        }
        rows[side]["dropped"] = "; ".join(report["dropped"])
    return pd.DataFrame(rows).T
