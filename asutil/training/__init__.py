"""Training: the loop with checkpoints that resume exactly, several processes that train one model, validation."""

from ..lazy import names_of

__getattr__ = names_of(__name__)
