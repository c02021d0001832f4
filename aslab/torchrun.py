"""Starts the processes that train a notebook's run together: one per GPU, or as many as ASUTIL_PROCESSES says.

The notebook's own process trains nothing: it shows the output of rank 0, and continues from the checkpoint that they leave.
"""

import codecs
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

PLAN = "run.json"  # in a run folder: what is needed to run its cells again
PROCESSES = "ASUTIL_PROCESSES"


def launcher(folder: str | Path) -> Callable[[], None] | None:
    """What starts the processes of an unfinished run, with several GPUs or ASUTIL_PROCESSES; None where this process trains alone."""
    processes = int(os.environ.get(PROCESSES, torch.cuda.device_count()))
    begun = (Path(folder) / PLAN).is_file() and not (Path(folder) / "record.json").is_file()
    return partial(_launch, folder) if "RANK" not in os.environ and processes > 1 and begun else None


def _launch(folder: str | Path) -> None:
    """Train a notebook's run by torchrun, one process per GPU, and show the output of rank 0.

    Raises: ValueError for more processes than GPUs; RuntimeError if a process failed.
    """
    gpus = torch.cuda.device_count()
    processes = int(os.environ.get(PROCESSES, gpus))
    if 0 < gpus < processes:
        raise ValueError(f"{PROCESSES}: at most {gpus} expected, one for each GPU, got {processes}")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command = [*torchrun, "--local-ranks-filter=0", "-m", "aslab.processes", str(folder)]
    environment = {**os.environ, PROCESSES: "1"}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    try:
        _show(started.stdout)
    except BaseException:  # an interrupted cell leaves no process behind
        started.terminate()
        raise
    finally:
        status = started.wait()
    if status:
        failed = f"training in {processes} processes failed (exit status {status})"
        raise RuntimeError(f"{failed}; the checkpoints are kept, see the output above")


def _show(stream) -> None:
    """Print another process' output as it comes: progress bars return to the start of their line."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := stream.read1(4096):
        sys.stdout.write(decoder.decode(chunk))
        sys.stdout.flush()
