"""The training loop: checkpoints that resume exactly, and several processes that train one model together."""

from ..lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "loop": (
            "order_metrics",
            "train",
            "validate",
        ),
    },
)
