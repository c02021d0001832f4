import threading
import time

import pytest
import torch

from asutil import models
from asutil.models import products, scoring


def test_where_a_process_computes(monkeypatch):
    assert models.device() == torch.device("cpu") or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for rank, number in ((None, 0), ("0", 0), ("1", 1), ("3", 1)):
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        if rank:
            monkeypatch.setenv("LOCAL_RANK", rank)
        assert models.device() == torch.device("cuda", number)


CPU, CORES = torch.device("cpu"), 3


def micro_batches(count=scoring.A_CORE * CORES + 1):
    return [{"x": torch.full((2,), float(number))} for number in range(count)]


def test_each_core_computes_micro_batches_of_its_own(three_threads):
    met = threading.Barrier(CORES, timeout=60)  # which only so many at once can pass
    weight, inside = torch.ones(1, requires_grad=True), []

    def work(batch):
        if batch["x"][0] < CORES:
            met.wait()
        inside.append((torch.get_num_threads(), torch.is_grad_enabled()))
        return weight * batch["x"] * 2

    given = micro_batches()
    found = list(scoring.computed(work, given, CPU))
    assert all(one is other for (one, _), other in zip(found, given, strict=True))
    assert [result[0].item() for _, result in found] == [2.0 * number for number in range(len(given))]
    assert set(inside) == {(1, False)}
    assert torch.get_num_threads() == CORES and torch.is_grad_enabled()


@pytest.mark.parametrize(("count", "device"), [(scoring.A_CORE * CORES - 1, "cpu"), (scoring.A_CORE * CORES, "meta")])
def test_cores_share_a_few_micro_batches_and_another_device_computes_them_in_turn(three_threads, count, device):
    given, seen = micro_batches(count), []

    def work(batch):
        seen.append((threading.current_thread(), batch["x"].device.type, torch.get_num_threads()))
        return batch["x"]

    found = scoring.computed(work, given, torch.device(device))
    assert [one["x"][0].item() for one, _ in found] == list(range(count))
    assert set(seen) == {(threading.main_thread(), device, CORES)}


def test_an_error_of_one_core_ends_the_others(three_threads):
    begun = []

    def work(batch):
        begun.append(batch)
        if len(begun) == 5:
            raise MemoryError("no room")
        time.sleep(0.01)
        return batch["x"]

    many = micro_batches(500)
    with pytest.raises(MemoryError, match="no room"):
        list(scoring.computed(work, many, CPU))
    assert len(begun) < 100 and torch.get_num_threads() == CORES
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("scoring")]


def test_products_are_the_same_in_all_threads(three_threads, monkeypatch):
    """oneDNN's, where it is faster, with weights in its order that all threads share."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this torch has no oneDNN")
    ordered, reorder = [], products._Ordered.of
    monkeypatch.setattr(products, "faster", lambda: True)
    monkeypatch.setattr(products._Ordered, "of", lambda *given: ordered.append(given[0]) or reorder(*given))
    layer = torch.nn.Linear(2, 2)
    given = [{"x": torch.randn(3, 2)} for _ in range(40)]
    with scoring.evaluating(layer) as device:
        found = list(scoring.computed(lambda batch: layer(batch["x"]), given, device))
    assert len(ordered) == 40 and len(set(ordered)) == 1
    for batch, result in found:
        torch.testing.assert_close(result, layer(batch["x"]).detach())
