"""A training whose processes write down what they take, and may be killed: in this process, or by several that are forked from one."""

import hashlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from unittest import mock

from safetensors.torch import save_file
from torch.multiprocessing import start_processes

from asutil.training import loop, processes

from .test_loop import USUAL, Batches, new_model

STEPS = 50


def work(folder: Path, stop: int = 0, save_seconds: tuple[float, ...] = (120.0, 120.0)) -> None:
    """Trains in float64, with dropout; killed before the step `stop`. Each process has its own longest time between checkpoints."""
    folder.mkdir(exist_ok=True)
    seen = folder / f"seen-{os.environ.get('RANK', 0)}.jsonl"
    model = new_model(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1).double()

    class Seen(loop.StepTrainer):
        def gradients(self, batch):
            step = self.step
            if stop and step == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            mine = processes.assigned(batch["micro"], processes.count())[self.process.process_index]
            names = [hashlib.sha256(row.numpy().tobytes()).hexdigest()[:12] for n in mine for row in batch["micro"][n]["input_ids"]]
            with seen.open("a") as stream:
                stream.write(json.dumps([step, names]) + "\n")
            return super().gradients(batch)

    options = {"save_every": 10, "save_seconds": save_seconds[int(os.environ.get("RANK", 0))]}
    evaluate = lambda model: {"map": float(next(model.parameters()).sum())}
    with mock.patch.object(loop, "StepTrainer", Seen):
        loop.train(model, Batches(STEPS, micro=4), folder, **USUAL | options, evaluate=evaluate, evaluate_every=20)
    if os.environ.get("RANK", "0") == "0":
        save_file({name: value.contiguous() for name, value in model.named_parameters()}, folder / "final.safetensors")


def forked(folder: Path, count: int, stop: int, *save_seconds: float) -> None:
    """What torchrun does, with one import for all: fails as soon as a process fails, and the others are ended."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    os.environ |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    start_processes(ranked, (folder, stop, save_seconds), count, start_method="fork")


def ranked(rank: int, *given) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    work(*given)


if __name__ == "__main__":
    forked(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *map(float, sys.argv[4:]))
