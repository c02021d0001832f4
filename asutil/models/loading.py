"""Loading and starting encoders under their own heads: BERT, RoBERTa, DistilBERT, DeBERTa, ELECTRA, ModernBERT and their like.

A backbone gives one vector a token, and its head reads these vectors alone. Others are refused by a trial pass when they are loaded.
"""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, RobertaConfig

from .. import heads, plugins
from ..corpus.tokenizers import load_tokenizer
from ..inputs import packing
from ..io import checkpoints
from . import classifiers, electra, settings
from . import joint as joint_models
from . import pair as pair_models
from .pair import PairEncoder, widen_types

COUNTED = 1 << 24  # tokens that are counted together
log = logging.getLogger(__name__)


def tiny(tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """A RoBERTa small enough to train from scratch in minutes on two CPU cores: 2 layers of 128, about 1.5 M parameters.

    Example:
        >>> from asutil.corpus.tokenizers import train_tokenizer
        >>> model = tiny(train_tokenizer(["a few words"], 300))
        >>> model.backbone.config.num_hidden_layers, model.fresh
        (2, ('pair', 'mlm'))
    """
    return _roberta(tokenizer, seed, mlm, num_hidden_layers=2, hidden_size=128, max_position_embeddings=514)


def mini(tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """The architecture of the embedded backbone, from scratch: 4 layers of 192, inputs of 256 tokens, about 3.4 M parameters.

    Example:
        >>> from asutil.corpus.tokenizers import train_tokenizer
        >>> mini(train_tokenizer(["a few words"], 300)).backbone.config.num_hidden_layers
        4
    """
    size = {"num_hidden_layers": 4, "hidden_size": 192, "max_position_embeddings": 258}
    # Without dropout: so small a model does not overfit, and a step takes half the time.
    return _roberta(tokenizer, seed, mlm, **size, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def _roberta(tokenizer, seed: int, mlm: bool, **size) -> PairEncoder:
    ids = special_ids(tokenizer)
    wide = {"num_attention_heads": 4, "intermediate_size": 4 * size["hidden_size"], "type_vocab_size": 1}
    return from_config(RobertaConfig(vocab_size=len(tokenizer), **wide, **size, **ids), tokenizer, seed, mlm)


def special_ids(tokenizer) -> dict[str, int]:
    """The special tokens that a config needs."""
    return {name: getattr(tokenizer, name) for name in ("bos_token_id", "pad_token_id", "eos_token_id")}


def from_config(config, tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """Any architecture with random weights; the weights of backbone and pair head do not depend on `mlm`."""
    with checkpoints.seeded(seed):
        pair = AutoModelForSequenceClassification.from_config(config)
        masked = AutoModelForMaskedLM.from_config(config) if mlm else None
    return _assemble(pair, masked, tokenizer, ("pair", "mlm") if mlm else ("pair",))


def load(
    name: str | Path,
    mlm: bool = False,
    keep_head: bool = True,
    seed: int = 0,
    generator: str | Path | None = None,
    members: int | None = None,
    joint: joint_models.Joint | bool = True,
) -> PairEncoder:
    """Load a backbone with its heads from a finished run, a folder or the hub, in float32 whatever it was stored in.

    Args:
        mlm: with the masked-language-model head, for pre-training; an ELECTRA discriminator with its generator and its
            token-detection head, as an `electra.ElectraEncoder`.
        keep_head: take the pair head that was saved with the backbone, also one of one logit (`classifiers.load`); False starts it anew.
        seed: of fresh heads; the model's `fresh` names those heads, and they are logged.
        generator: of an ELECTRA discriminator, where it is not the discriminator's own (`electra.load_heads`).
        members: how many pair heads, one for each objective of a union; those that were not saved begin as copies of the first.
            None: as many as were saved.
        joint: True: a `joint.JointEncoder` where one was saved; False: a pair model all the same; or the settings of one (`joint.shape`).
    Raises: FileNotFoundError for an unknown name; ValueError for an unfinished run, pickled or incomplete weights, a saved head of
        three classes or more, and a backbone that cannot be trained here.
    """
    path = checkpoints.source(name)
    with checkpoints.seeded(seed):
        classifier, fresh = classifiers.load(path, name, keep_head and isinstance(joint, bool))
        tokenizer = load_tokenizer(name)
        _check_tokenizer(name, tokenizer, classifier)
        kind = classifier.config.model_type
        if generator and not (mlm and kind == "electra"):
            raise ValueError(f"generator: only the pre-training of ELECTRA has one, {name} is {kind}")
        if mlm and kind == "electra":
            detection, masked, of_heads = electra.load_heads(name, path, tokenizer, generator)
            fresh_heads = tuple(head for head, is_fresh in of_heads.items() if is_fresh)
            classifier = classifier if keep_head else _with_fresh_head(classifier)
            model = electra.assembled(classifier, detection, masked, tokenizer, fresh_heads)
        else:
            model = load_pair(name, path, tokenizer, classifier, keep_head, mlm)
    score = lambda outputs, attention_mask: pair_models.pair_logits(model.pair, outputs, attention_mask)
    classifiers.require_trainable(name, model.backbone, score, tokenizer)
    if fresh or not keep_head:
        model.fresh = ("pair", *model.fresh)
    config = model.backbone.config
    saved = settings.kept(config, joint_models.Joint)
    settings.drop_all(config)
    if wanted := saved if joint is True else joint:
        if saved and keep_head:
            joint_models.check_head(saved, wanted, name)
        model = joint_models.over(model, wanted, seed)
    _restore_heads(name, model, checkpoints.saved_heads(path), keep_head, members)
    if model.fresh:
        plural = "s" * (len(model.fresh) > 1)
        log.warning("%s: fresh weights (seed %d) for the head%s %s", name, seed, plural, ", ".join(model.fresh))
    return model


def load_pair(name, path, tokenizer, classifier, keep_head: bool, mlm: bool) -> PairEncoder:
    """A classifier's backbone under its pair head and, with mlm, the saved masked-language-model head."""
    masked, fresh = checkpoints.with_head(AutoModelForMaskedLM, path, name) if mlm else (None, False)
    classifier = classifier if keep_head else _with_fresh_head(classifier)
    model = _assemble(classifier, masked, tokenizer, ("mlm",) if fresh else ())
    if fresh:
        _near_uniform(masked, model.backbone)
    return model


def _with_fresh_head(classifier: nn.Module) -> nn.Module:
    backbone = pair_models.take_backbone(classifier)
    fresh = AutoModelForSequenceClassification.from_config(backbone.config)
    setattr(fresh, fresh.base_model_prefix, backbone)
    return fresh


def _check_tokenizer(name, tokenizer, classifier: nn.Module) -> None:
    known = classifier.get_input_embeddings().num_embeddings
    beyond = [token for token in tokenizer.all_special_tokens if tokenizer.convert_tokens_to_ids(token) >= known]
    if beyond:
        came = f"{beyond[0]!r} is beyond {known:,} embeddings"
        raise ValueError(f"{name}: its tokenizer has tokens that the model does not know: {came}")
    if classifier.config.pad_token_id is None:  # RoBERTa's positions are counted by it
        raise ValueError(
            f"{name}: config.json has no pad_token_id, its tokenizer pads with {tokenizer.pad_token_id}: write that into it"
        )


def _restore_heads(name, model: PairEncoder, saved: dict, keep_head: bool, members: int | None) -> None:
    """Copy the saved heads into those that the model has, and add a pair head for each further member of a union."""
    scorer = model.HEADS[0]
    saved_names = {key.split(".")[0] for key in saved}
    known = [head for head in model.HEADS if head in saved_names and getattr(model, head) is not None]
    restored = [head for head in known if keep_head or head != scorer]
    further = {head for head in saved_names if head.removeprefix("pair_").isdigit()}
    for head in restored:
        checkpoints.restore(model.head_parameters(head), saved, name)
    model.give_members(1 + len(further) if members is None else members)
    for head in further & set(model.HEADS) if keep_head else ():
        checkpoints.restore(model.head_parameters(head), saved, name)
    if left := sorted(further - set(model.HEADS)):
        log.warning("%s: it learnt one pair head an objective; the first is taken, not %s", name, ", ".join(left))
    model.fresh = tuple(head for head in model.fresh if head not in restored)


MADE_HERE = {"tiny": tiny, "tiny_electra": electra.tiny, "mini": mini}
MADE_HERE["pydocs_electra"] = lambda *given: plugins.pydocs("backbone").electra_pair(*given)


def start_from(
    name: str | Path,
    tokenizer,
    max_tokens: int,
    seed: int = 0,
    mlm: bool = False,
    keep_head: bool = True,
    generator: str | None = None,
    context: bool = False,
    members: int = 1,
    joint: joint_models.Joint | None = None,
) -> PairEncoder:
    """The model that a run starts from: one of MADE_HERE with this tokenizer, or any other name as from `load`.

    Args:
        context: examples have three parts: a table of fewer than 3 token types is replaced by a fresh one (`widen_types`).
        members: pair heads, one for each objective of a union; 1 is a shared head, the first one of a run that has more.
        joint: the settings of a joint model (`joint.shape`); None: a pair model, even from the backbone of a joint one.
    Raises: ValueError for inputs longer than the model reads, or a context for a backbone without token types, before any training.
    """
    if name in MADE_HERE:
        if generator:
            raise ValueError(f"generator: {name} has its own, got {generator}")
        model = MADE_HERE[name](tokenizer, seed, mlm)
        model = joint_models.over(model, joint, seed) if joint else model
        model.give_members(members)
    else:
        model = load(name, mlm, keep_head, seed, generator, members, joint or False)
    if context and widen_types(model, seed=seed):
        log.warning("%s: a fresh table (seed %d) of 3 token types: question, candidate, context", name, seed)
    if context or model.parts == 3:
        settings.keep_parts(model.backbone.config, 3 if context else 2)
    check_length(model, max_tokens)
    return model


def usual_length(model: PairEncoder) -> int:
    """The default length of a model's longest input: for a joint model the length of its slots together."""
    if model.joint and model.joint.head in heads.EVIDENCE:
        return (model.joint.k + 1) * model.joint.slot_tokens
    return {2: 128, 3: 256}[model.parts]


def longest_input(backbone: nn.Module, tokenizer) -> int:
    """The most tokens that a backbone reads: the number of its positions, or the limit of its tokenizer."""
    config = backbone.config
    positions = getattr(config, "max_encoder_position_embeddings", None) or 0
    if positions <= 0:
        positions = getattr(config, "max_position_embeddings", None) or 0
    if positions <= 0:
        return tokenizer.model_max_length
    return min(tokenizer.model_max_length, positions - packing.first_position(backbone))


def check_length(model: PairEncoder, max_tokens: int) -> None:
    """Refuse inputs longer than the model reads, or too short for their parts."""
    longest = min(longest_input(backbone, model.tokenizer) for backbone in model.backbones)
    alone, pair = (model.tokenizer.num_special_tokens_to_add(pair=pair) for pair in (False, True))
    shortest = alone + (model.parts - 1) * (pair - alone) + model.parts
    if model.joint and model.joint.head in heads.EVIDENCE:
        shortest = (model.joint.k + 1) * (alone + 1)
        longest -= longest % (model.joint.k + 1)
        if max_tokens != usual_length(model):
            raise ValueError(
                f"max_tokens: {usual_length(model)}, the length of this joint model's slots, expected, got {max_tokens}"
            )
    if not shortest <= max_tokens <= longest:
        raise ValueError(f"max_tokens: {shortest} to {longest} for this model, got {max_tokens}")


@torch.no_grad()
def start_at_unigrams(model: PairEncoder, tokens) -> bool:
    """Let a fresh masked-language-model head begin with the token frequencies of the corpus, the best guess without any input.

    b_v = log((n_v + 1) / (N + V)),  n_v of the N tokens are v, V is the size of the vocabulary
    A head with saved weights is not changed.
    Args:
        tokens: ids of the corpus (N,), as in `Corpus.tokens`; they are counted in blocks.
    Returns: whether the biases were set.
    Deviation: D-73.
    """
    if model.masked is None or "mlm" not in model.fresh:
        return False
    output = model.masked.get_output_embeddings()
    counts = torch.ones(len(output.bias), dtype=torch.float64)
    for start in range(0, len(tokens), COUNTED):
        block = np.asarray(tokens[start : start + COUNTED]).astype(np.int64)
        counts += torch.from_numpy(np.bincount(block, minlength=len(counts)))
    output.bias.copy_((counts / counts.sum()).log())
    return True


@torch.no_grad()
def _near_uniform(masked: nn.Module, backbone: nn.Module) -> None:
    """Let a fresh masked-language-model head on trained embeddings begin with nearly equal guesses, like one on fresh embeddings.

    Embeddings that were trained for another task can be much larger than fresh ones: the loss then begins far above that of a guess,
    and its gradient is much larger than the objective's.
    """
    norms = [module for module in masked.modules() if isinstance(module, nn.LayerNorm)]
    if norms:
        size = float(backbone.get_input_embeddings().weight.std())
        norms[-1].weight.mul_(min(1.0, backbone.config.initializer_range / size))


def _assemble(pair, masked, tokenizer, fresh=()) -> PairEncoder:
    backbone = pair_models.take_backbone(pair)
    if masked is not None:
        pair_models.share_embeddings(masked, backbone)
        pair_models.take_backbone(masked)
    return PairEncoder(backbone, pair, masked, tokenizer, fresh)
