"""Heads on hidden states: a backbone's own heads, run on the outputs of one shared backbone.

`AutoModelForSequenceClassification` and `AutoModelForMaskedLM` each hold a backbone and a head. The head has no interface of its
own and a different shape in every architecture, but all of them do the same: call their backbone, then work on what it returned.
So the backbone inside is replaced by a module that returns what it is given, and what is left of the model is its head: no code
per architecture, and the head computes exactly what the whole model would.
"""

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling


class Given(nn.Module):
    """Stands in the place of a backbone and returns the outputs that came as `inputs_embeds`."""

    def forward(self, *args, inputs_embeds, **kwargs):
        return inputs_embeds


def take_backbone(model: nn.Module) -> nn.Module:
    """The backbone of a transformers model with a head; `model` is left as the bare head.

    Example:
        >>> from transformers import AutoModelForMaskedLM, RobertaConfig
        >>> config = RobertaConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
        >>> head = AutoModelForMaskedLM.from_config(config)
        >>> type(take_backbone(head)).__name__, type(head.base_model).__name__
        ('RobertaModel', 'Given')
    """
    backbone = model.base_model
    if backbone is model:
        raise ValueError(f"{type(model).__name__} does not keep its backbone apart from its head")
    setattr(model, model.base_model_prefix, Given())
    return backbone


def share_embeddings(masked: nn.Module, backbone: nn.Module) -> None:
    """Tie the output layer of a masked-language model to the embeddings of `backbone`, where it is tied to its own.

    Call it before `take_backbone(masked)`. A checkpoint with an untied output layer keeps it.
    """
    output = masked.get_output_embeddings()
    if output.weight is masked.get_input_embeddings().weight:
        output.weight = backbone.get_input_embeddings().weight


def pair_logits(head: nn.Module, outputs, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """The pair head: the backbone's own sequence-classification head, in float32 whatever the body ran in.

    Paper: sentence_objectives, sections 3 and 4.
    Shapes: outputs.last_hidden_state (B, T, H) -> logits (B, C)
    Deviation: the paper writes one linear layer; RoBERTa's own head, which its released code uses, is dense-tanh-linear.
    """
    hidden = outputs.last_hidden_state
    pooled = getattr(outputs, "pooler_output", None)
    with torch.autocast(hidden.device.type, enabled=False):
        outputs = BaseModelOutputWithPooling(hidden.float(), None if pooled is None else pooled.float())
        return head(inputs_embeds=outputs, attention_mask=attention_mask).logits


def first_tokens(outputs, places: torch.Tensor, pooler: nn.Module | None) -> BaseModelOutputWithPooling:
    """What a pair head reads of a packed micro-batch: every example's first token as a sequence of its own, and its pooling.

    Shapes: outputs.last_hidden_state (1, N, H), places (B,) -> last_hidden_state (B, 1, H), pooler_output (B, H) or None
    """
    hidden = outputs.last_hidden_state[0, places][:, None]
    return BaseModelOutputWithPooling(hidden, None if pooler is None else pooler(hidden))


def mlm_logits(head: nn.Module, outputs, masked_positions: torch.Tensor) -> torch.Tensor:
    """The backbone's own masked-language-model head at the masked positions only.

    The head is the widest layer of the model (H x V): 15 % of the positions cost 15 % of it.
    Shapes: outputs.last_hidden_state (B, T, H), masked_positions (M,) into the flattened B*T -> logits (M, V)
    """
    hidden = outputs.last_hidden_state.flatten(0, 1)[masked_positions]
    return head(inputs_embeds=BaseModelOutputWithPooling(hidden[None])).logits[0]
