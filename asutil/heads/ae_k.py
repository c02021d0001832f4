import torch

from .base import EvidenceHead, head


@head("ae_k", reads="slots")
class AggregatedEvidenceK(EvidenceHead):
    """AEk: score each candidate from its own embedding joined to the question's.

    z_i = W [E_0 ; E_i] + b,  i = 1..K
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H) -> logits (B, K, C); slot 0 is the question.

    Example:
        >>> AggregatedEvidenceK(hidden_size=8)(torch.zeros(3, 6, 8)).shape
        torch.Size([3, 5, 2])
    """

    joined = 2

    def forward(self, slots: torch.Tensor, present: torch.Tensor | None = None) -> torch.Tensor:
        candidates = slots[:, 1:]
        return self.scored(torch.cat([slots[:, :1].expand_as(candidates), candidates], -1))
