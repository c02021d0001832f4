"""Heads on the embeddings of a question or claim and its candidates or evidence, on two vectors, and on those of a long input."""

import torch
from torch import nn

# ------------------------------------------------------------------ heads on the slots of a joint input


class EvidenceHead(nn.Module):
    """What the four heads on [E_0 ... E_k] share: one linear layer, in float32 for a body of any precision.

    Args:
        form: "linear", as in the paper, or "released": dense, tanh and dropout before it, as in the authors' code.
    Deviation: D-76.
    """

    reads = 1  # embeddings that are joined and scored

    def __init__(self, hidden_size: int, classes: int = 2, form: str = "linear"):
        super().__init__()
        if form not in ("linear", "released"):
            raise ValueError(f'head_form: "linear" or "released" expected, got {form!r}')
        self.form = form
        size = self.reads * hidden_size
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


EVIDENCE = {
    "ie_k": IndividualEvidenceK,
    "ae_k": AggregatedEvidenceK,
    "ie_1": IndividualEvidence1,
    "ae_1": AggregatedEvidence1,
}


# ------------------------------------------------------------------ heads on pairs, each in an input of its own


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


# ------------------------------------------------------------------ heads on the vectors of two texts


class Siamese(nn.Module):
    """The siamese network's head on two vectors: whether a candidate answers a question, as one logit.

    z = w [u ; v ; |u - v|] + b
    Paper: asbert, section 3.1 and figure 1 (a).
    Shapes: questions u, candidates v (B, H) -> logits (B,)
    Args:
        classes: 2, which one logit tells apart.
    Deviation: D-82, the paper leaves the pooling of the two vectors open.

    Example:
        >>> Siamese(hidden_size=8)(torch.zeros(3, 8), torch.zeros(3, 8)).shape
        torch.Size([3])
    """

    def __init__(self, hidden_size: int, classes: int = 2):
        super().__init__()
        if classes != 2:
            raise ValueError(f"classes: one logit tells 2 classes apart, got {classes}")
        self.linear = nn.Linear(3 * hidden_size, 1)
        nn.init.normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)

    def forward(self, questions: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        with torch.autocast(questions.device.type, enabled=False):
            questions, candidates = (vectors.to(self.linear.weight.dtype) for vectors in (questions, candidates))
            return self.linear(torch.cat([questions, candidates, (questions - candidates).abs()], -1)).squeeze(-1)


class QuestionTypeProjection(nn.Module):
    """A question and its sentences in the subspace of every question type.

    projected: q_k = D(W_k^q q),  s_kj = D(W_k^s s_j),  W in R^(d' x d), D dropout: for the cosine of equation 3
    bilinear:  q_k = D(W_k q),    s_kj = s_j,           W in R^(d x d): for the product of equation 2
    Paper: evidence_contrast, section 3.2, equations 2 and 3, and appendix C.
    Shapes: question (H,), sentences (N, H) -> (Q, d), (Q, N, d)
    Args:
        classes: question types, each with matrices of its own; 1 is a projection that all share.
        size: d'; H where it is left out, and always for bilinear.
        form: "projected" or "bilinear".

    Example:
        >>> projection = QuestionTypeProjection(hidden_size=8, classes=3, size=4)
        >>> [tuple(vectors.shape) for vectors in projection(torch.ones(8), torch.ones(5, 8))]
        [(3, 4), (3, 5, 4)]
    """

    def __init__(
        self, hidden_size: int, classes: int = 2, size: int | None = None, form: str = "projected", dropout: float = 0.1
    ):
        super().__init__()
        if form not in ("projected", "bilinear"):
            raise ValueError(f'form: "projected" or "bilinear" expected, got {form!r}')
        if form == "bilinear" and size not in (None, hidden_size):
            raise ValueError(f"size: s' W q needs a square W of {hidden_size}, got {size}")
        self.form = form
        size = size or hidden_size
        self.of_questions = nn.Parameter(torch.empty(classes, size, hidden_size))
        self.of_sentences = nn.Parameter(torch.empty(classes, size, hidden_size)) if form == "projected" else None
        self.dropout = nn.Dropout(dropout)
        for matrices in self.parameters():
            for matrix in matrices:
                nn.init.xavier_uniform_(matrix)

    def forward(self, question: torch.Tensor, sentences: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast(question.device.type, enabled=False):
            question, sentences = (vectors.to(self.of_questions.dtype) for vectors in (question, sentences))
            questions = self.dropout(self.of_questions @ question)
            if self.form == "bilinear":
                return questions, sentences.expand(len(questions), -1, -1)
            return questions, self.dropout(torch.einsum("qdh,nh->qnd", self.of_sentences, sentences))
