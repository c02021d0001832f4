"""What a notebook shows: plots, ranked lists and verdicts as HTML tables, principal components."""

from asutil.lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "lists": ("compare_rankings", "ranked_example", "sampled"),
        "plots": ("accuracy_bars", "confusion_plot", "moves_plot", "training_curves"),
    },
)
