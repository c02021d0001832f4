"""Joint encoders: one backbone reads the question and k candidates in one input, under an IE or AE head.

The pairwise baselines of fact verification differ in one thing: each candidate is read with the question in an input of its own.
"""

import inspect
import logging
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

from ..heads import EVIDENCE, POOLED
from ..inputs import pairs
from ..io import checkpoints, spelling
from . import pair, settings
from .pair import PairEncoder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Joint:
    """The settings of a joint model: those of `shape`, and slot_tokens, the length of a slot, or of a pair in an input of its own."""

    head: str
    k: int
    classes: int
    slot_tokens: int
    form: str
    positions: str | None
    pooling: str = "first"
    init: float | None = None
    start: str = "class"


def shape(
    joint: bool, head, k, max_tokens: int, form, positions, classes: int = 2, pooling=None, init=None, start=None
) -> Joint | None:
    """The settings of a joint model; None for any other model.

    Args:
        joint: whether the model is joint; if not, the other arguments must be None.
        head: ie_k, ae_k, ie_1 or ae_1; or pair_max or pair_weighted, which read each candidate in an input of its own, of max_tokens,
            and have no form and no positions.
        k: candidates of a question. max_tokens: of all k + 1 slots together, which have equal lengths.
        form: "linear" or "released" (`heads.base.EvidenceHead`).
        positions: "absolute", 0 to (k + 1) L - 1, as in the paper, or "skipping", where padding has no position, as in RoBERTa's code.
        pooling: E_i is the "first" token of slot i, as in the paper, or the "mean" of its own tokens; first where it is left out.
        init: standard deviation of fresh slot types; the backbone's own initializer_range where it is left out.
        start: what candidates begin with: the "separator", as in the paper, or the "class" token, as the question does; class where it is
            left out.
    Deviation: D-110 (pooling), D-111 (init), D-151 (start).
    Raises: ValueError for a length that k + 1 slots cannot share, an unknown name, or a choice that only a joint model has.

    Example:
        >>> shape(True, "ie_k", 5, 384, "linear", "absolute").slot_tokens
        64
    """
    slotted = {"head_form": form, "positions": positions}
    slotted |= {"slot_pooling": pooling, "slot_init": init, "slot_start": start}
    absent = slotted if head in POOLED else {}
    for name, value in (absent if joint else {"head": head, "k": k} | slotted).items():
        if value is not None:
            those = "architecture=joint, objective=mspp, ie_1, ae_1"
            raise ValueError(f"{name}: only joint models have one ({those}), got {value!r}")
    if not joint:
        return None
    if head in POOLED:
        return Joint(head, k, classes, slot_tokens=max_tokens, form="linear", positions=None)
    pooling = "first" if pooling is None else pooling
    start = "class" if start is None else start
    spelling.require_one_of("head", head, (*EVIDENCE, *POOLED))
    spelling.require_one_of("positions", positions, ("absolute", "skipping"))
    spelling.require_one_of("slot_pooling", pooling, ("first", "mean"))
    spelling.require_one_of("slot_start", start, ("class", "separator"))
    slot_tokens = pairs.slot_tokens_of(max_tokens, k + 1, f"a question and {k} candidates")
    return Joint(head, k, classes, slot_tokens, form, positions, pooling, init, start)


def check_head(saved: Joint, wanted: Joint, name) -> None:
    """Refuse to continue with a saved head of another form, for other classes or on other vectors; warn of other positions."""
    options = {"form": "head_form", "classes": "classes", "pooling": "slot_pooling", "start": "slot_start"}
    for field, option in options.items():
        former, choice = getattr(saved, field), getattr(wanted, field)
        if saved.head == wanted.head and former != choice:
            advice = "take that, or a fresh head (keep_head false)"
            raise ValueError(f"{name}: its {saved.head} head has {option} {former}, got {choice}: {advice}")
    if saved.head == wanted.head and saved.positions != wanted.positions:
        log.warning(
            "%s: its head learnt with positions=%s, and goes on with %s", name, saved.positions, wanted.positions
        )


class JointEncoder(PairEncoder):
    """One backbone under an evidence head and, for pre-training, its own masked-language-model head.

    Paper: joint_inference, sections 3.2 and 3.3.
    Shapes: input_ids (B, T) or packed, position_ids, firsts (B, K+1): where slots begin in the flattened micro-batch, -1 for an empty
        one -> logits (B, K, C) of ie_k and ae_k, (B, C) of ie_1 and ae_1; MLM logits (M, V) or None. For pair_max and pair_weighted
        input_ids (P, T), one pair a row, firsts (B, K): where pairs begin -> logits (B, C)
    """

    def __init__(self, backbone, joint: Joint, head: nn.Module, mlm, tokenizer, fresh=()):
        super().__init__(backbone, None, mlm, tokenizer, fresh)
        self.joint = joint
        settings.keep(backbone.config, joint)
        self.HEADS = (joint.head, "mlm")
        setattr(self, joint.head, head)

    def forward(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
        if "firsts" not in batch:
            raise ValueError(
                "a joint model reads a question and its candidates in one input of slots: inputs with `firsts` expected, got none"
            )
        return super().forward(self.placed(batch))

    def placed(self, batch: dict) -> dict:
        """A micro-batch with this model's positions, and with its tokens at the beginning of slots."""
        if self.joint.positions == "skipping":
            batch = batch | {"position_ids": running(batch)}
        if self.joint.start == "separator":
            batch = batch | {"input_ids": with_separators(batch, self.tokenizer.sep_token_id)}
        return batch

    def pair_of(self, outputs, batch: dict) -> torch.Tensor:
        """The evidence head on the embedding of every slot: its first token, or the mean of its own tokens."""
        hidden, firsts = outputs.last_hidden_state.flatten(0, 1), batch["firsts"]
        slots = slot_means(hidden, batch) if self.joint.pooling == "mean" else hidden[firsts.clamp(min=0)]
        return getattr(self, self.HEADS[0])(slots, firsts >= 0)


def with_separators(batch: dict, separator: int) -> torch.Tensor:
    """Token ids in which every candidate begins with the separator; the question keeps its class token.

    [CLS] s_0 [SEP]  [SEP] s_1 [SEP]  ...  [SEP] s_k [SEP], where the inputs have [CLS] in front of every text.
    Paper: joint_inference, section 3.2.
    Shapes: input_ids (B, T) or packed (1, N), firsts (B, S) -> as input_ids
    """
    ids = batch["input_ids"]
    begins = torch.zeros(ids.numel() + 1, dtype=torch.bool, device=ids.device)
    begins[batch["firsts"][:, 1:].flatten()] = True  # an empty slot, -1, marks the place behind the last token
    return torch.where(begins[:-1].view_as(ids), separator, ids)


def slot_means(hidden: torch.Tensor, batch: dict) -> torch.Tensor:
    """E_i = mean_t h_it over the tokens of slot i, special ones included and padding left out, in float32 or wider; 0 of an empty slot.

    Shapes: hidden (N, H), of the flattened micro-batch of either layout -> (B, S, H)
    Deviation: D-110.
    """
    examples, slots = batch["firsts"].shape
    example = examples_of(batch)
    padding = examples * slots
    slot = torch.where(example < examples, example * slots + batch["token_type_ids"].flatten(), padding)
    wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
    sums = wide.new_zeros(padding + 1, wide.shape[1]).index_add(0, slot, wide)
    sizes = wide.new_zeros(padding + 1).index_add(0, slot, wide.new_ones(len(slot)))
    return (sums / sizes.clamp(min=1)[:, None])[:padding].view(examples, slots, -1)


def examples_of(batch: dict) -> torch.Tensor:
    """The example of each token of a flattened micro-batch; for padding the number of examples, or a larger one. Shapes: -> (N,)"""
    device, count = batch["input_ids"].device, len(batch["firsts"])
    if "cu_seq_lens" in batch:
        token = torch.arange(batch["input_ids"].numel(), device=device)
        return torch.searchsorted(batch["cu_seq_lens"].long(), token, right=True) - 1
    row = torch.arange(count, device=device)[:, None]
    return row.where(batch["attention_mask"].bool(), count).flatten()


def running(batch: dict) -> torch.Tensor:
    """Positions that skip padding; 0 in the filling of a packed row. Shapes: input_ids (B, T) or packed (1, N) -> the same"""
    row = torch.arange(batch["input_ids"].shape[1], device=batch["input_ids"].device)
    if "cu_seq_lens" not in batch:
        return row.expand_as(batch["input_ids"])
    ends = batch["cu_seq_lens"].long()
    positions = row - ends[examples_of(batch)]
    return (positions * (row < ends[len(batch["first"])]))[None]


def over(model: PairEncoder, joint: Joint, seed: int = 0) -> JointEncoder:
    """The backbone and MLM head of a pair model under a fresh evidence head, with a token type for every slot of an input.

    Deviation: D-37 (fresh token types), D-111 (their size, and the row under them).
    Raises: ValueError for a backbone without token types or positions of its own, or with ELECTRA's two models.
    """
    backbone, slots = model.backbone, joint.head in EVIDENCE
    if slots and "position_ids" not in inspect.signature(backbone.forward).parameters:
        kind = backbone.config.model_type
        raise ValueError(f"{kind} takes no positions, which a joint input needs: take roberta, bert or electra")
    if model.generator is not None:
        advice = "fine-tune it as it is, or take a RoBERTa"
        raise ValueError(f"mspp is learnt with masked language modelling, by one model: an ELECTRA has two; {advice}")
    if slots:
        pair.widen_types(model, joint.k + 1, seed, joint.init, alone=True)
    with checkpoints.seeded(seed):
        head = (EVIDENCE | POOLED)[joint.head](backbone.config.hidden_size, joint.classes, joint.form)
    fresh = (joint.head, *(name for name in model.fresh if name != "pair"))
    return JointEncoder(backbone, joint, head, model.mlm, model.tokenizer, fresh)


def parameters(model: PairEncoder, printed: dict[str, int]) -> pd.DataFrame:
    """Parameters of a model by part, and the paper's counts; the paper's RoBERTa-Base is the backbone without a pooler and a head.

    Paper: joint_inference, appendix C.3.
    Args:
        printed: name of a part -> the paper's count.
    Deviation: D-80.
    """
    types = getattr(getattr(model.backbone, "embeddings", None), "token_type_embeddings", None)
    scorer = model.HEADS[0]
    counts = {
        ("backbone", "this run"): sum(map(torch.numel, model.backbone.parameters())),
        ("of these token types", "this run"): 0 if types is None else types.weight.numel(),
        (f"head {scorer}", "this run"): sum(map(torch.numel, model.head_parameters(scorer).values())),
        **{(name, "the paper, appendix C.3"): count for name, count in printed.items()},
    }
    return pd.Series(counts, name="parameters").rename_axis(["part", "of"]).reset_index()
