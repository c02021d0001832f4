"""The part `numbers` of the promises: a sample of it holds, and each of its checks notices what is broken on purpose."""

import numpy as np
import pytest
import torch

from asutil import corpus as c
from asutil import losses, metrics
from asutil.corpus import index as corpus_index
from asutil.heads import AggregatedEvidence1
from asutil.losses import siamese
from asutil.metrics import rankings as ranking_metrics
from asutil.sampling import OBJECTIVES, Sampler, pairs
from asutil.sampling.objectives import ssp as ssp_file
from asutil.sampling.pairs import PairSampler
from asutil.training import loop
from tests.trust import Broken, gradients, laws, lengths, processes, rankings

from ..conftest import made_up_documents

# ------------------------------------------------------------------ rankings


def test_the_worst_order_is_that_of_a_tie():
    assert rankings.worst((1, 0, 0), (2, 2, 1)) == (0.0, 0.5, 0.5)
    assert rankings.by_name((1, 0), (0, 0)) == (0.0, 0.5, 0.5) and rankings.by_name((0, 1), (0, 0)) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("broken", ["optimistic", "shifted", "unsorted"])
def test_other_metrics_are_noticed(monkeypatch, broken):
    monkeypatch.setattr(rankings, "LARGEST", 3)
    plain = metrics.ranking

    def wrong(ids, labels, scores, *rest, **options):
        if broken == "optimistic":
            return plain(ids, labels, np.asarray(scores, float) + 1e-6 * np.asarray(labels), *rest, **options)
        if broken == "shifted":
            scores = np.abs(scores - 1)
        found = plain(ids, labels, scores, *rest, **options)
        if broken == "unsorted":
            found.per_question["average_precision"] = found.per_question["reciprocal_rank"]
        return found

    monkeypatch.setattr(ranking_metrics, "ranking", wrong)
    with pytest.raises(Broken):
        rankings.check(20, 1)


# ------------------------------------------------------------------ losses and heads


def test_a_loss_or_head_without_a_check_is_noticed(monkeypatch):
    def new(logits):
        return logits.sum()

    new.__module__ = losses.__name__
    monkeypatch.setattr(losses, "new", new, raising=False)
    with pytest.raises(Broken, match="losses without a check, or checks of none: new"):
        gradients.check(0)
    monkeypatch.delattr(losses, "new")
    monkeypatch.setattr(loop, "NewHead", type("NewHead", (AggregatedEvidence1,), {"__module__": "asutil.training"}), raising=False)
    with pytest.raises(Broken, match="heads without a check, or checks of none: NewHead"):
        gradients.check(0)


with_another_gradient = lambda logits, *rest: siamese(logits, *rest) + (logits - logits.detach()).sum()
of_absent_slots = lambda self, slots, present=None: self.scored(slots.mean(1))


@pytest.mark.parametrize(
    ("case", "target", "name", "wrong", "message"),
    [
        ("siamese", losses, "siamese", lambda *given: siamese(*given) * 1.0001, "away from a slow loop"),
        ("siamese", losses, "siamese", with_another_gradient, "another gradient than finite differences"),
        ("AggregatedEvidence1", AggregatedEvidence1, "forward", of_absent_slots, "away from a slow loop"),
    ],
)
def test_a_wrong_value_and_a_wrong_gradient_are_noticed(monkeypatch, case, target, name, wrong, message):
    monkeypatch.setattr(target, name, wrong)
    with pytest.raises(Broken, match=message):
        gradients.check_one(case)


# ------------------------------------------------------------------ laws


def test_an_objective_without_laws_is_noticed(monkeypatch):
    monkeypatch.setattr(laws.sampling, "OBJECTIVES", (*laws.sampling.OBJECTIVES, "new"))
    with pytest.raises(Broken, match="objectives without laws, or laws without objective: {'new'}"):
        laws.check(1, 0)


clash_free = lambda self, first, second, others: np.zeros(len(others), bool)
same_document = lambda self, p, need, key, turn: p
not_disjoint = lambda key, start, n, a, b, a_before=False, apart=0: (start, start + 0 * b)
one_group_again = lambda numbers, size, key: np.zeros_like(numbers)


@pytest.mark.parametrize(
    ("target", "name", "wrong", "message"),
    [
        (PairSampler, "_clashes", clash_free, "a negative repeats|c repeats"),
        (PairSampler, "_foreign", same_document, "easy|another paragraph|stands before A|of two"),
        (ssp_file, "two_spans", not_disjoint, "disjoint"),
        (pairs, "permuted", one_group_again, "every anchor once"),
    ],
)
def test_samplers_that_break_a_law_are_noticed(monkeypatch, target, name, wrong, message):
    monkeypatch.setattr(target, name, wrong)
    with pytest.raises(Broken, match=message):
        [laws.check_corpora(objective, 20, number) for number, objective in enumerate(("ssp", "sdc", "mspp"), 5)]


# ------------------------------------------------------------------ processes


@pytest.fixture(scope="module")
def index(documents, tokenizer, tmp_path_factory):
    return processes.check_indexes(documents, tokenizer, tmp_path_factory.mktemp("workers"))


def test_an_index_that_depends_on_workers_is_noticed(documents, tokenizer, tmp_path, monkeypatch):
    plain = c.build
    monkeypatch.setattr(
        corpus_index, "build", lambda made, *given, workers, **more: plain(made[: len(made) - workers // 8], *given, workers=1, **more)
    )
    with pytest.raises(Broken, match="8 workers make another index than 1: .*tokens.npy"):
        processes.check_indexes(documents, tokenizer, tmp_path)


def test_batches_that_depend_on_workers_are_noticed(index, monkeypatch):
    few = {name: made for name, made in processes.batches(index, 3, 3).items() if name in ("ssp, packed", "joint", "evidence")}
    monkeypatch.setattr(processes, "batches", lambda *given: few)
    monkeypatch.setattr(processes, "WORKERS", (2,))
    with pytest.raises(Broken, match="batches that no worker read: .*Batches"):
        processes.check_loaders(index, 3)
    monkeypatch.setattr(processes, "modules", list)
    assert processes.check_loaders(index, 3) == 3
    plain = processes.inputs.PretrainingBatches.__getitem__

    def wrong(self, step):
        worker = torch.utils.data.get_worker_info()
        return plain(self, step if worker is None else (step + worker.id) % len(self))

    monkeypatch.setattr(processes.inputs.PretrainingBatches, "__getitem__", wrong)
    with pytest.raises(Broken, match="another batch of step 1 from 2 workers"):
        processes.check_loaders(index, 3)


def outcome(taken, weight=1.0):
    return {"w": np.full(2, weight)}, [{"step": 1, "loss": 0.5, "seconds": 1}], taken


@pytest.mark.parametrize(
    ("two", "message"),
    [
        (outcome([[[[0, "a"]]], [[[1, "b"]]]]), None),
        (outcome([[[[0, "a"]]], [[[0, "a"]]]]), "each micro-batch once, step 0 took"),
        (outcome([[[[0, "a"]]], [[[1, "c"]]]]), "other micro-batches at step 0"),
        (outcome([[[[0, "a"], [1, "b"]]], [[]]]), "each takes some"),
        (outcome([[[[0, "a"]]], [[[1, "b"]]]], 1.0001), "weights 0.0001 away from those of one"),
    ],
)
def test_what_processes_made_is_judged(tmp_path, monkeypatch, two, message):
    one = outcome([[[[0, "a"], [1, "b"]]]])
    monkeypatch.setattr(processes, "PROCESSES", (1, 2))
    monkeypatch.setattr(processes, "start", lambda *given: None)
    monkeypatch.setattr(processes, "outcome", lambda folder, objective: one if folder.name == "ranks-1" else two)
    if message is None:
        processes.check_ranks(tmp_path, 1, 0, tmp_path)
    else:
        with pytest.raises(Broken, match=message):
            processes.check_ranks(tmp_path, 1, 0, tmp_path)


# ------------------------------------------------------------------ lengths


@pytest.fixture(scope="module")
def long(tokenizer, tmp_path_factory):
    return c.build(made_up_documents(80), tokenizer, tmp_path_factory.mktemp("long") / "index", source="made up")


@pytest.mark.slow
def test_lengths_of_made_up_text_say_nothing(long, monkeypatch):
    monkeypatch.setattr(lengths.sampling, "OBJECTIVES", ("ssp", "mspp"))
    found = lengths.check(long, 2000, 1)
    assert list(found) == ["ssp", "mspp"] and list(found["mspp"]) == ["all", *(f"slot {n}" for n in range(1, 6))]
    row = found["ssp"]["all"]
    assert row["examples"] == 2000 and row["positive"] == 0.2 and set(row["mean"]["tokens"]) == {"positive", "hard", "easy"}
    auc, where = lengths.largest({"made up": found})
    assert auc == max(row["auc"], found["mspp"]["all"]["auc"]) < 0.58 and where in ("made up ssp", "made up mspp")
    assert lengths.shown(found).count("\n") == 1 + 6


def test_lengths_are_those_of_the_text(long):
    before, sampler = lengths.sums(long), Sampler(long, "dslc")
    made = sampler.spans([3])
    found = {unit: lengths.part_lengths(of, made.ranges)[0] for unit, of in before.items()}
    parts = sampler[3].parts
    assert found["characters"].tolist() == [len(part) + 1 for part in parts]
    assert found["tokens"].tolist() == [len(long.tokenizer(part, add_special_tokens=False)["input_ids"]) for part in parts]


def test_a_length_that_gives_the_label_away_is_noticed(long, monkeypatch):
    """Clipped to what a paragraph holds, as the papers' own code does it."""
    plain = OBJECTIVES["ssp"].other
    monkeypatch.setattr(OBJECTIVES["ssp"], "other", lambda start, n, a, b, key: plain(start, n, a, np.maximum(b - 1, 1), key))
    monkeypatch.setattr(lengths.sampling, "OBJECTIVES", ("ssp",))
    with pytest.raises(Broken, match=r"ssp, all: AUC 0\.\d+ of lengths alone .*, at most 0.58"):
        lengths.check(long, 2000, 1)


def test_labels_out_of_balance_are_noticed(long, monkeypatch):
    plain = PairSampler.spans

    def wrong(self, indices):
        made = plain(self, indices)
        made.labels[0] = 0
        return made

    monkeypatch.setattr(PairSampler, "spans", wrong)
    monkeypatch.setattr(lengths.sampling, "OBJECTIVES", ("psd",))
    with pytest.raises(Broken, match="psd: a share of 0.2 positive"):
        lengths.check(long, 500, 1)
