"""The formulas of losses and heads in Python's own numbers, a row, a slot and a unit at a time: what fast code is measured by."""

import math

import torch
from torch import nn

IGNORED = -100

# ------------------------------------------------------------------ losses


def log_of_sum(values: list[float]) -> float:
    """log sum_i exp(values_i)"""
    highest = max(values)
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))


def pair(logits, labels, total=None) -> float:
    """The mean of -log softmax over the rows whose label counts, 0 where there is none."""
    rows = zip(logits.reshape(-1, logits.shape[-1]).tolist(), labels.reshape(-1).tolist())
    terms = [log_of_sum(row) - row[label] for row, label in rows if label != IGNORED]
    return math.fsum(terms) / (total or max(len(terms), 1))


def binary(logits, labels, total=None) -> float:
    """Binary cross-entropy: -log s(z) of a label 1, -log(1 - s(z)) of a label 0; the mean where no total is given."""
    shares = [1 / (1 + math.exp(-z)) for z in (logits.tolist() if torch.is_tensor(logits) else logits)]
    return math.fsum(-math.log(share if label else 1 - share) for share, label in zip(shares, labels)) / (total or len(labels))


def balanced(logits, labels) -> float:
    """Binary cross-entropy, a label 1 weighing as much as there are labels 0, and one more, and the other way round."""
    ones = sum(map(bool, labels))
    weights = [len(labels) - ones + 1 if label else ones + 1 for label in labels]
    return math.fsum(weight * binary([z], [label]) for weight, z, label in zip(weights, logits.tolist(), labels)) / max(sum(weights), 1)


def distance(one: list[float], other: list[float], squared=True) -> float:
    apart = math.fsum((x - y) ** 2 for x, y in zip(one, other))
    return apart if squared else math.sqrt(apart)


def triplets(anchors, positives, negatives, margin, squared) -> list[tuple[float, str | None]]:
    """The loss of one triplet after the other, and its kind."""
    found = []
    for anchor, *others in zip(anchors.tolist(), positives.tolist(), negatives.tolist()):
        near, far = (distance(anchor, other, squared) for other in others)
        kind = "hard" if far < near else "semi_hard" if near < far < near + margin else "easy" if near + margin < far else None
        found.append((max(near - far + margin, 0.0), kind))
    return found


def or_softmax(logits: list[float], right: list[bool]) -> float:
    """Minus the log of the probability that one of the right places is taken; 0 where there is none."""
    places = [z for z, is_right in zip(logits, right) if is_right]
    return log_of_sum(logits) - log_of_sum(places) if places else 0.0


def lists(logits, shares, real, total) -> float:
    """Minus the log of a candidate's share of the softmax of its list, by its share of the target."""
    terms = []
    for row, wanted, there in zip(logits.tolist(), shares, real.tolist()):
        normaliser = log_of_sum([z for z, is_there in zip(row, there) if is_there])
        terms += [share * (normaliser - z) for z, share, is_there in zip(row, wanted, there) if is_there]
    return math.fsum(terms) / total


def listwise(logits, labels, total=None) -> float:
    rights = [sum(label == 1 for label in row) for row in labels.tolist()]
    shares = [[(label == 1) / max(right, 1) for label in row] for row, right in zip(labels.tolist(), rights)]
    return lists(logits, shares, labels != IGNORED, total or sum(map(bool, rights)))


def distillation(logits, teacher, total=None) -> float:
    powers = [[math.exp(score) for score in row] for row in teacher.tolist()]
    shares = [[power / math.fsum(row) for power in row] for row in powers]
    return lists(logits, shares, teacher > -math.inf, total or len(logits))


def question_evidence(
    questions, sentences, evidence, kind, temperatures, similarity="cosine", wrong_types=True, other="exclude", reduction="mean"
) -> float:
    """The formula of the question-evidence loss, a sentence and a type at a time."""

    def e(k, j):
        q, s = questions[k].tolist(), sentences[k, j].tolist()
        dot = math.fsum(x * y for x, y in zip(q, s))
        if similarity == "cosine":
            dot /= math.sqrt(math.fsum(x * x for x in q)) * math.sqrt(math.fsum(y * y for y in s))
        return math.exp(dot / temperatures[k].item())

    count, found = sentences.shape[1], [j for j, is_evidence in enumerate(evidence.tolist()) if is_evidence]
    negatives = sum(e(kind, j) for j in range(count) if j not in found)
    if wrong_types:
        negatives += sum(e(k, j) for k in range(len(questions)) if k != kind for j in range(count))
    every = sum(e(kind, n) for n in found)
    if reduction == "log_sum":
        return -math.log(every / (every + negatives))
    terms = [-math.log(e(kind, n) / ((every if other == "include" else e(kind, n)) + negatives)) for n in found]
    return sum(terms) / len(terms)


# ------------------------------------------------------------------ layers


def linear(layer: nn.Linear, vector: list[float]) -> list[float]:
    """W x + b"""
    bias = [0.0] * len(layer.weight) if layer.bias is None else layer.bias.tolist()
    return [times(row, vector) + b for row, b in zip(layer.weight.tolist(), bias)]


def times(one: list[float], other: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def gelu(vector: list[float]) -> list[float]:
    return [x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in vector]


def tanh(vector: list[float]) -> list[float]:
    return [math.tanh(x) for x in vector]


def normalised(layer: nn.LayerNorm, vector: list[float]) -> list[float]:
    mean = math.fsum(vector) / len(vector)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in vector) / len(vector) + layer.eps)
    return [w * (x - mean) / spread + b for x, w, b in zip(vector, layer.weight.tolist(), layer.bias.tolist())]


def mean(vectors: list[list[float]]) -> list[float]:
    return [math.fsum(column) / len(vectors) for column in zip(*vectors)]


# ------------------------------------------------------------------ heads

READS = {  # which slots of [E_0 ... E_k] an evidence head reads, and what they are scored as
    "ie_k": lambda slots, there: [[slots[i]] for i in range(1, len(slots))],
    "ae_k": lambda slots, there: [[slots[0], slots[i]] for i in range(1, len(slots))],
    "ie_1": lambda slots, there: [[slots[0]]],
    "ae_1": lambda slots, there: [[mean([slot for slot, is_there in zip(slots, there) if is_there])]],
}


def evidence(head, name: str, slots, present) -> list:
    """IEk, AEk, IE1 and AE1, one example, slot and unit at a time; every slot is there where nothing says which."""
    found = []
    every = [[True] * slots.shape[1]] * len(slots)
    for example, there in zip(slots.tolist(), every if present is None else present.tolist()):
        scored = []
        for parts in READS[name](example, there):
            vector = [x for part in parts for x in part]
            if head.form == "released" and name == "ae_1":
                vector = [x * sum(there) for x in vector]  # a sum there, not a mean
            scored.append(scored_by(head, vector))
        found.append(scored if name.endswith("k") else scored[0])
    return found


def scored_by(head, vector: list[float]) -> list[float]:
    """The layers of an evidence head: linear, or dense, tanh and linear."""
    layers = [layer for layer in head.layers if isinstance(layer, nn.Linear)]
    for layer in layers[:-1]:
        vector = tanh(linear(layer, vector))
    return linear(layers[-1], vector)


def pooled_pairs(head, pairs, present) -> list:
    """The pairwise baselines: elementwise maximum of the pairs that are there, or their learnt weighted sum."""
    found = []
    for example, there in zip(pairs.tolist(), present.tolist()):
        own = [vector for vector, is_there in zip(example, there) if is_there]
        if hasattr(head, "weigh"):
            raw = [math.exp(linear(head.weigh, vector)[0]) for vector in own]
            shares = [weight / math.fsum(raw) for weight in raw]
            pooled = [times(shares, list(column)) for column in zip(*own)]
        else:
            pooled = [max(column) for column in zip(*own)]
        found.append(scored_by(head, pooled))
    return found


def siamese(head, questions, candidates) -> list[float]:
    """w [u ; v ; |u - v|] + b"""
    both = zip(questions.tolist(), candidates.tolist())
    return [linear(head.linear, [*u, *v, *(abs(x - y) for x, y in zip(u, v))])[0] for u, v in both]


def projected(head, question, sentences) -> tuple[list, list]:
    """A question and its sentences in the subspace of every question type; bilinear leaves the sentences as they are."""
    turned = lambda matrices, vector: [[times(row, vector) for row in matrix] for matrix in matrices.tolist()]
    questions, texts = turned(head.of_questions, question.tolist()), sentences.tolist()
    if head.of_sentences is None:
        return questions, [texts] * len(questions)
    by_sentence = [turned(head.of_sentences, vector) for vector in texts]
    return questions, [list(of_type) for of_type in zip(*by_sentence)]


def pooled(hidden, real, how: str, first: list[int]) -> list[list[float]]:
    """One vector a text: the mean or the maximum of its real tokens, or that of its class token."""
    found = []
    for tokens, there, place in zip(hidden.tolist(), real.tolist(), first):
        own = [vector for vector, is_there in zip(tokens, there) if is_there]
        found.append(tokens[place] if how == "cls" else mean(own) if how == "mean" else [max(column) for column in zip(*own)])
    return found
