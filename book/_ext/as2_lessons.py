"""Pages of lessons: a lesson is run where its page is built, and again where its text or the package changes.

With `AS2_LESSONS=off` its page has no outputs.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import nbformat
from as2_gallery import for_page
from as2_pages import ROOT, depend, files
from nbclient import NotebookClient
from traitlets.config import Config

from aslab.show.picture import SVG
from asutil.io import disk

LESSONS = "notebooks/lessons/"
LONGEST = 1800  # seconds of a lesson on a busy machine
MADE_FROM = "made_from"
PLOTS_AS_SVG = """
%matplotlib inline
%config InlineBackend.figure_formats = ["svg"]
import matplotlib
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lesson"})
"""


def with_outputs(app, page, source):
    """The notebook of a lesson with its outputs, in place of the one that is stored without."""
    if not page.startswith(LESSONS) or os.environ.get("AS2_LESSONS") == "off":
        return
    modules = files("asutil/**/*.py")
    depend(app.env, modules)
    made_from = hashlib.sha256(b"".join([source[0].encode(), *(path.read_bytes() for path in modules)])).hexdigest()
    cached = Path(app.outdir).parent / "lessons" / f"{Path(page).name}.ipynb"
    if not cached.is_file() or disk.read_json(cached)["metadata"].get(MADE_FROM) != made_from:
        cached.parent.mkdir(exist_ok=True)
        disk.write_json(cached, executed(source[0], made_from))
    source[0] = json.dumps(lesson_page(disk.read_json(cached)))


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


def lesson_page(notebook: dict) -> dict:
    """The page of an executed lesson: no progress bars, tables aligned, plots in the page's colours, the installing cell folded."""
    for number, cell in enumerate(notebook["cells"]):
        if "install" in cell["metadata"].get("tags", ()):
            cell["metadata"]["tags"].append("hide-input")
        outputs = [output for output in cell.get("outputs", ()) if output.get("name") != "stderr"]
        for output in outputs:
            if SVG in output.get("data", {}):
                svg = "".join(output["data"][SVG])
                output["data"][SVG] = svg[svg.index("<svg") :]
                output["metadata"][SVG] = {"alt": cell["metadata"]["alt"]}
        if "outputs" in cell:
            cell["outputs"] = [for_page(output, f"c{number}-") for output in outputs]
    return notebook
