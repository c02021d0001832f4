"""Run benchmarks and keep their figures: results/benchmarks/<name>.json, with the machine that they were measured on.

Each script runs in a process of its own, whole, never --quick. What it measured on a GPU goes into <name>-gpu.json.

    python benchmarks/record.py sampling index scoring metrics training_step cpu_step start book latency search encoding
    python benchmarks/record.py backends --arguments "exported --dataset wikiqa"
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

from aslab import rundir, runs
from asutil.io import disk

HERE = Path(__file__).parent
VERSIONS = (
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "pandas",
    "torchmetrics",
    "pytrec_eval-terrier",
    "sentence-transformers",
    "faiss-cpu",
    "livekit-blingfire",
    "optimum-onnx",
    "onnxruntime",
)


def processor() -> str:
    """The processor's own name, as the system gives it."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def machine(gpu: str | None = None) -> dict:
    """What a reader needs to place the figures, and nothing that names this machine."""
    versions = {}
    for name in VERSIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    described = {
        "processor": processor(),
        "cores": cores,
        "system": platform.system(),
        "architecture": platform.machine(),
        "gpu": gpu,
    }
    return described | {"python": platform.python_version(), "versions": versions}


def last_line(output: str) -> dict:
    """The JSON object that a benchmark ends with.

    Raises: ValueError where there is none.
    """
    lines = output.strip().splitlines()
    try:
        result = json.loads(lines[-1])
        result["name"], result["ratio"], result["goal"]
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"expected a last line of JSON with name, ratio and goal, got {lines[-1:]}") from error
    return result


def run(name: str, arguments: str = "", seconds: float | None = None) -> str:
    """The output of one script, which is shown while it comes.

    Raises: RuntimeError where it fails; SystemExit where it takes more than `seconds`.
    """
    command = [sys.executable, HERE / f"{name}.py", *shlex.split(arguments)]
    # One GPU of several: transformers' Trainer would take all of them.
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": gpu}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        late = threading.Timer(seconds or threading.TIMEOUT_MAX, process.kill)
        late.daemon = True
        late.start()
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    ended = not late.is_alive()
    late.cancel()
    if ended:
        raise SystemExit(f"{name}.py was stopped: the time is over; the figures of finished benchmarks are kept")
    if process.returncode:
        raise RuntimeError(f"{name}.py ended with status {process.returncode}")
    return "".join(lines)


def record(result: dict, folder: Path, gpu: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    origin = {name: value for name, value in runs.provenance().items() if name in ("commit", "created")}
    text = json.dumps(result | {"machine": machine(gpu)} | origin, indent=1, allow_nan=False) + "\n"
    place = folder / f"{result['name']}{'-gpu' if gpu else ''}.json"
    return disk.atomically(place, lambda path: path.write_text(text, encoding="utf-8"))


def main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="name", help="of a script in this folder, without .py")
    parser.add_argument("--arguments", default="", help="of each script, as one text, for a script that needs some")
    parser.add_argument(
        "--minutes", type=float, help="of all of them together; a script that is not done by then is stopped"
    )
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes if given.minutes else None
    absent = [name for name in given.names if not (HERE / f"{name}.py").is_file()]
    if absent:
        parser.error(f"no benchmark {absent[0]!r}: {', '.join(sorted(path.stem for path in HERE.glob('*.py')))}")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    failed = []
    for name in given.names:
        try:
            result = last_line(run(name, given.arguments, until and max(1.0, until - time.monotonic())))
        except (RuntimeError, ValueError) as error:
            failed.append(f"{name}: {error}")
            continue  # the next one needs nothing of it
        place = record(result, rundir.root() / "results" / "benchmarks", gpu)
        print(place.relative_to(rundir.root()))
    if failed:
        raise SystemExit(f"{'; '.join(failed)}: the figures of the others are kept")


if __name__ == "__main__":
    main()
