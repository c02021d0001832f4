"""Heads on the embeddings of a question or claim and of its candidates or evidence: one linear layer on what they read of them."""

import torch
from torch import nn

# ------------------------------------------------------------------ heads on the slots of a joint input


class EvidenceHead(nn.Module):
    """What the four heads on [E_0 ... E_k] share: one linear layer, in float32 whatever the body ran in.

    Args:
        form: "linear", as the paper has it, or "released": dense, tanh and dropout before it, as in the authors' code.
    Deviation: D-76.
    """

    reads = 1  # embeddings that are scored side by side

    def __init__(self, hidden_size: int, classes: int = 2, form: str = "linear"):
        super().__init__()
        if form not in ("linear", "released"):
            raise ValueError(f'head_form: "linear" or "released" expected, got {form!r}')
        self.form, size = form, self.reads * hidden_size
        before = [nn.Dropout(0.1), nn.Linear(size, size), nn.Tanh(), nn.Dropout(0.1)] if form == "released" else []
        self.layers = nn.Sequential(*before, nn.Linear(size, classes))
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def scored(self, vectors: torch.Tensor) -> torch.Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            return self.layers(vectors.to(self.layers[-1].weight.dtype))


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


class AggregatedEvidenceK(EvidenceHead):
    """AEk: score each candidate from its own embedding joined to the question's.

    z_i = W [E_0 ; E_i] + b,  i = 1..K
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H) -> logits (B, K, C); slot 0 is the question.

    Example:
        >>> AggregatedEvidenceK(hidden_size=8)(torch.zeros(3, 6, 8)).shape
        torch.Size([3, 5, 2])
    """

    reads = 2

    def forward(self, slots: torch.Tensor, present: torch.Tensor | None = None) -> torch.Tensor:
        candidates = slots[:, 1:]
        return self.scored(torch.cat([slots[:, :1].expand_as(candidates), candidates], -1))


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


class AggregatedEvidence1(EvidenceHead):
    """AE1: one label for the whole input, from the mean of all embeddings that are there.

    z = W mean_i E_i + b,  i = 0..K; with form="released" their sum in place of the mean
    Paper: joint_inference, section 3.3.
    Shapes: slots (B, K+1, H), present (B, K+1) bool -> logits (B, C).
    Args:
        present: False at empty slots, which count for nothing; all slots where it is left out.
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


EVIDENCE = {"ie_k": IndividualEvidenceK, "ae_k": AggregatedEvidenceK, "ie_1": IndividualEvidence1, "ae_1": AggregatedEvidence1}


# ------------------------------------------------------------------ heads on pairs, each read in an input of its own


class MaxPooling(EvidenceHead):
    """Pairwise baseline: one label from the elementwise maximum of the embeddings of all (claim, evidence) pairs.

    z = W max_i E_i + b,  i = 1..K
    Paper: joint_inference, section 4.2 and appendix B.2, without a formula.
    Shapes: pairs (B, K, H), present (B, K) bool with one pair at least -> logits (B, C).
    Deviation: D-81.
    """

    def forward(self, pairs: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        return self.scored(pairs.masked_fill(~present[..., None], -torch.inf).amax(1))


class WeightedSum(MaxPooling):
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


POOLED = {"pair_max": MaxPooling, "pair_weighted": WeightedSum}
