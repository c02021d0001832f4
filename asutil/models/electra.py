"""ELECTRA: a generator replaces masked tokens by plausible ones, a discriminator finds them and solves the objective."""

import re
from pathlib import Path

import torch
import transformers
from torch import nn

from ..io import checkpoints
from . import pair as pair_models
from .pair import PairEncoder

GENERATOR = "generator"  # its folder in that of a saved discriminator
TIED = ("word_embeddings", "position_embeddings", "token_type_embeddings")


class ElectraEncoder(PairEncoder):
    """Generator and discriminator; the discriminator is `backbone`, under its own pair head and its own token-detection head.

    x_i ~ softmax(G(masked tokens)_i) at masked positions i, without gradient; the discriminator reads the tokens with x at these positions
    L = w_mlm L_mlm(G) + w_detection L_detection(D) + w_objective L_pair(D's first token),  weights 1 : 50 : 1
    Paper: sentence_objectives, section 5.1 and appendix B.
    Shapes: input_ids, attention_mask (B, T); masked_positions, masked_targets (M,) -> pair logits (B, C), the generator's MLM logits
        (M, V), and (detection logits, replaced, real) (B, T), packed (1, N); without masked_positions -> pair logits and None
    """

    HEADS = ("pair", "detection")

    def __init__(self, backbone, pair, detection, generator, tokenizer, fresh=()):
        super().__init__(backbone, pair, None, tokenizer, fresh)
        self.detection = detection
        self.generator = generator
        self.generator_takes_types = pair_models.takes_types(generator.base_model)

    def forward(self, batch: dict):
        if "masked_positions" not in batch:
            return super().forward(batch)
        positions = batch["masked_positions"]
        outputs = pair_models.outputs_of(self.generator.base_model, batch, self.generator_takes_types)
        hidden = outputs.last_hidden_state.flatten(0, 1)[positions]
        mlm = self.generator.generator_lm_head(self.generator.generator_predictions(hidden))
        input_ids, replaced = substitute(batch["input_ids"], positions, sampled(mlm), batch["masked_targets"])
        read = batch | {"input_ids": input_ids}
        outputs = pair_models.outputs_of(self.backbone, read, self.takes_types, self.compiled)
        detection = self.detection(inputs_embeds=outputs).logits
        return self.pair_of(outputs, batch), mlm, (detection, replaced, real_tokens(batch))

    def loss_weights(self, options) -> dict[str, float]:
        return super().loss_weights(options) | {"detection": options.detection_weight}

    def add_files(self, folder: Path) -> None:
        """Write the generator, in a folder of its own that AutoModelForMaskedLM loads."""
        self.generator.save_pretrained(folder / GENERATOR)


def sampled(logits: torch.Tensor) -> torch.Tensor:
    """One token a row, drawn from softmax(logits) with torch's random numbers, without gradient.

    argmax_v logits_v - log e_v,  e_v ~ Exp(1)
    Shapes: logits (M, V) -> (M,)

    Example:
        >>> sampled(torch.tensor([[0.0, 99.0, 0.0], [99.0, 0.0, 0.0]])).tolist()
        [1, 0]
    """
    logits = logits.detach().float()
    return (logits - torch.empty_like(logits).exponential_().log_()).argmax(-1)


def substitute(input_ids, positions, tokens, originals) -> tuple[torch.Tensor, torch.Tensor]:
    """The discriminator's input, and where it differs from the original text.

    Shapes: input_ids (B, T), positions (M,) into B*T, tokens, originals (M,) -> ids (B, T), replaced (B, T) bool

    Example:
        >>> substitute(torch.tensor([[5, 4, 4, 8]]), torch.tensor([1, 2]), torch.tensor([6, 9]), torch.tensor([6, 7]))
        (tensor([[5, 6, 9, 8]]), tensor([[False, False, True, False]]))
    """
    ids = input_ids.flatten().index_put((positions,), tokens)
    replaced = torch.zeros_like(ids, dtype=torch.bool).index_put((positions,), tokens != originals)
    return ids.view_as(input_ids), replaced.view_as(input_ids)


def real_tokens(batch: dict) -> torch.Tensor:
    """Which tokens of a micro-batch are not padding: (B, T), packed (1, N)."""
    if "cu_seq_lens" not in batch:
        return batch["attention_mask"].bool()
    row = batch["input_ids"]
    return torch.arange(row.shape[1], device=row.device)[None] < batch["cu_seq_lens"][len(batch["first"])]


def tie(generator: nn.Module, backbone: nn.Module) -> None:
    """Tie the generator's embeddings to the discriminator's: of tokens, and of positions and token types where their shapes agree.

    Paper: sentence_objectives, section 5.1 (its ELECTRA is that of Clark et al. 2020, whose section 3.2 ties them).
    Raises: ValueError where the vocabularies or the sizes of the token embeddings differ.
    """
    expected, shape = (tuple(model.get_input_embeddings().weight.shape) for model in (backbone, generator))
    if expected != shape:
        reason = "generator and discriminator share token embeddings"
        raise ValueError(f"{reason}: (vocabulary, size) {expected} expected, got {shape}")
    pair_models.share_embeddings(generator, backbone)
    for name in TIED:
        own, shared = (getattr(model.embeddings, name) for model in (generator.base_model, backbone))
        if own.weight.shape == shared.weight.shape:
            own.weight = shared.weight


def assembled(pair, detection, generator, tokenizer, fresh=()) -> ElectraEncoder:
    """One model from whole models for classification, token detection and masked language modelling."""
    backbone = pair_models.take_backbone(pair)
    pair_models.take_backbone(detection)
    tie(generator, backbone)
    return ElectraEncoder(backbone, pair, detection, generator, tokenizer, fresh)


def tiny(tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """A pair of 2 layers each, small enough to train from scratch on two CPU cores: 128 and 32 units, some 1.6 M parameters in all.

    Args:
        mlm: with the generator and the token-detection head; the discriminator does not depend on it.

    Example:
        >>> from asutil.corpus.tokenizers import train_tokenizer
        >>> model = tiny(train_tokenizer(["a few words"], 300))
        >>> model.generator.config.hidden_size, model.backbone.config.hidden_size, model.fresh
        (32, 128, ('pair', 'mlm', 'detection'))
    """
    shared = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    shared |= {"embedding_size": 128, "num_hidden_layers": 2}
    config = transformers.ElectraConfig(**shared, hidden_size=128, num_attention_heads=4, intermediate_size=512)
    with checkpoints.seeded(seed):
        pair = transformers.AutoModelForSequenceClassification.from_config(config)
        if not mlm:
            return PairEncoder(pair_models.take_backbone(pair), pair, None, tokenizer, ("pair",))
        detection = transformers.AutoModelForPreTraining.from_config(config)
        narrow = transformers.ElectraConfig(**shared, hidden_size=32, num_attention_heads=1, intermediate_size=128)
        generator = transformers.AutoModelForMaskedLM.from_config(narrow)
    return assembled(pair, detection, generator, tokenizer, ("pair", "mlm", "detection"))


def load_heads(
    name, path: str, tokenizer, generator: str | Path | None = None
) -> tuple[nn.Module, nn.Module, dict[str, bool]]:
    """The models that a discriminator needs for pre-training: token detection, the generator, and which of their heads are fresh.

    Args:
        name, path: of the discriminator; path as from `checkpoints.source`.
        generator: hub id, folder or run. None: the one that was saved with the discriminator, else the hub id with `-generator` for
            `-discriminator`.
    Raises: FileNotFoundError for an unknown name; ValueError for an absent generator, or one of another kind or vocabulary.
    """
    source = checkpoints.source(generator) if generator else path
    own_folder = Path(source) / GENERATOR
    if generator and (not Path(source).is_dir() or (Path(source) / "tokenizer.json").is_file()):
        theirs = checkpoints.from_pretrained(transformers.AutoTokenizer, source, generator)
        if theirs.get_vocab() != tokenizer.get_vocab():
            raise ValueError(f"generator {generator} has another vocabulary than {name}: its tokens are other words")
    if own_folder.is_dir():
        generator_name, generator_path = f"{generator or name}/{GENERATOR}", str(own_folder)
    elif generator:
        generator_name, generator_path = generator, source
    else:
        generator_name = re.sub(r"-discriminator(?=[^/]*$)", "-generator", str(name))
        if generator_name == str(name):
            raise ValueError(f"{name} comes without its generator: name one (`generator`: a hub id, a folder or a run)")
        generator_path = checkpoints.source(generator_name)
    masked, fresh_mlm = checkpoints.with_head(transformers.AutoModelForMaskedLM, generator_path, generator_name)
    if masked.config.model_type != "electra":
        raise ValueError(f"generator: an ELECTRA model expected, {generator_name} is {masked.config.model_type}")
    detection, fresh_detection = checkpoints.with_head(transformers.AutoModelForPreTraining, path, name)
    return detection, masked, {"mlm": fresh_mlm, "detection": fresh_detection}
