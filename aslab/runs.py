"""A run folder: parameters in, record out.

`runs/<notebook>-<slug>-<hash>/` has `run.json` (the given parameters), the executed notebook, `log.jsonl`,
`checkpoints/`, `model/`, `scores.parquet` and, written last, `record.json`: a run is finished exactly when its record
exists. The hash covers every effective parameter and every input's fingerprint. So the same command finds its run,
and a changed parameter or changed data start a new run.
"""

import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
from filelock import FileLock

from asutil.corpus import sources
from asutil.data.data_sets import ANSWERS
from asutil.io import disk, hub

from . import chains, identity
from .parameters import parameters, require_no_other, settings
from .provenance import of_project, sources_sha256
from .rundir import find, folders, no_link, read_record, root, runs_folder

log = logging.getLogger(__name__)
COLUMNS = ["name", "notebook", "budget", "seed", "finished", "folder", "record"]  # of `read_all`, before its metrics


@dataclass
class Run:
    """A run in progress. A notebook reads its parameters from `options`; the record has `settings`, without paths."""

    notebook: str
    folder: Path
    given: dict
    identity: dict
    options: SimpleNamespace
    started: float = field(default_factory=time.monotonic)
    lock: FileLock | None = None  # held as long as the process lives
    begun: str | None = None  # the hash of the sources that its training began with

    @property
    def settings(self) -> dict:
        return self.identity["settings"]

    @property
    def shared(self) -> Path:
        """The folder of indexes and tokenizers, which several runs use."""
        return self.folder.parent / "shared"

    @property
    def finished(self) -> bool:
        return (self.folder / "record.json").is_file()

    def write(self, name: str, table: pd.DataFrame) -> Path:
        """Write a table as parquet, complete or not at all."""
        return disk.atomically(self.folder / name, lambda path: table.to_parquet(path, index=False))

    def finish(self, last: Iterable[str] = (), **measured) -> dict:
        """Write the record: parameters, provenance and the measured values. Now the run is finished, and says so.

        Args:
            last: sentences that are printed after that.
        """
        record = {
            "notebook": self.notebook,
            "name": self.folder.name,
            "hash": self.identity["hash"],
            "budget": self.settings["budget"],
            "seed": self.settings["seed"],
            "given": {name: self.settings[name] for name in self.given if name != "runs_dir"},
            "settings": self.settings,
            "inputs": self.identity["inputs"],
            **measured,
            "seconds": round(time.monotonic() - self.started, 1),
            **provenance(),
            **hashes(self.folder),
        }
        if self.finished:  # executed again, not trained again: it stays the record of what trained
            before = read_record(self.folder)
            if all(before.get(name) == record.get(name) for name in ("weights_sha256", "metrics")):
                record |= {name: before[name] for name in ("seconds", *provenance()) if name in before}
        if self.begun not in (None, record["sources_sha256"]):
            record["begun_with_sources_sha256"] = self.begun  # a part of it was trained with that code
        disk.write_json(self.folder / "record.json", record)
        print(f"finished: {self.folder.name}", *last, sep="\n")
        return record


def start(notebook: str, values: dict) -> Run:
    """Open the run that a notebook's variables describe; the same variables always open the same folder.

    Args:
        values: the notebook's variables (`globals()`), among them its parameters.
    Raises: ValueError for a variable that looks like a misspelt parameter, and for a wrong value.
    """
    require_no_other(notebook, values, again=isinstance(values.get("run"), Run))
    defaults = {name: parameter.default for name, parameter in parameters(notebook).items()}
    given = {name: values[name] for name in defaults if name in values and values[name] != defaults[name]}
    described = identity.of_run(notebook, given)
    folder = no_link(runs_folder(given.get("runs_dir")) / described["name"])
    folder.mkdir(parents=True, exist_ok=True)
    lock = None if "RANK" in os.environ else disk.lock_folder(folder)  # the processes of one training share its run
    begun = _begun_with(folder)
    if os.environ.get("RANK", "0") == "0":
        plan = {"notebook": notebook, "given": given | whole_paths(given), "sources_sha256": begun}
        disk.write_json(folder / "run.json", plan)
    values = settings(notebook, given)
    for name in (*identity.STARTS, *identity.STAGES):
        if values.get(name) and (start_folder := find(values[name], values["runs_dir"])):
            values[name] = str(start_folder)
    run = Run(notebook, folder, given, described, SimpleNamespace(**values), lock=lock, begun=begun)
    for name in ("model", "teacher") if values.get("dataset") else ():
        for named in chains.other_data(values.get(name), run):
            if named not in ANSWERS:  # to adapt what learnt from a published data set is usual
                short = Path(values[name]).name
                log.warning("%s %s: trained on %s, whose training questions may be among these", name, short, named)
    if run.finished:
        print(f"{folder.name} is finished already: its cells give the same again, from its checkpoints")
    elif values.get("budget") in ("gpu", "paper"):
        import torch  # takes seconds: not for what only reads records

        if not torch.cuda.is_available():
            print(f"budget {values['budget']} on a CPU: torch finds no GPU (book/reproduce.md, With a GPU)")
    return run


def _begun_with(folder: Path) -> str:
    """The hash of the sources that began the training in a run's folder, today's where none did; another one is warned of."""
    began = any((folder / "checkpoints").glob("*")) and (folder / "run.json").is_file()
    begun = disk.read_json(folder / "run.json").get("sources_sha256") if began else None
    if begun not in (None, sources_sha256()) and not (folder / "record.json").is_file():
        log.warning("%s continues what other code of asutil or aslab began: delete it to begin anew", folder.name)
    return begun or sources_sha256()


def whole_paths(given: dict) -> dict:
    """The parameters that are paths of this machine, from its root: what reads them later may run in another folder."""
    named = {name: str(given[name]) for name in (*identity.PATHS, *identity.STAGES) if given.get(name)}
    paths = {name: Path(value) for name, value in named.items() if not identity.is_published(name, value)}
    return {name: str(path.resolve()) for name, path in paths.items() if path.exists()}


def provenance() -> dict:
    """Versions, hardware, commit and sources, without any path, user or host name."""
    return of_project(root())


def hashes(folder: Path) -> dict:
    """The sha256 of a run's weights, of all files of its model, and of its tables, for its record."""
    return {
        "weights_sha256": disk.hashes(folder / "model", "**/*.safetensors"),
        "model_sha256": disk.hashes(folder / "model", "**/*"),
        "tables_sha256": disk.hashes(folder, "*.parquet"),
    }


def pretrained_with(model: str, objective: str, source: str) -> SimpleNamespace:
    """The settings that a run was pre-trained with; for a released model, those of the paper.

    The form of the documents (text_column, paragraph_separator) is that of the run's own corpus, and None for another.
    Raises: ValueError if the file of excluded titles has changed since the run.
    """
    folder = find(model)
    if folder is None:
        return SimpleNamespace(**settings("pretrain", {"objective": objective, "budget": "paper"}))
    record = read_record(folder)
    inputs, chosen = record.get("inputs", {}), settings("pretrain", {}) | record["settings"]
    if inputs.get("corpus") != sources.fingerprint_of_source(source):
        chosen |= {"text_column": None, "paragraph_separator": None}
    if chosen["exclude_titles"]:  # a record has its name alone
        chosen["exclude_titles"] = path = disk.read_json(folder / "run.json")["given"]["exclude_titles"]
        if hub.sha256(Path(path)) != inputs["exclude_titles"]:
            raise ValueError(f"{Path(path).name} has changed since {folder.name} left its titles out")
    return SimpleNamespace(**chosen)


def read_all(folder: str | Path = "runs") -> pd.DataFrame:
    """One row a run: name, notebook, budget, seed, finished, folder, record, and its test (or validation) metrics."""
    rows = []
    for path in folders(folder):
        record = read_record(path) if (path / "record.json").is_file() else {}
        notebook = record.get("notebook") or path.name.split("-")[0]
        about = (path.name, notebook, record.get("budget"), record.get("seed"), bool(record), path, record)
        metrics = record.get("metrics", {})
        rows.append(dict(zip(COLUMNS, about)) | (metrics.get("test") or metrics.get("validation") or {}))
    return pd.DataFrame(rows, columns=None if rows else COLUMNS)
