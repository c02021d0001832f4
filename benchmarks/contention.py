"""A run beside others on the same cores: two runs at once, and one beside a program that keeps a core busy.

Each run is `papermill notebooks/pretrain.ipynb -p objective psd`, with fewer steps, to its record. The fair share of two runs at once
is twice the time of one alone. Beside the busy program a run's threads, one a core, are n of n + 1 that share n cores: its fair share
is (n + 1) / n times its time alone. The ratio is the fair share divided by the time; the goal allows 1.15 times the fair share.

    python benchmarks/contention.py [--quick]

The last line is one JSON object.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import side_by_side
import torch

ROOT = Path(__file__).resolve().parents[1]
GOAL = round(1 / 1.15, 2)
BUSY = "while True: pass"


def begun(runs: str, seed: int, steps: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "papermill", "notebooks/pretrain.ipynb", os.devnull]
    given = {"objective": "psd", "steps": steps, "seed": seed, "runs_dir": runs}
    command += [word for name, value in given.items() for word in ("-p", name, str(value))]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def seconds(runs: str, seeds: list[int], steps: int) -> float:
    """From the start of some runs to the end of the last one."""
    started = time.perf_counter()
    ended = [process.wait() for process in [begun(runs, seed, steps) for seed in seeds]]
    if any(ended):
        raise SystemExit(f"a run of {steps} steps failed: start it by hand to see why")
    return time.perf_counter() - started


def beside(runs: str, seed: int, steps: int) -> float:
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        return seconds(runs, [seed], steps)
    finally:
        busy.kill()
        busy.wait()


def main():
    given = side_by_side.arguments(__doc__).parse_args()
    rounds, steps = given.rounds or (1 if given.quick else 3), 20 if given.quick else 200
    threads = torch.get_num_threads()
    times = {"one run alone": [], "two at once": [], "one beside a busy program": []}
    with tempfile.TemporaryDirectory() as runs:
        seconds(runs, [0], 2)  # makes the corpus index
        for number in range(rounds):
            seed = 1 + 4 * number
            measured = (
                seconds(runs, [seed], steps),
                seconds(runs, [seed + 1, seed + 2], steps),
                beside(runs, seed + 3, steps),
            )
            for name, each in zip(times, measured):
                times[name].append(each)
            print(
                f"round {number + 1} of {rounds}:",
                *(f"{name} {found[-1]:.1f} s," for name, found in times.items()),
                flush=True,
            )
    alone, two, busy = times.values()
    compared = {
        "two_at_once": side_by_side.spread(2 * one / both for one, both in zip(alone, two)),
        "beside_a_busy_program": side_by_side.spread(
            (threads + 1) / threads * one / slow for one, slow in zip(alone, busy)
        ),
    }
    shown = {name: side_by_side.spread(found) for name, found in times.items()}
    side_by_side.show(
        side_by_side.headline("contention", GOAL, compared, **compared, seconds=shown, steps=steps, threads=threads)
    )


if __name__ == "__main__":
    main()
