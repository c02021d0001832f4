"""Models that find evidence in a long context: heads for evidence, answer and type of question, and the question-evidence loss."""

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, LongformerConfig

from .. import losses, plugins
from ..corpus import tokenizers
from ..heads.question_types import QuestionTypeProjection
from ..inputs.long import add_markers
from ..io import checkpoints, spelling
from . import loading, scoring, settings

SIMILARITIES = {"none": ("dot", "cosine"), "shared": ("bilinear", "projected"), "per_type": ("bilinear", "projected")}
TINY = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512}
LONGEST_SPAN = 30  # tokens of an answer that the head of spans gives
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Contrast:
    """The settings of a run's contrastive loss: the vectors that are compared, their similarity, and the weight lambda.

    Args:
        projection: none (raw vectors), shared, or per_type.
        similarity: dot or cosine for raw vectors; bilinear (equation 2) or projected (equation 3) for projections.
        temperatures: of each question type.
    Raises: ValueError for values that do not go together.
    Paper: evidence_contrast, sections 3.1 and 3.2, appendix C.
    """

    projection: str
    similarity: str
    loss_weight: float
    temperatures: list[float]
    projection_size: int | None = None
    projection_dropout: float = 0.1
    wrong_types: bool = True
    other_evidence: str = "exclude"
    reduction: str = "mean"

    def __post_init__(self):
        spelling.require_one_of("projection", self.projection, SIMILARITIES)
        if self.similarity not in SIMILARITIES[self.projection]:
            names = " or ".join(SIMILARITIES[self.projection])
            raise ValueError(f"similarity: {names} expected with projection={self.projection}, got {self.similarity!r}")
        if not 0 <= self.loss_weight <= 1:
            raise ValueError(f"loss_weight: 0 to 1 expected, got {self.loss_weight}")
        if self.similarity != "projected" and self.projection_size is not None:
            raise ValueError(f"projection_size: only projected vectors have one, got similarity={self.similarity}")


@dataclass(frozen=True)
class Finding:
    """The settings of an evidence finder.

    kinds: of answers; form: of inputs; max_tokens: of the longest input.
    types: the number of each kind's question type; each has its own where this is left out.
    type_loss: whether the type is learnt; it is where this is left out.
    """

    kinds: list[str]
    form: str
    max_tokens: int
    contrast: Contrast
    types: list[int] | None = None
    type_loss: bool | None = None
    optional: ClassVar = ("types", "type_loss")


def contrast_of(
    projection: str, similarity: str, loss_weight: float, temperatures: str, types: Sequence[str], *options, **named
) -> Contrast:
    """A `Contrast` whose temperatures are text: one for all, or one a question type in the order of `types`, separated by commas.

    Args:
        types: names of the question types (`long_questions.types_of`).
        options, named: the other fields of `Contrast`.
    Raises: ValueError for other temperatures, and as `Contrast`.
    """
    values = [float(value) for value in temperatures.split(",")]
    if len(values) not in (1, len(types)) or min(values) <= 0:
        raise ValueError(
            f"temperatures: one, or one for each of {', '.join(types)}, above 0, expected, got {temperatures}"
        )
    values = values if len(values) > 1 else values * len(types)
    return Contrast(projection, similarity, loss_weight, values, *options, **named)


class EvidenceFinder(nn.Module):
    """A long-context model that finds evidence sentences, the answer, and the type of the question.

    Evidence: one linear layer on the vector of each sentence's marker; type: one on the question's; answer: start and end of a span of
    the context, or text from a model with a decoder.
    Paper: evidence_contrast, section 2.
    Shapes: input_ids, attention_mask, is_global (B, T); sentences (B, N): positions of markers, -1 for none -> see `forward`
    Raises: ValueError for a model without a decoder that shall not learn the type, which is a part of its answers.
    Deviation: D-90.
    """

    HEADS = ("evidence", "kind", "span", "projection")

    def __init__(self, backbone: nn.Module, tokenizer, finding: Finding):
        super().__init__()
        self.backbone, self.tokenizer, self.finding = backbone, tokenizer, finding
        settings.keep(backbone.config, finding)
        if not self.learns_type and not self.generates:
            raise ValueError("type_loss: only a model with a decoder can do without: its text needs no type; got false")
        size, contrast = backbone.config.hidden_size, finding.contrast
        self.evidence = nn.Linear(size, 1)
        self.kind = nn.Linear(size, len(finding.kinds))
        self.span = None if self.generates else nn.Linear(size, 2)
        for head in filter(None, (self.evidence, self.kind, self.span)):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)
        self.projection = None  # drawn last, so that the other heads do not depend on it
        if contrast.projection != "none":
            classes = max(self.types) + 1 if contrast.projection == "per_type" else 1
            options = {"form": contrast.similarity, "dropout": contrast.projection_dropout}
            self.projection = QuestionTypeProjection(size, classes, contrast.projection_size, **options)
        self.reads_globally = "global_attention_mask" in inspect.signature(backbone.forward).parameters

    @property
    def learns_type(self) -> bool:
        return self.finding.type_loss is not False

    @property
    def types(self) -> list[int]:
        """The number of each kind's question type, which has a projection and a temperature."""
        return self.finding.types or list(range(len(self.finding.kinds)))

    @property
    def generates(self) -> bool:
        """Whether a decoder writes the answers."""
        return bool(getattr(self.backbone.config, "is_encoder_decoder", False))

    def check_answers(self, contexts) -> None:
        """Say how many answers the head of spans does not learn, or learns and cannot give.

        Raises: ValueError naming the first question whose answer has more tokens than the decoder, if there is one, can write.
        """
        if self.span is not None:
            asked = [read for read in contexts.read if contexts.kinds[read.kind] in ("span", "extractive")]
            if lost := sum(not read.starts.any() for read in asked):
                told = "%d of %d answers stand as whole words in nothing that is read: they are not learnt"
                log.warning(told, lost, len(asked))
            if long := sum(read.shortest_answer > LONGEST_SPAN for read in asked):
                told = "%d of %d answers have more than %d tokens: they are never given"
                log.warning(told, long, len(asked), LONGEST_SPAN)
        most = self.generates and getattr(self.backbone.config, "max_decoder_position_embeddings", None)
        for question in contexts.questions if most else ():
            if (tokens := len(self.tokenizer(question.answers[0].text)["input_ids"])) > most:
                raise ValueError(f"question {question.id!r}: an answer of at most {most} tokens expected, got {tokens}")

    def forward(self, batch: dict) -> dict:
        """The vectors questions (B, H), sentences (B, N, H); the logits evidence (B, N), kind (B, Q), span (B, T, 2) or text (B, A, V)."""
        masks = {"attention_mask": batch["attention_mask"]}
        if self.reads_globally:
            masks["global_attention_mask"] = batch["is_global"]
        encoded = self.encoded(batch["input_ids"], **masks)
        hidden = encoded.last_hidden_state
        rows = torch.arange(len(hidden), device=hidden.device)
        with torch.autocast(hidden.device.type, enabled=False):
            hidden = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
            outputs = {
                "questions": hidden[rows, batch["question"]],
                "sentences": hidden[rows[:, None], batch["sentences"].clamp(min=0)],
            }
            outputs["evidence"] = self.evidence(outputs["sentences"]).squeeze(-1)
            outputs["kind"] = self.kind(outputs["questions"])
            if self.span is not None:
                outputs["span"] = self.span(hidden)
        if self.generates and "answers" in batch:
            outputs["text"] = self.backbone(encoder_outputs=encoded, labels=batch["answers"], **masks).logits
        return outputs

    def encoded(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **masks):
        """The outputs of the backbone's encoder."""
        encoder = self.backbone.get_encoder() if self.generates else self.backbone
        return encoder(input_ids=input_ids, attention_mask=attention_mask, **masks)

    def qa_losses(self, outputs: dict, micro: dict) -> torch.Tensor:
        """The loss of the task for each example: evidence + type (if it is learnt) + answer. Shapes: -> (B,)"""
        total = losses.balanced(outputs["evidence"], micro["evidence"], micro["sentences"] >= 0)
        if self.learns_type:
            total = total + cross_entropy(outputs["kind"], micro["kinds"], reduction="none")
        if self.span is not None:
            logits = outputs["span"].masked_fill(~micro["in_context"][..., None], -torch.inf)
            starts, ends = logits.unbind(-1)
            return total + (losses.or_softmax(starts, micro["starts"]) + losses.or_softmax(ends, micro["ends"]))
        logits = outputs["text"].transpose(1, 2)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        text = cross_entropy(logits, micro["answers"], ignore_index=losses.IGNORED, reduction="none")
        return total + text.sum(1) / (micro["answers"] != losses.IGNORED).sum(1).clamp(min=1)

    def contrast_losses(self, outputs: dict, micro: dict) -> torch.Tensor:
        """The question-evidence loss of every question with an answer and evidence; 0 for the others. Shapes: -> (B,)"""
        contrast = self.finding.contrast
        similarity = {"projected": "cosine", "bilinear": "dot"}.get(contrast.similarity, contrast.similarity)
        options = contrast.wrong_types, contrast.other_evidence, contrast.reduction
        terms = []
        for row in range(len(outputs["questions"])):
            if not micro["contrasted"][row]:
                terms.append(outputs["questions"].new_zeros(()))
                continue
            real = micro["sentences"][row] >= 0
            kind = self.types[int(micro["kinds"][row])]
            questions, sentences = self.projected(outputs["questions"][row], outputs["sentences"][row, real])
            temperatures = torch.tensor(contrast.temperatures, device=questions.device)
            if len(questions) == 1:
                temperatures, kind = temperatures[kind : kind + 1], 0
            evidence = micro["evidence"][row, real]
            terms.append(
                losses.question_evidence(questions, sentences, evidence, kind, temperatures, similarity, *options)
            )
        return torch.stack(terms)

    def projected(self, question: torch.Tensor, sentences: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A question and its sentences as the loss compares them. Shapes: (H,), (N, H) -> (Q, d), (Q, N, d); Q > 1 only for per_type"""
        if self.projection is None:
            return question[None], sentences[None]
        return self.projection(question, sentences)

    def loss_weights(self, options=None) -> dict[str, float]:
        """The weights of the loss's parts: 1 - lambda and lambda."""
        weight = self.finding.contrast.loss_weight
        return {"qa": 1 - weight, "contrast": weight}

    def losses(self, outputs: dict, micro: dict, batch: dict) -> torch.Tensor:
        """A micro-batch's share of the parts of the loss of its optimiser batch: [L_QA, L_c]. Shapes: -> (2,)

        L = (1 - lambda) L_QA + lambda L_c, each the mean over the examples of the batch, L_c over those that have evidence
        Paper: evidence_contrast, section 3.1.
        Deviation: D-146.
        """
        task = self.qa_losses(outputs, micro).sum() / batch["examples"]
        if self.finding.contrast.loss_weight == 0:
            return torch.stack([task, torch.zeros_like(task)])
        return torch.stack([task, self.contrast_losses(outputs, micro).sum() / max(batch["contrasted"], 1)])

    def save(self, folder: str | Path) -> Path:
        """Write backbone (loads with AutoModel), heads and tokenizer, all of it or nothing."""
        return checkpoints.save_model(folder, self, checkpoints.parameters_of(self, self.HEADS))


def tiny_longformer(tokenizer) -> nn.Module:
    """A Longformer small enough for two CPU cores: 2 layers of 128, windows of 64, 1,024 positions."""
    ids = {"vocab_size": len(tokenizer)} | loading.special_ids(tokenizer)
    size = {"attention_window": [64, 64], "max_position_embeddings": 1026, "type_vocab_size": 1}
    return AutoModel.from_config(LongformerConfig(**TINY, **ids, **size))


def tiny_led(tokenizer) -> nn.Module:
    """An LED small enough for two CPU cores: 2 + 1 layers of 128, windows of 64, 1,024 positions, answers of at most 64 tokens."""
    config = plugins.pydocs("backbone").led_config(tokenizer, TINY | {"vocab_size": len(tokenizer)})
    return AutoModelForSeq2SeqLM.from_config(config)


MADE_HERE = {
    "tiny": lambda tokenizer: loading.tiny(tokenizer, mlm=False).backbone,
    "tiny_longformer": tiny_longformer,
    "tiny_led": tiny_led,
    "pydocs_longformer": lambda tokenizer: plugins.pydocs("backbone").longformer(tokenizer),
    "pydocs_led": lambda tokenizer: plugins.pydocs("backbone").led(tokenizer),
}


def start_from(
    name: str | Path, tokenizer, finding: Finding, seed: int = 0, checkpointing: bool = False
) -> EvidenceFinder:
    """The model that a run starts from: a backbone of MADE_HERE, or one from a run, a folder or the hub, under fresh heads.

    The markers of a long input are added to the tokenizer, with fresh embeddings.
    Args:
        checkpointing: gradient checkpointing, which saves memory: the backward pass computes the layers' activations again.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled or incomplete weights, or inputs longer than the model reads.
    """
    fresh = add_markers(tokenizer) if finding.form == "marked" else 0
    with checkpoints.seeded(seed), checkpoints.quiet():
        if name in MADE_HERE:
            backbone = MADE_HERE[name](tokenizer)
        else:
            path = checkpoints.source(name)
            decodes = checkpoints.from_pretrained(AutoConfig, path, name).is_encoder_decoder
            backbone, _ = checkpoints.with_head(AutoModelForSeq2SeqLM if decodes else AutoModel, path, name)
        if len(tokenizer) > backbone.get_input_embeddings().num_embeddings:
            backbone.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    if fresh:
        log.warning("%s: fresh embeddings (seed %d) of %d markers", name, seed, fresh)
    longest = loading.longest_input(backbone, tokenizer)
    if finding.max_tokens > longest:
        raise ValueError(f"max_tokens: at most {longest} for {name}, got {finding.max_tokens}")
    if checkpointing:
        backbone.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    with checkpoints.seeded(seed):
        return EvidenceFinder(backbone, tokenizer, finding)


def load(name: str | Path) -> EvidenceFinder:
    """A trained finder, from a finished run or a folder. Raises: ValueError for a model that was not trained as one."""
    path = checkpoints.source(name)
    finding = settings.saved(path, Finding)
    if finding is None:
        raise ValueError(f"{name} was not trained to find evidence (notebooks/find_evidence.ipynb does that)")
    model = start_from(name, tokenizers.load_tokenizer(name), finding)
    checkpoints.restore(checkpoints.parameters_of(model, model.HEADS), checkpoints.saved_heads(path), name)
    return model.to(scoring.device()).eval()
