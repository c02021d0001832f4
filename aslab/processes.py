"""One of several processes that train a notebook's run together.

`torchrun --nproc_per_node 4 -m aslab.processes notebooks/pretrain.ipynb -p objective psd` runs the notebook's cells
up to its training in every process, on one machine or, with torchrun's own options, on several. A notebook that sees
more than one GPU, or that ASUTIL_PROCESSES tells, does that by itself: its own process trains nothing, shows the output
of rank 0, and continues from the checkpoint that they leave.
"""

import argparse
import codecs
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from asutil.io import disk, private
from asutil.training import processes

from . import parameters, rundir

PARAMETERS, TRAIN = "parameters", "train"  # tags of cells
PLAN = "run.json"  # in a run folder: what is needed to run its cells again
PROCESSES = "ASUTIL_PROCESSES"


def launcher(folder: str | Path) -> Callable[[], None] | None:
    """What starts the processes of an unfinished run, with several GPUs or ASUTIL_PROCESSES; None where this process trains alone."""
    gpus = torch.cuda.device_count()
    count = int(os.environ.get(PROCESSES, gpus))
    begun = (Path(folder) / PLAN).is_file() and not (Path(folder) / "record.json").is_file()
    return partial(_launch, folder, count, gpus) if "RANK" not in os.environ and count > 1 and begun else None


def _launch(folder: str | Path, count: int, gpus: int) -> None:
    """Train a notebook's run by torchrun, one process per GPU, and show the output of rank 0.

    Raises: ValueError for more processes than GPUs; RuntimeError if a process failed.
    """
    if 0 < gpus < count:
        raise ValueError(f"{PROCESSES}: at most {gpus} expected, one for each GPU, got {count}")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"]
    command = [*torchrun, "--local-ranks-filter=0", "-m", "aslab.processes", str(folder)]
    environment = {**os.environ, PROCESSES: "1"}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        while chunk := started.stdout.read1(4096):  # as it comes: progress bars return to the start of their line
            sys.stdout.write(decoder.decode(chunk))
            sys.stdout.flush()
    except BaseException:  # an interrupted cell leaves no process behind
        started.terminate()
        raise
    finally:
        status = started.wait()
    if status:
        failed = f"training in {count} processes failed (exit status {status})"
        raise RuntimeError(f"{failed}; the checkpoints are kept, see the output above")


def cells(path: Path) -> list[tuple[str, list[str]]]:
    """Source and tags of a notebook's code cells, up to the cell tagged `train`. Raises: ValueError for a notebook without such a cell."""
    read = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tags = cell["metadata"].get("tags", [])
            read.append(("".join(cell["source"]), tags))
            if TRAIN in tags:
                return read
    raise ValueError(f"{path.name} does not train: it has no code cell tagged `{TRAIN}`")


def run(path: Path, given: dict) -> None:
    """Run a notebook's cells up to and with its training, with these parameters; only the first process prints."""
    names = {"__name__": "__main__"}
    with contextlib.ExitStack() as stack:
        if not processes.first():
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
        for number, (source, tags) in enumerate(cells(path), 1):
            exec(compile(source, f"{path.name}, code cell {number}", "exec"), names)
            if PARAMETERS in tags:
                names.update(given)


def main() -> None:
    parser = argparse.ArgumentParser(prog="torchrun ... -m aslab.processes", description=run.__doc__.splitlines()[0])
    parser.add_argument("run", help="notebooks/<notebook>.ipynb, or the folder of a run that was begun")
    pairs = {"nargs": 2, "metavar": ("NAME", "VALUE"), "action": "append", "default": []}
    parser.add_argument("-p", "--parameters", help="as for papermill", **pairs)
    options = parser.parse_args()
    path = Path(options.run)
    if path.suffix == ".ipynb":
        notebook = path.stem
        kept = {name: text for name, text in options.parameters if parameters.stays_text(notebook, name, text)}
        given = {name: kept.get(name, private.value_of_word(text)) for name, text in options.parameters}
        given = {name: parameters.as_meant(notebook, name, value) for name, value in given.items()}
        parameters.check(notebook, given)
    elif options.parameters:
        parser.error("a run that was begun has its parameters already")
    elif not (path / PLAN).is_file():
        parser.error(f"{path} is no notebook and no folder of a run that was begun (it has no {PLAN})")
    else:
        begun = disk.read_json(path / PLAN)
        notebook, given = begun["notebook"], begun["given"]
    run(rundir.root() / "notebooks" / f"{notebook}.ipynb", given)


if __name__ == "__main__":
    from torch.distributed.elastic.multiprocessing.errors import record

    record(main)()
