"""How a model is run where nothing is learnt."""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from . import memory, products


@contextlib.contextmanager
def evaluating(model: nn.Module, autocast: bool = True) -> Iterator[torch.device]:
    """A model in evaluation mode, without gradients; afterwards it is in the mode that it was in.

    Args:
        autocast: on a GPU the backbone runs in bfloat16; heads are float32 by themselves.
    Yields: the model's device.

    Example:
        >>> model = nn.Dropout()
        >>> model.weight = nn.Parameter(torch.ones(1))
        >>> with evaluating(model) as device:
        ...     device.type, model.training
        ('cpu', False)
        >>> model.training
        True
    """
    training, device = model.training, next(model.parameters()).device
    half = torch.autocast(device.type, torch.bfloat16, enabled=autocast and device.type == "cuda")
    model.eval()
    try:
        with torch.no_grad(), half, memory.kept(), products.on(device, constant=True):
            yield device
    finally:
        model.train(training)
