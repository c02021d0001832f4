"""The laws of every objective (`tests.trust.laws`) on a corpus of text, any order and any process, token ids, and what is refused."""

import contextlib
import itertools

import numpy as np
import pytest

from asutil import corpus as c
from asutil import metrics, sampling
from asutil.sampling import OBJECTIVES, Sampler, formulas, spans
from asutil.sampling.pairs import PairSampler
from tests.trust.laws import LAWS, Text, check_corpora, check_epoch, check_group, groups

from ..conftest import made_up_documents

COLUMNS = ("ranges", "paragraphs", "labels", "kinds", "groups")
CONTEXTUAL = list(OBJECTIVES["context_all"].members)
PLAIN = [name for name, rule in OBJECTIVES.items() if rule.parts == 2 and not rule.members]  # pairs, one objective each


@pytest.mark.slow
@pytest.mark.parametrize("objective", [*PLAIN, *CONTEXTUAL])
@pytest.mark.parametrize("options", [{}, {"hard_negatives": 1, "negatives": 3}, {"hard_negatives": 0}, {"split": "validation"}])
def test_laws(corpus, held_out, objective, options):
    corpus = held_out if objective in CONTEXTUAL and "split" in options else corpus
    text, sampler = Text(corpus), Sampler(corpus, objective, seed=1, **options)
    # No sentence repeats that could turn a hard negative into an easy one: all that can be had are asked for.
    assert len(text.unique) == len(text.inside)
    assert check_epoch(corpus, objective, seed=1, **options) == sampler.groups == len(set(sampler.anchors.tolist())) > 0
    allowed = [p for p, d in text.of.items() if (d in text.validation) == (options.get("split") == "validation")]
    if objective == "psd":
        assert sorted(sampler.anchors.tolist()) == [p for p in allowed if text.others(p, 1)]
    if objective in CONTEXTUAL:
        allowed = [p for p in allowed if objective != "sdc" or p != text.inside[text.of[p]][0]]
        sizes = {p: len(text.paragraphs[p]) - 1 - LAWS[objective].left for p in allowed}  # room for b
        assert (
            {p for p, room in sizes.items() if room >= 3} <= set(sampler.anchors.tolist()) <= {p for p, room in sizes.items() if room >= 1}
        )


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_laws_on_generated_corpora(objective):
    """With copies of sentences and without, any options, seed and epoch; in some a group can only just be completed, or cannot."""
    assert check_corpora(objective, 80, 5) > 20


def test_same_paragraph_before(corpus):
    text, sampler = Text(corpus), Sampler(corpus, "ssp", same_paragraph_before=True)
    made = list(groups(sampler, "ssp"))
    for group in made:
        check_group(text, "ssp", group, 2, before=True)
        room = group[0].sentences[0][0] - text.first[group[0].paragraph[0]] >= len(group[0].sentences[1])
        assert room == (group[1].paragraph[1] == group[0].paragraph[0])
    assert any(g[1].paragraph[1] == g[0].paragraph[0] for g in made)


def test_an_anchor_that_can_have_no_negative_is_none(tokenizer, tmp_path):
    same = "This very sentence stands in each and every paragraph of this corpus. "
    corpus = c.build([[[same * 2, same * 3]] * 3] * 6, tokenizer, tmp_path / "index")
    with pytest.raises(ValueError, match="no eligible anchor for psd"):
        Sampler(corpus, "psd")
    mixed = c.build([*made_up_documents(12, paragraphs=(2, 4)), *[[[same * 2, same * 3]] * 3] * 3], tokenizer, tmp_path / "mixed")
    for objective in PLAIN:
        assert check_epoch(mixed, objective) > 0


@pytest.mark.slow
def test_whether_an_anchor_can_have_negatives_is_its_own_matter(tokenizer, tmp_path, monkeypatch):
    """Anchors are looked at together, each with all of its slots: what is found of one is what is found of it alone."""
    of_all, refused = PairSampler._without_negatives, []

    def compared(sampler, anchors):
        found = of_all(sampler, anchors)
        assert found.tolist() == [of_all(sampler, anchors[n : n + 1])[0] for n in range(len(anchors))]
        refused.append(found)
        return found

    monkeypatch.setattr(PairSampler, "_without_negatives", compared)
    for seed in range(8):
        documents = made_up_documents(8, seed=seed, repeated=0.6, paragraphs=(2, 4), sentences=(2, 4))
        corpus = c.build(documents, tokenizer, tmp_path / f"index {seed}")
        for objective, options in itertools.product(PLAIN, ({}, {"negatives": 1, "hard_negatives": 1})):
            with contextlib.suppress(ValueError):  # a corpus may have no anchor at all
                Sampler(corpus, objective, **options)
    assert 20 < np.concatenate(refused).sum() < sum(map(len, refused)) - 100


@pytest.mark.parametrize(("objective", "parts", "before"), [("all", 2, False), ("all", 2, True), ("context_all", 3, False)])
def test_a_union_is_groups_of_its_objectives_in_equal_parts(corpus, objective, parts, before):
    options = {"seed": 4, "epoch": 1, "hard_negatives": 1, "negatives": 3}
    union, sizes = Sampler(corpus, objective, same_paragraph_before=before, **options), []
    assert union.max_tokens == 128 and union.parts == parts
    whole = union.spans(np.arange(len(union)))
    for number, name in enumerate(OBJECTIVES[objective].members):
        sampler = Sampler(corpus, name, max_tokens=128, same_paragraph_before=before and name == "ssp", **options)
        alone = sampler.spans(np.arange(len(sampler)))
        assert not alone.members.any()
        mine = list(by_group(whole, whole.members == number))
        assert len(set(mine)) == len(mine) and set(mine) <= set(by_group(alone, slice(None)))
        sizes.append(len(sampler))
    assert np.bincount(whole.members).tolist() == [min(sizes)] * 3 and len(union) == 3 * min(sizes)
    assert (whole.members.reshape(-1, 4) == whole.members[::4, None]).all()
    assert whole.groups.tolist() == np.repeat(np.arange(len(union) // 4), 4).tolist()
    assert objective != "all" or (whole.kinds[whole.members == 2] != spans.HARD).all()  # psd, the third, has no hard negatives
    switches = np.count_nonzero(np.diff(whole.members[::4])) / (len(whole.members) / 4 - 1)
    assert abs(switches - 2 / 3) < 0.1  # mixed as by chance


def by_group(made, rows):
    arrays = (getattr(made, name)[rows] for name in ("ranges", "paragraphs", "labels", "kinds"))
    return zip(*([group.tobytes() for group in array.reshape(-1, 4, *array.shape[1:])] for array in arrays))


def test_a_union_has_other_groups_of_its_larger_objectives_every_epoch(corpus):
    visited = []
    for epoch in range(2):
        union = Sampler(corpus, "all", epoch=epoch)
        made, sizes = union.spans(np.arange(len(union))), [member.groups for member in union.members]
        visited.append(set(made.paragraphs[(made.members == 2) & (made.labels == 1), 0].tolist()))
    share = sizes[0] / sizes[2]  # of the paragraphs of psd, by chance
    assert sizes[0] == min(sizes) and share < 0.6
    assert abs(len(visited[0] & visited[1]) / len(visited[0]) - share) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("hard_negatives", [2, 3, 4])
def test_hard_negatives_of_a_group_are_different_paragraphs(corpus, hard_negatives):
    sampler = Sampler(corpus, "sp", hard_negatives=hard_negatives)
    for group in groups(sampler, "sp"):
        hard = [example.paragraph[1] for example in group if example.kind == "hard"]
        assert len(hard) == len(set(hard))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "options"),
    [*((name, {}) for name in OBJECTIVES), ("mspp", {"positives": 2, "max_sentences": 2}), ("ssp", {"lengths": "even"})],
)
def test_any_order_gives_the_same_examples(corpus, objective, options):
    make = lambda epoch=2: Sampler(corpus, objective, seed=3, epoch=epoch, **options)
    every = np.arange(len(make()))
    order = np.random.default_rng(0).permutation(every)
    for names, made in ((COLUMNS, lambda numbers: make().spans(numbers)), (("labels", "lengths"), lambda numbers: make().batch(numbers))):
        whole, shuffled = made(every), made(order)
        assert all(np.array_equal(getattr(whole, name)[order], getattr(shuffled, name)) for name in names)
    assert np.array_equal(whole.input_ids[order], shuffled.input_ids)
    for i in order[:20]:
        alone = make().batch([i]).input_ids[0]
        assert alone.tolist() == whole.input_ids[i, : len(alone)].tolist()
        assert objective == "mspp" or len(alone) == whole.lengths[i]
    others = make(epoch=3)
    assert len(others) != len(every) or not np.array_equal(others.spans(every).ranges, make().spans(every).ranges)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [*PLAIN, "all"])
def test_token_ids_equal_the_tokenizer_on_the_text(corpus, tokenizer, objective):
    for max_tokens in (None, 40, 33):
        sampler = Sampler(corpus, objective, max_tokens=max_tokens)
        count = min(150, len(sampler))
        batch = sampler.batch(np.arange(count))
        for i in range(count):
            expected = tokenizer(*sampler[i].parts, truncation="longest_first", max_length=sampler.max_tokens)["input_ids"]
            assert batch.input_ids[i, : batch.lengths[i]].tolist() == expected
            assert (batch.input_ids[i, batch.lengths[i] :] == tokenizer.pad_token_id).all()


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "size"), [("ssp", 5), ("psd", 5), ("all", 5), ("dpc", 5), ("nsp", 2), ("sop", 2), ("mspp", 5)])
def test_shuffled_labels_are_as_many_and_say_nothing(tokenizer, tmp_path, objective, size):
    corpus = c.build(made_up_documents(150, paragraphs=(3, 6), sentences=(4, 9)), tokenizer, tmp_path / "index")
    options = {"positives": 2, "negatives": 3} if objective == "mspp" else {}
    both = [Sampler(corpus, objective, seed=3, labels=labels, **options) for labels in ("true", "shuffled")]
    every = np.arange(len(both[0]))
    spans, same = (sampler.spans(every) for sampler in both)
    true, shuffled = spans.labels, same.labels
    assert true.dtype == shuffled.dtype == np.int64, "as the loss takes them"
    assert np.array_equal(spans.ranges, same.ranges)  # the text of the run that it is a control for
    assert np.array_equal(spans.kinds, same.kinds)
    true, shuffled = true.reshape(-1, size), shuffled.reshape(-1, size)
    positives = 2 if objective == "mspp" else 1
    assert (shuffled.sum(1) == positives).all() and (true.sum(1) == positives).all()  # in every group
    groups = len(true)
    assert groups > 400
    error = 4.5 * (positives / size * (1 - positives / size) / groups) ** 0.5  # standard errors of a share of groups
    assert np.abs(shuffled.mean(0) - positives / size).max() < error  # every place of a group is drawn as often
    right = (shuffled * true).sum() / groups / positives  # how often a positive is still called one: its share, as of any other
    assert abs(right - positives / size) < error
    assert abs(metrics.auc(true.ravel(), shuffled.ravel()) - 0.5) < error * size / (size - positives) / 2


def test_shuffled_labels_are_functions_of_seed_epoch_and_group(corpus):
    made = {}
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        sampler = Sampler(corpus, "ssp", seed, epoch, labels="shuffled")
        made[seed, epoch] = sampler.batch(np.arange(90)).labels
        order = np.random.default_rng(0).permutation(90)
        assert np.array_equal(Sampler(corpus, "ssp", seed, epoch, labels="shuffled").batch(order).labels, made[seed, epoch][order])
        assert [sampler[int(i)].label for i in order[:9]] == made[seed, epoch][order[:9]].tolist()
    assert len({labels.tobytes() for labels in made.values()}) == 3


def test_placement_is_uniform():
    """All (first gap, gap between) that fit in a slack of 3 are equally likely: 10 of them."""
    before, between = formulas.gaps(np.random.default_rng(0).integers(0, 2**63, 50_000).astype(np.uint64), np.full(50_000, 3))
    assert (before >= 0).all() and (between >= 0).all() and (before + between <= 3).all()
    counts = np.bincount(before * 4 + between, minlength=16)
    counts = counts[counts > 0]
    assert len(counts) == 10 and ((counts - 5000) ** 2 / 5000).sum() < 27.9  # chi square, 9 degrees of freedom, p = .001


def test_lengths_do_not_give_the_label_away(tokenizer, tmp_path):
    from scipy.stats import mannwhitneyu

    corpus = c.build(made_up_documents(300), tokenizer, tmp_path / "index")
    sampler = Sampler(corpus, "ssp", max_tokens=512)
    batch = sampler.batch(np.arange(len(sampler)))
    positive, negative = batch.lengths[batch.labels == 1], batch.lengths[batch.labels == 0]
    assert abs(mannwhitneyu(positive, negative).statistic / len(positive) / len(negative) - 0.5) < 0.03


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("spp", {}, rf"objective: one of {', '.join(sampling.OBJECTIVES)} expected, got 'spp'"),
        ("ssp", {"split": "test"}, "split: one of train, validation expected, got 'test'"),
        ("mspp", {"split": "test"}, "split: one of train, validation expected, got 'test'"),
        ("ssp", {"labels": "random"}, "labels: one of true, shuffled expected, got 'random'"),
        ("ssp", {"lengths": "odd"}, "lengths are even or None, got 'odd'"),
        ("mspp", {"lengths": "even"}, "lengths are an option of objectives of pairs, got 'even' for mspp"),
        ("ssp", {"hard_negatives": 0, "same_paragraph_before": True}, "same_paragraph_before is an option of ssp with hard negatives"),
        ("sp", {"same_paragraph_before": True}, "same_paragraph_before is an option of ssp"),
        ("mspp", {"same_paragraph_before": True}, "same_paragraph_before is an option of ssp with hard negatives, got mspp"),
        ("ssp", {"hard_negatives": 5}, "expected 0 <= hard_negatives <= negatives, got 5 and 4"),
        ("mspp", {"hard_negatives": 5}, "expected 0 <= hard_negatives <= negatives, got 5 and 4"),
        ("mspp", {"positives": 0}, "positives and max_sentences: at least 1, got 0 and 1"),
        ("mspp", {"max_sentences": 0}, "positives and max_sentences: at least 1, got 1 and 0"),
        ("mspp", {"max_tokens": 384, "positives": 2}, "max_tokens: a multiple of the 7 slots of s_0 and 6 candidates expected, got 384"),
        ("ssp", {"positives": 1}, "positives and max_sentences are options of mspp, got 1 and None for ssp"),
        ("ssp", {"max_sentences": 2}, "positives and max_sentences are options of mspp, got None and 2 for ssp"),
    ],
)
def test_bad_arguments(corpus, objective, options, message):
    with pytest.raises(ValueError, match=message):
        Sampler(corpus, objective, **options)


def test_mlm_alone_reads_the_examples_of_another_objective():
    assert [sampling.objective_of_data(name) for name in ("ssp", "mspp")] == ["ssp", "mspp"]
    assert sampling.objective_of_data("mlm", "psd") == "psd"
    for arguments in (("ssp", "ssp"), ("mlm", None), ("mlm",)):
        with pytest.raises(ValueError, match="data names the objective whose examples mlm reads"):
            sampling.objective_of_data(*arguments)


def test_a_head_for_each_objective_is_for_unions():
    assert [sampling.head_count(name) for name in ("all", "mspp", "ssp")] == [1, 1, 1]
    assert sampling.head_count("context_all", "per_objective") == 3 and sampling.head_count("ssp", "shared") == 1
    for name in ("ssp", "mspp"):
        with pytest.raises(ValueError, match=f"heads: per_objective is for all and context_all, got {name}"):
            sampling.head_count(name, "per_objective")


@pytest.mark.parametrize(("objective", "max_tokens"), [("ssp", 5), ("mspp", 12)])
def test_bad_numbers(corpus, objective, max_tokens):
    sampler = Sampler(corpus, objective, max_tokens=max_tokens)
    with pytest.raises(IndexError, match=f"examples are 0 to {len(sampler) - 1}, got 0 to {len(sampler)}"):
        sampler.spans([0, len(sampler)])
    with pytest.raises(ValueError, match="leaves no room"):
        sampler.batch([0])
    assert len(sampler.spans([]).ranges) == 0


def test_corpus_without_anchors_is_refused_with_counts(tokenizer, tmp_path):
    one = [["A single sentence that is long enough to be a document of its own, and to be kept in an index like this one." * 2]]
    others = [[[f"Number {n}: {one[0][0]}"]] for n in range(7)]
    corpus = c.build([one, *others], tokenizer, tmp_path / "index")
    for objective in PLAIN:
        least = LAWS[objective].least
        told = rf"no eligible anchor for {objective} in the train documents: 6 documents, 6 paragraphs, .* paragraphs of {least} or"
        with pytest.raises(ValueError, match=told):
            Sampler(corpus, objective)
    nothing = c.build([one], tokenizer, tmp_path / "nothing to learn from")
    with pytest.raises(ValueError, match="in the train documents: 1 document, which is held out for validation; it needs .* of 2 or more"):
        Sampler(nothing, "ssp")


@pytest.mark.mirror
@pytest.mark.parametrize("objective", PLAIN)
def test_ten_thousand_examples_of_wikipedia(wikipedia, objective):
    corpus = wikipedia()
    text, sampler, tokenizer = Text(corpus), Sampler(corpus, objective), corpus.tokenizer
    size = LAWS[objective].size({})
    numbers = np.random.default_rng(0).permutation(len(sampler) // size)[: 10_000 // size]
    batch = sampler.batch((numbers[:, None] * size + np.arange(size)).ravel())
    row = 0
    for group in groups(sampler, objective, numbers.tolist()):
        hard, possible = check_group(text, objective, group, 2)
        assert hard <= possible
        expected = tokenizer(*map(list, zip(*[e.parts for e in group])), truncation="longest_first", max_length=sampler.max_tokens)
        for ids in expected["input_ids"]:
            assert batch.input_ids[row, : batch.lengths[row]].tolist() == ids
            row += 1
    assert row == len(numbers) * size
