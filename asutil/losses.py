"""The papers' losses, and two of others for lists of candidates, summed in float32 at least.

All are plain functions of logits, or of vectors, and targets.

Every mean is over the whole optimiser batch: a micro-batch passes that batch's count as `total`. The losses of the micro-batches then
sum to the loss of the whole batch, and their gradients to its gradient.
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, normalize

from .io.spelling import require_one_of

IGNORED = -100


def _wide(values: torch.Tensor) -> torch.Tensor:
    """Float32 where the values are narrower."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def mlm(logits: torch.Tensor, targets: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """Masked language modelling: cross-entropy at the masked positions.

    L = -(1 / total) sum_i log softmax(logits_i)[targets_i]
    Paper: sentence_objectives, section 5.1.
    Shapes: logits (M, V), targets (M,) -> scalar; M may be 0, which gives 0 with a gradient of zeros.
    Args:
        total: masked tokens of the whole optimiser batch; M where it is left out.

    Example:
        >>> mlm(torch.zeros(3, 10), torch.tensor([1, 2, 3])).item() == float(torch.tensor(10.0).log())
        True
    """
    return pair(logits, targets, total)


def replaced_token(
    logits: torch.Tensor, replaced: torch.Tensor, mask: torch.Tensor, total: int | None = None
) -> torch.Tensor:
    """ELECTRA's token detection: binary cross-entropy of "this token is not the original one" over the real tokens.

    L = -(1 / total) sum_t r_t log s(logits_t) + (1 - r_t) log(1 - s(logits_t)),  mask_t != 0,  s(z) = 1 / (1 + exp(-z))
    Paper: sentence_objectives, section 5.1 and appendix B.
    Shapes: logits, replaced, mask (B, T), packed (1, N) -> scalar.
    Args:
        replaced: 1 where another token is in the place of the original one, else 0.
        mask: 1, or 0 at padding, which has no loss.
        total: real tokens of the whole optimiser batch; those of this call where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> replaced_token(torch.tensor([[0.0, -9.0, 9.0]]), torch.tensor([[1, 0, 0]]), torch.tensor([[1, 1, 0]])).item() * 2
        0.693...
    """
    fits = logits.shape == replaced.shape == mask.shape
    _require(fits, "logits, replaced and mask of one shape", logits, replaced, mask)
    logits = _wide(logits)
    real = mask.bool()
    losses = binary_cross_entropy_with_logits(logits.where(real, 0), replaced.to(logits.dtype), reduction="none")
    return losses.where(real, 0).sum() / max(int(real.sum()) if total is None else total, 1)


def pair(logits: torch.Tensor, labels: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """Cross-entropy of the sentence-level objectives and of fine-tuning; the label -100 is ignored.

    L = -(1 / total) sum_i log softmax(logits_i)[labels_i],  labels_i != -100
    Paper: sentence_objectives, sections 3 and 4.
    Shapes: logits (..., C), labels (...) -> scalar.
    Args:
        total: labels of the whole optimiser batch that are not ignored; those of this call where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> pair(torch.tensor([[0.0, 0.0], [5.0, -5.0]]), torch.tensor([1, -100])).item()
        0.693...
    """
    _require(logits.shape[:-1] == labels.shape, "logits (..., C) and labels (...)", logits, labels)
    labels = labels.reshape(-1)
    logits = _wide(logits).reshape(-1, logits.shape[-1])
    summed = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
    return summed / max(int((labels != IGNORED).sum()) if total is None else total, 1)


def listwise(logits: torch.Tensor, labels: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """A question's candidates against each other: cross-entropy of their softmax, the right ones sharing the target.

    L = -(1 / total) sum_l (1 / R_l) sum_{i right} log softmax(logits_l)_i,  R_l the right candidates of list l
    The limit of ListNet's top-one loss for large labels: Cao, Qin, Liu, Tsai and Li, 2007, Learning to rank: from pairwise
    approach to listwise approach.
    Shapes: logits (L, K), labels (L, K), -100 in an empty place -> scalar.
    Args:
        labels: 1 for a right candidate, 0 for a wrong one. A list without a right one has no loss.
        total: lists of the whole optimiser batch with a right candidate; those of this call where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> listwise(torch.zeros(2, 4), torch.tensor([[1, 0, -100, -100], [0, 0, 0, -100]])).item()
        0.693...
    """
    _require(logits.shape == labels.shape and logits.ndim == 2, "logits (L, K) and labels (L, K)", logits, labels)
    right = labels == 1
    answered = right.sum(1)
    shares = right / answered.clamp(min=1)[:, None]
    summed = _cross_entropy(logits, shares, labels != IGNORED)
    return summed / max(int((answered > 0).sum()) if total is None else total, 1)


def distillation(logits: torch.Tensor, teacher: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """A question's candidates as another ranker sees them: cross-entropy of its softmax and ours. It reads no labels.

    L = -(1 / total) sum_l sum_i softmax(teacher_l)_i log softmax(logits_l)_i, which has the gradient of the divergence of the two
    Hinton, Vinyals and Dean, 2015: Distilling the knowledge in a neural network.
    Shapes: logits (L, K), teacher (L, K), minus infinity in an empty place -> scalar.
    Args:
        teacher: the other ranker's scores, as logits.
        total: lists of the whole optimiser batch; L where it is left out.
    Raises: ValueError where the shapes do not fit.

    Example:
        >>> distillation(torch.zeros(1, 3), torch.tensor([[2.0, 1.0, -torch.inf]])).item()
        0.693...
    """
    _require(logits.shape == teacher.shape and logits.ndim == 2, "logits (L, K) and teacher (L, K)", logits, teacher)
    shares = _wide(teacher).softmax(1)
    return _cross_entropy(logits, shares, teacher != -torch.inf) / max(len(logits) if total is None else total, 1)


def _cross_entropy(logits: torch.Tensor, shares: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """-sum_l sum_i shares_li log softmax(logits_l)_i over the real places. Shapes: (L, K) each -> scalar"""
    logs = _wide(logits).masked_fill(~real, -torch.inf).log_softmax(1)
    return -(shares * logs.where(real, 0)).sum()


def siamese(logits: torch.Tensor, labels: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """The siamese network's loss: binary cross-entropy of "this candidate answers this question".

    L = -(1 / total) sum_i y_i log s(logits_i) + (1 - y_i) log(1 - s(logits_i)),  s(z) = 1 / (1 + exp(-z))
    Paper: asbert, section 3.1.
    Shapes: logits, labels (B,) -> scalar.
    Args:
        labels: 1 for a right candidate, 0 for a wrong one.
        total: examples in the whole optimiser batch; B where it is left out.
    Raises: ValueError where the shapes do not fit.
    Deviation: D-24, the printed formula lacks a minus sign.

    Example:
        >>> siamese(torch.tensor([0.0, 0.0]), torch.tensor([1, 0])).item()
        0.693...
    """
    _require(logits.shape == labels.shape and logits.ndim == 1, "logits (B,) and labels (B,)", logits, labels)
    logits = _wide(logits)
    summed = binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="sum")
    return summed / max(len(labels) if total is None else total, 1)


def distance(first: torch.Tensor, second: torch.Tensor, squared: bool = True) -> torch.Tensor:
    """|first - second|^2, or |first - second|, in float32 at least. Shapes: (..., H), (..., H) -> (...)

    Example:
        >>> [distance(torch.zeros(2), torch.tensor([3.0, 4.0]), squared).item() for squared in (True, False)]
        [25.0, 5.0]
    """
    difference = _wide(first - second)
    return difference.square().sum(-1) if squared else torch.linalg.vector_norm(difference, dim=-1)


def triplet_kinds(to_positive: torch.Tensor, to_negative: torch.Tensor, margin: float = 5.0) -> dict[str, torch.Tensor]:
    """Easy, semi-hard and hard triplets, by their two distances: p to the positive, n to the negative.

    easy: p + m < n;  semi_hard: p < n < p + m;  hard: n < p.  Where two sides are equal, a triplet is of no kind.
    Paper: asbert, section 3.2.
    Shapes: (B,), (B,) -> {kind: (B,) bool}

    Example:
        >>> kinds = triplet_kinds(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([7.0, 3.0, 0.5]), margin=5.0)
        >>> {kind: members.tolist() for kind, members in kinds.items()}
        {'easy': [True, False, False], 'semi_hard': [False, True, False], 'hard': [False, False, True]}
    """
    return {
        "easy": to_positive + margin < to_negative,
        "semi_hard": (to_positive < to_negative) & (to_negative < to_positive + margin),
        "hard": to_negative < to_positive,
    }


SELECTIONS = ("all", "semi_hard", "hard")  # easy triplets have loss 0: training on them alone would learn nothing


def triplet(
    anchor: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
    margin: float = 5.0,
    squared: bool = True,
    selection: str = "all",
) -> torch.Tensor:
    """The triplet network's loss: a right candidate should be nearer to the question than a wrong one, by a margin.

    L = sum_i max(d(a_i, p_i) - d(a_i, n_i) + m, 0),  d(x, y) = |x - y|^2
    Paper: asbert, section 3.2.
    Shapes: anchor, positive, negative (B, H) -> scalar.
    Args:
        squared: False takes d(x, y) = |x - y|.
        selection: the triplets that have a loss: "all", or those that are "semi_hard" or "hard" at present (`triplet_kinds`).
    Raises: ValueError where the shapes do not fit, or for an unknown selection.
    Deviation: D-25, the paper's text names the norm, its formula the square.

    Example:
        >>> origin = torch.zeros(2, 1)
        >>> triplet(origin, torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [1.0]])).item()  # 1 - 4 + 5 and 9 - 1 + 5
        15.0
    """
    fits = anchor.shape == positive.shape == negative.shape and anchor.ndim == 2
    _require(fits, "anchor, positive and negative of one shape (B, H)", anchor, positive, negative)
    require_one_of("selection", selection, SELECTIONS)
    near = distance(anchor, positive, squared)
    far = distance(anchor, negative, squared)
    losses = (near - far + margin).clamp(min=0)
    if selection != "all":
        losses = losses.where(triplet_kinds(near, far, margin)[selection], 0)
    return losses.sum()


def or_softmax(logits: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Minus the log of the summed probability of all positions where the answer is, a row at a time.

    L = -log sum_{t right} exp(z_t) / sum_t exp(z_t)
    Paper: evidence_contrast, appendix B.2, which takes the extraction of its backbones' authors.
    Shapes: logits, right (B, T) -> (B,); a row without a right position gives 0, with a gradient of zeros.

    Example:
        >>> or_softmax(torch.zeros(2, 4), torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0]]).bool()).tolist()
        [0.693..., 0.0]
    """
    answered = right.any(-1)
    logits = _wide(logits).where(answered[:, None], 0)
    wrong = ~right & answered[:, None]
    return (logits.logsumexp(-1) - logits.masked_fill(wrong, -torch.inf).logsumexp(-1)).where(answered, 0)


def balanced(logits: torch.Tensor, right: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Binary cross-entropy of "this sentence is evidence"; the few pieces of evidence weigh as much as the many other sentences.

    L = sum_j w_j b_j / sum_j w_j,  b_j = -log P(the label of j),  w_j = N + 1 for evidence, P + 1 for other sentences,
    with P pieces of evidence and N other sentences: in all P (N + 1) against N (P + 1)
    Paper: evidence_contrast, section 4.1: the code that it replicates for QASPER.
    Shapes: logits, right, real (B, N) -> (B,); 0 without a real sentence.
    Args:
        real: False at padding.
    Deviation: D-93.

    Example:
        >>> logits, right = torch.tensor([[2.0, 0.0, 0.0, 0.0]]), torch.tensor([[1, 0, 0, 0]]).bool()  # weights 4, 2, 2, 2
        >>> balanced(logits, right, torch.ones(1, 4).bool()).item()  # (4 * log(1 + exp(-2)) + 2 * 3 * log(2)) / 10
        0.466...
    """
    right = right & real
    evidence = right.sum(1, keepdim=True)
    others = (real & ~right).sum(1, keepdim=True)
    weights = torch.where(right, others + 1, evidence + 1) * real
    logits = _wide(logits)
    losses = binary_cross_entropy_with_logits(logits, right.to(logits.dtype), reduction="none")
    return (losses * weights).sum(1) / weights.sum(1).clamp(min=1)


def question_evidence(
    questions: torch.Tensor,
    sentences: torch.Tensor,
    evidence: torch.Tensor,
    kind: int,
    temperatures: torch.Tensor,
    similarity: str = "cosine",
    wrong_types: bool = True,
    other_evidence: str = "exclude",
    reduction: str = "mean",
) -> torch.Tensor:
    """The contrastive loss of one question: near its evidence, far from other sentences and from the vectors of other question types.

    L = (1 / |E|) sum_{n in E} -log[ e_k(n) / (e_k(n) + sum_{j not in E} e_k(j) + sum_{k' != k} sum_j e_k'(j)) ]
    e_k(j) = exp(sim(s_kj, q_k) / tau_k),  E the evidence, k the question's type
    Paper: evidence_contrast, sections 3.1 and 3.2, equation 1.
    Shapes: questions (Q, d), sentences (Q, N, d), evidence (N,) bool, temperatures (Q,) -> scalar; row k is projected for type k; there is
        one row where nothing is projected or all types share a projection.
    Args:
        similarity: "cosine" (equation 3, of projected vectors) or "dot" (equation 2 where questions are W_k q).
        wrong_types: whether the vectors of the other types count as negatives.
        other_evidence: "exclude", or "include" the other evidence of the question among its negatives, as the released code does.
        reduction: "mean" over the evidence, or "log_sum", as equation 1 can be read, with other_evidence="exclude":
            L = -log[ sum_{n in E} e_k(n) / (sum_{n in E} e_k(n) + sum_{j not in E} e_k(j) + sum_{k' != k} sum_j e_k'(j)) ].
    Raises: ValueError where there is no evidence, the shapes do not fit, or a temperature is not above 0.
    Deviation: D-28.

    Example:
        >>> sentences = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # the first is evidence: cosines 1 and 0 -> log(1 + exp(-1))
        >>> question_evidence(torch.tensor([[2.0, 0.0]]), sentences, torch.tensor([True, False]), 0, torch.tensor([1.0])).item()
        0.313...
    """
    _check_question(questions, sentences, evidence, kind, temperatures)
    require_one_of("similarity", similarity, ("cosine", "dot"))
    require_one_of("reduction", reduction, ("mean", "log_sum"))
    require_one_of("other_evidence", other_evidence, ("exclude", "include") if reduction == "mean" else ("exclude",))
    questions, sentences = _wide(questions), _wide(sentences)
    if similarity == "cosine":
        questions, sentences = normalize(questions, dim=-1), normalize(sentences, dim=-1)
    logits = (sentences * questions[:, None]).sum(-1) / temperatures.to(questions.dtype)[:, None]
    right, wrong = logits[kind][evidence], logits[kind][~evidence]
    if wrong_types:
        others = torch.arange(len(logits), device=logits.device) != kind
        wrong = torch.cat([wrong, logits[others].flatten()])
    if reduction == "log_sum":
        return torch.cat([right, wrong]).logsumexp(0) - right.logsumexp(0)
    if other_evidence == "include":
        return (torch.cat([right, wrong]).logsumexp(0) - right).mean()
    return (torch.cat([right[:, None], wrong.expand(len(right), -1)], 1).logsumexp(1) - right).mean()


def _require(fits: bool, expected: str, *tensors: torch.Tensor) -> None:
    if not fits:
        raise ValueError(f"{expected} expected, got {', '.join(str(tuple(tensor.shape)) for tensor in tensors)}")


def _check_question(questions, sentences, evidence, kind, temperatures) -> None:
    types, size = questions.shape if questions.ndim == 2 else (None, None)
    count = len(evidence) if evidence.ndim == 1 else None
    expected = "questions (Q, d), sentences (Q, N, d) and evidence (N,)"
    _require(sentences.shape == (types, count, size), expected, questions, sentences, evidence)
    if temperatures.shape != (types,) or not (temperatures > 0).all():
        raise ValueError(
            f"a temperature above 0 for each of the {types} question types expected, got {temperatures.tolist()}"
        )
    if not 0 <= kind < types:
        raise ValueError(f"kind: 0 to {types - 1} expected, got {kind}")
    if evidence.dtype != torch.bool or not evidence.any():
        raise ValueError(
            "evidence: a bool for each sentence, one of them true, expected; questions without evidence have no contrastive loss"
        )
