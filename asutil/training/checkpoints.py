"""Checkpoints of a training: complete or absent, safetensors and JSON, never a pickle."""

import json
import logging
import shutil
from pathlib import Path

from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn, optim

from ..io import disk, hub

MARKER = "complete.json"
KEPT = 2  # the newest checkpoints of a run
log = logging.getLogger(__name__)


def save(folder: Path, model: nn.Module, optimizer: optim.Optimizer, progress: dict) -> None:
    """Write `checkpoint-<step>` below a folder, and remove all but the two newest."""
    with disk.whole_folder(folder / f"checkpoint-{progress['step']}") as part:
        save_model(model, str(part / "model.safetensors"))
        state = optimizer.state_dict()["state"]
        tensors = {f"{n}.{name}": value.contiguous() for n, values in state.items() for name, value in values.items()}
        save_file(tensors, part / "optimizer.safetensors")
        (part / "progress.json").write_text(json.dumps(progress), encoding="utf-8")
        disk.write_json(part / MARKER, disk.hashes(part))
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def load(checkpoint: Path, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """Put a checkpoint's weights and optimiser state into a model and its optimiser."""
    load_model(model, checkpoint / "model.safetensors")
    state = optimizer.state_dict()  # the parameter groups stay this run's own
    for key, tensor in load_file(checkpoint / "optimizer.safetensors").items():
        number, name = key.split(".")
        state["state"].setdefault(int(number), {})[name] = tensor.clone()  # the file's own memory otherwise
    optimizer.load_state_dict(state)


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint. Unfinished and damaged ones are removed.

    Raises: ValueError for a pickle among the checkpoints; then nothing is removed.
    """
    pickles = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in hub.PICKLES)
    if pickles:
        raise ValueError(
            f"{folder} holds {', '.join(pickles)}: a pickle can run any code when it is opened, so it is refused. No "
            "checkpoint of ours has one: every step seeds itself, and optimiser states are safetensors. Take the "
            "checkpoint of another program away; weights whose author you trust are converted once: "
            'python -c "from transformers import AutoModelForMaskedLM as M; '
            "M.from_pretrained('<folder>', use_safetensors=False).save_pretrained('converted')\", and given as "
            "model=converted"
        )
    disk.sweep(folder)
    for checkpoint in _newest_first(folder):
        damage = damage_of(checkpoint)
        if damage is None:
            return checkpoint
        log.warning("%s is unfinished or damaged, and removed: %s", checkpoint, damage)
        shutil.rmtree(checkpoint)
    return None


def damage_of(checkpoint: Path) -> str | None:
    """Why a checkpoint is not what was saved, with both hashes of a file that changed; None for a whole one."""
    try:
        listed = disk.read_json(checkpoint / MARKER)
        for name in sorted(listed.keys() | {path.name for path in checkpoint.iterdir() if path.name != MARKER}):
            disk.check(checkpoint / name, listed.get(name))
    except (OSError, ValueError) as error:
        return str(error)
    return None


def whole(checkpoint: Path) -> Path:
    """The checkpoint itself. Raises: ValueError for a damaged one."""
    if damage := damage_of(checkpoint):
        raise ValueError(f"{damage}; delete {checkpoint.parent} to train anew")
    return checkpoint


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]), reverse=True)
