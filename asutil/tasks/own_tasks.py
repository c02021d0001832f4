"""Pre-training tasks of released models, BERT's next-sentence and ALBERT's sentence-order head, and a baseline that counts words."""

import numpy as np
import torch
from torch import nn
from transformers import AlbertForPreTraining, BertForNextSentencePrediction

from ..corpus import tokenizers
from ..data import baselines
from ..io import checkpoints
from ..models.pair import PairEncoder
from ..sampling.base import BaseSampler
from ..training import validation

RELEASED = {"nsp": BertForNextSentencePrediction, "sop": AlbertForPreTraining}


class OwnTask(nn.Module):
    """A released model under its own sentence-level head, as a `PairEncoder`: class 1 is "follows" or "in order".

    The released heads number the classes the other way round, so their two logits are swapped.
    Paper: sentence_objectives, section 5.3, table 3.
    Shapes: input_ids, attention_mask, token_type_ids (B, T) -> logits (B, 2), None
    Raises: ValueError for weights without such a head.
    """

    masked = None
    # Released models learnt on text with masks.
    reads_masks = True
    losses = PairEncoder.losses

    def __init__(self, name: str, objective: str):
        super().__init__()
        self.model, fresh = checkpoints.with_head(RELEASED[objective], checkpoints.source(name), name)
        if fresh:
            kind = RELEASED[objective].__name__
            raise ValueError(f"{name} has no head for {objective}: a {kind} with all its weights is expected")
        self.tokenizer = tokenizers.load_tokenizer(name)

    def forward(self, batch: dict) -> tuple[torch.Tensor, None]:
        names = ("input_ids", "attention_mask", "token_type_ids")
        outputs = self.model(**{name: batch[name] for name in names if name in batch})
        return (outputs["sop_logits"] if "sop_logits" in outputs else outputs["logits"]).flip(-1), None


def shared_words(sampler: BaseSampler, size: int) -> dict:
    """A baseline on the first `size` examples that counts shared words: a trained model should be better.

    score = cosine of the TF-IDF vectors of the first part and the second one, for mspp of the first part and each candidate.
    Inverse document frequencies are counted over the examples' own parts, of `baselines.words` for scripts without spaces.

    Returns: auc_tfidf and rank_1_tfidf, as in `training.order_metrics`; nothing where no part has a word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second to import, and training need not wait for it

    labels, firsts, others = [], [], []
    for number in range(size):
        example = sampler[number]
        candidates = example.parts[1:] if isinstance(example.label, tuple) else example.parts[1:2]
        labels.append(example.label)
        firsts += [example.parts[0]] * len(candidates)
        others += candidates
    vectorizer = TfidfVectorizer(analyzer=baselines.words if baselines.without_spaces(others) else "word")
    try:
        vectorizer.fit([*firsts, *others])
    except ValueError:  # an empty vocabulary
        return {}
    scores = vectorizer.transform(firsts).multiply(vectorizer.transform(others)).sum(1)
    labels = np.array(labels)
    measures = validation.order_metrics(sampler, labels, np.asarray(scores).reshape(labels.shape))
    return {f"{name}_tfidf": measures[name] for name in ("auc", "rank_1") if name in measures}
