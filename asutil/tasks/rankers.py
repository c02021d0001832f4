"""A fine-tuned model by its name, ready to rank."""

from pathlib import Path

import torch

from ..io import checkpoints, rundir
from ..models import embedder, heads, loading
from . import nearest
from .rank import Ranker


def load_ranker(name: str | Path, device: str | None = None):
    """A fine-tuned model, ready to rank: a finished run's name or folder, a model folder, or a hub id.

    Args:
        device: "cpu" or "cuda"; a GPU where there is one, if left out.
    Returns: a `rank.Ranker`; of a model that embeds each text by itself a `nearest.Nearest`.
    Raises: ValueError for a model that never learned to rank (its pair head would be random).
    """
    path = checkpoints.source(name)
    if embedder.saved_settings(path):
        return nearest.Nearest(embedder.load(name, device))
    if Path(path).name == "model" and not Path(path).is_dir():
        raise ValueError(
            f"{Path(path).parent.name} holds an untrained encoder as it was given: it keeps no model of its own"
        )
    model = loading.load(name)
    if model.HEADS[0] in model.fresh:
        raise ValueError(
            f"{name} has no {model.HEADS[0]} head: fine-tune it first (notebooks/finetune.ipynb -p model {name})"
        )
    folder = Path(path).parent
    record = rundir.read_record(folder) if (folder / "record.json").is_file() else {}
    settings = record.get("settings", {})
    if record.get("notebook") == "pretrain":
        raise ValueError(
            f"{name} learnt its pre-training task, not to rank: fine-tune it first (notebooks/finetune.ipynb -p model {name})"
        )
    if model.HEADS[0] in ("ie_1", "ae_1", *heads.POOLED):
        raise ValueError(f"{name} gives one label for a claim and all its evidence: it ranks nothing")
    model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return Ranker(model.eval(), settings.get("max_tokens"))
