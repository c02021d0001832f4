"""Models on their own pre-training task: runs of `pretrain`, and released models with a head for theirs."""

from pathlib import Path

import torch

from asutil.corpus import index as corpus_index
from asutil.corpus import sources
from asutil.corpus.shards import LIMITS
from asutil.inputs import share_to_mask
from asutil.models import loading, scoring
from asutil.sampling import OBJECTIVES
from asutil.sampling import sampler as samplers
from asutil.tasks import own_tasks
from asutil.training import validation

from . import rundir


def tasks(models: list[str], names: str | None = None) -> list[tuple[str, str]]:
    """(model, objective) of each model; the default is the model's own objective.

    Args:
        names: objectives joined by commas: one for each model, or one for all of them.
    Raises: ValueError for a number of objectives that does not fit, an unknown one, or one that a run did not learn.
    """
    chosen = [name.strip() for name in names.split(",")] if names else [None]
    if len(chosen) not in (1, len(models)):
        raise ValueError(f"objectives: one for each of {len(models)} models expected, got {len(chosen)}: {names}")
    pairs = []
    for model, name in zip(models, chosen * len(models) if len(chosen) == 1 else chosen):
        folder, learnt = rundir.find(model), own_tasks.RELEASED
        if folder is not None:
            own = rundir.read_record(folder)["settings"].get("objective")
            learnt = [own, *(OBJECTIVES[own].members if own in OBJECTIVES else ())]
            name = name or own
        if name not in learnt or name not in OBJECTIVES:
            raise ValueError(f"objectives: {', '.join(map(str, learnt))} expected for {model}, got {name}")
        pairs.append((model, name))
    return pairs


def load(model: str, objective: str, mlm: bool = True) -> torch.nn.Module:
    """A finished run with the heads that it learnt, or a released BERT (nsp) or ALBERT (sop) with its own head.

    Args:
        mlm: whether the run learnt masked language modelling.
    """
    return loading.load(model, mlm=mlm) if rundir.find(model) is not None else own_tasks.OwnTask(model, objective)


def measured(pairs, settings, source, shared, size: int, micro_tokens: int, seed=0, longest=None, workers=1) -> dict:
    """Every model on its objective, on held-out documents, read and sampled like the run's own.

    Args:
        pairs: (model, objective), from `tasks`. settings: (model, objective, source) -> what the model was pre-trained with.
        shared: folder of the indexes, one a tokenizer and form of sentences; that of a run on the same documents is reused.
        size: examples, or as many as the documents give. longest: tokens of an example; None: as in the model's training.
    Returns: "name of the model, objective" -> what `training.validate` and `own_tasks.shared_words` give, and the number of
        examples.
    Deviation: D-105.
    """
    measures = {}
    if len({(Path(name).name, objective) for name, objective in pairs}) < len(pairs):
        raise ValueError("models: two have one name and one objective: rename a folder")
    for name, objective in pairs:
        s = settings(name, objective, source)
        model = load(name, objective, s.mlm_weight > 0).to(scoring.device())
        titles = sources.read_titles(s.exclude_titles)
        form = {"text_column": s.text_column, "paragraph_separator": s.paragraph_separator, "exclude_titles": titles}
        form |= {"splitter": s.splitter, **{name: getattr(s, name) for name in LIMITS}}
        index = corpus_index.prepare(source, model.tokenizer, shared, workers=workers, progress=True, **form)
        names = ["hard_negatives", "negatives", "lengths", *["positives", "max_sentences"] * (objective == "mspp")]
        options = {name: getattr(s, name) for name in names} | {"max_tokens": longest or s.max_tokens}
        options["same_paragraph_before"] = s.same_paragraph_before and objective in ("ssp", "all")
        sampler = samplers.Sampler(index, objective, seed, split="validation", **options)
        examples = min(size, len(sampler))
        masked = share_to_mask(s.mlm_share, s.mlm_weight)
        figures = validation.validate(model, sampler, examples, micro_tokens, seed, masked)
        figures |= own_tasks.shared_words(sampler, examples) | {"examples": examples}
        measures[f"{Path(name).name}, {objective}"] = figures
    return measures
