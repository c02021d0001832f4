"""The losses against torch's own means, a loop by hand, and finite differences."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil import losses
from tests.trust import slow


@pytest.mark.parametrize("shape", [(7, 2), (3, 5, 2), (4, 9)])
def test_pair_equals_a_loop_and_torch(shape):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator) * 4
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    labels.view(-1)[1] = -100
    assert losses.pair(logits, labels).item() == pytest.approx(slow.pair(logits, labels), rel=1e-6)
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
def test_gradient_by_finite_differences(loss):
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 3, -100, 1, 2])
    assert torch.autograd.gradcheck(lambda x: loss(x, targets, total=9), logits)


@pytest.mark.parametrize("loss", [losses.mlm, losses.pair])
def test_nothing_to_learn_gives_zero_and_a_gradient(loss):
    for logits, targets in [(torch.zeros(0, 7), torch.zeros(0, dtype=torch.long)), (torch.zeros(3, 7), torch.full((3,), -100))]:
        logits.requires_grad_()
        value = loss(logits, targets)
        value.backward()
        assert value.item() == 0
        assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_half_precision_is_summed_in_float32():
    logits = torch.full((4096, 8), 3.0, dtype=torch.bfloat16)
    value = losses.pair(logits, torch.zeros(4096, dtype=torch.long))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(math.log(8), rel=1e-6)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 2\), \(4,\)"):
        losses.pair(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))


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
    by_hand = [math.log1p(math.exp(-z if r else z)) for z, r in zip(logits[real].tolist(), replaced[real].tolist())]
    assert losses.replaced_token(logits, replaced, mask, total=999).item() == pytest.approx(sum(by_hand) / 999, rel=1e-6)


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


def test_gradient_of_detection_by_finite_differences():
    logits, replaced, mask = detection(rows=3, width=4)
    logits = logits.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: losses.replaced_token(x, replaced, mask, total=9), logits)


def test_detection_is_summed_in_float32_and_refuses_other_shapes():
    logits = torch.full((64, 64), 3.0, dtype=torch.bfloat16)
    value = losses.replaced_token(logits, torch.ones(64, 64), torch.ones(64, 64))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(math.log1p(math.exp(-3)), rel=1e-6)
    with pytest.raises(ValueError, match=r"\(2, 3\), \(2, 3\), \(3, 2\)"):
        losses.replaced_token(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(3, 2))


# ------------------------------------------------------------------ of two and of three vectors


def three(seed, rows=40, size=6, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, size, generator=generator, dtype=torch.float64) * spread for _ in range(3)]


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("selection", ["all", "semi_hard", "hard"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), margin=st.floats(0, 6))
def test_the_triplet_loss_equals_a_loop(squared, selection, seed, margin):
    vectors = three(seed)
    rows = slow.triplets(*vectors, margin, squared)
    kept = [loss for loss, kind in rows if selection in ("all", kind)]
    given_ = {"margin": margin, "squared": squared, "selection": selection}
    assert losses.triplet(*vectors, **given_).item() == pytest.approx(sum(kept), rel=1e-12, abs=1e-12)
    each = [loss if selection in ("all", kind) else 0.0 for loss, kind in rows]
    alone = [losses.triplet(*(vector[None] for vector in row), **given_).item() for row in zip(*vectors)]
    assert alone == pytest.approx(each, abs=1e-12)


def test_the_plain_triplet_loss_is_torchs():
    vectors = three(1)
    theirs = torch.nn.functional.triplet_margin_loss(*vectors, margin=5.0, eps=0.0, reduction="sum")
    torch.testing.assert_close(losses.triplet(*vectors, squared=False), theirs)


@given(seed=st.integers(0, 10_000))
def test_a_selection_is_exactly_the_triplets_of_the_definition(seed):
    anchors, positives, negatives = three(seed, spread=1.5)
    kinds = losses.triplet_kinds(losses.distance(anchors, positives), losses.distance(anchors, negatives), margin=5.0)
    expected = [kind for _, kind in slow.triplets(anchors, positives, negatives, 5.0, True)]
    assert [next((kind for kind in kinds if kinds[kind][n]), None) for n in range(40)] == expected
    assert torch.stack(list(kinds.values())).sum(0).max() == 1, "no triplet is of two kinds"


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


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("selection", ["all", "semi_hard", "hard"])
def test_gradient_of_the_triplet_loss_by_finite_differences(squared, selection):
    vectors = [vector.requires_grad_() for vector in three(3, rows=12)]
    assert torch.autograd.gradcheck(lambda *given: losses.triplet(*given, margin=2.0, squared=squared, selection=selection), vectors)


def test_two_equal_texts_have_a_finite_gradient():
    vectors = [torch.ones(1, 4, requires_grad=True) for _ in range(3)]
    losses.triplet(*vectors, squared=False).backward()
    assert all(vector.grad.isfinite().all() for vector in vectors)


def test_the_siamese_loss_equals_a_loop_and_torch_and_its_parts_sum():
    logits, labels = torch.randn(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3, torch.arange(9) % 2
    by_hand = [-math.log(1 / (1 + math.exp(-z))) if y else -math.log(1 - 1 / (1 + math.exp(-z))) for z, y in zip(logits.tolist(), labels)]
    assert losses.siamese(logits, labels).item() == pytest.approx(sum(by_hand) / 9, rel=1e-12)
    torch.testing.assert_close(losses.siamese(logits, labels), torch.nn.functional.binary_cross_entropy(logits.sigmoid(), labels.double()))
    parts = losses.siamese(logits[:4], labels[:4], total=9) + losses.siamese(logits[4:], labels[4:], total=9)
    torch.testing.assert_close(parts, losses.siamese(logits, labels))
    assert torch.autograd.gradcheck(lambda z: losses.siamese(z, labels), logits.requires_grad_())


def test_vectors_and_logits_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"one shape \(B, H\) expected, got \(2, 3\), \(2, 3\), \(2, 4\)"):
        losses.triplet(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"got \(2, 1\), \(2,\)"):
        losses.siamese(torch.zeros(2, 1), torch.zeros(2))
