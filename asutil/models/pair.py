"""One backbone under its own pair head and its own masked-language-model head.

`AutoModelForSequenceClassification` and `AutoModelForMaskedLM` each contain a backbone and a head. The head has no interface of its
own and a different structure in every architecture, but every model calls its backbone and then works on the outputs. So the backbone
inside is replaced by a module that returns its input, and the rest of the model is its head: there is no code per architecture, and the
head computes exactly what the whole model would.
"""

import copy
import inspect
from pathlib import Path

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

from .. import losses
from ..inputs import packing
from ..io import checkpoints
from . import settings


class Given(nn.Module):
    """Replaces a backbone and returns the outputs that it gets as `inputs_embeds`."""

    def forward(self, *args, inputs_embeds, **kwargs):
        return inputs_embeds


def take_backbone(model: nn.Module) -> nn.Module:
    """The backbone of a transformers model with a head; afterwards `model` is the bare head.

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
    """Tie the output layer of a masked-language model to the embeddings of `backbone`, if it is tied to its own embeddings.

    Call it before `take_backbone(masked)`. A checkpoint with an untied output layer keeps it.
    """
    output = masked.get_output_embeddings()
    if output.weight is masked.get_input_embeddings().weight:
        output.weight = backbone.get_input_embeddings().weight


def pair_logits(head: nn.Module, outputs, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """The pair head: the backbone's own sequence-classification head, in float32 for a body of any precision.

    Paper: sentence_objectives, sections 3 and 4.
    Shapes: outputs.last_hidden_state (B, T, H) -> logits (B, C)
    Deviation: D-07.
    """
    hidden = outputs.last_hidden_state
    pooled = getattr(outputs, "pooler_output", None)
    with torch.autocast(hidden.device.type, enabled=False):
        wide = torch.promote_types(hidden.dtype, torch.float32)
        outputs = BaseModelOutputWithPooling(hidden.to(wide), None if pooled is None else pooled.to(wide))
        return head(inputs_embeds=outputs, attention_mask=attention_mask).logits


def first_tokens(outputs, places: torch.Tensor, pooler: nn.Module | None) -> BaseModelOutputWithPooling:
    """A packed micro-batch for a pair head: every example's first token as a sequence of its own, and its pooling.

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


class PairEncoder(nn.Module):
    """One backbone under its own pair head and, for pre-training, its own masked-language-model head.

    Shapes: input_ids, attention_mask (B, T); masked_positions (M,) into B*T -> pair logits (B, C), MLM logits (M, V) or None.
        Packed, a row of N tokens replaces B*T, and there is no attention_mask. With several pair heads members (B,) are the head of
        each example.
    """

    HEADS = ("pair", "mlm")
    joint = None  # the settings of a `joint.JointEncoder`

    def __init__(self, backbone, pair, mlm, tokenizer, fresh=()):
        super().__init__()
        self.backbone, self.pair, self.mlm = backbone, pair, mlm
        self.generator = None  # of ELECTRA alone
        self.tokenizer, self.fresh = tokenizer, tuple(fresh)
        self.compiled = None  # the backbone's forward for packed micro-batches, if `train` compiles it
        self.takes_types = takes_types(backbone)

    @property
    def parts(self) -> int:
        """The number of texts of an example: 2, or 3 with a context."""
        return settings.parts_of(self.backbone.config)

    @property
    def backbones(self) -> list[nn.Module]:
        """The backbone, and that of ELECTRA's generator."""
        return [self.backbone] if self.generator is None else [self.backbone, self.generator.base_model]

    @property
    def masked(self) -> nn.Module | None:
        """What learns masked language modelling: ELECTRA's generator, or the model's own head, if it has one."""
        return self.mlm if self.generator is None else self.generator

    @property
    def reads_masks(self) -> bool:
        """Whether it is trained, and validated, on text with masks."""
        return self.masked is not None

    @property
    def pairs(self) -> list[nn.Module]:
        """The pair heads: one, or one for each objective of a union."""
        return [getattr(self, name) for name in self.HEADS if name.split("_")[0] == "pair"]

    def give_members(self, count: int) -> None:
        """Add pair heads for `count` objectives of a union; those after the first, `pair_2` and so on, begin as its copies.

        Paper: contextual_as2, section 7 (separate heads, which it found worse than a shared one).
        """
        for number in range(2, count + 1):
            setattr(self, f"pair_{number}", copy.deepcopy(self.pair))
            self.HEADS = (*self.HEADS, f"pair_{number}")

    def forward(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
        outputs = outputs_of(self.backbone, batch, self.takes_types, self.compiled)
        pair = self.pair_of(outputs, batch)
        if self.mlm is None or "masked_positions" not in batch:
            return pair, None
        return pair, mlm_logits(self.mlm, outputs, batch["masked_positions"])

    def pair_of(self, outputs, batch: dict) -> torch.Tensor:
        """The pair head on the backbone's outputs; of several heads, that of each example's objective."""
        if "cu_seq_lens" in batch:
            outputs = first_tokens(outputs, batch["first"], getattr(self.backbone, "pooler", None))
        logits = [pair_logits(head, outputs, batch.get("attention_mask")) for head in self.pairs]
        if len(logits) == 1:
            return logits[0]
        if "members" not in batch:
            expected = "`members` expected, the objective of each example"
            raise ValueError(f"this model has {len(logits)} pair heads, one an objective: {expected}")
        members = batch["members"]
        return torch.stack(logits)[members, torch.arange(len(members), device=members.device)]

    def loss_weights(self, options) -> dict[str, float]:
        """The weight of each part of the loss, from `training.options.Options`."""
        return {"mlm": options.mlm_weight, "objective": options.objective_weight}

    def losses(self, outputs: tuple, micro: dict, batch: dict) -> torch.Tensor:
        """A micro-batch's share of the parts of the loss of its optimiser batch: [L_mlm, L_pair], and L_td of ELECTRA."""
        pair, mlm, *detection = outputs
        if "lists" in micro:
            scores = (pair[:, 1] - pair[:, 0])[micro["lists"].clamp(min=0)]
            loss, target = (losses.distillation, "teacher") if "teacher" in micro else (losses.listwise, "labels")
            objective = loss(scores, micro[target], batch["lists"])
        else:
            objective = losses.pair(pair, micro["labels"], batch.get("labels", batch["examples"]))
        masked = torch.zeros_like(objective)
        if mlm is not None:
            masked = losses.mlm(mlm, micro["masked_targets"], batch["masked"])
        detected = [losses.replaced_token(*arguments, batch["tokens"]) for arguments in detection]
        return torch.stack([masked, objective, *detected])

    def head_parameters(self, *names: str) -> dict[str, nn.Parameter]:
        """Parameters of the heads by name, without those that are tied to the backbone's embeddings."""
        tied = self.backbone.get_input_embeddings().weight
        parameters = checkpoints.parameters_of(self, names or self.HEADS)
        return {name: parameter for name, parameter in parameters.items() if parameter is not tied}

    def save(self, folder: str | Path, untrained: tuple[str, ...] = ()) -> Path:
        """Write backbone (loads with AutoModel), heads and tokenizer: all of it, or nothing.

        Args:
            untrained: heads that are not written, because they were not trained; whoever loads the model starts them anew.
        """
        learnt = [head for head in self.HEADS if head not in untrained]
        return checkpoints.save_model(folder, self, self.head_parameters(*learnt), self.add_files)

    def add_files(self, folder: Path) -> None:
        """Write what a kind of model has besides backbone, heads and tokenizer."""


def takes_types(backbone: nn.Module) -> bool:
    """Whether a backbone has more than one token type. RoBERTa has one, ModernBERT and DistilBERT have none."""
    accepted = "token_type_ids" in inspect.signature(backbone.forward).parameters
    return accepted and getattr(backbone.config, "type_vocab_size", 1) > 1


def type_table(backbone: nn.Module) -> nn.Embedding:
    """The embeddings of a backbone's token types. Raises: ValueError for a backbone without token types."""
    tables = (module for name, module in backbone.named_modules() if name.split(".")[-1] == "token_type_embeddings")
    table = next(tables, None)
    if table is None:
        raise ValueError(
            f"{backbone.config.model_type} has no token types, by which question, candidate and context are told apart: take a backbone "
            "that has them (roberta, bert, electra), or leave the context out"
        )
    return table


def widen_types(
    model: PairEncoder, rows: int = 3, seed: int = 0, std: float | None = None, alone: bool = False
) -> bool:
    """Replace a table of fewer than `rows` token types by a fresh one, which ELECTRA's generator shares.

    With a tokenizer without token types, every token has had row 0 in training. That row is an offset without information on parts, so
    it is added to the fresh rows. RoBERTa-Base's row is zero.
    Args:
        std: standard deviation of the fresh rows; the backbone's initializer_range where it is left out.
        alone: every part is a text of its own, like a slot; row 0, the type of a single text, is then added for any tokenizer.
    Paper: contextual_as2, appendix C.
    Deviation: D-37, D-111.
    Returns: whether the table is new; then the model's `fresh` names it as "types".
    Raises: ValueError for a backbone without token types.

    Example:
        >>> from asutil.models.loading import tiny
        >>> from asutil.corpus.tokenizers import train_tokenizer
        >>> model = tiny(train_tokenizer(["a few words"], 300))
        >>> widen_types(model), widen_types(model), model.backbone.config.type_vocab_size, model.fresh
        (True, False, 3, ('pair', 'mlm', 'types'))
    """
    tables = [type_table(backbone) for backbone in model.backbones]
    weight = tables[0].weight
    fresh = len(weight) < rows
    if fresh:
        typed = "token_type_ids" in getattr(model.tokenizer, "model_input_names", ["token_type_ids"])
        offset = 0.0 if typed and not alone else weight[0].detach()
        std = model.backbone.config.initializer_range if std is None else std
        with checkpoints.seeded(seed):
            weight = nn.Parameter(offset + torch.randn(rows, weight.shape[1]) * std)
        model.fresh += ("types",)
    for backbone, table in zip(model.backbones, tables):
        table.weight = weight
        table.num_embeddings = backbone.config.type_vocab_size = len(weight)
    model.takes_types = True
    if model.generator is not None:
        model.generator_takes_types = True
    return fresh


def outputs_of(backbone: nn.Module, batch: dict, token_types: bool, compiled=None, **options):
    """The outputs of a backbone for a micro-batch: last_hidden_state (B, T, H), packed (1, N, H).

    Args:
        compiled: the compiled form of `backbone.forward` for packed micro-batches, if any.
        options: arguments of the backbone for padded micro-batches, such as output_hidden_states.
    """
    if "token_type_ids" not in batch and settings.parts_of(backbone.config) == 3:
        expected = "inputs with token types 0, 1 and 2 expected"
        raise ValueError(f"this model reads question, candidate and context: {expected}, got none")
    if "cu_seq_lens" in batch:
        return packing.outputs(backbone, batch, token_types, compiled)
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * token_types
    inputs = {name: batch[name] for name in names if name in batch}
    if "position_ids" in batch:
        inputs["position_ids"] = batch["position_ids"] + packing.first_position(backbone)
    return backbone(**inputs, **options)
