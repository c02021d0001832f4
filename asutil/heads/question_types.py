import torch
from torch import nn

from ..io.spelling import require_one_of
from .base import head


@head("question_types", reads="vectors")
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
        require_one_of("form", form, ("projected", "bilinear"))
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
