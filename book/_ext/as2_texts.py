"""Text of the data set in the pages of committed notebooks: read where the book is built, as the notebooks themselves have none."""

import json
from functools import cache
from pathlib import Path

import nbformat
from as2_executed import LESSONS, REPORTS, begun, executed_once, executes, sources
from as2_gallery import WITHOUT_TEXT, for_page
from as2_pages import ROOT, files
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from aslab import identity, records
from aslab.analysis import examples
from aslab.cards import licence_of
from aslab.gallery import TEXT, Executed, executed
from aslab.show import lists

GALLERY = "gallery/"
READ = ("dataset", "corpus")


def begin(app, env, docnames: list[str]):
    """Begin the notebooks of the pages that will be read, and have these pages read last."""
    docnames.sort(key=lambda page: page.startswith((LESSONS, REPORTS, GALLERY)))
    for page in docnames if executes() else ():
        if page.startswith((LESSONS, REPORTS)):
            begun(app, page, Path(env.doc2path(page)).read_text("utf-8"), sources(page))
        elif page.startswith(GALLERY) and (one := with_text().get(page)):
            begun(app, *first_text(app, one))


def with_texts(app, page, source):
    """The page of a committed notebook with the text that its cells show, where this machine has what the run has read."""
    if page.startswith(GALLERY) and executes() and (one := with_text().get(page)):
        source[0] = json.dumps(filled(json.loads(source[0]), one, executed_once(app, *first_text(app, one))))


@cache
def with_text() -> dict[str, Executed]:
    """Page -> its committed notebook, of those whose text this machine has and may show."""
    return {f"{GALLERY}{one.path.stem}": one for one in executed() if may_show(one)}


def first_text(app, one: Executed) -> tuple[str, str, list[Path]]:
    """What `executed_once` takes to show the first text of a run: name, notebook, the files that it follows from."""
    paths = files("asutil/**/*.py", "aslab/**/*.py", "notebooks/*.ipynb", "data_cards/*.md")
    cells = first_cells(one, Path(app.outdir).parent / "executed" / "runs")
    return one.path.stem, nbformat.writes(cells), paths


def may_show(one: Executed) -> bool:
    """Whether this machine has the very texts that a run has read, and a page may show them."""
    record = one.line.record
    if not examples.may_show(text_of(record)):
        return False
    inputs = identity.of_run(record["notebook"], record["given"], must_exist=False)["inputs"]
    return all(inputs.get(name) == record["inputs"].get(name) for name in READ)


def text_of(record: dict) -> str:
    """The data set or the corpus that a run has read; "" for a run of other runs."""
    return record["settings"].get("dataset") or record["settings"].get("corpus") or ""


def first_cells(one: Executed, runs_dir: Path):
    """The notebook of a run as it is now, with the run's parameters, up to its first cell that shows text."""
    record = one.line.record
    notebook = load_notebook_node(str(ROOT / "notebooks" / f"{record['notebook']}.ipynb"))
    first = next(number for number, cell in enumerate(notebook.cells) if shows_text(cell))
    notebook.cells = notebook.cells[: first + 1]
    # The runs before it in a chain are not here, nor are all other data sets; the first text does not follow from them.
    own = {"model": records.backbone(one.line), "runs_dir": str(runs_dir), "seed": one.line.seed}
    own |= {"also_rank": None} if "also_rank" in record["given"] else {}
    notebook = parameterize_notebook(notebook, record["given"] | own)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"first-{number}"  # papermill draws one: the same run has the same text
    return notebook


def shows_text(cell: dict) -> bool:
    return TEXT in cell["metadata"].get("tags", ())


def filled(page: dict, one: Executed, begun: dict) -> dict:
    """A page whose cells that show text have it: the first from `begun`, the executed notebook of `first_cells`, the others by ids."""
    first, *others = filter(shows_text, page["cells"])
    outputs = begun["cells"][-1]["outputs"]
    first["outputs"] = [for_page(output, "") for output in outputs if output.get("name") != "stderr"]
    for cell in others:
        cell["outputs"] = [ranked(output, one) for output in cell["outputs"]]
    title, licence = page["cells"][0], licence_of(text_of(one.line.record))
    words = f"It is stored without text of the data set; what this page shows of it was read again. Licence of the text: {licence}."
    title["source"] = title["source"].replace(WITHOUT_TEXT, words)
    return page


def ranked(output: dict, one: Executed) -> dict:
    """The output of a cell that shows a ranked question, with its text in place of its ids."""
    ranking = output.get("data", {}).get(lists.RANKING)
    if ranking is None:
        return output
    (question,) = examples.at_hand(one.line.record, one.line.dataset, [ranking["question"]]).values()
    return output | {"data": lists.Ranking(question, ranking["scores"])._repr_mimebundle_()}
