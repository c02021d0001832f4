"""Objectives with a context: which lengths and places are drawn, token ids and types, and how alike contexts are."""

from collections import Counter, defaultdict
from functools import lru_cache

import numpy as np
import pytest

from asutil import corpus as c
from asutil import inputs, sampling
from asutil.sampling import Sampler, formulas, pairs
from tests.trust.laws import LAWS, Listed, Text, check_epoch, check_group, groups

from .test_sampler import CONTEXTUAL

# ------------------------------------------------------------------ the rules


@pytest.mark.parametrize("objective", CONTEXTUAL)
def test_every_length_of_b_is_drawn_and_a_paragraph_waits_for_one_that_fits(corpus, objective):
    text, drawn = Text(corpus), defaultdict(Counter)
    for epoch in range(60):
        sampler = Sampler(corpus, objective, epoch=epoch, hard_negatives=0, negatives=1)
        made = sampler.spans(np.arange(0, len(sampler), 2))
        for p, b in zip(made.paragraphs[:, 1].tolist(), np.diff(made.ranges[:, 1]).sum((1, 2)).tolist()):
            drawn[min(3, len(text.paragraphs[p]) - 1 - LAWS[objective].left)][b] += 1
    for room, counts in drawn.items():  # a paragraph with room for one sentence is an anchor in a third of the epochs, and so on
        assert set(counts) == set(range(1, room + 1))
        assert max(counts.values()) < 1.3 * min(counts.values())


@pytest.mark.slow
def test_an_anchor_whose_negatives_all_repeat_a_sentence_in_their_context_is_none():
    """The only other document has a copy in its first paragraph of a sentence in its second; the anchor's own has none."""
    corpus = Listed([[[79, 76], [147, 76, 110]], [[1]], [[35, 37], [50, 162, 167, 11], [195, 188, 198, 141]], [[2]]])
    groups_made = [check_epoch(corpus, "sdc", seed, hard_negatives=0) for seed in range(40)]
    assert min(groups_made) < 2 and max(groups_made) == 3


@pytest.mark.parametrize(("flags", "longest"), [("1101", 3), ("0110", 2), ("0000", 0), ("11", 2), ("", 0), ("10101", 2)])
def test_the_longest_run_goes_round(flags, longest):
    assert pairs._longest_run(np.array([flag == "1" for flag in flags], bool)) == longest


def test_spans_are_placed_uniformly():
    """Every place of a (1 sentence) and b (2) in a paragraph of 6 is equally likely, where they may touch and where not."""
    keys = np.random.default_rng(0).integers(0, 2**63, 40_000).astype(np.uint64)
    for apart in (0, 1):
        fits = [(a, b) for a in range(6) for b in range(5) if b - a - 1 >= apart or a - b - 2 >= apart]
        at_a, at_b = formulas.two_spans(keys, np.full(40_000, 7), np.full(40_000, 6), 1, 2, apart=apart)
        counts = Counter(zip((at_a - 7).tolist(), (at_b - 7).tolist()))
        assert set(counts) == set(fits) and len(fits) == (20, 12)[apart]
        expected = 40_000 / len(fits)
        assert sum((n - expected) ** 2 / expected for n in counts.values()) < 43.8  # chi square, 19 degrees of freedom, p = .001


@pytest.mark.parametrize("objective", CONTEXTUAL)
def test_corpus_without_anchors_is_refused_with_counts(tokenizer, tmp_path, objective):
    sentence = "A sentence of a document of its own, long enough to be kept in an index like this one, whatever comes after it."
    form = (lambda text: [[text] * 6]) if objective == "sdc" else (lambda text: [[text]] * 6)  # nothing beside the first paragraph or b
    corpus = c.build([form(f"Number {n}: {sentence}") for n in range(8)], tokenizer, tmp_path / "index")
    beside = {"sdc": "2 or more sentences beside the first", "dpc": "3 or more sentences", "dslc": "3 or more sentences"}[objective]
    with pytest.raises(ValueError, match=rf"no eligible anchor for {objective} in the train .*: 6 documents, \d+ paragraphs, .* {beside}$"):
        Sampler(corpus, objective)


# ------------------------------------------------------------------ unions


@pytest.mark.parametrize("layout", ["ordered", "packed"])
def test_micro_batches_have_types_and_members(corpus, layout):
    sampler = Sampler(corpus, "context_all")
    for part in (sampler, Sampler(corpus, "dslc")):
        batch = inputs.PretrainingBatches(lambda epoch, part=part: part, 2, 40, 600, layout=layout, mlm_share=0)[1]
        whole, spans, found = part.batch(np.arange(40, 80)), part.spans(np.arange(40, 80)), []
        assert len(batch["micro"]) > 2
        for micro in batch["micro"]:
            assert ("members" in micro) == (part is sampler)
            members = micro["members"].tolist() if part is sampler else [0] * len(micro["labels"])
            for row, (label, member) in enumerate(zip(micro["labels"].tolist(), members)):
                if layout == "packed":
                    at = (0, slice(*micro["cu_seq_lens"][row : row + 2].tolist()))
                else:
                    at = (row, slice(int(micro["attention_mask"][row].sum())))
                found.append((tuple(micro["input_ids"][at].tolist()), tuple(micro["token_type_ids"][at].tolist()), label, member))
        lists = [array.tolist() for array in (whole.input_ids, whole.token_type_ids, whole.lengths, whole.labels, spans.members)]
        expected = [(tuple(ids[:n]), tuple(types[:n]), label, member) for ids, types, n, label, member in zip(*lists)]
        assert sorted(found) == sorted(expected)


# ------------------------------------------------------------------ token ids


def own_ids(tokenizer):
    """A text's ids without special tokens, by the tokenizer itself."""
    return lru_cache(maxsize=1 << 12)(lambda text: tokenizer(text, add_special_tokens=False)["input_ids"])


def triple(ids_of, parts, max_tokens, cls, sep, between):
    """Ids and types of three texts: the tokenizer's own ids of each, cut one token at a time, and its special tokens around them."""
    a, b, context = ids = [list(ids_of(text)) for text in parts]
    while len(a) + len(b) + len(context) > max_tokens - 2 - 2 * between:
        (context or b or a).pop()
    found, types = [cls], [0]
    for part, separators in enumerate((between, between, 1)):
        found += ids[part] + [sep] * separators
        types += [part] * (len(ids[part]) + separators)
    return found, types


@pytest.fixture(params=["like RoBERTa", "like BERT"])
def tokenized(request, corpus, documents, bert_tokenizer, tmp_path):
    """An index, and how many separators its tokenizer puts between two parts."""
    return (corpus, 2) if request.param == "like RoBERTa" else (c.build(documents, bert_tokenizer, tmp_path / "index"), 1)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [*CONTEXTUAL, "context_all"])
def test_token_ids_and_types_equal_the_tokenizer_on_the_text(tokenized, objective):
    corpus, between = tokenized
    tokenizer, ids_of = corpus.tokenizer, own_ids(corpus.tokenizer)
    special = tokenizer.cls_token_id, tokenizer.sep_token_id, between
    for max_tokens in (None, 60, 20, 5 + 2 * between):
        sampler = Sampler(corpus, objective, max_tokens=max_tokens)
        batch = sampler.batch(np.arange(100))
        for row in range(100):
            ids, types = triple(ids_of, sampler[row].parts, sampler.max_tokens, *special)
            n = batch.lengths[row]
            assert batch.input_ids[row, :n].tolist() == ids and batch.token_type_ids[row, :n].tolist() == types
            assert (batch.input_ids[row, n:] == tokenizer.pad_token_id).all()
    with pytest.raises(ValueError, match=rf"max_tokens {4 + 2 * between} leaves no room for 3 parts"):
        Sampler(corpus, objective, max_tokens=4 + 2 * between).batch([0])


# ------------------------------------------------------------------ how alike the contexts are


def test_overlap_equals_a_slow_count(corpus):
    text, sampler = Text(corpus), Sampler(corpus, "dslc", seed=3)
    shares = []
    for number in range(200):
        example = sampler[number]
        taken = set(example.sentences[0]) | set(example.sentences[1])
        start = text.first[example.paragraph[1]]
        rest = set(range(start, start + len(text.paragraphs[example.paragraph[1]]))) - taken
        assert set(example.sentences[2]) <= rest
        shares.append(len(example.sentences[2]) / len(rest))
    found = sampling.context_overlap(corpus, seed=3, size=200)
    assert found["examples"] == 200 and found["identical"] == np.mean([share == 1 for share in shares])
    assert found["overlap"] == pytest.approx(np.mean(shares))
    assert found["paragraph_sentences"] == np.mean([len(paragraph) for paragraph in text.paragraphs])
    assert 0.1 < found["identical"] < found["overlap"] < 1
    held_out = sampling.context_overlap(corpus, split="validation")
    assert held_out["examples"] == len(Sampler(corpus, "dslc", split="validation")) != len(sampler)


# ------------------------------------------------------------------ real text


@pytest.fixture(scope="module")
def text_of_wikipedia(wikipedia):
    return Text(wikipedia(min_sentence_chars=20))


@pytest.mark.mirror
@pytest.mark.parametrize("objective", CONTEXTUAL)
def test_ten_thousand_examples_of_wikipedia(wikipedia, text_of_wikipedia, objective):
    corpus = wikipedia(min_sentence_chars=20)
    sampler, ids_of = Sampler(corpus, objective), own_ids(corpus.tokenizer)
    numbers = np.random.default_rng(0).permutation(len(sampler) // 5)[:2000]
    batch, kinds = sampler.batch((numbers[:, None] * 5 + np.arange(5)).ravel()), Counter()
    for place, group in enumerate(groups(sampler, objective, numbers.tolist())):
        hard, possible = check_group(text_of_wikipedia, objective, group)
        assert hard <= possible
        for row, example in enumerate(group, 5 * place):
            ids, types = triple(ids_of, example.parts, sampler.max_tokens, 0, 2, 2)  # <s> and </s>, twice between two parts
            assert batch.input_ids[row, : batch.lengths[row]].tolist() == ids
            assert batch.token_type_ids[row, : batch.lengths[row]].tolist() == types
            kinds[example.kind] += 1
    assert kinds["positive"] == 2000 and kinds["hard"] > 3500 and kinds["easy"] >= 4000
