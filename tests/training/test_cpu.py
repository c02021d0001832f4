"""Dropout from keyed bits by hand and against torch's, on any number of threads; the memory of large tensors is used again."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from asutil.training import cpu


def masked(seed, values, p=0.1, **options):
    dropout = cpu.KeyedDropout()
    dropout.begin(seed)
    with dropout:
        return functional.dropout(values, p, **options)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_are_dropped_with_the_probability_and_the_others_grow(p, dtype):
    count = 200_000
    dropped = masked(3, torch.full((count,), 2.0, dtype=dtype), p)
    kept = dropped[dropped != 0]
    assert torch.equal(kept, torch.full_like(kept, 2.0) * torch.tensor(1 / (1 - p), dtype=dtype))
    assert abs(1 - len(kept) / count - p) < 4 * (p * (1 - p) / count) ** 0.5


def test_a_mask_is_that_of_16_bits_an_element_in_the_tensors_order():
    """A slow loop over the stream: signed, the lowest 6,554 of 65,536 words are dropped."""
    values = torch.randn(7, 3, 11)
    words = np.random.SFC64(5).random_raw(58).view(np.int16)[: 7 * 3 * 11]
    expected = [0.0 if word < 6554 - 32768 else value / 0.9 for word, value in zip(words.tolist(), values.flatten().tolist())]
    np.testing.assert_allclose(masked(5, values).flatten().numpy(), expected, rtol=1e-6)
    swapped = values.transpose(0, 2)
    words = words.reshape(11, 3, 7)
    assert ((masked(5, swapped) == 0).numpy() == (words < 6554 - 32768)).all()


def test_masks_differ_by_key_and_by_their_place_in_the_stream_but_not_by_threads():
    values, threads = torch.ones(100_000), torch.get_num_threads()
    first = masked(1, values)
    try:
        torch.set_num_threads(3 - min(threads, 2))
        assert torch.equal(masked(1, values), first)
    finally:
        torch.set_num_threads(threads)
    agreement = lambda other: ((first == 0) & (other == 0)).double().mean().item()
    assert agreement(masked(2, values)) == pytest.approx(0.01, abs=0.002)
    dropout = cpu.KeyedDropout()
    dropout.begin(1)
    with dropout:
        once, twice = (functional.dropout(values, 0.1) for _ in range(2))
    assert torch.equal(once, first) and agreement(twice) == pytest.approx(0.01, abs=0.002)


def test_the_gradient_is_the_mask():
    values = torch.randn(1000, requires_grad=True)
    dropped = masked(4, values)
    dropped.sum().backward()
    torch.testing.assert_close(values.grad * values.detach(), dropped.detach())


def test_what_is_not_dropped_out_is_torchs_own():
    values = torch.randn(100)
    for p, training in ((0.0, True), (0.5, False)):
        assert torch.equal(masked(1, values, p, training=training), values)
    assert not masked(1, values, 1.0).any()
    with pytest.raises(ValueError, match="between 0 and 1"):
        masked(1, values, 1.5)
    assert not torch.equal(functional.dropout(values, 0.5), functional.dropout(values, 0.5))  # outside, torch's generator
    same = values.clone()
    assert masked(1, same, 0.5, inplace=True) is same and not torch.equal(same, values)


def test_every_mask_of_a_model_is_keyed(tokenizer):
    """Training with dropout draws nothing from torch's generator, attention's masks included."""
    from asutil.models import loading

    model, dropout = loading.tiny(tokenizer, seed=1, mlm=False).train(), cpu.KeyedDropout()
    ids = torch.randint(5, 60, (3, 12))
    found = []
    with cpu.fast(model, dropout):
        before = torch.get_rng_state()
        for seed in (0, 0, 1):
            dropout.begin(seed)
            found.append(model({"input_ids": ids, "attention_mask": torch.ones_like(ids)})[0])
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_bf16_without_instructions_for_it_is_warned_of(tokenizer, monkeypatch, caplog):
    from asutil.models import loading

    model = loading.tiny(tokenizer, mlm=False)
    for capability, bf16, warns in (("AVX2", True, True), ("AVX2", False, False), ("AVX512", True, False)):
        caplog.clear()
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda capability=capability: capability)
        with cpu.fast(model, cpu.KeyedDropout(), bf16):
            assert ("no instructions for it" in caplog.text) == warns
