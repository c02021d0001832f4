"""Even lengths: every length of a span equally often among the examples, and nothing else about them changed."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from asutil import corpus as c
from asutil import metrics
from asutil.sampling import OBJECTIVES, Sampler

from ..conftest import made_up_documents

ONE_TO_THREE, ONE_TO_FIVE = (1, 2, 3), (1, 2, 3, 4, 5)
PRINTED = {  # the lengths of A and of B, or of the span that SP takes out; contextual_as2 has one sentence for a
    "ssp": {(a, b) for a in ONE_TO_THREE for b in ONE_TO_FIVE},
    "sp": {(a, 0) for a in ONE_TO_THREE},
    "psd": {(0, 0)},
    "nsp": {(a, b) for a in ONE_TO_FIVE for b in ONE_TO_FIVE},
    **{name: {(1, b) for b in ONE_TO_THREE} for name in ("sdc", "dpc", "dslc")},
}


@pytest.fixture(scope="module")
def long_corpus(tmp_path_factory, tokenizer):
    """Paragraphs of 2 to 11 sentences, the short ones by far the most frequent."""
    rng, documents = np.random.default_rng(0), []
    for n in range(400):
        sizes = np.minimum(1 + rng.geometric(0.35, 6), 11)
        documents.append(
            [[f"Word{n} has thing{place * 20 + m} in its text here." for m in range(size)] for place, size in enumerate(sizes)]
        )
    return c.build(documents, tokenizer, tmp_path_factory.mktemp("long") / "index")


def lengths_of(sampler) -> list[tuple[int, int]]:
    """By the examples themselves: sentences of A, and of B; of SP those that lack in B."""
    every = sampler.spans(np.arange(0, len(sampler), 1 + sampler.negatives))
    sizes = np.diff(every.ranges).sum((2, 3))
    if sampler.objective == "sp":
        return [(int(a), 0) for a in sizes[:, 0]]
    return [(int(a), int(b)) for a, b in sizes[:, :2]]


@pytest.mark.parametrize("objective", PRINTED)
def test_every_pair_of_lengths_is_possible_once(objective):
    pairs = np.stack(OBJECTIVES[objective].possible_lengths(), 1)
    assert len(pairs) == len(PRINTED[objective]) and set(map(tuple, pairs.tolist())) == PRINTED[objective]


@pytest.mark.parametrize("objective", ["ssp", "sp", "sdc", "dpc", "dslc"])
def test_all_lengths_are_equally_frequent_among_the_examples(long_corpus, objective):
    counts, drawn = Counter(), Counter()
    for epoch in range(3):
        counts.update(lengths_of(Sampler(long_corpus, objective, epoch=epoch, lengths="even")))
        drawn.update(lengths_of(Sampler(long_corpus, objective, epoch=epoch)))
    assert set(counts) == PRINTED[objective]
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    assert stats.chisquare([drawn[pair] for pair in counts]).pvalue < 1e-6  # the law without the option: short ones are more frequent


@pytest.mark.parametrize("objective", ["ssp", "sp", "dpc", "dslc"])
def test_even_lengths_choose_among_paragraphs_as_drawn_ones_do(long_corpus, objective):
    """Given its lengths, an anchor is any paragraph that can hold them: else the length of what is left would give labels away."""
    sizes = np.diff(long_corpus.paragraphs)
    by_lengths = {"even": {}, None: {}}
    for lengths, known in by_lengths.items():
        for epoch in range(6):
            sampler = Sampler(long_corpus, objective, epoch=epoch, lengths=lengths)
            for pair, size in zip(zip(*sampler.lengths(sampler.anchors)), sizes[sampler.anchors]):
                known.setdefault(tuple(map(int, pair)), []).append(min(int(size), 9))
    for pair, even in by_lengths["even"].items():
        tables = [Counter(even), Counter(by_lengths[None][pair])]
        seen = sorted(set(tables[0]) | set(tables[1]))
        table = np.array([[counts[size] for size in seen] for counts in tables])
        table = table[:, table.sum(0) >= 10]
        if table.shape[1] > 1:
            assert stats.chi2_contingency(table).pvalue > 0.0005, pair


def test_what_sp_leaves_does_not_give_the_label_away(long_corpus):
    sampler = Sampler(long_corpus, "sp", lengths="even")
    made = sampler.spans(np.arange(len(sampler)))
    left = np.diff(made.ranges[:, 1]).sum((1, 2)).astype(float)
    assert abs(metrics.auc(made.labels, left) - 0.5) < 0.03


def test_a_union_hands_even_lengths_to_its_objectives(long_corpus):
    union = Sampler(long_corpus, "all", lengths="even")
    assert [member.options.lengths for member in union.members] == ["even"] * 3
    counts = Counter(lengths_of(union.members[0]))
    assert stats.chisquare([counts[pair] for pair in PRINTED["ssp"]]).pvalue > 0.001


def test_lengths_that_no_paragraph_can_hold_are_left_out(tokenizer, tmp_path):
    documents = made_up_documents(60, paragraphs=(3, 5), sentences=(3, 3))
    corpus = c.build(documents, tokenizer, tmp_path / "index")
    assert {a + b for a, b in lengths_of(Sampler(corpus, "ssp", lengths="even"))} == {2, 3}
