"""Checkpoints: where the weights of a model are, writing them, and reading them from safetensors, never from a pickle.

A pickled checkpoint can run any code when it is opened.
"""

import contextlib
import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .. import plugins
from . import disk, hub, model_folders, weight_shapes
from .spelling import printable

HEAD = "head.safetensors"
log = logging.getLogger(__name__)
# Else transformers asks a bot to convert a pickle, and loads what the bot proposes, before the model's owner has seen it.
os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"


@dataclass(frozen=True)
class SavedModel:
    """A model that the package of experiments keeps; its function `resolve(name or folder) -> SavedModel | None` is found by `plugins`.

    Args:
        folder: of the model, or the part of it that was named. check: raises ValueError for files that were changed since.
        trained_by: the name of what trained it. max_tokens, rank_by, calibration: those of its training; None where it has none.
    """

    folder: Path
    check: Callable[[], None]
    trained_by: str | None = None
    max_tokens: int | None = None
    rank_by: str | None = None
    calibration: dict | None = None


def saved_model(name: str | Path) -> SavedModel | None:
    """The model of a finished experiment by its name or folder; None for any other. Raises: what the package of experiments raises."""
    return plugins.load("models", "runs")(name)


def source(name: str | Path) -> str:
    """The path of a `saved_model`, of a folder or of a mirrored hub id; else the hub id itself, for `from_pretrained`.

    The files of a saved model are checked, and those of an exported one.
    Raises: ValueError for files that were changed since, and what `saved_model` raises; FileNotFoundError for a path that does not exist.
    """
    saved = saved_model(name)
    if saved is None and not Path(name).is_dir() and str(name).startswith(("/", ".", "~")):
        raise FileNotFoundError(f"{name}: no such folder")
    path = str(saved.folder) if saved else hub.model_path(name)
    check_files(Path(path))
    return path


def check_files(path: Path) -> None:
    """Check the model in a folder if a list of hashes belongs to it: that of an export, or of the package that keeps it."""
    if (path / disk.LIST).is_file():
        advice = f"; if you changed this folder on purpose, delete its {disk.LIST}"
        disk.check_all(path, disk.read_json(path / disk.LIST).get("files"), disk.LIST, advice)
    if saved := saved_model(path):
        saved.check()


def from_pretrained(auto, path, name, **options):
    """`auto.from_pretrained` without remote code; its errors name the model.

    Args:
        auto: AutoTokenizer, or a transformers class of models.
        path: of `source(name)`.
    Raises: FileNotFoundError for an unknown name; ValueError for damaged or pickled weights, and for a config.json whose sizes are not
        those of the weights.
    """
    if auto is not transformers.AutoTokenizer:
        model_folders.refuse_odd(path, name)
    weight_shapes.check_config(Path(path), name)
    with reading(path, name):
        loaded = auto.from_pretrained(path, trust_remote_code=False, **options)
        config = getattr(loaded[0] if isinstance(loaded, tuple) else loaded, "config", None)
        for key, value in config.to_dict().items() if config is not None else ():
            # torch accepts a NaN as a dropout until it is used.
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"config.json has a {key} that is no number")
    if not Path(path).is_dir() and isinstance(file := try_to_load_from_cache(str(path), "config.json"), str):
        hub.commits[str(path)] = Path(file).parent.name
    return loaded


@contextlib.contextmanager
def reading(path, name) -> Iterator[None]:
    """Whatever another library raises on reading a model becomes an error that names the model.

    Raises: FileNotFoundError for an unknown name; ValueError for damaged or pickled weights, and for all else.
    """
    try:
        with quiet():
            yield
    except SafetensorError as error:
        raise ValueError(f"{name}: the weights in {path} are damaged or cut short ({error})") from error
    except OSError as error:
        if "safetensors" in str(error) and _has_no(str(path), "model.safetensors"):
            raise ValueError(_pickled(name)) from error
        absent = "" if Path(path).is_dir() else "no such folder, and "
        raise FileNotFoundError(f"{printable(str(name))}: {absent}{hub.unreachable(str(name), error)}") from error
    # A damaged config.json or tokenizer.json ends in an error of whatever uses its value.
    except BaseException as error:
        is_rust_panic = type(error).__name__ == "PanicException"  # which is no Exception
        if not isinstance(error, Exception) and not is_rust_panic:
            raise
        place = "it" if str(name) == str(path) else path
        raise ValueError(f"{name}: {place} cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def _has_no(path: str, file: str) -> bool:
    """Whether a folder lacks a file, or a repository of the hub is known to; without a network it may not be known."""
    cached = try_to_load_from_cache(path, file)  # None: not known
    return Path(path).is_dir() or not isinstance(cached, str | None)


def with_head(auto, path, name, **options):
    """The model in float32, and whether its head is fresh.

    Raises: ValueError for a broken checkpoint: one that lacks weights of the backbone other than a pooler's, has more layers than the
        model, or, if it was saved here, any weights that the model does not use.
    """
    refuse_pickle(path, name)
    if not Path(path).is_dir() and (downloaded := _downloaded(str(path))):
        weight_shapes.check_config(downloaded, name)
    strict = {"dtype": torch.float32, "use_safetensors": True}
    informed = {"ignore_mismatched_sizes": True, "output_loading_info": True}
    model, info = from_pretrained(auto, path, name, **options, **strict, **informed)
    absent = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    backbone = "" if model.base_model is model else f"{model.base_model_prefix}."
    broken = sorted(key for key in absent if key.startswith(backbone) and "pooler" not in key)
    if broken:
        raise ValueError(
            f"{name} lacks {len(broken)} weights of a {type(model.base_model).__name__}, the first is {broken[0]}"
        )
    ours = (Path(path) / HEAD).is_file() or saved_model(path) is not None
    stacks = {weight_shapes.stack_of(key.removeprefix(backbone)) for key in model.state_dict()} - {None}
    unused = [
        key for key in info["unexpected_keys"] if ours or weight_shapes.stack_of(key.removeprefix(backbone)) in stacks
    ]
    if unused := sorted(key for key in unused if "pooler" not in key):
        raise ValueError(
            f"{name} is damaged: {len(unused)} of its weights have no place in a {type(model.base_model).__name__} of its config.json, "
            f"the first is {unused[0]}"
        )
    return model, bool(absent)


def _downloaded(hub_id: str) -> Path | None:
    """The hub's cache with a model's config and weights; None where they cannot be had, which loading the model explains."""
    try:
        config = hf_hub_download(hub_id, "config.json")
        try:
            hf_hub_download(hub_id, "model.safetensors")
        except EntryNotFoundError:
            index = Path(hf_hub_download(hub_id, "model.safetensors.index.json"))
            for shard in set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()):
                hf_hub_download(hub_id, shard)
    except Exception:
        return None
    return Path(config).parent


def refuse_pickle(path, name) -> None:
    """Refuse a folder without safetensors; the error shows how to convert a pickle in it."""
    folder = Path(path)
    if folder.is_dir() and not any(folder.glob("model*.safetensors")):
        pickles = sorted(file for file in folder.iterdir() if file.suffix in hub.PICKLES)
        other = f"{name}: {folder.name} holds no model.safetensors, it is {model_folders.what_it_is(folder)}"
        raise ValueError(_pickled(name, pickles[0]) if pickles else other)
    model_folders.refuse_odd(path, name)


def _pickled(name, path: Path | None = None) -> str:
    """The refusal of a pickle, with the command that converts it where it lies, or that fetches it first.

    Tied weights share memory, which safetensors refuse: each is copied.
    """
    fetch = "" if path else f"hf download {name} --local-dir converted, then "
    fetched = f". Give the folder as the model, or move it to {name} in the folder that {hub.MIRROR} names" * (not path)
    path = path or Path("converted/pytorch_model.bin")
    return (
        f"{name} has no safetensors weights. A pickled checkpoint can run any code when it is opened, so it is refused. If you trust "
        f'its author, convert it once: {fetch}python -c "import torch; from safetensors.torch import save_file; '
        f"weights = torch.load('{path}', map_location='cpu', weights_only=True); "
        "save_file({name: value.clone().contiguous() for name, value in weights.items()}, "
        f"'{path.with_name('model.safetensors')}', metadata={{'format': 'pt'}})\"" + fetched
    )


def saved_heads(path) -> dict[str, torch.Tensor]:
    """The tensors of `head.safetensors` next to a backbone, in a folder or on the hub; none where there is no such file.

    Raises: ValueError for damaged tensors.
    """
    file = Path(path) / HEAD
    if not Path(path).is_dir():
        try:
            file = Path(hf_hub_download(str(path), HEAD))
        except LocalEntryNotFoundError:
            if not _has_no(str(path), HEAD):
                log.warning(
                    "%s: without a network it is not known whether it has a %s; its heads start fresh", path, HEAD
                )
            return {}
        except EntryNotFoundError:
            return {}
    try:
        return load_file(file) if file.is_file() else {}
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged or cut short: {error}") from error


def parameters_of(model: torch.nn.Module, heads: Iterable[str]) -> dict[str, torch.nn.Parameter]:
    """The parameters of some heads of a model by name, without heads that the model lacks."""
    modules = {head: getattr(model, head) for head in heads if getattr(model, head) is not None}
    return dict(named for head, module in modules.items() for named in module.named_parameters(head))


def save_model(
    folder: str | Path, model: torch.nn.Module, heads: dict | None, add_files: Callable | None = None
) -> Path:
    """Write a model's backbone, which AutoModel loads, its heads and tokenizer, and the files that a kind of model adds: all or nothing.

    Args:
        heads: parameters by name, for `head.safetensors`; None writes no such file.
    """
    with disk.whole_folder(folder) as part, quiet():
        model.backbone.save_pretrained(part)
        if heads is not None:
            tensors = {name: parameter.detach().contiguous() for name, parameter in heads.items()}
            save_file(tensors, part / HEAD)
        model.tokenizer.save_pretrained(part)
        if add_files is not None:
            add_files(part)
    return Path(folder)


@torch.no_grad()
def restore(parameters: dict[str, torch.nn.Parameter], saved: dict[str, torch.Tensor], name) -> None:
    """Copy saved tensors into the parameters of the same names. Raises: ValueError where one is absent or of another shape."""
    for key, parameter in parameters.items():
        if key not in saved or saved[key].shape != parameter.shape:
            came = tuple(saved[key].shape) if key in saved else "nothing"
            raise ValueError(f"{name}: {HEAD} should hold {key} {tuple(parameter.shape)}, got {came}")
        parameter.copy_(saved[key])


def fingerprint_of_weights(settings, *modules: torch.nn.Module | None) -> str:
    """A hash of settings (plain data) and of the names, shapes and values of all weights of some modules."""
    whole = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for module in filter(None, modules):
        for name, tensor in module.state_dict().items():
            whole.update(f"\0{name} {tuple(tensor.shape)} {tensor.dtype}\0".encode())
            whole.update(tensor.detach().reshape(-1).view(torch.uint8).cpu().numpy())
    return whole.hexdigest()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and reports of transformers: `loading.load` reports which weights of the whole model are fresh."""
    logger = transformers.utils.logging
    level, bars = logger.get_verbosity(), logger.is_progress_bar_enabled()
    logger.set_verbosity_error()
    logger.disable_progress_bar()
    try:
        yield
    finally:
        logger.set_verbosity(level)
        if bars:
            logger.enable_progress_bar()


@contextlib.contextmanager
def seeded(seed: int, gpus: Iterable[torch.device] = ()) -> Iterator[None]:
    """torch's random numbers from this seed; afterwards torch's generators are as before."""
    with torch.random.fork_rng(devices=list(gpus)):
        torch.manual_seed(seed)
        yield
