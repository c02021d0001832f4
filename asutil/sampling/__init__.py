"""The pre-training objectives: keyed draws -> sentence ranges of an index and their labels.

`Sampler` makes the examples of every objective; an objective is a file of a few formulas in `objectives`.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
