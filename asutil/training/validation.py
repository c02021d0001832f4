"""How well a model solves its own pre-training task."""

import numpy as np
import torch
from tqdm.auto import tqdm

from ..inputs import batches as input_batches
from ..inputs.masking import SHARE
from ..io.checkpoints import seeded
from ..metrics import rankings
from ..models.scoring import evaluating, moved

WINDOW = 512  # examples that are ordered by length together
ALONE = {"masked": 1, "examples": 1, "tokens": 1}  # counts with which a micro-batch's losses are sums


def validate(model, sampler, size: int, micro_tokens: int, seed: int = 0, mlm_share: float = SHARE) -> dict:
    """How well a model solves its own pre-training task on the first `size` examples of `sampler`.

    Every model reads what it reads in training. A share `mlm_share` of the tokens is masked, drawn by `seed`. ELECTRA's discriminator
    reads its generator's samples in place of the masks. A model that learnt without masks reads text without them.

    Returns: accuracy, f1 (of class 1), majority (the share of the larger class); auc and rank_1 (`order_metrics`); loss of the objective;
        mlm_loss where a head predicts what the masks hide; detection_loss of ELECTRA; for a union the accuracy on the examples of each of
        its objectives, such as accuracy_sdc.
    Paper: sentence_objectives, section 5.3 (pre-training task difficulty).
    Deviation: D-72; D-106, auc and rank_1.
    """
    share = mlm_share if model.reads_masks else 0
    batches = input_batches.PretrainingBatches(lambda epoch: sampler, 1, 1, micro_tokens, seed, share)
    labels, logits, members, losses = _outputs(model, batches, size, seed)
    predictions = logits.argmax(-1)
    measures = rankings.classification(labels.ravel(), predictions.ravel())
    measures |= order_metrics(sampler, labels, logits[..., 1] - logits[..., 0])
    for number, member in enumerate(sampler.members if members is not None else []):
        if (own := members == number).any():
            measures[f"accuracy_{member.objective}"] = float((labels == predictions)[own].mean())
    mlm_loss, measures["loss"], *detection_loss = losses
    if model.masked is not None:
        measures["mlm_loss"] = mlm_loss
    if detection_loss:
        [measures["detection_loss"]] = detection_loss
    return measures


def _outputs(model, batches, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, list[float]]:
    """Labels, logits, members of the first examples in their order, and the mean of each part of the loss."""
    rows, labels, logits, members, parts, counts = [], [], [], [], [], []
    with evaluating(model, autocast=False) as device, seeded(seed, [device] if device.type == "cuda" else []):
        windows = np.array_split(np.arange(size), -(-size // WINDOW))
        for numbers in tqdm(windows, desc="validation", unit=" batches"):
            batch = batches.made_of([(0, numbers)])
            for micro in batch["micro"]:
                micro = moved(micro, device)
                outputs = model(micro)
                parts.append(model.losses(outputs, micro, ALONE).tolist())
                rows.append(numbers[micro["rows"].cpu().numpy()])
                labels.append(micro["labels"].cpu())
                logits.append(outputs[0].float().cpu())
                if "members" in micro:
                    members.append(micro["members"].cpu())
            counts.append([batch["masked"], batch["labels"], batch["tokens"]])
    order = np.concatenate(rows).argsort()
    losses = sum(map(np.array, parts)) / np.maximum(np.sum(counts, 0), 1)[: len(parts[0])]
    members = torch.cat(members)[order].numpy() if members else None
    return torch.cat(labels)[order].numpy(), torch.cat(logits)[order].numpy(), members, losses.tolist()


def order_metrics(sampler, labels: np.ndarray, scores: np.ndarray) -> dict:
    """AUC and rank-1 accuracy: how well scores order examples, whatever the threshold.

    A group is the examples of one anchor, for mspp one example with its k candidates; incomplete groups are left out.
    Returns: auc over examples; rank_1, the share of groups whose best score is a positive's (at a tie a negative's), and rank_1_chance,
        that of a random order. The AUC of a random order is 0.5. Nothing is returned for fewer examples than a group has, or for positives
        alone.
    Shapes: labels, scores (N,), of mspp (N, k)
    """
    group_size = labels.shape[1] if labels.ndim == 2 else 1 + sampler.negatives
    labels, scores = labels.ravel(), scores.ravel()
    whole = len(labels) // group_size * group_size
    if not whole or labels.all():
        return {}
    groups = np.arange(whole) // group_size
    rank_1 = rankings.ranking(groups, labels[:whole], scores[:whole]).p_at_1
    return {"auc": rankings.auc(labels, scores), "rank_1": rank_1, "rank_1_chance": float(labels[:whole].mean())}
