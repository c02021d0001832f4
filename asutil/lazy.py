"""Public names of a package that are imported at their first use: metrics need no torch."""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path


def names_of(package: str) -> Callable[[str], object]:
    """A package's `__getattr__`: its modules, and the names of them that its stub `__init__.pyi` imports; `dir` lists both.

    Editors and type checkers read the stub instead.
    """
    module = sys.modules[package]
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text("utf-8"))
    source = {alias.name: node.module for node in stub.body if node.module for alias in node.names}
    modules = lambda: {one.name for one in pkgutil.iter_modules(module.__path__)} - {"__main__"}  # which runs a command

    def find(name: str):
        if name in source:
            return getattr(importlib.import_module(f"{package}.{source[name]}"), name)
        if name in modules():
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    module.__dir__ = lambda: sorted({*vars(module), *source, *modules()})
    return find
