"""One file an objective; each registers itself. `OBJECTIVES`: name -> objective, in the order of their numbers."""

import importlib
import pkgutil

from ..objective import OBJECTIVES

__all__ = ["OBJECTIVES"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
