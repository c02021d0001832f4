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

import asutil
from asutil import losses
from asutil.io import checkpoints
from asutil.models import embedder as embedding
from asutil.models import finder as evidence_models
from asutil.models.electra import ElectraEncoder
from asutil.models.pair import PairEncoder
from asutil.training import trainer
from asutil.training.options import Options

from . import must, slow
from .head_cases import HEADS, drawn, embedder, finder


def check(number: int) -> dict[str, int]:
    """All losses and heads. Returns: how many of each, and in how many variants."""
    for what, cases, found in (("losses", LOSSES, known_losses()), ("heads", HEADS, known_heads())):
        must(set(cases) == found, f"{what} without a check, or checks of none: {', '.join(sorted(set(cases) ^ found))}")
    variants = 0
    with checkpoints.seeded(number):
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
    """All modules of asutil; to import `asutil.__main__` is to run the command."""
    names = [found.name for found in pkgutil.walk_packages(asutil.__path__, "asutil.")]
    return [importlib.import_module(name) for name in names if name != "asutil.__main__"]


def known_losses() -> set[str]:
    """The public functions of asutil.losses, and every function or method of asutil whose name ends in loss or losses."""
    found = {name for name, value in vars(losses).items() if inspect.isfunction(value) and _own(value, losses) and name[0] != "_"}
    for module in modules():
        for name, value in vars(module).items():
            if _own(value, module) and inspect.isclass(value):
                own = {f"{name}.{method}": function for method, function in vars(value).items() if _gives_loss(method, function)}
                found |= {path for path, function in own.items() if function.__qualname__ == path}
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
    for squared, chosen in itertools.product((True, False), losses.SELECTIONS):
        three, given = [drawn(9, 3) for _ in range(3)], {"squared": squared, "selection": chosen}
        expected = lambda three=three, given=given: slow_triplet(three, **given)
        yield str(given), lambda three=three, given=given: losses.triplet(*three, margin=2.0, **given), expected, three


def slow_triplet(three, squared, selection="all", margin=2.0):
    return sum(loss for loss, kind in slow.triplets(*three, margin, squared) if selection in ("all", kind))


def cases_of_or_softmax():
    logits, right = drawn(4, 6), torch.rand(4, 6) < 0.4
    right[0], right[1, 2] = False, True
    expected = lambda: [slow.or_softmax(*row) for row in zip(logits.tolist(), right.tolist())]
    yield "", lambda: losses.or_softmax(logits, right), expected, [logits]


def cases_of_balanced():
    logits, right, real = drawn(4, 6), torch.rand(4, 6) < 0.4, torch.rand(4, 6) < 0.8
    right[0], real[1], right[2] = False, False, True
    expected = lambda: [slow.balanced(logits[row, real[row]].tolist(), right[row, real[row]].tolist()) for row in range(4)]
    yield "", lambda: losses.balanced(logits, right, real), expected, [logits]


def cases_of_question_evidence():
    forms = [("exclude", "mean"), ("include", "mean"), ("exclude", "log_sum")]
    for similarity, wrong, form in itertools.product(("cosine", "dot"), (True, False), forms):
        questions, sentences, temperatures = drawn(3, 4), drawn(3, 5, 4), (torch.rand(3).double() + 0.5).requires_grad_()
        given = (questions, sentences, torch.tensor([False, True, False, True, False]), 1, temperatures, similarity, wrong, *form)
        fast, expected = lambda g=given: losses.question_evidence(*g), lambda g=given: slow.question_evidence(*g)
        yield f"{similarity} {wrong} {form}", fast, expected, [questions, sentences, temperatures]


def cases_of_pair_encoder():
    """What a micro-batch adds to the loss of its optimiser batch: weighted sums over the counts of the whole batch."""
    pair, words, tokens = drawn(4, 2), drawn(3, 5), drawn(2, 4)
    micro = {"labels": torch.tensor([1, 0, 0, 1]), "masked_targets": torch.tensor([4, 0, 2])}
    batch, real, replaced = {"examples": 10, "masked": 7, "tokens": 20}, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool(), tokens > 0.3
    of_pair, of_words = lambda: slow.pair(pair, micro["labels"], 10), lambda: slow.pair(words, micro["masked_targets"], 7)
    of_tokens = lambda: slow.binary(tokens[real].tolist(), replaced[real].tolist(), 20)

    usual = {"peak_lr": 1e-3, "warmup_steps": 0, "weight_decay": 0, "seed": 0, "save_every": 1, "log_every": 1}

    def total(cls, weights, *outputs):
        model = cls.__new__(cls)
        return trainer.weighted(model.losses(outputs, micro, batch), Options(**usual, **weights).loss_weights(model))

    fast = lambda: total(PairEncoder, {"mlm_weight": 0.5, "objective_weight": 3.0}, pair, words)
    yield "pair and mlm", fast, lambda: 0.5 * of_words() + 3 * of_pair(), [pair, words]
    yield "pair alone", lambda: total(PairEncoder, {}, pair, None), of_pair, [pair]
    fast = lambda: total(ElectraEncoder, {"detection_weight": 50.0}, pair, words, (tokens, replaced, real))
    yield "electra", fast, lambda: of_words() + of_pair() + 50 * of_tokens(), [pair, words, tokens]


def cases_of_embedder_loss():
    micro, batch, two = {"labels": torch.tensor([1, 0, 1])}, {"examples": 5}, [drawn(3, 4) for _ in range(2)]
    model = embedder("siamese")
    expected = lambda: slow.binary(slow.siamese(model.siamese, *two), [1, 0, 1], 5)
    total = lambda model, vectors: trainer.weighted(model.losses(vectors, micro, batch), model.loss_weights())
    yield "siamese", lambda: total(model, two), expected, [*two, *model.siamese.parameters()]
    three = [drawn(3, 4) for _ in range(3)]
    for form, chosen in itertools.product(embedding.DISTANCES, losses.SELECTIONS):
        model = embedder("triplet", margin=2.0, distance=form, selection=chosen)
        expected = lambda form=form, chosen=chosen: slow_triplet(three, form == "squared", chosen)
        yield f"{form} {chosen}", lambda model=model: total(model, three), expected, three


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
        loss = slow.balanced(found["evidence"][row, real].tolist(), micro["evidence"][row, real].tolist())
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
        yield (
            f"weight {weight}",
            lambda m=model, f=found, b=micro: trainer.weighted(m.losses(f, b, batch), m.loss_weights()),
            expected,
            read,
        )


LOSSES = {
    "mlm": lambda: cases_of_cross_entropy(losses.mlm),
    "pair": lambda: cases_of_cross_entropy(losses.pair),
    "replaced_token": cases_of_replaced_token,
    "siamese": cases_of_siamese,
    "distance": cases_of_distance,
    "triplet_kinds": cases_of_triplet_kinds,
    "triplet": cases_of_triplet,
    "or_softmax": cases_of_or_softmax,
    "balanced": cases_of_balanced,
    "question_evidence": cases_of_question_evidence,
    "PairEncoder.losses": cases_of_pair_encoder,
    "Embedder.losses": cases_of_embedder_loss,
    "EvidenceFinder.qa_losses": cases_of_qa,
    "EvidenceFinder.contrast_losses": cases_of_contrast,
    "EvidenceFinder.losses": cases_of_finder_loss,
}
