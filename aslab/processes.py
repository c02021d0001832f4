"""One of several processes that train a notebook's run together.

`torchrun --nproc_per_node 4 -m aslab.processes notebooks/pretrain.ipynb -p objective psd` runs the notebook's cells
up to its training in every process, on one machine or, with torchrun's own options, on several. A notebook that sees
more than one GPU does that by itself.
"""

import argparse
import contextlib
import json
import os
from pathlib import Path

from asutil.io import disk, private
from asutil.training import processes

from . import parameters, rundir, runs, torchrun

PARAMETERS, TRAIN = "parameters", "train"  # tags of cells


def cells(path: Path) -> list[tuple[str, list[str]]]:
    """Source and tags of a notebook's code cells, up to the cell tagged `train`.

    Raises: ValueError for a notebook without such a cell.
    """
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
    pair = ("NAME", "VALUE")
    parser.add_argument(
        "-p", "--parameters", nargs=2, metavar=pair, action="append", default=[], help="as for papermill"
    )
    options = parser.parse_args()
    path = Path(options.run)
    if path.suffix == ".ipynb":
        notebook = path.stem
        kept = {name: text for name, text in options.parameters if parameters.stays_text(notebook, name, text)}
        given = {name: kept.get(name, private.value_of_word(text)) for name, text in options.parameters}
        runs.check(notebook, given)
    elif options.parameters:
        parser.error("a run that was begun has its parameters already")
    elif not (path / torchrun.PLAN).is_file():
        parser.error(f"{path} is no notebook and no folder of a run that was begun (it has no {torchrun.PLAN})")
    else:
        begun = disk.read_json(path / torchrun.PLAN)
        notebook, given = begun["notebook"], begun["given"]
    run(rundir.root() / "notebooks" / f"{notebook}.ipynb", given)


if __name__ == "__main__":
    from torch.distributed.elastic.multiprocessing.errors import record

    record(main)()
