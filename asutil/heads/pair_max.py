import torch

from .base import EvidenceHead, head


@head("pair_max", reads="pairs")
class MaxPooling(EvidenceHead):
    """Pairwise baseline: one label from the elementwise maximum of the embeddings of all (claim, evidence) pairs.

    z = W max_i E_i + b,  i = 1..K
    Paper: joint_inference, section 4.2 and appendix B.2, without a formula.
    Shapes: pairs (B, K, H), present (B, K) bool with one pair at least -> logits (B, C).
    Deviation: D-81.
    """

    def forward(self, pairs: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        return self.scored(pairs.masked_fill(~present[..., None], -torch.inf).amax(1))
