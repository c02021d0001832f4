"""Ranking metrics: all small sets against brute force, random ones against trec_eval and torchmetrics, and what must not matter."""

import itertools

import numpy as np
import pytrec_eval
import torch
from torchmetrics.functional import retrieval
from tqdm.auto import tqdm

from asutil import metrics

from . import must

COLUMNS = ["p_at_1", "average_precision", "reciprocal_rank"]
LEVELS, LARGEST = 3, 5  # of scores, and of candidates, in the sets that are all tried
STRETCHED = {  # increasing functions that keep whole numbers apart
    "2 x + 3": lambda x: 2 * x + 3,
    "x^3": lambda x: x**3,
    "exp": lambda x: np.exp(x / 16),
    "arctan": np.arctan,
    "32-bit": lambda x: x.astype(np.float32) / 7,
    "16-bit": lambda x: x.astype(np.float16),
    "whole numbers": lambda x: x.astype(np.int64),
    "places": lambda x: np.unique(x, return_inverse=True)[1],
}


def check(sets: int, number: int) -> dict[str, int]:
    """All small sets, then so many random ones. Returns: how many of each."""
    draw = np.random.default_rng(number)
    return {"small_sets": check_small(), "random_sets": check_random(sets, draw)}


# ------------------------------------------------------------------ all sets of a few candidates


def small_sets() -> list[tuple[tuple, tuple]]:
    """All labels and scores of 1 to LARGEST candidates."""
    each = lambda n: itertools.product(itertools.product((0, 1), repeat=n), itertools.product(range(LEVELS), repeat=n))
    return [both for n in range(1, LARGEST + 1) for both in each(n)]


def values(ranked: tuple) -> tuple[float, float, float]:
    """P@1, AP and RR of labels in the order of their ranks, from the definitions; 0 without a right one."""
    places = [place for place, label in enumerate(ranked, 1) if label]
    if not places:
        return 0.0, 0.0, 0.0
    return float(ranked[0]), sum(sum(ranked[:place]) / place for place in places) / len(places), 1 / places[0]


def worst(labels: tuple, scores: tuple) -> tuple[float, float, float]:
    """The least that any order gives in which no candidate stands before one with a higher score."""
    orders = (order for order in itertools.permutations(range(len(scores))) if _descends(order, scores))
    return tuple(map(min, zip(*(values([labels[n] for n in order]) for order in orders))))


def _descends(order, scores) -> bool:
    return all(scores[one] >= scores[other] for one, other in itertools.pairwise(order))


def by_name(labels: tuple, scores: tuple) -> tuple[float, float, float]:
    """What trec_eval makes of candidates that are named in their order: at one score the highest name first."""
    return values([labels[n] for n in sorted(range(len(scores)), key=lambda n: (scores[n], n), reverse=True)])


def check_small() -> int:
    """Every set of up to LARGEST candidates with LEVELS scores, each a question of one table."""
    sets = small_sets()
    ids = np.repeat(np.arange(len(sets)), [len(labels) for labels, _ in sets])
    labels, scores = (np.concatenate([both[n] for both in sets]) for n in (0, 1))
    names = np.concatenate([np.arange(len(labels)) for labels, _ in sets])
    empty = [not any(right) for right, _ in sets]
    tied = sum(any(a != b and x == y for (a, x), (b, y) in itertools.combinations(zip(*both), 2)) for both in sets)
    for ties, slow in (("pessimistic", worst), ("trec_eval", by_name)):
        expected = np.array([slow(*both) for both in tqdm(sets, f"sets, ties {ties}", unit="", dynamic_ncols=True)])
        given = {"ties": ties, "candidate_ids": names if ties == "trec_eval" else None}
        for rule, kept in (("zero", np.ones(len(sets), bool)), ("skip", ~np.array(empty))):
            found = metrics.ranking(ids, labels, scores, empty=rule, **given)
            wanted = expected[kept]
            _equal(found.per_question[COLUMNS].to_numpy(), wanted, f"ties {ties}, empty {rule}")
            _equal([found.p_at_1, found.map, found.mrr], wanted.mean(0), f"means, ties {ties}, empty {rule}")
            must(found.per_question.question_id.tolist() == np.flatnonzero(kept).tolist(), f"questions in their order, empty {rule}")
            counts = (found.questions, found.tied_questions, found.empty_questions)
            must(counts == (kept.sum(), tied, sum(empty)), f"questions, tied, empty {(kept.sum(), tied, sum(empty))}, got {counts}")
    try:
        metrics.ranking(ids, labels, scores)
        refused = ""
    except ValueError as error:
        refused = str(error)
    expected = f"{sum(empty)} of {len(sets)} questions have no right candidate"
    must(expected in refused, f"empty questions are refused by default, got {refused!r}")
    return len(sets)


def _equal(found, wanted, what: str, apart: float = 1e-12) -> None:
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    must(found.shape == wanted.shape, f"{what}: {wanted.shape} values expected, got {found.shape}")
    row = int(np.abs(found - wanted).reshape(len(found), -1).max(1).argmax())
    must(np.allclose(found, wanted, rtol=0, atol=apart), f"{what}: question {row} has {found[row]}, expected {wanted[row]}")


# ------------------------------------------------------------------ random sets


def check_random(sets: int, draw) -> int:
    """Random sets against trec_eval, ties and all, and against torchmetrics, which has no rule for ties."""
    ids, labels, scores = random_rows(sets, draw, distinct=False)
    names = np.array([f"d{n}" for n in draw.permutation(len(ids))])
    ours = metrics.ranking(ids, labels, scores, ties="trec_eval", candidate_ids=names)
    _equal(ours.per_question[COLUMNS].to_numpy(), of_trec_eval(ids, labels, scores, names, sets), "trec_eval", 1e-6)
    must(ours.tied_questions > sets / 4, f"sets with ties among those for trec_eval, got {ours.tied_questions} of {sets}")
    ids, labels, scores = random_rows(sets, draw, distinct=True)
    ours = metrics.ranking(ids, labels, scores)
    _equal(ours.per_question[COLUMNS].to_numpy(), of_torchmetrics(ids, labels, scores, sets), "torchmetrics", 1e-6)
    must(ours.tied_questions == 0, f"no ties among those for torchmetrics, got {ours.tied_questions}")
    for distinct in (True, False):
        check_invariance(*random_rows(sets, draw, distinct), draw)
    return 2 * sets


def random_rows(sets: int, draw, distinct: bool):
    """Questions of 1 to 30 candidates with a right one, in order; scores are whole numbers, of a question all different or few."""
    sizes = draw.integers(1, 31, sets)
    ids = np.repeat(np.arange(sets), sizes)
    labels = draw.random(len(ids)) < draw.random(sets)[ids]
    labels[(sizes.cumsum() - sizes) + draw.integers(0, sizes)] = True
    shuffled = np.concatenate([draw.permutation(size) for size in sizes])
    return ids, labels.astype(int), (shuffled if distinct else draw.integers(-4, 4, len(ids))).astype(np.float64)


def of_trec_eval(ids, labels, scores, names, sets) -> np.ndarray:
    qrels, run = ({str(n): {} for n in range(sets)} for _ in range(2))
    for question, name, label, score in zip(ids.astype(str), names.tolist(), labels.tolist(), scores.tolist()):
        qrels[question][name], run[question][name] = label, score
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"P_1", "map", "recip_rank"}).evaluate(run)
    return np.array([[theirs[str(n)][name] for name in ("P_1", "map", "recip_rank")] for n in range(sets)])


def of_torchmetrics(ids, labels, scores, sets) -> np.ndarray:
    """A score of 0 or less is "not retrieved" there: scores are moved above it."""
    scores, labels = torch.from_numpy(scores - scores.min() + 1), torch.from_numpy(labels)
    borders = np.searchsorted(ids, np.arange(sets + 1))
    found = np.empty((sets, 3))
    for n, (start, stop) in enumerate(itertools.pairwise(tqdm(borders, "torchmetrics", unit="", dynamic_ncols=True))):
        given = scores[start:stop], labels[start:stop]
        found[n] = [
            retrieval.retrieval_precision(*given, top_k=1),
            retrieval.retrieval_average_precision(*given),
            retrieval.retrieval_reciprocal_rank(*given),
        ]
    return found


def check_invariance(ids, labels, scores, draw) -> None:
    """The order of rows, the names of questions and increasing functions of scores change nothing; their reverse does."""
    ours = metrics.ranking(ids, labels, scores).per_question.set_index("question_id")[COLUMNS]
    order = draw.permutation(len(ids))
    mixed = metrics.ranking(ids[order], labels[order], scores[order]).per_question.set_index("question_id")[COLUMNS]
    _equal(mixed.loc[ours.index].to_numpy(), ours.to_numpy(), "rows in another order")
    named = metrics.ranking([f"q{n}" for n in ids], labels.astype(bool), scores).per_question[COLUMNS]
    _equal(named.to_numpy(), ours.to_numpy(), "questions by other names")
    for name, stretched in STRETCHED.items():
        found = metrics.ranking(ids, labels, stretched(scores)).per_question[COLUMNS]
        _equal(found.to_numpy(), ours.to_numpy(), f"scores through {name}")
    must(not np.allclose(metrics.ranking(ids, labels, -scores).per_question[COLUMNS], ours), "reversed scores rank otherwise")
