"""Cards of executed notebooks: what they must say, by the metadata of each notebook and the record that it names."""

import json
from collections.abc import Iterable
from pathlib import Path

from .traced import NAMES, PAPERS, Paper, models

KEYS = {"pretrain": ("auc", "accuracy"), "find_evidence": ("map_projected", "answer_f1"), "verify_claims": ("label_accuracy",)}
NOTEBOOKS = ("pretrain", "verify_claims", "find_evidence", "finetune", "embed", "rerank")


def cards(root: Path) -> Iterable[str]:
    """The lines of the cards, in the order of papers and notebooks."""
    for run, record in sorted(known(root), key=lambda one: (PAPERS.index(one[0]["paper"]), NOTEBOOKS.index(one[1]["notebook"]))):
        split = next(name for name in ("test", "validation", "dev") if name in record["metrics"])
        keys = KEYS.get(record["notebook"], ("p@1", "map"))
        figures = [f"{NAMES[name]} {100 * record['metrics'][split][name]:.1f}" for name in keys]
        yield Paper(root, run["paper"]).data["title"]
        yield f"notebook {record['notebook']}, {run['budget']} budget, seed {run['seed']}{run['again']}, model {models([record])}"
        yield f"{', '.join(figures)} ({split}, points)"


def known(root: Path) -> Iterable[tuple[dict, dict]]:
    """What each committed notebook says about its run, and its record, among those of the tables or the repeats."""
    for path in sorted((root / "results" / "notebooks").glob("*.ipynb")):
        run = json.loads(path.read_text("utf-8"))["metadata"]["asutil"]
        row, stem = f"{run['paper']}/{run['row']}", f"{run['dataset']}-{run['budget']}-seed{run['seed']}"
        first, again = (
            sorted((root / "results" / place).glob(f"{stem}{end}.json")) for place, end in ((row, ""), (f"repeats/{row}", "-*"))
        )
        for place in (*first, *again):
            record = json.loads(place.read_text("utf-8"))
            if record["name"] == run["name"] and run.get("created") in (None, record["created"]):
                yield run | {"again": " again" * (place in again)}, record
                break
