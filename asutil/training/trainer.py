"""A Trainer whose loader gives whole optimiser batches, and whose checkpoints are complete or absent: safetensors and JSON, no pickle."""

import hashlib
import json
import logging
import math
import shutil
import time
from pathlib import Path

import torch
from accelerate.utils import broadcast_object_list
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from transformers import PrinterCallback, Trainer, TrainerCallback

from .. import losses
from ..io import disk, hub
from . import processes

MARKER = "complete.json"
LOGGED = ("loss", "learning_rate", "grad_norm", "tokens", "seconds")
log = logging.getLogger(__name__)


def micro_loss(
    logits,
    micro: dict,
    batch: dict,
    mlm_weight: float = 1.0,
    objective_weight: float = 1.0,
    detection_weight: float = 50.0,
):
    """One micro-batch's share of the loss of its optimiser batch, and its parts: (L, [L_mlm, L_pair]), of ELECTRA [L_mlm, L_pair, L_td]."""
    pair, mlm, *detection = logits
    objective = losses.pair(pair, micro["labels"], batch.get("labels", batch["examples"]))
    masked = (
        losses.mlm(mlm, micro["masked_targets"], batch["masked"]) if mlm is not None else torch.zeros_like(objective)
    )
    parts = [masked, objective, *(losses.replaced_token(*found, batch["tokens"]) for found in detection)]
    loss = sum(weight * part for weight, part in zip((mlm_weight, objective_weight, detection_weight), parts))
    return loss, torch.stack(parts).detach()


def step_seed(seed: int, step: int, micro: int = 0) -> int:
    """The seed of the dropout of a step's micro-batch, and of what ELECTRA's generator puts in."""
    named = f"{seed} {step}" + (f" {micro}" if micro else "")
    return int.from_bytes(hashlib.blake2b(named.encode(), digest_size=7).digest())


class StepTrainer(Trainer):
    """Trainer whose loader gives whole optimiser batches, and whose checkpoints are complete or absent."""

    def __init__(self, model, arguments, batches, folder, settings, evaluation, stopping):
        arguments._n_gpu = min(
            arguments.n_gpu, 1
        )  # DataParallel would cut our batches by row; many GPUs have a process each
        super().__init__(
            model, arguments, train_dataset=batches, callbacks=[_Schedule(evaluation[1] if evaluation[0] else 0)]
        )
        self.remove_callback(PrinterCallback)
        self.folder, self.settings, self.dev = folder, settings, evaluation[0]
        self.metric, self.patience = f"eval_{stopping[0]}", stopping[1]
        self.step, self.tokens, self.seconds, self.waiting, self.rows, self.cut = 0, 0, 0.0, 0.0, [], False
        self.parts = [name.removesuffix("_weight") for name in settings if name.endswith("_weight")]
        self.sums = torch.zeros(
            len(self.parts) + 1, device=self.args.device
        )  # of the loss's parts and steps since the last log
        self.started, self.board = time.monotonic(), None

    # -------------------------------------------------------------- the step

    def get_train_dataloader(self):
        workers = self.args.dataloader_num_workers
        return DataLoader(
            self.train_dataset, 1, collate_fn=_first, num_workers=workers, pin_memory=self.args.device.type == "cuda"
        )

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
        found = self._fitting(inputs)
        if found is None:  # outside of the handler, whose traceback would hold the activations
            self._halve(inputs)
            return self.training_step(model, inputs)
        total, parts = found
        if self.args.world_size > 1:
            self._add_gradients()
        self.tokens += inputs["tokens"]
        self.sums += torch.cat([parts, parts.new_full([1], float(self.is_world_process_zero()))])
        return total

    def _fitting(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The gradients' loss and parts, or None where a micro-batch does not fit into memory."""
        try:
            return self._gradients(batch)
        except torch.OutOfMemoryError:
            return None

    def _gradients(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of this process' micro-batches; the loss and its parts, each a share of the whole batch's.

        Not through DistributedDataParallel's own forward: losses use heads outside of it, and a micro-batch may lack a head altogether.
        """
        weights = [self.settings[f"{part}_weight"] for part in self.parts]
        total, parts = torch.zeros((), device=self.args.device), self.sums.new_zeros(len(self.parts))
        for number in processes.assigned(batch["micro"], self.args.world_size)[self.args.process_index]:
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
        has = torch.tensor(
            [parameter.grad is not None for parameter in parameters], dtype=torch.uint8, device=self.args.device
        )
        distributed.all_reduce(has, distributed.ReduceOp.MAX)
        found = [parameter for parameter, known in zip(parameters, has.tolist()) if known]
        for parameter in found:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = [parameter.grad for parameter in found]
        summed = parameters_to_vector(gradients)
        distributed.all_reduce(summed)
        vector_to_parameters(summed, gradients)

    def _halve(self, batch: dict) -> None:
        """Half as large micro-batches from here on; the step is begun again, and its examples stay the same."""
        self.model.zero_grad()
        torch.cuda.empty_cache()
        largest, self.cut = max(map(processes.size, batch["micro"])), True
        before = tokens = getattr(self.train_dataset, "micro_tokens", largest)
        found = largest
        while self.args.world_size == 1 and tokens > 1 and found == largest:
            tokens = self.train_dataset.micro_tokens = tokens // 2
            found = max(map(processes.size, self.train_dataset[self.state.global_step]["micro"]))
        if found == largest:
            raise torch.OutOfMemoryError(
                f"micro-batches of {before} tokens do not fit into memory: give a smaller micro_tokens"
            )
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
                raise FloatingPointError(
                    f"step {self.state.global_step}: the loss is {logs['loss']}, expected a finite number"
                )
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
        if self.is_world_process_zero():
            with disk.naming(self.folder / "log.jsonl"):
                self._append(row)

    def _append(self, row: dict) -> None:
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
            raise ValueError(
                f"evaluate should give {self.metric[5:]}, to stop by; it gave {', '.join(m[5:] for m in metrics)}"
            )
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self.patience is not None and self.best() is self.rows[-1] and self.is_world_process_zero():
            with disk.whole_folder(self.folder / "checkpoints" / "best") as part:
                save_model(self.model, str(part / "model.safetensors"))
                disk.write_json(part / MARKER, disk.hashes(part))
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
        return (
            self.patience is not None
            and bool(evaluated)
            and sum(step > self.best()["step"] for step in evaluated) >= self.patience
        )

    def finish(self) -> dict:
        best = self.best() if self.patience is not None else None
        self.accelerator.wait_for_everyone()
        if best is not None:
            self._load_from_checkpoint(_whole(self.folder / "checkpoints" / "best"))
        self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)  # forward without autocast again
        if self.board:
            with disk.naming(self.folder / "tensorboard"):
                self.board.close()
        best = best and {"step": best["step"], self.metric[5:]: best[self.metric]}
        steps, seconds, waiting = (
            max(self.step, self.state.global_step),
            round(self._seconds(), 2),
            round(self.waiting, 3),
        )
        return {
            "steps": steps,
            "tokens": self.tokens,
            "seconds": seconds,
            "waiting": waiting,
            "best": best,
            "log": self.rows,
        }

    # -------------------------------------------------------------- checkpoints: safetensors and JSON, never a pickle

    def _save_checkpoint(self, *_) -> None:
        checkpoints, summed = self.folder / "checkpoints", self._all_sums()
        if not self.args.should_save:
            return
        with disk.whole_folder(checkpoints / f"checkpoint-{self.state.global_step}") as part:
            save_model(self.model, str(part / "model.safetensors"))
            state = self.optimizer.state_dict()["state"]
            tensors = {
                f"{n}.{name}": value.contiguous() for n, values in state.items() for name, value in values.items()
            }
            save_file(tensors, part / "optimizer.safetensors")
            self.state.save_to_json(str(part / "trainer_state.json"))
            progress = {
                "step": self.state.global_step,
                "tokens": self.tokens,
                "seconds": self._seconds(),
                "rows": self.rows,
            }
            progress |= {"settings": self.settings, "sums": summed, "scheduler": self.lr_scheduler.state_dict()}
            (part / "progress.json").write_text(json.dumps(progress), encoding="utf-8")
            disk.write_json(part / MARKER, disk.hashes(part))
        for old in _checkpoints(checkpoints)[2:]:
            shutil.rmtree(old, ignore_errors=True)

    def continue_from(self, checkpoint: Path | None) -> None:
        """Take up a checkpoint's log and counters and, where training has ended, its weights; otherwise Trainer loads those."""
        if checkpoint is not None:
            progress = json.loads((checkpoint / "progress.json").read_text(encoding="utf-8"))
            if progress["settings"] != self.settings:
                raise ValueError(f"{checkpoint} is of a run with {progress['settings']}, got {self.settings}")
            self.step, self.tokens, self.seconds, self.rows = (
                progress[key] for key in ("step", "tokens", "seconds", "rows")
            )
            if self.is_world_process_zero():
                self.sums.copy_(torch.tensor(progress["sums"]))
            self._load_from_checkpoint(checkpoint)
        if not self.is_world_process_zero():
            return
        lines = "".join(json.dumps(row) + "\n" for row in self.rows)
        disk.atomically(self.folder / "log.jsonl", lambda path: path.write_text(lines, encoding="utf-8"))

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
    if pickled := sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in hub.PICKLES
    ):
        raise ValueError(
            f"{folder} holds {', '.join(pickled)}: a pickle can run any code when it is opened, so it is refused. No checkpoint of ours "
            "has one: every step seeds itself, and optimiser states are safetensors. Take the checkpoint of another program away; weights "
            'whose author you trust are converted once: python -c "from transformers import AutoModelForMaskedLM as M; '
            "M.from_pretrained('<folder>', use_safetensors=False).save_pretrained('converted')\", and given as model=converted"
        )
    disk.sweep(folder)
    for checkpoint in _checkpoints(folder):
        damage = found_damaged(checkpoint)
        if damage is None:
            return checkpoint
        log.warning("%s is unfinished or damaged, and removed: %s", checkpoint, damage)
        shutil.rmtree(checkpoint)
    return None


def found_damaged(checkpoint: Path) -> str | None:
    """Why a checkpoint is not what was saved, with both hashes of a file that changed; None for one that is whole."""
    try:
        listed = disk.read_json(checkpoint / MARKER)
        for name in sorted(listed.keys() | {path.name for path in checkpoint.iterdir() if path.name != MARKER}):
            disk.check(checkpoint / name, listed.get(name))
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _whole(checkpoint: Path) -> Path:
    if damage := found_damaged(checkpoint):
        raise ValueError(f"{damage}; delete {checkpoint.parent} to train anew")
    return checkpoint


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]), reverse=True)


def _first(items: list) -> dict:
    return items[0]
