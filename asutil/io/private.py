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


def value_of_word(text: str):
    """The value that papermill makes of `-p name text`. Instead: its rules, True, False, None, int, float and text in this order."""
    from papermill.cli import _resolve_type

    return _resolve_type(text)
