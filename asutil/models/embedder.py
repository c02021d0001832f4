"""A text as one vector: a backbone and a pooling, as it is or trained as a siamese or a triplet network."""

import contextlib
import inspect
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from torch import nn
from transformers import AutoModel

from .. import losses
from ..corpus import index, tokenizers
from ..corpus.tokenizing import tokenized
from ..heads.siamese import Siamese
from ..inputs import batches, pairs
from ..inputs.batches import TOKENS_ON_CPU, TOKENS_ON_GPU
from ..inputs.template import Template
from ..io import checkpoints, files, hub, spelling
from . import loading, scoring, settings

POOLINGS = ("mean", "cls", "max")
ARCHITECTURES = ("siamese", "triplet", "untrained")
DISTANCES = ("squared", "plain")
USUAL_TOKENS = 128  # the longest text of an untrained backbone
WINDOW = 1 << 14  # texts that are tokenised and ordered by length together; it bounds the memory
log = logging.getLogger(__name__)


def pooled(
    hidden: torch.Tensor, real: torch.Tensor, pooling: str = "mean", first: torch.Tensor | None = None
) -> torch.Tensor:
    """One vector a text from those of its tokens, in float32 at least.

    mean: (1 / |T|) sum_t h_t over the real tokens t, special ones included;  max: max_t h_t, elementwise;  cls: h_c of the class token c
    Paper: asbert, section 3 (layer P1 of figure 1).
    Shapes: hidden (B, T, H), real (B, T) bool -> (B, H)
    Args:
        first: the position of each text's class token (B,), for "cls".
    Deviation: D-83.

    Example:
        >>> hidden = torch.tensor([[[1.0], [4.0], [9.0]]])
        >>> real = torch.tensor([[True, True, False]])
        >>> [pooled(hidden, real, pooling, torch.tensor([0])).item() for pooling in ("mean", "max", "cls")]
        [2.5, 4.0, 1.0]
    """
    spelling.require_one_of("pooling", pooling, POOLINGS)
    hidden = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
    if pooling == "cls":
        return hidden[torch.arange(len(hidden), device=hidden.device), first]
    if pooling == "max":
        return hidden.masked_fill(~real[..., None], -torch.inf).amax(1)
    return (hidden * real[..., None]).sum(1) / real.sum(1, keepdim=True)


@dataclass(frozen=True)
class Embedding:
    """The settings of an embedder, as from `settings_of`."""

    architecture: str
    pooling: str | None
    max_tokens: int | None
    margin: float | None = None
    distance: str | None = None
    selection: str | None = None
    rank_by: str | None = None  # written by an export where it is not the architecture's usual one
    optional: ClassVar = ("rank_by",)


class Embedder(nn.Module):
    """The encoding function g of ASBERT: a language model and a pooling, which all texts of an example share.

    Paper: asbert, section 3 and figure 1.
    Shapes: for each text of an example a padded table of ids (B, T) -> vectors (B, H)
    """

    def __init__(self, backbone: nn.Module, tokenizer, embedding: Embedding, fresh: tuple[str, ...] = ()):
        super().__init__()
        if getattr(backbone, "pooler", None) is not None:
            backbone.pooler = None  # the pooling is our own, and AutoModel's pooler is random where none was saved
        self.backbone, self.tokenizer, self.fresh = backbone, tokenizer, fresh
        self.embedding = embedding
        settings.keep(backbone.config, embedding)
        self.siamese = Siamese(self.dimensions) if embedding.architecture == "siamese" else None
        self.template = Template.of(tokenizer, 1)
        self._takes_types = "token_type_ids" in inspect.signature(backbone.forward).parameters

    @property
    def dimensions(self) -> int:
        return self.backbone.config.hidden_size

    @property
    def parameters_learnt(self) -> int:
        """The number of parameters that determine the vectors."""
        return sum(parameter.numel() for parameter in self.backbone.parameters())

    @property
    def identity(self) -> str:
        """A hash of everything that determines the vectors; `rank_by` changes none."""
        config = self.backbone.config.to_dict()
        config = {key: config[key] for key in config if key not in ("_name_or_path", "transformers_version")}
        config["embedding"] = {key: value for key, value in config["embedding"].items() if key != "rank_by"}
        return checkpoints.fingerprint_of_weights([config, index.tokenizer_hash(self.tokenizer)], self.backbone)

    @property
    def device(self) -> torch.device:
        return next(self.backbone.parameters()).device

    def vectors(self, texts: dict) -> torch.Tensor:
        """The vectors of a padded table of texts. Shapes: input_ids, attention_mask (B, T) -> (B, H)"""
        names = ["input_ids", "attention_mask", *["token_type_ids"] * self._takes_types]
        hidden = self.backbone(**{name: texts[name] for name in names if name in texts}).last_hidden_state
        classes = None
        if self.embedding.pooling == "cls":
            classes = (texts["input_ids"] == self.tokenizer.cls_token_id).int().argmax(1)  # XLNet's is at the end
        with torch.autocast(hidden.device.type, enabled=False):
            return pooled(hidden, texts["attention_mask"].bool(), self.embedding.pooling, classes)

    def forward(self, batch: dict) -> tuple[torch.Tensor, ...]:
        """The vectors of the questions, and of the other texts of each example: candidates, or positives and negatives."""
        questions, others = self.vectors(batch["questions"]), self.vectors(batch["candidates"])
        return questions, *others.split(len(questions))

    def loss_weights(self, options=None) -> dict[str, float]:
        """The weight of the loss's only part; there is no masked language modelling."""
        return {"objective": 1.0}

    def losses(self, vectors: tuple[torch.Tensor, ...], micro: dict, batch: dict) -> torch.Tensor:
        """A micro-batch's share of the loss of its optimiser batch. Shapes: -> (1,)"""
        if self.siamese is not None:
            return losses.siamese(self.siamese(*vectors), micro["labels"], batch["examples"])[None]
        margin, squared = self.embedding.margin, self.embedding.distance == "squared"
        return losses.triplet(*vectors, margin, squared, self.embedding.selection)[None]

    def encode(self, texts: list[str]) -> np.ndarray:
        """The vectors of some texts, row by row, batched by length. Shapes: N texts -> (N, H) float32"""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        with scoring.evaluating(self) as device:
            for start in range(0, len(texts), WINDOW):
                window = texts[start : start + WINDOW]
                on_device = torch.empty(len(window), self.dimensions, device=device)
                for micro in self._padded(window, device):
                    micro = scoring.moved(micro, device)
                    on_device[micro["labels"]] = self.vectors(micro)
                vectors[start : start + WINDOW] = on_device.cpu().numpy()
        return vectors

    def _padded(self, texts: list[str], device) -> list[dict]:
        """Padded tables of the texts, ordered by length; the texts' numbers take the place of labels."""
        micro_tokens = TOKENS_ON_GPU if device.type == "cuda" else TOKENS_ON_CPU
        tokens, lengths = tokenized(self.tokenizer.backend_tokenizer, texts)
        tokens = np.append(tokens, 0)  # where no text has a token, there is still something to read from
        longest = self.embedding.max_tokens
        scoring.tell_cut(self, lengths + self.template.added > longest, longest, "texts")
        starts = lengths.cumsum() - lengths
        joined = pairs.join_texts(tokens, starts, lengths, self.template, self.embedding.max_tokens)
        return batches.micro_batches(joined, np.arange(len(texts)), self.template.pad, micro_tokens)

    def save(self, folder: str | Path) -> Path:
        """Write backbone (loads with AutoModel), head and tokenizer, all of it or nothing; sentence-transformers can load the folder."""
        heads = None if self.siamese is None else checkpoints.parameters_of(self, ["siamese"])
        return checkpoints.save_model(folder, self, heads, self._for_sentence_transformers)

    def _for_sentence_transformers(self, folder: Path) -> None:
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        names = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
        pooling = {name: self.embedding.pooling == kind for kind, name in names.items()}
        contents = {
            "modules.json": modules,
            "sentence_bert_config.json": {"max_seq_length": self.embedding.max_tokens},
            "1_Pooling/config.json": {"word_embedding_dimension": self.dimensions} | pooling,
        }
        for name, content in contents.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def settings_of(
    architecture: str,
    pooling: str | None,
    max_tokens: int,
    margin=None,
    distance=None,
    selection=None,
    encoder="transformer",
    **training,
) -> Embedding:
    """The settings of an embedder: its network, pooling and longest input; for a triplet network margin, distance and selection.

    Args:
        encoder: "transformer", which is trained and has a choice of pooling, or an encoder of `elsewhere`.
        training: parameters of the training by name; they must be None for an untrained encoder.
    Raises: ValueError for an unknown value, or one that only another network or encoder has.
    """
    if encoder != "transformer" and (architecture, pooling) != ("untrained", None):
        expected = "architecture=untrained and no pooling expected"
        raise ValueError(f"{encoder} is taken as it is: {expected}, got {architecture} and {pooling}")
    if architecture == "untrained" and (excess := _names_with_value(training)):
        raise ValueError(f"{excess}: nothing is trained (architecture=untrained)")
    triplet = {"margin": margin, "distance": distance, "selection": selection}
    if architecture == "triplet":
        if margin is None or margin < 0:
            raise ValueError(f"margin: at least 0 expected, got {margin}")
        spelling.require_one_of("distance", distance, DISTANCES)
        spelling.require_one_of("selection", selection, losses.SELECTIONS)
    elif excess := _names_with_value(triplet):
        reason = "only the triplet network has one (architecture=triplet)"
        raise ValueError(f"{excess}: {reason}, got architecture={architecture}")
    spelling.require_one_of("architecture", architecture, ARCHITECTURES)
    if encoder == "transformer":
        spelling.require_one_of("pooling", pooling, POOLINGS)
    return Embedding(architecture, pooling, max_tokens, **triplet)


def _names_with_value(options: dict) -> str:
    return ", ".join(name for name, value in options.items() if value is not None)


def start_from(name: str | Path, tokenizer, embedding: Embedding, seed: int = 0) -> Embedder:
    """The model that a run starts from: one of `loading.MADE_HERE` with this tokenizer, or a backbone from a run, a folder or the hub.

    Args:
        seed: of fresh weights; the model's `fresh` names them.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled or incomplete weights, or inputs longer than the model reads.
    """
    path = checkpoints.source(name)
    fresh = ("siamese",) if embedding.architecture == "siamese" else ()
    if name in loading.MADE_HERE:
        backbone = loading.MADE_HERE[name](tokenizer, seed, False).backbone
        fresh = fresh if name in hub.EMBEDDED else ("backbone", *fresh)
    else:
        backbone, _ = checkpoints.with_head(AutoModel, path, name)
        _warn_of_other_reading(path, name, embedding)
    shortest = tokenizer.num_special_tokens_to_add(pair=False) + 1
    longest = loading.longest_input(backbone, tokenizer)
    if embedding.max_tokens is None:
        embedding = replace(embedding, max_tokens=min(USUAL_TOKENS, longest))
    if not shortest <= embedding.max_tokens <= longest:
        raise ValueError(f"max_tokens: {shortest} to {longest} for this model, got {embedding.max_tokens}")
    if embedding.pooling == "cls" and tokenizer.cls_token_id is None:
        raise ValueError(f"{name} has no class token for pooling=cls: take mean or max")
    former = settings.kept(backbone.config, Embedding)
    with checkpoints.seeded(seed):
        model = Embedder(backbone, tokenizer, embedding, fresh)
    if model.siamese is not None and former and former.architecture == "siamese":
        checkpoints.restore(checkpoints.parameters_of(model, ["siamese"]), checkpoints.saved_heads(path), name)
        model.fresh = ()
    if model.fresh:
        log.warning("%s: fresh weights (seed %d) for %s", name, seed, ", ".join(model.fresh))
    return model


def _warn_of_other_reading(path: str | Path, name, embedding: Embedding) -> None:
    """Say where a model of sentence-transformers is read otherwise than it was trained: it begins far worse, then."""
    trained = _settings_of(path, "1_Pooling/config.json")
    old = [
        key.partition("_mode_")[2].partition("_token")[0] for key in trained if "_mode_" in key and trained[key] is True
    ]
    modes = {*np.atleast_1d(trained.get("pooling_mode", old)).tolist()}
    if modes - {embedding.pooling}:
        trained_with = "+".join(sorted(modes))
        log.warning(
            "%s was trained with pooling=%s, and is read with pooling=%s", name, trained_with, embedding.pooling
        )
    prompts = _settings_of(path, "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict) and any(prompts.values()):
        advice = "; encoder=sentence_transformer reads them" * (embedding.architecture == "untrained")
        log.warning("%s has prompts, and is read without them%s", name, advice)


def _settings_of(path: str | Path, name: str) -> dict:
    """A file of settings of a folder, or of a model of the hub; {} where it has none."""
    file = Path(path) / name
    if not Path(path).is_dir():
        with contextlib.suppress(EntryNotFoundError, OSError):
            file = Path(hf_hub_download(str(path), name))
    return files.json_object(file) if file.is_file() else {}


def untrained(name: str | Path, max_tokens: int | None = None, device: str | None = None) -> Embedder:
    """An untrained backbone under mean pooling, ready to encode.

    Args:
        max_tokens: the longest text; default: USUAL_TOKENS, or fewer where the backbone has fewer positions.
    Deviation: D-115.
    """
    model = start_from(name, tokenizers.load_tokenizer(name), settings_of("untrained", "mean", max_tokens))
    return model.to(device or scoring.device()).eval()


def load(name: str | Path, device: str | None = None) -> Embedder:
    """A trained embedder, from a finished run or a folder, ready to encode. Its `rank_by` is that of the run.

    Raises: ValueError for a model that was not trained as one.
    """
    path = checkpoints.source(name)
    embedding = settings.saved(path, Embedding)
    if embedding is None:
        raise ValueError(f"{name} was not trained to embed (no `embedding` in config.json): see notebooks/embed.ipynb")
    if (saved := checkpoints.saved_model(path)) and saved.rank_by:
        embedding = replace(embedding, rank_by=saved.rank_by)
    model = start_from(name, tokenizers.load_tokenizer(name), embedding)
    return model.to(device or scoring.device()).eval()
