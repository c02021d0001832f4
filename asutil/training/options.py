"""How a model is trained: the keywords of `training.train`."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from ..io.spelling import require_one_of
from ..models import scoring


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a model is trained.

    Args:
        warmup_steps: steps in which the learning rate rises from 0 to `peak_lr`; it falls to 0 over the others.
        seed: of dropout, and of the samples of ELECTRA's generator.
        save_every, log_every: steps between two checkpoints, and between two rows of the log.
        save_seconds: the longest time between two checkpoints, whatever `save_every` is; evaluations are never cut in two.
        mlm_weight, objective_weight, detection_weight: weights of the loss's parts.
        precision: "fp32", "bf16", or "auto": bf16 on a GPU that has it, else fp32.
        compile: whether to compile the backbone for packed micro-batches; default: on a GPU, for 1,000 passes or more.
        evaluate: model -> {metric: value}, called every `evaluate_every` steps and after the last one.
        patience: stop after so many evaluations without a higher `best_metric`, and end with the weights of the highest.
        launch: starts processes that train instead of this one, and leave a checkpoint of the last step in the folder.
        on_log: called with every row of the log, in the first process: `lambda row: wandb.log(row, step=row["step"])`.
        progress: whether a bar, the number of steps and the expected time are shown.
    Raises: ValueError for an unknown precision, for patience without evaluations or by a loss, for a warm-up of a part of a step, and for
        a weight of a part that the model lacks.
    """

    peak_lr: float
    warmup_steps: int
    weight_decay: float
    seed: int
    save_every: int
    log_every: int
    save_seconds: float = 120.0
    mlm_weight: float = 1.0
    objective_weight: float = 1.0
    detection_weight: float = 50.0
    precision: str = "auto"
    compile: bool | None = None
    evaluate: Callable[[nn.Module], dict] | None = None
    evaluate_every: int | None = None
    patience: int | None = None
    best_metric: str = "map"
    launch: Callable[[], None] | None = None
    on_log: Callable[[dict], None] | None = None
    progress: bool = True

    def __post_init__(self):
        require_one_of("precision", self.precision, ("auto", "fp32", "bf16"))
        if self.patience is not None and (self.evaluate is None or not self.evaluate_every):
            raise ValueError("patience needs `evaluate`, which gives the metric to wait for, and `evaluate_every`")
        if self.warmup_steps != int(self.warmup_steps):
            raise ValueError(
                f"warmup_steps: a whole number of steps expected, no share of them, got {self.warmup_steps}"
            )
        if (
            self.patience is not None
            and self.best_metric.endswith("loss")
            and not self.best_metric.startswith(("-", "neg"))
        ):
            advice = "let `evaluate` give the negative of a loss under another name"
            raise ValueError(
                f"best_metric: a metric that is better where it is higher, got {self.best_metric!r}; {advice}"
            )

    @property
    def bf16(self) -> bool:
        """Whether the model runs in bf16. Raises: ValueError for bf16 on a GPU that lacks it."""
        where = scoring.device()
        if self.precision == "auto":
            return scoring.has_bf16(where)
        return scoring.require_bf16(self.precision == "bf16", where)

    def loss_weights(self, model) -> dict[str, float]:
        """The weight of each part of a model's loss."""
        weights = model.loss_weights(self)
        if getattr(model, "masked", True) is None and self.mlm_weight not in (0, Options.mlm_weight):
            raise ValueError(f"mlm_weight: the model has no masked-language-model head, got {self.mlm_weight:g}")
        if "detection" not in weights and self.detection_weight != Options.detection_weight:
            raise ValueError(
                f"detection_weight: only ELECTRA detects tokens, {self.detection_weight:g} came for another model"
            )
        return weights
