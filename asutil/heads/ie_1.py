import torch

from .base import EvidenceHead, head


@head("ie_1", reads="slots")
class IndividualEvidence1(EvidenceHead):
    """IE1: one label for the whole input, from the embedding of the question or claim.

    z = W E_0 + b
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H) -> logits (B, C).

    Example:
        >>> IndividualEvidence1(hidden_size=8, classes=3)(torch.zeros(2, 6, 8)).shape
        torch.Size([2, 3])
    """

    def forward(self, slots: torch.Tensor, present: torch.Tensor | None = None) -> torch.Tensor:
        return self.scored(slots[:, 0])
