"""What the book says of the embedded backbone, counted again from its record, its log and its weights."""

import hashlib
import json
from pathlib import Path

from .plots import Drawn

WAY = "masked language modelling"


def folder(root: Path) -> Path:
    return root / "asutil" / "pydocs" / "pydocs_roberta"


def record(root: Path) -> dict:
    return json.loads((folder(root) / "record.json").read_text("utf-8"))


def made(root: Path):
    """How it was made and what it is; the size and the hash are those of the weights as they lie there."""
    one, weights = record(root), (folder(root) / "model.safetensors").read_bytes()
    figures, settings = one["figures"], one["settings"]
    corpus, masked = figures["corpus"], settings["mlm_share"] or 0.15
    size = f"{figures['parameters']:,} parameters with heads for training"
    read = f"{figures['tokens']:,} tokens in {settings['steps']:,} steps, {100 * masked:.0f}% of them masked"
    hours = f"{figures['training_seconds'] / 3600:.1f} hours of one core"
    yield "The record of the embedded backbone."
    yield ["Size", f"{size}; {len(weights) / 1e6:.1f} MB in half precision"]
    yield ["Text", f"pydocs: {corpus['documents']:,} documents, {corpus['tokens']:,} tokens"]
    yield ["Read", read]
    yield ["Loss on held-out documents", f"{one['metrics']['validation']['mlm_loss']:.2f} nats a masked token"]
    yield ["Time", f"{hours}, shared with other work, precision {settings['precision']}"]
    yield ["Fingerprint of the text", one["inputs"]["corpus"]]
    yield ["SHA-256 of the weights", hashlib.sha256(weights).hexdigest()]
    yield ["Commit", one["commit"]]
    yield ["Versions", ", ".join(f"{name} {version}" for name, version in one["versions"].items())]


def loss(root: Path):
    yield "The training loss by step. It stays on a plateau first and falls afterwards."


def loss_by_step(root: Path) -> Drawn:
    """The one line of its plot, a point for each line of the log."""
    log = [json.loads(text) for text in (folder(root) / "log.jsonl").read_text("utf-8").splitlines()]
    yield ["optimiser step", "training loss", WAY], [(WAY, [(at["step"], at["loss"]) for at in log])]


def command(root: Path):
    """What makes it again: what was given to the run, in its order, and the run that becomes the backbone."""
    one = record(root)
    given = " ".join(f"-p {name} {value}" for name, value in one["given"].items())
    run = f"OMP_NUM_THREADS=1 papermill notebooks/pretrain.ipynb {given}"
    yield f"{run} asutil embedded {one['name']}"
