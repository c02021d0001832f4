import torch

from .base import EvidenceHead, head


@head("ie_k", reads="slots")
class IndividualEvidenceK(EvidenceHead):
    """IEk: score each candidate from its own embedding.

    z_i = W E_i + b,  i = 1..K
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H) -> logits (B, K, C); slot 0 is the question.

    Example:
        >>> IndividualEvidenceK(hidden_size=8)(torch.zeros(3, 6, 8)).shape
        torch.Size([3, 5, 2])
    """

    def forward(self, slots: torch.Tensor, present: torch.Tensor | None = None) -> torch.Tensor:
        return self.scored(slots[:, 1:])
