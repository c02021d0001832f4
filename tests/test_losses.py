"""The losses against torch's own means, a loop by hand, and finite differences."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil import losses


def by_hand(logits, labels):
    """The mean of -log softmax, one row at a time in Python floats."""
    terms = []
    for row, label in zip(logits.reshape(-1, logits.shape[-1]).tolist(), labels.reshape(-1).tolist()):
        if label != -100:
            highest = max(row)
            terms.append(highest + math.log(sum(math.exp(value - highest) for value in row)) - row[label])
    return sum(terms) / max(len(terms), 1)


@pytest.mark.parametrize("shape", [(7, 2), (3, 5, 2), (4, 9)])
def test_pair_equals_a_loop_and_torch(shape):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator) * 4
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    labels.view(-1)[1] = -100
    assert losses.pair(logits, labels).item() == pytest.approx(by_hand(logits, labels), rel=1e-6)
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
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(4,\)"):
        losses.pair(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))
