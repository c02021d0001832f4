"""Numbers: metrics, losses, heads, samplers and trained weights, each against something that shares no code with it.

rankings    ranking metrics: all small sets by brute force; random ones by trec_eval and torchmetrics
gradients   every loss and head in float64: a slow loop, and finite differences
laws        every objective on generated corpora, by its paper's words
processes   the same indexes, batches and weights from any number of processes
lengths     what lengths alone tell of labels
"""

import itertools
import os
from pathlib import Path

from tqdm.auto import tqdm

from asutil import corpus
from asutil.corpus import tokenizers
from asutil.io import hub

from . import gradients, laws, lengths, processes, rankings

WIKIPEDIA = "local/wikipedia_small"


def check(full: bool, seed: int, folder: Path) -> dict:
    """All of it; a tenth of the sets, corpora and documents where it is not `full`."""
    metrics = rankings.check(10_000 if full else 1_000, seed)
    derivatives = gradients.check(seed)
    groups = laws.check(1_000 if full else 100, seed)
    tokenizer, texts = pydocs(None if full else 4_000, folder)
    alike = processes.check(texts[: 1_000 if full else 100], tokenizer, 12 if full else 4, seed, folder)
    tables = {
        name: lengths.check(index, 50_000 if full else 10_000, seed) for name, index in indexes(tokenizer, texts, full, folder).items()
    }
    for name, table in tables.items():
        print(f"{name}\n{lengths.shown(table)}", flush=True)
    auc, where = lengths.largest(tables)
    return {
        "metric_sets": sum(metrics.values()),
        "losses": derivatives["losses"],
        "heads": derivatives["heads"],
        "objectives": len(groups),
        "corpora": (1_000 if full else 100) * len(groups),
        "workers": "/".join(map(str, processes.WORKERS)),
        "ranks": "/".join(map(str, processes.PROCESSES)),
        "largest_AUC_of_lengths": f"{auc:.3f} ({where})",
        "counts": {**metrics, **derivatives, **alike, "groups": groups},
        "lengths": tables,
    }


def pydocs(limit: int | None, folder: Path):
    """The embedded documents, and the tokenizer that models from scratch have."""
    tokenizer = tokenizers.tokenizer_for("tiny", "pydocs", folder)
    return tokenizer, list(tqdm(corpus.documents("pydocs", limit=limit), "documents", unit="", dynamic_ncols=True))


def indexes(tokenizer, texts: list, full: bool, folder: Path) -> dict[str, corpus.Corpus]:
    """What lengths are measured on: the embedded documents, and a slice of Wikipedia where it is at hand."""
    found = {"pydocs": corpus.build(texts, tokenizer, folder / "pydocs", source="pydocs")}
    if os.environ.get(hub.MIRROR) and hub.mirror(WIKIPEDIA):
        articles = itertools.islice(corpus.documents(WIKIPEDIA), None if full else 200)
        found["wikipedia"] = corpus.build(articles, tokenizer, folder / "wikipedia", source="wikipedia")
    return found
