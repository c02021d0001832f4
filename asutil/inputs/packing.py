"""Packed micro-batches: examples end to end without padding, and attention within each example.

Everything in an encoder except attention works token by token. Attention is registered with transformers: there is no code per
architecture and no package besides torch, and the backbone keeps its weights, its dropout and its code.
"""

import contextlib
import itertools
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import dropout as dropout_of
from torch.nn.functional import scaled_dot_product_attention

from ..io import private
from .cut import cut_evenly

NAME = "asutil_packed"
BLOCK = 128
# Packed lengths are multiples of it: matrix units work on whole tiles, there are few sizes to compile for, and memory of one micro-batch
# fits the next one. With thousands of sizes glibc's malloc comes to search long lists of free memory, a fifth of the time of a long run.
MULTIPLE = BLOCK if torch.cuda.is_available() else 32
STEP = 16  # lengths in attention on a CPU are multiples of it, for the same reasons
# Architectures whose attention is looked up in the registry and whose pair head reads the first token and nothing else.
KNOWN = ("bert", "camembert", "electra", "modernbert", "roberta", "xlm-roberta")


# ------------------------------------------------------------------ micro-batches


def packed(ragged, labels: np.ndarray, pad: int, max_tokens: int, masked=None, members=None) -> list[dict]:
    """One optimiser batch as micro-batches of one row each, of about equal numbers of tokens, the longest examples first.

    A last segment of padding, which nothing reads, fills the row to a multiple of MULTIPLE.
    Args:
        max_tokens: of a micro-batch, approximately: examples stay whole.
        masked, members: as for `Ragged.targets`.
    Returns: dicts of input_ids, position_ids (1, N); token_type_ids where the template has them; cu_seq_lens (B + 1 or + 2,): where
        examples begin and end; longest (int); first (B,): positions of the first tokens; and those of `Ragged.targets`.
    """
    return [_row(ragged, rows, labels, pad, masked, members) for rows in cut_evenly(ragged.lengths, max_tokens)]


def _row(ragged, rows, labels, pad, masked, members) -> dict:
    part = ragged.take(rows)
    starts, size = part.offsets[:-1], len(part.ids)
    filler = -size % MULTIPLE

    def filled(values, value=0):
        return np.pad(values.astype(np.int64), (0, filler), constant_values=value)[None]

    positions = part.positions
    if positions is None:
        positions = np.arange(size) - np.repeat(starts, part.lengths)
    micro = {
        "input_ids": filled(part.ids, pad),
        "position_ids": filled(positions),
        "cu_seq_lens": np.append(part.offsets, [size + filler] * bool(filler)).astype(np.int32),
        "first": starts.astype(np.int64),
        **ragged.targets(rows, starts, labels, masked, members),
    }
    if part.types is not None:
        micro["token_type_ids"] = filled(part.types)
    longest = -(-int(part.lengths.max()) // BLOCK) * BLOCK
    return {name: torch.from_numpy(array) for name, array in micro.items()} | {"longest": longest}


# ------------------------------------------------------------------ backbones


def fits(backbone) -> bool:
    """Whether `backbone` can read packed micro-batches."""
    config = backbone.config
    pools_first = getattr(config, "classifier_pooling", "cls") == "cls"
    return config.model_type in KNOWN and pools_first and not recomputes(backbone)


def recomputes(model) -> bool:
    """Whether a model computes layers again for the backward pass (gradient checkpointing)."""
    return any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


def first_position(backbone) -> int:
    """The number of an input's first position: RoBERTa counts from its padding on."""
    positions = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    return 0 if positions is None or positions.padding_idx is None else positions.padding_idx + 1


def outputs(backbone, micro: dict, token_types: bool, forward=None):
    """The outputs of a backbone for a packed micro-batch: last_hidden_state (1, N, H).

    Args:
        token_types: whether the backbone takes them.
        forward: the compiled form of `backbone.forward`, if any.
    Raises: ValueError for an architecture whose outputs are not known to be the same packed as padded.
    """
    config = backbone.config
    if not fits(backbone):
        raise ValueError(
            f'{config.model_type} cannot be packed (these can: {", ".join(KNOWN)}): give the batches layout="ordered"'
        )
    inputs = {"input_ids": micro["input_ids"], "position_ids": micro["position_ids"] + first_position(backbone)}
    if token_types and "token_type_ids" in micro:
        inputs["token_type_ids"] = micro["token_type_ids"]
    _register()
    former = private.attention(config)
    private.set_attention(config, NAME)
    try:
        return (forward or backbone)(**inputs, cu_seq_lens=micro["cu_seq_lens"], longest=micro["longest"])
    finally:
        private.set_attention(config, former)


@contextlib.contextmanager
def plain_attention(model):
    """Attention as plain matrix products, in all parts of a model that would use torch's fused kernel.

    On a CPU in bf16 the fused backward pass of torch 2.13 is slower; in fp32 there is no difference. Its dropout is torch's own.
    """
    configs = {id(module.config): module.config for module in model.modules() if hasattr(module, "config")}
    fused = [config for config in configs.values() if private.attention(config) == "sdpa"]
    for config in fused:
        private.set_attention(config, "eager")
    try:
        yield
    finally:
        for config in fused:
            private.set_attention(config, "sdpa")


def attention(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    sliding_window=None,
    *,
    cu_seq_lens,
    longest,
    **_,
):
    """Attention within each example of a packed row, with dropout.

    Flash attention on a GPU in half precision, padded to one length there in fp32 and where it is compiled, to a few lengths on a CPU.

    Shapes: query, key, value (1, heads, N, D), cu_seq_lens (B + 1,) -> (1, N, heads, D), None
    """
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    reach = -1 if sliding_window is None else sliding_window - 1  # tokens seen on either side; -1 is all
    by_block = not (query.is_cuda or torch.compiler.is_compiling())  # its shapes depend on the data
    attend = _flash if _has_flash(query) else _by_block if by_block else _padded
    return attend(query, key, value, cu_seq_lens, longest, dropout, scaling, reach)[None], None


def _has_flash(query) -> bool:
    size = query.shape[-1]
    is_half = query.dtype in (torch.float16, torch.bfloat16)
    return query.device.type == "cuda" and is_half and size % 8 == 0 and size <= 256


def _flash(query, key, value, cu_seq_lens, longest, dropout, scaling, reach):
    # torch.nn.attention.varlen calls this same operator, but without dropout.
    arguments = (query, key, value, cu_seq_lens, cu_seq_lens, longest, longest, dropout, False, False)
    options = {"scale": scaling, "window_size_left": reach, "window_size_right": reach}
    return private.flash_attention(*arguments, **options)


def _padded(query, key, value, cu_seq_lens, longest, dropout, scaling, reach):
    """Shapes: (N, heads, D) -> (N, heads, D), by way of (B, heads, longest, D)."""
    position = torch.arange(longest, device=query.device)
    tokens = (cu_seq_lens[:-1, None] + position).clamp(max=len(query) - 1)
    real = position < cu_seq_lens.diff()[:, None]
    mask = real[:, None, None]
    if reach >= 0:  # padding sees everything: a row that sees nothing would be NaN
        mask = mask & (((position[:, None] - position).abs() <= reach) | ~real[:, None, :, None])
    rows = [states[tokens].transpose(1, 2) for states in (query, key, value)]
    attended = scaled_dot_product_attention(*rows, attn_mask=mask, dropout_p=dropout, scale=scaling)
    token = torch.arange(len(query), device=query.device, dtype=cu_seq_lens.dtype)
    row = torch.searchsorted(cu_seq_lens, token, right=True) - 1
    return attended[row, :, token - cu_seq_lens[row]]


def _by_block(query, key, value, cu_seq_lens, longest, dropout, scaling, reach):
    """The same as plain matrix products, each example padded to a multiple of STEP tokens, those of one such length at a time.

    Shapes: (N, heads, D) -> (N, heads, D), by way of (B, heads, length, D)
    """
    blocks = _blocks(cu_seq_lens, reach)
    parts = [each.index_select(0, blocks.tokens).split(blocks.sizes) for each in (query, key, value)]
    attended = []
    for (length, count), hidden, *rows in zip(blocks.runs, blocks.hidden, *parts):
        rows = [part.unflatten(0, (count, length)).transpose(1, 2) for part in rows]
        weights = (rows[0] * scaling) @ rows[1].transpose(2, 3)
        if hidden is not None:
            weights.masked_fill_(hidden, -torch.inf)
        weights = dropout_of(weights.softmax(-1), dropout)
        attended.append((weights @ rows[2]).transpose(1, 2).flatten(0, 1))
    return torch.cat(attended).index_select(0, blocks.places)


class _Blocks(NamedTuple):
    """A packed row with each example padded to a multiple of STEP tokens, in S places.

    tokens (S,): the token in each place, of padding the example's last; places (N,): where each token is; runs: (length, number) of
    neighbouring examples of one padded length; sizes: their places; hidden: what a query does not see, None where it sees everything.
    """

    tokens: torch.Tensor
    places: torch.Tensor
    runs: list[tuple[int, int]]
    sizes: list[int]
    hidden: list[torch.Tensor | None]


@lru_cache(maxsize=2)  # every layer asks for the blocks of its micro-batch
def _blocks(cu_seq_lens, reach: int) -> _Blocks:
    starts, lengths = cu_seq_lens[:-1].long(), cu_seq_lens.diff().long()
    padded = -(-lengths // STEP) * STEP
    position = torch.arange(int(padded.sum())) - (padded.cumsum(0) - padded).repeat_interleave(padded)
    last = (lengths - 1).repeat_interleave(padded)
    real = position <= last
    runs = [(length, len(list(same))) for length, same in itertools.groupby(padded.tolist())]
    sizes = [length * count for length, count in runs]
    hidden = [_hidden(part.view(count, 1, 1, length), reach) for (length, count), part in zip(runs, real.split(sizes))]
    tokens = starts.repeat_interleave(padded) + position.minimum(last)
    return _Blocks(tokens, real.nonzero()[:, 0], runs, sizes, hidden)


def _hidden(real, reach: int) -> torch.Tensor | None:
    """Keys of padding, and those out of reach; padding sees all real ones, as a row that sees nothing would be NaN.

    Shapes: (B, 1, 1, L) -> (B, 1, 1 or L, L)
    """
    hidden = ~real
    if 0 <= reach < real.shape[-1] - 1:
        position = torch.arange(real.shape[-1])
        far = (position[:, None] - position).abs() > reach
        hidden = hidden | (far & real.transpose(2, 3))
    return hidden if hidden.any() else None


@cache
def _register() -> None:
    """Make `attention` known to transformers, which whoever has a backbone has imported."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)  # cu_seq_lens takes the place of a mask
