"""Files and folders: strict readers, writers that leave a whole file or none, hashes, the hub and its mirror, and checkpoints."""

from ..lazy import names_of

__getattr__ = names_of(__name__)
