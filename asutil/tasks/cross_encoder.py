"""Cross-encoders of others: question and candidate in one input of a language model, one or two logits out."""

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ..io import checkpoints, disk, model_folders, sentence_transformer
from ..models import classifiers, loading, scoring
from ..models.pair import PairEncoder
from . import base

BATCH = 32  # pairs of similar length that the model reads together


class CrossEncoder(base.BaseRanker):
    """Scores of candidates by a model of sentence-transformers as it is, in float32: its inputs, its modules, its longest input.

    s(q, c) = z_0 of a model with one logit, z_1 - z_0 of a model with two; class 1 is "answers the question", or class 0
    where the names in config.json say so (`classifiers.answering_class`): then s = z_0 - z_1.
    Of two logits s has the order of P(class 1) = 1 / (1 + exp(-s)), without its ties.
    A causal language model has one logit: that of the token "yes" less that of the token "no".
    Args:
        model: a `sentence_transformers.CrossEncoder` whose activation is the identity.
        folder: where it was read from; its files identify the scores.
        answering: which of two logits means "answers the question".
    """

    def __init__(self, model, folder: Path, answering: int = 1):
        self.model, self.folder, self.answering = model, folder, answering

    @property
    def max_tokens(self) -> int:
        """The longest input, question and candidate together; a pair that is too long loses the ends of its longer text."""
        return self.model.max_seq_length

    def _window(self, questions: list, bar) -> pd.DataFrame:
        pairs = base.pairs_of(questions)
        texts = [(question.text, candidate.text) for question, candidate in pairs]
        by_length = np.argsort([len(question) + len(candidate) for question, candidate in texts], kind="stable")[::-1]
        scoring.tell_cut_by_library(self.model, texts, "candidates")
        scores = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), BATCH):
            numbers = by_length[start : start + BATCH]
            scores[numbers] = self.scores_of([texts[n] for n in numbers])
            bar.update(len(numbers))
        return base.rows_of(pairs).assign(score=scores)

    def scores_of(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        """The scores of a batch of (question, candidate). Shapes: B pairs -> (B,) float32"""
        logits = self.model.predict(pairs, batch_size=len(pairs), show_progress_bar=False)
        return logits[:, self.answering] - logits[:, 1 - self.answering] if logits.ndim == 2 else logits

    def _identity(self) -> str:
        settings = [self.max_tokens, self.model.device.type, *[0] * (self.answering == 0)]
        return sentence_transformer.fingerprint(self.folder, "cross_encoder", *settings)


def load(name: str | Path, folder: Path, device: str) -> CrossEncoder:
    """The cross-encoder in a folder: safetensors, without remote code.

    Args:
        folder: what `sentence_transformer.folder(name)` gave.
    Raises: ValueError for pickled or damaged weights, a head that was never trained or has more than two logits, a missing
        tokenizer or one that cannot pad, and a causal language model whose tokenizer has no tokens "yes" and "no".
    """
    from sentence_transformers import CrossEncoder as Library

    if sentence_transformer.kind_of(folder) is None:
        checkpoints.refuse_pickle(folder, name)
    model_folders.refuse_no_tokenizer(folder, name)
    if not any(folder.rglob("tokenizer*.json")):
        raise ValueError(f"{name}: {folder} has no tokenizer: save it there with tokenizer.save_pretrained")
    model = sentence_transformer.open_as(Library, folder, name, device=device, activation_fn=torch.nn.Identity())
    if model.num_labels not in (1, 2):
        raise ValueError(f"{name} ranks nothing: 1 or 2 logits for a pair expected, got {model.num_labels}")
    if model.tokenizer.pad_token_id is None:
        raise ValueError(f"{name}: its tokenizer has no pad_token, which fills up the shorter texts of a batch")
    last = model[-1]
    if getattr(last, "true_token_id", None) == getattr(last, "false_token_id", ""):
        raise ValueError(f"{name}: a causal model ranks by its tokens yes and no; its tokenizer has no such tokens")
    if model.transformers_model is not None:  # RoBERTa reads two tokens fewer than it has positions
        longest = loading.longest_input(model.transformers_model.base_model, model.tokenizer)
        model.max_seq_length = min(model.max_seq_length or longest, longest)
    named = model.num_labels == 2 and len(model) == 1  # a layer behind the language model has no names
    ranker = CrossEncoder(model, folder, classifiers.answering_class(model.config, name) if named else 1)
    with checkpoints.reading(folder, name):  # what a library finds only when it scores, such as an unfit chat template
        ranker.scores_of([("Where?", "There."), ("Where?", "By the river.")])
    return ranker


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
        # The ONNX packages need transformers 4, which knows this class of version 5 by its former name.
        settings = part / "tokenizer_config.json"
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'), encoding="utf-8")
    return Path(folder)
