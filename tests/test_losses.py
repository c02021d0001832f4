"""The losses against torch's own means, a loop by hand, and finite differences."""

import itertools
import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil import losses
from asutil.io import checkpoints
from tests.trust import gradients


@pytest.mark.slow
@pytest.mark.parametrize("name", gradients.LOSSES)
def test_a_loss_equals_a_slow_loop_in_64_bits_and_its_gradient_finite_differences(name):
    with checkpoints.seeded(0):
        for variant, *case in gradients.LOSSES[name]():
            gradients.compare(f"{name} {variant}", *case)


@pytest.mark.parametrize("shape", [(7, 2), (3, 5, 2), (4, 9)])
def test_pair_equals_torch(shape):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator) * 4
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    labels.view(-1)[1] = -100
    whole = torch.nn.functional.cross_entropy(logits.reshape(-1, shape[-1]), labels.reshape(-1))
    torch.testing.assert_close(losses.pair(logits, labels), whole)


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 20), max_size=4), seed=st.integers(0, 1000))
def test_micro_batches_sum_to_the_whole_batch(cuts, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(6, 11, generator=generator, requires_grad=True)
    inputs, targets = torch.randn(20, 6, generator=generator), torch.randint(0, 11, (20,), generator=generator)
    (whole,) = torch.autograd.grad(losses.mlm(inputs @ weight, targets), weight)
    edges = [0, *sorted(cuts), 20]
    parts = [losses.mlm(inputs[a:b] @ weight, targets[a:b], total=20) for a, b in itertools.pairwise(edges)]
    (summed,) = torch.autograd.grad(sum(parts), weight)
    torch.testing.assert_close(summed, whole, rtol=1e-5, atol=1e-6)


def test_a_micro_batch_alone_would_weigh_its_tokens_otherwise():
    logits, targets = torch.randn(10, 5, generator=torch.Generator().manual_seed(1)), torch.arange(10) % 5
    mean_of_means = (losses.mlm(logits[:1], targets[:1]) + losses.mlm(logits[1:], targets[1:])) / 2
    assert abs(mean_of_means - losses.mlm(logits, targets)) > 1e-3


@pytest.mark.parametrize("loss", [losses.mlm, losses.pair])
def test_nothing_to_learn_gives_zero_and_a_gradient(loss):
    for logits, targets in [(torch.zeros(0, 7), torch.zeros(0, dtype=torch.long)), (torch.zeros(3, 7), torch.full((3,), -100))]:
        logits.requires_grad_()
        value = loss(logits, targets)
        value.backward()
        assert value.item() == 0
        assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_half_precision_is_summed_in_float32():
    logits = torch.full((64, 64), 3.0, dtype=torch.bfloat16)
    for value, expected in (
        (losses.pair(logits, torch.zeros(64, dtype=torch.long)), math.log(64)),
        (losses.replaced_token(logits, torch.ones(64, 64), torch.ones(64, 64)), math.log1p(math.exp(-3))),
    ):
        assert value.dtype == torch.float32 and value.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (losses.pair, [(3, 2), (4,)]),
        (losses.replaced_token, [(2, 3), (2, 3), (3, 2)]),
        (losses.triplet, [(2, 3), (2, 3), (2, 4)]),
        (losses.siamese, [(2, 1), (2,)]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(loss, shapes):
    given = [torch.zeros(shape, dtype=torch.long if loss is losses.pair and n else None) for n, shape in enumerate(shapes)]
    with pytest.raises(
        ValueError, match=rf"{'one shape .B, H. expected, got ' if loss is losses.triplet else ''}{re.escape(str(shapes)[1:-1])}"
    ):
        loss(*given)


# ------------------------------------------------------------------ token detection


def detection(seed=0, rows=20, width=9):
    """Logits, labels and a mask of rows of different lengths, each at least one token long."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, width + 1, (rows, 1), generator=generator)
    logits = torch.randn(rows, width, generator=generator) * 4
    return logits, torch.randint(0, 2, (rows, width), generator=generator), (torch.arange(width) < lengths).long()


def test_replaced_token_equals_torchs_own_on_the_real_tokens():
    logits, replaced, mask = detection()
    real = mask == 1
    whole = torch.nn.BCEWithLogitsLoss()(logits[real], replaced[real].float())
    torch.testing.assert_close(losses.replaced_token(logits, replaced, mask), whole)
    torch.testing.assert_close(losses.replaced_token(logits, replaced.bool(), real), whole)
    torch.testing.assert_close(losses.replaced_token(logits[real][None], replaced[real][None], mask[real][None]), whole)  # packed


def test_padding_counts_for_nothing():
    logits, replaced, mask = detection()
    expected = losses.replaced_token(logits, replaced, mask)
    strange = logits.masked_fill(mask == 0, torch.nan).requires_grad_()
    value = losses.replaced_token(strange, replaced.masked_fill(mask == 0, 1), mask)
    value.backward()
    assert torch.equal(value, expected)
    assert not strange.grad[mask == 0].any()
    assert strange.grad[mask == 1].all()


@given(cuts=st.lists(st.integers(0, 20), max_size=4), seed=st.integers(0, 1000))
def test_detection_of_micro_batches_sums_to_the_whole_batch(cuts, seed):
    logits, replaced, mask = detection(seed)
    logits.requires_grad_()
    (whole,) = torch.autograd.grad(losses.replaced_token(logits, replaced, mask), logits)
    edges, total = [0, *sorted(cuts), 20], int(mask.sum())
    parts = [losses.replaced_token(logits[a:b], replaced[a:b], mask[a:b], total) for a, b in itertools.pairwise(edges)]
    (summed,) = torch.autograd.grad(sum(parts), logits)
    torch.testing.assert_close(summed, whole, rtol=1e-5, atol=1e-7)


# ------------------------------------------------------------------ of two and of three vectors


def test_the_plain_triplet_loss_and_the_siamese_loss_are_torchs_and_parts_sum():
    generator = torch.Generator().manual_seed(1)
    vectors = [torch.randn(40, 6, generator=generator, dtype=torch.float64) for _ in range(3)]
    theirs = torch.nn.functional.triplet_margin_loss(*vectors, margin=5.0, eps=0.0, reduction="sum")
    torch.testing.assert_close(losses.triplet(*vectors, squared=False), theirs)
    alone = [losses.triplet(*(vector[None] for vector in row), squared=False) for row in zip(*vectors)]
    torch.testing.assert_close(sum(alone), theirs)
    logits, labels = vectors[0][:9, 0] * 3, torch.arange(9) % 2
    theirs = torch.nn.functional.binary_cross_entropy(logits.sigmoid(), labels.double())
    torch.testing.assert_close(losses.siamese(logits, labels), theirs)
    parts = [losses.siamese(logits[part], labels[part], total=9) for part in (slice(0, 4), slice(4, 9))]
    torch.testing.assert_close(sum(parts), theirs)


def test_a_triplet_between_two_kinds_is_of_none():
    near, far = torch.tensor([2.0, 2.0]), torch.tensor([2.0, 7.0])  # as far as the positive; exactly a margin further
    assert not torch.stack(list(losses.triplet_kinds(near, far, margin=5.0).values())).any()


def test_easy_triplets_have_no_loss_and_no_gradient():
    anchor, negative = torch.zeros(1, 2, requires_grad=True), torch.tensor([[9.0, 0.0]])
    loss = losses.triplet(anchor, torch.zeros(1, 2), negative)
    loss.backward()
    assert loss == 0 and not anchor.grad.any()
    with pytest.raises(ValueError, match="selection: one of all, semi_hard, hard expected, got 'easy'"):
        losses.triplet(anchor, negative, negative, selection="easy")


def test_two_equal_texts_have_a_finite_gradient():
    vectors = [torch.ones(1, 4, requires_grad=True) for _ in range(3)]
    losses.triplet(*vectors, squared=False).backward()
    assert all(vector.grad.isfinite().all() for vector in vectors)
