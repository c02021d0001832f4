"""Can the candidates of a joint input be told apart? Cosines between their slots, layer by layer, before any training.

Where all of them have one vector, any head gives all candidates of a question the same score.
"""

import logging

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize
from transformers import RobertaConfig

from asutil import heads
from asutil.data import answers
from asutil.inputs import batches, groups
from asutil.io import checkpoints
from asutil.models import joint, loading, pair
from asutil.models.scoring import evaluating

from . import measured as measuring
from .commands import argument, option

ONE_VECTOR = 0.999  # above this mean cosine slots count as one vector
EXAMPLES = 16  # inputs that are measured
POOLINGS = ("first", "mean")
RANDOM = "random"
FRESH_K, FRESH_SLOT = 5, 64  # candidates, and tokens of a slot at most, where a model has neither
COLLAPSED = (
    "the slots of an input are one vector (slot_pooling=%s: mean cosine %.4f after the last layer): until training separates them, "
    "all candidates of a question have one score; slot_pooling=mean or another backbone may help"
)
log = logging.getLogger(__name__)


@torch.no_grad()
def slot_cosines(model: joint.JointEncoder, batch: dict) -> pd.DataFrame:
    """Cosines between the embeddings E_i and E_j of two candidates of one input, after the embedding layer (0) and after each layer.

    Args:
        batch: a padded micro-batch of joint inputs; its first EXAMPLES are read, without dropout.
    Returns: a row a layer; for each pooling (first, mean) the mean and the least (`_least`) over all pairs of candidates.
    """
    if "attention_mask" not in batch:
        raise ValueError("a padded micro-batch is expected, got a packed one: give the batches layout='ordered'")
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "firsts")
    device = next(model.parameters()).device
    few = {name: batch[name][:EXAMPLES].to(device) for name in names}
    with evaluating(model, autocast=False):
        outputs = pair.outputs_of(model.backbone, model.placed(few), model.takes_types, output_hidden_states=True)
    rows = []
    for layer in outputs.hidden_states:
        hidden = layer.flatten(0, 1).float()
        vectors = {"first": hidden[few["firsts"].clamp(min=0)], "mean": joint.slot_means(hidden, few)}
        row = {}
        for pooling in POOLINGS:
            cosines = between(vectors[pooling][:, 1:], few["firsts"][:, 1:] >= 0)
            row |= {pooling: float(cosines.mean()), f"{pooling}_least": float(cosines.min())}
        rows.append(row)
    return pd.DataFrame(rows).rename_axis("layer")


def between(vectors: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    """Cosines of all pairs of different slots that are present in one input. Shapes: (B, S, H), (B, S) bool -> (pairs,)"""
    unit = normalize(vectors, dim=-1)
    pairs = (present[:, :, None] & present[:, None, :]).triu(1)
    return (unit @ unit.mT)[pairs]


def measured(model: pair.PairEncoder, batch: dict) -> pd.DataFrame | None:
    """`slot_cosines` of a model, with a warning where slots are one vector; None without slots or two candidates."""
    if not isinstance(model, joint.JointEncoder) or model.HEADS[0] not in heads.EVIDENCE:
        return None
    if ((batch["firsts"][:EXAMPLES, 1:] >= 0).sum(1) < 2).all():
        return None
    table, pooling = slot_cosines(model, batch), model.joint.pooling
    last = table[pooling].iloc[-1]
    if last > ONE_VECTOR:
        log.warning(COLLAPSED, pooling, last)
    return table


def figures(model: pair.PairEncoder, table: pd.DataFrame | None) -> dict:
    """The figures of `measured` for a run's record; none for a model without slots."""
    if table is None:
        return {}
    cosines = {name: table[name].round(6).tolist() for name in POOLINGS}
    return {"slot_cosines": cosines | {"pooling": model.joint.pooling}}


def joint_model(name: str, init: float | None = None, tokenizer=None):
    """A finished joint run as it is, or any backbone with fresh slot types: a hub id, a folder, a run, or RANDOM.

    Slots are shorter than FRESH_SLOT tokens where the backbone has fewer positions than they need.
    Args:
        init: standard deviation of fresh slot types; the backbone's initializer_range where it is left out.
        tokenizer: for RANDOM, the architecture of RoBERTa-Base with random weights.
    """
    if name == RANDOM:
        size = {"vocab_size": len(tokenizer), "max_position_embeddings": 514, "type_vocab_size": 1}
        config = RobertaConfig(**size, **loading.special_ids(tokenizer))
        model = loading.from_config(config, tokenizer, mlm=False)
    else:
        model = loading.load(name)
    if isinstance(model, joint.JointEncoder):
        return model
    slots = FRESH_K + 1
    slot_tokens = min(FRESH_SLOT, loading.longest_input(model.backbone, model.tokenizer) // slots)
    return joint.over(model, joint.shape(True, "ie_k", FRESH_K, slots * slot_tokens, "linear", "absolute", init=init))


def of(
    name: str, init: float | None = None, dataset: str = "pydocs", tokenizer=None
) -> tuple[joint.JointEncoder, pd.DataFrame]:
    """`slot_cosines` of any model (`joint_model`) on the first groups of a data set that fill all slots, and the model.

    >>> slot_cosines.of("sentence-transformers/all-MiniLM-L6-v2")[1]  # doctest: +SKIP
    """
    model = joint_model(name, init, tokenizer)
    k, slot_tokens = model.joint.k, model.joint.slot_tokens
    inputs = groups.Groups(model.tokenizer, answers.load_answers(dataset)["test"], k)
    members = inputs.members(np.arange(len(inputs)))
    members = members[(members >= 0).all(1)][:EXAMPLES]
    max_tokens = (k + 1) * slot_tokens
    joined = inputs.join(members, max_tokens)
    (batch,) = batches.micro_batches(joined, inputs.labels_of(members), inputs.template.pad, EXAMPLES * max_tokens)
    return model, slot_cosines(model, batch)


def record(names: list[str], inits: list[float], random: bool, dataset: str) -> dict:
    """The cosines of several models, each with slot types of every standard deviation; `random` adds one with random weights."""
    models, tokenizer = [], None
    for name in [*names, *[RANDOM] * random]:
        for init in inits:
            model, table = of(name, init, dataset, tokenizer)
            if any((one["model"], one["init"]) == (name, model.joint.init) for one in models):
                continue  # a finished joint run has slot types of its own
            tokenizer = tokenizer or model.tokenizer  # a model with random weights gets that of the first model
            config = model.backbone.config
            sizes = {"layers": config.num_hidden_layers, "hidden": config.hidden_size}
            described = {"model": name, "type": config.model_type, **sizes, "init": model.joint.init}
            described["weights_sha256"] = checkpoints.fingerprint_of_weights(None, model.backbone)
            models.append(described | {column: table[column].round(6).tolist() for column in table})
            print(f"\n{name}, standard deviation {model.joint.init}", table.round(4).to_string(), sep="\n")
    return {"dataset": dataset, "inputs": EXAMPLES, "between": "candidates", "models": models}


def numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


command = measuring.command(
    record,
    argument("names", "hub ids, folders or runs", nargs=-1, metavar="MODEL..."),
    option("--init inits", "standard deviations of fresh slot types", type=numbers, default="0.02", metavar="S,..."),
    option("--random", "also measure RoBERTa-Base with random weights", is_flag=True),
    option("--dataset", "data set whose test questions are read; pydocs is embedded", default="pydocs"),
    example="asutil slots FacebookAI/roberta-base --init 0.02,0.3 --dataset wikiqa",
)
