"""The registry of heads, and what the heads on the embeddings of several inputs share."""

from collections.abc import Callable

import torch
from torch import nn

from ..io.spelling import require_one_of
from ..registry import Registry

# What a head reads -> its key -> its class: the slots of a joint input, pairs in inputs of their own, the vectors of texts.
HEADS: dict[str, dict[str, type[nn.Module]]] = {reads: Registry("heads") for reads in ("slots", "pairs", "vectors")}


def head(key: str, reads: str) -> Callable[[type], type]:
    """A class decorator that registers a head. Raises: ValueError for a key that another one has."""

    def registered(made: type) -> type:
        HEADS[reads].add(key, made)
        return made

    return registered


class EvidenceHead(nn.Module):
    """What the four heads on [E_0 ... E_k] share: one linear layer, in float32 for a body of any precision.

    Args:
        form: "linear", as in the paper, or "released": dense, tanh and dropout before it, as in the authors' code.
    Deviation: D-76.
    """

    joined = 1  # embeddings that are scored together

    def __init__(self, hidden_size: int, classes: int = 2, form: str = "linear"):
        super().__init__()
        require_one_of("head_form", form, ("linear", "released"))
        self.form = form
        size = self.joined * hidden_size
        before = [nn.Dropout(0.1), nn.Linear(size, size), nn.Tanh(), nn.Dropout(0.1)] if form == "released" else []
        self.layers = nn.Sequential(*before, nn.Linear(size, classes))
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def scored(self, vectors: torch.Tensor) -> torch.Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            return self.layers(vectors.to(self.layers[-1].weight.dtype))
