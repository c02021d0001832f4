"""Ranking with a trained model of this package: pairs, pairs with contexts, or several candidates at once."""

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from .. import io, models
from ..corpus import index
from ..inputs import batches, groups
from ..inputs import pairs as input_pairs
from ..inputs.batches import TOKENS_ON_CPU, TOKENS_ON_GPU
from ..models import last_layer, scoring
from . import base


class Ranker(base.BaseRanker):
    """Scores of candidates by a pair model, with or without contexts, or by a joint one: the difference of two logits.

    s(q, c) = z_1 - z_0 in float32,  P(label 1) = 1 / (1 + exp(-s))
    The order is that of the probability, without its ties: above a difference of 17 every float32 probability is 1.
    A joint model reads the candidates of a question in groups of k, which depend on their texts alone.
    Paper: contextual_as2, section 3 (the context is the sentence before and the one after a candidate);
        joint_inference, section 3.2.
    """

    def __init__(self, model: "models.PairEncoder", max_tokens: int | None = None):
        self.model, self.max_tokens = model, max_tokens or models.loading.usual_length(model)

    @property
    def reads_contexts(self) -> bool:
        return self.model.parts == 3

    @property
    def joint_k(self) -> int | None:
        """How many candidates a joint model reads at once; None for a model of another kind."""
        return self.model.joint and self.model.joint.k

    def inputs_of(self, questions) -> "input_pairs.Pairs | groups.Groups":
        """The candidates of some questions as the model reads them."""
        if self.joint_k:
            return groups.Groups(self.model.tokenizer, questions, self.joint_k)
        return input_pairs.Pairs(self.model.tokenizer, questions, context=self.reads_contexts)

    def require_contexts(self, contexts: list[tuple] | None) -> None:
        if contexts is not None and not self.reads_contexts:
            raise ValueError("this model was trained on pairs of question and candidate: it takes no contexts")
        if contexts is None and self.reads_contexts:
            expected = "contexts=[(sentence before, sentence after), ...]"
            raise ValueError(f"this model was trained with contexts: {expected} expected, got none")

    def _window(self, questions: list, bar: tqdm) -> pd.DataFrame:
        models.loading.check_length(self.model, self.max_tokens)
        inputs = self.inputs_of(questions)
        scoring.tell_cut(self.model, inputs.are_cut(self.max_tokens), self.max_tokens, "candidates")
        scores = self._scores(inputs, bar)
        scores = inputs.mean_over_duplicates(scores) if self.joint_k else scores
        return base.rows_of(base.pairs_of(questions)).assign(score=scores)

    def _scores(self, pairs, bar: tqdm) -> np.ndarray:
        members = pairs.members(np.arange(len(pairs)))
        with scoring.evaluating(self.model) as device, last_layer.first_tokens_alone(self.model):
            scores = torch.empty(len(pairs.labels), device=device)
            micro_tokens = TOKENS_ON_GPU if device.type == "cuda" else TOKENS_ON_CPU
            # Ordered by length, so the rows come in another order: their numbers take the place of the labels.
            inputs = pairs.join(members, self.max_tokens), members, pairs.template.pad, micro_tokens
            for batch in batches.micro_batches(*inputs):
                rows = batch["labels"].flatten()
                full = (rows >= 0).nonzero()[:, 0]  # full slots, looked up on the CPU: a GPU would be waited for
                bar.update(len(full))
                logits, _ = self.model(scoring.moved(batch, device))
                differences = (logits[..., 1] - logits[..., 0]).flatten()
                scores[scoring.moved(rows[full], device)] = differences[scoring.moved(full, device)]
        return scores.cpu().numpy()  # the only time that a GPU is waited for

    def _identity(self) -> str:
        """A hash of weights, architecture, tokenizer, length and device."""
        model = self.model
        config = model.backbone.config.to_dict().items()
        config = {key: value for key, value in config if key not in ("_name_or_path", "transformers_version")}
        device = next(model.parameters()).device.type
        settings = [config, index.tokenizer_hash(model.tokenizer), self.max_tokens, device]
        return io.checkpoints.fingerprint_of_weights(settings, model.backbone, getattr(model, model.HEADS[0]))
