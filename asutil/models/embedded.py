"""The embedded backbone: a small RoBERTa that this project trained on `pydocs`, and other architectures that begin with its weights.

`python -m asutil.models.embedded <run>` makes it from a finished run of `pretrain` that learnt masked language modelling alone; the command
of that run is in its record and on the page *The embedded backbone*.
"""

import argparse
import shutil
from pathlib import Path

import torch
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    ElectraConfig,
    LEDConfig,
    LEDForConditionalGeneration,
    LongformerConfig,
    LongformerModel,
    RobertaForMaskedLM,
)

from ..io import checkpoints, disk, hub, rundir
from . import electra
from . import pair as pair_models

WINDOW = 64  # tokens on both sides together that a token of a Longformer reads
LONG = 1024  # positions of a Longformer and of an LED


def masked_model() -> RobertaForMaskedLM:
    """The embedded RoBERTa with its masked-language-model head, in float32."""
    model, _ = checkpoints.with_head(AutoModelForMaskedLM, checkpoints.source(hub.EMBEDDED[0]), hub.EMBEDDED[0])
    return model


def electra_pair(tokenizer, seed: int = 0, mlm: bool = True) -> pair_models.PairEncoder:
    """An ELECTRA whose discriminator begins as the embedded RoBERTa and whose generator as that with its masked-language-model head.

    Both give the hidden states of the RoBERTa; the heads for pairs and for token detection are fresh. Clark et al. (2020, section 3.2)
    make the generator a quarter to a half of the discriminator: here they are of one size.
    Args:
        mlm: with the generator and the token-detection head.
    """
    source = masked_model()
    config = ElectraConfig(
        **_size(source.config),
        embedding_size=source.config.hidden_size,
        max_position_embeddings=len(_positions(source)),
        layer_norm_eps=source.config.layer_norm_eps,
        type_vocab_size=1,
    )
    with checkpoints.seeded(seed):
        pair = AutoModelForSequenceClassification.from_config(config)
        detection = AutoModelForPreTraining.from_config(config) if mlm else None
        generator = AutoModelForMaskedLM.from_config(config) if mlm else None
    for model in filter(None, (pair, generator)):
        _copy(model.electra, _bare(source) | {"embeddings.position_embeddings.weight": _positions(source)})
    if not mlm:
        return pair_models.PairEncoder(pair_models.take_backbone(pair), pair, None, tokenizer, ("pair",))
    head = {name.replace("layer_norm", "LayerNorm"): value for name, value in source.lm_head.state_dict().items()}
    _copy(
        generator.generator_predictions, {name: head[name] for name in head if name.startswith(("dense", "LayerNorm"))}
    )
    generator.generator_lm_head.bias.data.copy_(source.lm_head.bias)
    return electra.assembled(pair, detection, generator, tokenizer, ("pair", "detection"))


def longformer(tokenizer) -> LongformerModel:
    """A Longformer that begins as the embedded RoBERTa: its positions repeated, its attention for local and global tokens alike.

    Beltagy et al. (2020, section 5) make their Longformer from RoBERTa in this way.
    """
    source = masked_model()
    positions, table = _positions(source), source.roberta.embeddings.position_embeddings.weight
    offset = len(table) - len(positions)
    places = {"attention_window": WINDOW, "max_position_embeddings": LONG + offset, "type_vocab_size": 1}
    model = LongformerModel(
        LongformerConfig(**_size(source.config), **places, layer_norm_eps=source.config.layer_norm_eps)
    )
    state = _bare(source)
    state["embeddings.position_embeddings.weight"] = torch.cat([table[:offset], _repeated(positions, LONG)])
    for name, value in list(state.items()):
        for part in ("query", "key", "value"):
            state[name.replace(f".self.{part}.", f".self.{part}_global.")] = value
    _copy(model, state, but=("pooler",))
    return model


def led(tokenizer) -> LEDForConditionalGeneration:
    """An LED whose encoder begins as the embedded RoBERTa, under a fresh decoder of one layer for answers of at most 64 tokens."""
    source = masked_model()
    size, hidden = _size(source.config), source.config.hidden_size
    model = LEDForConditionalGeneration(
        LEDConfig(
            vocab_size=size["vocab_size"],
            d_model=hidden,
            encoder_layers=size["num_hidden_layers"],
            decoder_layers=1,
            encoder_attention_heads=size["num_attention_heads"],
            decoder_attention_heads=size["num_attention_heads"],
            encoder_ffn_dim=size["intermediate_size"],
            decoder_ffn_dim=size["intermediate_size"],
            attention_window=[WINDOW] * size["num_hidden_layers"],
            max_encoder_position_embeddings=LONG,
            max_decoder_position_embeddings=64,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.eos_token_id,
        )
    )
    embeddings, state = source.roberta.embeddings, {}
    words = embeddings.word_embeddings.weight
    # The one token type of the RoBERTa is part of every sum: it goes into the positions.
    state["embed_positions.weight"] = _repeated(_positions(source), LONG) + embeddings.token_type_embeddings.weight[0]
    state |= {f"layernorm_embedding.{name}": value for name, value in embeddings.LayerNorm.state_dict().items()}
    for number, layer in enumerate(source.roberta.encoder.layer):
        own = layer.attention.self
        modules = {
            "self_attn.output": layer.attention.output.dense,
            "self_attn_layer_norm": layer.attention.output.LayerNorm,
        }
        modules |= {
            "fc1": layer.intermediate.dense,
            "fc2": layer.output.dense,
            "final_layer_norm": layer.output.LayerNorm,
        }
        for part in ("query", "key", "value"):
            for name in (part, f"{part}_global"):
                modules[f"self_attn.longformer_self_attn.{name}"] = getattr(own, part)
        state |= {
            f"layers.{number}.{name}.{key}": value
            for name, module in modules.items()
            for key, value in module.state_dict().items()
        }
    model.led.shared.weight.data.copy_(words)
    _copy(model.led.encoder, state | {"embed_tokens.weight": words})
    return model


def _size(config) -> dict:
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    return {name: getattr(config, name) for name in (*names, "pad_token_id", "bos_token_id", "eos_token_id")}


def _bare(source: RobertaForMaskedLM) -> dict[str, torch.Tensor]:
    return {name: value for name, value in source.roberta.state_dict().items() if "pooler" not in name}


def _positions(source: RobertaForMaskedLM) -> torch.Tensor:
    """The vectors of places 0, 1, ...: RoBERTa's table begins with rows for its padding."""
    return source.roberta.embeddings.position_embeddings.weight.detach()[source.config.pad_token_id + 1 :]


def _repeated(rows: torch.Tensor, count: int) -> torch.Tensor:
    return rows.repeat(-(-count // len(rows)), 1)[:count]


def _copy(module: nn.Module, state: dict[str, torch.Tensor], but: tuple[str, ...] = ()) -> None:
    """Load all weights of a module, but for those of some names. Raises: ValueError for others that are absent or left over."""
    absent, over = module.load_state_dict(state, strict=False)
    absent = [name for name in absent if not name.startswith(but)] if but else absent
    if absent or over:
        raise ValueError(f"{type(module).__name__}: weights without a source: {absent}, without a place: {over}")


# ------------------------------------------------------------------ making it


def export(run: str | Path, folder: str | Path) -> Path:
    """Write the masked-language model of a finished run in half precision, with tokenizer, record and log of its losses.

    Raises: ValueError for a run that is not finished or not of a RoBERTa, or that learnt anything but masked language modelling.
    """
    path, made = checkpoints.source(run), rundir.find(str(run)) or Path(run)
    record = rundir.read_record(made)
    learnt = record["settings"].get("objective")
    if learnt != "mlm":
        raise ValueError(f"{run}: a run of pretrain with objective=mlm is expected, its objective is {learnt}")
    masked, _ = checkpoints.with_head(AutoModelForMaskedLM, path, run)
    if not isinstance(masked, RobertaForMaskedLM):
        raise ValueError(f"{run}: a RoBERTa is expected, it is {masked.config.model_type}")
    head = {
        f"mlm.lm_head.{name}": value for name, value in masked.lm_head.named_parameters() if name != "decoder.weight"
    }  # tied
    checkpoints.restore(head, checkpoints.saved_heads(path), run)
    kept = {
        name: value
        for name, value in record.items()
        if name not in ("weights_sha256", "tables_sha256", "content_sha256")
    }
    with disk.whole_folder(folder) as part, checkpoints.quiet():
        masked.half().save_pretrained(part)
        checkpoints.from_pretrained(AutoTokenizer, path, run).save_pretrained(part)
        shutil.copyfile(made / "log.jsonl", part / "log.jsonl")
        disk.write_json(part / "record.json", kept | {"model_sha256": hub.sha256(part / "model.safetensors")})
    return Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m asutil.models.embedded", description=export.__doc__.splitlines()[0]
    )
    parser.add_argument("run", help="a finished run of pretrain with objective=mlm, by its name or folder")
    parser.add_argument(
        "--out", type=Path, default=hub.EMBEDDED_FOLDER, help="folder to write (default: the one in the package)"
    )
    given = parser.parse_args()
    folder = export(given.run, given.out)
    print(f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
