"""Training: transformers.Trainer with step-addressed batches, losses over the whole optimiser batch, and exact resume.

Trainer gives the optimiser, schedule, clipping, precision, devices and progress bars. Ours is what it lacks: one item of its loader
is a whole optimiser batch, a function of the step alone; dropout is seeded by the step; and a checkpoint is complete or does not
exist. So a run that is killed at any moment and started again ends in the same weights, byte for byte, as one that was not.

Under torchrun every process takes some micro-batches of each optimiser batch, and their gradients are added: the weights of one process,
but for the order of the sums. A checkpoint says nothing of the number of processes, and any number goes on from it.
"""

import hashlib
import json
import logging
import math
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from . import hub, inputs, losses, metrics, packing, ranks, runs
from .weights import seeded, whole_folder

MARKER = "complete.json"
WAIT = 24 * 3600  # seconds that processes wait for one another: as long as the first one evaluates
BEST = "best.safetensors"
LOGGED = ("loss", "learning_rate", "grad_norm", "tokens", "seconds")
log = logging.getLogger(__name__)


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
        model: a `heads.PairEncoder`, or one with a `micro_loss` of its own and `loss_weights`, the weight of each of its parts.
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
    Several GPUs train together: in the run folder of a notebook their processes are started here (`ranks.launch`), elsewhere by torchrun.

    Raises: ValueError for checkpoints of other settings; FloatingPointError for a loss that is not finite; OSError naming the path;
        RuntimeError for processes that were started without knowing of each other.
    """
    ranks.check()
    if ranks.wanted(folder):
        ranks.launch(folder)  # what they leave is a checkpoint of the last step, taken up below
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
        ddp_backend="gloo" if ranks.count() > 1 and not gpu else None,
        ddp_timeout=WAIT,
        dataloader_num_workers=2 if gpu else 0,
        seed=seed,
        logging_steps=log_every,
        logging_nan_inf_filter=False,
        save_steps=save_every,
        report_to="none",
        disable_tqdm=not (progress and ranks.first()),
    )
    settings = {"steps": len(batches), "peak_lr": peak_lr, "warmup_steps": warmup_steps, "weight_decay": weight_decay, "seed": seed}
    usual = {"mlm": mlm_weight, "objective": objective_weight} | ({"detection": detection_weight} if hasattr(model, "detection") else {})
    settings |= {f"{part}_weight": weight for part, weight in getattr(model, "loss_weights", usual).items()} | {"bf16": bf16}
    trainer = StepTrainer(model, arguments, batches, folder, settings, (evaluate, evaluate_every), (best_metric, patience))
    if packs and (gpu if compile is None else compile):
        model.compiled = torch.compile(model.backbone.forward, dynamic=True)
    if trainer.args.world_size > 1 and hasattr(batches, "micro_tokens"):
        batches.micro_tokens = ranks.share(batches[0]["micro"], batches.micro_tokens, trainer.args.world_size)
    with trainer.args.main_process_first(desc="taking up the newest checkpoint"):
        checkpoint = newest_checkpoint(folder / "checkpoints")
        trainer.continue_from(checkpoint)
    try:
        if not trainer.ended():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        model.compiled = None
    return trainer.finish()


def micro_loss(logits, micro: dict, batch: dict, mlm_weight: float = 1.0, objective_weight: float = 1.0, detection_weight: float = 50.0):
    """One micro-batch's share of the loss of its optimiser batch, and its parts: (L, [L_mlm, L_pair]), of ELECTRA [L_mlm, L_pair, L_td]."""
    pair, mlm, *detection = logits
    objective = losses.pair(pair, micro["labels"], batch.get("labels", batch["examples"]))
    masked = losses.mlm(mlm, micro["masked_targets"], batch["masked"]) if mlm is not None else torch.zeros_like(objective)
    parts = [masked, objective, *(losses.replaced_token(*found, batch["tokens"]) for found in detection)]
    loss = sum(weight * part for weight, part in zip((mlm_weight, objective_weight, detection_weight), parts))
    return loss, torch.stack(parts).detach()


@torch.no_grad()
def validate(model, sampler, size: int, micro_tokens: int, seed: int = 0) -> dict:
    """How well a model solves its own pre-training task on the first `size` examples of `sampler`.

    Every model reads what it reads in training: text with masks, and ELECTRA's discriminator text with its generator's samples in
    the places of the masks, which `seed` draws.

    Returns: accuracy, f1 (of class 1), majority (the share of the larger class), loss of the objective, mlm_loss, of ELECTRA
        detection_loss, and of a union the accuracy on the examples of each of its objectives, as accuracy_sdc.
    Paper: sentence_objectives, section 5.3 (pre-training task difficulty).
    """
    batches = inputs.PretrainingBatches(lambda epoch: sampler, 1, 1, micro_tokens, seed)
    labels, predictions, members, parts, counts = [], [], [], [], []
    training, device = model.training, next(model.parameters()).device
    model.eval()
    with seeded(seed, [device] if device.type == "cuda" else []):
        for numbers in tqdm(np.array_split(np.arange(size), -(-size // 512)), desc="validation", unit=" batches"):
            batch = batches.made_of([(0, numbers)])
            for micro in batch["micro"]:
                micro = {name: tensor.to(device) for name, tensor in micro.items()}
                logits = model(micro)
                parts.append(micro_loss(logits, micro, {"masked": 1, "examples": 1, "tokens": 1})[1].tolist())
                labels.append(micro["labels"].flatten().cpu())
                if "members" in micro:
                    members.append(micro["members"].cpu())
                predictions.append(logits[0].argmax(-1).flatten().cpu())
            counts.append([batch["masked"], batch["labels"], batch["tokens"]])
    model.train(training)
    means = (sum(map(np.array, parts)) / np.maximum(np.sum(counts, 0), 1)[: len(parts[0])]).tolist()
    labels, predictions = torch.cat(labels), torch.cat(predictions)
    found = metrics.classification(labels.numpy(), predictions.numpy())
    for number, member in enumerate(sampler.members if members else []):
        if (its := torch.cat(members) == number).any():
            found[f"accuracy_{member.rule.__name__}"] = (labels == predictions)[its].double().mean().item()
    return {**found, "loss": means[1], "mlm_loss": means[0]} | dict(zip(["detection_loss"], means[2:]))


def step_seed(seed: int, step: int, micro: int = 0) -> int:
    """The seed of the dropout of a step's micro-batch, and of what ELECTRA's generator puts in."""
    named = f"{seed} {step}" + (f" {micro}" if micro else "")
    return int.from_bytes(hashlib.blake2b(named.encode(), digest_size=7).digest())


class StepTrainer(Trainer):
    """Trainer whose loader gives whole optimiser batches, and whose checkpoints are complete or absent."""

    def __init__(self, model, arguments, batches, folder, settings, evaluation, stopping):
        arguments._n_gpu = min(arguments.n_gpu, 1)  # DataParallel would cut our batches by row; many GPUs have a process each
        super().__init__(model, arguments, train_dataset=batches, callbacks=[_Schedule(evaluation[1] if evaluation[0] else 0)])
        self.remove_callback(PrinterCallback)
        self.folder, self.settings, self.dev = folder, settings, evaluation[0]
        self.metric, self.patience = f"eval_{stopping[0]}", stopping[1]
        self.step, self.tokens, self.seconds, self.waiting, self.rows, self.cut = 0, 0, 0.0, 0.0, [], False
        self.parts = [name.removesuffix("_weight") for name in settings if name.endswith("_weight")]
        self.sums = torch.zeros(len(self.parts) + 1, device=self.args.device)  # of the loss's parts and steps since the last log
        self.started, self.board = time.monotonic(), None

    # -------------------------------------------------------------- the step

    def get_train_dataloader(self):
        workers = self.args.dataloader_num_workers
        return DataLoader(self.train_dataset, 1, collate_fn=_only, num_workers=workers, pin_memory=self.args.device.type == "cuda")

    def get_batch_samples(self, *given):
        asked = time.monotonic()
        found = super().get_batch_samples(*given)
        if self.state.global_step > self.step:  # the first is the start of the workers
            self.waiting += time.monotonic() - asked
        return found

    def _moved(self, value):
        if isinstance(value, dict):
            return {name: self._moved(part) for name, part in value.items()}
        return value.to(self.args.device, non_blocking=True) if torch.is_tensor(value) else value

    def training_step(self, model, inputs, num_items_in_batch=None):
        self.model.train()
        if self.cut:
            inputs = self.train_dataset[self.state.global_step]  # the loader's workers still make larger micro-batches
        try:
            total, parts = self._gradients(inputs)
        except torch.OutOfMemoryError as error:
            self._halve(inputs, error)
            return self.training_step(model, inputs)
        if self.args.world_size > 1:
            self._add_gradients()
        self.tokens += inputs["tokens"]
        self.sums += torch.cat([parts, parts.new_full([1], float(self.is_world_process_zero()))])
        return total

    def _gradients(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of this process' micro-batches; the loss and its parts, each a share of the whole batch's.

        Not through DistributedDataParallel's own forward: losses use heads outside of it, and a micro-batch may lack a head altogether.
        """
        weights = [self.settings[f"{part}_weight"] for part in self.parts]
        total, parts = torch.zeros((), device=self.args.device), self.sums.new_zeros(len(self.parts))
        for number in ranks.assigned(batch["micro"], self.args.world_size)[self.args.process_index]:
            # Seeded by the step, dropout needs no saved generator: a checkpoint has no random state to lose or to unpickle.
            torch.manual_seed(step_seed(self.args.seed, self.state.global_step, number))
            micro = {name: self._moved(value) for name, value in batch["micro"][number].items()}
            loss, part = getattr(self.model, "micro_loss", micro_loss)(self.model(micro), micro, batch, *weights)
            self.accelerator.backward(loss)
            total, parts = total + loss.detach(), parts + part
        return total, parts

    def _add_gradients(self) -> None:
        """The sum over all processes; what has no gradient in any of them is left without, as one process would leave it."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        has = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8, device=self.args.device)
        distributed.all_reduce(has, distributed.ReduceOp.MAX)
        found = [parameter for parameter, known in zip(parameters, has.tolist()) if known]
        for parameter in found:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = [parameter.grad for parameter in found]
        summed = parameters_to_vector(gradients)
        distributed.all_reduce(summed)
        vector_to_parameters(summed, gradients)

    def _halve(self, batch: dict, error: Exception) -> None:
        """Half as large micro-batches from here on; the step is begun again, and its examples stay the same."""
        self.model.zero_grad()
        torch.cuda.empty_cache()
        largest, self.cut = max(map(ranks.size, batch["micro"])), True
        before = tokens = getattr(self.train_dataset, "micro_tokens", largest)
        found = largest
        while self.args.world_size == 1 and tokens > 1 and found == largest:
            tokens = self.train_dataset.micro_tokens = tokens // 2
            found = max(map(ranks.size, self.train_dataset[self.state.global_step]["micro"]))
        if found == largest:
            raise torch.OutOfMemoryError(f"micro-batches of {before} tokens do not fit into memory: give a smaller micro_tokens") from error
        log.warning("out of memory with micro-batches of %d tokens: going on with %d", before, tokens)

    # -------------------------------------------------------------- what is logged

    def log(self, logs: dict, *rest) -> None:
        if "loss" in logs:
            *sums, steps = self._all_sums()
            self.sums.zero_()
            logs |= {f"{part}_loss": summed / steps for part, summed in zip(self.parts, sums)}
            logs["loss"] = sum(self.settings[f"{part}_weight"] * logs[f"{part}_loss"] for part in self.parts)
            logs |= {"tokens": self.tokens, "seconds": round(self._seconds(), 2)}
            if not math.isfinite(logs["loss"]):
                raise FloatingPointError(f"step {self.state.global_step}: the loss is {logs['loss']}, expected a finite number")
        known = (*LOGGED, *(f"{part}_loss" for part in self.parts))
        row = {name: value for name, value in logs.items() if name in known or name.startswith("eval_")}
        if row:
            super().log(logs, *rest)
            self._write({"step": self.state.global_step, **row})

    def _all_sums(self) -> list[float]:
        """Of the loss's parts and the steps since the last log, over all processes."""
        summed = self.sums.clone()
        if self.args.world_size > 1:
            distributed.all_reduce(summed)
        return summed.tolist()

    def _write(self, row: dict) -> None:
        self.rows.append(row)
        if not self.is_world_process_zero():
            return
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        self.board = self.board or SummaryWriter(self.folder / "tensorboard", purge_step=self.step + 1)
        for name, value in row.items():
            self.board.add_scalar(name, value, row["step"])
        self.board.flush()

    def _seconds(self) -> float:
        return self.seconds + time.monotonic() - self.started

    # -------------------------------------------------------------- evaluation and early stopping: functions of the log

    def evaluate(self, *_, **__) -> dict:
        self.model.eval()
        found = [self.dev(self.model) if self.is_world_process_zero() else None]
        if self.args.world_size > 1:  # one measures, so that all stop at the same step
            broadcast_object_list(found)
        metrics = {f"eval_{name}": float(value) for name, value in found[0].items()}
        if self.patience is not None and self.metric not in metrics:
            raise ValueError(f"evaluate should give {self.metric[5:]}, to stop by; it gave {', '.join(m[5:] for m in metrics)}")
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self.patience is not None and self.best() is self.rows[-1] and self.is_world_process_zero():
            with whole_folder(self.folder / "checkpoints" / "best") as part:
                save_model(self.model, str(part / "model.safetensors"))
        if self.ended():
            self.control.should_training_stop = self.control.should_save = True
        return metrics

    def best(self) -> dict | None:
        """The log's row with the best metric, the first of equals."""
        return max((row for row in self.rows if self.metric in row), key=lambda row: row[self.metric], default=None)

    def ended(self) -> bool:
        """Whether nothing is left to do: the last step is done, or `patience` evaluations brought nothing better."""
        if max(self.step, self.state.global_step) == self.settings["steps"]:
            return True
        evaluated = [row["step"] for row in self.rows if self.metric in row]
        return self.patience is not None and bool(evaluated) and sum(step > self.best()["step"] for step in evaluated) >= self.patience

    def finish(self) -> dict:
        best = self.best() if self.patience is not None else None
        self.accelerator.wait_for_everyone()
        if best is not None:
            load_model(self.model, self.folder / "checkpoints" / "best" / "model.safetensors")
        self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)  # forward without autocast again
        if self.board:
            self.board.close()
        best = best and {"step": best["step"], self.metric[5:]: best[self.metric]}
        steps, seconds, waiting = max(self.step, self.state.global_step), round(self._seconds(), 2), round(self.waiting, 3)
        return {"steps": steps, "tokens": self.tokens, "seconds": seconds, "waiting": waiting, "best": best, "log": self.rows}

    # -------------------------------------------------------------- checkpoints: safetensors and JSON, never a pickle

    def _save_checkpoint(self, *_) -> None:
        checkpoints, summed = self.folder / "checkpoints", self._all_sums()
        if not self.args.should_save:
            return
        with whole_folder(checkpoints / f"checkpoint-{self.state.global_step}") as part:
            save_model(self.model, str(part / "model.safetensors"))
            state = self.optimizer.state_dict()["state"]
            tensors = {f"{n}.{name}": value.contiguous() for n, values in state.items() for name, value in values.items()}
            save_file(tensors, part / "optimizer.safetensors")
            self.state.save_to_json(str(part / "trainer_state.json"))
            progress = {"step": self.state.global_step, "tokens": self.tokens, "seconds": self._seconds(), "rows": self.rows}
            progress |= {"settings": self.settings, "sums": summed, "scheduler": self.lr_scheduler.state_dict()}
            (part / "progress.json").write_text(json.dumps(progress), encoding="utf-8")
            sums = {path.name: hub.sha256(path) for path in sorted(part.iterdir())}
            (part / MARKER).write_text(json.dumps(sums, indent=1), encoding="utf-8")
        for old in _checkpoints(checkpoints)[2:]:
            shutil.rmtree(old, ignore_errors=True)

    def continue_from(self, checkpoint: Path | None) -> None:
        """Take up a checkpoint's log and counters and, where training has ended, its weights; otherwise Trainer loads those."""
        if checkpoint is not None:
            progress = json.loads((checkpoint / "progress.json").read_text(encoding="utf-8"))
            if progress["settings"] != self.settings:
                raise ValueError(f"{checkpoint} is of a run with {progress['settings']}, got {self.settings}")
            self.step, self.tokens, self.seconds, self.rows = (progress[key] for key in ("step", "tokens", "seconds", "rows"))
            if self.is_world_process_zero():
                self.sums.copy_(torch.tensor(progress["sums"]))
            self._load_from_checkpoint(checkpoint)
        if not self.is_world_process_zero():
            return
        lines = "".join(json.dumps(row) + "\n" for row in self.rows)
        runs.atomically(self.folder / "log.jsonl", lambda path: path.write_text(lines, encoding="utf-8"))

    def _load_from_checkpoint(self, checkpoint, model=None) -> None:
        load_model(self.model, Path(checkpoint) / "model.safetensors")

    def _load_optimizer_and_scheduler(self, checkpoint) -> None:
        if checkpoint is None:
            return
        scheduler = json.loads((Path(checkpoint) / "progress.json").read_text(encoding="utf-8"))["scheduler"]
        self.lr_scheduler.load_state_dict(scheduler)
        state = self.optimizer.state_dict()  # its groups are this run's own: only the rate moves
        for group, rate in zip(state["param_groups"], scheduler["_last_lr"]):
            group["lr"] = rate
        for key, tensor in load_file(Path(checkpoint) / "optimizer.safetensors").items():
            number, name = key.split(".")
            state["state"].setdefault(int(number), {})[name] = tensor.clone()  # the file's own memory otherwise
        self.optimizer.load_state_dict(state)

    def _load_rng_state(self, checkpoint) -> None:
        pass  # every step seeds itself


class _Schedule(TrainerCallback):
    """Evaluation every so many steps; evaluation, log and checkpoint after the last one."""

    def __init__(self, evaluate_every: int | None):
        self.every = evaluate_every

    def on_step_end(self, args, state, control, **_):
        last = state.global_step == state.max_steps
        if self.every != 0 and (last or (self.every and state.global_step % self.every == 0)):
            control.should_evaluate = True
        if last:
            control.should_log = control.should_save = True


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint. What a killed run left unfinished is removed.

    Raises: ValueError for a pickle among the checkpoints, which are left as they are.
    """
    if pickled := sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in hub.PICKLES):
        raise ValueError(
            f"{folder} holds {', '.join(pickled)}: a pickle can run any code when it is opened, so it is refused. No checkpoint of ours "
            "has one: every step seeds itself, and optimiser states are safetensors. Take the checkpoint of another program away; weights "
            'whose author you trust are converted once: python -c "from transformers import AutoModelForMaskedLM as M; '
            "M.from_pretrained('<folder>', use_safetensors=False).save_pretrained('converted')\", and given as model=converted"
        )
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.former")):
        shutil.rmtree(leftover)
    for checkpoint in _checkpoints(folder):
        if is_complete(checkpoint):
            return checkpoint
        log.warning("%s is unfinished or damaged: removed", checkpoint)
        shutil.rmtree(checkpoint)
    return None


def is_complete(checkpoint: Path) -> bool:
    """Whether a checkpoint holds exactly the files that its marker lists, with the same content."""
    marker = checkpoint / MARKER
    if not marker.is_file():
        return False
    try:
        listed = json.loads(marker.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return listed == {path.name: hub.sha256(path) for path in checkpoint.iterdir() if path.name != MARKER}


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]), reverse=True)


def _only(items: list) -> dict:
    return items[0]
