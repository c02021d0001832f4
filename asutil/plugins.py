"""What this package finds by name and does not import: the package of experiments by entry points (pyproject.toml), and `pydocs`."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points


@cache
def load(group: str, name: str):
    """The function of the entry point `name` in the group `asutil.<group>`.

    Raises: LookupError where the package was installed before it had this entry point.
    """
    for entry in entry_points(group=f"asutil.{group}", name=name):
        return entry.load()
    raise LookupError(f"asutil.{group} has no {name} in this installation: install asutil again (pip install -e .)")


def pydocs(name: str):
    """A module of the embedded data, which is built on the folders that ask for it here."""
    return import_module(f"asutil.pydocs.{name}")
