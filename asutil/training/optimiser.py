"""The optimiser of every training, and its learning rate."""

import re

import torch
from torch import nn

NOT_DECAYED = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


def learning_rate(step: int, steps: int, peak_lr: float, warmup_steps: int) -> float:
    """Linear warm-up to `peak_lr`, then linear decay to 0.

    Example:
        >>> [learning_rate(step, 6, 1.0, 2) for step in range(6)]
        [0.0, 0.5, 1.0, 0.75, 0.5, 0.25]
    """
    if step < warmup_steps:
        return peak_lr * (step / warmup_steps)
    return peak_lr * ((steps - step) / max(1, steps - warmup_steps))


def adamw(model: nn.Module, peak_lr: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW (.9, .999, 1e-8) with weight decay on all parameters but biases and norms."""
    norms = [name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)]
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            exempt = NOT_DECAYED.search(name.lower()) or name.rpartition(".")[0] in norms
            (others if exempt else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=peak_lr, betas=(0.9, 0.999), eps=1e-8, fused=True)
