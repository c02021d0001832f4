"""Several processes that train together: their ranks, and their shares of the micro-batches."""

import math
import os
from collections.abc import Sequence
from datetime import timedelta

PATIENCE = timedelta(days=1)  # how long processes wait for one another: as long as rank 0 evaluates


# ------------------------------------------------------------------ this process and the others


def count() -> int:
    """How many processes train together, as torchrun sets it."""
    return int(os.environ.get("WORLD_SIZE", 1))


def first() -> bool:
    """Whether this is the process that writes and shows."""
    return int(os.environ.get("RANK", 0)) == 0


def state():
    """This process among those that train together, by accelerate: `device`, `process_index`, `wait_for_everyone`."""
    import torch
    from accelerate import PartialState

    gpu = torch.cuda.is_available()
    return PartialState(cpu=not gpu, backend="gloo" if count() > 1 and not gpu else None, timeout=PATIENCE)


def open_many_files() -> None:
    """Let this process and the loader's workers open as many files as they may: every tensor of a batch from a worker is one."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check() -> None:
    """Refuse a process that was meant to be one of several but does not know the others.

    `accelerate launch --cpu --num_processes 2` starts a single process without a warning; its environment shows it.
    Raises: RuntimeError with the command that starts several.
    """
    alone = "RANK" not in os.environ
    if alone and {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys():
        raise RuntimeError(
            "several processes were asked for and one was started (accelerate launch --cpu does that, whatever "
            "--num_processes says): use torchrun --nproc_per_node <processes>"
        )
    if alone and count() > 1:
        raise RuntimeError(f"WORLD_SIZE is {count()} but RANK is not set: start the processes with torchrun")


# ------------------------------------------------------------------ shares of the micro-batches


def size(micro: dict) -> int:
    """Padded tokens of a micro-batch, with those of all its inputs where it has several."""
    if "input_ids" in micro:
        return micro["input_ids"].numel()
    return sum(size(part) for part in micro.values() if isinstance(part, dict))


def assigned(micros: Sequence[dict], processes: int) -> list[list[int]]:
    """The numbers of the micro-batches of each process: largest first, each to the process with the fewest tokens.

    Example:
        >>> import torch
        >>> assigned([{"input_ids": torch.zeros(1, n)} for n in (8, 5, 4, 1)], 2)
        [[0, 3], [1, 2]]
    """
    numbers_of = [[] for _ in range(processes)]
    loads = [0] * processes
    for number in sorted(range(len(micros)), key=lambda number: -size(micros[number])):
        process = loads.index(min(loads))
        numbers_of[process].append(number)
        loads[process] += size(micros[number])
    return [sorted(numbers) for numbers in numbers_of]


def share(micros: Sequence[dict], micro_tokens: int, processes: int) -> int:
    """At most `micro_tokens`, and so few that every process gets a micro-batch of this optimiser batch.

    Example:
        >>> import torch
        >>> share([{"input_ids": torch.zeros(10, 100)}], 4096, 4)
        250
    """
    return max(1, min(micro_tokens, math.ceil(sum(map(size, micros)) / processes)))
