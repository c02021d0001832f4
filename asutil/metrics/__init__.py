"""Functions of scores: ranking metrics (a file each in `measures`), answers, verdicts, significance, calibration, TREC files.

Nothing here imports torch, but for `peers`, which asks torchmetrics.
"""

from ..lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "rankings": ("Ranking", "at_random", "auc", "classification", "of", "ranking"),
        "significance": ("Comparison", "holm", "paired_bootstrap", "student_t", "student_t_from_summary"),
        "trec": ("write_trec",),
        "two_sources": ("over_questions_and_seeds", "seed_variance", "smallest_effect"),
        "verdicts": ("confusion", "verification"),
    },
)
