"""The sizes in a config.json against the shapes of the weights next to it, before any module is made from them.

The headers of safetensors files are short and name every tensor with its shape. Without this check, a config of a million layers makes
modules until the memory is full, and one of fewer layers than the weights have leaves the others out.
"""

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open

from . import files

LAYERS = (
    "num_hidden_layers",
    "n_layers",
    "n_layer",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
    "num_decoder_layers",
)
# Each of these is a dimension of some tensor.
DIMENSIONS = (
    *("vocab_size", "hidden_size", "d_model", "dim", "n_embd", "embedding_size", "intermediate_size"),
    *("hidden_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "in_features", "out_features"),
)
POSITIONS = re.compile(r"(?:^|\.)(?:position_embeddings|embed_positions|wpe)\.weight$")
TYPES = re.compile(r"token_type_embeddings\.weight$")
TABLES = {  # number of rows -> the table that has them; many models have none
    **dict.fromkeys(("max_position_embeddings", "n_positions"), POSITIONS),
    **dict.fromkeys(("max_encoder_position_embeddings", "max_decoder_position_embeddings"), POSITIONS),
    "type_vocab_size": TYPES,
}
SPARE_ROWS = (0, 2)  # BART's table of positions has two more than its config says
STACKED = re.compile(r"(.*?)\.(\d+)\.")  # a tensor of a stack of layers
# Names of numbers of modules.
COUNTED = re.compile(r"(?:n|num|encoder|decoder)_(?:\w+_)?(?:layers?|blocks?|groups|experts)$|depth$")
FEW = 100  # modules that any model may have
LARGEST = 10**7  # of any other whole number in a config, unless the model has more weights than that


def check_config(folder: Path, name) -> None:
    """Compare a config.json with the weights in its folder; a folder without either is not looked at.

    Args:
        name: of the model, for the message.
    Raises: ValueError with both numbers.
    """
    if not (folder / "config.json").is_file() or not (shapes := _shapes(folder)):
        return
    try:
        config = files.json_object(folder / "config.json")
    except (ValueError, OSError):
        return  # whoever reads it next says what is wrong
    layers = _layers(shapes)
    for key in LAYERS:
        value = config.get(key)
        absent = "decoder" in key and not any("decoder" in tensor for tensor in shapes)
        if _is_number(value) and layers and not absent and "num_hidden_groups" not in config and value not in layers:
            came = " or ".join(f"{count:,}" for count in sorted(layers))
            raise ValueError(f"{name}: config.json has {key} {value:,}, its weights have {came} layers")
    dimensions = {size for shape in shapes.values() for size in shape}
    of_experts = any("experts" in tensor for tensor in shapes)
    for key in DIMENSIONS:
        value = config.get(key)
        unused = of_experts and key == "intermediate_size"  # experts have a size of their own
        if _is_number(value) and value > 0 and not unused and value not in dimensions:
            nearest = min(dimensions, key=lambda size: abs(size - value))
            raise ValueError(f"{name}: config.json has {key} {value:,}, the nearest size of its weights is {nearest:,}")
    for key, table in TABLES.items():
        value = config.get(key)
        rows = {shape[0] for tensor, shape in shapes.items() if table.search(tensor) and len(shape) == 2}
        if _is_number(value) and rows and not any(value + spare in rows for spare in SPARE_ROWS):
            came = " or ".join(f"{count:,}" for count in sorted(rows))
            raise ValueError(f"{name}: config.json has {key} {value:,}, its weights have a table of {came} rows")
    weights = sum(math.prod(shape) for shape in shapes.values())
    for key, value in _numbers(config):
        most = max(len(shapes), FEW) if COUNTED.match(key) else max(weights, LARGEST)
        if value > most:
            raise ValueError(f"{name}: config.json has {key} {value:,}, at most {most:,} fit its weights")


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in the model's weights, in one file or in several."""
    whole = folder / "model.safetensors"
    paths = [whole] if whole.is_file() else sorted(folder.glob("model-*.safetensors"))
    shapes = {}
    for path in paths:
        # A damaged file is left out: reading the weights says what is wrong.
        with contextlib.suppress(SafetensorError, OSError), safe_open(path, framework="numpy") as weights:
            shapes |= {tensor: tuple(weights.get_slice(tensor).get_shape()) for tensor in weights.keys()}  # noqa: SIM118
    return shapes


def _layers(shapes: dict) -> set[int]:
    """The lengths of all stacks of layers: tensors that differ in their first number, which counts from 0 without a gap."""
    stacks = defaultdict(set)
    for tensor in shapes:
        if match := STACKED.match(tensor):
            stacks[match[1]].add(int(match[2]))
    return {len(numbers) for numbers in stacks.values() if max(numbers) + 1 == len(numbers)}


def stack_of(tensor: str) -> str | None:
    """The stack that a tensor belongs to; None for a tensor of no stack."""
    match = STACKED.match(tensor)
    return match[1] if match else None


def _is_number(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(config, key: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number of a config with its key, those of inner objects and lists too."""
    if _is_number(config):
        yield key, config
    elif isinstance(config, dict):
        for name, value in config.items():
            yield from _numbers(value, name)
    elif isinstance(config, list):
        for value in config:
            yield from _numbers(value, key)
