"""Claims on figures without values of questions, and on more than two rows: against SciPy and sums by hand, from made-up records."""

import itertools
import math

import pytest
from scipy import stats

from aslab import papers
from aslab.analysis import figure_claims as judged

from ..made_up import FOLDER, PAPER, commit, recorded

HARDER = {"id": "x", "where": "5.3", "claim": "x", "plus": ["roberta_ssp"], "minus": ["bert_nsp"], "dataset": "pretraining"}
HARDER |= {"metric": ["accuracy", "f1"], "sign": "-"}
SAMPLES = {"roberta_ssp": [0.86, 0.85, 0.88], "bert_nsp": [0.95, 0.96, 0.955, 0.97], "roberta_sp": [0.8, 0.81], "albert_sop": [0.7, 0.72]}


def own_task(row, seed, accuracy, budget="small"):
    metrics = {"validation": {"accuracy": accuracy, "f1": accuracy - 0.2, "auc": 0.9, "majority": 0.8}}
    settings = {"objective": "ssp", "validation_examples": 2000}
    shared = {"dataset": "pretraining", "budget": budget, "seed": seed, "row": row, "name": f"pretrain-{row}-{seed}"}
    return {"notebook": "pretrain", "settings": settings, "metrics": metrics, **shared}


@pytest.fixture
def judge(tmp_path):
    def of(*claims, samples=SAMPLES, budget="small"):
        for row, values in samples.items():
            commit(tmp_path, *(own_task(row, seed, value, budget) for seed, value in enumerate(values)))
        return judged.figure_claims({**papers.read(PAPER, FOLDER), "figure_claims": list(claims)}, recorded(tmp_path))

    return of


def test_two_rows_are_welchs_t_test(judge):
    accuracy, f1 = judge(HARDER)
    test = stats.ttest_ind(SAMPLES["roberta_ssp"], SAMPLES["bert_nsp"], equal_var=False)
    interval = test.confidence_interval(0.95)
    assert accuracy.ours.p_value == pytest.approx(test.pvalue) and accuracy.seeds == 3 and accuracy.budget == "small"
    assert accuracy.ours.interval == pytest.approx((interval.low, interval.high))
    assert accuracy.ours.difference == pytest.approx(f1.ours.difference) == pytest.approx(0.863333 - 0.95875, abs=1e-5)
    assert accuracy.adjusted == pytest.approx(2 * test.pvalue)  # two tests
    assert (accuracy.word, accuracy.printed, f1.printed) == ("supported", pytest.approx(0.918 - 0.969), pytest.approx(0.831 - 0.971))


def test_a_gain_over_another_gain_is_a_sum_of_four_means(judge):
    gain = HARDER | {"plus": ["roberta_ssp", "albert_sop"], "minus": ["bert_nsp", "roberta_sp"], "metric": "accuracy"}
    (one,) = judge(gain)
    means = {row: sum(values) / len(values) for row, values in SAMPLES.items()}
    assert one.ours.difference == pytest.approx(means["roberta_ssp"] - means["bert_nsp"] - (means["roberta_sp"] - means["albert_sop"]))
    shares = [stats.tvar(values) / len(values) for values in SAMPLES.values()]
    freedom = sum(shares) ** 2 / sum(share**2 / (len(values) - 1) for share, values in zip(shares, SAMPLES.values()))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(shares))
    assert one.ours.interval == pytest.approx((one.ours.difference - half, one.ours.difference + half))
    assert one.printed == pytest.approx(0.918 + 0.937 - 0.969 - 0.913) and one.seeds == 2


def test_the_order_of_a_sum_chooses_no_digit():
    """1,740, 1,734 and 1,725 right of 2,000 less 1,910 are -8.85 points."""
    for shares in itertools.permutations([0.87, 0.867, 0.8625]):
        assert judged.summed([1, -1], [list(shares), [0.955]]).difference == -0.0885


@pytest.mark.parametrize(
    ("samples", "sign", "word", "reason"),
    [
        ({"roberta_ssp": [0.86], "bert_nsp": [0.95, 0.96]}, "-", "not testable here", judged.ONE_SEED),
        ({"roberta_ssp": [0.86, 0.87]}, "-", "not run", ""),
        ({"roberta_ssp": [0.86, 0.87, 0.865], "bert_nsp": [0.95, 0.96, 0.955]}, "+", "reversed", ""),
        ({"roberta_ssp": [0.7, 0.9, 0.8], "bert_nsp": [0.75, 0.95, 0.8]}, "-", "inconclusive", ""),
    ],
)
def test_verdicts(judge, samples, sign, word, reason):
    (one,) = judge(HARDER | {"metric": "accuracy", "sign": sign}, samples=samples)
    assert (one.word, one.reason) == (word, reason)


def test_records_of_budget_laptop_decide_nothing(judge):
    assert [one.word for one in judge(HARDER, budget="laptop")] == ["not run"] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plus": ["roberta_spp"]}, "figure claim x: unknown value 'roberta_spp'; did you mean 'roberta_sp'"),
        ({"metric": "acuracy"}, "figure claim x: unknown value 'acuracy'; did you mean 'accuracy'"),
        ({"row_a": "roberta_ssp"}, "figure claim x: unknown key 'row_a'"),
        ({"sign": "="}, "figure claim x: unknown value '='"),
    ],
)
def test_a_wrong_claim_is_refused(change, message):
    data = {**papers.read(PAPER, FOLDER), "figure_claims": [HARDER | change]}
    with pytest.raises(ValueError, match=message):
        papers._check(data, PAPER)
