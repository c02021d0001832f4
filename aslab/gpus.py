"""For Snakemake's runs: a GPU for each (`asutil gpus`), and a report of failures."""

import contextlib
import fcntl
import json
import os
import tempfile
import time
from pathlib import Path

from . import commands

VARIABLE = "NAME=value before it sets a variable, as in `env`"
POLL = 1.0  # seconds between two looks for a free GPU


def gpus(count: int, visible: str | None = None) -> list[str]:
    """The names of GPUs that runs may use: the first in CUDA_VISIBLE_DEVICES if it is set, else 0 to count - 1.

    Raises: ValueError where fewer than `count` are visible.
    Example:
        >>> gpus(2), gpus(2, visible="3,5,6")
        (['0', '1'], ['3', '5'])
    """
    names = list(map(str, range(count))) if visible is None else [name for name in visible.split(",") if name]
    if not 0 < count <= len(names):
        raise ValueError(f"gpu={count}: expected 1 to {len(names)} of the GPUs in CUDA_VISIBLE_DEVICES={visible}")
    return names[:count]


def hold(devices: list[str]) -> tuple[str, int]:
    """Lock the first GPU that no other run of this user has locked; wait while all are locked.

    The operating system locks an open file, and ends the lock with the process, however that ends.
    Returns: the GPU's name, and the number of the open file.
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


def run(count: int, words: list[str]) -> None:
    device, lock = hold(gpus(count, os.environ.get("CUDA_VISIBLE_DEVICES")))
    # The command replaces this process and keeps its lock.
    os.set_inheritable(lock, True)
    os.execvp("env", ["env", f"CUDA_VISIBLE_DEVICES={device}", *words])


command = commands.command(
    run,
    commands.argument("count", "number of GPUs of this machine to choose from", type=int, metavar="GPUS"),
    commands.argument("words", f"the command; {VARIABLE}", nargs=-1, metavar="COMMAND..."),
    example="asutil gpus 4 papermill notebooks/finetune.ipynb",
    details="A GPU is free if no other `asutil gpus` uses it.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)


def failures(failed, waiting, since: float = 0.0) -> str:
    """A report of the runs that failed: row, folder, last error, and the command that runs it alone.

    Args:
        waiting: runs that did not start. since: when the call began; an older notebook is not about it.
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
    """The last error in a run's executed notebook, in one line; a sentence where there is none."""
    path = Path(folder) / "notebook.ipynb"
    half_written = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
    with contextlib.suppress(*half_written):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.stat().st_mtime >= since else []
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        errors = [output for output in outputs if output.get("output_type") == "error"]
        if errors:
            return " ".join(f"{errors[-1]['ename']}: {errors[-1]['evalue']}".split())[:400]
    return "none in a notebook: it stopped before its first cell, or was killed (see above, or the log of the job)"
