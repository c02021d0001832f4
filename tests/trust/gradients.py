"""Every loss and head in float64: its value against a slow loop in Python's own numbers, its gradient against finite differences.

What there is to check is found in the package itself: a loss or head that is new there and has no case here is a broken promise.
"""

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable
from functools import partial

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
    names = tqdm([*LOSSES, *HEADS], "losses and heads", unit="", dynamic_ncols=True)
    return {"losses": len(LOSSES), "heads": len(HEADS), "variants": sum(check_one(name, number) for name in names)}


def check_one(name: str, number: int = 0) -> int:
    """A loss or head; how many variants it has."""
    with checkpoints.seeded(number):
        return sum(compare(f"{name} {variant}".strip(), *case) for variant, *case in {**LOSSES, **HEADS}[name]())


def compare(name: str, fast: Callable, expected: Callable, given: tuple, *modules: nn.Module) -> bool:
    """Value and gradient of one case. Raises: Broken where either is wrong.

    Args:
        fast: (*given) -> tensor, or tensors.
        expected: (*given) -> the same in Python's numbers.
        modules: whose parameters a gradient is asked of, too.
    """
    value, wanted = fast(*given), expected(*given)
    values, wants = (value, wanted) if isinstance(value, tuple) else ([value], [wanted])
    for one, want in zip(values, wants, strict=True):
        want = torch.tensor(want, dtype=torch.float64)
        must(one.shape == want.shape, f"{name}: shape {tuple(want.shape)} expected, got {tuple(one.shape)}")
        apart = float((one.detach().double() - want).abs().max())
        must(apart < 1e-9, f"{name}: {apart:.2g} away from a slow loop")
    tensors = [*leaves(given), *itertools.chain(*(module.parameters() for module in modules))]
    try:
        right = not tensors or torch.autograd.gradcheck(lambda *_: fast(*given), tensors)
    except (GradcheckError, RuntimeError) as error:
        right, name = False, f"{name}: {str(error).splitlines()[0]}"
    must(right, f"{name}: another gradient than finite differences")
    return True


def leaves(value) -> list[torch.Tensor]:
    """What a gradient is asked of in arguments, also in dicts."""
    if isinstance(value, dict | tuple):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)]
    return [value] if torch.is_tensor(value) and value.requires_grad else []


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
        yield f"{shape} total {total}", loss, slow.pair, (logits, labels, total)


def cases_of_replaced_token():
    logits, replaced, mask = drawn(3, 5), torch.randint(0, 2, (3, 5)), torch.arange(5) < torch.tensor([[5], [2], [4]])
    expected = lambda logits, replaced, mask, total: slow.binary(logits[mask], replaced[mask], total)
    for total in (None, 17):
        yield f"total {total}", losses.replaced_token, expected, (logits, replaced, mask, total)


def cases_of_siamese():
    for total in (None, 12):
        yield f"total {total}", losses.siamese, slow.binary, (drawn(7), torch.arange(7) % 2, total)


def cases_of_distance():
    expected = lambda one, other, squared: [slow.distance(*pair, squared) for pair in zip(one.tolist(), other.tolist())]
    for squared in (True, False):
        yield f"squared {squared}", losses.distance, expected, (drawn(4, 3), drawn(4, 3), squared)


def cases_of_triplet_kinds():
    """Which kind a triplet is of has no gradient."""
    three = [drawn(40, 3) for _ in range(3)]
    to = [losses.distance(three[0], other) for other in three[1:]]
    kinds = ("easy", "semi_hard", "hard")
    expected = lambda: tuple([float(kind == of) for _, of in slow.triplets(*three, 2.0, True)] for kind in kinds)
    yield "", lambda: tuple(losses.triplet_kinds(*to, 2.0)[kind].double() for kind in kinds), expected, ()


def cases_of_triplet():
    for squared, chosen in itertools.product((True, False), losses.SELECTIONS):
        given = {"margin": 2.0, "squared": squared, "selection": chosen}
        three = (drawn(9, 3), drawn(9, 3), drawn(9, 3))
        yield str(given), partial(losses.triplet, **given), partial(slow_triplet, **given), three


def slow_triplet(*three, squared, selection="all", margin=2.0):
    return sum(loss for loss, kind in slow.triplets(*three, margin, squared) if selection in ("all", kind))


def lists_of_candidates():
    """Labels of three lists, the last of them without a right candidate, and scores of a teacher."""
    empty = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]).bool()
    labels = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]).masked_fill(empty, slow.IGNORED)
    return labels, drawn(3, 4).detach().masked_fill(empty, -torch.inf)


def cases_of_listwise():
    for total in (None, 8):
        yield f"total {total}", losses.listwise, slow.listwise, (drawn(3, 4), lists_of_candidates()[0], total)


def cases_of_distillation():
    for total in (None, 8):
        yield f"total {total}", losses.distillation, slow.distillation, (drawn(3, 4), lists_of_candidates()[1], total)


def cases_of_or_softmax():
    logits, right = drawn(4, 6), torch.rand(4, 6) < 0.4
    right[0], right[1, 2] = False, True
    expected = lambda logits, right: [slow.or_softmax(*row) for row in zip(logits.tolist(), right.tolist())]
    yield "", losses.or_softmax, expected, (logits, right)


def cases_of_balanced():
    logits, right, real = drawn(4, 6), torch.rand(4, 6) < 0.4, torch.rand(4, 6) < 0.8
    right[0], real[1], right[2] = False, False, True
    expected = lambda logits, right, real: [slow.balanced(z[there], y[there]) for z, y, there in zip(logits, right, real)]
    yield "", losses.balanced, expected, (logits, right, real)


def cases_of_question_evidence():
    forms = [("exclude", "mean"), ("include", "mean"), ("exclude", "log_sum")]
    evidence = torch.tensor([False, True, False, True, False])
    for similarity, wrong, form in itertools.product(("cosine", "dot"), (True, False), forms):
        temperatures = (torch.rand(3).double() + 0.5).requires_grad_()
        given = (drawn(3, 4), drawn(3, 5, 4), evidence, 1, temperatures, similarity, wrong, *form)
        yield f"{similarity} {wrong} {form}", losses.question_evidence, slow.question_evidence, given


def cases_of_pair_encoder():
    """What a micro-batch adds to the loss of its optimiser batch: weighted sums over the counts of the whole batch."""
    pair, words, tokens = drawn(4, 2), drawn(3, 5), drawn(2, 4)
    micro = {"labels": torch.tensor([1, 0, 0, 1]), "masked_targets": torch.tensor([4, 0, 2])}
    batch, real, replaced = {"examples": 10, "masked": 7, "tokens": 20}, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool(), tokens > 0.3
    of_pair = lambda pair: slow.pair(pair, micro["labels"], 10)
    of_words = lambda words: slow.pair(words, micro["masked_targets"], 7)
    of_tokens = lambda tokens: slow.binary(tokens[real], replaced[real], 20)

    def total(cls, *outputs, **weights):
        model = cls.__new__(cls)
        usual = {"peak_lr": 1e-3, "warmup_steps": 0, "weight_decay": 0, "seed": 0, "save_every": 1, "log_every": 1}
        return trainer.weighted(model.losses(outputs, micro, batch), Options(**usual, **weights).loss_weights(model))

    fast = partial(total, PairEncoder, mlm_weight=0.5, objective_weight=3.0)
    yield "pair and mlm", fast, lambda pair, words: 0.5 * of_words(words) + 3 * of_pair(pair), (pair, words)
    yield "pair alone", lambda pair: total(PairEncoder, pair, None), of_pair, (pair,)
    labels, teacher = lists_of_candidates()
    places = torch.tensor([[4, 0, 2, 5], [1, 8, 3, -1], [6, 7, -1, -1]])  # the order of the micro-batch is another
    for name, given in (("listwise", {"labels": labels}), ("distillation", {"labels": labels, "teacher": teacher})):
        compared = {"lists": places, **given}
        of_lists = lambda pair, name=name, given=given: getattr(slow, name)((pair[:, 1] - pair[:, 0])[places], [*given.values()][-1], 8)
        yield name, lambda pair, micro=compared: PairEncoder.losses(None, (pair, None), micro, {"lists": 8})[1], of_lists, (drawn(9, 2),)
    fast = lambda pair, words, tokens: total(ElectraEncoder, pair, words, (tokens, replaced, real), detection_weight=50.0)
    expected = lambda pair, words, tokens: of_words(words) + of_pair(pair) + 50 * of_tokens(tokens)
    yield "electra", fast, expected, (pair, words, tokens)


def total_of(model, batch, *given):
    """What a model's own losses of some outputs add to the loss of an optimiser batch."""
    return trainer.weighted(model.losses(*given, batch), model.loss_weights())


def cases_of_embedder_loss():
    micro, batch, model = {"labels": torch.tensor([1, 0, 1])}, {"examples": 5}, embedder("siamese")
    fast = lambda *vectors: total_of(model, batch, vectors, micro)
    expected = lambda *two: slow.binary(slow.siamese(model.siamese, *two), [1, 0, 1], 5)
    yield "siamese", fast, expected, (drawn(3, 4), drawn(3, 4)), model.siamese
    for form, chosen in itertools.product(embedding.DISTANCES, losses.SELECTIONS):
        model = embedder("triplet", margin=2.0, distance=form, selection=chosen)
        expected = partial(slow_triplet, squared=form == "squared", selection=chosen)
        yield f"{form} {chosen}", fast, expected, (drawn(3, 4), drawn(3, 4), drawn(3, 4))


def evidence_batch(*names: str, size=4):
    """Some of what a finder says of two questions, and what is right; the second has three sentences and no answer."""
    found = {"questions": drawn(2, size), "sentences": drawn(2, 4, size), "evidence": drawn(2, 4), "kind": drawn(2, 3)}
    found |= {"text": drawn(2, 3, 5), "span": drawn(2, 6, 2)}
    micro = {"sentences": torch.tensor([[1, 2, 3, 4], [1, 3, 5, -1]]), "evidence": torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0]]).bool()}
    micro |= {"kinds": torch.tensor([2, 0]), "in_context": torch.arange(6)[None] > torch.tensor([[1], [2]])}
    micro |= {"starts": torch.zeros(2, 6).bool(), "ends": torch.zeros(2, 6).bool(), "contrasted": torch.tensor([True, False])}
    micro["starts"][0, [2, 4]] = micro["ends"][0, [3, 5]] = True
    micro["answers"] = torch.tensor([[4, 1, slow.IGNORED], [0, 2, 3]])
    return {name: found[name] for name in names}, micro


def slow_qa(found, micro, generates: bool) -> list[float]:
    """Evidence + type + answer, a question at a time."""
    rows = []
    for row in range(2):
        real = micro["sentences"][row] >= 0
        loss = slow.balanced(found["evidence"][row, real], micro["evidence"][row, real])
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
        given = evidence_batch("evidence", "kind", "text" if generates else "span")
        yield f"generates {generates}", finder(generates).qa_losses, partial(slow_qa, generates=generates), given


def slow_contrast(model, found, micro) -> list[float]:
    """The loss of the first question, and 0 of the second, which has no answer."""
    chosen, kind = model.finding.contrast, int(micro["kinds"][0])
    vectors = found["questions"][:1], found["sentences"][:1]
    temperatures = torch.tensor(chosen.temperatures)
    if model.projection is not None:
        vectors = slow.projected(model.projection, found["questions"][0], found["sentences"][0])
        vectors = [torch.tensor(part, dtype=torch.float64) for part in vectors]
    if len(vectors[0]) == 1:
        temperatures, kind = temperatures[kind : kind + 1], 0
    similarity = {"projected": "cosine", "bilinear": "dot"}.get(chosen.similarity, chosen.similarity)
    return [slow.question_evidence(*vectors, micro["evidence"][0], kind, temperatures, similarity), 0.0]


def cases_of_contrast():
    for projection, similarities in evidence_models.SIMILARITIES.items():
        for similarity in similarities:
            model = finder(False, projection, similarity)
            learnt = [] if model.projection is None else [model.projection]
            given = evidence_batch("questions", "sentences")
            yield f"{projection} {similarity}", model.contrast_losses, partial(slow_contrast, model), given, *learnt


def slow_total(model, weight, found, micro) -> float:
    """Of a batch of five examples, three of which have a contrast."""
    return (1 - weight) * sum(slow_qa(found, micro, False)) / 5 + weight * sum(slow_contrast(model, found, micro)) / 3


def cases_of_finder_loss():
    for weight in (0.0, 0.25):
        model = finder(False, loss_weight=weight)
        fast = partial(total_of, model, {"examples": 5, "contrasted": 3})
        given = evidence_batch("questions", "sentences", "evidence", "kind", "span")
        yield f"weight {weight}", fast, partial(slow_total, model, weight), given


SAME_NAME = (cases_of_replaced_token, cases_of_listwise, cases_of_distillation, cases_of_siamese, cases_of_distance)
SAME_NAME += (cases_of_triplet_kinds, cases_of_triplet, cases_of_or_softmax, cases_of_balanced, cases_of_question_evidence)
LOSSES = {
    **{cases.__name__.removeprefix("cases_of_"): cases for cases in SAME_NAME},
    "mlm": lambda: cases_of_cross_entropy(losses.mlm),
    "pair": lambda: cases_of_cross_entropy(losses.pair),
    "PairEncoder.losses": cases_of_pair_encoder,
    "Embedder.losses": cases_of_embedder_loss,
    "EvidenceFinder.qa_losses": cases_of_qa,
    "EvidenceFinder.contrast_losses": cases_of_contrast,
    "EvidenceFinder.losses": cases_of_finder_loss,
}
