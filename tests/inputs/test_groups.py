"""Candidates in groups of k: laws for all sizes, inputs by the tokenizer itself, and scores that no order of rows can move."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, RobertaConfig

from aslab import runs
from asutil import inputs, metrics, training
from asutil.data import answers
from asutil.data.answers import Candidate, Question
from asutil.inputs import groups
from asutil.io import disk
from asutil.models import joint as joint_models
from asutil.models import loading, pair
from asutil.tasks import base, rank, rankers

from ..conftest import WORDS
from ..tasks.test_rank import questions as some_questions

SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 130}
SIZE |= {"initializer_range": 0.3}  # at the usual 0.02 all scores of random weights are nearly equal


def asked(sizes, seed=0):
    """Questions with so many candidates each; all texts are different."""
    draw, number = np.random.default_rng(seed), iter(range(10**6))
    text = lambda: " ".join([*draw.choice(WORDS, draw.integers(1, 9)), f"{next(number)}"])
    return [
        Question(f"q{n}", text(), tuple(Candidate(f"q{n}-{k}", text(), int(draw.random() < 0.3), None, None) for k in range(size)))
        for n, size in enumerate(sizes)
    ]


def texts_of(split):
    return [candidate.text for question in split for candidate in question.candidates]


# ------------------------------------------------------------------ laws


SIZES = st.lists(st.integers(0, 13), min_size=1, max_size=8).filter(any)


@settings(max_examples=50, deadline=None)
@given(sizes=SIZES, k=st.integers(1, 6), key=st.integers(0, 2**64 - 1))
def test_every_candidate_is_in_one_group_of_its_question(tokenizer, sizes, k, key):
    grouped = groups.Groups(tokenizer, asked(sizes), k)
    members = grouped.members(np.arange(len(grouped)), key)
    assert members.shape == (sum(-(-size // k) for size in sizes), k)
    full = members[members >= 0]
    assert sorted(full.tolist()) == list(range(sum(sizes)))
    owners = [{int(grouped.owners[m]) for m in row if m >= 0} for row in members]
    assert all(len(owner) == 1 for owner in owners)
    filled = (members >= 0).sum(1)
    assert np.array_equal(members >= 0, np.arange(k) < filled[:, None])  # empty slots are the last ones
    assert sum(filled < k) == sum(size % k > 0 for size in sizes)  # of a question's last group alone
    labels = grouped.labels_of(members)
    assert np.array_equal(labels, np.where(members >= 0, grouped.labels[members], -100))
    some = np.random.default_rng(0).permutation(len(grouped))[:3]
    assert np.array_equal(grouped.members(some, key), members[some])


@settings(max_examples=30, deadline=None)
@given(sizes=SIZES, k=st.integers(1, 5), key=st.integers(0, 2**64 - 1), seed=st.integers(0, 99))
def test_groups_and_slots_follow_from_the_texts_alone(tokenizer, sizes, k, key, seed):
    """Other rows, ids and labels, other questions beside it, the same texts: the same groups and slots."""
    split, draw = asked(sizes, seed), np.random.default_rng(seed)
    other = []
    for question in split:
        rows = draw.permutation(len(question.candidates))
        moved = [replace(question.candidates[row], label=1 - question.candidates[row].label, id=f"x{row}") for row in rows]
        other.append(replace(question, id=f"x{question.id}", candidates=tuple(moved)))
    other = [*asked([3], seed=101), *other]

    def laid(split):
        grouped, texts = groups.Groups(tokenizer, split, k), texts_of(split)
        return [tuple(texts[m] if m >= 0 else None for m in row) for row in grouped.members(np.arange(len(grouped)), key).tolist()]

    assert laid(split) == laid(other)[-(-3 // k) :]


def test_groups_are_put_together_anew_every_epoch_and_are_fixed_for_scoring(tokenizer):
    grouped = groups.Groups(tokenizer, asked([12] * 30), 5)
    everything = np.arange(len(grouped))
    assert np.array_equal(grouped.members(everything), groups.Groups(tokenizer, asked([12] * 30), 5).members(everything, 0))
    epochs = [grouped.members(everything, key) for key in (0, 1, 2)]
    assert all((one != other).mean() > 0.5 for one, other in itertools.pairwise(epochs))
    together = [{frozenset(row[row >= 0].tolist()) for row in members} for members in epochs]
    assert len(together[0] & together[1]) < 10  # other ones come together, not only in other slots
    batches = inputs.FinetuningBatches(grouped, 3, 7, 60, seed=4)
    assert len(batches) == 3 * -(-90 // 7)
    seen, labels = [set(), set(), set()], 0
    for step in range(len(batches)):
        batch = batches[step]
        for micro in batch["micro"]:
            rows = zip(micro["input_ids"].tolist(), micro["attention_mask"].sum(1).tolist())
            seen[step // batches.steps_an_epoch] |= {tuple(ids[:length]) for ids, length in rows}
        assert batch["labels"] == sum(int((micro["labels"] >= 0).sum()) for micro in batch["micro"])
        assert batch["examples"] == sum(len(micro["labels"]) for micro in batch["micro"])
        labels += batch["labels"]
    assert labels == 3 * 360 and [len(epoch) for epoch in seen] == [90] * 3
    assert len(seen[0] & seen[1]) < 10 > len(seen[1] & seen[2])
    again = inputs.FinetuningBatches(grouped, 3, 7, 60, seed=4)[15]
    assert all(torch.equal(one["input_ids"], other["input_ids"]) for one, other in zip(again["micro"], batches[15]["micro"]))


def test_the_right_candidate_is_in_every_slot_equally_often(tokenizer):
    """Positives stand first in every question: no slot and no group may say so. 5 standard deviations."""
    split = asked([10] * 600)
    split = [replace(q, candidates=tuple(replace(c, label=int(n == 0)) for n, c in enumerate(q.candidates))) for q in split]
    grouped = groups.Groups(tokenizer, split, 5)
    for key in (0, 7):
        labels = grouped.labels_of(grouped.members(np.arange(len(grouped)), key)).reshape(600, 10)
        assert np.abs(labels.sum(0) - 60).max() < 5 * np.sqrt(600 * 0.1 * 0.9)


def test_chance_places_equal_texts(tokenizer):
    """One of two equal texts is right and stands first: in half of the questions it is in the earlier slot."""
    split = [
        replace(q, candidates=tuple(replace(c, text="river", label=1 - n) for n, c in enumerate(q.candidates))) for q in asked([2] * 400)
    ]
    grouped = groups.Groups(tokenizer, split, 2)
    for key in (0, 7):
        first = grouped.labels_of(grouped.members(np.arange(400), key))[:, 0]
        assert abs(first.sum() - 200) < 5 * 10


def test_hashes_are_the_same_in_blocks(tokenizer, monkeypatch):
    split = [*asked([9, 4, 11]), Question("e", "", (Candidate("e", "", 1, None, None), Candidate("f", "river", 0, None, None)))]
    whole = groups.Groups(tokenizer, split, 4)
    assert len(set(whole._hashes.tolist())) == 26
    monkeypatch.setattr(groups, "BLOCK", 7)
    assert np.array_equal(groups.Groups(tokenizer, split, 4)._hashes, whole._hashes)
    swapped = [replace(split[3], candidates=tuple(replace(c, text=t) for c, t in zip(split[3].candidates, ("a b", "b a"))))]
    assert len(set(groups.Groups(tokenizer, swapped, 4)._hashes.tolist())) == 2


# ------------------------------------------------------------------ inputs


@pytest.mark.parametrize("slot_tokens", [3, 7, 40])
@pytest.mark.parametrize("which", ["bert_tokenizer", "tokenizer"])
def test_slots_equal_the_tokenizers_own_padded_texts(request, which, slot_tokens):
    """Texts shorter than a slot, longer, and exactly as long; an empty text; empty slots."""
    own, split = request.getfixturevalue(which), [*some_questions(9), Question("e", "", (Candidate("e", "", 1, None, None),))]
    split.append(Question("7", "river " * 5, tuple(Candidate(f"{n}", "river " * n, 0, None, None) for n in range(3, 8))))
    grouped, k = groups.Groups(own, split, 3), 3
    members = grouped.members(np.arange(len(grouped)))
    ragged = grouped.join(members, 4 * slot_tokens)
    made = ragged.slotted(own.pad_token_id, grouped.labels_of(members), slot_tokens)
    texts, asked_of, lengths = texts_of(split), [q.text for q in split for _ in q.candidates], Counter()
    for row, of in enumerate(members):
        slots = [asked_of[of[0]], *(texts[m] if m >= 0 else None for m in of)]
        encoded = [own(t, truncation=True, max_length=slot_tokens)["input_ids"] if t is not None else [] for t in slots]
        padded = [ids + [own.pad_token_id] * (slot_tokens - len(ids)) for ids in encoded]
        assert made.input_ids[row].reshape(k + 1, slot_tokens).tolist() == padded
        assert made.lengths[row].tolist() == [len(ids) for ids in encoded]
        at = slice(*ragged.offsets[row : row + 2])
        assert ragged.ids[at].tolist() == [token for ids in encoded for token in ids]
        assert ragged.types[at].tolist() == [number for number, ids in enumerate(encoded) for _ in ids]
        assert ragged.positions[at].tolist() == [number * slot_tokens + t for number, ids in enumerate(encoded) for t in range(len(ids))]
        starts = np.cumsum([0, *map(len, encoded)])
        assert ragged.firsts[row].tolist() == [int(start) if ids else -1 for start, ids in zip(starts, encoded)]
        lengths.update(len(own(t)["input_ids"]) - slot_tokens for t in slots if t is not None)
    assert made.token_type_ids.tolist() == [np.repeat(np.arange(4), slot_tokens).tolist()] * len(members)
    assert max(lengths) > 0 or slot_tokens == 40
    assert (min(lengths) < 0 and lengths[0]) or slot_tokens != 7


def test_lengths_that_slots_cannot_share_are_refused(tokenizer):
    grouped = groups.Groups(tokenizer, asked([4]), 3)
    with pytest.raises(ValueError, match="a multiple of the 4 slots of a question and 3 candidates expected, got 30"):
        grouped.join(grouped.members([0]), 30)
    with pytest.raises(ValueError, match="max_tokens 2 leaves no room for 1 parts"):
        grouped.join(grouped.members([0]), 8)


# ------------------------------------------------------------------ scores


def joint_ranker(own, config, head="ae_k", positions="absolute", k=3, start=None):
    model = loading.from_config(config(**SIZE, vocab_size=len(own)), own, seed=1, mlm=False)
    model = joint_models.over(model, joint_models.shape(True, head, k, 40, "linear", positions, start=start), seed=1)
    with torch.no_grad():
        for parameter in (pair.type_table(model.backbone).weight, *model.head_parameters(head).values()):
            parameter.mul_(20)
    return rank.Ranker(model.eval(), 40)


FORMS = {"tokenizer": ("<s>", "</s>", RobertaConfig), "bert_tokenizer": ("[CLS]", "[SEP]", BertConfig)}


@pytest.mark.parametrize("layout", ["ordered", "packed"])
@pytest.mark.parametrize("which", FORMS)
def test_candidates_begin_with_the_separator_as_printed(request, which, layout):
    """<s> question </s>, </s> candidate </s> ... (section 3.2); without it as the tokenizer begins them."""
    own, (_, separator, config) = request.getfixturevalue(which), FORMS[which]
    grouped = groups.Groups(own, [*some_questions(6), Question("e", "", (Candidate("e", "", 1, None, None),))], 3)
    members = grouped.members(np.arange(len(grouped)))
    micros = inputs.laid_out(layout, grouped.join(members, 40), np.arange(len(members)), own.pad_token_id, 150)
    assert len(micros) > 1 and (members < 0).any()
    for start in ("separator", None):
        shape = joint_models.shape(True, "ie_k", 3, 40, "linear", "absolute", start=start)
        model = joint_models.over(loading.from_config(config(**SIZE, vocab_size=len(own)), own, mlm=False), shape)
        for micro in micros:
            expected = micro["input_ids"].flatten().tolist()
            for first in micro["firsts"][:, 1:].flatten().tolist() if start else ():
                if first >= 0:
                    expected[first] = own.convert_tokens_to_ids(separator)
            assert model.placed(micro)["input_ids"].flatten().tolist() == expected


@pytest.mark.parametrize("which", FORMS)
def test_scores_of_candidates_behind_separators_equal_those_of_the_bare_backbone(request, which):
    own, config = request.getfixturevalue(which), FORMS[which][2]
    other, plain = (joint_ranker(own, config, start=start) for start in ("separator", "class"))
    found, classes = other.score(some_questions(5)), plain.score(some_questions(5))
    expected = slow_scores(other, some_questions(5), starts=own.sep_token_id)
    assert found[["question_id", "candidate_id"]].equals(expected[["question_id", "candidate_id"]])
    np.testing.assert_allclose(found["score"], expected["score"], rtol=0, atol=1e-4)
    assert np.abs(found["score"] - classes["score"]).max() > 1e-3


@pytest.fixture(scope="module", params=["roberta", "bert"])
def ranker(request, tokenizer, bert_tokenizer):
    return joint_ranker(*{"roberta": (tokenizer, RobertaConfig), "bert": (bert_tokenizer, BertConfig)}[request.param])


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(base, "WINDOW", 8)
    monkeypatch.setattr(rank, "TOKENS_ON_CPU", 150)


@torch.no_grad()
def slow_scores(ranker, split, slot_tokens=10, starts=None):
    """AEk, a group at a time: the tokenizer's own padding, the bare backbone, the layer by hand; of a text that is there twice the mean."""
    model, own, found = ranker.model, ranker.model.tokenizer, []
    first, layer = {"roberta": 2, "bert": 0}[model.backbone.config.model_type], model.ae_k.layers[-1]
    for question in split:
        scores = {candidate.text: [] for candidate in question.candidates}
        grouped = groups.Groups(own, [question], 3)
        for row in grouped.members(np.arange(len(grouped))).tolist():
            texts = [question.text, *(question.candidates[m].text for m in row if m >= 0)]
            given = own(texts, truncation=True, max_length=slot_tokens, padding="max_length", return_tensors="pt")
            size = given["input_ids"].numel()
            given = {name: given[name].view(1, size) for name in ("input_ids", "attention_mask")}
            if starts is not None:
                given["input_ids"][0, slot_tokens::slot_tokens] = starts
            given |= {"position_ids": torch.arange(size)[None] + first, "token_type_ids": torch.arange(size)[None] // slot_tokens}
            slots = model.backbone(**given).last_hidden_state[0, ::slot_tokens]
            for text, slot in zip(texts[1:], slots[1:]):
                logits = layer.weight @ torch.cat([slots[0], slot]) + layer.bias
                scores[text].append(float(logits[1] - logits[0]))
        found += [(question.id, c.id, c.label, np.mean(scores[c.text])) for c in question.candidates]
    return pd.DataFrame(found, columns=["question_id", "candidate_id", "label", "score"])


def test_scores_equal_a_slow_loop_over_padded_groups(ranker):
    split = [*some_questions(15), Question("e", "", tuple(Candidate(f"e{n}", t, 0, None, None) for n, t in enumerate(["", "river", ""])))]
    ranker.model.train()  # dropout must not reach a score
    table = ranker.score(iter(split), progress=False)
    assert ranker.model.training
    ranker.model.eval()
    expected = slow_scores(ranker, split)
    assert expected.score.std() > 0.1
    assert any(len({c.text for c in q.candidates}) < len(q.candidates) for q in split)
    pd.testing.assert_frame_equal(table.astype({"label": int, "score": float}), expected, rtol=0, atol=1e-5)
    assert table.score.dtype == np.float32 and table.label.dtype == np.int8
    with pytest.raises(ValueError, match="max_tokens: 40, .* got 64"):  # at other positions it has learnt nothing
        rank.Ranker(ranker.model, 64).score(split, progress=False)


ORDERS = {
    "positives first": lambda candidates, draw: sorted(candidates, key=lambda c: -c.label),
    "positives last": lambda candidates, draw: sorted(candidates, key=lambda c: c.label),
    "by chance": lambda candidates, draw: [candidates[n] for n in draw.permutation(len(candidates))],
}


def in_order(split, order):
    draw = np.random.default_rng(0)
    return [replace(question, candidates=tuple(ORDERS[order](question.candidates, draw))) for question in split]


def assert_order_says_nothing(ranker, split):
    """The same score for every candidate, by id, and the same metrics, whatever the order of the rows."""
    tables = [ranker.score(in_order(split, order), progress=False) for order in ORDERS]
    scores = [table.set_index(["question_id", "candidate_id"]).score.sort_index() for table in tables]
    assert scores[0].std() > 1e-3
    assert not tables[0].candidate_id.equals(tables[1].candidate_id)
    for other in scores[1:]:
        pd.testing.assert_series_equal(other, scores[0], rtol=0, atol=1e-6)
    found = [metrics.of(table, empty="skip") for table in tables]
    assert found[0].record() == found[1].record() == found[2].record()


def test_no_order_of_rows_moves_a_score_or_a_metric(ranker):
    split = [replace(q, candidates=tuple(replace(c, label=n % 3 // 2) for n, c in enumerate(q.candidates))) for q in some_questions(40)]
    twice = [q for q in split for c in q.candidates if any(c.text == d.text and c.label != d.label for d in q.candidates)]
    assert len(twice) > 3
    assert_order_says_nothing(ranker, split)


@pytest.mark.mirror
def test_the_order_of_trec_qa_says_nothing(mirror, tokenizer):
    """Its positives stand first."""
    split = list(answers.load_answers("trecqa", limit=20)["test"])
    assert all(question.candidates[0].label == 1 for question in split)
    assert_order_says_nothing(joint_ranker(tokenizer, RobertaConfig), split)


@pytest.mark.slow
def test_a_ranker_comes_from_a_folder_and_knows_its_k(ranker, tmp_path, tokenizer):
    folder = ranker.model.save(tmp_path / "finetune-joint-0123456789ab" / "model")
    again = rankers.load_ranker(folder, device="cpu")
    assert (again.joint_k, again.max_tokens, ranker.joint_k) == (3, 40, 3)
    split = list(some_questions(9))
    pd.testing.assert_frame_equal(again.score(split, progress=False), ranker.score(split, progress=False), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="max_tokens: 40, .* got 50"):
        rank.Ranker(again.model, 50).score(split, progress=False)
    record = folder.parent / "record.json"
    disk.write_json(record, {"notebook": "pretrain", "settings": {}} | runs.hashes(record.parent))
    with pytest.raises(ValueError, match="learnt its pre-training task, not to rank"):
        rankers.load_ranker(folder.parent)
    disk.write_json(record, {"notebook": "finetune", "settings": {"max_tokens": 40}} | runs.hashes(record.parent))
    assert rankers.load_ranker(folder.parent, device="cpu").max_tokens == 40
    without = ranker.model.save(tmp_path / "without", untrained=("ae_k",))
    with pytest.raises(ValueError, match="no ae_k head: fine-tune it first"):
        rankers.load_ranker(without)

    assert rank.Ranker(loading.tiny(tokenizer, mlm=False)).joint_k is None


# ------------------------------------------------------------------ what a joint model is for


def odd_ones(count, seed):
    """Of three candidates two are the same, and the right one is the other: alone, none says anything of itself."""
    draw, split = np.random.default_rng(seed), []
    for n in range(count):
        usual, other = draw.permutation(["river", "engine"])
        texts = [(thing, int(thing == other)) for thing in draw.permutation([usual, usual, other])]
        split.append(Question(f"q{n}", "which?", tuple(Candidate(f"q{n}-{k}", *text, None, None) for k, text in enumerate(texts))))
    return split


def learnt(tokenizer, folder, joint):
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "initializer_range": 0.1}
    config = RobertaConfig(vocab_size=len(tokenizer), type_vocab_size=1, pad_token_id=1, **SIZE | size)
    model = loading.from_config(config, tokenizer, seed=1, mlm=False)
    model = joint_models.over(model, joint_models.shape(True, "ie_k", 3, 48, "linear", "absolute"), seed=1) if joint else model
    ranker = rank.Ranker(model, 48)
    batches = inputs.FinetuningBatches(ranker.inputs_of(odd_ones(200, 0)), 12, 32 if joint else 96, 48)
    options = {"weight_decay": 0.0, "seed": 4, "save_every": 10**6, "log_every": 100, "progress": False}
    training.train(model, batches, folder, peak_lr=2e-3, warmup_steps=10, **options)
    return metrics.of(ranker.score(odd_ones(60, 1), progress=False))


@pytest.mark.slow
def test_what_only_the_other_candidates_tell_is_learnt_together_and_not_apart(tokenizer, tmp_path):
    together, apart = (learnt(tokenizer, tmp_path / str(joint), joint) for joint in (True, False))
    assert together.p_at_1 > 0.95 and together.map > 0.95
    assert apart.p_at_1 < 0.65 and apart.map < 0.8
