"""One of several processes that train a notebook's run together.

`torchrun --nproc_per_node 4 -m aslab.processes notebooks/pretrain.ipynb -p objective psd` runs a notebook's cells up to its training in
every process, on one machine or, with torchrun's own options, on several. A notebook that finds more than one GPU does that by itself.
"""

import argparse
import contextlib
import json
import os
from operator import itemgetter
from pathlib import Path

from asutil.io import disk, rundir
from asutil.training import processes

from . import runs

TRAINING = "training.train("


def cells(path: Path) -> list[tuple[str, bool]]:
    """The source of a notebook's code cells up to its training, and whether each has the parameters.

    Raises: ValueError for a notebook that does not train.
    """
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            found.append((source, "parameters" in cell["metadata"].get("tags", [])))
            if TRAINING in source:
                return found
    raise ValueError(f"{path.name} does not train: it has no cell with {TRAINING}...)")


def run(path: Path, given: dict) -> None:
    """Run a notebook's cells up to and with its training, with some parameters; only the first process shows what they print."""
    names = {"__name__": "__main__"}
    with contextlib.ExitStack() as stack:
        if not processes.first():
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
        for number, (source, has_parameters) in enumerate(cells(path)):
            exec(compile(source, f"{path.name}, code cell {number + 1}", "exec"), names)
            if has_parameters:
                names.update(given)


def main() -> None:
    parser = argparse.ArgumentParser(prog="torchrun ... -m aslab.processes", description=run.__doc__.splitlines()[0])
    parser.add_argument("run", help="notebooks/<notebook>.ipynb, or the folder of a run that was begun")
    parser.add_argument(
        "-p",
        "--parameters",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="as papermill has them",
    )
    asked = parser.parse_args()
    path = Path(asked.run)
    if path.suffix == ".ipynb":
        from papermill.cli import _resolve_type

        notebook, given = path.stem, {name: _resolve_type(value) for name, value in asked.parameters}
        runs.check(notebook, given)
    elif asked.parameters:
        parser.error("a run that was begun has its parameters already")
    elif not (path / processes.PLAN).is_file():
        parser.error(f"{asked.run} is no notebook and no folder of a run that was begun (it has no {processes.PLAN})")
    else:
        notebook, given = itemgetter("notebook", "given")(disk.read_json(path / processes.PLAN))
    run(rundir.root() / "notebooks" / f"{notebook}.ipynb", given)


if __name__ == "__main__":
    from torch.distributed.elastic.multiprocessing.errors import record

    record(main)()
