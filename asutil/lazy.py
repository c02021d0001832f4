"""Public names of a package that are imported at their first use: metrics need no torch."""

import importlib
import pkgutil
import sys
from collections.abc import Callable


def names_of(package: str, exported: dict[str, tuple[str, ...]] | None = None) -> Callable[[str], object]:
    """A package's `__getattr__`: its modules, and the public names that it re-exports from them; `dir` lists both.

    Args:
        exported: module of the package -> the names that the package re-exports from it.
    """
    source = {name: module for module, names in (exported or {}).items() for name in names}

    def find(name: str):
        if name in source:
            return getattr(importlib.import_module(f"{package}.{source[name]}"), name)
        if name in {module.name for module in pkgutil.iter_modules(sys.modules[package].__path__)}:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    module = sys.modules[package]
    module.__dir__ = lambda: sorted(
        {*vars(module), *source, *(one.name for one in pkgutil.iter_modules(module.__path__))}
    )
    return find
