"""The matrix of runs, killed: snakemake alone or with all that it started, and called again by the same command.

Each run ends in the record, and in the weights, of a matrix that was left alone; runs that were finished are not run again.
"""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tqdm.auto import tqdm

from asutil.io import rundir
from tests.trust import must
from tests.trust.loaders import DOCUMENTS

SMALL = ("steps=16", "batch_size=8", "warmup_steps=2", "epochs=1", "question_limit=12", "validation_examples=40", "corpus=mine.jsonl")
NAMES = ("Rome", "May", "books", "Oslo")
SAME = ("notebook", "name", "seed", "settings", "inputs", "metrics", "weights_sha256", "tables_sha256")


def check(full: bool, seed: int, folder: Path) -> dict:
    """Kills of two pre-training runs and the two fine-tuning runs that start from them, all small, and the calls that went on with them."""
    draw, wanted, killed, calls, finished = random.Random(seed), 100 if full else 2, 0, 0, Counter()
    snakemake = Path(sys.executable).with_name("snakemake")
    must(snakemake.is_file(), "matrix: snakemake is not installed (pip install 'asutil[matrix]')")
    started = time.monotonic()
    expected = _records(_left_alone(snakemake, project_in(folder / "whole")))
    seconds = time.monotonic() - started
    with tqdm(total=wanted, desc="matrix", unit=" kills", dynamic_ncols=True) as bar:
        while killed < wanted:
            project = project_in(folder / f"killed {calls}")
            while True:
                calls += 1
                longest = draw.choice((0.4, 0.9) if full else (0.3,)) * seconds  # long ones come to the last runs, short ones to the first
                moment = draw.uniform(3, longest) if killed < wanted else None
                if _called(snakemake, project, moment, everything=draw.random() < 0.5):
                    break
                killed += 1
                finished[len(_records(project))] += 1
                bar.update()
            must(_records(project) == expected, f"{project}: other records than those of a matrix that was left alone")
            leftovers = [path.name for run in (project / "runs").glob("*-*") for path in run.rglob(".*.part")]
            must(not leftovers, f"{project}: {', '.join(leftovers)} left behind")
            shutil.rmtree(project)
    reached = ", ".join(f"{count} after {done} runs" for done, count in sorted(finished.items()))
    must(not full or {*finished} >= {*range(len(expected))}, f"kills come before and after every run; they came {reached}")
    return {"kills": killed, "of_these": reached, "calls": calls, "runs": len(expected), "seconds_left_alone": round(seconds)}


def project_in(folder: Path) -> Path:
    """A project with the notebooks and rows of this one, and small documents and questions of its own."""
    for name in ("notebooks", "experiments"):
        shutil.copytree(rundir.root() / name, folder / name, ignore=shutil.ignore_patterns(".*"))
    (folder / "book").mkdir()
    rows = ({**row, "text": "\n\n".join([row["text"]] * 4).replace("winter", f"winter of {n}")} for n, row in enumerate(DOCUMENTS * 6))
    candidates = itertools.product(range(100), NAMES)
    asked = ({"question": f"When does winter {n} end?", "answer": f"In {name} {n}.", "label": int(name == "May")} for n, name in candidates)
    for name, lines in (("mine", rows), ("asked", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    paper = folder / "experiments" / "sentence_objectives.yml"  # the demonstration's rows are here
    rows = paper.read_text("utf-8")
    own = {
        "[pydocs]": "[asked.jsonl]",
        "{wikiqa: pydocs}": "{wikiqa: asked.jsonl}",
        "rows: [roberta_base, roberta_psd, roberta_ssp]": "rows: [roberta_sp, roberta_psd]",
    }
    for theirs, small in (own | {"{roberta: pydocs_roberta, electra": "{roberta: tiny, electra"}).items():
        must(rows.count(theirs) == 1, f"{paper.name} is expected to have {theirs} once, it has it {rows.count(theirs)} times")
        rows = rows.replace(theirs, small)
    paper.write_text(rows, encoding="utf-8")
    return folder


def started(snakemake: Path, project: Path, target: str = "demo", settings=SMALL) -> subprocess.Popen:
    """The matrix of a project, in a session of its own; what it says is in `output.txt`."""
    command = [str(snakemake), "-s", "experiments/Snakefile", "-c2", "--config", *settings, "--", target]
    environment = {**os.environ, "ASUTIL_PROJECT": str(project), "PYTHONPATH": str(rundir.root()), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{snakemake.parent}:{environment['PATH']}"
    output = (project / "output.txt").open("a")
    return subprocess.Popen(command, cwd=project, env=environment, stdout=output, stderr=output, start_new_session=True)


def _left_alone(snakemake: Path, project: Path) -> Path:
    must(_called(snakemake, project, None, True), f"{project}: the matrix was killed by somebody else")
    return project


def _called(snakemake: Path, project: Path, moment: float | None, everything: bool) -> bool:
    """Call the matrix, and kill it at a moment, where it lasts so long; whether it came to its end."""
    process = started(snakemake, project)
    try:
        status = process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL) if everything else process.kill()
        process.wait()
        return False
    said = (project / "output.txt").read_text(errors="replace")[-3000:]
    must(status == 0, f"{project}: snakemake ended with {status}:\n{said}")
    return True


def _records(project: Path) -> dict:
    """What the finished runs' records say, but for times."""
    found = {path.parent.name: rundir.read_record(path.parent) for path in sorted((project / "runs").glob("*/record.json"))}
    return {name: {key: record.get(key) for key in SAME} for name, record in found.items()}
