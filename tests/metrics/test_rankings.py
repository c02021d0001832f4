"""Ranking metrics: by hand, by the definitions and other libraries (`tests/trust/rankings.py`), and what is refused."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest

from asutil import metrics
from asutil.metrics import rankings
from tests.trust import rankings as oracles


def random_rows(seed, distinct):
    """Rows of 40 questions in no order, in which ties are rare or usual, with names of candidates."""
    draw = np.random.default_rng(seed)
    ids, labels, scores = oracles.random_rows(40, draw, distinct)
    order = draw.permutation(len(ids))
    return ids[order], labels[order], scores[order], [f"d{n}" for n in draw.permutation(len(ids))]


def test_by_hand():
    # a: ranked wrong, right, wrong, right -> AP (1/2 + 2/4)/2, RR 1/2; b: right first -> 1, 1, 1
    r = metrics.ranking(["a", "a", "a", "a", "b", "b"], [1, 0, 1, 0, 1, 0], [0.8, 0.9, 0.1, 0.2, 2.0, -1.0])
    assert (r.p_at_1, r.map, r.mrr) == (0.5, 0.75, 0.75)
    assert (r.questions, r.tied_questions, r.empty_questions) == (2, 0, 0)
    each = {"question_id": ["a", "b"], "p_at_1": [0.0, 1.0], "average_precision": [0.5, 1.0], "reciprocal_rank": [0.5, 1.0]}
    assert r.per_question.to_dict("list") == each
    assert r.record() == {"p@1": 0.5, "map": 0.75, "mrr": 0.75, "questions": 2, "tied_questions": 0, "empty_questions": 0}


def test_they_are_those_of_the_definitions_and_of_other_libraries(monkeypatch):
    """All sets of up to three candidates by brute force; random ones by trec_eval and torchmetrics; what must not matter."""
    monkeypatch.setattr(oracles, "LARGEST", 3)
    assert oracles.check(50, 1) == {"small_sets": 6 + 36 + 216, "random_sets": 100}


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("ties", rankings.TIES)
def test_rows_together_and_scattered_rank_alike(ties, distinct):
    for seed in range(5):
        ids, labels, scores, names = random_rows(seed, distinct)
        scattered = pd.DataFrame({"q": pd.Categorical(ids, dict.fromkeys(ids)), "y": labels, "s": scores, "c": names})
        together = scattered.sort_values("q", kind="stable")
        one, other = (metrics.ranking(t.q, t.y, t.s, ties, candidate_ids=t.c) for t in (together, scattered))
        assert one.record() == other.record()
        pd.testing.assert_frame_equal(one.per_question, other.per_question)


def test_trec_eval_ties_are_those_of_32_bit_scores_and_the_highest_name():
    close = [1.0, 1.0 + 1e-12]  # two scores as float64, one as float32
    assert metrics.ranking([0, 0], [1, 0], close).p_at_1 == 0
    assert metrics.ranking([0, 0], [1, 0], close).tied_questions == 0
    assert metrics.ranking([0, 0], [1, 0], close, ties="trec_eval", candidate_ids=["b", "a"]).p_at_1 == 1
    assert metrics.ranking([0, 0], [1, 0], close, ties="trec_eval", candidate_ids=["a", "b"]).p_at_1 == 0


def test_scores_keep_their_precision():
    assert metrics.ranking([1, 1], [1, 0], np.array([0.0, -0.0], dtype=np.float32)).tied_questions == 1
    for a in np.array([0.1, -0.1, 0.3, -0.3, 1e-45, -1e-45, 0, 3e38, -3e38], dtype=np.float32):
        for b in (np.nextafter(a, np.float32(np.inf)), np.nextafter(np.nextafter(a, np.float32(np.inf)), np.float32(np.inf))):
            assert metrics.ranking([0, 0], [1, 0], np.array([b, a])).p_at_1 == 1  # neighbours
            assert metrics.ranking([0, 0], [1, 0], np.array([a, b])).p_at_1 == 0
    assert metrics.ranking([0, 0], [1, 0], np.array([0.1 + 2e-17 * 4, 0.1])).p_at_1 == 1  # float64 neighbours
    assert metrics.ranking([0, 0], [1, 0], np.array([2**53 + 1, 2**53])).p_at_1 == 1  # int64
    tiny = np.array([1e-45, 0, -1e-45, -3.4e38, 3.4e38], dtype=np.float32)
    labels = [0, 0, 1, 0, 0]
    assert metrics.ranking([0] * 5, labels, tiny).mrr == pytest.approx(1 / 4)


def test_questions_without_a_right_candidate():
    ids, labels, scores = ["a", "a", "b", "b"], [1, 0, 0, 0], [2.0, 1.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="1 of 2 questions have no right candidate, first 'b'"):
        metrics.ranking(ids, labels, scores)
    skipped, zero = (metrics.ranking(ids, labels, scores, empty=rule) for rule in ("skip", "zero"))
    assert (skipped.map, skipped.questions, skipped.empty_questions, len(skipped.per_question)) == (1.0, 1, 1, 1)
    assert (zero.map, zero.mrr, zero.questions, zero.empty_questions) == (0.5, 0.5, 2, 1)
    first_skipped = metrics.ranking(ids[::-1], labels[::-1], scores, empty="skip").per_question  # "a" at scores 2 and 1, right one last
    columns = ["question_id", "p_at_1", "average_precision", "reciprocal_rank"]
    assert first_skipped.to_dict("split") == {"index": ["a"], "columns": columns, "data": [["a", 0.0, 0.5, 0.5]]}
    with pytest.raises(ValueError, match="none of the 1 questions"):
        metrics.ranking([1], [0], [0.5], empty="skip")


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        (metrics.ranking, ([1, 1], [0, 1], [0.5, float("nan")]), "row 1: a score is a finite number, got nan"),
        (metrics.ranking, ([1, 1], [0, 1], [float("-inf"), 0.5]), "row 0: a score is a finite number, got -inf"),
        (metrics.ranking, ([1, 1], [0, 2], [0.5, 0.1]), "row 1: a label is 0 or 1, got 2"),
        (metrics.ranking, ([1, 1], [0, "yes"], [0.5, 0.1]), "row 1: a label is 0 or 1, got 'yes'"),
        (metrics.ranking, ([1, 1], ["1", "0"], [0.5, 0.1]), "row 0: a label is 0 or 1, got '1'"),
        (metrics.ranking, ([1, 1], [0, None], [0.5, 0.1]), "row 1: a label is 0 or 1, got None"),
        (metrics.ranking, ([1, 1], [0, float("nan")], [0.5, 0.1]), "row 1: a label is 0 or 1, got nan"),
        (metrics.ranking, ([1, 1], [1], [0.5, 0.1]), "got 2 question ids, 1 labels, 2 scores"),
        (metrics.ranking, ([1, 1], [1, 0], [[0.5, 0.1], [0.2, 0.3]]), "one label and one score a row"),
        (metrics.ranking, (["a", None], [1, 0], [0.5, 0.1]), "row 1 has no question id"),
        (metrics.ranking, ([1, 1], [1, 0], ["0.5", "0.1"]), "scores are numbers"),
        (metrics.ranking, ([], [], []), "there are no rows"),
        (metrics.ranking, ([1], [1], [1], "optimistic"), "ties: one of pessimistic, trec_eval expected"),
        (metrics.ranking, ([1], [1], [1], "pessimistic", "drop"), "empty: one of raise, skip, zero expected"),
        (metrics.ranking, ([0, 0], [1, 0], [1, 1], "trec_eval"), "candidate_ids"),
        (metrics.ranking, ([0, 0], [1, 0], [1, 1], "trec_eval", "raise", ["a"]), "got 1 for 2 rows"),
        (
            metrics.of,
            (pd.DataFrame({"question_id": ["q"] * 3, "candidate_id": [1, 2, 1], "label": [1, 0, 1], "score": 0.5}),),
            "row 2: candidate 1",
        ),
        (metrics.classification, ([1], [1, 0]), "shapes"),
        (metrics.classification, ([1.0], [0.3]), "class numbers"),
        (metrics.auc, ([1, 1], [0.1, 0.2]), "AUC needs examples of both classes: got 2 right of 2"),
        (metrics.auc, ([1, 0], [0.1, float("nan")]), "row 1: a score is a finite number"),
        (metrics.verification, ([0, -1], [0, 1]), "row 1: a label is a class from 0 to 2, got -1"),
        (metrics.verification, ([0, 1, 2], [0, 1, 3]), "row 2: a prediction is a class from 0 to 2, got 3"),
        (metrics.verification, ([0, 1], [0]), "one prediction a label"),
        (metrics.verification, ([], []), "at least one"),
        (metrics.verification, ([0.0], [0]), "class numbers"),
        (metrics.verification, (["SUPPORTS"], [0]), "class numbers"),
    ],
)
def test_refusals(call, arguments, said):
    with pytest.raises(ValueError, match=said):
        call(*arguments)


def test_kinds_of_input():
    expected = metrics.ranking([1, 1, 2], [0, 1, 1], [0.2, 0.1, 0.4]).record()
    frame = pd.DataFrame({"q": ["a", "a", "b"], "y": [False, True, True], "s": [0.2, 0.1, 0.4]}, index=[7, 7, 9])
    assert metrics.ranking(frame.q, frame.y, frame.s).record() == expected
    assert metrics.ranking(frame.q.astype("category"), frame.y.astype("Int8"), frame.s.astype("Float32")).record() == expected
    assert metrics.ranking(np.array(["a", "a", "b"]), np.array([0.0, 1, 1]), [0.2, 0.1, 0.4]).record() == expected
    assert metrics.ranking([1, "1", 1], [1, 1, 0], [1, 1, 0]).questions == 2  # the number and the text are two questions


def test_two_million_pairs_take_under_two_seconds():
    rng = np.random.default_rng(0)
    ids, labels = np.repeat(np.arange(20_000), 100), (rng.random(2_000_000) < 0.02).astype(np.int8)
    labels[::100] = 1
    scores = rng.standard_normal(2_000_000).astype(np.float32)
    start = time.process_time()
    metrics.ranking(ids, labels, scores)
    assert time.process_time() - start < 2


def test_classification():
    torchmetrics = pytest.importorskip("torchmetrics.functional.classification")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    labels, predictions = (rng.random(200) < 0.2).astype(int), (rng.random(200) < 0.3).astype(int)
    got = metrics.classification(labels, predictions)
    assert got["accuracy"] == pytest.approx((labels == predictions).sum() / 200)
    assert got["f1"] == pytest.approx(float(torchmetrics.binary_f1_score(torch.tensor(predictions), torch.tensor(labels))))
    assert got["majority"] == pytest.approx(1 - labels.mean())
    assert metrics.classification([0, 0], [0, 0]) == {"accuracy": 1.0, "f1": 0.0, "majority": 1.0}


@pytest.mark.parametrize("steps", [None, 3, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auc_is_what_torchmetrics_and_a_loop_over_pairs_say(steps, dtype):
    torchmetrics = pytest.importorskip("torchmetrics.functional.classification")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    labels = (rng.random(300) < 0.2).astype(int)
    scores = (rng.random(300) + 0.3 * labels * rng.random(300)) / 1.3
    scores = (np.round(scores * steps) / steps if steps else scores).astype(dtype)
    got = metrics.auc(labels, scores)
    gaps = scores[labels == 1][:, None] - scores[labels == 0]
    assert got == pytest.approx(((gaps > 0) + 0.5 * (gaps == 0)).mean(), abs=1e-12) and 0.5 < got < 1
    assert got == pytest.approx(float(torchmetrics.binary_auroc(torch.tensor(scores), torch.tensor(labels))), abs=1e-6)
    assert metrics.auc(labels, -scores) == pytest.approx(1 - got) and metrics.auc(labels, 5 + 2 * scores) == got
    assert metrics.auc(labels, np.zeros(300)) == 0.5


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (1 / 3, 1 / 3, 1 / 3), (0.7, 0.3, 0.0)], ids=["uneven", "even", "without the third"])
def test_verification_is_what_torchmetrics_says(shares):
    torchmetrics = pytest.importorskip("torchmetrics.classification")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    labels = rng.choice(3, 300, p=shares)
    predictions = np.where(rng.random(300) < 0.6, labels, rng.choice(3, 300, p=shares))
    given = torch.tensor(predictions), torch.tensor(labels)
    got, table = metrics.verification(labels, predictions), metrics.confusion(labels, predictions)
    assert got.pop("label_accuracy") == pytest.approx(float(torchmetrics.Accuracy(task="multiclass", num_classes=3)(*given)))
    f1 = torchmetrics.MulticlassF1Score(num_classes=3, average=None)(*given).tolist()
    assert [got.pop(f"f1_{name}") for name in ("supports", "not_enough_info", "refutes")] == pytest.approx(f1)
    assert table.to_numpy().tolist() == torchmetrics.MulticlassConfusionMatrix(num_classes=3)(*given).tolist()
    assert got == {"majority": np.bincount(labels).max() / 300, "claims": 300}


def test_verification_by_hand():
    labels, predictions = [0, 0, 0, 2, 2, 0], [0, 0, 2, 2, 0, 0]
    got = metrics.verification(labels, predictions)
    expected = {"label_accuracy": 4 / 6, "f1_supports": 6 / 8, "f1_not_enough_info": 0.0, "f1_refutes": 2 / 4}
    expected |= {"majority": 4 / 6, "claims": 6}
    assert got == expected and list(got) == list(expected)
    table = metrics.confusion(labels, predictions)
    assert table.loc["SUPPORTS", "REFUTES"] == 1 and table.loc["SUPPORTS", "SUPPORTS"] == 3 and table.to_numpy().sum() == 6
    assert (table.index.name, table.columns.name) == ("label", "prediction")
    named = metrics.confusion(np.array([True, False]), np.array([1, 1], np.int8), names=("no", "yes"))
    assert named.to_dict() == {"no": {"no": 0, "yes": 0}, "yes": {"no": 1, "yes": 1}}


@pytest.mark.parametrize(
    ("question", "candidate", "said"),
    [
        (["a b", "c"], ["1", "2"], "row 0: .*question_id 'a b'"),
        (["a", ""], ["1", "2"], "row 1: .*question_id ''"),
        (["a", "a"], ["1", None], "row 1: .*candidate_id ''"),
        (["a", "a"], ["1", "1"], "row 1: candidate '1' appears twice in question 'a'"),
    ],
)
def test_trec_export_refuses_what_the_format_cannot_hold(question, candidate, said, tmp_path):
    table = pd.DataFrame({"question_id": question, "candidate_id": candidate, "label": [1, 0], "score": [0.5, 0.1]})
    with pytest.raises(ValueError, match=said):
        metrics.write_trec(table, tmp_path / "run", tmp_path / "qrels")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ a random order


@pytest.mark.parametrize("labels", [[1], [0, 1], [1, 0, 0, 0], [1, 1, 0, 0, 0], [1] * 4, [1, 0, 1, 0, 1, 0, 0]])
def test_a_random_order_is_the_mean_over_all_orders(labels):
    """By a slow loop over every order of the candidates."""
    orders = [rankings.ranking(["q"] * len(labels), order, range(len(labels), 0, -1)) for order in set(itertools.permutations(labels))]
    found = rankings.at_random(pd.DataFrame({"question_id": "q", "label": labels}))
    for figure in ("p_at_1", "map", "mrr"):
        assert getattr(found, figure) == pytest.approx(np.mean([getattr(one, figure) for one in orders]), rel=1e-12)
    assert (found.questions, found.tied_questions, found.empty_questions) == (1, 0, 0)


def test_a_random_order_of_several_questions_is_near_the_mean_of_many_draws():
    draw = np.random.default_rng(0)
    sizes = draw.integers(1, 9, 200)
    rows = pd.DataFrame({"question_id": np.repeat(np.arange(200), sizes)})
    rows["label"] = draw.integers(0, 2, len(rows))
    rows = rows[rows.groupby("question_id").label.transform("sum") > 0]
    draws = [rankings.of(rows.assign(score=draw.random(len(rows)))).record() for _ in range(300)]
    for name, value in rankings.at_random(rows).record().items():
        assert value == pytest.approx(np.mean([one[name] for one in draws]), abs=0.006), name


def test_a_random_order_counts_questions_without_a_right_candidate_as_it_is_told():
    rows = pd.DataFrame({"question_id": ["a", "a", "b"], "label": [1, 0, 0]})
    assert [rankings.at_random(rows, empty).map for empty in ("skip", "zero")] == [0.75, 0.375]
    with pytest.raises(ValueError, match="1 of 2 questions have no right candidate, first 'b'"):
        rankings.at_random(rows)
