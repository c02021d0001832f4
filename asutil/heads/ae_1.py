import torch

from .base import EvidenceHead, head


@head("ae_1", reads="slots")
class AggregatedEvidence1(EvidenceHead):
    """AE1: one label for the whole input, from the mean of all embeddings that are present.

    z = W mean_i E_i + b,  i = 0..K; with form="released" the sum replaces the mean
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H), present (B, K+1) bool -> logits (B, C).
    Args:
        present: False at empty slots, which are ignored; all slots are present where it is left out.
    Deviation: D-31.

    Example:
        >>> head = AggregatedEvidence1(hidden_size=8, classes=3)
        >>> slots = torch.ones(1, 6, 8)
        >>> bool((head(slots, torch.tensor([[True] * 3 + [False] * 3])) == head(slots)).all())
        True
    """

    def forward(self, slots: torch.Tensor, present: torch.Tensor | None = None) -> torch.Tensor:
        slots = slots.to(self.layers[-1].weight.dtype)
        present = torch.ones_like(slots[..., :1]) if present is None else present[..., None].to(slots.dtype)
        summed = (slots * present).sum(1)
        return self.scored(summed if self.form == "released" else summed / present.sum(1))
