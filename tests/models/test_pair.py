"""Bare heads on a shared backbone against the whole models that they were taken from; heads on slots against slow loops."""

import pytest
import torch
import transformers
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, RobertaConfig, RobertaModel

from asutil import heads
from asutil.models import pair
from tests.trust import slow
from tests.trust.slow import READS

SIZE = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SPECIAL = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
CONFIGS = {
    "roberta": RobertaConfig(**SIZE, max_position_embeddings=40, type_vocab_size=1),
    "bert": BertConfig(**SIZE),
    "electra": transformers.ElectraConfig(**SIZE, embedding_size=8),
    "modernbert": transformers.ModernBertConfig(**SIZE, **SPECIAL),
    "modernbert_mean": transformers.ModernBertConfig(**SIZE, **SPECIAL, classifier_pooling="mean"),
    "distilbert": transformers.DistilBertConfig(vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=24),
}


@pytest.fixture(params=CONFIGS)
def whole(request):
    """Both models of one architecture with the same backbone weights, and a padded batch."""
    torch.manual_seed(0)
    classifier = AutoModelForSequenceClassification.from_config(CONFIGS[request.param]).eval()
    masked = AutoModelForMaskedLM.from_config(CONFIGS[request.param]).eval()
    masked.base_model.load_state_dict(classifier.base_model.state_dict(), strict=False)
    input_ids = torch.randint(5, 60, (3, 11))
    attention_mask = torch.ones_like(input_ids)
    attention_mask[1, 7:] = 0
    return classifier, masked, {"input_ids": input_ids.masked_fill(attention_mask == 0, 1), "attention_mask": attention_mask}


@torch.no_grad()
def test_heads_equal_the_whole_models(whole):
    classifier, masked, inputs = whole
    positions = torch.tensor([0, 4, 12, 16, 31])
    expected_pair = classifier(**inputs).logits
    expected_mlm = masked(**inputs).logits.flatten(0, 1)[positions]
    pair.share_embeddings(masked, classifier.base_model)
    backbone = pair.take_backbone(classifier)
    pair.take_backbone(masked)
    outputs = backbone(**inputs)
    torch.testing.assert_close(pair.pair_logits(classifier, outputs, inputs["attention_mask"]), expected_pair, rtol=0, atol=1e-6)
    torch.testing.assert_close(pair.mlm_logits(masked, outputs, positions), expected_mlm, rtol=0, atol=1e-6)
    assert pair.mlm_logits(masked, outputs, positions[:0]).shape == (0, 60)


@torch.no_grad()
def test_a_pair_encoder_equals_the_whole_model_on_padded_inputs(whole):
    classifier, _, inputs = whole
    expected = classifier(**inputs).logits
    model = pair.PairEncoder(pair.take_backbone(classifier), classifier, None, None).eval()
    torch.testing.assert_close(model(inputs)[0], expected, rtol=0, atol=1e-6)  # a mean over the tokens leaves padding out


def test_the_decoder_is_the_shared_backbones_embedding(whole):
    classifier, masked, _ = whole
    pair.share_embeddings(masked, classifier.base_model)
    assert masked.get_output_embeddings().weight is classifier.get_input_embeddings().weight


def test_an_untied_decoder_is_kept():
    torch.manual_seed(0)
    masked = AutoModelForMaskedLM.from_config(RobertaConfig(**SIZE, tie_word_embeddings=False))
    own = masked.get_output_embeddings().weight
    pair.share_embeddings(masked, RobertaModel(RobertaConfig(**SIZE)))
    assert masked.get_output_embeddings().weight is own


def test_only_the_head_is_left(whole):
    classifier = whole[0]
    before = set(classifier.state_dict())
    backbone = pair.take_backbone(classifier)
    prefix = classifier.base_model_prefix
    assert set(classifier.state_dict()) == {key for key in before if not key.startswith(f"{prefix}.")}
    assert {f"{prefix}.{key}" for key in backbone.state_dict()} == before - set(classifier.state_dict())


def test_the_pair_head_is_float32_under_autocast(whole):
    classifier, _, inputs = whole
    backbone = pair.take_backbone(classifier)
    with torch.autocast("cpu", torch.bfloat16):
        logits = pair.pair_logits(classifier, backbone(**inputs), inputs["attention_mask"])
    assert logits.dtype == torch.float32


def test_a_packed_micro_batch_is_read_by_the_compiled_form(whole, monkeypatch):
    backbone, read = pair.take_backbone(whole[0]), []
    monkeypatch.setattr(pair.packing, "outputs", lambda *given: read.append(given))
    packed = {"input_ids": torch.ones(1, 4, dtype=torch.long), "cu_seq_lens": torch.tensor([0, 4])}
    compiled = lambda **_: None
    pair.outputs_of(backbone, packed, True, compiled)
    pair.outputs_of(backbone, packed, True)
    assert [given[1:] for given in read] == [(packed, True, compiled), (packed, True, None)]


def test_a_bare_backbone_has_no_head_to_take():
    with pytest.raises(ValueError, match="RobertaModel"):
        pair.take_backbone(RobertaModel(RobertaConfig(**SIZE)))


# ------------------------------------------------------------------ heads on the slots of a joint input

PRESENT = torch.tensor([[True] * 6, [True, True, False, True, False, False], [True, True] + [False] * 4])


def evidence_head(name, form, classes=3, hidden_size=7):
    torch.manual_seed(1)
    head = heads.EVIDENCE[name](hidden_size, classes, form).double().eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    return head


@pytest.mark.parametrize("form", ["linear", "released"])
@pytest.mark.parametrize("name", READS)
def test_gradients_reach_every_parameter_and_the_slots_that_are_read(name, form):
    head, slots = evidence_head(name, form), torch.randn(3, 6, 7, dtype=torch.float64, requires_grad=True)
    head(slots, PRESENT).square().sum().backward()
    assert all(parameter.grad.abs().min() > 0 for parameter in head.parameters())
    reached = (slots.grad != 0).all(-1)
    assert torch.equal(reached, (slots.grad != 0).any(-1))
    expected = {"ie_k": [False] + [True] * 5, "ae_k": [True] * 6, "ie_1": [True] + [False] * 5}.get(name)
    assert torch.equal(reached, PRESENT if expected is None else torch.tensor([expected] * 3))


@pytest.mark.parametrize(
    ("name", "classes", "linear", "dense"),
    [
        ("ie_k", 2, 2 * 768 + 2, 768 * 768 + 768),
        ("ae_k", 2, 4 * 768 + 2, 1536 * 1536 + 1536),
        ("ie_1", 3, 3 * 768 + 3, 768 * 768 + 768),
        ("ae_1", 3, 3 * 768 + 3, 768 * 768 + 768),
    ],
)
def test_parameters_of_the_heads(name, classes, linear, dense):
    counts = [sum(p.numel() for p in heads.EVIDENCE[name](768, classes, form).parameters()) for form in ("linear", "released")]
    assert counts == [linear, dense + linear]


@pytest.mark.parametrize("name", READS)
def test_evidence_heads_are_float32_whatever_the_body_ran_in(name):
    head, slots = evidence_head(name, "linear").float(), torch.randn(3, 6, 7).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        logits = head(slots, PRESENT)
    assert logits.dtype == torch.float32
    looped = torch.tensor(slow.evidence(head, name, slots.double(), PRESENT), dtype=torch.float64)
    torch.testing.assert_close(logits.double(), looped, rtol=0, atol=1e-5)


def test_dropout_of_the_released_form_is_active_in_training_alone():
    slots = torch.randn(3, 6, 7, dtype=torch.float64)
    for form, same in (("linear", True), ("released", False)):
        head = evidence_head("ae_k", form).train()
        assert torch.equal(head(slots), head(slots)) == same
        assert torch.equal(head.eval()(slots), head(slots))
