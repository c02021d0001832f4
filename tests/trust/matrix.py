"""The matrix of runs, killed: snakemake, papermill or a kernel alone or all of them, and called again by the same command.

Each run ends in the record, and in the weights, of a matrix that was left alone; runs that were finished are not run again. Two calls of
one run at once end in its one record.
"""

import contextlib
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

import psutil
from tqdm.auto import tqdm

from aslab import rundir
from tests.trust import must
from tests.trust.loaders import DOCUMENTS

SMALL = ("steps=16", "batch_size=8", "warmup_steps=2", "epochs=1", "question_limit=12", "validation_examples=40")
NAMES = ("Rome", "May", "books", "Oslo")
# Who is killed: a word in the command of a process, or everything.
KILLED = {"everything": "", "snakemake": None, "papermill": "papermill", "kernel": "ipykernel_launcher"}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST = 900  # seconds until a matrix counts as hanging
SAME = ("notebook", "name", "seed", "settings", "inputs", "metrics", "weights_sha256", "tables_sha256")


def check(full: bool, seed: int, folder: Path) -> dict:
    """Kills of two pre-training runs and the two fine-tuning runs that start from them, all small, and the calls that went on with them."""
    draw, wanted, killed, calls, finished = random.Random(seed), 100 if full else 3, 0, 0, Counter()
    kinds = list(itertools.product(KILLED, SIGNALS))
    draw.shuffle(kinds)
    kinds = itertools.cycle(kinds)
    snakemake = Path(sys.executable).with_name("snakemake")
    must(snakemake.is_file(), "matrix: snakemake is not installed (pip install 'asutil[matrix]')")
    started = time.monotonic()
    must(_called(snakemake, project_in(folder / "whole")), "the matrix was killed by somebody else")
    expected = _records(folder / "whole")
    seconds = time.monotonic() - started
    with tqdm(total=wanted, desc="matrix", unit=" kills", dynamic_ncols=True) as bar:
        while killed < wanted:
            project = project_in(folder / f"killed {calls}")
            while True:
                calls += 1
                done = len(_finished(project))
                after, later = draw.randrange(min(done, len(expected) - 1), len(expected)), draw.uniform(0, 0.5) * seconds
                # Runs end in pairs, a second apart: a kill that is to come between them takes all processes, at once.
                between = after % 2 and after > done
                how = (0, "everything", signal.SIGKILL) if between else (later, *next(kinds))
                if _called(snakemake, project, *((after, *how) if killed < wanted else ())):
                    break
                killed += 1
                finished[len(_records(project))] += 1
                reached = ", ".join(f"{count} after {done} runs" for done, count in sorted(finished.items()))
                bar.set_postfix_str(reached)
                bar.update()
            must(_records(project) == expected, f"{project}: other records than those of a matrix that was left alone")
            leftovers = [path.name for run in (project / "runs").glob("*-*") for path in run.rglob(".*.part")]
            must(not leftovers, f"{project}: {', '.join(leftovers)} left behind")
            shutil.rmtree(project)
    _twice_at_once(folder / "whole", project_in(folder / "twice"), expected)
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
        " datasets: [pydocs]": " datasets: [asked.jsonl]",
        "data_sets: [pydocs]": "data_sets: [asked.jsonl]",
        "corpus: pydocs": "corpus: mine.jsonl",
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
    output = (project / "output.txt").open("a")
    return subprocess.Popen(command, cwd=project, env=_environment(project), stdout=output, stderr=output, start_new_session=True)


def _environment(project: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "ASUTIL_PROJECT": str(project), "PYTHONPATH": str(rundir.root()), "OMP_NUM_THREADS": "1", "PATH": path}


def _called(snakemake: Path, project: Path, after: int | None = None, later: float = 0, who: str = "", number=None) -> bool:
    """Call the matrix, and send a signal some seconds after so many finished runs, if it lasts so long; whether it came to its end."""
    process, first = started(snakemake, project), time.monotonic() + 3  # before, snakemake itself is starting
    while after is not None and process.poll() is None and (time.monotonic() < first or len(_finished(project)) < after):
        time.sleep(0.02)
    try:
        return _ended_well(process.wait(timeout=None if after is None else later), project)
    except subprocess.TimeoutExpired:
        victims = [each for each in psutil.Process(process.pid).children(recursive=True) if KILLED[who] and KILLED[who] in _command(each)]
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.send_signal(number)
        if not victims:  # all, or snakemake itself; also where the others have not begun
            process.send_signal(number) if who == "snakemake" else os.killpg(process.pid, number)
        return process.wait(timeout=LONGEST) == 0


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def _ended_well(status: int, project: Path) -> bool:
    said = (project / "output.txt").read_text(errors="replace")[-3000:]
    must(status == 0, f"{project}: it ended with {status}:\n{said}")
    return True


def _twice_at_once(whole: Path, project: Path, expected: dict) -> None:
    """A run of a finished matrix, by two calls of papermill at once: both end well, one waits, and there is its one record."""
    name = next(name for name in expected if name.startswith("pretrain-"))
    run = json.loads((whole / "runs" / name / "run.json").read_text())
    options = [word for option, value in run["given"].items() for word in ("-p", option, str(value))]
    with (project / "output.txt").open("a") as output:
        command = [sys.executable, "-m", "papermill", f"notebooks/{run['notebook']}.ipynb"]
        own = {"cwd": project, "env": _environment(project), "stdout": output, "stderr": output}
        both = [subprocess.Popen([*command, f"{number}.ipynb", *options], **own) for number in range(2)]
        must(all(_ended_well(process.wait(timeout=LONGEST), project) for process in both), name)
    waited = sum("is open in another process" in (project / f"{number}.ipynb").read_text("utf-8") for number in range(2))
    must(waited == 1, f"{name}: one of two calls at once waits for the other, {waited} did")
    must(_records(project) == {name: expected[name]}, f"{name}: two calls at once made {_records(project)}")


def _finished(project: Path) -> list[Path]:
    return sorted((project / "runs").glob("*/record.json"))


def _records(project: Path) -> dict:
    """What the finished runs' records say, but for times."""
    found = {path.parent.name: rundir.read_record(path.parent) for path in _finished(project)}
    return {name: {key: record.get(key) for key in SAME} for name, record in found.items()}
