"""Linear layers in float32 on AMD processors with AVX-512, by oneDNN.

PyTorch computes them by MKL, which uses only AVX2 on these processors. oneDNN, by which PyTorch computes bf16, uses AVX-512.
"""

import contextlib
import functools
import platform
from pathlib import Path

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ..io import private


class Products(TorchFunctionMode):
    """While it is entered, `torch.nn.functional.linear` is computed by oneDNN: y = x W^T + b.

    Values differ from PyTorch's by rounding. Other devices and precisions are not changed.
    Args:
        constant: no weight changes in here; one that is used often is then kept in oneDNN's own order, which changes no value.
    Example:
        >>> x, layer = torch.randn(3, 4), torch.nn.Linear(4, 2)
        >>> with Products():
        ...     y = layer(x)
        >>> torch.allclose(y, x @ layer.weight.T + layer.bias, atol=1e-6)
        True
    """

    def __init__(self, constant: bool = False):
        super().__init__()
        self.ordered = _Ordered() if constant else None

    def __torch_function__(self, function, types, arguments=(), options=None):
        called = functools.partial(linear, ordered=self.ordered) if function is F.linear else function
        return called(*arguments, **(options or {}))


def on(device: torch.device, constant: bool = False) -> contextlib.AbstractContextManager:
    """`Products` where that is faster, else nothing."""
    return Products(constant) if device.type == "cpu" and faster() else contextlib.nullcontext()


def linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, ordered: "_Ordered | None" = None
) -> torch.Tensor:
    """`torch.nn.functional.linear`, by oneDNN for float32 on a CPU. Shapes: (..., I), (O, I), (O,) -> (..., O)"""
    given = (input, weight, bias)
    fits = all(part is None or (part.dtype == torch.float32 and part.device.type == "cpu") for part in given)
    if not fits or input.dim() < 2 or not input.numel() or torch.is_autocast_enabled("cpu"):
        return F.linear(*given)
    rows = input.flatten(0, -2)
    if torch.is_grad_enabled():
        product = _Linear.apply(rows, weight, bias)
    else:
        product = _product(rows, weight if ordered is None else ordered.of(weight, len(rows)), bias)
    return product.view(*input.shape[:-1], -1)


class _Ordered:
    """A model's weights in the order in which oneDNN reads them, each from the use on after which that pays."""

    USES = 8

    def __init__(self):
        self.known = {}  # by identity: the weight, which keeps its identity its own, its uses, and what is read

    def of(self, weight: torch.Tensor, rows: int) -> torch.Tensor:
        """The weight, or the same in oneDNN's order. A single row is computed in another way, whose values depend on the order."""
        if rows == 1 or not isinstance(weight, nn.Parameter):
            return weight
        _, uses, read = self.known.get(id(weight), (weight, 0, weight))
        if uses == self.USES:
            read = private.in_onednn_order(weight, rows)
        self.known[id(weight)] = weight, uses + 1, read
        return read


@functools.cache
def faster() -> bool:
    """Whether oneDNN is there, and faster than MKL: on a processor of AMD with AVX-512."""
    there = torch.backends.mkl.is_available() and private.onednn_products()
    return there and torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in _processor()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    return information.read_text() if information.exists() else platform.processor()


def _product(input, weight, bias=None):
    return private.onednn_linear(input, weight, bias)


class _Linear(torch.autograd.Function):
    """dx = dy W,  dW = dy^T x,  db = sum dy. Shapes: (N, I), (O, I), (O,) -> (N, O)"""

    @staticmethod
    def forward(context, rows, weight, bias):
        context.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(context, given):
        (rows, weight), wanted = context.saved_tensors, context.needs_input_grad
        return (
            _product(given, weight.t()) if wanted[0] else None,
            _product(given.t(), rows.t()) if wanted[1] else None,
            given.sum(0) if wanted[2] else None,
        )
