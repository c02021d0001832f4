"""Fact verification: a claim and its pieces of evidence in, one of three verdicts out, by a joint model or by a pairwise one.

The heads ie_1 and ae_1 read the claim and all its evidence in one input; pair_max and pair_weighted read each (claim, evidence) pair by
itself and put the pairs together above the backbone.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from . import inputs, metrics
from .claims import LABELS, Claim
from .heads import POOLED
from .inputs import TOKENS_ON_CPU, TOKENS_ON_GPU
from .joints import JointEncoder
from .ragged import Ragged
from .template import Template
from .tokenizing import tokenized

CLASSES = tuple(label.lower().replace(" ", "_") for label in LABELS)  # columns of a table of scores
UNKNOWN = -1  # the label of a claim in a blind test set
WINDOW = 1 << 12  # claims that are ordered by length together: memory is bounded by it

# ------------------------------------------------------------------ claims as token ids


class Slots:
    """Claims with their first k pieces of evidence as a joint model reads them: [claim, e_1 ... e_k], in the order that the data have.

    A slot without evidence is empty. A text is tokenised once.
    Paper: joint_inference, sections 3.1 and 3.2.
    Deviation: D-79.
    """

    parts = 1  # texts between the special tokens of one encoding

    def __init__(self, tokenizer, claims: Sequence[Claim], k: int):
        self.template, self.k = Template.of(tokenizer, self.parts), k
        self.labels = np.array([inputs.IGNORED if claim.label is None else claim.label for claim in claims], np.int64)
        row_of, self._rows = {"": 0}, np.full((len(claims), k + 1), -1)
        for row, claim in zip(self._rows, claims):
            texts = [claim.text, *(piece.text for piece in claim.evidence[:k])]
            row[: len(texts)] = [row_of.setdefault(text, len(row_of)) for text in texts]
        self._tokens, self._lengths = tokenized(tokenizer.backend_tokenizer, list(row_of))
        self._starts = self._lengths.cumsum() - self._lengths

    def __len__(self):
        return len(self._rows)

    def join(self, numbers: np.ndarray, max_tokens: int) -> Ragged:
        """The inputs of some claims. Shapes: (B,) -> B examples of k + 1 slots"""
        slot_tokens, left = divmod(max_tokens, self.k + 1)
        if left:
            raise ValueError(f"max_tokens: a multiple of the {self.k + 1} slots of a claim and its evidence expected, got {max_tokens}")
        rows = self._rows[numbers]
        present = rows >= 0
        texts = rows[present]
        texts = inputs.join_texts(self._tokens, self._starts[texts], self._lengths[texts], self.template, slot_tokens)
        return inputs.as_slots(texts, present, slot_tokens)

    def laid_out(self, joined: Ragged, numbers: np.ndarray, labels: np.ndarray, micro_tokens: int, layout: str | None = None) -> list[dict]:
        """Micro-batches of what `join` gave, of whole claims, ordered by length. Shapes: numbers, labels (B,)"""
        return inputs.laid_out(layout, joined, labels, self.template.pad, micro_tokens)


class Pairs(Slots):
    """Claims with their first k pieces of evidence as a pairwise model reads them: (claim, e_i), each an input of its own.

    A claim without evidence is read with an empty text, so that there is something to decide by.
    Paper: joint_inference, appendix B.2.
    Deviation: D-79.
    """

    parts = 2

    def __init__(self, tokenizer, claims: Sequence[Claim], k: int):
        super().__init__(tokenizer, claims, k)
        self._rows[:, 1] = np.maximum(self._rows[:, 1], 0)  # row 0 is the empty text

    def join(self, numbers: np.ndarray, max_tokens: int) -> Ragged:
        """The pairs of some claims, claim by claim. Shapes: (B,) -> P examples"""
        rows = self._rows[numbers]
        claim, place = np.nonzero(rows[:, 1:] >= 0)
        texts = np.stack([rows[claim, 0], rows[claim, place + 1]], -1)
        return inputs.join_texts(self._tokens, self._starts[texts], self._lengths[texts], self.template, max_tokens)

    def laid_out(self, joined: Ragged, numbers: np.ndarray, labels: np.ndarray, micro_tokens: int, layout: str | None = None) -> list[dict]:
        """Micro-batches of whole claims, their pairs padded or packed; firsts (B, K) say where each pair begins, -1 for none."""
        present = self._rows[numbers, 1:] >= 0
        pairs = np.full(present.shape, -1)
        pairs[present] = np.arange(len(joined.lengths))
        longest = np.where(present, joined.lengths[pairs], 0).max(1)
        order, found = np.argsort(-longest, kind="stable"), []
        until = present.sum(1)[order].cumsum()
        while len(order):
            rows = max(1, micro_tokens // longest[order[0]])
            some, order = np.split(order, [max(1, np.searchsorted(until, rows, side="right"))])
            until = until[len(some) :] - until[len(some) - 1]
            found.append(self._micro_batch(joined.take(pairs[some][present[some]]), present[some], labels[some], layout))
        return found

    def _micro_batch(self, joined: Ragged, present: np.ndarray, labels: np.ndarray, layout: str | None) -> dict:
        # The pairs are put in another order by their length, so their numbers go along in the place of the labels.
        count = len(joined.lengths)
        (micro,) = inputs.laid_out(layout, joined, np.arange(count), self.template.pad, count * int(joined.lengths.max()))
        began = micro["first"] if "first" in micro else torch.arange(count) * micro["input_ids"].shape[1]
        firsts = torch.full(present.shape, -1)
        firsts[torch.from_numpy(present)] = torch.empty(count, dtype=torch.int64).scatter_(0, micro["labels"], began)
        return micro | {"labels": torch.from_numpy(labels), "firsts": firsts}


def inputs_of(model: JointEncoder, claims: Sequence[Claim]) -> Slots:
    """Claims as the model reads them."""
    kind = Pairs if model.HEADS[0] in POOLED else Slots
    return kind(model.tokenizer, claims, model.shape["k"])


class Batches(inputs.FinetuningBatches):
    """Optimiser batches of claims, by step; every epoch visits each claim once, in a keyed order. `pairs` is what `inputs_of` gave."""

    def __getitem__(self, step: int) -> dict:
        numbers = self.examples(step)
        joined, labels = self.pairs.join(numbers, self.max_tokens), self.pairs.labels[numbers]
        micro = self.pairs.laid_out(joined, numbers, labels, self.micro_tokens, self.layout)
        return {"micro": micro, "examples": len(labels), "masked": 0, "tokens": len(joined.ids)}


# ------------------------------------------------------------------ verdicts


@torch.no_grad()
def predict(model: JointEncoder, claims: Sequence[Claim], max_tokens: int, progress: bool = True) -> pd.DataFrame:
    """The log-probability of each verdict for every claim, in the order given.

    Args:
        max_tokens: of an input, as in training.
    Returns: DataFrame with claim_id, label (int8, -1 where it is not known), and float32 supports, not_enough_info, refutes.
    Raises: ValueError where there are no claims, or for a model of another kind.
    """
    if not claims:
        raise ValueError("expected claims to verify, got none")
    if len(LABELS) != (getattr(model.backbone.config, "joint", None) or {}).get("classes"):
        raise ValueError(f"expected a model of {len(LABELS)} verdicts, as verify_claims trains one, got one with the head {model.HEADS[0]}")
    device, training = next(model.parameters()).device, model.training
    found = torch.empty(len(claims), len(LABELS), device=device)
    model.eval()
    with tqdm(total=len(claims), unit=" claims", disable=not progress, dynamic_ncols=True) as bar:
        for start in range(0, len(claims), WINDOW):
            _window(model, claims[start : start + WINDOW], max_tokens, found[start : start + WINDOW], bar)
    model.train(training)
    labels = np.array([UNKNOWN if claim.label is None else claim.label for claim in claims], np.int8)
    return pd.DataFrame({"claim_id": [claim.id for claim in claims], "label": labels} | dict(zip(CLASSES, found.cpu().numpy().T)))


def _window(model, claims, max_tokens: int, found: torch.Tensor, bar) -> None:
    read, numbers = inputs_of(model, claims), np.arange(len(claims))
    budget = TOKENS_ON_GPU if found.device.type == "cuda" else TOKENS_ON_CPU
    # Ordered by length, so the claims come in another order: their numbers go along in the place of the labels.
    for micro in read.laid_out(read.join(numbers, max_tokens), numbers, numbers, budget):
        micro = {name: tensor.to(found.device, non_blocking=True) for name, tensor in micro.items()}
        rows = micro.pop("labels")
        with torch.autocast(found.device.type, torch.bfloat16, enabled=found.device.type == "cuda"):
            found[rows] = model(micro)[0].float().log_softmax(-1)
        bar.update(len(rows))


def predictions(scores: pd.DataFrame) -> np.ndarray:
    """The class of the highest score of each claim. Shapes: rows of `predict` -> (B,)"""
    return scores[list(CLASSES)].to_numpy().argmax(1)


def measured(scores: pd.DataFrame) -> dict:
    """Label accuracy, F1 of each verdict and the majority's share, of rows of `predict`."""
    return metrics.verification(scores["label"], predictions(scores))


def per_claim(scores: pd.DataFrame) -> pd.DataFrame:
    """question_id (the claim's id) and label_accuracy, 1 where the verdict is right, else 0."""
    return pd.DataFrame({"question_id": scores.claim_id, "label_accuracy": (scores.label == predictions(scores)).astype(float)})


def majority(train: Sequence[Claim], claims: Sequence[Claim]) -> dict:
    """What it gives to answer every claim with the most frequent label of the training side."""
    ((most, _),) = Counter(claim.label for claim in train).most_common(1)
    return metrics.verification([claim.label for claim in claims], [most] * len(claims))


# ------------------------------------------------------------------ claims and labels


def measurable(sides: dict) -> list[str]:
    """Of dev and test those whose labels are known; the last of them is the side that is reported."""
    return [side for side in ("dev", "test") if sides[side] and sides[side][0].label is not None]


def counted(sides: dict) -> pd.DataFrame:
    """Claims a label, claims and pieces of evidence, kept and dropped, a line a side."""
    rows = {}
    for side, claims in sides.items():
        labels, report = Counter(claim.label for claim in claims), claims.report
        rows[side] = {name: labels[number] for number, name in enumerate(LABELS)} | {"label not known": labels[None]}
        rows[side] |= {f"{what}, {state}": report[state][what] for what in ("claims", "evidence") for state in ("read", "kept")}
        rows[side]["dropped"] = "; ".join(report["dropped"])
    return pd.DataFrame(rows).T
