"""Saved models of sentence-transformers: what kind they are, and opening them without pickles and without code of theirs."""

from pathlib import Path

import torch
from huggingface_hub import snapshot_download

from . import checkpoints, files, hub, weight_shapes
from .spelling import printable

MODULES = "modules.json"
READ = (".json", ".jinja", ".txt", ".model", ".safetensors")  # files of a saved model that are read
LIBRARY = "sentence_transformers."
ROUTERS = ("Router", "Asym")  # modules with folders of modules of their own


def folder(name: str | Path) -> Path:
    """The folder of a model: a folder itself, that of a run, of the mirror, or the hub's files without pickles.

    Raises: FileNotFoundError for an unknown name; ValueError for files that are not those of the model's list of hashes.
    """
    path = Path(checkpoints.source(name))
    if path.is_dir():
        return path
    try:
        path = Path(snapshot_download(str(name), allow_patterns=[f"*{ending}" for ending in READ]))
    except Exception as error:
        reason = hub.unreachable(str(name), error)
        raise FileNotFoundError(f"{printable(str(name))}: no such folder, and {reason}") from error
    checkpoints.check_files(path)
    return path


def kind_of(path: Path) -> str | None:
    """The class that a folder was saved from, such as SentenceTransformer or CrossEncoder; None without modules.json."""
    if not (path / MODULES).is_file():
        return None
    config = path / "config_sentence_transformers.json"
    usual = "SentenceTransformer"  # before version 5 the file did not name the class
    return files.json_object(config, model_type=str).get("model_type", usual) if config.is_file() else usual


def open_as(kind: type, path: Path, name, **options):
    """`kind(path)` in float32: from safetensors, with modules of sentence-transformers alone, without a network.

    Args:
        kind: sentence_transformers.SentenceTransformer or CrossEncoder.
    Raises: ValueError for pickled, damaged or absent weights, and for modules of another package, which are not imported.
    """
    modules = modules_of(path, name) if (path / MODULES).is_file() else [{"type": "Transformer", "path": ""}]
    for module in modules:
        place = path / module["path"]
        routed = place.glob("*/") if module["type"].endswith(ROUTERS) else ()
        for weights in (place, *routed):
            _refuse_pickle(weights, name, kind.__name__)
        if module["type"].endswith("Transformer"):
            checkpoints.refuse_pickle(place, name)
        weight_shapes.check_config(place, name)
    strict = {"trust_remote_code": False, "local_files_only": True}
    with checkpoints.reading(path, name):
        model = kind(str(path), model_kwargs={"dtype": torch.float32, "use_safetensors": True}, **strict, **options)
    for place, module in zip(modules, model):
        if type(module).__name__ != "Transformer":
            continue
        # On the device `meta` the weights take no memory.
        options = {"config": module.model.config, "device_map": {"": "meta"}}
        whole, fresh = checkpoints.with_head(type(module.model), path / place["path"], name, **options)
        if fresh and module.transformer_task != "feature-extraction":  # else it may be a pooler, which is not used
            raise ValueError(f"{name}: weights lack the head of a {type(whole).__name__}: a trained head is expected")
    return model


def modules_of(path: Path, name) -> list[dict[str, str]]:
    """The modules that a folder names, each with `type` and `path`.

    Raises: ValueError for a file of another form, and for a module that is not of sentence-transformers.
    """
    location = f"{path.name}/{MODULES}"
    modules = files.parsed((path / MODULES).read_text(encoding="utf-8"), location)
    fits = lambda entry: isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("type", "path"))
    if not isinstance(modules, list) or not all(map(fits, modules)):
        raise ValueError(f"{name}: {location}: a list of modules with type and path expected, got {str(modules)[:80]}")
    for module in modules:
        if not module["type"].startswith(LIBRARY):
            raise ValueError(
                f"{name}: {location} names {module['type']}, which is not part of sentence-transformers: modules "
                f"{LIBRARY}* are expected, because others run code that is not installed here"
            )
    return modules


def _refuse_pickle(path: Path, name, kind: str) -> None:
    """Refuse a module whose weights are pickled."""
    pickled = sorted(file.name for file in path.glob("*") if file.suffix in hub.PICKLES)
    if pickled and not any(path.glob("model*.safetensors")):
        raise ValueError(
            f"{name}: {', '.join(pickled)} can run any code when it is opened, so it is refused. If you trust its author, convert it "
            f"once: python -c \"from sentence_transformers import {kind} as M; M('{name}').save_pretrained('converted')\""
        )


def fingerprint(path: Path, kind: str, *settings) -> str:
    """A hash of settings (plain data) and of all files of a model that are read.

    Files, because the weights in memory can include a fresh pooler.
    """
    read = sorted(file for file in path.rglob("*") if file.suffix in READ)
    hashes = {file.relative_to(path).as_posix(): hub.sha256(file) for file in read}
    return checkpoints.fingerprint_of_weights([kind, hashes, *settings])
