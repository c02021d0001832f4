"""Every head in float64 beside its slow loop, in models that are small enough: (variant, fast, slow, the arguments of both, modules)."""

import itertools
from functools import partial

import torch
import transformers
from torch import nn
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, RobertaConfig, RobertaModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from asutil import heads
from asutil.corpus import tokenizers
from asutil.models import electra, joint, loading
from asutil.models import embedder as embedding
from asutil.models import finder as evidence_models
from asutil.models import pair as pair_models
from asutil.tasks import own_tasks

from . import slow

SIZE = {"vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4}
PRESENT = torch.tensor([[True] * 4, [True, False, True, False], [True, True, False, False]])
KINDS = ("span", "yes", "no")


def drawn(*shape) -> torch.Tensor:
    """Normal numbers that a gradient is asked of."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def ready(module: nn.Module) -> nn.Module:
    """In float64, without dropout, with weights of a size at which differences show."""
    module = module.double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def embedder(architecture="untrained", pooling="mean", **options):
    tokenizer = tokenizers.train_tokenizer(["a few words"], 300)
    config = RobertaConfig(**SIZE | {"vocab_size": len(tokenizer)})
    return ready(embedding.Embedder(RobertaModel(config), tokenizer, embedding.settings_of(architecture, pooling, 16, **options)))


def finder(generates=False, projection="none", similarity="cosine", loss_weight=0.5):
    contrast = evidence_models.contrast_of(projection, similarity, loss_weight, "0.5,1.0,0.75", KINDS)
    settings = evidence_models.Finding(KINDS, "marked", 16, contrast)
    if not generates:
        return ready(evidence_models.EvidenceFinder(RobertaModel(RobertaConfig(**SIZE), add_pooling_layer=False), None, settings))
    layers = {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    config = transformers.LEDConfig(vocab_size=11, d_model=4, encoder_ffn_dim=4, decoder_ffn_dim=4, attention_window=[4], **layers)
    return ready(evidence_models.EvidenceFinder(transformers.AutoModelForSeq2SeqLM.from_config(config), None, settings))


def released(model_class):
    """A model of a released one's architecture under OwnTask, without its files."""
    task = own_tasks.OwnTask.__new__(own_tasks.OwnTask)
    nn.Module.__init__(task)
    task.model = model_class(BertConfig(**SIZE))
    return ready(task)


# ------------------------------------------------------------------ heads


def cases_of_evidence(name):
    for form, present in itertools.product(("linear", "released"), (PRESENT, None)):
        head = ready(heads.EVIDENCE[name](3, 2, form))
        yield form, head, partial(slow.evidence, head, name), (drawn(3, 4, 3), present), head


def cases_of_pooled(name):
    for form in ("linear", "released"):
        head = ready(heads.POOLED[name](3, 2, form))
        yield form, head, partial(slow.pooled_pairs, head), (drawn(3, 4, 3), PRESENT), head


def cases_of_siamese_head():
    head = ready(heads.Siamese(3))
    yield "", head, partial(slow.siamese, head), (drawn(4, 3), drawn(4, 3)), head


def cases_of_projection():
    for form, size in (("projected", 2), ("bilinear", None)):
        head = ready(heads.QuestionTypeProjection(3, 3, size, form))
        yield form, head, partial(slow.projected, head), (drawn(3), drawn(4, 3)), head


def cases_of_given():
    yield "", lambda outputs: pair_models.Given()(None, inputs_embeds=outputs), torch.Tensor.tolist, (drawn(2, 3),)


def slow_classified(head, vectors, between=slow.tanh) -> list:
    """The sequence-classification head of RoBERTa or ELECTRA on first tokens: dense, tanh or gelu, linear."""
    return [slow.linear(head.classifier.out_proj, between(slow.linear(head.classifier.dense, vector))) for vector in vectors.tolist()]


def cases_of_pair_encoder():
    model, hidden = ready(loading.from_config(RobertaConfig(**SIZE), None)), drawn(3, 5, 4)
    of_pair = lambda hidden, more: model.pair_of(BaseModelOutputWithPooling(hidden), more)
    yield "pair", of_pair, lambda hidden, _: slow_classified(model.pair, hidden[:, 0]), (hidden, {}), model.pair
    packed = {"cu_seq_lens": None, "first": torch.tensor([1, 4])}
    expected = lambda row, packed: slow_classified(model.pair, row[0, packed["first"]])
    yield "pair, packed", of_pair, expected, (drawn(1, 7, 4), packed), model.pair
    head = model.mlm.lm_head
    fast = lambda hidden, places: pair_models.mlm_logits(model.mlm, BaseModelOutputWithPooling(hidden), places)
    unit = lambda vector: slow.normalised(head.layer_norm, slow.gelu(slow.linear(head.dense, vector)))
    expected = lambda hidden, places: [slow.linear(head.decoder, unit(vector)) for vector in hidden.flatten(0, 1)[places].tolist()]
    yield "mlm", fast, expected, (hidden, torch.tensor([0, 3, 11])), head
    model.give_members(3)
    ready(model)
    rows = lambda hidden, more: zip(more["members"], hidden[:, :1])
    expected = lambda *given: [slow_classified(model.pairs[member], first)[0] for member, first in rows(*given)]
    yield "members", of_pair, expected, (hidden, {"members": torch.tensor([2, 0, 1])}), *model.pairs


def cases_of_electra():
    config = transformers.ElectraConfig(**SIZE, embedding_size=4)
    kinds = (AutoModelForSequenceClassification, transformers.AutoModelForPreTraining, AutoModelForMaskedLM)
    model, hidden = ready(electra.assembled(*(kind.from_config(config) for kind in kinds), None)), drawn(2, 3, 4)
    fast = lambda hidden: model.pair_of(BaseModelOutputWithPooling(hidden), {})
    yield "pair", fast, lambda hidden: slow_classified(model.pair, hidden[:, 0], slow.gelu), (hidden,), model.pair
    head = model.detection.discriminator_predictions
    score = lambda vector: slow.linear(head.dense_prediction, slow.gelu(slow.linear(head.dense, vector)))[0]
    expected = lambda hidden: [[score(vector) for vector in row] for row in hidden.tolist()]
    fast = lambda hidden: model.detection(inputs_embeds=BaseModelOutputWithPooling(hidden)).logits
    yield "detection", fast, expected, (hidden,), head


def cases_of_joint():
    """The head on the first tokens of slots that are there, wherever they stand; of an empty one, on nothing that counts."""
    firsts = torch.tensor([[0, 2, 3, 5], [6, 8, -1, -1]])
    for name in (*heads.EVIDENCE, *heads.POOLED):
        slots = name in heads.EVIDENCE
        shape = joint.shape(True, name, 3, 16, "linear" if slots else None, "absolute" if slots else None)
        model = ready(joint.over(loading.from_config(RobertaConfig(**SIZE), None), shape))
        head = getattr(model, name)
        loop = partial(slow.evidence, head, name) if slots else partial(slow.pooled_pairs, head)
        fast = lambda hidden, model=model: model.pair_of(BaseModelOutputWithPooling(hidden), {"firsts": firsts})
        expected = lambda hidden, loop=loop: loop(hidden.flatten(0, 1)[firsts.clamp(min=0)], firsts >= 0)
        yield name, fast, expected, (drawn(2, 6, 4),), head


def cases_of_embedder():
    """Pooling over the tokens that are real; the class token wherever it stands."""
    hidden, real, first = drawn(3, 4, 3), torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]]).bool(), torch.tensor([3, 2, 0])
    for how in embedding.POOLINGS:
        yield how, embedding.pooled, slow.pooled, (hidden, real, how, first)


def cases_of_finder():
    """The linear layers on markers, question and tokens, of what the backbone gave."""
    model = finder(False)
    batch = {"input_ids": torch.randint(3, 11, (2, 6)), "attention_mask": torch.ones(2, 6).long()}
    batch |= {"question": torch.tensor([0, 1]), "sentences": torch.tensor([[2, 4], [3, -1]])}
    with torch.no_grad():
        hidden = model.backbone(batch["input_ids"], batch["attention_mask"]).last_hidden_state.tolist()
    marked = [[row[max(place, 0)] for place in places] for row, places in zip(hidden, batch["sentences"].tolist())]
    asked = [row[place] for row, place in zip(hidden, batch["question"].tolist())]
    expected = {
        "evidence": lambda: [[slow.linear(model.evidence, vector)[0] for vector in row] for row in marked],
        "kind": lambda: [slow.linear(model.kind, vector) for vector in asked],
        "span": lambda: [[slow.linear(model.span, vector) for vector in row] for row in hidden],
    }
    for name, wanted in expected.items():
        yield name, lambda name=name: model(batch)[name], wanted, (), getattr(model, name)


def cases_of_own_task():
    """The released head, whose two classes change places."""
    model, batch = released(transformers.BertForNextSentencePrediction), {"input_ids": torch.randint(3, 11, (3, 5))}
    head = model.model.cls.seq_relationship
    with torch.no_grad():
        pooled = model.model.bert(**batch).pooler_output.tolist()
    yield "", lambda: model(batch)[0], lambda: [slow.linear(head, vector)[::-1] for vector in pooled], (), head


HEADS = {
    **{head.__name__: (lambda name=name: cases_of_evidence(name)) for name, head in heads.EVIDENCE.items()},
    **{head.__name__: (lambda name=name: cases_of_pooled(name)) for name, head in heads.POOLED.items()},
    "Siamese": cases_of_siamese_head,
    "QuestionTypeProjection": cases_of_projection,
    "Given": cases_of_given,
    "PairEncoder": cases_of_pair_encoder,
    "ElectraEncoder": cases_of_electra,
    "JointEncoder": cases_of_joint,
    "Embedder": cases_of_embedder,
    "EvidenceFinder": cases_of_finder,
    "OwnTask": cases_of_own_task,
}
