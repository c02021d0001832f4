"""How well a model solves its own pre-training task."""

import numpy as np
import torch
from tqdm.auto import tqdm

from ..inputs import batches as input_batches
from ..io.checkpoints import seeded
from ..metrics import rankings
from .trainer import micro_loss


@torch.no_grad()
def validate(model, sampler, size: int, micro_tokens: int, seed: int = 0) -> dict:
    """How well a model solves its own pre-training task on the first `size` examples of `sampler`.

    Every model reads what it reads in training: text with masks, and ELECTRA's discriminator text with its generator's
    samples in the places of the masks, which `seed` draws; a model without a masked-language-model head text without
    masks.

    Returns: accuracy, f1 (of class 1), majority (the share of the larger class); auc and rank_1 (`order_metrics`); loss
        of the objective, mlm_loss where there are masks, of ELECTRA detection_loss, and of a union the accuracy on the
        examples of each of its objectives, as accuracy_sdc.
    Paper: sentence_objectives, section 5.3 (pre-training task difficulty).
    Deviation: D-72; D-106, auc and rank_1.
    """
    masks = getattr(model, "generator", getattr(model, "mlm", True)) is not None
    batches = input_batches.PretrainingBatches(
        lambda epoch: sampler, 1, 1, micro_tokens, seed, **({} if masks else {"mlm_share": 0})
    )
    rows, labels, logits, members, parts, counts = [], [], [], [], [], []
    training, device = model.training, next(model.parameters()).device
    model.eval()
    with seeded(seed, [device] if device.type == "cuda" else []):
        for numbers in tqdm(np.array_split(np.arange(size), -(-size // 512)), desc="validation", unit=" batches"):
            batch = batches.made_of([(0, numbers)])
            for micro in batch["micro"]:
                micro = {name: tensor.to(device) for name, tensor in micro.items()}
                outputs = model(micro)
                parts.append(micro_loss(outputs, micro, {"masked": 1, "examples": 1, "tokens": 1})[1].tolist())
                rows.append(numbers[micro["rows"].cpu().numpy()])
                labels.append(micro["labels"].cpu())
                logits.append(outputs[0].float().cpu())
                if "members" in micro:
                    members.append(micro["members"].cpu())
            counts.append([batch["masked"], batch["labels"], batch["tokens"]])
    model.train(training)
    means = (sum(map(np.array, parts)) / np.maximum(np.sum(counts, 0), 1)[: len(parts[0])]).tolist()
    order = np.concatenate(rows).argsort()
    labels, logits = torch.cat(labels)[order].numpy(), torch.cat(logits)[order].numpy()
    predictions = logits.argmax(-1)
    found = rankings.classification(labels.ravel(), predictions.ravel()) | order_metrics(
        sampler, labels, logits[..., 1] - logits[..., 0]
    )
    for number, member in enumerate(sampler.members if members else []):
        if (its := torch.cat(members)[order].numpy() == number).any():
            found[f"accuracy_{member.rule.__name__}"] = float((labels == predictions)[its].mean())
    return (
        {**found, "loss": means[1]}
        | ({"mlm_loss": means[0]} if masks else {})
        | dict(zip(["detection_loss"], means[2:]))
    )


def order_metrics(sampler, labels: np.ndarray, scores: np.ndarray) -> dict:
    """What the order of examples says of a model, whatever its threshold; nothing of fewer examples than a group has or of positives alone.

    A group is the examples of one anchor, of mspp one example with its k candidates; examples of a group that is not
    whole are left out.
    Returns: auc over examples; rank_1, the share of groups whose best score is a positive's (at a tie a negative's),
        and rank_1_chance, that of a random order. The AUC of a random order is 0.5.
    Shapes: labels, scores (N,), of mspp (N, k)
    """
    each = labels.shape[1] if labels.ndim == 2 else 1 + sampler.negatives
    labels, scores, whole = labels.ravel(), scores.ravel(), labels.size // each * each
    if not whole or labels.all():
        return {}
    ranked = rankings.ranking(np.arange(whole) // each, labels[:whole], scores[:whole])
    return {"auc": rankings.auc(labels, scores), "rank_1": ranked.p_at_1, "rank_1_chance": float(labels[:whole].mean())}
