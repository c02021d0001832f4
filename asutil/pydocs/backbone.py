"""The embedded backbone: a small RoBERTa that this project trained on `pydocs`, and other architectures that begin with its weights.

The command that made it is in its record and on the page *The embedded backbone*.
"""

import torch
import transformers
from torch import nn

from ..io import checkpoints, hub
from ..models import electra, loading
from ..models import pair as pair_models

WINDOW = 64  # tokens that a token of a Longformer reads, on both sides together
LONG = 1024  # positions of a Longformer and of an LED


def masked_model() -> transformers.RobertaForMaskedLM:
    """The embedded RoBERTa with its masked-language-model head, in float32."""
    model, _ = checkpoints.with_head(
        transformers.AutoModelForMaskedLM, checkpoints.source(hub.EMBEDDED[0]), hub.EMBEDDED[0]
    )
    return model


def electra_pair(tokenizer, seed: int = 0, mlm: bool = True) -> pair_models.PairEncoder:
    """An ELECTRA: its discriminator begins as the embedded RoBERTa, its generator as that with its masked-language-model head.

    Both have the hidden states of the RoBERTa; the heads for pairs and for token detection are fresh. Clark et al. (2020, section 3.2)
    make the generator a quarter to a half of the discriminator; here they have the same size.
    Args:
        mlm: with the generator and the token-detection head.
    """
    source = masked_model()
    lengths = {"embedding_size": source.config.hidden_size, "max_position_embeddings": len(_positions(source))}
    config = transformers.ElectraConfig(**_size(source.config), **lengths)
    backbone = _bare(source) | {"embeddings.position_embeddings.weight": _positions(source)}
    with checkpoints.seeded(seed):
        pair = transformers.AutoModelForSequenceClassification.from_config(config)
        detection = transformers.AutoModelForPreTraining.from_config(config) if mlm else None
        generator = transformers.AutoModelForMaskedLM.from_config(config) if mlm else None
    _copy(pair.electra, backbone)
    if not mlm:
        return pair_models.PairEncoder(pair_models.take_backbone(pair), pair, None, tokenizer, ("pair",))
    _copy(generator.electra, backbone)
    head = {name.replace("layer_norm", "LayerNorm"): value for name, value in source.lm_head.state_dict().items()}
    head = {name: value for name, value in head.items() if name.startswith(("dense", "LayerNorm"))}
    _copy(generator.generator_predictions, head)
    generator.generator_lm_head.bias.data.copy_(source.lm_head.bias)
    return electra.assembled(pair, detection, generator, tokenizer, ("pair", "detection"))


def longformer(tokenizer) -> transformers.LongformerModel:
    """A Longformer that begins as the embedded RoBERTa: its positions are repeated, its attention is copied for local and global tokens.

    Beltagy et al. (2020, section 5) make their Longformer from RoBERTa in this way.
    """
    source = masked_model()
    positions, table = _positions(source), source.roberta.embeddings.position_embeddings.weight
    offset = len(table) - len(positions)
    lengths = {"attention_window": WINDOW, "max_position_embeddings": LONG + offset}
    model = transformers.LongformerModel(transformers.LongformerConfig(**_size(source.config), **lengths))
    state = _bare(source)
    state["embeddings.position_embeddings.weight"] = torch.cat([table[:offset], _repeated(positions, LONG)])
    for name, value in list(state.items()):
        for part in ("query", "key", "value"):
            state[name.replace(f".self.{part}.", f".self.{part}_global.")] = value
    _copy(model, state, but=("pooler",))
    return model


def led(tokenizer) -> transformers.LEDForConditionalGeneration:
    """An LED whose encoder begins as the embedded RoBERTa, under a fresh decoder of one layer for answers of at most 64 tokens."""
    source = masked_model()
    model = transformers.LEDForConditionalGeneration(led_config(tokenizer, _size(source.config)))
    model.led.shared.weight.data.copy_(source.roberta.embeddings.word_embeddings.weight)
    _copy(model.led.encoder, _led_encoder(source))
    return model


def led_config(tokenizer, size: dict) -> transformers.LEDConfig:
    """Of an LED with a decoder of one layer, for answers of at most 64 tokens; size: the names of a RoBERTa's config."""
    sides = {f"{side}_attention_heads": size["num_attention_heads"] for side in ("encoder", "decoder")}
    sides |= {f"{side}_ffn_dim": size["intermediate_size"] for side in ("encoder", "decoder")}
    layers = size["num_hidden_layers"]
    sizes = {"vocab_size": size["vocab_size"], "d_model": size["hidden_size"], "attention_window": [WINDOW] * layers}
    sizes |= {"max_encoder_position_embeddings": LONG, "max_decoder_position_embeddings": 64}
    ids = loading.special_ids(tokenizer) | {"decoder_start_token_id": tokenizer.eos_token_id}
    return transformers.LEDConfig(encoder_layers=layers, decoder_layers=1, **sides, **sizes, **ids)


def _led_encoder(source: transformers.RobertaForMaskedLM) -> dict[str, torch.Tensor]:
    """The weights of an LED's encoder, from those of a RoBERTa."""
    embeddings = source.roberta.embeddings
    # The only token type of the RoBERTa is part of every sum: it goes into the positions.
    positions = _repeated(_positions(source), LONG) + embeddings.token_type_embeddings.weight[0]
    state = {"embed_tokens.weight": embeddings.word_embeddings.weight, "embed_positions.weight": positions}
    state |= {f"layernorm_embedding.{name}": value for name, value in embeddings.LayerNorm.state_dict().items()}
    for number, layer in enumerate(source.roberta.encoder.layer):
        modules = {
            "self_attn.output": layer.attention.output.dense,
            "self_attn_layer_norm": layer.attention.output.LayerNorm,
            "fc1": layer.intermediate.dense,
            "fc2": layer.output.dense,
            "final_layer_norm": layer.output.LayerNorm,
        }
        for part in ("query", "key", "value"):
            for name in (part, f"{part}_global"):
                modules[f"self_attn.longformer_self_attn.{name}"] = getattr(layer.attention.self, part)
        for name, module in modules.items():
            state |= {f"layers.{number}.{name}.{key}": value for key, value in module.state_dict().items()}
    return state


def _size(config) -> dict:
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    more = ("layer_norm_eps", "type_vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")
    return {name: getattr(config, name) for name in (*names, *more)}


def _bare(source: transformers.RobertaForMaskedLM) -> dict[str, torch.Tensor]:
    return {name: value for name, value in source.roberta.state_dict().items() if "pooler" not in name}


def _positions(source: transformers.RobertaForMaskedLM) -> torch.Tensor:
    """The vectors of positions 0, 1, ...: RoBERTa's table begins with rows for its padding."""
    return source.roberta.embeddings.position_embeddings.weight.detach()[source.config.pad_token_id + 1 :]


def _repeated(rows: torch.Tensor, count: int) -> torch.Tensor:
    return rows.repeat(-(-count // len(rows)), 1)[:count]


def _copy(module: nn.Module, state: dict[str, torch.Tensor], but: tuple[str, ...] = ()) -> None:
    """Load all weights of a module except those that begin with `but`. Raises: ValueError for absent or superfluous weights."""
    absent, superfluous = module.load_state_dict(state, strict=False)
    absent = [name for name in absent if not (but and name.startswith(but))]
    if absent or superfluous:
        raise ValueError(f"{type(module).__name__}: weights without a source: {absent}, without a place: {superfluous}")
