"""Every loss and head in float64: its value against a slow loop in Python's own numbers, its gradient against finite differences.

What there is to check is found in the package itself: a loss or head that is new there and has no case here is a broken promise.
"""

import importlib
import inspect
import itertools
import pkgutil

import torch
from torch import nn
from torch.autograd.gradcheck import GradcheckError
from tqdm.auto import tqdm
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

import asutil
from asutil import electra, embedding, encoders, evidence_models, heads, joints, losses, own_tasks, training, weights

from . import must, slow

SIZE = {"vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4}
PRESENT = torch.tensor([[True] * 4, [True, False, True, False], [True, True, False, False]])
KINDS = ("span", "yes", "no")


def check(number: int) -> dict[str, int]:
    """All losses and heads. Returns: how many of each, and in how many variants."""
    for what, cases, found in (("losses", LOSSES, known_losses()), ("heads", HEADS, known_heads())):
        must(set(cases) == found, f"{what} without a check, or checks of none: {', '.join(sorted(set(cases) ^ found))}")
    variants = 0
    with weights.seeded(number):
        for name, cases in tqdm({**LOSSES, **HEADS}.items(), "losses and heads", unit="", dynamic_ncols=True):
            for variant, fast, expected, tensors in cases():
                compare(f"{name} {variant}".strip(), fast, expected, tensors)
                variants += 1
    return {"losses": len(LOSSES), "heads": len(HEADS), "variants": variants}


def compare(name: str, fast, expected, tensors: list) -> None:
    """Value and gradient of one case.

    Args:
        fast: () -> tensor, or tensors, of the leaves in `tensors` and of what has no gradient.
        expected: () -> the same in Python's numbers.
    """
    value, wanted = fast(), expected()
    values, wants = (value, wanted) if isinstance(value, tuple) else ([value], [wanted])
    for one, want in zip(values, wants, strict=True):
        want = torch.tensor(want, dtype=torch.float64)
        must(one.shape == want.shape, f"{name}: shape {tuple(want.shape)} expected, got {tuple(one.shape)}")
        apart = float((one.detach().double() - want).abs().max())
        must(apart < 1e-9, f"{name}: {apart:.2g} away from a slow loop")
    try:
        right = not tensors or torch.autograd.gradcheck(lambda *_: fast(), tensors)
    except (GradcheckError, RuntimeError) as error:
        right, name = False, f"{name}: {str(error).splitlines()[0]}"
    must(right, f"{name}: another gradient than finite differences")


# ------------------------------------------------------------------ what there is


def modules() -> list:
    """All modules of asutil that can be imported here."""
    return [importlib.import_module(f"asutil.{found.name}") for found in pkgutil.iter_modules(asutil.__path__)]


def known_losses() -> set[str]:
    """The public functions of asutil.losses, and every function or method of asutil whose name ends in loss or losses."""
    found = {name for name, value in vars(losses).items() if inspect.isfunction(value) and _own(value, losses) and name[0] != "_"}
    for module in modules():
        for name, value in vars(module).items():
            if _own(value, module) and inspect.isclass(value):
                found |= {f"{name}.{method}" for method, function in vars(value).items() if _gives_loss(method, function)}
            elif _own(value, module) and _gives_loss(name, value):
                found.add(name)
    return found


def known_heads() -> set[str]:
    """Every module of asutil that is torch's and has a forward of its own or of its base."""
    classes = {v for module in modules() for v in vars(module).values() if inspect.isclass(v) and issubclass(v, nn.Module)}
    return {v.__name__ for v in classes if v.__module__.startswith("asutil.") and v.forward is not nn.Module.forward}


def _own(value, module) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _gives_loss(name, value) -> bool:
    return inspect.isfunction(value) and name.split("_")[-1] in ("loss", "losses")


def drawn(*shape) -> torch.Tensor:
    """Normal numbers that a gradient is asked of."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def ready(module: nn.Module) -> nn.Module:
    """In float64, without dropout, with weights of a size at which differences show."""
    module = module.double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


# ------------------------------------------------------------------ losses


def cases_of_cross_entropy(loss):
    for shape, total in itertools.product([(5, 4), (2, 3, 2)], (None, 9)):
        logits, labels = drawn(*shape), torch.randint(0, shape[-1], shape[:-1])
        labels.view(-1)[1] = slow.IGNORED
        fast, expected = lambda z=logits, y=labels, n=total: loss(z, y, n), lambda z=logits, y=labels, n=total: slow.pair(z, y, n)
        yield f"{shape} total {total}", fast, expected, [logits]


def cases_of_replaced_token():
    logits, replaced, mask = drawn(3, 5), torch.randint(0, 2, (3, 5)), torch.arange(5) < torch.tensor([[5], [2], [4]])
    for total in (None, 17):
        expected = lambda n=total: slow.binary(logits[mask].tolist(), replaced[mask].tolist(), n or 11)
        yield f"total {total}", lambda n=total: losses.replaced_token(logits, replaced, mask, n), expected, [logits]


def cases_of_siamese():
    logits, labels = drawn(7), torch.arange(7) % 2
    for total in (None, 12):
        expected = lambda n=total: slow.binary(logits.tolist(), labels.tolist(), n or 7)
        yield f"total {total}", lambda n=total: losses.siamese(logits, labels, n), expected, [logits]


def cases_of_distance():
    one, other = drawn(4, 3), drawn(4, 3)
    for squared in (True, False):
        expected = lambda s=squared: [slow.distance(*pair, s) for pair in zip(one.tolist(), other.tolist())]
        yield f"squared {squared}", lambda s=squared: losses.distance(one, other, s), expected, [one, other]


def cases_of_triplet_kinds():
    """Which kind a triplet is of has no gradient."""
    three = [drawn(40, 3) for _ in range(3)]
    to = [losses.distance(three[0], other) for other in three[1:]]
    kinds = ("easy", "semi_hard", "hard")
    expected = lambda: tuple([float(kind == of) for _, of in slow.triplets(*three, 2.0, True)] for kind in kinds)
    yield "", lambda: tuple(losses.triplet_kinds(*to, 2.0)[kind].double() for kind in kinds), expected, []


def cases_of_triplet():
    for squared, chosen, reduction in itertools.product((True, False), losses.SELECTIONS, ("sum", "mean", "none")):
        three, given = [drawn(9, 3) for _ in range(3)], {"squared": squared, "selection": chosen, "reduction": reduction}
        expected = lambda three=three, squared=squared, how=(chosen, reduction): slow_triplet(three, squared, *how)
        yield str(given), lambda three=three, given=given: losses.triplet(*three, margin=2.0, **given), expected, three


def slow_triplet(three, squared, selection="all", reduction="sum", margin=2.0):
    rows = slow.triplets(*three, margin, squared)
    each = [loss if selection in ("all", kind) else 0.0 for loss, kind in rows]
    count = max(sum(selection in ("all", kind) for _, kind in rows), 1)
    return {"none": each, "sum": sum(each), "mean": sum(each) / count}[reduction]


def cases_of_or_softmax():
    logits, right = drawn(4, 6), torch.rand(4, 6) < 0.4
    right[0], right[1, 2] = False, True
    expected = lambda: [slow.or_softmax(*row) for row in zip(logits.tolist(), right.tolist())]
    yield "", lambda: losses.or_softmax(logits, right), expected, [logits]


def cases_of_question_evidence():
    forms = [("exclude", "mean"), ("include", "mean"), ("exclude", "log_sum")]
    for similarity, wrong, form in itertools.product(("cosine", "dot"), (True, False), forms):
        questions, sentences, temperatures = drawn(3, 4), drawn(3, 5, 4), (torch.rand(3).double() + 0.5).requires_grad_()
        given = (questions, sentences, torch.tensor([False, True, False, True, False]), 1, temperatures, similarity, wrong, *form)
        fast, expected = lambda g=given: losses.question_evidence(*g), lambda g=given: slow.question_evidence(*g)
        yield f"{similarity} {wrong} {form}", fast, expected, [questions, sentences, temperatures]


def cases_of_micro_loss():
    """What a micro-batch adds to the loss of its optimiser batch: weighted sums over the counts of the whole batch."""
    pair, words, tokens = drawn(4, 2), drawn(3, 5), drawn(2, 4)
    micro = {"labels": torch.tensor([1, 0, 0, 1]), "masked_targets": torch.tensor([4, 0, 2])}
    batch, real, replaced = {"examples": 10, "masked": 7, "tokens": 20}, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool(), tokens > 0.3
    of_pair, of_words = lambda: slow.pair(pair, micro["labels"], 10), lambda: slow.pair(words, micro["masked_targets"], 7)
    of_tokens = lambda: slow.binary(tokens[real].tolist(), replaced[real].tolist(), 20)
    fast = lambda: training.micro_loss((pair, words), micro, batch, 0.5, 3.0)[0]
    yield "pair and mlm", fast, lambda: 0.5 * of_words() + 3 * of_pair(), [pair, words]
    yield "pair alone", lambda: training.micro_loss((pair, None), micro, batch)[0], of_pair, [pair]
    fast = lambda: training.micro_loss((pair, words, (tokens, replaced, real)), micro, batch)[0]
    yield "electra", fast, lambda: of_words() + of_pair() + 50 * of_tokens(), [pair, words, tokens]


def cases_of_embedder_loss():
    micro, batch, two = {"labels": torch.tensor([1, 0, 1])}, {"examples": 5}, [drawn(3, 4) for _ in range(2)]
    model = embedder("siamese")
    expected = lambda: slow.binary(slow.siamese(model.siamese, *two), [1, 0, 1], 5)
    yield "siamese", lambda: model.micro_loss(two, micro, batch)[0], expected, [*two, *model.siamese.parameters()]
    three = [drawn(3, 4) for _ in range(3)]
    for form, chosen in itertools.product(embedding.DISTANCES, losses.SELECTIONS):
        model = embedder("triplet", margin=2.0, distance=form, selection=chosen)
        expected = lambda form=form, chosen=chosen: slow_triplet(three, form == "squared", chosen)
        yield f"{form} {chosen}", lambda model=model: model.micro_loss(three, micro, batch)[0], expected, three


def evidence_batch(generates: bool, size=4):
    """What a finder says of two questions, and what is right; the second has three sentences and no answer."""
    found = {"questions": drawn(2, size), "sentences": drawn(2, 4, size), "evidence": drawn(2, 4), "kind": drawn(2, 3)}
    found |= {"text": drawn(2, 3, 5)} if generates else {"span": drawn(2, 6, 2)}
    micro = {"sentences": torch.tensor([[1, 2, 3, 4], [1, 3, 5, -1]]), "evidence": torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0]]).bool()}
    micro |= {"kinds": torch.tensor([2, 0]), "in_context": torch.arange(6)[None] > torch.tensor([[1], [2]])}
    micro |= {"starts": torch.zeros(2, 6).bool(), "ends": torch.zeros(2, 6).bool(), "contrasted": torch.tensor([True, False])}
    micro["starts"][0, [2, 4]] = micro["ends"][0, [3, 5]] = True
    micro["answers"] = torch.tensor([[4, 1, slow.IGNORED], [0, 2, 3]])
    return found, micro


def slow_qa(found, micro, generates: bool) -> list[float]:
    """Evidence + type + answer, a question at a time."""
    rows = []
    for row in range(2):
        real = micro["sentences"][row] >= 0
        loss = slow.binary(found["evidence"][row, real].tolist(), micro["evidence"][row, real].tolist(), int(real.sum()))
        loss += slow.pair(found["kind"][row], micro["kinds"][row])
        if generates:
            loss += slow.pair(found["text"][row], micro["answers"][row])
        else:
            inside = micro["in_context"][row]
            for side, name in enumerate(("starts", "ends")):
                loss += slow.or_softmax(found["span"][row, inside, side].tolist(), micro[name][row, inside].tolist())
        rows.append(loss)
    return rows


def cases_of_qa():
    for generates in (False, True):
        model, (found, micro) = finder(generates), evidence_batch(generates)
        fast, expected = lambda m=model, f=found, b=micro: m.qa_losses(f, b), lambda f=found, b=micro, g=generates: slow_qa(f, b, g)
        yield f"generates {generates}", fast, expected, [found["evidence"], found["kind"], found["text" if generates else "span"]]


def slow_contrast(model, found, micro) -> list[float]:
    """The loss of the first question, and 0 of the second, which has no answer."""
    chosen, kind = model.settings["contrast"], int(micro["kinds"][0])
    vectors = found["questions"][:1], found["sentences"][:1]
    temperatures = torch.tensor(chosen["temperatures"])
    if model.projection is not None:
        vectors = slow.projected(model.projection, found["questions"][0], found["sentences"][0])
        vectors = [torch.tensor(part, dtype=torch.float64) for part in vectors]
    if len(vectors[0]) == 1:
        temperatures, kind = temperatures[kind : kind + 1], 0
    similarity = {"projected": "cosine", "bilinear": "dot"}.get(chosen["similarity"], chosen["similarity"])
    return [slow.question_evidence(*vectors, micro["evidence"][0], kind, temperatures, similarity), 0.0]


def cases_of_contrast():
    for projection, similarities in evidence_models.SIMILARITIES.items():
        for similarity in similarities:
            model, (found, micro) = finder(False, projection, similarity), evidence_batch(False)
            learnt = [] if model.projection is None else list(model.projection.parameters())
            fast, expected = (lambda m=model, f=found, b=micro, of=of: of(m, f, b) for of in (_contrast_losses, slow_contrast))
            yield f"{projection} {similarity}", fast, expected, [found["questions"], found["sentences"], *learnt]


def _contrast_losses(model, found, micro):
    return model.contrast_losses(found, micro)


def cases_of_finder_loss():
    batch = {"examples": 5, "contrasted": 3}
    for weight in (0.0, 0.25):
        model, (found, micro) = finder(False, loss_weight=weight), evidence_batch(False)
        task = lambda f=found, b=micro: sum(slow_qa(f, b, False)) / 5
        contrast = lambda m=model, f=found, b=micro: sum(slow_contrast(m, f, b)) / 3
        expected = lambda w=weight, task=task, contrast=contrast: (1 - w) * task() + w * contrast()
        read = [tensor for name, tensor in found.items() if weight or name in ("evidence", "kind", "span")]
        yield f"weight {weight}", lambda m=model, f=found, b=micro: m.micro_loss(f, b, batch)[0], expected, read


# ------------------------------------------------------------------ models that are small enough


def embedder(architecture="untrained", pooling="mean", **options):
    tokenizer = encoders.train_tokenizer(["a few words"], 300)
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
    yield "", lambda: heads.Given()(None, inputs_embeds=outputs), outputs.tolist, [outputs]


def slow_classified(head, vectors, between=slow.tanh) -> list:
    """The sequence-classification head of RoBERTa or ELECTRA on first tokens: dense, tanh or gelu, linear."""
    return [slow.linear(head.classifier.out_proj, between(slow.linear(head.classifier.dense, vector))) for vector in vectors]


def cases_of_pair_encoder():
    model, hidden = ready(encoders.from_config(RobertaConfig(**SIZE), None)), drawn(3, 5, 4)
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
    yield "mlm", lambda: heads.mlm_logits(model.mlm, outputs, places), expected, [hidden, *head.parameters()]
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
        shape = joints.shape(True, name, 3, 16, "linear" if slots else None, "absolute" if slots else None)
        model = ready(joints.over(encoders.from_config(RobertaConfig(**SIZE), None), shape))
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


LOSSES = {
    "mlm": lambda: cases_of_cross_entropy(losses.mlm),
    "pair": lambda: cases_of_cross_entropy(losses.pair),
    "replaced_token": cases_of_replaced_token,
    "siamese": cases_of_siamese,
    "distance": cases_of_distance,
    "triplet_kinds": cases_of_triplet_kinds,
    "triplet": cases_of_triplet,
    "or_softmax": cases_of_or_softmax,
    "question_evidence": cases_of_question_evidence,
    "micro_loss": cases_of_micro_loss,
    "Embedder.micro_loss": cases_of_embedder_loss,
    "EvidenceFinder.qa_losses": cases_of_qa,
    "EvidenceFinder.contrast_losses": cases_of_contrast,
    "EvidenceFinder.micro_loss": cases_of_finder_loss,
}
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
