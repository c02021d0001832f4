"""Every head in float64 beside its slow loop: (variant, fast, slow, what a gradient is asked of), in models that are small enough."""

import itertools

import torch
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForNextSentencePrediction,
    ElectraConfig,
    LEDConfig,
    RobertaConfig,
    RobertaModel,
)
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
    settings = {"kinds": KINDS, "form": "marked", "max_tokens": 16, "contrast": contrast}
    if not generates:
        return ready(evidence_models.EvidenceFinder(RobertaModel(RobertaConfig(**SIZE), add_pooling_layer=False), None, settings))
    layers = {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    config = LEDConfig(vocab_size=11, d_model=4, encoder_ffn_dim=4, decoder_ffn_dim=4, attention_window=[4], **layers)
    return ready(evidence_models.EvidenceFinder(AutoModelForSeq2SeqLM.from_config(config), None, settings))


def released(model_class):
    """A model of a released one's architecture under OwnTask, without its files."""
    task = own_tasks.OwnTask.__new__(own_tasks.OwnTask)
    nn.Module.__init__(task)
    task.model = model_class(BertConfig(**SIZE))
    return ready(task)


# ------------------------------------------------------------------ heads


def cases_of_evidence(name):
    for form, given in itertools.product(("linear", "released"), (PRESENT, None)):
        head, slots = ready(heads.EVIDENCE[name](3, 2, form)), drawn(3, 4, 3)
        there = torch.ones_like(PRESENT) if given is None else given
        fast = lambda h=head, s=slots, p=given: h(s, p)
        yield form, fast, lambda h=head, s=slots, p=there: slow.evidence(h, name, s, p), [slots, *head.parameters()]


def cases_of_pooled(name):
    for form in ("linear", "released"):
        head, pairs = ready(heads.POOLED[name](3, 2, form)), drawn(3, 4, 3)
        fast, expected = lambda h=head, p=pairs: h(p, PRESENT), lambda h=head, p=pairs: slow.pooled_pairs(h, p, PRESENT)
        yield form, fast, expected, [pairs, *head.parameters()]


def cases_of_siamese_head():
    head, two = ready(heads.Siamese(3)), [drawn(4, 3) for _ in range(2)]
    yield "", lambda: head(*two), lambda: slow.siamese(head, *two), [*two, *head.parameters()]


def cases_of_projection():
    for form, size in (("projected", 2), ("bilinear", None)):
        head, two = ready(heads.QuestionTypeProjection(3, 3, size, form)), [drawn(3), drawn(4, 3)]
        yield form, lambda h=head, t=two: h(*t), lambda h=head, t=two: slow.projected(h, *t), [*two, *head.parameters()]


def cases_of_given():
    outputs = drawn(2, 3)
    yield "", lambda: pair_models.Given()(None, inputs_embeds=outputs), outputs.tolist, [outputs]


def slow_classified(head, vectors, between=slow.tanh) -> list:
    """The sequence-classification head of RoBERTa or ELECTRA on first tokens: dense, tanh or gelu, linear."""
    return [slow.linear(head.classifier.out_proj, between(slow.linear(head.classifier.dense, vector))) for vector in vectors]


def cases_of_pair_encoder():
    model, hidden = ready(loading.from_config(RobertaConfig(**SIZE), None)), drawn(3, 5, 4)
    outputs, first = BaseModelOutputWithPooling(hidden), lambda: hidden[:, 0].tolist()
    learnt = [hidden, *model.pair.parameters()]
    yield "pair", lambda: model.pair_of(outputs, {}), lambda: slow_classified(model.pair, first()), learnt
    packed = {"cu_seq_lens": None, "first": torch.tensor([1, 4])}
    row, at = drawn(1, 7, 4), lambda: [row[0, place].tolist() for place in packed["first"]]
    fast = lambda: model.pair_of(BaseModelOutputWithPooling(row), packed)
    yield "pair, packed", fast, lambda: slow_classified(model.pair, at()), [row, *model.pair.parameters()]
    places, head = torch.tensor([0, 3, 11]), model.mlm.lm_head
    unit = lambda vector: slow.normalised(head.layer_norm, slow.gelu(slow.linear(head.dense, vector)))
    expected = lambda: [slow.linear(head.decoder, unit(vector)) for vector in hidden.flatten(0, 1)[places].tolist()]
    yield "mlm", lambda: pair_models.mlm_logits(model.mlm, outputs, places), expected, [hidden, *head.parameters()]
    model.give_members(3)
    ready(model)
    members, pairs = torch.tensor([2, 0, 1]), [parameter for pair in model.pairs for parameter in pair.parameters()]
    expected = lambda: [slow_classified(model.pairs[n], [vector])[0] for n, vector in zip(members, first())]
    yield "members", lambda: model.pair_of(outputs, {"members": members}), expected, [hidden, *pairs]


def cases_of_electra():
    config = ElectraConfig(**SIZE, embedding_size=4)
    kinds = (AutoModelForSequenceClassification, AutoModelForPreTraining, AutoModelForMaskedLM)
    model, hidden = ready(electra.assembled(*(kind.from_config(config) for kind in kinds), None)), drawn(2, 3, 4)
    outputs, head = BaseModelOutputWithPooling(hidden), model.detection.discriminator_predictions
    expected = lambda: slow_classified(model.pair, hidden[:, 0].tolist(), slow.gelu)
    yield "pair", lambda: model.pair_of(outputs, {}), expected, [hidden, *model.pair.parameters()]
    score = lambda vector: slow.linear(head.dense_prediction, slow.gelu(slow.linear(head.dense, vector)))[0]
    expected = lambda: [[score(vector) for vector in row] for row in hidden.tolist()]
    yield "detection", lambda: model.detection(inputs_embeds=outputs).logits, expected, [hidden, *head.parameters()]


def cases_of_joint():
    """The head on the first tokens of slots that are there, wherever they stand; of an empty one, on nothing that counts."""
    firsts, hidden = torch.tensor([[0, 2, 3, 5], [6, 8, -1, -1]]), drawn(2, 6, 4)
    for name, cases in [(name, slow.evidence) for name in heads.EVIDENCE] + [(name, slow.pooled_pairs) for name in heads.POOLED]:
        slots = name in heads.EVIDENCE
        shape = joint.shape(True, name, 3, 16, "linear" if slots else None, "absolute" if slots else None)
        model = ready(joint.over(loading.from_config(RobertaConfig(**SIZE), None), shape))
        head, read = getattr(model, name), lambda: hidden.flatten(0, 1)[firsts.clamp(min=0)]
        fast = lambda m=model: m.pair_of(BaseModelOutputWithPooling(hidden), {"firsts": firsts})
        more = (name,) if slots else ()
        expected = lambda h=head, read=read, of=cases, more=more: of(h, *more, read(), firsts >= 0)
        yield name, fast, expected, [hidden, *head.parameters()]


def cases_of_embedder():
    """Pooling over the tokens that are real; the class token wherever it stands."""
    hidden, real, first = drawn(3, 4, 3), torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]]).bool(), torch.tensor([3, 2, 0])
    for how in embedding.POOLINGS:
        expected = lambda how=how: slow.pooled(hidden, real, how, first.tolist())
        yield how, lambda how=how: embedding.pooled(hidden, real, how, first), expected, [hidden]


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
        yield name, lambda name=name: model(batch)[name], wanted, list(getattr(model, name).parameters())


def cases_of_own_task():
    """The released head, whose two classes change places."""
    model, batch = released(BertForNextSentencePrediction), {"input_ids": torch.randint(3, 11, (3, 5))}
    head = model.model.cls.seq_relationship
    with torch.no_grad():
        pooled = model.model.bert(**batch).pooler_output.tolist()
    yield "", lambda: model(batch)[0], lambda: [slow.linear(head, vector)[::-1] for vector in pooled], list(head.parameters())


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
