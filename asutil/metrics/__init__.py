"""Functions of scores: ranking metrics (a file each in `measures`), answers, verdicts, significance, calibration, TREC files.

Nothing here imports torch, but for `peers`, which asks torchmetrics.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
