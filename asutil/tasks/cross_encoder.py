"""Cross-encoders of others: question and candidate in one input of a transformers model, one or two logits out."""

import copy
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from ..io import checkpoints, disk
from ..models import loading
from ..models.pair import PairEncoder
from . import rank

BATCH = 32  # pairs of similar length that the model reads together
LONGEST = 1 << 16  # tokens, where neither model nor tokenizer has a limit
HEAD = "ForSequenceClassification"  # how the names of models with a fitting head end


class CrossEncoder(rank.BaseRanker):
    """Scores of candidates by a model of transformers as it is, in float32: its tokenizer, its head, its longest input.

    s(q, c) = z_0 of a model with one logit, z_1 - z_0 of a model with two; class 1 is "answers the question".
    Of two logits s has the order of P(class 1) = 1 / (1 + exp(-s)), without its ties.
    A pair that is too long loses the ends of its longer text (`truncation="longest_first"`).
    Args:
        model: of AutoModelForSequenceClassification. tokenizer: the model's own.
        max_tokens: of question and candidate together; default: the most that the model reads.
    """

    def __init__(self, model, tokenizer, max_tokens: int | None = None):
        self.model, self.tokenizer = model.eval(), tokenizer
        self.max_tokens = max_tokens or min(loading.longest_input(model.base_model, tokenizer), LONGEST)

    def score(self, questions: Iterable, progress: bool = True) -> pd.DataFrame:
        """Score every candidate of every question, window by window.

        Args:
            questions: any iterable of `Question`s, read once.
        Returns: DataFrame with question_id, candidate_id, label (int8), score (float32), in the order of the questions.
        """
        return rank.windowed(questions, self._window, progress)

    def _window(self, questions: list, bar) -> pd.DataFrame:
        pairs = [(question, candidate) for question in questions for candidate in question.candidates]
        lengths = [len(question.text) + len(candidate.text) for question, candidate in pairs]
        by_length = np.argsort(lengths, kind="stable")[::-1]
        scores = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), BATCH):
            numbers = by_length[start : start + BATCH]
            texts = [(pairs[n][0].text, pairs[n][1].text) for n in numbers]
            scores[numbers] = self._scores(*map(list, zip(*texts)))
            bar.update(len(numbers))
        columns = {"question_id": [q.id for q, _ in pairs], "candidate_id": [c.id for _, c in pairs]}
        labels = np.array([candidate.label for _, candidate in pairs], np.int8)
        return pd.DataFrame(columns).assign(label=labels, score=scores)

    @torch.no_grad()
    def _scores(self, questions: list[str], candidates: list[str]) -> np.ndarray:
        options = {"truncation": "longest_first", "max_length": self.max_tokens, "padding": True}
        batch = self.tokenizer(questions, candidates, return_tensors="pt", **options).to(self.model.device)
        logits = self.model(**batch).logits.float()
        scores = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return scores.cpu().numpy()


def load(name: str | Path, path: str, device: str) -> CrossEncoder:
    """The cross-encoder in a folder or on the hub: safetensors, without remote code.

    Args:
        path: what `checkpoints.source(name)` gave.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled or damaged weights, a head that was never
        trained or has more than two logits, a missing tokenizer or one that cannot pad.
    """
    model, fresh = checkpoints.with_head(AutoModelForSequenceClassification, path, name)
    if fresh:
        raise ValueError(f"{name}: its weights lack the head of a {type(model).__name__}: a trained head is expected")
    if model.config.num_labels not in (1, 2):
        raise ValueError(f"{name} ranks nothing: 1 or 2 logits for a pair expected, got {model.config.num_labels}")
    return CrossEncoder(model.to(device), _tokenizer(name, path))


def _tokenizer(name: str | Path, path: str):
    """The model's own tokenizer, unchanged."""
    if Path(path).is_dir() and not any(Path(path).glob("tokenizer*.json")):
        raise ValueError(f"{name}: {path} has no tokenizer: save it there with tokenizer.save_pretrained")
    tokenizer = checkpoints.from_pretrained(AutoTokenizer, path, name)
    if not tokenizer.is_fast:
        raise ValueError(f"{name}: a fast tokenizer (tokenizer.json) is expected, got {type(tokenizer).__name__}")
    if tokenizer.pad_token_id is None:
        raise ValueError(f"{name}: its tokenizer has no pad_token, which fills up the shorter texts of a batch")
    return tokenizer


def require_encoder(name: str | Path, config) -> None:
    """Refuse what reads no pair of texts at once, such as a decoder-only language model.

    Raises: ValueError naming the model's type.
    """
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        came = f"a {config.model_type} model ({', '.join(config.architectures or ['no architecture in config.json'])})"
        raise ValueError(f"{name}: an encoder such as bert, roberta or deberta-v2 is expected, got {came}")


# ------------------------------------------------------------------ ours, for others


def whole_model(encoder: PairEncoder):
    """A fine-tuned pair model as one of transformers with one logit, which any library that knows cross-encoders opens.

    z = (w_1 - w_0) x + b_1 - b_0, the difference of the two logits of our head: the score of `rank.Ranker`.
    Raises: ValueError for a model that reads other inputs than pairs, or has several pair heads.
    """
    if encoder.HEADS[0] != "pair" or encoder.parts != 2 or len(encoder.pairs) > 1:
        raise ValueError(
            "only a model with one head on pairs of question and candidate is a cross-encoder; this one reads other inputs"
        )
    model = copy.deepcopy(encoder.pair)
    model.config = copy.deepcopy(encoder.backbone.config)
    model.config.num_labels = 1
    last, layer = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)][-1]
    if layer.out_features != 2:
        raise ValueError(f"a head that ends in two logits is expected, got {layer.out_features}")
    single = torch.nn.Linear(layer.in_features, 1, bias=layer.bias is not None)
    with torch.no_grad():
        single.weight.copy_((layer.weight[1] - layer.weight[0])[None])
        if layer.bias is not None:
            single.bias.copy_((layer.bias[1] - layer.bias[0])[None])
    model.set_submodule(last, single)
    setattr(model, model.base_model_prefix, copy.deepcopy(encoder.backbone))
    return model.eval()


def save(encoder: PairEncoder, folder: str | Path, max_tokens: int) -> Path:
    """Write `whole_model` with its tokenizer as a folder for `sentence_transformers.CrossEncoder`: all of it, or nothing.

    Its scores are logits: no sigmoid is applied. Texts are cut at `max_tokens`, question and candidate together.
    """
    model, tokenizer = whole_model(encoder), copy.deepcopy(encoder.tokenizer)
    tokenizer.model_max_length = max_tokens
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    with disk.whole_folder(folder) as part, checkpoints.quiet():
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
    return Path(folder)
