"""Cards of executed notebooks: what they must say, by the metadata of each notebook and the record that it names."""

import json
from collections.abc import Iterable
from pathlib import Path

from .traced import NAMES, Paper
from .traced_leaderboard import PAPERS

KEYS = {"pretrain": ("auc", "accuracy"), "find_evidence": ("map_projected", "answer_f1"), "verify_claims": ("label_accuracy",)}


def cards(root: Path, notebook: str) -> Iterable[str]:
    """The lines of the cards of one notebook, in the order of the papers."""
    files = sorted((root / "results" / "notebooks").glob("*.ipynb"))
    runs = [json.loads(path.read_text("utf-8"))["metadata"]["asutil"] for path in files]
    for run in sorted(runs, key=lambda run: PAPERS.index(run["paper"])):
        place = root / "results" / run["paper"] / run["row"] / f"{run['dataset']}-{run['budget']}-seed{run['seed']}.json"
        record = json.loads(place.read_text("utf-8")) if place.is_file() else {}
        if record.get("notebook") == notebook and record["name"] == run["name"]:
            split = next(name for name in ("test", "validation", "dev") if name in record["metrics"])
            keys = KEYS.get(notebook, ("p@1", "map"))
            figures = [f"{NAMES[name]} {100 * record['metrics'][split][name]:.1f}" for name in keys]
            yield Paper(root, run["paper"]).data["title"]
            yield f"{run['budget']} budget, seed {run['seed']}"
            yield f"{', '.join(figures)} ({split}, points)"
