"""Functions of scores: ranking metrics, answers and evidence, tests of significance, what changed between two rankings, TREC files.

Nothing here imports torch.
"""

from ..lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "rankings": (
            "Ranking",
            "auc",
            "classification",
            "confusion",
            "of",
            "ranking",
            "verification",
            "write_trec",
        ),
        "significance": (
            "Comparison",
            "paired_bootstrap",
            "student_t",
            "student_t_from_summary",
        ),
    },
)
