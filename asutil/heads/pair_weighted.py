import torch
from torch import nn

from .base import EvidenceHead, head


@head("pair_weighted", reads="pairs")
class WeightedSum(EvidenceHead):
    """Pairwise baseline: one label from a learnt weighted sum of the embeddings of all (claim, evidence) pairs.

    z = W sum_i a_i E_i + b,  a = softmax_i(v . E_i),  i = 1..K
    Paper: joint_inference, section 4.2 and appendix B.2, without a formula.
    Shapes: pairs (B, K, H), present (B, K) bool with one pair at least -> logits (B, C).
    Deviation: D-81.
    """

    def __init__(self, hidden_size: int, classes: int = 2, form: str = "linear"):
        super().__init__(hidden_size, classes, form)
        self.weigh = nn.Linear(hidden_size, 1, bias=False)  # a constant would change no softmax
        nn.init.normal_(self.weigh.weight, std=0.02)

    def forward(self, pairs: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        with torch.autocast(pairs.device.type, enabled=False):
            pairs = pairs.to(self.weigh.weight.dtype)
            weights = self.weigh(pairs).masked_fill(~present[..., None], -torch.inf).softmax(1)
        return self.scored((weights * pairs).sum(1))
