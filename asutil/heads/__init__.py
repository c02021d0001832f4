"""Heads on embeddings of a backbone, one file each: registered by `base.head`, and found by their keys or the names of their classes."""

from ..registry import import_files
from .base import HEADS

import_files(__name__, __path__)
EVIDENCE, POOLED = HEADS["slots"], HEADS["pairs"]
globals().update({made.__name__: made for registered in HEADS.values() for made in registered.values()})
