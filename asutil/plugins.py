"""What other packages, and rooms further down in this one, add: functions and modules by name, found by entry points (pyproject.toml)."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points


@cache
def named(group: str) -> dict[str, EntryPoint]:
    """The entry points of the group `asutil.<group>` by name."""
    return {entry.name: entry for entry in entry_points(group=f"asutil.{group}")}


def load(group: str, name: str):
    """The function or module of an entry point. Raises: LookupError where the package was installed before it had this one."""
    if name not in named(group):
        raise LookupError(f"asutil.{group} has no {name} in this installation: install asutil again (pip install -e .)")
    return named(group)[name].load()
