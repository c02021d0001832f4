"""Folders that are no models, or models in a form that is not read here: what they hold, and what to give instead."""

import json
from pathlib import Path

from .spelling import printable

ADAPTER = (
    "a LoRA adapter without its model: load both with peft, call merge_and_unload(), save the result with "
    "save_pretrained, and give that folder"
)
OTHER_FORMS = {
    "gguf": "weights in the form of llama.cpp (GGUF)",
    "onnx": "weights in the form of ONNX",
    "h5": "weights in the form of TensorFlow",
    "msgpack": "weights in the form of Flax",
}
TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")  # files that a tokenizer can be made of
MOST = 6  # files that a message names


def what_it_is(folder: Path) -> str:
    """What a folder without safetensors or without config.json holds, in words, and what to give instead."""
    if (folder / "adapter_config.json").is_file():
        return ADAPTER
    for ending, form in OTHER_FORMS.items():
        if any(folder.rglob(f"*.{ending}")):
            return f"{form}, which is not read here: give a folder with config.json and model.safetensors"
    if steps := sorted(folder.glob("checkpoint-*/config.json"), key=lambda file: file.stat().st_mtime):
        return f"checkpoints of a training: give one of them, such as {steps[-1].parent.name}"
    names = sorted(file.name for file in folder.iterdir())
    if names and all("token" in name or name.startswith(("vocab", "merges")) for name in names):
        return "a tokenizer without a model: give a folder with config.json and model.safetensors"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    files = ", ".join(names[:MOST]) or "nothing"
    return f"no model: config.json and model.safetensors expected, it holds {files}{more}"


def refuse_odd(path: str | Path, name: str | Path) -> None:
    """Raises: ValueError for a folder without config.json, and for quantised weights."""
    folder = Path(path)
    if not folder.is_dir():
        return
    if not (folder / "config.json").is_file():
        raise ValueError(f"{name} is {what_it_is(folder)}")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return  # whoever reads it next names the damage
    if isinstance(config, dict) and config.get("quantization_config"):
        settings = config["quantization_config"]
        method = settings.get("quant_method", "a method without a name") if isinstance(settings, dict) else "?"
        method = printable(str(method))[:40]
        raise ValueError(f"{name} has quantised weights ({method}), which are not read here: give the model without")


def refuse_no_tokenizer(path: str | Path, name: str | Path) -> None:
    """Raises: ValueError for a folder that has settings of a tokenizer, and not the tokenizer."""
    folder = Path(path)
    if (folder / "tokenizer_config.json").is_file() and not any(any(folder.glob(form)) for form in TOKENIZERS):
        raise ValueError(
            f"{name}: tokenizer.json is missing, only its settings (tokenizer_config.json) are there: "
            "save the tokenizer with tokenizer.save_pretrained, or copy tokenizer.json into the folder"
        )
