"""The last layer in scoring: only for the tokens that a head reads, the first of a pair or of each slot of a joint input.

The layers before it need all tokens. The last one needs all of them only as keys and values.
"""

import contextlib
import threading
from collections.abc import Iterator
from functools import partial

from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from ..heads import EVIDENCE
from ..io import private

BERT_LIKE = ("bert", "camembert", "electra", "roberta", "xlm-roberta")  # the same layers under the same names
_batch = threading.local()  # what a thread's model reads now


@contextlib.contextmanager
def first_tokens_alone(model: nn.Module) -> Iterator[None]:
    """In here, the last layer is computed only for the tokens that the head reads; for padded inputs, without gradients.

    Scores stay the same up to rounding. Per token, 2 H^2 of the layer's 12 H^2 multiplications remain: a model of 6 layers does 14 % less.
    Models with another head or other layers are not changed.
    """
    config, head = model.backbone.config, model.HEADS[0]
    reads_first = head == "pair" or (head in EVIDENCE and model.joint.pooling == "first")
    if not (reads_first and config.model_type in BERT_LIKE and private.attention(config) in ("sdpa", "eager")):
        yield
        return
    layer = model.backbone.encoder.layer[-1]
    hook = model.register_forward_pre_hook(lambda _, inputs: vars(_batch).update(firsts=inputs[0].get("firsts")))
    # The layer stays the same module: weights keep their names, also where two score at once.
    layer.forward = partial(_first_tokens, layer)
    try:
        yield
    finally:
        vars(layer).pop("forward", None)
        hook.remove()


def _first_tokens(layer, hidden, attention_mask=None, *_, **__):
    """The output of a layer for the first token of each input, or of each slot; of slots at their places, with zeros between them.

    Shapes: (B, T, H), mask (B, 1, T or 1, T), firsts (B, S) or None -> (B, 1, H), or (B, T, H) with firsts
    """
    firsts, tokens = _batch.firsts, hidden.flatten(0, 1)
    if firsts is not None:
        firsts = firsts.where(firsts >= 0, firsts[:, :1])  # an empty slot takes the question's, which is never empty
    chosen = hidden[:, :1] if firsts is None else tokens[firsts]
    own = layer.attention.self
    projected = own.query(chosen), own.key(hidden), own.value(hidden)
    heads = [states.unflatten(-1, (-1, own.attention_head_size)).transpose(1, 2) for states in projected]
    mask = None if attention_mask is None else attention_mask[:, :, :1]
    attended = scaled_dot_product_attention(*heads, attn_mask=mask, scale=own.scaling).transpose(1, 2).flatten(2)
    outputs = layer.feed_forward_chunk(layer.attention.output(attended, chosen))
    if firsts is None:
        return outputs
    return outputs.new_zeros(tokens.shape).index_copy(0, firsts.flatten(), outputs.flatten(0, 1)).view(hidden.shape)
