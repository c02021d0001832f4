"""The last layer for the tokens that are read: the logits and gradients of the whole layer, and fewer tokens through it."""

import copy

import numpy as np
import pytest
import torch

from asutil import inputs
from asutil.models import joint, last_layer, loading, scoring
from asutil.models.pair import PairEncoder

from ..inputs import test_packing as packed
from . import test_electra
from .test_pair import CONFIGS

LIKE_BERT = ("bert", "electra", "roberta")


def new_model(name, attention="sdpa"):
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = attention
    model = loading.from_config(config, None, seed=1)
    with torch.no_grad():
        for parameter in model.parameters():  # away from the start, where all tokens are nearly the same
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    return model.double()


def padded(lengths=(11, 7, 2)):
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(5, 60, mask.shape, generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids.where(mask > 0, 1), "attention_mask": mask}


def widths(model, batch):
    """The logits, and how many tokens of an input the last feed-forward layer saw."""
    seen = []
    last = [module for name, module in model.backbone.named_modules() if name.endswith("intermediate.dense")][-1]
    hook = last.register_forward_hook(lambda module, given, output: seen.append(given[0].shape[1]))
    logits, _ = model(batch)
    hook.remove()
    return logits, seen


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("lengths", [(11, 7, 2), (9, 9)], ids=["padded", "of one length"])
@pytest.mark.parametrize("name", LIKE_BERT)
def test_the_logits_are_those_of_the_whole_layer(name, lengths, attention):
    model = new_model(name, attention)
    batch = padded(lengths)
    with scoring.evaluating(model):
        expected, seen = widths(model, batch)
        assert seen == [max(lengths)] and expected.std() > 1e-3
        with last_layer.first_tokens_alone(model):
            logits, seen = widths(model, batch)
        assert seen == [1]
        torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
        assert widths(model, batch)[1] == [max(lengths)]  # the layer is whole again


def test_a_layer_is_whole_again_after_an_error():
    model = new_model("roberta")
    with pytest.raises(KeyError), last_layer.first_tokens_alone(model):
        raise KeyError
    assert "forward" not in vars(model.backbone.encoder.layer[-1])


@pytest.mark.parametrize("first_out", [0, 1])
def test_two_may_score_at_once(first_out):
    model, batch = new_model("roberta"), padded()
    names = list(model.state_dict())
    with scoring.evaluating(model):
        expected, _ = model(batch)
        contexts = [last_layer.first_tokens_alone(model) for _ in range(2)]
        for context in contexts:
            context.__enter__()
        for context in (contexts[first_out], contexts[1 - first_out]):
            torch.testing.assert_close(model(batch)[0], expected, rtol=1e-6, atol=1e-6)
            assert list(model.state_dict()) == names
            context.__exit__(None, None, None)
        assert widths(model, batch)[1] == [11]


@pytest.mark.parametrize("name", ["modernbert", "modernbert_mean", "distilbert"])
def test_other_layers_stay_as_they_are(name):
    model = new_model(name)
    with scoring.evaluating(model), last_layer.first_tokens_alone(model):
        assert all("forward" not in vars(module) for module in model.modules())
        assert torch.isfinite(model(padded())[0]).all()


def new_joint(pooling, head="ie_k"):
    shape = joint.shape(True, head, 3, 16, "linear", "absolute", pooling=pooling)
    return joint.over(new_model("roberta"), shape).double()


def slotted():
    """Two inputs of four slots of four places: of the first all are filled, of the second the last two are empty."""
    lengths = torch.tensor([[3, 4, 2, 4], [2, 3, 0, 0]])
    mask = (torch.arange(4) < lengths[..., None]).flatten(1).long()
    ids = torch.randint(5, 60, mask.shape, generator=torch.Generator().manual_seed(0))
    firsts = torch.arange(0, 32, 4).view(2, 4).where(lengths > 0, -1)
    places = {"token_type_ids": torch.arange(4).repeat_interleave(4).expand(2, -1), "position_ids": torch.arange(16).expand(2, -1)}
    return {"input_ids": ids.where(mask > 0, 1), "attention_mask": mask, "firsts": firsts} | places


@pytest.mark.parametrize("head", ["ie_k", "ae_k"])  # ae_k reads the question's slot with each candidate's
def test_a_joint_model_needs_the_first_token_of_every_slot(head):
    model, batch = new_joint("first", head), slotted()
    real = batch["firsts"][:, 1:] >= 0
    with scoring.evaluating(model):
        expected, seen = widths(model, batch)
        assert seen == [16] and expected[real].std() > 1e-3
        with last_layer.first_tokens_alone(model):
            logits, seen = widths(model, batch)
        assert seen == [4]
        torch.testing.assert_close(logits[real], expected[real], rtol=1e-6, atol=1e-6)
        assert widths(model, batch)[1] == [16]


def test_a_head_on_the_means_of_slots_reads_every_token():
    model = new_joint("mean")
    assert isinstance(model, PairEncoder)
    with last_layer.first_tokens_alone(model):
        assert all("forward" not in vars(module) for module in model.modules())


# ------------------------------------------------------------------ training


def loss_gradients_and_rows(model, batch, layout="packed", tokens=300):
    """What a step learns from, and how many tokens the last feed-forward layer of the model saw in all micro-batches."""
    rows = []
    last = [module for name, module in model.backbone.named_modules() if name.endswith("intermediate.dense")][-1]
    hook = last.register_forward_hook(lambda module, given, output: rows.append(given[0].shape[:-1].numel()))
    loss, gradients = packed.loss_and_gradients(model, *batch, layout, tokens)
    hook.remove()
    return loss, gradients, sum(rows)


def without_firsts(masked, firsts):
    """Masked tokens as in training, where first tokens, special as they are, never are among them."""
    places, targets = masked
    kept = ~np.isin(places, list(firsts))
    return places[kept], targets[kept]


def assert_same(found, expected):
    torch.testing.assert_close(found[0], expected[0], rtol=1e-9, atol=1e-9)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-9, atol=1e-9, msg=name)


@pytest.mark.parametrize("name", ["roberta", "roberta with types", "bert", "electra"])
def test_training_reads_first_and_masked_tokens_with_the_same_gradients(name):
    model, (ragged, labels, masked) = packed.new_model(packed.CONFIGS[name]).double().train(), packed.examples()
    batch = ragged, labels, without_firsts(masked, ragged.offsets)
    expected = loss_gradients_and_rows(model, batch)
    with last_layer.read_tokens_alone(model):
        found = loss_gradients_and_rows(model, batch)
        padded = loss_gradients_and_rows(model, batch, "ordered")
    assert found[2] == len(labels) + len(batch[2][0]) < len(ragged.ids) / 4 < expected[2]
    assert_same(found, expected)
    assert padded[2] >= len(ragged.ids)
    assert_same(padded, expected)
    assert loss_gradients_and_rows(model, batch)[2] == expected[2]  # the layer is whole again


@pytest.mark.parametrize(("pooling", "head"), [("first", "ie_k"), ("first", "ae_1"), ("mean", "ie_k")])
def test_a_joint_model_reads_the_first_tokens_of_its_slots_or_all_tokens(pooling, head):
    model = packed.joint_model("roberta", head, pooling=pooling).train()
    ragged, labels, masked, slots = packed.joint_examples()
    firsts = first_places(slots)
    batch = ragged, labels if head == "ie_k" else labels.clip(0, 1)[:, 0], without_firsts(masked, firsts)
    expected = loss_gradients_and_rows(model, batch)
    with last_layer.read_tokens_alone(model):
        found = loss_gradients_and_rows(model, batch)
    assert found[2] == (expected[2] if pooling == "mean" else len(firsts) + len(batch[2][0])) <= expected[2]
    assert_same(found, expected)


def first_places(slots):
    """The flat positions of the first tokens of all slots."""
    places, at = set(), 0
    for slot in (slot for row in slots for slot in row if slot):
        places.add(at)
        at += len(slot)
    return places


def test_an_electras_generator_reads_masked_tokens_and_its_discriminator_all_of_them():
    model = test_electra.new_model().double().train()
    (batch, _) = test_electra.batch_of("packed")
    losses = []
    for context in (torch.enable_grad, lambda: last_layer.read_tokens_alone(model)):
        seen = []
        generator = model.generator.base_model.encoder.layer[-1].intermediate
        hooks = [
            part.register_forward_hook(lambda module, given, output, seen=seen: seen.append(given[0].shape[1]))
            for part in (generator, model.backbone.encoder.layer[-1].intermediate)
        ]
        torch.manual_seed(5)
        with context():
            losses.append(test_electra.losses_of(model, batch))
        for hook in hooks:
            hook.remove()
    assert seen == [batch["masked"], batch["micro"][0]["input_ids"].numel()]
    assert_same(losses[1][1:], losses[0][1:])


def test_dropout_of_the_last_layer_is_that_of_the_read_tokens(monkeypatch):
    """With dropout on, everything before the last layer's outputs is the same: the masks come in the same order."""
    model = packed.new_model(packed.CONFIGS["roberta"], still=False).train()
    (micro,) = inputs.laid_out("packed", *packed.examples()[:2], 1, 10**6)
    drawn = []
    for context in (torch.enable_grad, lambda: last_layer.read_tokens_alone(model)):
        before = []
        hook = model.backbone.encoder.layer[-1].attention.output.dense.register_forward_hook(
            lambda module, given, output, before=before: before.append(given[0].flatten(0, 1))
        )
        torch.manual_seed(3)
        with context():
            model(micro)
        hook.remove()
        drawn.append(before[0])
    torch.testing.assert_close(drawn[1], drawn[0][micro["first"]])


def test_an_evaluation_between_two_steps_leaves_the_layer_of_training():
    model = packed.new_model(packed.CONFIGS["roberta"])
    layer = model.backbone.encoder.layer[-1]
    with last_layer.read_tokens_alone(model):
        training = layer.forward
        with last_layer.first_tokens_alone(model):
            assert layer.forward is not training
        assert layer.forward is training
    assert not {"forward", "in_training"} & set(vars(layer))
