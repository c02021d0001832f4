"""Sequence classifiers of others as pair heads of two logits, of which class 1 is "answers the question"."""

import logging

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification

from ..io import checkpoints
from ..io.spelling import printable

CLASSES = 2
# Names of the class "answers the question", without case, "_", "-" and spaces; its opposite begins with one of OPPOSITE.
ANSWERS = ("entailment", "entailed", "relevant", "yes", "true", "answer", "answerable", "positive", "correct", "right")
ANSWERS += ("duplicate", "paraphrase", "equivalent", "match", "related", "similar", "supported", "supports")
OPPOSITE = ("not", "non", "no", "un", "ir", "in", "mis", "dis")
OTHER_PAIRS = {("yes", "no"), ("true", "false"), ("positive", "negative"), ("right", "wrong"), ("correct", "wrong")}
OTHER_PAIRS |= {("entailment", "contradiction"), ("related", "unrelated"), ("supports", "refutes")}
UNNAMED = (("label0", "label1"), ("0", "1"))
TRIAL = (["Where?", "Where is it?"], ["There.", "By the river, is it not?"])  # questions and candidates
TRAINABLE = "BERT, RoBERTa, XLM-RoBERTa, DistilBERT, DeBERTa, ELECTRA or ModernBERT"
log = logging.getLogger(__name__)


def answering_class(config, name) -> int:
    """Which of two classes means "answers the question", by the names in config.json; 1 where they have no names.

    Names that are not known are logged with what is assumed.
    """
    names = [str(config.id2label.get(number, number)) for number in range(CLASSES)]
    first, second = ("".join(letter for letter in name.casefold() if letter not in "_- ") for name in names)
    if _answers(first, second):
        return 0
    if not _answers(second, first) and (first, second) not in UNNAMED:
        log.warning(
            "%s: its two classes are %r and %r; the second is assumed to mean that a candidate answers the question",
            *map(printable, (str(name), *names)),
        )
    return 1


def _answers(positive: str, negative: str) -> bool:
    opposites = {prefix + positive for prefix in OPPOSITE} if positive in ANSWERS else set()
    return negative in opposites or (positive, negative) in OTHER_PAIRS


def last_layer(model: nn.Module, classes: int) -> tuple[str, nn.Linear] | None:
    """The name and the module of the linear layer that gives the logits of a classifier; None where there is none."""
    layers = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return next((layer for layer in reversed(layers) if layer[1].out_features == classes), None)


def load(path, name, keep_head: bool = True) -> tuple[nn.Module, bool]:
    """A classifier of two logits from a folder or the hub, and whether its head is fresh; a saved head keeps its meaning.

    Two logits whose class 0 means "answers the question": the rows change places.
    One logit z = w x + b: rows -w/2 and w/2, biases -b/2 and b/2, whose difference is z.
    Args:
        keep_head: whether a saved head is wanted; else the head is of no account.
    Raises: ValueError for a saved head of another form.
    """
    model, fresh = checkpoints.with_head(AutoModelForSequenceClassification, path, name, num_labels=CLASSES)
    config = checkpoints.from_pretrained(AutoConfig, path, name)
    classes = getattr(config, "num_labels", CLASSES)
    if keep_head and fresh and classes != CLASSES:
        whole, no_head = checkpoints.with_head(AutoModelForSequenceClassification, path, name, num_labels=classes)
        if not no_head:
            return _of_two_logits(whole, classes, name), False
    if keep_head and not fresh and answering_class(config, name) == 0:
        _exchange_rows(model, name)
    model.config.id2label = {number: f"LABEL_{number}" for number in range(CLASSES)}
    model.config.label2id = {label: number for number, label in model.config.id2label.items()}
    return model, fresh


def _of_two_logits(model: nn.Module, classes: int, name) -> nn.Module:
    layer = last_layer(model, classes)
    if classes != 1 or layer is None:
        raise ValueError(
            f"{name}: its trained head has {classes} logits; one that ranks has 1 or 2: keep_head=False starts a new one"
        )
    place, single = layer
    double = nn.Linear(single.in_features, CLASSES, bias=single.bias is not None)
    with torch.no_grad():
        double.weight.copy_(torch.cat([-single.weight, single.weight]) / 2)
        if single.bias is not None:
            double.bias.copy_(torch.cat([-single.bias, single.bias]) / 2)
    model.set_submodule(place, double)
    model.num_labels = model.config.num_labels = CLASSES
    return model


@torch.no_grad()
def _exchange_rows(model: nn.Module, name) -> None:
    layer = last_layer(model, CLASSES)
    if layer is None:
        raise ValueError(f"{name}: its class 0 means an answer, and its head has no last layer to exchange the two")
    for parameter in layer[1].parameters():
        parameter.copy_(parameter.flip(0))


@torch.no_grad()
def require_trainable(name, backbone: nn.Module, score, tokenizer) -> None:
    """One forward pass of two made-up pairs: what cannot be trained here is refused before any work.

    Args:
        score: (outputs of the backbone, attention_mask) -> logits (2, C).
    Raises: ValueError naming the architecture, and which can be trained.
    """
    if any(parameter.is_meta for parameter in backbone.parameters()):
        return
    training = [module for module in backbone.modules() if module.training]
    try:
        batch = tokenizer(*TRIAL, padding=True, return_tensors="pt")
        backbone.eval()
        with checkpoints.quiet(), checkpoints.seeded(0):
            outputs = backbone(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            logits = score(outputs, batch["attention_mask"])
        if logits.shape != (len(TRIAL[0]), CLASSES):
            raise ValueError(f"logits {tuple(logits.shape)}")
        first = {
            key: batch[key][:1, : int(batch["attention_mask"][0].sum())] for key in ("input_ids", "attention_mask")
        }
        with checkpoints.quiet(), checkpoints.seeded(0):
            alone = score(backbone(**first), first["attention_mask"])
        if not torch.allclose(alone, logits[:1], rtol=1e-3, atol=1e-3):
            log.warning("%s: a score depends on how far its input is padded, and so on the other candidates", name)
    except Exception as error:
        kind = type(backbone).__name__
        raise ValueError(
            f"{name}: a {kind} ({backbone.config.model_type}) cannot be trained here: an encoder such as {TRAINABLE} is "
            "expected, which gives one vector a token and whose head reads these vectors alone"
        ) from error
    finally:
        for module in training:
            module.training = True
