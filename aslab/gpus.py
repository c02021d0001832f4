"""Around the runs of the matrix: a GPU for each, the hours that are expected of them, and which of them failed.

`python -m aslab.gpus 4 papermill notebooks/finetune.ipynb` runs a command on that one of 4 GPUs which no other such command holds.
"""

import argparse
import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

POLL = 1.0  # seconds between two looks for a free GPU

# ------------------------------------------------------------------ a GPU for each run


def gpus(count: int, visible: str | None = None) -> list[str]:
    """The GPUs that runs may have, by the names that CUDA_VISIBLE_DEVICES takes: its own where it is set, else 0 to count - 1.

    Raises: ValueError where fewer are visible than are asked for.
    Example:
        >>> gpus(2), gpus(2, visible="3,5,6")
        (['0', '1'], ['3', '5'])
    """
    found = (
        [str(number) for number in range(count)] if visible is None else [name for name in visible.split(",") if name]
    )
    if not 0 < count <= len(found):
        raise ValueError(f"gpu={count}: expected 1 to {len(found)} of the GPUs in CUDA_VISIBLE_DEVICES={visible}")
    return found[:count]


def hold(devices: list[str]) -> tuple[str, int]:
    """Lock the first GPU that no other run of this user holds; waits while all are held.

    The lock is the operating system's, on an open file: it ends with the process, however that ends, so none is ever left behind.
    Returns: the GPU's name, and the file's number.
    """
    while True:
        for device in devices:
            path = Path(tempfile.gettempdir()) / f"asutil-{os.getuid()}-gpu-{device}.lock"
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return device, number
            except BlockingIOError:
                os.close(number)
        time.sleep(POLL)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m aslab.gpus", description="Run a command on a GPU that no other one holds."
    )
    parser.add_argument("gpus", type=int, help="how many GPUs there are to choose from")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run; NAME=value before it as in `env`")
    given = parser.parse_args()
    try:
        devices = gpus(given.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    except ValueError as error:
        parser.error(str(error))
    if not given.command:
        parser.error("a command is expected after the number of GPUs")
    device, lock = hold(devices)
    os.set_inheritable(
        lock, True
    )  # the command takes this process's place and its lock: the GPU is held as long as the command lives
    os.execvp("env", ["env", f"CUDA_VISIBLE_DEVICES={device}", *given.command])


# ------------------------------------------------------------------ before: what is expected


def expected(jobs, searches=()) -> str:
    """The hours of one GPU that are expected of some runs, by paper, budget and notebook, in words.

    Args:
        searches: the tries of each search that is not done: the seeds that follow it are no jobs yet.
    """
    from . import plan

    counted, hours, follow = Counter(), Counter(), [job for tries in searches for job in plan.after(tries)]
    for job, when in [(job, "") for job in jobs] + [(job, "after a search") for job in follow]:
        place = (job.paper, job.budget, job.notebook, when)
        counted[place] += 1
        hours[place] += plan.gpu_hours(job)
    lines = [(*place, f"{number:,}", f"{hours[place]:,}") for place, number in counted.items()]
    lines = [("paper", "budget", "notebook", "", "runs", "GPU-hours"), *lines]
    lines.append(("in all", "", "", "", f"{sum(counted.values()):,}", f"{sum(hours.values()):,}"))
    wide = [max(map(len, column)) for column in zip(*lines)]
    shown = [
        "  ".join([*map(str.ljust, line[:4], wide), *map(str.rjust, line[4:], wide[4:])]).rstrip() for line in lines
    ]
    head = "Expected of what would run, in hours of one GPU (gpu_hours in experiments/*.yml; 0 at budgets for CPUs):"
    return "\n".join([head, *shown])


# ------------------------------------------------------------------ after: what failed


def failures(failed, waiting, since: float = 0.0) -> str:
    """The runs that failed, each with its row, folder, last error and the command that runs it alone.

    Args:
        waiting: runs that could not start. since: when the call began; a notebook that is older tells nothing about it.
    """
    parts = [f"{len(failed)} run{'s' * (len(failed) != 1)} failed:"]
    for job in sorted(failed, key=lambda job: (job.paper, job.row, job.dataset, job.seed)):
        parts.append(f"  {job.paper}, row {job.row}, {job.dataset}, seed {job.seed}, budget {job.budget}")
        parts.append(f"    folder: runs/{job.folder.name}")
        parts.append(f"    error:  {last_error(job.folder, since)}")
        parts.append(f"    alone:  {job.command}")
    if waiting:
        parts.append(f"{len(waiting)} more did not start: {', '.join(sorted(job.folder.name for job in waiting))}")
    parts.append("The same call runs these again, and only these: a run that has a record is never repeated.")
    return "\n".join(parts)


def last_error(folder: Path, since: float = 0.0) -> str:
    """The last error in a run's executed notebook, in one line; words where there is none."""
    path = Path(folder) / "notebook.ipynb"
    with contextlib.suppress(
        OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError
    ):  # a notebook that is half written
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.stat().st_mtime >= since else []
        errors = [one for cell in cells for one in cell.get("outputs", ()) if one.get("output_type") == "error"]
        if errors:
            return " ".join(f"{errors[-1]['ename']}: {errors[-1]['evalue']}".split())[:400]
    return "none in a notebook: it stopped before its first cell, or was killed (the lines above, or the log of the job, say more)"


if __name__ == "__main__":
    main()
