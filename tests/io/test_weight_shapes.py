"""A config.json whose sizes are not those of the weights is refused before a module is made; models of many architectures are not."""

import json
import time

import pytest
import torch
import transformers

from asutil.io import checkpoints, weight_shapes
from asutil.models import loading

SHAPE = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 40}
DISTIL = {"dim": 16, "n_layers": 4, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 40}
T5 = {"d_model": 16, "num_layers": 4, "num_decoder_layers": 3, "num_heads": 2, "d_kv": 8, "d_ff": 24}
ARCHITECTURES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "deberta", "modernbert", "mpnet"), SHAPE),
    "deberta-v2": SHAPE | {"position_biased_input": False, "relative_attention": True},
    "electra": SHAPE | {"embedding_size": 12},
    "albert": SHAPE | {"embedding_size": 12},
    "distilbert": DISTIL,
    "t5": T5,
    "bart": {"d_model": 16, "encoder_layers": 4, "decoder_layers": 3, "encoder_ffn_dim": 24, "decoder_ffn_dim": 20},
    "gpt2": {"n_embd": 16, "n_layer": 4, "n_head": 2, "n_positions": 40},
    "qwen3": SHAPE | {"num_key_value_heads": 2, "head_dim": 8},
}
KINDS = ("AutoModel", "AutoModelForSequenceClassification", "AutoModelForMaskedLM")


def saved(folder, kind: str, vocabulary: int = 99, make: str = "AutoModel", **more):
    special = {"vocab_size": vocabulary, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    config = transformers.AutoConfig.for_model(kind, **special, **ARCHITECTURES[kind], **more)
    torch.manual_seed(0)
    getattr(transformers, make).from_config(config).save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_whole_models_are_accepted(tmp_path, kind):
    made = 0
    for make in KINDS:
        if type(transformers.AutoConfig.for_model(kind)) not in getattr(transformers, make)._model_mapping:
            continue
        weight_shapes.check_config(saved(tmp_path / make, kind, make=make), kind)
        made += 1
    assert made


def edited(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder


@pytest.mark.parametrize(
    ("kind", "key", "value", "came"),
    [
        *[("bert", "num_hidden_layers", value, "4") for value in (1, 3, 5)],
        *[(kind, "num_hidden_layers", 10**6, "4") for kind in ("bert", "electra", "modernbert", "qwen3")],
        *[("distilbert", "n_layers", value, "4") for value in (1, 10**6)],
        *[("t5", key, 10**6, "3 or 4") for key in ("num_layers", "num_decoder_layers")],
        *[("roberta", "vocab_size", value, "99") for value in (98, 100, 10**12)],
        *[(kind, "vocab_size", 10**12, "99") for kind in ("distilbert", "t5", "deberta-v2", "albert", "gpt2")],
        ("bert", "hidden_size", 10**9, "99"),
        ("bert", "intermediate_size", 25, "24"),
        ("bert", "max_position_embeddings", 10**9, "40"),
        ("bert", "type_vocab_size", 10**9, "2"),
        ("albert", "num_hidden_layers", 10**6, "100"),
        ("deberta-v2", "max_position_embeddings", 10**12, "10,000,000"),
    ],
)
def test_a_size_that_the_weights_do_not_have_is_refused_at_once(tmp_path, kind, key, value, came):
    folder = edited(saved(tmp_path, kind), **{key: value})
    for auto in (transformers.AutoConfig, transformers.AutoModel):
        began = time.process_time()
        with pytest.raises(ValueError, match=rf"mine: config\.json has {key} {value:,}, .*\b{came}\b"):
            checkpoints.from_pretrained(auto, folder, "mine")
        assert time.process_time() - began < 1


def test_weights_in_several_files_are_counted_together(tmp_path):
    config = transformers.AutoConfig.for_model("bert", **SHAPE, vocab_size=60)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    weight_shapes.check_config(tmp_path, "mine")
    with pytest.raises(ValueError, match="num_hidden_layers 3, its weights have 4 layers"):
        checkpoints.with_head(transformers.AutoModel, edited(tmp_path, num_hidden_layers=3), "mine")


def test_a_model_of_the_hub_is_checked_before_it_is_made(on_hub):
    root, _ = on_hub
    folder = root / "models/owner/large/main"
    edited(saved(folder, "bert"), num_hidden_layers=10**6)
    with pytest.raises(ValueError, match="num_hidden_layers 1,000,000, its weights have 4 layers"):
        checkpoints.with_head(transformers.AutoModel, "owner/large", "owner/large")


def test_weights_of_our_own_models_that_nothing_uses_are_damage(tmp_path, tokenizer):
    from safetensors.torch import load_file, save_file

    folder = loading.tiny(tokenizer, mlm=False).save(tmp_path / "mine")
    loading.load(folder)
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.output.dense.more"] = torch.zeros(3)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="1 of its weights have no place in a RobertaModel of its config.json, the first is .*more"):
        loading.load(folder)
