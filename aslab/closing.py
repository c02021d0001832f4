"""The last sentences of a run: whether its model is ahead of what needs no training, and what its limits left out."""

import pandas as pd

from asutil.data.splits import BEYOND
from asutil.metrics import significance

FEWEST = 6  # questions: with fewer the randomisation test cannot have a p below .05, since 2 / 2^5 is above it
TOO_FEW = f"Fewer than {FEWEST} test questions cannot show any difference"
# Baselines as a sentence names them.
UNTRAINED = {"bm25": "BM25", "random": "a random order", "document_order": "the order of the document"}
UNTRAINED |= dict.fromkeys(("zero_shot", "before training"), "the untrained encoder")


def difference(ours: pd.Series, other: pd.Series) -> tuple[int, str]:
    """Compares the average precision of the same questions.

    There is an effect where the interval of the bootstrap leaves zero out and the randomisation test has p below .05: an interval over a
    few questions is too narrow.
    Returns: 1 for better, -1 for worse, 0 for what may be chance; and the difference of MAP with both tests.
    """
    test, swapped = significance.paired_bootstrap(ours, other), significance.randomisation(ours, other)
    low, high = (100 * edge for edge in test.interval)
    interval = f"95 % interval {low:+.1f} to {high:+.1f}, p by randomisation = {swapped:.4f}"
    return test.sign if swapped < 0.05 else 0, f"MAP {100 * test.difference:+.1f} points ({interval})"


def not_better(name: str, theirs: float, system: str, reached: float, questions: str) -> str:
    """The start of a sentence on a system that something untrained keeps up with; theirs, reached: their MAP on the same questions."""
    figures = f"has MAP {100 * theirs:.1f}, {system} {100 * reached:.1f}"
    start = "Not shown to be better" if reached > theirs else "Not worth using yet"
    return f"{start}: on {questions} {UNTRAINED.get(name, name)}, which needs no training, {figures}"


def ahead(ours, untrained: dict) -> list[str]:
    """A sentence where the best of what needs no training is not shown to be behind a model on test; else none.

    Args:
        ours, untrained: a `metrics.Ranking` of the test questions, of the model and of each baseline.
    """
    precision = lambda ranking: ranking.per_question.set_index("question_id")["average_precision"]
    own, values = precision(ours), {name: precision(ranking) for name, ranking in untrained.items()}
    best = max(values, key=lambda name: values[name].mean())
    theirs, reached = float(values[best].mean()), float(own.mean())
    sign, text = difference(own, values[best].loc[own.index])
    if sign > 0:
        return []
    start = not_better(best, theirs, "this model", reached, f"the {len(own):,} test questions")
    chance = ". The difference may be chance" * (reached > theirs)
    few = f". {TOO_FEW}" * (len(own) < FEWEST)
    return [f"{start}: {text}{chance}{few}."]


def left_out(splits: dict, settings: dict, examples=None) -> list[str]:
    """A sentence on what the limits among a run's settings left out of its data, and one on texts that are cut; none without any.

    Args:
        splits: as a loader of labelled data gives them, with their reports.
        examples: of training; those of `embed` know how many triplets there were, most of them which texts are cut.
    """
    by_limit = {}
    for name, split in splits.items():
        kept, beyond = split.report["kept"], split.report["dropped"].get(BEYOND)
        if beyond:
            unit = next(iter(kept))
            own = "train_limit" if name == "train" else "test_limit"
            general = "claim_limit" if unit == "claims" else "question_limit"
            limit = own if settings.get(own) is not None else general
            lost = f"{beyond[unit]:,} of {beyond[unit] + kept[unit]:,} {'training' if name == 'train' else name} {unit}"
            by_limit.setdefault(f"{limit}={settings[limit]}", []).append(lost)
    every = getattr(examples, "all", 0)
    if every and len(examples) < every:
        limits = [name for name in ("triplet_limit", "triplets_per_question") if settings[name] is not None]
        named = " and ".join(f"{name}={settings[name]}" for name in limits)
        by_limit[named] = [f"{every - len(examples):,} of {every:,} triplets"]
    each = [f"by {limit}: {', '.join(lost)}" for limit, lost in by_limit.items()]
    sentences = [f"left out {'; '.join(each)}"] if each else []
    if hasattr(examples, "are_cut") and (cut := examples.are_cut(length := settings["max_tokens"])).any():
        unit = getattr(examples, "UNIT", "candidates")
        sentences.append(f"cut at max_tokens={length}: {cut.sum():,} of {len(cut):,} training {unit}")
    return sentences
