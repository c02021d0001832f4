"""Pre-training objectives, heads, losses and metrics for answer sentence selection.

`asutil.metrics` and its like are imported when they are first named: counting ranks needs no torch.
"""

import importlib
import pkgutil

__version__ = "0.1.0"


def __getattr__(name: str):
    if name in {module.name for module in pkgutil.iter_modules(__path__)}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
