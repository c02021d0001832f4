"""The pre-training objectives: keyed draws -> sentence ranges of an index and their labels.

`Sampler` gives the examples of every objective; an objective is a few formulas in `objectives`.
"""

from ..lazy import names_of
from . import mspp as mspp  # it tells `Sampler` of its own class

__getattr__ = names_of(
    __name__,
    {
        "sampler": (
            "OBJECTIVES",
            "Sampler",
            "context_overlap",
            "heads_of",
            "read_by",
        ),
        "mspp": ("MultiSentenceSampler",),
    },
)
