import torch

from asutil import models


def test_where_a_process_computes(monkeypatch):
    assert models.device() == torch.device("cpu") or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for rank, number in ((None, 0), ("0", 0), ("1", 1), ("3", 1)):
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        if rank:
            monkeypatch.setenv("LOCAL_RANK", rank)
        assert models.device() == torch.device("cuda", number)
