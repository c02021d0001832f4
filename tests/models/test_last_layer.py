"""The last layer for the tokens that are read: the logits of the whole layer, and fewer tokens through it."""

import copy

import pytest
import torch

from asutil.models import joint, last_layer, loading, scoring
from asutil.models.pair import PairEncoder

from .test_loading import moved
from .test_pair import CONFIGS

LIKE_BERT = ("bert", "electra", "roberta")


def new_model(name, attention="sdpa"):
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = attention
    model = loading.from_config(config, None, seed=1)
    moved(model, 0.3)  # away from the start, where all tokens are nearly the same
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
