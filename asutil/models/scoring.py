"""Where a model is run, and how where nothing is learnt."""

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from . import memory, products

A_CORE = 4  # micro-batches a core from which on cores work on their own: with fewer, one could wait long for another


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
        raise ValueError(
            f"bf16: {torch.cuda.get_device_name(device)} does not compute in it; take precision=fp32, or another GPU"
        )
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
        with torch.no_grad(), narrow, memory.kept(), products.on(device, constant=True):
            yield device
    finally:
        model.train(training)


def computed(work: Callable, micro_batches: list[dict], device: torch.device) -> Iterator[tuple[dict, torch.Tensor]]:
    """Each micro-batch with `work(micro_batch on the device)`, in their order, inside `evaluating`.

    On a CPU, where there are enough of them, each core computes micro-batches of its own: cores that share one wait for each other after
    every operation. Results are the same up to rounding.
    Args:
        work: called in several threads at once; it must not change the model.
    """

    def alone(micro_batch):
        return work({name: tensor.to(device, non_blocking=True) for name, tensor in micro_batch.items()})

    cores = torch.get_num_threads()
    if device.type != "cpu" or cores == 1 or len(micro_batches) < A_CORE * cores:
        for micro_batch in micro_batches:
            yield micro_batch, alone(micro_batch)
        return
    product = products.on(device, constant=True)

    def in_a_thread(micro_batch):
        with torch.no_grad(), product:  # each thread has these modes of its own
            return alone(micro_batch)

    torch.set_num_threads(1)  # here, too: threads that have shared an operation keep a core busy for a while
    try:
        with ThreadPoolExecutor(cores, "scoring", initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from zip(micro_batches, pool.map(in_a_thread, micro_batches))
    finally:
        torch.set_num_threads(cores)
