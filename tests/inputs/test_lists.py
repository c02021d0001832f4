"""Lists of candidates: every list whole in one micro-batch, and the same loss, gradient and text however a batch is cut."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil import inputs, metrics, training
from asutil.models import loading
from asutil.tasks import rank, rankers

from .test_groups import SIZES, asked, texts_of


def batches_of(tokenizer, split, k, *, size=5, micro_tokens=60, layout=None, teacher=None, seed=3, max_tokens=40):
    lists = inputs.Lists(inputs.Pairs(tokenizer, split), k)
    return inputs.ListBatches(lists, 2, size, max_tokens, micro_tokens, seed, layout, teacher)


def pairs_of(micro):
    """The token ids of each pair of a micro-batch, by the row that `lists` gives it."""
    if "attention_mask" in micro:
        return [tuple(ids[:size]) for ids, size in zip(micro["input_ids"].tolist(), micro["attention_mask"].sum(1).tolist())]
    ids, ends = micro["input_ids"][0].tolist(), micro["cu_seq_lens"].tolist()
    return [tuple(ids[first : ends[n + 1]]) for n, first in enumerate(micro["first"].tolist())]


@settings(max_examples=25, deadline=None)
@given(sizes=SIZES, k=st.integers(1, 6), micro_tokens=st.integers(1, 300), layout=st.sampled_from(["ordered", "packed"]))
def test_a_place_has_its_candidates_text_label_and_teachers_score(tokenizer, sizes, k, micro_tokens, layout):
    split = asked(sizes)
    teacher = np.arange(sum(sizes), dtype=np.float32)  # the score of a candidate is its number
    batches = batches_of(tokenizer, split, k, micro_tokens=micro_tokens, layout=layout, teacher=teacher)
    asked_of = [question.text for question in split for _ in question.candidates]
    expected = [
        tuple(tokenizer(*texts, truncation="longest_first", max_length=40)["input_ids"]) for texts in zip(asked_of, texts_of(split))
    ]
    labels = [candidate.label for question in split for candidate in question.candidates]
    owners = [n for n, size in enumerate(sizes) for _ in range(size)]
    for epoch in range(2):
        seen = []
        for step in range(batches.steps_an_epoch):
            batch = batches[epoch * batches.steps_an_epoch + step]
            assert batch["lists"] == sum(len(micro["lists"]) for micro in batch["micro"])
            assert batch["examples"] == sum(int((micro["lists"] >= 0).sum()) for micro in batch["micro"])
            for micro in batch["micro"]:
                read, places = pairs_of(micro), micro["lists"]
                assert sorted(places[places >= 0].tolist()) == list(range(len(read)))
                assert torch.equal(places < 0, micro["labels"] == -100) and torch.equal(places < 0, micro["teacher"] == -torch.inf)
                for row, scores, of_row in zip(places.tolist(), micro["teacher"].tolist(), micro["labels"].tolist()):
                    numbers = [int(score) for score in scores if score >= 0]
                    assert len({owners[number] for number in numbers}) == 1
                    assert [read[place] for place in row if place >= 0] == [expected[number] for number in numbers]
                    assert [label for label in of_row if label >= 0] == [labels[number] for number in numbers]
                    seen += numbers
        assert sorted(seen) == list(range(sum(sizes)))


@pytest.mark.parametrize("layout", ["ordered", "packed"])
def test_a_micro_batch_keeps_to_its_tokens_and_one_list_always_fits(tokenizer, layout):
    split = asked([9, 2, 5, 7, 3, 8])
    for micro_tokens in (1, 80, 200):
        for micro in batches_of(tokenizer, split, 4, size=6, micro_tokens=micro_tokens, layout=layout)[0]["micro"]:
            padded = max(map(len, pairs_of(micro))) * int((micro["lists"] >= 0).sum())
            assert padded <= micro_tokens or len(micro["lists"]) == 1


def gradient(model, batch):
    model.zero_grad()
    for micro in batch["micro"]:
        model.losses(model(micro), micro, batch)[1].backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


@pytest.mark.parametrize("taught", [False, True])
def test_the_gradient_of_a_batch_does_not_depend_on_how_it_is_cut_and_laid_out(tokenizer, taught):
    split, model = asked([6, 1, 4, 9, 2]), loading.tiny(tokenizer, seed=2, mlm=False).eval()
    teacher = np.random.default_rng(0).normal(size=22).astype(np.float32) if taught else None
    cut = [batches_of(tokenizer, split, 4, size=9, micro_tokens=most, teacher=teacher)[0] for most in (1, 100, 10**6)]
    assert len({len(batch["micro"]) for batch in cut}) == 3
    first, *others = [gradient(model, batch) for batch in cut]
    assert first.abs().max() > 1e-4
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-7)


def test_a_list_without_a_right_candidate_counts_for_a_teacher_alone(tokenizer):
    split = asked([3] * 12)
    answered = sum(any(candidate.label for candidate in question.candidates) for question in split)
    assert 0 < answered < 12
    lists = [batches_of(tokenizer, split, 3, size=12, teacher=teacher)[0]["lists"] for teacher in (None, np.zeros(36))]
    assert lists == [answered, 12]


def test_the_scores_of_other_candidates_are_refused(tokenizer):
    with pytest.raises(ValueError, match="teacher: a score for each of 8 candidates expected, got 9"):
        batches_of(tokenizer, asked([4, 4]), 2, teacher=np.zeros(9))


def test_groups_that_a_model_reads_together_are_no_lists(tokenizer):
    with pytest.raises(ValueError, match="lists of pairs expected, got Groups"):
        inputs.Lists(inputs.Groups(tokenizer, asked([4]), 2), 2)


# ------------------------------------------------------------------ what a loss on lists is for


def trained(tokenizer, folder, split, epochs, teacher=None):
    model = loading.tiny(tokenizer, seed=2, mlm=False)
    batches = batches_of(tokenizer, split, 6, size=8, micro_tokens=2000, teacher=teacher)
    batches.steps = batches.steps_an_epoch * epochs
    options = {"weight_decay": 0.0, "seed": 4, "save_every": 10**6, "log_every": 100, "progress": False}
    training.train(model, batches, folder, peak_lr=3e-3, warmup_steps=10, **options)
    return rank.Ranker(model, 40)


@pytest.mark.slow
def test_right_candidates_are_learnt_and_found_among_new_ones(tokenizer, tmp_path):
    """Right is what has the word river."""
    told = lambda question: replace(
        question, candidates=tuple(replace(c, label=int("river" in c.text.split())) for c in question.candidates)
    )
    split = [told(question) for question in asked([6] * 200, seed=1)]
    split = [question for question in split if 0 < sum(c.label for c in question.candidates) < 6]
    learnt, new = split[::2], split[1::2]
    scores = trained(tokenizer, tmp_path, learnt, 12).score(new, progress=False)
    assert len(new) > 50 and metrics.of(scores).map > 0.95 > 0.8 > metrics.at_random(scores).map


@pytest.mark.slow
def test_a_student_ranks_as_its_teacher_without_a_label(tokenizer, tmp_path):
    """The labels are drawn by chance, and the teacher ranks by the words that question and candidate share."""
    split = asked([6] * 150, seed=1)
    teacher = rankers.load_ranker("bm25").score(split, progress=False)["score"].to_numpy()
    ours = trained(tokenizer, tmp_path, split, 12, 4 * teacher).score(split, progress=False)
    best = lambda scores: scores.reshape(-1, 6).argmax(1)
    same = (best(ours["score"].to_numpy()) == best(teacher)).mean()
    assert same > 0.6, same  # by chance 1 in 6
