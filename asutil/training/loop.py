"""Training: `train` moves a model by whole optimiser batches, and resumes exactly.

An item of the loader is a whole optimiser batch, a function of the step alone; dropout is seeded by the step; a checkpoint is complete or
does not exist. So a run that is killed at any moment and started again ends in the same weights: on a CPU byte for byte, on a GPU up to the
order of sums. Under torchrun every process takes some micro-batches of each optimiser batch, and their gradients are added: the weights are
those of one process, but for the order of the sums, and for the masks of dropout where micro-batches are cut otherwise. Any number of
processes can continue from a checkpoint.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from accelerate.utils import convert_to_fp32
from torch import nn

from ..inputs import packing
from ..io import private
from . import checkpoints, cpu, processes
from .options import Options
from .trainer import StepTrainer

# Passes through a model below which it is not compiled: that takes half a minute or more, and saves a fifth of a pass.
# Measured on an H200 with RoBERTa-base (benchmarks/training_step.py), 65,536 tokens a pass: a thousand take three minutes.
WORTH_COMPILING = 1000
log = logging.getLogger(__name__)


def train(model, batches, folder: str | Path, **options) -> dict:
    """Train `model` in place, from the newest complete checkpoint of `folder` if there is one.

    L = mlm_weight * L_mlm + objective_weight * L_pair; for ELECTRA L + detection_weight * L_td
    AdamW (.9, .999, 1e-8), linear warm-up and decay, gradients clipped to 1.
    Paper: sentence_objectives, section 5.1 and appendix B.
    Args:
        model: a `pair.PairEncoder`, or another model with `losses`, the parts of a micro-batch's loss, and `loss_weights`, theirs.
        batches: `len` steps; `batches[step]`, a function of step, is {"micro": [micro-batch, ...], "examples": int, "masked": int,
            "tokens": int}, "labels": int where an example has several, and perhaps "content", a checksum. Batches of no stated layout are
            packed, where the backbone can take that. `batches.micro_tokens` is lowered if there are fewer micro-batches than processes, or
            if a micro-batch does not fit into a GPU's memory.
        folder: of the run: gets `log.jsonl`, `tensorboard/` and `checkpoints/` (the last two, and the best).
        options: the fields of `options.Options`; peak_lr, warmup_steps, weight_decay, seed, save_every and log_every are required.
    Returns: {"steps", "tokens", "seconds", "waiting" (seconds after this call's first step without data), "best": {"step", best_metric} or
        None, "log": [one dict per line of log.jsonl]}.
    Several GPUs train together under torchrun, or in processes that `options.launch` starts.

    Raises: ValueError for checkpoints of other settings or data, and for batches that the model would misread (`agreement.require`);
        FloatingPointError for a loss that is not finite; OSError naming the path; RuntimeError for processes that were started without
        knowing of each other.
    Deviation: D-124, the norm of all gradients is clipped; D-126, patience; D-127, AdamW for Adam; D-128, bf16 for fp16.
    """
    options, folder = Options(**options), Path(folder)
    processes.check()
    if not len(batches):
        raise ValueError("no steps to train: the batches are empty")
    if options.launch is not None:
        model.cpu()  # else this process holds memory of the GPU on which the first of them trains
        torch.cuda.empty_cache()
        options.launch()
    trainer = StepTrainer(model, batches, folder, options)
    _lay_out(trainer)
    with trainer.process.main_process_first():  # it removes what is damaged
        trainer.resume(checkpoints.newest_checkpoint(folder / "checkpoints"))
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, model, "compiled", None)
        if trainer.settings["bf16"]:
            stack.enter_context(_in_bf16(model, trainer.device))
        if trainer.device.type == "cpu" and not getattr(model, "compiled", None):
            stack.enter_context(cpu.fast(model, trainer.dropout, trainer.settings["bf16"]))
        if not trainer.ended():
            trainer.run()
    return trainer.finish()


def _lay_out(trainer: StepTrainer) -> None:
    """Pack where the backbone allows it, compile on a GPU, and give every process a micro-batch."""
    model, batches = trainer.model, trainer.batches
    packs = hasattr(model, "compiled") and packing.fits(model.backbone)
    if packs and getattr(batches, "layout", "stated") is None:
        batches.layout = "packed"
    if packs and _compiles(trainer):
        torch.compiler.reset()  # what earlier trainings of this process compiled counts against a limit
        model.compiled = _compiled(model.backbone.forward)
    if processes.count() > 1 and hasattr(batches, "micro_tokens"):
        batches.micro_tokens = processes.share(batches[0]["micro"], batches.micro_tokens, processes.count())


def _compiles(trainer: StepTrainer) -> bool:
    """As the option says; without one on a GPU, where the whole training is long enough."""
    if trainer.options.compile is not None:
        return trainer.options.compile
    return trainer.device.type == "cuda" and trainer.steps * len(trainer.batches[0]["micro"]) >= WORTH_COMPILING


def _compiled(forward: Callable) -> Callable:
    """A compiled forward; where that fails, as without a C compiler or on an old GPU, there is a warning, and it runs as it is."""
    compiled = torch.compile(forward, dynamic=True)
    failed = False

    def call(**given):
        nonlocal failed
        if not failed:
            try:
                return compiled(**given)
            except private.compile_errors() as error:
                failed = True
                reason = str(error).strip().partition("\n\n")[0]  # what follows is on debugging torch
                log.warning(
                    "the model is not compiled (%s): it is trained as it is, with the same results",
                    " ".join(reason.split()),
                )
        return forward(**given)

    return call


@contextlib.contextmanager
def _in_bf16(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model's forward in bf16 (autocast), with outputs in float32; on a CPU, dev is scored in float32 as after the training."""
    forward = model.forward

    def autocast(*arguments, **options):
        with torch.autocast(device.type, torch.bfloat16, enabled=model.training or device.type == "cuda"):
            outputs = forward(*arguments, **options)
        return convert_to_fp32(outputs)

    model.forward = autocast
    try:
        yield
    finally:
        model.forward = forward
