"""How a model is run where nothing is learnt."""

import contextlib
from collections.abc import Iterator
from functools import partial

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

BERT_LIKE = ("bert", "camembert", "electra", "roberta", "xlm-roberta")  # the same layers under the same names


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
        with torch.no_grad(), half:
            yield device
    finally:
        model.train(training)


@contextlib.contextmanager
def first_tokens_alone(model: nn.Module) -> Iterator[None]:
    """In here, the last layer of a pair model is computed for first tokens alone, which are all that its head reads.

    Scores stay the same up to rounding. Per token, 2 H^2 of the layer's 12 H^2 multiplications remain: a model of 6 layers does 14 % less.
    Models with another head or other layers are not changed. For padded inputs, without gradients.
    """
    backbone = model.backbone
    fits = backbone.config.model_type in BERT_LIKE and backbone.config._attn_implementation in ("sdpa", "eager")
    if model.HEADS[0] != "pair" or not fits:
        yield
        return
    layer = backbone.encoder.layer[-1]
    # The layer stays the same module: weights keep their names, also where two score at once.
    layer.forward = partial(_first_token, layer)
    try:
        yield
    finally:
        vars(layer).pop("forward", None)


def _first_token(layer, hidden, attention_mask=None, *_, **__):
    """The output of a layer for the first token of each input. Shapes: (B, T, H), mask (B, 1, T or 1, T) -> (B, 1, H)"""
    attention, first = layer.attention, hidden[:, :1]
    own = attention.self
    projected = own.query(first), own.key(hidden), own.value(hidden)
    heads = [states.unflatten(-1, (-1, own.attention_head_size)).transpose(1, 2) for states in projected]
    mask = None if attention_mask is None else attention_mask[:, :, :1]
    attended = scaled_dot_product_attention(*heads, attn_mask=mask, scale=own.scaling)
    return layer.feed_forward_chunk(attention.output(attended.transpose(1, 2).flatten(2), first))
