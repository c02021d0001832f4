"""Training: transformers.Trainer with step-addressed batches, losses over the whole optimiser batch, and exact resume.

Trainer gives the optimiser, schedule, clipping, precision, devices and progress bars. Ours is what it lacks: one item of its loader
is a whole optimiser batch, a function of the step alone; dropout is seeded by the step; and a checkpoint is complete or does not
exist. So a run that is killed at any moment and started again ends in the same weights, byte for byte, as one that was not.

Under torchrun every process takes some micro-batches of each optimiser batch, and their gradients are added: the weights of one process,
but for the order of the sums. A checkpoint says nothing of the number of processes, and any number goes on from it.
"""

import contextlib
from pathlib import Path

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import TrainingArguments

from ..inputs import batches as input_batches
from ..inputs import packing
from ..io.checkpoints import seeded
from ..metrics import rankings
from . import processes
from .trainer import StepTrainer, micro_loss, newest_checkpoint

WAIT = 24 * 3600  # seconds that processes wait for one another: as long as the first one evaluates


def train(
    model,
    batches,
    folder: str | Path,
    *,
    peak_lr: float,
    warmup_steps: int,
    weight_decay: float,
    seed: int,
    save_every: int,
    log_every: int,
    mlm_weight: float = 1.0,
    objective_weight: float = 1.0,
    detection_weight: float = 50.0,
    precision: str = "auto",
    compile: bool | None = None,
    evaluate=None,
    evaluate_every: int | None = None,
    patience: int | None = None,
    best_metric: str = "map",
    progress: bool = True,
) -> dict:
    """Train `model` in place, from the newest complete checkpoint of `folder` if there is one.

    L = mlm_weight * L_mlm + objective_weight * L_pair, of ELECTRA + detection_weight * L_td
    AdamW (.9, .999, 1e-8), linear warm-up and decay, gradients clipped to 1.
    Paper: sentence_objectives, section 5.2 and appendix B.
    Args:
        model: a `pair.PairEncoder`, or one with a `micro_loss` of its own and `loss_weights`, the weight of each of its parts.
        batches: `len` steps; `batches[step]`, a function of step, is {"micro": [micro-batch, ...], "examples": int, "masked": int,
            "tokens": int}, and "labels": int where an example has several. On a GPU batches of no stated layout are packed, where the
            backbone can take that. `batches.micro_tokens` is lowered where there are fewer micro-batches than processes, and where a GPU's
            memory does not hold one.
        folder: of the run: `log.jsonl`, `tensorboard/` and `checkpoints/` (the last two, and the best) go below it.
        precision: "fp32", "bf16", or "auto": bf16 on a GPU that has it, else fp32.
        compile: whether the backbone is compiled for packed micro-batches; on a GPU it is, where this is left out.
        evaluate: model -> {metric: value}, called every `evaluate_every` steps and after the last one.
        patience: stop after so many evaluations without a better `best_metric`, and end with the best weights.
    Returns: {"steps", "tokens", "seconds", "waiting" (seconds after this call's first step without data), "best": {"step",
        best_metric} or None, "log": [one dict a line of log.jsonl]}.
    Several GPUs train together: in the run folder of a notebook their processes are started here (`processes.launch`), elsewhere by
    torchrun.

    Raises: ValueError for checkpoints of other settings; FloatingPointError for a loss that is not finite; OSError naming the path;
        RuntimeError for processes that were started without knowing of each other.
    Deviation: D-124, the norm of all gradients is clipped; D-126, patience; D-127, AdamW for Adam; D-128, bf16 for fp16.
    """
    processes.check()
    if processes.wanted(folder):
        processes.launch(folder)  # what they leave is a checkpoint of the last step, taken up below
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f'precision: "auto", "fp32" or "bf16" expected, got {precision!r}')
    if not len(batches):
        raise ValueError("no steps to train: the batches are empty")
    if patience is not None and evaluate is None:
        raise ValueError("patience needs `evaluate`, which gives the metric to wait for")
    folder, gpu = Path(folder), torch.cuda.is_available()
    bf16 = precision == "bf16" or (precision == "auto" and gpu and torch.cuda.is_bf16_supported())
    packs = hasattr(model, "compiled") and packing.fits(model.backbone)
    if gpu and packs and getattr(batches, "layout", "stated") is None:
        batches.layout = "packed"
    arguments = TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        max_steps=len(batches),
        per_device_train_batch_size=1,
        learning_rate=peak_lr,
        warmup_steps=warmup_steps,
        weight_decay=weight_decay,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        adam_beta1=0.9,
        adam_beta2=0.999,
        adam_epsilon=1e-8,
        max_grad_norm=1.0,
        bf16=bf16,
        use_cpu=not gpu,
        ddp_backend="gloo" if processes.count() > 1 and not gpu else None,
        ddp_timeout=WAIT,
        dataloader_num_workers=2 if gpu else 0,
        seed=seed,
        logging_steps=log_every,
        logging_nan_inf_filter=False,
        save_steps=save_every,
        report_to="none",
        disable_tqdm=not (progress and processes.first()),
    )
    settings = {
        "steps": len(batches),
        "peak_lr": peak_lr,
        "warmup_steps": warmup_steps,
        "weight_decay": weight_decay,
        "seed": seed,
    }
    usual = {"mlm": mlm_weight, "objective": objective_weight} | (
        {"detection": detection_weight} if hasattr(model, "detection") else {}
    )
    settings |= {f"{part}_weight": weight for part, weight in getattr(model, "loss_weights", usual).items()} | {
        "bf16": bf16
    }
    trainer = StepTrainer(
        model, arguments, batches, folder, settings, (evaluate, evaluate_every), (best_metric, patience)
    )
    if packs and (gpu if compile is None else compile):
        model.compiled = torch.compile(model.backbone.forward, dynamic=True)
    if trainer.args.world_size > 1 and hasattr(batches, "micro_tokens"):
        batches.micro_tokens = processes.share(batches[0]["micro"], batches.micro_tokens, trainer.args.world_size)
    with trainer.args.main_process_first(desc="taking up the newest checkpoint"):
        checkpoint = newest_checkpoint(folder / "checkpoints")
        trainer.continue_from(checkpoint)
    try:
        if not trainer.ended():
            with packing.plain_attention(model) if bf16 and not gpu else contextlib.nullcontext():
                trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        model.compiled = None
    return trainer.finish()


@torch.no_grad()
def validate(model, sampler, size: int, micro_tokens: int, seed: int = 0) -> dict:
    """How well a model solves its own pre-training task on the first `size` examples of `sampler`.

    Every model reads what it reads in training: text with masks, and ELECTRA's discriminator text with its generator's samples in
    the places of the masks, which `seed` draws; a model without a masked-language-model head text without masks.

    Returns: accuracy, f1 (of class 1), majority (the share of the larger class); auc and rank_1 (`order_metrics`); loss of the objective,
        mlm_loss where there are masks, of ELECTRA detection_loss, and of a union the accuracy on the examples of each of its
        objectives, as accuracy_sdc.
    Paper: sentence_objectives, section 5.3 (pre-training task difficulty).
    Deviation: D-72; D-106, auc and rank_1.
    """
    masks = getattr(model, "generator", getattr(model, "mlm", True)) is not None
    batches = input_batches.PretrainingBatches(
        lambda epoch: sampler, 1, 1, micro_tokens, seed, **({} if masks else {"mlm_share": 0})
    )
    rows, labels, logits, members, parts, counts = [], [], [], [], [], []
    training, device = model.training, next(model.parameters()).device
    model.eval()
    with seeded(seed, [device] if device.type == "cuda" else []):
        for numbers in tqdm(np.array_split(np.arange(size), -(-size // 512)), desc="validation", unit=" batches"):
            batch = batches.made_of([(0, numbers)])
            for micro in batch["micro"]:
                micro = {name: tensor.to(device) for name, tensor in micro.items()}
                outputs = model(micro)
                parts.append(micro_loss(outputs, micro, {"masked": 1, "examples": 1, "tokens": 1})[1].tolist())
                rows.append(numbers[micro["rows"].cpu().numpy()])
                labels.append(micro["labels"].cpu())
                logits.append(outputs[0].float().cpu())
                if "members" in micro:
                    members.append(micro["members"].cpu())
            counts.append([batch["masked"], batch["labels"], batch["tokens"]])
    model.train(training)
    means = (sum(map(np.array, parts)) / np.maximum(np.sum(counts, 0), 1)[: len(parts[0])]).tolist()
    order = np.concatenate(rows).argsort()
    labels, logits = torch.cat(labels)[order].numpy(), torch.cat(logits)[order].numpy()
    predictions = logits.argmax(-1)
    found = rankings.classification(labels.ravel(), predictions.ravel()) | order_metrics(
        sampler, labels, logits[..., 1] - logits[..., 0]
    )
    for number, member in enumerate(sampler.members if members else []):
        if (its := torch.cat(members)[order].numpy() == number).any():
            found[f"accuracy_{member.rule.__name__}"] = float((labels == predictions)[its].mean())
    return (
        {**found, "loss": means[1]}
        | ({"mlm_loss": means[0]} if masks else {})
        | dict(zip(["detection_loss"], means[2:]))
    )


def order_metrics(sampler, labels: np.ndarray, scores: np.ndarray) -> dict:
    """What the order of examples says of a model, whatever its threshold; nothing of fewer examples than a group has or of positives alone.

    A group is the examples of one anchor, of mspp one example with its k candidates; examples of a group that is not whole are left out.
    Returns: auc over examples; rank_1, the share of groups whose best score is a positive's (at a tie a negative's), and rank_1_chance,
        that of a random order. The AUC of a random order is 0.5.
    Shapes: labels, scores (N,), of mspp (N, k)
    """
    each = labels.shape[1] if labels.ndim == 2 else 1 + sampler.negatives
    labels, scores, whole = labels.ravel(), scores.ravel(), labels.size // each * each
    if not whole or labels.all():
        return {}
    ranked = rankings.ranking(np.arange(whole) // each, labels[:whole], scores[:whole])
    return {"auc": rankings.auc(labels, scores), "rank_1": ranked.p_at_1, "rank_1_chance": float(labels[:whole].mean())}
