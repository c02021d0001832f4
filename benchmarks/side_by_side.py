"""What the benchmarks share: sides timed turn by turn in one process, ratios round by round, one JSON object at the end.

Sides take turns because a machine is never quiet: what else runs on it then falls on all of them, and the ratio of two sides in one
round says more than the ratio of their best times.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import asutil  # noqa: F401  before torch, as it sets how OpenMP waits


def seconds(sides: dict[object, Callable], rounds: int) -> tuple[dict, dict]:
    """How long each side took in each round, by the clock on the wall and by the processor's, which counts this process alone.

    Every other round goes backwards, so that no side always comes after the same one. Each time is printed as it comes.
    Returns: the seconds of every round by the names of `sides`, twice.
    """
    wall, processor = {name: [] for name in sides}, {name: [] for name in sides}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}:", end="", flush=True)
        for name in list(sides)[:: -1 if number % 2 else 1]:
            started = time.perf_counter(), time.process_time()
            sides[name]()
            wall[name].append(time.perf_counter() - started[0])
            processor[name].append(time.process_time() - started[1])
            label = " ".join(map(str, name)) if isinstance(name, tuple) else name
            print(f" {label} {wall[name][-1]:.2f} s", end="", flush=True)
        print()
    return wall, processor


def spread(values) -> dict[str, float]:
    """Median, least and most of one figure over the rounds.

    Example:
        >>> spread([3.0, 1.0, 2.0])
        {'median': 2.0, 'least': 1.0, 'most': 3.0}
    """
    values = [float(f"{value:.4g}") for value in values]
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def ratios(ours: list[float], theirs: list[float], ours_work: float = 1, their_work: float = 1) -> dict[str, float]:
    """How many times as fast as the peer this project is, round by round, where the two may do different amounts of work in a round.

    ratio = (ours_work / ours) / (their_work / theirs)
    Example:
        >>> ratios([1.0, 1.0], [2.0, 4.0], ours_work=10, their_work=1)
        {'median': 30.0, 'least': 20.0, 'most': 40.0}
    """
    return spread(their / our * ours_work / their_work for our, their in zip(ours, theirs))


def headline(name: str, goal: float, compared: dict[str, dict], **measured) -> dict:
    """The result of a script: of several comparisons the one with the lowest median speaks for all."""
    worst = min(compared.values(), key=lambda one: one["median"])
    return {"name": name, "ratio": worst["median"], "goal": goal, "spread": worst, **measured}


def arguments(doc: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="less data and fewer rounds: within a minute")
    parser.add_argument("--rounds", type=int, help="how often each side has its turn")
    return parser


def show(result: dict) -> None:
    """The figures as lines for a reader, then the same as one line of JSON."""
    for name, value in result.items():
        if isinstance(value, dict) and set(value) >= {"median", "least", "most"}:
            print(f"{name:<28} {value['median']:>12,.4g}   ({value['least']:,.4g} to {value['most']:,.4g})")
        elif isinstance(value, dict):
            print(f"{name}:", ", ".join(f"{key} {figure}" for key, figure in value.items()))
        else:
            print(f"{name:<28} {value:>12,.4g}" if isinstance(value, float | int) else f"{name:<28} {value}")
    print(json.dumps(result), flush=True)
