"""Writes `results/notebooks/`: executed notebooks of finished runs, with numbers and plots and without text of a data set, and
the scores of the ranked questions for trec_eval.

The record of such a run is one of `results/<paper>/` or of its repeats, so the book can show both together. A cell with the tag `text`
shows text of a data set: of its output only ids stay.
"""

import json
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from asutil.data.data_sets import ANSWERS
from asutil.io import disk
from asutil.metrics import registry

from . import commands, papers, records, repeats, rundir, trec
from .show.lists import RANKING
from .show.picture import SVG

OURS = "asutil"  # the part of a notebook's metadata that says which run it is of
TEXT = "text"  # tag of a cell that shows text of a data set
NOT_STORED = "This cell shows text of the data set, which is not stored here. Run the notebook to see it."
TREC = ".trec.zip"  # of the files of a run for trec_eval
LARGEST = 300_000  # bytes of a committed notebook


@dataclass
class Executed:
    """A committed notebook and the line of `records.records` or `repeats.read` that it is of."""

    path: Path
    content: dict
    data: dict  # the paper's file
    line: object
    repeated: object = None  # the line of the tables' run that this one repeats

    @property
    def key_metrics(self) -> dict[str, float]:
        """The few metrics that say how a run ended, from 0 to 1."""
        measured = records.figures(self.line)
        return {name: measured[name] for name in registry.card(records.kind(self.line.record))}

    @property
    def pictures(self) -> list[tuple[str, str]]:
        """(SVG, what it shows) of each plot, in their order."""
        outputs = [output for cell in self.content["cells"] for output in cell.get("outputs", ())]
        shown = [output for output in outputs if SVG in output.get("data", {})]
        return [("".join(one["data"][SVG]), one["metadata"][SVG]["alt"]) for one in shown]


def without_paths(notebook: dict, given: dict | None = None) -> dict:
    """A notebook without papermill's notes and names of this machine's folders; a path `given` to its run becomes `own:<name>`."""
    text = json.dumps(notebook)
    own = (part for value in (given or {}).values() for part in str(value).split(",") if part.startswith("/"))
    places = {f"{Path(path).parent}/": "own:" for path in sorted(own, key=len, reverse=True)}
    places |= {sys.prefix: "<environment>", str(rundir.root()): "<project>", str(Path.home()): "~"}
    for folder, name in places.items():
        text = text.replace(json.dumps(folder)[1:-1], json.dumps(name)[1:-1])
    notebook = json.loads(text)
    for part in (notebook, *notebook["cells"]):
        part["metadata"].pop("papermill", None)
        part["metadata"].pop("execution", None)
    return notebook


def cleaned(notebook: dict) -> dict:
    """A copy of an executed notebook that may be published: its numbers and plots, but no text of a data set.

    Messages on stderr are left out too: progress bars, and warnings that name files.
    Raises: ValueError for a notebook with an error.
    """
    notebook = without_paths(notebook)
    language = {"name": "python"}
    notebook["metadata"] = {"kernelspec": notebook["metadata"].get("kernelspec", {}), "language_info": language}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["execution_count"] = None
        cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            raise ValueError("the notebook ended in an error: only a finished run is published")
        if TEXT in cell["metadata"].get("tags", ()) and cell["outputs"]:
            cell["outputs"] = [without_text(cell["outputs"])]
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = None
    return notebook


def without_text(outputs: list[dict]) -> dict:
    """What a cell that shows text of a data set has in place of it: a sentence, and the ids of a ranking."""
    ids = next((output["data"][RANKING] for output in outputs if RANKING in output.get("data", {})), None)
    if ids is None:
        return {"output_type": "stream", "name": "stdout", "text": NOT_STORED + "\n"}
    return {"output_type": "display_data", "data": {"text/plain": NOT_STORED, RANKING: ids}, "metadata": {}}


def seal(notebook: dict) -> str:
    """The hash of a notebook's cells: a changed digit changes it."""
    return disk.sealed({"cells": notebook["cells"]})[disk.SEAL]


def publish(name: str, results: str | Path = "results", runs_dir: str | Path = "runs") -> Path:
    """Clean the notebook of a finished run whose record is committed, also as a repeat, and write its scores beside it. Returns the file.

    Raises: ValueError for a run without a committed record or with other figures, and for a notebook with an error or of more than 300 kB.
    """
    folder = rundir.find(name, runs_dir)
    if folder is None or not (folder / "notebook.ipynb").is_file():
        raise ValueError(f"{name}: expected a run with a notebook in {runs_dir}")
    own = rundir.read_record(folder)
    # Another default may have been spelt out: the name is then another one, the hash is not.
    if not (made := [line for paper in papers.PAPERS for line in _with(_runs(paper, results), hash=own.get("hash"))]):
        to_do = "`asutil publish` writes those of papers' rows, with --laptop those of budget laptop"
        raise ValueError(f"{name}: no record of this run is in {results}; {to_do}")
    if (line := next((line for line in made if _equal(own["metrics"], line.record["metrics"])), None)) is None:
        raise ValueError(f"{folder.name}: its figures are not those of the committed record of another execution")
    notebook = cleaned(json.loads((folder / "notebook.ipynb").read_text("utf-8")))
    about = {"paper": line.record["paper"], "row": line.row, "dataset": line.dataset, "budget": line.budget}
    about |= {"seed": line.seed, "name": line.name, "hash": line.record["hash"], "created": line.record["created"]}
    notebook["metadata"][OURS] = about | {"sha256": seal(notebook)}
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if (size := len(text.encode())) > LARGEST:
        raise ValueError(f"{folder.name}: the notebook has {size:,} bytes, at most {LARGEST:,} are expected")
    file = rundir.root() / results / "notebooks" / f"{line.name}.ipynb"
    # Ids of pydocs have white space, and are those of one installation.
    if line.dataset in ANSWERS and ANSWERS[line.dataset].hub_id:
        disk.atomically(file.with_suffix(TREC), lambda path: _write_trec(folder, path))
    return disk.atomically(file, lambda path: path.write_text(text, encoding="utf-8"))


def _equal(ours: dict, other: dict) -> bool:
    """Whether metrics are equal to four decimals: processors differ in the last digits of a loss."""
    ours, other = (pd.json_normalize(metrics).iloc[0] for metrics in (ours, other))
    same_names = set(ours.index) == set(other.index)
    return same_names and np.allclose(ours, other[ours.index], rtol=0, atol=1e-4, equal_nan=True)


def _write_trec(folder: Path, path: Path) -> None:
    """The scores of the test questions for trec_eval: run.txt and qrels.txt, ids without text; the same run gives the same bytes."""
    with tempfile.TemporaryDirectory() as exported, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as both:
        for file in trec.export(folder, exported):
            both.writestr(zipfile.ZipInfo(file.name), file.read_bytes(), zipfile.ZIP_DEFLATED)


def _runs(paper: str, results: str | Path) -> list:
    """The lines of a paper's runs by their own data sets: those of the tables, then repeats."""
    lines = (*records.committed(paper, results).itertuples(), *repeats.read(paper, results).itertuples())
    return [line for line in lines if line.dataset not in papers.SPLITS]


def _with(lines: list, **known) -> list:
    """The lines whose records have these values."""
    return [line for line in lines if known.items() <= line.record.items()]


def executed(results: str | Path = "results") -> list[Executed]:
    """The committed notebooks whose records are committed too, in the order of papers and notebooks.

    Raises: ValueError for a notebook that was changed by hand.
    """
    shown, known = [], {paper: _runs(paper, results) for paper in papers.PAPERS}
    for path in sorted((rundir.root() / results / "notebooks").glob("*.ipynb")):
        content = json.loads(path.read_text("utf-8"))
        about = content["metadata"].get(OURS, {})
        if about.get("sha256") != seal(content) or about["name"] != path.stem:
            raise ValueError(f"{path.name} was changed after `asutil gallery` wrote it: write it again")
        of_run = {name: about[name] for name in ("name", "created") if name in about}  # older ones have no time
        for line in _with(known[about["paper"]], **of_run)[:1]:
            place, key = {name: about[name] for name in ("row", "dataset", "budget", "seed")}, repeats.key(line.record)
            same = [own for own in _with(known[about["paper"]], **place) if repeats.key(own.record) == key]
            repeated = same[0] if line.source == repeats.FOLDER != same[0].source else None
            shown.append(Executed(path, content, papers.read(about["paper"]), line, repeated))
    slugs, notebooks = papers.PAPERS, list(records.KINDS)
    return sorted(shown, key=lambda one: (slugs.index(one.data["slug"]), notebooks.index(one.line.record["notebook"])))


command = commands.command(
    lambda names, runs_dir: (publish(name, runs_dir=runs_dir).relative_to(rundir.root()) for name in names),
    commands.argument("names", "names of finished runs", nargs=-1, metavar="RUN..."),
    commands.option("--runs-dir", "where the run folders are", default="runs"),
    example="asutil gallery pretrain-psd-cd8c8d76991e",
)
