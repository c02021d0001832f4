"""Folders of models: a backbone that AutoModel loads, `head.safetensors` with the heads above it, and the tokenizer."""

from collections.abc import Callable, Iterable
from pathlib import Path

from safetensors.torch import save_file
from torch import nn

from ..io import checkpoints, disk


def parameters_of(model: nn.Module, heads: Iterable[str]) -> dict[str, nn.Parameter]:
    """The parameters of some heads of a model by name, without heads that the model lacks."""
    modules = {head: getattr(model, head) for head in heads if getattr(model, head) is not None}
    return dict(named for head, module in modules.items() for named in module.named_parameters(head))


def save_model(
    folder: str | Path, model: nn.Module, heads: dict[str, nn.Parameter] | None, add_files: Callable | None = None
) -> Path:
    """Write a model's backbone, heads and tokenizer, and the files that a kind of model adds: all of it, or nothing.

    Args:
        heads: parameters by name; None writes no file of heads.
    """
    with disk.whole_folder(folder) as part, checkpoints.quiet():
        model.backbone.save_pretrained(part)
        if heads is not None:
            tensors = {name: parameter.detach().contiguous() for name, parameter in heads.items()}
            save_file(tensors, part / checkpoints.HEAD)
        model.tokenizer.save_pretrained(part)
        if add_files is not None:
            add_files(part)
    return Path(folder)


def restore(model: nn.Module, heads: Iterable[str], path: str | Path, name) -> None:
    """Copy the saved heads of a folder into a model. Raises: ValueError where one is absent or of another shape."""
    checkpoints.restore(parameters_of(model, heads), checkpoints.saved_heads(path), name)
