"""Models on their own pre-training task: runs of `pretrain`, BERT's next-sentence and ALBERT's sentence-order head."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import AlbertForPreTraining, BertForNextSentencePrediction

from ..corpus import index as corpus_index
from ..corpus import sources, tokenizers
from ..corpus.shards import LIMITS
from ..io import checkpoints, rundir
from ..models import loading, scoring
from ..sampling import sampler as samplers
from ..sampling.objectives import OBJECTIVES
from ..training import validation

RELEASED = {"nsp": BertForNextSentencePrediction, "sop": AlbertForPreTraining}


class OwnTask(nn.Module):
    """A released model under its own sentence-level head, as a `PairEncoder`: class 1 is "follows" or "in order".

    The released heads number the classes the other way round, so their two logits are swapped.
    Paper: sentence_objectives, section 5.3, table 3.
    Shapes: input_ids, attention_mask, token_type_ids (B, T) -> logits (B, 2), None
    Raises: ValueError for weights without such a head.
    """

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


def tasks(models: list[str], names: str | None = None) -> list[tuple[str, str]]:
    """(model, objective) of each model; the default is the model's own objective.

    Args:
        names: objectives joined by commas: one for each model, or one for all of them.
    Raises: ValueError for a number of objectives that does not fit, an unknown one, or one that a run did not learn.
    """
    chosen = [name.strip() for name in names.split(",")] if names else [None]
    if len(chosen) not in (1, len(models)):
        raise ValueError(f"objectives: one for each of {len(models)} models expected, got {len(chosen)}: {names}")
    if len(chosen) == 1:
        chosen *= len(models)
    return [(model, _objective(model, name)) for model, name in zip(models, chosen)]


def _objective(model: str, name: str | None) -> str:
    """The objective of a model: `name`, or the run's own. Raises: ValueError for one that the model did not learn."""
    folder = rundir.find(model)
    learnt = RELEASED
    if folder is not None:
        own = rundir.read_record(folder)["settings"].get("objective")
        learnt = [own, *(OBJECTIVES[own].members if own in OBJECTIVES else ())]
        name = name or own
    if name not in learnt or name not in OBJECTIVES:
        raise ValueError(f"objectives: {', '.join(map(str, learnt))} expected for {model}, got {name}")
    return name


def load(model: str, objective: str, mlm: bool = True) -> nn.Module:
    """A finished run with the heads that it learnt, or a released BERT (nsp) or ALBERT (sop) with its own head.

    Args:
        mlm: whether the run learnt masked language modelling.
    """
    return loading.load(model, mlm=mlm) if rundir.find(model) is not None else OwnTask(model, objective)


def measured(
    pairs: list[tuple[str, str]],
    settings,
    source: str,
    shared,
    size: int,
    micro_tokens: int,
    seed=0,
    longest=None,
    workers=1,
) -> dict:
    """Every model on its objective, on held-out documents, read and sampled like the run's own.

    Args:
        pairs: (model, objective), from `tasks`.
        settings: (model, objective, source) -> what the model was pre-trained with.
        source: of the documents.
        shared: folder of the indexes, one for each tokenizer and form of sentences; the index of a run on the same
            documents is reused.
        size: examples, or as many as the documents give.
        longest: tokens of an example; None: as in the model's training.
    Returns: "name of the model, objective" -> what `training.validate` and `shared_words` give, and the number of
        examples.
    Deviation: D-105.
    """
    measures = {}
    for name, objective in pairs:
        s = settings(name, objective, source)
        model = load(name, objective, s.mlm_weight > 0).to(scoring.device())
        titles = sources.read_titles(s.exclude_titles)
        form = {"text_column": s.text_column, "paragraph_separator": s.paragraph_separator, "exclude_titles": titles}
        form |= {"splitter": s.splitter, **{name: getattr(s, name) for name in LIMITS}}
        index = corpus_index.prepare(source, model.tokenizer, shared, workers=workers, progress=True, **form)
        options = {"hard_negatives": s.hard_negatives, "negatives": s.negatives, "max_tokens": longest or s.max_tokens}
        options |= {
            "same_paragraph_before": s.same_paragraph_before and objective in ("ssp", "all"),
            "lengths": s.lengths,
        }
        options |= {"positives": s.positives, "max_sentences": s.max_sentences} if objective == "mspp" else {}
        sampler = samplers.Sampler(index, objective, seed, split="validation", **options)
        examples = min(size, len(sampler))
        figures = validation.validate(model, sampler, examples, micro_tokens, seed)
        figures |= shared_words(sampler, examples) | {"examples": examples}
        measures[f"{Path(name).name}, {objective}"] = figures
    return measures


def shared_words(sampler: samplers.Sampler, size: int) -> dict:
    """A baseline on the first `size` examples that counts shared words: a trained model should be better.

    score = cosine of the TF-IDF vectors of the first part and the second one, for mspp of the first part and each
    candidate Inverse document frequencies are counted over the examples' own parts.

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
    vectorizer = TfidfVectorizer()
    try:
        vectorizer.fit([*firsts, *others])
    except ValueError:  # an empty vocabulary
        return {}
    scores = vectorizer.transform(firsts).multiply(vectorizer.transform(others)).sum(1)
    labels = np.array(labels)
    measures = validation.order_metrics(sampler, labels, np.asarray(scores).reshape(labels.shape))
    return {f"{name}_tfidf": measures[name] for name in ("auc", "rank_1") if name in measures}
