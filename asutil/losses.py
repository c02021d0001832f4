"""The papers' losses: plain functions of logits and targets, summed in float32 at least.

Every mean is over the whole optimiser batch: a micro-batch passes that batch's count as `total`, and the losses of the
micro-batches then sum to the loss, and their gradients to the gradient, of the whole batch in one piece.
"""

import torch
from torch.nn.functional import cross_entropy

IGNORED = -100


def mlm(logits: torch.Tensor, targets: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """Masked language modelling: cross-entropy at the masked positions.

    L = -(1 / total) sum_i log softmax(logits_i)[targets_i]
    Paper: sentence_objectives, section 5.2.
    Shapes: logits (M, V), targets (M,) -> scalar; M may be 0, which gives 0 with a gradient of zeros.
    Args:
        total: masked tokens in the whole optimiser batch; M where it is left out.

    Example:
        >>> mlm(torch.zeros(3, 10), torch.tensor([1, 2, 3])).item() == float(torch.tensor(10.0).log())
        True
    """
    return pair(logits, targets, total)


def pair(logits: torch.Tensor, labels: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """Cross-entropy of the sentence-level objectives and of fine-tuning; a label of -100 is ignored.

    L = -(1 / total) sum_i log softmax(logits_i)[labels_i],  labels_i != -100
    Paper: sentence_objectives, sections 3 and 4.
    Shapes: logits (..., C), labels (...) -> scalar.
    Args:
        total: labels that count in the whole optimiser batch; those of this call where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> pair(torch.tensor([[0.0, 0.0], [5.0, -5.0]]), torch.tensor([1, -100])).item()
        0.693...
    """
    if logits.shape[:-1] != labels.shape:
        raise ValueError(f"logits (..., C) and labels (...) expected, got {tuple(logits.shape)} and {tuple(labels.shape)}")
    labels = labels.reshape(-1)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, logits.shape[-1])
    summed = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
    return summed / max(int((labels != IGNORED).sum()) if total is None else total, 1)
