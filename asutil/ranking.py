"""Ranking with a trained model: questions in, one score a candidate out. After this no step needs a model."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from . import inputs
from .encoders import PairEncoder, check_length

TOKENS_ON_CPU, TOKENS_ON_GPU = 1 << 13, 1 << 16  # a batch, padding included


class Ranker:
    """Scores of candidates by a pair model: the difference of its two logits, in float32.

    s(q, c) = z_1 - z_0,  P(label 1) = 1 / (1 + exp(-s))
    The order is that of the probability, without its ties: past a difference of 17 every float32 probability is 1.
    """

    def __init__(self, model: PairEncoder, max_tokens: int = 128):
        self.model, self.max_tokens = model, max_tokens

    def rank(self, question: str, candidates: list[str], contexts=None) -> list[tuple[int, float]]:
        """Candidates in order, best first: (its number, its score); equal scores keep the order given."""
        if contexts is not None:
            raise ValueError("this model was trained on pairs of question and candidate: it takes no contexts")
        if not candidates:
            return []
        asked = SimpleNamespace(id="", text=question, candidates=[SimpleNamespace(id="", text=text, label=0) for text in candidates])
        scores = self.score([asked], progress=False)["score"].to_numpy()
        return [(int(n), float(scores[n])) for n in np.argsort(-scores, kind="stable")]

    def score(self, questions: Iterable, max_tokens: int | None = None, progress: bool = True) -> pd.DataFrame:
        """Score every candidate of every question.

        Args:
            questions: of `Question(id, text, candidates)` with `Candidate(id, text, label)`; any iterable, read once.
            max_tokens: of question and candidate together, the longer one is cut first; the ranker's own where left out.
        Returns: DataFrame with question_id, candidate_id, label (int8), score (float32), in the order given.
        """
        parts = []
        with tqdm(total=0, unit=" pairs", disable=not progress, dynamic_ncols=True) as bar:
            for window in _windows(questions):
                pairs = inputs.Pairs(self.model.tokenizer, window)
                asked = [pairs.question_ids[owner] for owner in pairs.owners]
                part = {"question_id": asked, "candidate_id": pairs.candidate_ids, "label": pairs.labels.astype(np.int8)}
                parts.append(pd.DataFrame(part).assign(score=self._scores(pairs, max_tokens or self.max_tokens, bar)))
        if not parts:
            raise ValueError("expected questions with candidates to score, got none")
        return pd.concat(parts, ignore_index=True)

    @torch.no_grad()
    def _scores(self, pairs: inputs.Pairs, max_tokens: int, bar) -> np.ndarray:
        model, device = self.model, next(self.model.parameters()).device
        check_length(model, max_tokens)
        numbers = np.arange(len(pairs))
        budget = TOKENS_ON_GPU if device.type == "cuda" else TOKENS_ON_CPU
        scores = np.empty(len(pairs), np.float32)
        bar.total = (bar.total or 0) + len(pairs)
        training = model.training
        model.eval()
        # Ordered by length, so the rows come in another order: their numbers go along in the place of the labels.
        for batch in inputs.micro_batches(pairs.join(numbers, max_tokens), numbers, pairs.template.pad, budget):
            rows = batch.pop("labels").numpy()
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits, _ = model({name: tensor.to(device) for name, tensor in batch.items()})
            scores[rows] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
            bar.update(len(rows))
        model.train(training)
        return scores


def _windows(questions: Iterable, candidates: int = 1 << 15) -> Iterator[list]:
    """Questions by windows of some `candidates`: enough to order by length, few enough for memory."""
    window, held = [], 0
    for question in questions:
        window.append(question)
        held += len(question.candidates)
        if held >= candidates:
            yield window
            window, held = [], 0
    if held:
        yield window
