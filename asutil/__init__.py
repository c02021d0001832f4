"""Pre-training objectives, heads, losses and metrics for answer sentence selection: the core, usable without a notebook.

`asutil.metrics` and its like are imported when they are first named: counting ranks needs no torch.
"""

from .lazy import names_of

__version__ = "0.1.0"

__getattr__ = names_of(__name__, {"tasks.rankers": ("load_ranker",)})
