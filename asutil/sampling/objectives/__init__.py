"""One file an objective; each registers itself. `OBJECTIVES`: name -> objective, in the order of their numbers."""

from ...registry import import_files
from ..objective import OBJECTIVES

__all__ = ["OBJECTIVES"]

import_files(__name__, __path__)
