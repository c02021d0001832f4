"""The papers' losses: plain functions of logits and targets, summed in float32 at least.

Every mean is over the whole optimiser batch: a micro-batch passes that batch's count as `total`, and the losses of the
micro-batches then sum to the loss, and their gradients to the gradient, of the whole batch in one piece.
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

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


def replaced_token(logits: torch.Tensor, replaced: torch.Tensor, mask: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """ELECTRA's token detection: binary cross-entropy over the real tokens, of "this token is not the original one".

    L = -(1 / total) sum_t r_t log s(logits_t) + (1 - r_t) log(1 - s(logits_t)),  mask_t != 0,  s(z) = 1 / (1 + exp(-z))
    Paper: sentence_objectives, section 5.2 and appendix B.
    Shapes: logits, replaced, mask (B, T), packed (1, N) -> scalar.
    Args:
        replaced: 1 where a token was replaced by another one, else 0.
        mask: 0 at padding, which counts for nothing, else 1.
        total: real tokens of the whole optimiser batch; those of this call where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> replaced_token(torch.tensor([[0.0, -9.0, 9.0]]), torch.tensor([[1, 0, 0]]), torch.tensor([[1, 1, 0]])).item() * 2
        0.693...
    """
    if not logits.shape == replaced.shape == mask.shape:
        shapes = ", ".join(str(tuple(given.shape)) for given in (logits, replaced, mask))
        raise ValueError(f"logits, replaced and mask of one shape expected, got {shapes}")
    logits, real = logits.to(torch.promote_types(logits.dtype, torch.float32)), mask.bool()
    losses = binary_cross_entropy_with_logits(logits.where(real, 0), replaced.to(logits.dtype), reduction="none")
    return losses.where(real, 0).sum() / max(int(real.sum()) if total is None else total, 1)


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
