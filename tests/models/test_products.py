"""Linear layers by oneDNN: values and gradients against products in float64, and torch's own for all that they do not fit."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from asutil.models import products, scoring

pytestmark = pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN")


def parts(shape=(2, 5, 7), outputs=3):
    torch.manual_seed(0)
    return (
        torch.randn(shape, requires_grad=True),
        torch.randn(outputs, shape[-1], requires_grad=True),
        torch.randn(outputs, requires_grad=True),
    )


@pytest.fixture
def products_of_onednn(monkeypatch):
    """The shapes that oneDNN computes."""
    seen, product = [], products._product

    def noted(input, weight, bias=None):
        seen.append((*input.shape, len(weight)))
        return product(input, weight, bias)

    monkeypatch.setattr(products, "_product", noted)
    return seen


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7), (2, 1, 5, 7), (1, 1)])
def test_values_and_gradients_are_those_of_float64(shape, with_bias, products_of_onednn):
    given = parts(shape)[: 2 + with_bias]
    wide = [part.detach().double().requires_grad_() for part in given]
    expected = functional.linear(*wide)
    with products.Products():
        found = functional.linear(*given)
    direction = torch.randn(expected.shape)
    found.backward(direction)
    expected.backward(direction.double())
    assert len(products_of_onednn) == 3
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for part, one in zip(given, wide):
        torch.testing.assert_close(part.grad.double(), one.grad, rtol=1e-5, atol=1e-5)


def test_only_wanted_gradients_are_computed(products_of_onednn):
    x, weight, bias = parts()
    with products.Products():
        functional.linear(x, weight.detach(), bias.detach()).sum().backward()
        assert len(products_of_onednn) == 2 and x.grad is not None
        with torch.no_grad():
            assert not functional.linear(x, weight).requires_grad


def test_a_result_may_be_changed_in_place():
    x, weight, _ = parts()
    with products.Products():
        y = functional.linear(x, weight)
    y /= 4
    y.sum().backward()
    torch.testing.assert_close(x.grad, (weight.detach().sum(0) / 4).expand_as(x))
    torch.testing.assert_close(weight.grad, (x.detach().sum((0, 1)) / 4).expand_as(weight))


@pytest.mark.parametrize("kind", ["float64", "bfloat16", "autocast", "one row", "no row"])
def test_what_does_not_fit_is_torchs_own(kind, products_of_onednn):
    x, weight, bias = (part.detach() for part in parts((4, 7)))
    if kind in ("float64", "bfloat16"):
        x, weight, bias = (part.to(getattr(torch, kind)) for part in (x, weight, bias))
    x = {"one row": x[0], "no row": x[:0]}.get(kind, x)
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
        expected = functional.linear(x, weight, bias)
        with products.Products():
            found = functional.linear(x, weight, bias)
    assert found.dtype == expected.dtype and torch.equal(found, expected) and not products_of_onednn


@pytest.mark.parametrize("faster", [True, False])
def test_scoring_takes_them_where_they_are_faster(faster, monkeypatch, products_of_onednn):
    monkeypatch.setattr(products, "faster", lambda: faster)
    model = nn.Linear(7, 3)
    with scoring.evaluating(model):
        model(torch.randn(4, 7))
    model(torch.randn(4, 7))
    assert products_of_onednn == [(4, 7, 3)] * faster


@pytest.mark.parametrize(
    ("vendor", "instructions", "faster"),
    [("AuthenticAMD", "AVX512", True), ("GenuineIntel", "AVX512", False), ("AuthenticAMD", "AVX2", False)],
)
def test_they_are_faster_on_an_amd_processor_with_avx512(vendor, instructions, faster, monkeypatch):
    for library in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(library, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    monkeypatch.setattr(products, "_processor", lambda: f"vendor_id : {vendor}")
    assert products.faster.__wrapped__() is faster


def test_the_order_of_a_constant_weight_changes_no_byte_however_often_it_was_used(products_of_onednn):
    """With one row and many, before and after the weight is ordered, and for a weight that is no parameter."""
    torch.manual_seed(0)
    layer = nn.Linear(384, 1536)
    few, many = torch.randn(1, 384), torch.randn(300, 384)
    with torch.no_grad():
        with products.Products():
            expected = layer(few), layer(many)
        with products.Products(constant=True) as mode:
            for _ in range(2 * products._Ordered.USES):
                assert torch.equal(layer(few), expected[0]) and torch.equal(layer(many), expected[1])
                functional.linear(many, layer.weight * 1)
            ((weight, uses, read),) = mode.ordered.known.values()
    assert weight is layer.weight and read.is_mkldnn and uses == 2 * products._Ordered.USES


def test_a_weight_may_change_between_two_evaluations(monkeypatch):
    monkeypatch.setattr(products, "faster", lambda: True)
    layer, x = nn.Linear(7, 3), torch.randn(4, 7)
    for factor in (1, 2):
        with torch.no_grad():
            layer.weight.fill_(factor)
            layer.bias.fill_(0)
        with scoring.evaluating(layer):
            outputs = [layer(x) for _ in range(2 * products._Ordered.USES)]
        for output in outputs:
            torch.testing.assert_close(output, factor * x.sum(1, keepdim=True).expand(4, 3))


def test_training_takes_no_constant_weights(monkeypatch):
    """Those of a part that is run without gradients, such as a teacher, may change from step to step, too."""
    monkeypatch.setattr(products, "faster", lambda: True)
    layer, x = nn.Linear(7, 3), torch.randn(4, 7)
    with products.on(torch.device("cpu")), torch.no_grad():
        for factor in range(2 * products._Ordered.USES):
            layer.weight.fill_(factor)
            layer.bias.fill_(0)
            torch.testing.assert_close(layer(x), factor * x.sum(1, keepdim=True).expand(4, 3))
