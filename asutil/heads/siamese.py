import torch
from torch import nn

from .base import head


@head("siamese", reads="vectors")
class Siamese(nn.Module):
    """The siamese network's head on two vectors: whether a candidate answers a question, as one logit.

    z = w [u ; v ; |u - v|] + b
    Paper: asbert, section 3.1 and figure 1 (a).
    Shapes: questions u, candidates v (B, H) -> logits (B,)
    Deviation: D-82, the paper leaves the pooling of the two vectors open.

    Example:
        >>> Siamese(hidden_size=8)(torch.zeros(3, 8), torch.zeros(3, 8)).shape
        torch.Size([3])
    """

    def __init__(self, hidden_size: int):
        super().__init__()
        self.linear = nn.Linear(3 * hidden_size, 1)
        nn.init.normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)

    def forward(self, questions: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        with torch.autocast(questions.device.type, enabled=False):
            questions, candidates = (vectors.to(self.linear.weight.dtype) for vectors in (questions, candidates))
            return self.linear(torch.cat([questions, candidates, (questions - candidates).abs()], -1)).squeeze(-1)
