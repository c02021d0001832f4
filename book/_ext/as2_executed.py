"""Pages of notebooks that are run where the book is built: lessons, and the report of each paper.

They are run again where their text or what they are made of changes, on all cores, while Sphinx reads the other pages. With
`AS2_EXECUTE=off` the pages have no outputs.
"""

import hashlib
import json
import logging
import os
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import nbformat
from as2_gallery import for_page, that_show
from as2_pages import ROOT, depend, files, result_files
from nbclient import NotebookClient
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from traitlets.config import Config

from aslab import papers
from aslab.gallery import without_paths
from aslab.show.picture import SVG
from asutil.io import disk, hub

LESSONS, REPORTS = "notebooks/lessons/", "reports/"
LONGEST = 1800  # seconds of a notebook on a busy machine
MADE_FROM = "made_from"
# Variables of the environment: whether texts of data are at hand and may be shown.
DECIDE_TEXTS = ("AS2_SITE", hub.MIRROR)
PLOTS_AS_SVG = """
%matplotlib inline
%config InlineBackend.figure_formats = ["svg"]
import matplotlib
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lesson"})
"""


def reports() -> dict[str, bytes]:
    """File name -> the report of each paper as `papermill notebooks/report.ipynb -p paper <paper>` takes it."""
    return {f"{paper}.ipynb": report_of(paper) for paper in papers.PAPERS}


def report_of(paper: str) -> bytes:
    logging.disable(logging.WARNING)  # papermill says which cell it adds
    notebook = parameterize_notebook(load_notebook_node(str(ROOT / "notebooks" / "report.ipynb")), {"paper": paper})
    logging.disable(logging.NOTSET)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"report-{number}"
    _, text = notebook.cells[0].source.split("\n", 1)
    notebook.cells[0].source = f"# Report: {papers.read(paper)['title']}\n{text}"
    return json.dumps(without_paths(notebook), indent=1).encode()


def sources(page: str) -> list[Path]:
    """The files that the outputs of a page follow from."""
    if page.startswith(LESSONS):
        return files("asutil/**/*.py", "asutil/pydocs/pydocs_*/*", "requirements.lock")
    return [*files("asutil/**/*.py", "aslab/**/*.py", "data_cards/*.md"), *result_files(page.removeprefix(REPORTS))]


def with_outputs(app, page, source):
    """The notebook of a page with its outputs, in place of the one that is stored without."""
    if page.startswith((LESSONS, REPORTS)) and executes():
        source[0] = json.dumps(executed_page(executed_once(app, page, source[0], sources(page))))


def executes() -> bool:
    return os.environ.get("AS2_EXECUTE") != "off"


def executed_once(app, page: str, text: str, paths: list[Path]) -> dict:
    """The notebook after its cells have run, from an earlier build where neither it nor the files that it follows from have changed."""
    depend(app.env, paths)
    return begun(app, page, text, paths).result()


def begun(app, page: str, text: str, paths: list[Path]) -> Future:
    """`executed_once` in a thread, which waits for the kernel; the same notebook is begun once."""
    shown = "\0".join(os.environ.get(name, "") for name in DECIDE_TEXTS)
    made_from = hashlib.sha256(
        b"".join([text.encode(), shown.encode(), *(path.read_bytes() for path in paths)])
    ).hexdigest()
    cached = Path(app.outdir).parent / "executed" / f"{Path(page).name}.ipynb"
    key = cached, made_from
    if key not in _RUNNING:
        _RUNNING[key] = _KERNELS.submit(_cached, cached, text, made_from)
    return _RUNNING[key]


_KERNELS = ThreadPoolExecutor(os.cpu_count())
_RUNNING: dict[tuple, Future] = {}


def _cached(path: Path, text: str, made_from: str) -> dict:
    if not path.is_file() or disk.read_json(path)["metadata"].get(MADE_FROM) != made_from:
        disk.write_json(path, executed(text, made_from))
    return disk.read_json(path)


def end(app, exception):
    """Begin no more kernels where the build has ended, with or without an error."""
    for future in _RUNNING.values():
        future.cancel()
    _RUNNING.clear()


def executed(text: str, made_from: str = "") -> dict:
    """A notebook after its cells have run in a kernel of their own. Raises: CellExecutionError."""
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(PLOTS_AS_SVG))
    with tempfile.TemporaryDirectory(prefix="kernel-", ignore_cleanup_errors=True) as sockets:
        # Of kernels that start at once two may get the same port. Files do not clash.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/k"}})
        options = {"timeout": LONGEST, "resources": {"metadata": {"path": str(ROOT)}}}
        NotebookClient(notebook, config=config, extra_arguments=["--log-level=ERROR"], **options).execute()
    del notebook.cells[0]
    notebook.metadata[MADE_FROM] = made_from
    return json.loads(nbformat.writes(notebook))


def executed_page(notebook: dict) -> dict:
    """The page of an executed notebook: no progress bars, tables aligned, plots in the page's colours, the installing cell folded.

    Cells that show nothing here are left out, and so are parameters that another cell replaces.
    """
    cells = notebook["cells"]
    replaced = any("injected-parameters" in cell["metadata"].get("tags", ()) for cell in cells)
    cells = that_show([cell for cell in cells if not (replaced and "parameters" in cell["metadata"].get("tags", ()))])
    for number, cell in enumerate(cells):
        if "install" in cell["metadata"].get("tags", ()):
            cell["metadata"]["tags"].append("hide-input")
        outputs = [output for output in cell.get("outputs", ()) if output.get("name") != "stderr"]
        for output in outputs:
            if SVG in output.get("data", {}):
                svg = "".join(output["data"][SVG])
                output["data"][SVG] = svg[svg.index("<svg") :]
                output["metadata"].setdefault(SVG, {"alt": cell["metadata"].get("alt")})
        if "outputs" in cell:
            cell["outputs"] = [for_page(output, f"c{number}-") for output in outputs]
    return notebook | {"cells": cells}
