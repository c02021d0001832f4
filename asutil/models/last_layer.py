"""The last layer only for the tokens that a head reads: in scoring the first ones, in training the masked ones, too.

The layers before it need all tokens. The last one needs all of them only as keys and values.
"""

import contextlib
import threading
from collections.abc import Iterator
from functools import partial

from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from ..io import private
from .heads import EVIDENCE

BERT_LIKE = ("bert", "camembert", "electra", "roberta", "xlm-roberta")  # the same layers under the same names
_batch = threading.local()  # what a thread's model reads now


# ------------------------------------------------------------------ training


@contextlib.contextmanager
def read_tokens_alone(model: nn.Module) -> Iterator[None]:
    """In here, behind its attention the last layer computes only the tokens that the heads read; for packed micro-batches.

    Outputs at these tokens stay the same up to rounding, and gradients, too; the other outputs are zeros. Per other token, 3 H^2 of the
    layer's 12 H^2 multiplications remain: 6 layers do 12 % less, or 10 % where masked tokens are learnt, too. Backbones with other layers
    are not changed.
    """
    backbones = [model.backbone] if hasattr(model, "backbone") else []
    if hasattr(model, "generator"):
        backbones.append(model.generator.base_model)
    layers = [backbone.encoder.layer[-1] for backbone in backbones if backbone.config.model_type in BERT_LIKE]
    for layer in layers:
        layer.forward = layer.in_training = partial(_read_tokens, layer)
    try:
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)
            vars(layer).pop("in_training", None)


def _read_tokens(layer, hidden, attention_mask=None, *_, reads=None, **options):
    """The output of a layer at the flat positions `reads`, and zeros elsewhere; without `reads` at all positions.

    Shapes: (B, T, H), reads (R,) into B*T -> (B, T, H)
    """
    attended, _ = layer.attention.self(hidden, attention_mask, **options)
    if reads is None:
        return layer.feed_forward_chunk(layer.attention.output(attended, hidden))
    attended, own = (states.flatten(0, 1)[reads][None] for states in (attended, hidden))
    outputs = layer.feed_forward_chunk(layer.attention.output(attended, own))[0]
    return outputs.new_zeros(hidden.shape).flatten(0, 1).index_copy(0, reads, outputs).view(hidden.shape)


# ------------------------------------------------------------------ scoring


@contextlib.contextmanager
def first_tokens_alone(model: nn.Module) -> Iterator[None]:
    """In here, the last layer is computed only for the tokens that the head reads: the first of a pair, or of each slot of a joint input.

    Scores stay the same up to rounding. Per token, 2 H^2 of the layer's 12 H^2 multiplications remain: a model of 6 layers does 14 % less.
    Models with another head or other layers are not changed. For padded inputs, without gradients.
    """
    backbone = model.backbone
    fits = backbone.config.model_type in BERT_LIKE and private.attention(backbone.config) in ("sdpa", "eager")
    if not (fits and (model.HEADS[0] == "pair" or _reads_first_of_slots(model))):
        yield
        return
    layer = backbone.encoder.layer[-1]
    hook = model.register_forward_pre_hook(lambda _, given: vars(_batch).update(firsts=given[0].get("firsts")))
    # The layer stays the same module: weights keep their names, also where two score at once.
    layer.forward = partial(_first_tokens, layer)
    try:
        yield
    finally:
        vars(layer).pop("forward", None)
        if "in_training" in vars(layer):  # an evaluation between two steps: a resumed run has to draw the same dropout
            layer.forward = layer.in_training
        hook.remove()


def _reads_first_of_slots(model: nn.Module) -> bool:
    return model.HEADS[0] in EVIDENCE and model.shape["pooling"] == "first"


def _first_tokens(layer, hidden, attention_mask=None, *_, **__):
    """The output of a layer for the first token of each input, or of each slot; of slots at their places, with zeros between them.

    Shapes: (B, T, H), mask (B, 1, T or 1, T), firsts (B, S) or None -> (B, 1, H), or (B, T, H) with firsts
    """
    firsts = _batch.firsts
    if firsts is None:
        return _at(layer, hidden, hidden[:, :1], attention_mask)
    firsts = firsts.where(firsts >= 0, firsts[:, :1])  # an empty slot takes the question's, which is never empty
    found = _at(layer, hidden, hidden.flatten(0, 1)[firsts], attention_mask)
    return (
        found.new_zeros(hidden.shape)
        .flatten(0, 1)
        .index_copy(0, firsts.flatten(), found.flatten(0, 1))
        .view(hidden.shape)
    )


def _at(layer, hidden, chosen, attention_mask):
    """The output of a layer for some of its inputs. Shapes: (B, T, H), chosen (B, S, H) -> (B, S, H)"""
    attention = layer.attention
    own = attention.self
    projected = own.query(chosen), own.key(hidden), own.value(hidden)
    heads = [states.unflatten(-1, (-1, own.attention_head_size)).transpose(1, 2) for states in projected]
    mask = None if attention_mask is None else attention_mask[:, :, :1]
    attended = scaled_dot_product_attention(*heads, attn_mask=mask, scale=own.scaling)
    return layer.feed_forward_chunk(attention.output(attended.transpose(1, 2).flatten(2), chosen))
