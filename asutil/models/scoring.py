"""Where a model is run, and how where nothing is learnt."""

import contextlib
import logging
import os
from collections.abc import Iterator

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from . import memory

CHECKED = 1_000  # inputs of a model of others whose length is checked
OFTEN = 0.01  # share of texts that are cut from which it is said
log = logging.getLogger(__name__)


def device() -> torch.device:
    """Where this process computes: its own GPU, as torchrun numbers them, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())


def has_bf16(device: torch.device) -> bool:
    """Whether a device is a GPU that computes in bfloat16 by itself: NVIDIA's from Ampere on. Older ones imitate it slowly."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def require_bf16(wanted: bool, device: torch.device) -> bool:
    """`wanted`, which a CPU and a GPU with bfloat16 can do. Raises: ValueError for bfloat16 on another GPU."""
    if wanted and device.type == "cuda" and not has_bf16(device):
        advice = "take precision=fp32, or another GPU"
        raise ValueError(f"bf16: {torch.cuda.get_device_name(device)} does not compute in it; {advice}")
    return wanted


@contextlib.contextmanager
def evaluating(model: nn.Module, autocast: bool = True) -> Iterator[torch.device]:
    """A model in evaluation mode, without gradients; afterwards it is in the mode that it was in.

    Args:
        autocast: on a GPU that has bfloat16 the backbone runs in it, whatever the training's precision; heads are float32 by themselves.
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
    narrow = torch.autocast(device.type, torch.bfloat16, enabled=autocast and has_bf16(device))
    model.eval()
    try:
        with torch.no_grad(), narrow, memory.kept():
            yield device
    finally:
        model.train(training)


def tell_cut(model: nn.Module, cut: np.ndarray, max_tokens: int, unit: str) -> None:
    """Say, once for a model and a length, how many texts of a first window are cut, if these are not few. Shapes: cut (N,) bool"""
    told = vars(model).setdefault("told_cut", set())
    if cut.mean() >= OFTEN and max_tokens not in told:
        log.warning("cut at max_tokens=%d: %d of %d %s", max_tokens, cut.sum(), len(cut), unit)
        told.add(max_tokens)


def tell_cut_by_library(model, inputs: list, unit: str) -> None:
    """`tell_cut` for the first inputs of a model of sentence-transformers, which cuts without a word. Prompts are not counted.

    Args:
        inputs: texts, or pairs of texts.
    """
    known = vars(model).get("counted_cut", 0)
    tokenizer, longest = getattr(model, "tokenizer", None), model.max_seq_length or float("inf")
    if inputs and known < CHECKED and getattr(tokenizer, "is_fast", False) and longest < float("inf"):
        vars(model)["counted_cut"] = known + len(inputs)
        # A copy: the model's own has to truncate, in other threads too.
        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        backend.no_truncation()
        backend.no_padding()
        lengths = [len(read.ids) for read in backend.encode_batch(inputs[: CHECKED - known])]
        tell_cut(model, np.array(lengths) > longest, longest, unit)


def moved(batch, device: torch.device):
    """A batch with its tensors on a device, at any depth of dictionaries; what is no tensor stays as it is."""
    if isinstance(batch, dict):
        return {name: moved(part, device) for name, part in batch.items()}
    return batch.to(device, non_blocking=True) if torch.is_tensor(batch) else batch
