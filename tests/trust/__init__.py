"""The promises of the project, each tested as its users would find it broken: `python -m tests.trust --help`.

A part is a module of this folder with `check(full, seed, folder)`: it does its work below `folder`, and returns its figures, or raises
`Broken` for a promise that does not hold. Nothing here is needed to use `asutil`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "book" / "_ext"))  # the tables of the book are tested too


class Broken(AssertionError):
    """A promise that does not hold: what was promised, and what came."""


def must(holds: bool, message: str) -> None:
    """Raises: Broken with the message where a promise does not hold; unlike `assert` also under `python -O`."""
    if not holds:
        raise Broken(message)
