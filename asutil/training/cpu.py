"""What makes training on a CPU fast: dropout from keyed random bits, plain attention, and memory that is kept (`models.memory`)."""

import contextlib
import logging

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..inputs import packing
from ..models import memory

log = logging.getLogger(__name__)


@contextlib.contextmanager
def fast(model, dropout: "KeyedDropout", bf16: bool = False):
    """Train `model` on a CPU in here: its masks come from `dropout`, its attention is plain, freed memory is kept."""
    if bf16 and torch.backends.cpu.get_cpu_capability() == "AVX2":
        log.warning(
            "precision bf16: this processor has no instructions for it (AVX-512 or AMX): steps take many times as long as in fp32"
        )
    # A layer that is computed again for the backward pass must draw the masks of its forward pass, as torch's own generator does.
    masks = contextlib.nullcontext() if packing.recomputes(model) else dropout
    with memory.kept(), masks, packing.plain_attention(model):
        yield


class KeyedDropout(TorchFunctionMode):
    """While it is entered, `torch.nn.functional.dropout` takes its masks from the stream that `begin` starts.

    x_i * m_i / (1 - p),  m_i = 0 with probability p, else 1
    An element costs 16 bits of SFC64, so p is met to 1/65,536, and a mask is the same on any number of threads.
    Example:
        >>> dropout = KeyedDropout()
        >>> def masked():
        ...     dropout.begin(3)
        ...     with dropout:
        ...         return functional.dropout(torch.ones(1000), 0.2)
        >>> masked().unique(), torch.equal(masked(), masked())
        (tensor([0.0000, 1.2500]), True)
    """

    def __init__(self):
        super().__init__()
        self.begin(0)

    def begin(self, seed: int) -> None:
        """Start the stream of masks of a micro-batch."""
        self.bits = np.random.SFC64(seed)

    def __torch_function__(self, function, types, arguments=(), options=None):
        called = self._dropout if function is functional.dropout else function
        return called(*arguments, **(options or {}))

    def _dropout(self, values: torch.Tensor, p: float, training: bool, inplace: bool) -> torch.Tensor:
        if not training or not 0 < p < 1:
            return functional.dropout(values, p, training, inplace)
        words = self.bits.random_raw(-(-values.numel() // 4)).view(np.int16)[: values.numel()]
        kept = torch.from_numpy(words).view(values.shape) >= round(p * 65536) - 32768
        scale = kept.to(values.dtype).mul_(1 / (1 - p))
        return values.mul_(scale) if inplace else values * scale
