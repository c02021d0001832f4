"""The samplers of all pre-training objectives by name: index + counter-based randomness -> spans and labels.

An example is a handful of sentence ranges. All draws of an example are functions of (seed, epoch, its anchor paragraph, its place in
the group). Nothing is materialised, and any example can be made again alone, in any order, on any number of workers.
"""

import numpy as np

from ..io.spelling import require_one_of
from .base import BaseSampler, Options
from .objectives import OBJECTIVES


def Sampler(
    corpus,
    objective,
    seed=0,
    epoch=0,
    split="train",
    hard_negatives=2,
    negatives=4,
    max_tokens=None,
    same_paragraph_before=False,
    *,
    positives=None,
    max_sentences=None,
    labels="true",
    lengths=None,
) -> BaseSampler:
    """The examples of one objective and epoch, by number.

    Example i belongs to group i // (1 + negatives): the first of a group is positive, then come up to `hard_negatives` hard ones from
    the anchor's document, then easy ones from other documents. A keyed permutation visits every eligible anchor paragraph once.

    A union has the same number of groups of each of its objectives (`union.UnionSampler`). A group of mspp is one example
    (`mspp.MultiSentenceSampler`).

    Args:
        objective: one of OBJECTIVES.
        split: `train` or `validation`.
        negatives: of a group; nsp and sop have one, whatever is given.
        max_tokens: longest input; None takes the objective's own (128; sp and psd 256; mspp 64 a text).
        same_paragraph_before: ssp only, also within all: B follows A, and the first hard negative is a span before A where there is room.
        positives, max_sentences: mspp only.
        labels: `true`; or `shuffled`: each group has as many positives as before, at places that do not depend on the text (D-107).
        lengths: of spans; None: all are equally likely to be drawn, and a paragraph too short for its draw is no anchor, so the examples
            have more short ones; `even`: longer ones are drawn more often, so that all are as frequent in the examples.
    Raises: ValueError for an unknown objective or split, or for a corpus that gives no example, with the counts.
    Deviation: D-02, lengths are never clipped, or `even`; D-03, same_paragraph_before; D-05, a negative that repeats a sentence is
        drawn again, and an anchor whose context repeats one of a or b is left out; D-120, equal parts of a union; D-132, every
        paragraph counts the same; D-154, a group may have a negative twice.
    """
    require_one_of("objective", objective, OBJECTIVES)
    sizes = hard_negatives, negatives, max_tokens
    options = Options(seed, epoch, split, *sizes, same_paragraph_before, positives, max_sentences, labels, lengths)
    rule = OBJECTIVES[objective]
    return rule.sampler(corpus, rule, options)


def objective_of_data(objective: str, data: str | None = None, negatives: int | None = None) -> str:
    """The objective whose examples are read: the objective itself; for `mlm`, masked language modelling alone, `data`.

    Args:
        negatives: of a group; only mlm, which has no labels, can do without.
    Paper: sentence_objectives, section 5.3 (MLM-only ablation).
    """
    if (objective == "mlm") != (data is not None):
        raise ValueError(
            f"data names the objective whose examples mlm reads, and is for mlm alone: got {data!r} for {objective}"
        )
    if negatives == 0 and objective != "mlm":
        raise ValueError(f"negatives: 0 is for mlm alone, {objective} learns from labels")
    return data or objective


def head_count(objective: str, heads: str = "shared") -> int:
    """How many pair heads an objective is learnt with: one, or for a union one for each of its objectives.

    Paper: contextual_as2, section 7 (separate heads were worse).
    """
    if heads != "per_objective":
        return 1
    unions = {name: rule.members for name, rule in OBJECTIVES.items() if rule.members}
    if objective not in unions:
        raise ValueError(f"heads: per_objective is for {' and '.join(unions)}, got {objective}")
    return len(unions[objective])


def context_overlap(corpus, seed=0, split="train", size=100_000) -> dict:
    """How much the contexts of dpc and dslc have in common, measured on `size` examples of dslc: its context is a part of dpc's.

    Paper: contextual_as2, section 7.
    Returns: examples; identical, the share whose two contexts are the same sentences; overlap, the mean share of dpc's context that
        dslc's has; paragraph_sentences, the mean length of the paragraphs of the corpus.
    """
    sampler = Sampler(corpus, "dslc", seed, split=split)
    spans = sampler.spans(np.arange(min(size, len(sampler))))
    a, b, neighbours = spans.ranges.swapaxes(0, 1)
    a = np.where(spans.labels[:, None, None], a, b)  # a negative's a is of another paragraph
    paragraph = OBJECTIVES["dpc"].context(*sampler.extent(spans.paragraphs[:, 1]), a, b)
    size_of_dslc = np.diff(neighbours).sum((1, 2))
    size_of_dpc = np.diff(paragraph).sum((1, 2))
    return {
        "examples": len(size_of_dslc),
        "identical": float((size_of_dslc == size_of_dpc).mean()),
        "overlap": float((size_of_dslc / size_of_dpc).mean()),
        "paragraph_sentences": corpus.info["sentences"] / corpus.info["paragraphs"],
    }
