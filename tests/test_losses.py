"""The losses against torch's own means, a loop by hand, and finite differences."""

import math
import re

import pytest
import torch

from asutil import losses
from tests.trust import gradients


@pytest.mark.slow
@pytest.mark.parametrize("name", gradients.LOSSES)
def test_a_loss_equals_a_slow_loop_in_64_bits_and_its_gradient_finite_differences(name):
    assert gradients.check_one(name)


@pytest.mark.parametrize("shape", [(7, 2), (3, 5, 2), (4, 9)])
def test_pair_equals_torch(shape):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator) * 4
    labels = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    labels.view(-1)[1] = -100
    whole = torch.nn.functional.cross_entropy(logits.reshape(-1, shape[-1]), labels.reshape(-1))
    torch.testing.assert_close(losses.pair(logits, labels), whole)


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
        (losses.listwise, [(2, 3), (2, 2)]),
        (losses.distillation, [(2, 3), (2, 2)]),
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


def test_padding_counts_for_nothing():
    logits, replaced, mask = detection()
    expected = losses.replaced_token(logits, replaced, mask)
    strange = logits.masked_fill(mask == 0, torch.nan).requires_grad_()
    value = losses.replaced_token(strange, replaced.masked_fill(mask == 0, 1), mask)
    value.backward()
    assert torch.equal(value, expected)
    assert not strange.grad[mask == 0].any()
    assert strange.grad[mask == 1].all()


# ------------------------------------------------------------------ of lists


class Scores(torch.nn.Module):
    """What the loss of a library asks of a model: the scores of pairs, here given ones, the second text of a pair being its number."""

    device, num_labels, max_seq_length = torch.device("cpu"), 1, None

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def preprocess(self, pairs, **_):
        return {"numbers": torch.tensor([int(number) for _, number in pairs])}

    def forward(self, features):
        return {"scores": self.scores[features["numbers"]]}


@pytest.mark.slow
def test_both_losses_of_lists_are_a_librarys():
    """sentence-transformers takes the softmax of labels: of a teacher's scores, or, with labels of 0 and 10,000, of right candidates."""
    from sentence_transformers.cross_encoder.losses import ListNetLoss

    generator = torch.Generator().manual_seed(5)
    sizes = (4, 2, 5)
    logits, teacher = (torch.full((3, 5), -torch.inf) for _ in range(2))
    labels = torch.full((3, 5), -100)
    for row, size in enumerate(sizes):
        logits[row, :size], teacher[row, :size] = torch.randn(2, size, generator=generator) * 2
        labels[row, :size] = torch.tensor([1, 0, 1, 0, 0])[:size]
    real = labels >= 0
    documents = [[str(number) for number in range(sum(sizes[:row]), sum(sizes[: row + 1]))] for row in range(3)]
    theirs = ListNetLoss(Scores(logits[real]), activation_fn=torch.nn.Identity())
    asked = (["?"] * 3, documents)
    of_teacher = theirs(asked, [scores[there] for scores, there in zip(teacher, real)])
    torch.testing.assert_close(losses.distillation(logits.where(real, 7.0), teacher), of_teacher)
    of_labels = theirs(asked, [1e4 * row[there].float() for row, there in zip(labels, real)])
    torch.testing.assert_close(losses.listwise(logits.where(real, 7.0), labels), of_labels)


# ------------------------------------------------------------------ of two and of three vectors


def test_the_plain_triplet_loss_and_the_siamese_loss_are_torchs():
    generator = torch.Generator().manual_seed(1)
    vectors = [torch.randn(40, 6, generator=generator, dtype=torch.float64) for _ in range(3)]
    theirs = torch.nn.functional.triplet_margin_loss(*vectors, margin=5.0, eps=0.0, reduction="sum")
    torch.testing.assert_close(losses.triplet(*vectors, squared=False), theirs)
    logits, labels = vectors[0][:9, 0] * 3, torch.arange(9) % 2
    theirs = torch.nn.functional.binary_cross_entropy(logits.sigmoid(), labels.double())
    torch.testing.assert_close(losses.siamese(logits, labels), theirs)


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
