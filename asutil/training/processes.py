"""Several processes that train together: which one this is, who takes which micro-batches, and how a run under way starts them.

A training that finds more than one GPU starts the processes by itself; the number is that of the GPUs, or what ASUTIL_PROCESSES says. Its
own process trains nothing: it shows the first one's output, and goes on from the checkpoint that they leave.
"""

import codecs
import heapq
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PLAN = "run.json"  # in a run folder: what is needed to run its cells again
PROCESSES = "ASUTIL_PROCESSES"


# ------------------------------------------------------------------ which process is this


def count() -> int:
    """How many processes train together, as torchrun says."""
    return int(os.environ.get("WORLD_SIZE", 1))


def first() -> bool:
    """Whether this is the process that writes and shows."""
    return int(os.environ.get("RANK", 0)) == 0


def check() -> None:
    """Refuse a process that was meant to be one of several and does not know of the others.

    `accelerate launch --cpu --num_processes 2` starts one process without a word; what it leaves behind is where the others would meet it.
    Raises: RuntimeError with the command that starts them.
    """
    alone = "RANK" not in os.environ
    if alone and {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys():
        raise RuntimeError(
            "several processes were asked for and one was started (accelerate launch --cpu does that, whatever --num_processes says): "
            "use torchrun --nproc_per_node <processes> -m aslab.processes notebooks/<notebook>.ipynb -p <name> <value>"
        )
    if alone and count() > 1:
        raise RuntimeError(f"WORLD_SIZE is {count()} but RANK is not set: start the processes with torchrun")


# ------------------------------------------------------------------ who takes what


def size(micro: dict) -> int:
    """Padded tokens of a micro-batch, of all texts of one that reads several apart."""
    if "input_ids" in micro:
        return micro["input_ids"].numel()
    return sum(size(part) for part in micro.values() if isinstance(part, dict))


def assigned(micros: Sequence[dict], processes: int) -> list[list[int]]:
    """The numbers of the micro-batches that each process takes: each in turn, largest first, to who has the fewest tokens.

    Example:
        >>> import torch
        >>> assigned([{"input_ids": torch.zeros(1, n)} for n in (8, 5, 4, 1)], 2)
        [[0, 3], [1, 2]]
    """
    found, loads = [[] for _ in range(processes)], [(0, process) for process in range(processes)]
    for number in sorted(range(len(micros)), key=lambda number: -size(micros[number])):
        load, process = heapq.heappop(loads)
        found[process].append(number)
        heapq.heappush(loads, (load + size(micros[number]), process))
    return [sorted(numbers) for numbers in found]


def share(micros: Sequence[dict], micro_tokens: int, processes: int) -> int:
    """The tokens of a micro-batch with which every process has one at least, given one optimiser batch; never more than before.

    Example:
        >>> import torch
        >>> share([{"input_ids": torch.zeros(10, 100)}], 4096, 4)
        250
    """
    return max(1, min(micro_tokens, math.ceil(sum(map(size, micros)) / processes)))


# ------------------------------------------------------------------ started from a notebook


def wanted(folder: str | Path) -> bool:
    """Whether processes are to be started for a run: it is a notebook's, not finished, and there are several GPUs (or ASUTIL_PROCESSES)."""
    import torch

    processes = int(os.environ.get(PROCESSES, torch.cuda.device_count()))
    begun = (Path(folder) / PLAN).is_file() and not (Path(folder) / "record.json").is_file()
    return "RANK" not in os.environ and processes > 1 and begun


def launch(folder: str | Path) -> None:
    """Train a notebook's run in a process a GPU by torchrun, with the first one's output shown here; ends when all have ended.

    Raises: RuntimeError where a process failed; what it said stands above.
    """
    import torch

    processes = os.environ.get(PROCESSES, str(torch.cuda.device_count()))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc_per_node={processes}",
        "--local-ranks-filter=0",
    ]
    command += ["-m", "aslab.processes", str(folder)]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, PROCESSES: "1"}
    )
    try:
        _shown(started.stdout)
    except BaseException:  # an interrupted cell leaves no process behind
        started.terminate()
        raise
    finally:
        status = started.wait()
    if status:
        raise RuntimeError(
            f"training in {processes} processes failed (exit status {status}); the checkpoints are kept, see the output above"
        )


def _shown(stream) -> None:
    """What another process says, at once and as it says it: progress bars return to the start of their line."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := stream.read1(4096):
        sys.stdout.write(decoder.decode(chunk))
        sys.stdout.flush()
