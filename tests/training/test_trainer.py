"""Optimiser and schedule against transformers' own."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, Trainer, get_linear_schedule_with_warmup

from asutil import heads
from asutil.models import electra, joint, loading
from asutil.training import optimiser

SIZE = {"vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
KINDS = ("bert", "roberta", "albert", "deberta-v2", "modernbert", "electra")


def made(kind, tokenizer):
    if kind == "electra pre-training":
        return electra.tiny(tokenizer)
    if kind == "joint":
        return joint.over(loading.tiny(tokenizer), joint.shape(True, "ae_k", 2, 24, "released", "absolute"))
    if kind == "siamese":
        return torch.nn.ModuleDict({"backbone": made("bert", tokenizer), "head": heads.Siamese(8)})
    return AutoModelForMaskedLM.from_config(AutoConfig.for_model(kind, **SIZE, pad_token_id=0, cls_token_id=1, sep_token_id=2))


@pytest.mark.parametrize("kind", [*KINDS, "electra pre-training", "joint", "siamese"])
def test_weight_decay_is_for_the_parameters_that_transformers_decays(kind, tokenizer):
    model = made(kind, tokenizer)
    next(model.parameters()).requires_grad = False
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    expected = set(Trainer.get_decay_parameter_names(None, model))
    decayed, others = optimiser.adamw(model, 1e-3, 0.1).param_groups
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert [names[id(parameter)] for parameter in decayed["params"]] == [name for name in trained if name in expected]
    assert [names[id(parameter)] for parameter in others["params"]] == [name for name in trained if name not in expected]


@pytest.mark.parametrize(("steps", "warmup"), [(7, 0), (7, 3), (7, 7), (3, 9)])
def test_the_rate_is_that_of_transformers_schedule(steps, warmup):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=3e-4)
    schedule = get_linear_schedule_with_warmup(optimizer, warmup, steps)
    for step in range(steps):
        assert optimiser.learning_rate(step, steps, 3e-4, warmup) == schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
