"""The private names of other packages that this project uses, each with what could take its place.

A release may change them without notice: `tests/io/test_private.py` uses each for real, and finds one that is used elsewhere.
"""


def attention(config) -> str | None:
    """The attention function of a transformers config. Instead: nothing yet, `set_attn_implementation` of a model only sets it."""
    return getattr(config, "_attn_implementation", None)


def set_attention(config, name: str) -> None:
    """Choose the attention function. Instead: `model.set_attn_implementation`, which looks through all modules at every call."""
    config._attn_implementation = name


def flash_attention(*arguments, **options):
    """torch's flash attention over packed sequences. Instead: `torch.nn.attention.varlen`, once it takes a dropout."""
    import torch

    output, *_ = torch.ops.aten._flash_attention_forward(*arguments, **options)
    return output


def compile_errors() -> type[Exception]:
    """What a call of a compiled function raises where it cannot be compiled. Instead: RuntimeError, which catches more."""
    import torch

    return torch._dynamo.exc.TorchDynamoException


def onednn_products() -> bool:
    """Whether this torch has the next two operators. Instead of both: `torch.nn.functional.linear`, slower on some processors."""
    import torch

    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def onednn_linear(rows, weight, bias=None):
    """x W^T + b by oneDNN. Shapes: (N, I), (O, I), (O,) -> (N, O)"""
    import torch

    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


def in_onednn_order(weight, rows: int):
    """A weight in the order in which `onednn_linear` reads it fastest, for inputs of so many rows."""
    import torch

    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows)


def value_of_word(text: str):
    """The value that papermill makes of `-p name text`. Instead: its rules, True, False, None, int, float and text in this order."""
    from papermill.cli import _resolve_type

    return _resolve_type(text)
