"""What other installed packages add: functions by name, found by entry points of the groups `asutil.models` and `asutil.commands`."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points


@cache
def functions(group: str) -> dict[str, Callable]:
    """The functions of `asutil.<group>`, by the names of their entry points."""
    return {entry.name: entry.load() for entry in entry_points(group=f"asutil.{group}")}
