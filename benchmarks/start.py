"""From `papermill notebooks/pretrain.ipynb -p objective psd` to its first training step: what the seconds are for.

A first run makes the corpus index; the runs that are timed find it, as every later run of a user does. The peer is an interpreter that
imports torch, the Trainer of transformers, pandas and matplotlib and nothing else: what any notebook on these packages waits for. The
ratio is the goal of 8 seconds divided by the seconds of a start.

    python benchmarks/start.py
    python benchmarks/start.py --quick

The last line is one JSON object.
"""

import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import side_by_side

ROOT = Path(__file__).resolve().parents[1]
GOAL = 8.0  # seconds
WAIT = 300.0  # seconds until a start counts as failed
PEER = "import torch, pandas, matplotlib.pyplot; from transformers import RobertaModel, Trainer"
PARTS = {  # words of a cell -> what it does
    "runs.start": "imports of the notebook",
    "indexing.prepare": "corpus index and tokenizer",
    "loading.start_from": "model",
    "make_sampler": "sampler",
    "training.train": "first step",
}


def start(runs: Path, seed: int) -> dict[str, float]:
    """Seconds of every part of one start; the run is stopped after its first step."""
    command = [sys.executable, "-m", "papermill", "notebooks/pretrain.ipynb"]
    given = {"objective": "psd", "steps": 50, "seed": seed, "runs_dir": runs}
    command += [word for name, value in given.items() for word in ("-p", name, str(value))]
    began = time.time()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        folder = first_step(runs, seed, process)
        ended = time.time()
        cells = json.loads((folder / "notebook.ipynb").read_text("utf-8"))["cells"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return parts(cells, began, ended)


def first_step(runs: Path, seed: int, process) -> Path:
    """Wait for the first row of the log of the run with this seed. Returns: its folder."""
    until = time.time() + WAIT
    while time.time() < until and process.poll() is None:
        for log in runs.glob("pretrain-*/log.jsonl"):
            if log.stat().st_size and (
                f"-seed{seed}-" in log.parent.name or (seed == 0 and "-seed" not in log.parent.name)
            ):
                return log.parent
        time.sleep(0.02)
    raise SystemExit(f"no first step within {WAIT:.0f} s")


def parts(cells: list[dict], began: float, ended: float) -> dict[str, float]:
    """Seconds of each part by the times that papermill wrote into the notebook.

    Example:
        >>> cell = {"source": "run = runs.start()", "metadata": {"papermill": {"start_time": "1970-01-01T00:00:03"}}}
        >>> last = {"source": "training.train()", "metadata": {"papermill": {"start_time": "1970-01-01T00:00:08"}}}
        >>> parts([cell, last], 1.0, 10.0)
        {'papermill and its kernel': 2.0, 'imports of the notebook': 5.0, 'first step': 2.0, 'whole': 9.0}
    """
    begun = {}
    for cell in cells:
        stamp = cell["metadata"].get("papermill", {}).get("start_time")
        name = next((part for word, part in PARTS.items() if word in "".join(cell["source"])), None)
        if stamp and name:
            begun.setdefault(name, datetime.datetime.fromisoformat(stamp).replace(tzinfo=datetime.UTC).timestamp())
    marks = [began, *begun.values(), ended]
    names = ["papermill and its kernel", *begun]
    seconds = {name: round(after - before, 2) for name, before, after in zip(names, marks, marks[1:])}
    return seconds | {"whole": round(ended - began, 2)}


def main():
    given = side_by_side.arguments(__doc__).parse_args()
    rounds = given.rounds or (1 if given.quick else 5)
    starts, peer = [], []
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder), 0)
        for seed in range(1, rounds + 1):
            began = time.time()
            subprocess.run([sys.executable, "-c", PEER], check=True)
            peer.append(time.time() - began)
            starts.append(start(Path(folder), seed))
            print(
                f"start {seed}:", ", ".join(f"{name} {seconds} s" for name, seconds in starts[-1].items()), flush=True
            )
    side_by_side.show(
        side_by_side.headline(
            "start",
            1.0,
            {"wall": side_by_side.spread(GOAL / one["whole"] for one in starts)},
            seconds={name: side_by_side.spread(one[name] for one in starts) for name in starts[0]},
            imports_alone=side_by_side.spread(peer),
            seconds_wanted=GOAL,
        )
    )


if __name__ == "__main__":
    main()
