"""Bare heads on a shared backbone against the whole models that they were taken from."""

import pytest
import torch
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    RobertaConfig,
    RobertaModel,
)

from asutil import heads

SIZE = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SPECIAL = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
CONFIGS = {
    "roberta": RobertaConfig(**SIZE, max_position_embeddings=40, type_vocab_size=1),
    "bert": BertConfig(**SIZE),
    "electra": ElectraConfig(**SIZE, embedding_size=8),
    "modernbert": ModernBertConfig(**SIZE, **SPECIAL),
    "modernbert_mean": ModernBertConfig(**SIZE, **SPECIAL, classifier_pooling="mean"),
    "distilbert": DistilBertConfig(vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=24),
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
    heads.share_embeddings(masked, classifier.base_model)
    backbone = heads.take_backbone(classifier)
    heads.take_backbone(masked)
    outputs = backbone(**inputs)
    torch.testing.assert_close(heads.pair_logits(classifier, outputs, inputs["attention_mask"]), expected_pair, rtol=0, atol=1e-6)
    torch.testing.assert_close(heads.mlm_logits(masked, outputs, positions), expected_mlm, rtol=0, atol=1e-6)
    assert heads.mlm_logits(masked, outputs, positions[:0]).shape == (0, 60)


def test_the_decoder_is_the_shared_backbones_embedding(whole):
    classifier, masked, _ = whole
    heads.share_embeddings(masked, classifier.base_model)
    assert masked.get_output_embeddings().weight is classifier.get_input_embeddings().weight


def test_an_untied_decoder_is_kept():
    torch.manual_seed(0)
    masked = AutoModelForMaskedLM.from_config(RobertaConfig(**SIZE, tie_word_embeddings=False))
    own = masked.get_output_embeddings().weight
    heads.share_embeddings(masked, RobertaModel(RobertaConfig(**SIZE)))
    assert masked.get_output_embeddings().weight is own


def test_only_the_head_is_left(whole):
    classifier = whole[0]
    before = set(classifier.state_dict())
    backbone = heads.take_backbone(classifier)
    prefix = classifier.base_model_prefix
    assert set(classifier.state_dict()) == {key for key in before if not key.startswith(f"{prefix}.")}
    assert {f"{prefix}.{key}" for key in backbone.state_dict()} == before - set(classifier.state_dict())


def test_the_pair_head_is_float32_under_autocast(whole):
    classifier, _, inputs = whole
    backbone = heads.take_backbone(classifier)
    with torch.autocast("cpu", torch.bfloat16):
        logits = heads.pair_logits(classifier, backbone(**inputs), inputs["attention_mask"])
    assert logits.dtype == torch.float32


def test_a_bare_backbone_has_no_head_to_take():
    with pytest.raises(ValueError, match="RobertaModel"):
        heads.take_backbone(RobertaModel(RobertaConfig(**SIZE)))
