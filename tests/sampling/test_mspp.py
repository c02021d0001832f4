"""The laws of MSPP (`tests.trust.laws`) on a corpus of text and on generated ones, how draws are shared out, and token ids."""

import itertools
import pickle
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.stats import chisquare

from asutil import corpus as c
from asutil import inputs
from asutil.sampling import OBJECTIVES, Sampler, mspp
from tests.sampling.objectives.mspp import JOINT
from tests.sampling.objectives.mspp import check_joint as check
from tests.trust.laws import Listed, Text

from ..conftest import made_up_documents

OPTIONS = [{}, {"positives": 2, "hard_negatives": 1, "negatives": 3}, {"hard_negatives": 0}, {"hard_negatives": 4}]
OPTIONS += [{"max_sentences": 2}, {"positives": 3, "max_sentences": 3}, {"split": "validation"}]


def examples(sampler, numbers=None):
    numbers = np.arange(len(sampler)) if numbers is None else numbers
    made = sampler.spans(numbers)
    return [made.example(sampler.corpus, row) for row in range(len(numbers))]


# ------------------------------------------------------------------ the rules


@pytest.mark.parametrize("options", OPTIONS)
def test_laws(corpus, options):
    text, sampler = Text(corpus), Sampler(corpus, "mspp", seed=1, **options)
    hard = [check(text, example, **options) for example in examples(sampler)]
    wanted = {**JOINT, **options}
    assert set(hard) <= set(range(wanted["hard_negatives"] + 1)) and max(hard) == wanted["hard_negatives"]
    assert len(hard) == len(sampler) == len(set(sampler.anchors.tolist()))
    inside = {p: len(text.paragraphs[p]) for p, d in text.of.items() if (d in text.validation) == (options.get("split") == "validation")}
    least, enough = (a * (1 + wanted["positives"]) for a in (1, wanted["max_sentences"]))
    assert {p for p, n in inside.items() if n >= enough} <= set(sampler.anchors.tolist()) <= {p for p, n in inside.items() if n >= least}


def test_every_paragraph_is_visited_once_in_an_order_that_changes(corpus):
    visited = [[example.paragraph[0] for example in examples(Sampler(corpus, "mspp", epoch=epoch))] for epoch in range(2)]
    assert sorted(visited[0]) == sorted(visited[1]) == Sampler(corpus, "mspp").anchors.tolist()
    assert visited[0] != visited[1] != sorted(visited[1])


def test_numbers_labels_and_groups(corpus):
    sampler = Sampler(corpus, "mspp", positives=2)
    made = sampler.spans(np.arange(len(sampler)))
    assert type(sampler) is mspp.MultiSentenceSampler and made.ranges.shape == (len(sampler), 7, 1, 2)
    assert made.paragraphs.shape == (len(sampler), 7) and made.labels.shape == made.kinds.shape == (len(sampler), 6)
    assert made.labels.sum(1).tolist() == [2] * len(sampler) and made.groups.tolist() == list(range(len(sampler)))
    example = sampler[5]
    assert example.group == 5 and example.label == tuple(made.labels[5].tolist()) and {type(x) for x in example.label} == {int}
    assert example.kind == tuple(("positive", "hard", "easy")[kind] for kind in made.kinds[5])
    assert example.sentences == tuple(tuple(range(*part[0])) for part in made.ranges[5].tolist())


def test_both_lengths_are_drawn_and_a_paragraph_waits_for_those_that_fit(corpus):
    text, drawn = Text(corpus), defaultdict(Counter)
    for epoch in range(60):
        sampler = Sampler(corpus, "mspp", epoch=epoch, max_sentences=2, hard_negatives=0, negatives=1)
        made = sampler.spans(np.arange(len(sampler)))
        for p, sizes in zip(made.paragraphs[:, 0].tolist(), np.diff(made.ranges[:, :, 0]).squeeze(-1).tolist()):
            drawn[min(4, len(text.paragraphs[p]))][tuple(sizes)] += 1
    fits = {(a, b, b): a + b for a, b in itertools.product((1, 2), repeat=2)}
    for n, counts in drawn.items():
        assert set(counts) == {sizes for sizes, need in fits.items() if need <= n}
        assert max(counts.values()) < 1.5 * min(counts.values())


@pytest.mark.parametrize(("n", "a", "b", "count"), [(6, 1, 1, 1), (6, 2, 1, 1), (7, 1, 2, 2), (5, 2, 1, 3)])
def test_spans_of_a_paragraph_are_placed_uniformly(n, a, b, count):
    keys = np.random.default_rng(0).integers(0, 2**63, 30_000).astype(np.uint64)
    start, sizes, a_, b_ = (np.full(len(keys), value) for value in (7, n, a, b))
    at = OBJECTIVES["mspp"].positive(start, sizes, a_, b_, count, keys) - 7
    at[:, 1:].sort(1)
    fits = []
    for chosen in itertools.product(*[range(n - length + 1) for length in [a] + [b] * count]):
        taken = [i for place, length in zip(chosen, [a] + [b] * count) for i in range(place, place + length)]
        if len(taken) == len(set(taken)) and list(chosen[1:]) == sorted(chosen[1:]):
            fits.append(chosen)
    counts = Counter(map(tuple, at.tolist()))
    assert set(counts) == set(fits) and chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize("size", [1, 2])
def test_every_span_that_qualifies_is_drawn_equally_often(size):
    shape, numbers = [3, 1, 5, 2], itertools.count()
    corpus = Listed([[[next(numbers) for _ in range(n)] for n in shape] for _ in range(4000)])
    made = Sampler(corpus, "mspp", hard_negatives=1, negatives=2, max_sentences=size).spans(np.arange(2000 * 3))
    rows = (made.paragraphs[:, 0] % 4 == 2) & (np.diff(made.ranges[:, 1, 0])[:, 0] == size)  # anchors of 5 sentences
    places, kinds = made.ranges[rows, 1:, 0, 0], made.kinds[rows]
    paragraph = np.repeat(np.arange(4), shape)
    fits = [at for at in range(12 - size) if paragraph[at] == paragraph[at + size - 1]]
    for kind, starts in {"hard": [at for at in fits if not 4 <= at < 9], "easy": fits}.items():
        drawn = places[kinds == ("positive", "hard", "easy").index(kind)]
        counts = Counter((drawn % 11).tolist())
        assert set(counts) == set(starts) and chisquare(list(counts.values())).pvalue > 0.001
    assert chisquare(np.bincount(drawn // 4400)).pvalue > 0.001  # ten equal parts of the corpus


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"positives": 2}, {"max_sentences": 2, "hard_negatives": 4}])
def test_each_slot_is_equally_often_positive(tokenizer, tmp_path, options):
    sampler = Sampler(c.build(made_up_documents(120), tokenizer, tmp_path / "index"), "mspp", **options)
    kinds = np.concatenate(
        [Sampler(sampler.corpus, "mspp", epoch=epoch, **options).spans(np.arange(len(sampler) // 2)).kinds for epoch in range(20)]
    )
    for kind in range(3):
        assert chisquare((kinds == kind).sum(0)).pvalue > 0.001
    assert abs(np.corrcoef((kinds == 0)[:-1, 0], (kinds == 0)[1:, 0])[0, 1]) < 0.05  # nor does one group tell of the next


# ------------------------------------------------------------------ repeated sentences


def test_the_only_span_that_is_left_is_found():
    """Nine thousand copies of one sentence and three others: redraws alone would miss them."""
    corpus = Listed([[[n, n + 1000]] + [[0] * 60] * 50 for n in range(1, 6)])
    text, sampler = Text(corpus), Sampler(corpus, "mspp", hard_negatives=1, negatives=3)
    found = {example.paragraph[0]: example for example in examples(sampler)}
    assert sorted(found) == [p for p in text.of if len(text.paragraphs[p]) == 2 and text.of[p] not in text.validation]
    for example in found.values():
        check(text, example, hard_negatives=1, negatives=3)


def test_places_are_drawn_again_where_a_paragraph_repeats_a_sentence():
    """Two of the eight sentences of a paragraph are copies in 3 of 4 draws: 9 draws are in vain for 8 % of the paragraphs, not for 75 %."""
    corpus = Listed([[[n, *[0] * 7], [n + 1000]] for n in range(1, 400)])
    assert 0.85 * 391 < len(Sampler(corpus, "mspp")) < 391


def test_real_corpora_are_not_searched(corpus, monkeypatch):
    """Where no paragraph repeats itself and there are texts enough, anchors are found without making a single group."""
    many = Listed([[[1000 * d + 10 * p + s for s in range(4)] for p in range(5)] for d in range(12)])
    monkeypatch.setattr(mspp.MultiSentenceSampler, "_groups", lambda self, p: pytest.fail(f"{len(p)} groups made") if len(p) else [p])
    assert len(Sampler(many, "mspp")) == 10 * 5


# ------------------------------------------------------------------ token ids


@pytest.mark.slow
@pytest.mark.parametrize("like", ["RoBERTa", "BERT"])
@pytest.mark.parametrize("options", [{}, {"max_tokens": 6 * 9}, {"positives": 2, "max_sentences": 2, "max_tokens": 7 * 33}])
def test_token_ids_and_types_equal_the_tokenizer_on_the_text(corpus, documents, bert_tokenizer, tmp_path, like, options):
    if like == "BERT":
        corpus = c.build(documents, bert_tokenizer, tmp_path / "index")
    tokenizer, sampler = corpus.tokenizer, Sampler(corpus, "mspp", **options)
    slots = 6 if not options.get("positives") else 7
    length = options.get("max_tokens", 6 * 64) // slots
    batch, spans = sampler.batch(np.arange(60)), sampler.spans(np.arange(60))
    ragged, labels = inputs.join_spans(sampler, spans), spans.labels
    assert batch.input_ids.shape == batch.token_type_ids.shape == (60, slots * length) and batch.lengths.shape == (60, slots)
    assert batch.token_type_ids.tolist() == [[slot for slot in range(slots) for _ in range(length)]] * 60
    cut = 0
    for row, example in enumerate(examples(sampler, np.arange(60))):
        assert batch.labels[row].tolist() == labels[row].tolist() == list(example.label)
        compact, at = [], int(ragged.offsets[row])
        for slot, part in enumerate(example.parts):
            ids = tokenizer(part, truncation=True, max_length=length)["input_ids"]
            cut += len(tokenizer(part)["input_ids"]) > length
            padded = ids + [tokenizer.pad_token_id] * (length - len(ids))
            assert batch.input_ids[row, slot * length : (slot + 1) * length].tolist() == padded
            assert batch.lengths[row, slot] == len(ids)
            compact += ids
        assert ragged.ids[at : ragged.offsets[row + 1]].tolist() == compact
    assert bool(cut) == (length < 64)


def test_batches_of_pre_training_hold_the_same_groups(corpus):
    sampler = Sampler(corpus, "mspp")
    made = inputs.PretrainingBatches(lambda epoch: sampler, 2, 20, 4000, mlm_share=0)[1]
    whole, found = sampler.batch(np.arange(20, 40)), []
    assert made["examples"] == 20 and made["tokens"] == whole.lengths.sum()
    for micro in made["micro"]:
        real = micro["attention_mask"].bool()
        found += [
            (tuple(ids[mask].tolist()), tuple(labels)) for ids, mask, labels in zip(micro["input_ids"], real, micro["labels"].tolist())
        ]
    real = (np.arange(64) < whole.lengths[..., None]).reshape(20, -1)
    assert sorted(found) == sorted(
        (tuple(ids[mask].tolist()), tuple(row)) for ids, mask, row in zip(whole.input_ids, real, whole.labels.tolist())
    )


# ------------------------------------------------------------------ any process, any option


def test_a_sampler_can_be_sent_to_another_process():
    sampler = Sampler(Listed([[[100 * d + s for s in range(9)] for _ in range(3)] for d in range(9)]), "mspp", epoch=1)
    assert pickle.loads(pickle.dumps(sampler)).spans([0, 5]).ranges.tolist() == sampler.spans([0, 5]).ranges.tolist()


def test_every_option_changes_the_groups(corpus):
    usual = Sampler(corpus, "mspp")
    assert (usual.max_tokens, usual.slot_tokens) == (6 * 64, 64)
    others = {"seed": 1, "epoch": 1, "split": "validation", "max_sentences": 2, "hard_negatives": 1, "negatives": 3, "positives": 2}
    for name, value in others.items():
        other = Sampler(corpus, "mspp", **{name: value})
        assert other.spans([0, 1, 2]).ranges.tolist() != usual.spans([0, 1, 2]).ranges.tolist(), name
    kinds = [np.bincount(Sampler(corpus, "mspp", hard_negatives=n).spans([0, 1, 2]).kinds.ravel()).tolist() for n in (0, 2, 4)]
    assert kinds[0] == [3, 0, 12] and kinds[1] != kinds[2]
    assert Sampler(corpus, "mspp", positives=3, negatives=2).max_tokens == 6 * 64
    assert Sampler(corpus, "mspp", max_tokens=60).slot_tokens == 10


# ------------------------------------------------------------------ what does not fit


@pytest.mark.parametrize(
    "documents",
    [
        [[[n]] for n in range(8)],  # nothing beside s_0
        [[[n, n]] for n in range(8)],  # a copy of it alone
        [[[1, 2]]] * 8,  # no negative that is none of the two
        [[[n, n + 10] for n in range(1, 9)]] * 3,  # enough hard ones, and one document with nothing but their copies
    ],
)
def test_a_corpus_without_groups_is_refused_with_counts(documents):
    corpus = Listed(documents)
    counts = f"{len(documents) - 2} documents, {sum(map(len, documents[2:]))} paragraphs, the longest of {len(documents[0][0])} sentences"
    with pytest.raises(ValueError, match=f"no eligible anchor for mspp in the train documents: {counts}; it needs paragraphs of 2 or more"):
        Sampler(corpus, "mspp", negatives=20, max_tokens=22 * 8)


# ------------------------------------------------------------------ real text


@pytest.mark.mirror
def test_ten_thousand_groups_of_wikipedia(wikipedia):
    corpus = wikipedia()
    text, sampler, tokenizer = Text(corpus), Sampler(corpus, "mspp"), corpus.tokenizer
    numbers = np.random.default_rng(0).permutation(len(sampler))[:10_000]
    made, hard = examples(sampler, numbers), Counter()
    for example in made:
        hard[check(text, example)] += 1
    assert len(made) == 10_000 and hard[2] > 9_000 and hard[0] + hard[1] > 0
    assert chisquare(np.sum([example.label for example in made], 0)).pvalue > 0.001
    batch = sampler.batch(numbers[:1000])
    for row, example in enumerate(made[:1000]):
        ids = tokenizer(list(example.parts), truncation=True, max_length=64, padding="max_length")["input_ids"]
        assert batch.input_ids[row].tolist() == list(itertools.chain(*ids))
