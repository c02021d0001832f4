import torch

from asutil import models
from asutil.models import scoring


def test_where_a_process_computes(monkeypatch):
    assert models.device() == torch.device("cpu") or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for rank, number in ((None, 0), ("0", 0), ("1", 1), ("3", 1)):
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        if rank:
            monkeypatch.setenv("LOCAL_RANK", rank)
        assert models.device() == torch.device("cuda", number)


def test_tensors_move_at_any_depth_and_nothing_else_changes():
    ids, labels, names = torch.arange(3), torch.ones(2, 2), ["a"]
    batch = {"examples": 3, "inputs": {"input_ids": ids, "names": names}, "labels": labels}
    made = scoring.moved(batch, torch.device("meta"))
    assert made["examples"] == 3 and made["inputs"]["names"] is names
    for tensor, before in ((made["inputs"]["input_ids"], ids), (made["labels"], labels)):
        assert (tensor.device.type, before.device.type) == ("meta", "cpu")
        assert (tensor.shape, tensor.dtype) == (before.shape, before.dtype)
