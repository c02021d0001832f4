"""Heads on embeddings of a backbone, one file each: registered by `base.head`, and found by their keys or the names of their classes."""

from importlib import import_module
from pkgutil import iter_modules

from .base import HEADS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
EVIDENCE, POOLED = HEADS["slots"], HEADS["pairs"]
globals().update({made.__name__: made for registered in HEADS.values() for made in registered.values()})
