"""The steps of a training: gradients of whole optimiser batches, AdamW, the log, early stopping, checkpoints."""

import contextlib
import json
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path

import torch
from safetensors.torch import load_model, save_model
from torch import distributed, nn
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm

from .. import draws
from ..io import disk
from ..io.checkpoints import fingerprint_of_weights
from ..models import scoring
from . import agreement, checkpoints, cpu, expectation, processes
from .optimiser import adamw, learning_rate
from .options import Options

CLIP = 1.0  # the largest norm of all gradients together
WARMUP_TOO_LONG = (
    "warm-up takes %d steps and the training has %d: the learning rate never reaches its peak, %g; set warmup_steps"
)
log = logging.getLogger(__name__)


def weighted(parts: torch.Tensor, weights: dict[str, float]) -> torch.Tensor:
    """L = sum_i w_i L_i"""
    return sum(weight * part for weight, part in zip(weights.values(), parts, strict=True))


def step_seed(seed: int, step: int, micro: int = 0) -> int:
    """The seed of the dropout of a step's micro-batch, and of what ELECTRA's generator puts in."""
    key = f"{seed} {step}" + (f" {micro}" if micro else "")
    return draws.text_hash(key)


class StepTrainer:
    """The steps of a training, from the newest checkpoint on, which needs no random state: dropout is seeded by the step."""

    def __init__(self, model: nn.Module, batches, folder: Path, options: Options):
        self.process = processes.state()
        self.device = self.process.device
        self.model, self.batches, self.folder, self.options = model.to(self.device), batches, folder, options
        self.steps, self.metric = len(batches), f"eval_{options.best_metric}"
        self.weights = options.loss_weights(model)
        names = ("peak_lr", "warmup_steps", "weight_decay", "seed", "best_metric")
        self.settings = {"steps": self.steps} | {name: getattr(options, name) for name in names}
        self.settings |= {f"{part}_weight": weight for part, weight in self.weights.items()} | {"bf16": options.bf16}
        kinds = {name: getattr(model, name, None) for name in ("embedding", "joint", "finding")}
        self.settings |= {name: asdict(kind) for name, kind in kinds.items() if is_dataclass(kind)}
        agreement.require(model, first := batches[0])
        self.settings["first_batch"] = first.get("content")  # None for batches that do not say it
        if options.warmup_steps >= self.steps > 0 and processes.first():
            log.warning(WARMUP_TOO_LONG, options.warmup_steps, self.steps, options.peak_lr)
        self.optimizer = adamw(model, options.peak_lr, options.weight_decay)
        self.dropout = cpu.KeyedDropout()
        self.step = self.resumed_at = self.tokens = 0
        self.seconds = self.waiting = 0.0  # of earlier processes; without data
        self.rows, self.board, self.smaller = [], None, False
        self.sums = torch.zeros(len(self.weights) + 1, device=self.device)  # loss's parts and steps since the last log
        self.started = self.saved_at = time.monotonic()
        self.save_is_due = False
        if processes.count() > 1:
            for tensor in (*model.parameters(), *model.buffers()):
                distributed.broadcast(tensor.data, 0)
        begun = vars(model).setdefault("begun", {})  # a cell that is run again has the weights of its first run
        self.begins_with = begun.get(folder) or fingerprint_of_weights(None, model)
        begun[folder] = self.begins_with

    def run(self) -> None:
        """Train to the last step, or until early stopping."""
        gpu, options = self.device.type == "cuda", self.options
        if gpu:
            processes.open_many_files()
        workers = {"num_workers": 2 if gpu else 0, "pin_memory": gpu}
        loader = DataLoader(self.batches, batch_size=None, sampler=range(self.step, self.steps), **workers)
        hidden = not (options.progress and processes.first())
        with tqdm(total=self.steps, initial=self.step, unit=" steps", disable=hidden, dynamic_ncols=True) as bar:
            roughly = "about" if options.patience is None else "at most"
            for batch in expectation.told(self._timed(loader), self.steps - self.step, bar, roughly):
                grad_norm, rate = self._take_step(batch)
                bar.update()
                last = self.step == self.steps
                if last or self.step % options.log_every == 0:
                    self._write_log(grad_norm, rate)
                    bar.set_postfix(loss=f"{self.rows[-1]['loss']:.4f}")
                evaluates = options.evaluate and (last or self.step % (options.evaluate_every or self.steps) == 0)
                if evaluates:
                    self._evaluate()
                ended = self.ended()
                best = evaluates and self.best() is self.rows[-1]  # its weights and its row are kept together
                if ended or best or self.save_is_due or self.step % options.save_every == 0:
                    self._save()
                if ended:
                    return

    def _timed(self, loader) -> Iterator[dict]:
        """The loader's batches; counts the time waiting for them, but for the first one, which starts the workers."""
        batches = iter(loader)
        yield next(batches)
        while True:
            asked = time.monotonic()
            batch = next(batches, None)
            self.waiting += time.monotonic() - asked
            if batch is None:
                return
            yield batch

    # -------------------------------------------------------------- a step

    def _take_step(self, batch: dict) -> tuple[torch.Tensor, float]:
        """Update the weights by one optimiser batch. Returns: norm of the unclipped gradients, learning rate."""
        self.model.train()
        if self.smaller:
            batch = self.batches[self.step]  # the loader's workers still make larger micro-batches
        parts = self._gradients_in_memory(batch)
        # By the clock of the first process: all of them save together.
        self.save_is_due = processes.first() and time.monotonic() - self.saved_at >= self.options.save_seconds
        if processes.count() > 1:
            self._add_gradients()
        grad_norm = clip_grad_norm_(self.model.parameters(), CLIP)
        rate = learning_rate(self.step, self.steps, self.options.peak_lr, self.options.warmup_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.model.zero_grad()
        self.step += 1
        self.tokens += batch["tokens"]
        self.sums += torch.cat([parts, parts.new_full([1], float(processes.first()))])
        return grad_norm, rate

    def _gradients_in_memory(self, batch: dict) -> torch.Tensor:
        """`gradients`, with smaller micro-batches where they do not fit into memory."""
        while True:
            with contextlib.suppress(torch.OutOfMemoryError):
                return self.gradients(batch)
            batch = self._halved(batch)  # outside of the handler, whose traceback would hold the activations

    def gradients(self, batch: dict) -> torch.Tensor:
        """Add the gradients of this process' micro-batches.

        Returns: the parts of their loss, each a share of the whole batch's.
        """
        parts = self.sums.new_zeros(len(self.weights))
        for number in processes.assigned(batch["micro"], processes.count())[self.process.process_index]:
            seed = step_seed(self.options.seed, self.step, number)
            torch.manual_seed(seed)
            self.dropout.begin(seed)
            micro = scoring.moved(batch["micro"][number], self.device)
            micro_parts = self.model.losses(self.model(micro), micro, batch)
            weighted(micro_parts, self.weights).backward()
            parts = parts + micro_parts.detach()
        return parts

    def _add_gradients(self) -> None:
        """Sum gradients over all processes; a parameter without a gradient in any of them stays without one.

        Whether to save is told along with the gradients, which costs no message of its own.
        """
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        flags = [*(parameter.grad is not None for parameter in parameters), self.save_is_due]
        flags = torch.tensor(flags, dtype=torch.uint8, device=self.device)
        distributed.all_reduce(flags, distributed.ReduceOp.MAX)
        *has_gradient, save_is_due = flags.tolist()
        self.save_is_due = bool(save_is_due)
        parameters = [parameter for parameter, has in zip(parameters, has_gradient) if has]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = [parameter.grad for parameter in parameters]
        total = parameters_to_vector(gradients)
        distributed.all_reduce(total)
        vector_to_parameters(total, gradients)

    def _halved(self, batch: dict) -> dict:
        """The same examples in micro-batches half as large, as in all steps from here on."""
        self.model.zero_grad()
        torch.cuda.empty_cache()
        size_before = size = max(map(processes.size, batch["micro"]))
        tokens_before = tokens = getattr(self.batches, "micro_tokens", size)
        while processes.count() == 1 and tokens > 1 and size == size_before:
            tokens = self.batches.micro_tokens = tokens // 2
            batch = self.batches[self.step]
            size = max(map(processes.size, batch["micro"]))
        if size == size_before:
            raise torch.OutOfMemoryError(
                f"micro-batches of {tokens_before} tokens do not fit into memory: give a smaller micro_tokens"
            )
        log.warning("out of memory with micro-batches of %d tokens: going on with %d", tokens_before, tokens)
        self.smaller = True
        return batch

    # -------------------------------------------------------------- the log

    def _write_log(self, grad_norm: torch.Tensor, rate: float) -> None:
        *totals, steps = self._all_sums()
        self.sums.zero_()
        means = {part: total / steps for part, total in zip(self.weights, totals)}
        loss = sum(weight * means[part] for part, weight in self.weights.items())
        if not math.isfinite(loss):
            raise FloatingPointError(f"step {self.step}: the loss is {loss}, expected a finite number")
        row = {"loss": loss, "grad_norm": grad_norm.item(), "learning_rate": rate}
        row |= {f"{part}_loss": mean for part, mean in means.items()}
        self._write(row | {"tokens": self.tokens, "seconds": round(self._seconds(), 2)})

    def _all_sums(self) -> list[float]:
        """The loss's parts and the steps since the last log, over all processes."""
        total = self.sums.clone()
        if processes.count() > 1:
            distributed.all_reduce(total)
        return total.tolist()

    def _write(self, values: dict) -> None:
        """A row of the log, in memory, in `log.jsonl` and in `tensorboard/`."""
        row = {"step": self.step} | values
        self.rows.append(row)
        if not processes.first():
            return
        with disk.naming(self.folder / "log.jsonl"):
            with (self.folder / "log.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
            self.board = self.board or SummaryWriter(self.folder / "tensorboard", purge_step=self.resumed_at + 1)
            for name, value in row.items():
                self.board.add_scalar(name, value, self.step)
            self.board.flush()
        if self.options.on_log is not None:
            self.options.on_log(dict(row))

    def _seconds(self) -> float:
        return self.seconds + time.monotonic() - self.started

    # -------------------------------------------------------------- evaluation and early stopping: functions of the log

    def _evaluate(self) -> None:
        self.model.eval()
        metrics = [self.options.evaluate(self.model) if processes.first() else None]
        if processes.count() > 1:  # one process measures, so that all stop at the same step
            distributed.broadcast_object_list(metrics)
        row = {f"eval_{name}": float(value) for name, value in metrics[0].items()}
        if self.options.patience is not None and self.metric not in row:
            came = ", ".join(metrics[0])
            raise ValueError(f"evaluate should give {self.options.best_metric}, to stop by; it gave {came}")
        if self.options.patience is not None and not math.isfinite(row[self.metric]):
            raise FloatingPointError(f"step {self.step}: evaluate gave {self.options.best_metric} {row[self.metric]}")
        self._write(row)
        if self.options.patience is not None and self.best() is self.rows[-1] and processes.first():
            with disk.whole_folder(self.folder / "checkpoints" / "best") as part:
                save_model(self.model, str(part / "model.safetensors"))
                disk.write_json(part / checkpoints.MARKER, disk.hashes(part))

    def best(self) -> dict | None:
        """The log's row with the best metric, the first of equals."""
        return max((row for row in self.rows if self.metric in row), key=lambda row: row[self.metric], default=None)

    def ended(self) -> bool:
        """Whether the last step is done, or `patience` evaluations brought nothing better."""
        if self.step == self.steps:
            return True
        best = self.best()
        if self.options.patience is None or best is None:
            return False
        later = [row for row in self.rows if self.metric in row and row["step"] > best["step"]]
        return len(later) >= self.options.patience

    def finish(self) -> dict:
        """What `train` returns; with patience the model gets its best weights back."""
        best = self.best() if self.options.patience is not None else None
        self.process.wait_for_everyone()
        if best is not None:
            load_model(self.model, checkpoints.whole(self.folder / "checkpoints" / "best") / "model.safetensors")
            best = {"step": best["step"], self.options.best_metric: best[self.metric]}
        if self.board:
            with disk.naming(self.folder / "tensorboard"):
                self.board.close()
        times = {"seconds": round(self._seconds(), 2), "waiting": round(self.waiting, 3)}
        return {"steps": self.step, "tokens": self.tokens, **times, "best": best, "log": self.rows}

    # -------------------------------------------------------------- checkpoints

    def _save(self) -> None:
        progress = {"step": self.step, "tokens": self.tokens, "seconds": self._seconds(), "rows": self.rows}
        progress |= {"settings": self.settings, "sums": self._all_sums(), "begins_with": self.begins_with}
        if processes.first():
            checkpoints.save(self.folder / "checkpoints", self.model, self.optimizer, progress)
        self.saved_at = time.monotonic()

    def resume(self, checkpoint: Path | None) -> None:
        """Continue from a checkpoint: its weights, optimiser, counters, log, and the precision that "auto" was where it was begun.

        Raises: ValueError, with both, for a checkpoint of other settings.
        """
        if checkpoint is not None:
            progress = json.loads((checkpoint / "progress.json").read_text(encoding="utf-8"))
            if self.options.precision == "auto":
                self.settings["bf16"] = scoring.require_bf16(progress["settings"].get("bf16", False), self.device)
            later = ("first_batch", "best_metric", "embedding", "joint", "finding")  # version 0.1.0 kept none
            begun = {name: self.settings[name] for name in later if name in self.settings} | progress["settings"]
            differ = [name for name in self.settings | begun if self.settings.get(name) != begun.get(name)]
            if differ:
                came = ", ".join(f"{name} {self.settings.get(name)} instead of {begun.get(name)}" for name in differ)
                came += ": give another folder, or remove this one to begin again"
                raise ValueError(f"{checkpoint} is of another training, this one has {came}")
            if progress.get("begins_with", self.begins_with) != self.begins_with and processes.first():
                log.warning(
                    "%s began from other weights than this model has, and is continued: another folder begins anew",
                    checkpoint,
                )
            self.begins_with = progress.get("begins_with", self.begins_with)
            self.step = self.resumed_at = progress["step"]
            self.tokens, self.seconds, self.rows = progress["tokens"], progress["seconds"], progress["rows"]
            if processes.first():
                self.sums.copy_(torch.tensor(progress["sums"]))
            checkpoints.load(checkpoint, self.model, self.optimizer)
            if self.ended() and processes.first():
                log.warning(
                    "%s: finished before, with these settings and this first batch: nothing is trained", self.folder
                )
        if processes.first():
            (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            lines = "".join(json.dumps(row) + "\n" for row in self.rows)
            disk.atomically(self.folder / "log.jsonl", lambda part: part.write_text(lines, encoding="utf-8"))
