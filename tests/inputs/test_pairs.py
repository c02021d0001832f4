import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from asutil import inputs
from asutil.corpus import tokenizing
from asutil.data.answers import Candidate, Question
from asutil.draws import keyed
from asutil.inputs import masking
from asutil.inputs import pairs as input_pairs
from asutil.inputs import ragged as ragged_ids
from asutil.sampling import Sampler

from ..conftest import WORDS
from ..sampling.test_context_sampling import own_ids, triple


def questions(count=7, candidates=5, seed=0):
    draw = np.random.default_rng(seed)
    text = lambda: " ".join(draw.choice(WORDS, draw.integers(1, 30)))
    return [
        Question(f"q{n}", text(), tuple(Candidate(f"q{n}c{k}", text(), k % 2, None, None) for k in range(n % candidates)))
        for n in range(count)
    ]


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=20), st.integers(8, 80))
@settings(max_examples=100, deadline=None)
def test_longest_first_equals_the_tokenizer(bert_tokenizer, sizes, max_tokens):
    first, second = (np.array(side) for side in zip(*sizes))
    kept = tokenizing.longest_first(first, second, max_tokens - 3)
    texts = [[" ".join(["river"] * a) for a in side] for side in (first, second)]
    encoded = bert_tokenizer(*texts, truncation="longest_first", max_length=max_tokens)
    for row in range(len(sizes)):
        parts = encoded.sequence_ids(row)
        assert (parts.count(0), parts.count(1)) == (kept[0][row], kept[1][row])


@pytest.mark.parametrize("max_tokens", [12, 25, 200])
@pytest.mark.parametrize("which", ["bert_tokenizer", "tokenizer"])
def test_pairs_equal_the_tokenizer(request, which, max_tokens):
    tokenizer = request.getfixturevalue(which)
    asked = questions()
    pairs = inputs.Pairs(tokenizer, asked)
    flat = [(q, c) for q in asked for c in q.candidates]
    assert len(pairs) == len(flat)
    assert pairs.labels.tolist() == [c.label for _, c in flat]
    assert [pairs.question_ids[o] for o in pairs.owners] == [q.id for q, _ in flat]
    expected = tokenizer([q.text for q, _ in flat], [c.text for _, c in flat], truncation="longest_first", max_length=max_tokens)
    order = np.random.default_rng(1).permutation(len(flat))
    made = pairs.join(order, max_tokens)
    for row, number in enumerate(order):
        at = slice(made.offsets[row], made.offsets[row + 1])
        assert made.ids[at].tolist() == expected["input_ids"][number]
        if which == "bert_tokenizer":
            assert made.types[at].tolist() == expected["token_type_ids"][number]
    assert (made.types is None) == (which == "tokenizer")


@pytest.mark.parametrize("max_tokens", [12, 25, 200])
@pytest.mark.parametrize("form", ["pair", "context", "joint", "single"])
def test_candidates_that_are_cut_are_those_the_tokenizer_finds_too_long(bert_tokenizer, form, max_tokens):
    asked = [
        replace(q, candidates=tuple(replace(c, before=None, after="river " * n) for n, c in enumerate(q.candidates))) for q in questions()
    ]
    flat = [(q, c) for q in asked for c in q.candidates]
    length = lambda *texts: len(bert_tokenizer(*texts)["input_ids"])
    if form == "pair":
        made, lengths = inputs.Pairs(bert_tokenizer, asked), [length(q.text, c.text) for q, c in flat]
    elif form == "context":  # the third part adds its text and one separator
        made = inputs.Pairs(bert_tokenizer, asked, context=True)
        lengths = [length(q.text, c.text) + length(c.after) - 1 for q, c in flat]
    elif form == "joint":  # three slots
        made, lengths = inputs.Groups(bert_tokenizer, asked, 2), [3 * max(length(q.text), length(c.text)) for q, c in flat]
    else:
        made, lengths = inputs.triplets.LabelledPairs(bert_tokenizer, asked), [length(c.text) for _, c in flat]
    limit = max_tokens // 3 * 3 if form == "joint" else max_tokens
    assert made.are_cut(limit).tolist() == [size > limit for size in lengths]
    assert max_tokens == 200 or sum(size > limit for size in lengths) > 0


def test_token_numbers_beyond_16_bits_are_kept():
    words = [f"w{number}" for number in range(70_000)]
    backend = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(["[PAD]", "[CLS]", "[SEP]", *words])}, unk_token="[PAD]")
    )
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    asked = [Question("q", "w1 w65533 w69999", (Candidate("c", "w65534 w2", 1, None, None),))]
    assert inputs.Pairs(tokenizer, asked).join(np.arange(1), 20).ids.tolist() == [1, 4, 65_536, 70_002, 2, 65_537, 5, 2]


# ------------------------------------------------------------------ triples


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), min_size=1, max_size=10), st.integers(3, 40))
def test_last_first_equals_a_slow_loop(sizes, room):
    for row, kept in zip(sizes, tokenizing.last_first(np.array(sizes), room).tolist()):
        slow = list(row)
        while sum(slow) > room:
            slow[2 if slow[2] else 1 if slow[1] else 0] -= 1
        assert kept == slow


def in_order(count=8, candidates=5):
    """Questions whose candidates are the sentences of one document each, in order."""
    found = []
    for question in questions(count, candidates):
        texts = [None, *(candidate.text for candidate in question.candidates), None]
        around = zip(question.candidates, texts, texts[2:])
        found.append(replace(question, candidates=tuple(replace(one, before=a, after=b) for one, a, b in around)))
    return found


@pytest.mark.parametrize("max_tokens", [9, 14, 30, 60, 200])
@pytest.mark.parametrize("which", ["bert_tokenizer", "tokenizer"])
def test_triples_equal_the_tokenizer(request, which, max_tokens):
    tokenizer = request.getfixturevalue(which)
    pairs = inputs.Pairs(tokenizer, in_order(), context=True)
    flat = [(q.text, c.text, " ".join(filter(None, [c.before, c.after]))) for q in in_order() for c in q.candidates]
    special = tokenizer.cls_token_id, tokenizer.sep_token_id, {"bert_tokenizer": 1, "tokenizer": 2}[which]
    order = np.random.default_rng(1).permutation(len(flat))
    made = pairs.join(order, max_tokens)
    for row, number in enumerate(order):
        at = slice(made.offsets[row], made.offsets[row + 1])
        ids, types = triple(own_ids(tokenizer), flat[number], max_tokens, *special)
        assert made.ids[at].tolist() == ids and made.types[at].tolist() == types
    micro = inputs.FinetuningBatches(pairs, 1, 8, max_tokens)[0]["micro"]
    assert all(batch["token_type_ids"].shape == batch["input_ids"].shape for batch in micro)


def test_a_pair_has_the_types_of_its_tokenizer_and_a_triple_its_own(bert_tokenizer, tokenizer):
    pair, triple = (inputs.Template.of(tokenizer, parts) for parts in (2, 3))
    assert not pair.has_types and triple.has_types and triple.part_types == (0, 1, 2)
    assert [kinds.tolist() for kinds in triple.types] == [[0], [0, 0], [1, 1], [2]] and triple.added == pair.added + 2
    assert [ids.tolist() for ids in inputs.Template.of(bert_tokenizer, 3).special] == [[2], [3], [3], [3]]


class Split(list):
    def __init__(self, questions, ordered):
        super().__init__(questions)
        self.ordered = ordered


def test_contexts_without_an_order_are_refused(bert_tokenizer):
    for unordered in (Split(in_order(), False), questions(9)):
        with pytest.raises(ValueError, match="row order of these data is no document's: in TREC-QA"):
            inputs.Pairs(bert_tokenizer, unordered, context=True)
    lonely = [Question("q", "river", (Candidate("c", "engine", 1, None, None),))]  # the only sentence of its document
    for kept in (lonely, Split(lonely, True)):
        made = inputs.Pairs(bert_tokenizer, kept, context=True).join(np.arange(1), 20)
        assert made.types.tolist() == [0, 0, 0, 1, 1, 2] and made.ids.tolist()[-2:] == [3, 3]


# ------------------------------------------------------------------ many pairs


@pytest.mark.parametrize(("window", "context"), [(1, False), (3, False), (10, False), (3, True)])
def test_pairs_are_the_same_however_many_texts_are_tokenised_together(bert_tokenizer, monkeypatch, window, context):
    again = [Question(f"{q.id}+", q.text, q.candidates[::-1]) for q in in_order(9)]
    asked = [*in_order(9), *again, Question("empty", "", (Candidate("nothing", "", 1, None, None),))]
    whole, given, tokenized = inputs.Pairs(bert_tokenizer, asked, context=context), [], tokenizing.tokenized
    texts = {text for q in asked for text in (q.text, *(c.text for c in q.candidates))}
    assert len(whole._ends) <= len(texts) + 2  # the sentences around a candidate are candidates themselves; "" is around the others
    monkeypatch.setattr(input_pairs, "WINDOW", window)
    monkeypatch.setattr(input_pairs, "tokenized", lambda backend, texts: given.append(texts) or tokenized(backend, texts))
    parts = inputs.Pairs(bert_tokenizer, asked, context=context)
    assert len(given) > 3 and all(len(texts) == len(set(texts)) for texts in given)
    assert parts.question_ids == whole.question_ids
    for name in ("labels", "owners"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name))
    order = np.random.default_rng(2).permutation(len(whole))
    a, b = parts.join(order, 20), whole.join(order, 20)
    assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("ids", "offsets", "types"))
    first, second = (inputs.FinetuningBatches(pairs, 1, 5, 20)[1]["micro"] for pairs in (parts, whole))
    assert unpacked(first, 0) == unpacked(second, 0) and all(tensor.dtype == torch.int64 for micro in first for tensor in micro.values())


class Lazy(Sequence):
    """Questions that exist only while they are looked at."""

    ordered = True

    def __len__(self):
        return 400

    def __getitem__(self, n):
        if n >= len(self):
            raise IndexError(n)
        draw = random.Random(n)
        asked, *texts = (" ".join(draw.choices(WORDS, k=10)) for _ in range(51))
        around = zip([None, *texts], [*texts[1:], None])
        return Question(f"q{n}", asked, tuple(Candidate(f"q{n}-{k}", texts[k], k % 2, *near) for k, near in enumerate(around)))


@pytest.mark.slow
@pytest.mark.parametrize(("context", "size"), [(False, 17), (True, 25)])
def test_pairs_take_seventeen_bytes_and_two_a_token(bert_tokenizer, monkeypatch, context, size):
    monkeypatch.setattr(input_pairs, "WINDOW", 1 << 10)
    inputs.Pairs(bert_tokenizer, questions())
    tracemalloc.start()
    pairs = inputs.Pairs(bert_tokenizer, Lazy(), context)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pairs) == 20_000 and len(pairs.tokens) == 204_001
    needed = size * 20_000 + 2 * 204_000
    assert held < 1.15 * needed + 60_000  # an array is up to a sixteenth longer than what it holds, and there are the question ids
    assert peak < held + 1_500_000


def test_take_and_concatenated_keep_every_example(bert_tokenizer):
    pairs = inputs.Pairs(bert_tokenizer, questions())
    whole = pairs.join(np.arange(len(pairs)), 40)
    rows = np.array([3, 0, 3, 5])
    pieces = ragged_ids.concatenated([whole.take(rows[:1]), whole.take(rows[1:2]), whole.take(rows[2:])])
    straight = pairs.join(rows, 40)
    assert np.array_equal(pieces.ids, straight.ids) and np.array_equal(pieces.offsets, straight.offsets)
    assert np.array_equal(pieces.types, straight.types)


# ------------------------------------------------------------------ masking


@pytest.fixture(scope="module")
def masked(corpus):
    sampler = Sampler(corpus, "ssp")
    numbers = np.arange(len(sampler))
    ragged, template = inputs.join_spans(sampler, sampler.spans(numbers)), inputs.Template.of(corpus.tokenizer)
    ids, places, targets = masking.mask(ragged, template, keyed(0, numbers))
    return template, ragged, ids, places, targets


def test_masking_shares(masked):
    template, ragged, ids, places, targets = masked
    ordinary = ~template.is_special[ragged.ids]
    assert abs(len(places) / ordinary.sum() - 0.15) < 0.01
    new = ids[places]
    assert abs((new == template.mask).mean() - 0.8) < 0.02
    assert abs((new == targets).mean() - 0.1) < 0.02
    other = new[(new != template.mask) & (new != targets)]
    assert abs(len(other) / len(new) - 0.1) < 0.02 and len(set(other.tolist())) > 100


def test_special_tokens_are_never_masked_nor_put_in(masked):
    template, ragged, ids, places, targets = masked
    assert not template.is_special[targets].any()
    untouched = np.delete(np.arange(len(ids)), places)
    assert np.array_equal(ids[untouched], ragged.ids[untouched])
    put_in = ids[places]
    assert (put_in[template.is_special[put_in]] == template.mask).all()
    assert np.array_equal(ragged.ids[places], targets)


def test_masks_belong_to_the_example_not_to_the_batch(masked, corpus):
    template, ragged, ids, _, _ = masked
    numbers = np.array([17, 4])
    sampler = Sampler(corpus, "ssp")
    alone = inputs.join_spans(sampler, sampler.spans(numbers))
    ids_alone, _, _ = masking.mask(alone, template, keyed(0, numbers))
    expected = np.concatenate([ids[ragged.offsets[n] : ragged.offsets[n + 1]] for n in numbers])
    assert np.array_equal(ids_alone, expected)
    others, _, _ = masking.mask(alone, template, keyed(1, numbers))
    assert not np.array_equal(ids_alone, others)


# ------------------------------------------------------------------ optimiser batches


def unpacked(micro, pad):
    """Examples of micro-batches as {ids: label}, masked positions resolved: from the tensors alone."""
    found = []
    for batch in micro:
        lengths = batch["attention_mask"].sum(1).tolist()
        assert (batch["input_ids"][batch["attention_mask"] == 0] == pad).all()
        flat = torch.full((batch["input_ids"].numel(),), -100)
        if "masked_positions" in batch:
            flat[batch["masked_positions"]] = batch["masked_targets"]
        for row, length in enumerate(lengths):
            targets = flat.view(batch["input_ids"].shape)[row, :length]
            found.append((tuple(batch["input_ids"][row, :length].tolist()), int(batch["labels"][row]), tuple(targets.tolist())))
    return sorted(found)


def test_micro_batches_hold_the_same_examples_whatever_their_size(corpus):
    make = lambda epoch: Sampler(corpus, "ssp", epoch=epoch)
    one = inputs.PretrainingBatches(make, 3, 32, micro_tokens=10**6)
    many = inputs.PretrainingBatches(make, 3, 32, micro_tokens=300)
    for step in range(3):
        whole, parts = one[step], many[step]
        assert len(whole["micro"]) == 1 < len(parts["micro"])
        assert unpacked(whole["micro"], 1) == unpacked(parts["micro"], 1)
        assert whole["examples"] == parts["examples"] == 32 and whole["masked"] == parts["masked"]
        assert whole["masked"] == sum(len(batch["masked_targets"]) for batch in parts["micro"])
        assert whole["tokens"] == sum(int(batch["attention_mask"].sum()) for batch in parts["micro"])
        sizes = [batch["input_ids"].shape for batch in parts["micro"]]
        assert all(rows * width <= 300 or rows == 1 for rows, width in sizes)
        assert [width for _, width in sizes] == sorted((width for _, width in sizes), reverse=True)


def test_masked_targets_are_the_unmasked_tokens(corpus):
    sampler = Sampler(corpus, "ssp")
    batch = inputs.PretrainingBatches(lambda epoch: sampler, 1, 16)[0]
    originals = sampler.batch(np.arange(16))
    expected = {tuple(row[:n].tolist()) for row, n in zip(originals.input_ids, originals.lengths)}
    restored = {tuple(t if t >= 0 else i for i, t in zip(ids, targets)) for ids, _, targets in unpacked(batch["micro"], 1)}
    assert restored == expected


def test_stream_of_epochs_visits_every_example_once_an_epoch(corpus):
    samplers = {}
    make = lambda epoch: samplers.setdefault(epoch, Sampler(corpus, "ssp", epoch=epoch))
    batches = inputs.PretrainingBatches(make, 10**6, 64)
    seen, step = {0: [], 1: []}, 0
    while True:
        pieces = batches.examples(step)
        for epoch, numbers in pieces:
            seen.setdefault(epoch, []).extend(numbers.tolist())
        assert sum(len(numbers) for _, numbers in pieces) == 64
        if pieces[-1][0] == 2:
            break
        step += 1
    for epoch in (0, 1):
        assert seen[epoch] == list(range(len(samplers[epoch])))
    again = inputs.PretrainingBatches(make, 10**6, 64)  # a later step without the ones before it
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(again.examples(step), batches.examples(step)))


def test_the_objective_of_each_example_of_a_union_stands_beside_it(corpus):
    batches = inputs.PretrainingBatches(lambda epoch: Sampler(corpus, "all", epoch=epoch), 3, 60, 64)
    ((epoch, numbers),) = batches.examples(2)
    members = Sampler(corpus, "all", epoch=epoch).spans(numbers).members
    told = np.concatenate([part["members"] for part in batches[2]["micro"]])
    assert sorted(told) == sorted(members) and len({*told}) == 3
    alone = inputs.PretrainingBatches(lambda epoch: Sampler(corpus, "ssp"), 1, 8)[0]
    assert all("members" not in part for part in alone["micro"])


@pytest.mark.parametrize("share", [0, 0.15, 0.4])
def test_that_share_of_the_tokens_is_masked(corpus, share):
    make = lambda **given: inputs.PretrainingBatches(lambda epoch: Sampler(corpus, "psd"), 1, 64, mlm_share=share, **given)[0]
    batch = make()
    assert batch["masked"] / batch["tokens"] == pytest.approx(share, rel=0.15)
    assert ("masked_positions" in batch["micro"][0]) == (share > 0)
    seeded = [unpacked(make(seed=seed)["micro"], 1) for seed in (0, 1)]
    assert unpacked(batch["micro"], 1) == seeded[0] and (seeded[0] != seeded[1]) == (share > 0)
    with pytest.raises(ValueError, match="mlm_share: 0 to 1 expected, got 15"):
        inputs.PretrainingBatches(lambda epoch: Sampler(corpus, "psd"), 1, 64, mlm_share=15)


def test_a_share_that_no_loss_reads_is_refused():
    assert inputs.share_to_mask(0.4, 0.5) == 0.4 and inputs.share_to_mask(0.0, 1.0) == 0.0
    assert inputs.share_to_mask(0.0, 0.0) == 0.0  # a run with the words of its record
    with pytest.raises(ValueError, match="mlm_share: 0.4 came, but mlm_weight is 0"):
        inputs.share_to_mask(0.4, 0.0)


def test_finetuning_visits_every_pair_once_an_epoch_in_changing_order(bert_tokenizer):
    pairs = inputs.Pairs(bert_tokenizer, questions(20))
    batches = inputs.FinetuningBatches(pairs, epochs=2, batch_size=8, max_tokens=40, seed=1)
    steps = -(-len(pairs) // 8)
    assert len(batches) == 2 * steps
    epochs = [np.concatenate([batches.examples(e * steps + s) for s in range(steps)]).tolist() for e in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(len(pairs)))
    assert epochs[0] != epochs[1] != list(range(len(pairs)))
    assert inputs.FinetuningBatches(pairs, 2, 8, 40, seed=2).examples(0).tolist() != batches.examples(0).tolist()
    unsaid = inputs.FinetuningBatches(pairs, 2, 8, 40)
    assert np.array_equal(unsaid.examples(0), inputs.FinetuningBatches(pairs, 2, 8, 40, seed=0).examples(0))
    whole = pairs.join(batches.examples(3), 40)
    assert sorted(i for i, _, _ in unpacked(batches[3]["micro"], 0)) == sorted(
        tuple(whole.ids[a:b].tolist()) for a, b in zip(whole.offsets, whole.offsets[1:])
    )
    assert "token_type_ids" in batches[3]["micro"][0]
    with pytest.raises(ValueError, match="no training pairs"):
        inputs.FinetuningBatches(inputs.Pairs(bert_tokenizer, []), 1, 8, 40)


def test_packed_micro_batches_say_where_each_example_begins(bert_tokenizer):
    pairs = inputs.Pairs(bert_tokenizer, questions(20))
    (packed, padded) = (inputs.FinetuningBatches(pairs, 1, 8, 40, layout=layout)[0]["micro"] for layout in ("packed", None))
    assert all("cu_seq_lens" in part and "attention_mask" not in part for part in packed)
    assert all("attention_mask" in part and "cu_seq_lens" not in part for part in padded)
