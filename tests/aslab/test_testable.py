"""What cannot be tested here: each reason from made-up records, its limits against exact ones."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aslab import papers
from aslab.analysis import comparisons, testable
from tests.trust import traced_reasons

from ..made_up import BACKBONE, FOLDER, PAPER, commit, compared, declaring, record, recorded

DATA = papers.read(PAPER, FOLDER)
CLAIM = next(claim for claim in papers.claims(DATA) if (claim["id"], claim["metric"]) == ("ssp_wikiqa", "p@1"))
OTHER = "owner/other"


def reason(lines, data=DATA, **more):
    return comparisons.outcome(data, lines, CLAIM | more).reason


# ------------------------------------------------------------------ encoders


@pytest.mark.parametrize("kept", [{"name": "one-run"}, {"weights_sha256": {"a": "b"}}, {"weights_sha256": {}, "inputs": {"model": "m"}}])
def test_one_encoder_under_two_names(tmp_path, kept):
    """The same run, the same weights or the same vectors, with the same figures of every question."""
    assert reason(compared(tmp_path, 0.5, 0.5, [0], of_base=kept, **kept)) == "one encoder under two names"


def test_the_same_weights_that_rank_otherwise_are_two_systems(tmp_path):
    kept = {"weights_sha256": {"a": "b"}}
    assert reason(compared(tmp_path, of_base=kept, **kept)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["small", "gpu", "paper"])
@pytest.mark.parametrize(("start", "on_the_way"), [(OTHER, False), (OTHER, True), (BACKBONE, True)])
def test_two_encoders_are_two_stand_ins_below_budget_paper(tmp_path, budget, start, on_the_way):
    """What a row begins with is the model of its first run."""
    settings, earlier = {"model": start}, []
    if on_the_way:
        settings, earlier = {"model": "run"}, [{"notebook": "pretrain", "name": "run", "settings": settings}]
    told = "its rows begin with two encoders, other and roberta-base" if start == OTHER and budget != "paper" else ""
    assert reason(compared(tmp_path, budget=budget, settings=settings, earlier=earlier)) == told


# ------------------------------------------------------------------ a baseline that its training broke


@pytest.mark.parametrize(
    ("zero_shot", "budget", "told"),
    [
        ((0.3, 0.65), "small", ""),
        ((0.3, 0.7), "small", "RoBERTa-Base is not above its own untrained encoder, 50.0"),  # equal is not above
        ((0.75, 0.3), "gpu", "RoBERTa-Base is not above its own untrained encoder, 52.5"),
        ((0.75, 0.3), "paper", ""),  # there it is a result
    ],
)
def test_a_baseline_is_above_its_own_untrained_encoder(tmp_path, zero_shot, budget, told):
    """Its seeds reach 40 and 60, against the mean of their zero-shot figures; that of the other row does not matter."""
    for seed, mean in enumerate((0.4, 0.6)):
        baselines = [{"baselines": {"zero_shot": {"p@1": level, "map": 0}}} for level in (0.99, zero_shot[seed])]
        compared(tmp_path, 0.9, mean, [seed], budget, baselines[1], **baselines[0])
    assert reason(recorded(tmp_path)) == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "of_untrained", "level"),
    [
        ("w", {"electra_base": ("w", 0.5)}, 0.5),
        ("w", {"electra_base": ("w", 0.45)}, 0.45),
        ("w", {"electra_base": ("w", 0.45), "electra_ssp": ("w", 0.55), "electra_sp": ("other", 0.6)}, 0.55),  # the best of them
        ("w", {"electra_base": ("other", 0.6)}, None),
        (None, {"electra_base": (None, 0.6)}, None),  # weights that nobody knows are not the same
        ("w", {}, None),
    ],
)
@pytest.mark.parametrize("is_pretrained", [False, True])
def test_an_untrained_row_with_the_same_weights_is_the_level_where_no_record_has_one(tmp_path, weights, of_untrained, level, is_pretrained):
    inputs = lambda model: {"inputs": {"model": model}} if model else {}
    of_base = inputs(weights)
    if is_pretrained:
        first = {"notebook": "pretrain", "name": "p", "settings": {"model": BACKBONE}}
        of_base = inputs("pre-trained") | {"earlier": [first | inputs(weights)], "settings": {"model": "p"}}
    compared(tmp_path, 0.9, 0.5, of_base=of_base)
    for row, (model, mean) in of_untrained.items():
        commit(tmp_path, record(row, "wikiqa", "small", 0, mean, {"architecture": "untrained"}, **inputs(model)))
    lines = recorded(tmp_path)
    base = lines[lines.row == "roberta_base"]
    assert testable.untrained_level(lines, base, "p@1") == (None if level is None else pytest.approx(level))
    told = f"RoBERTa-Base is not above its own untrained encoder, {100 * (level or 0):.1f}" * (level is not None and level >= 0.5)
    assert reason(lines) == told
    assert all(testable.untrained_level(lines, own, "p@1") is None for row, own in lines.groupby("row") if row in of_untrained)


def test_the_zero_shot_figure_is_of_the_questions_that_the_record_is_about(tmp_path):
    """Evidence has one for each of its readouts; the dev column of a run has none."""
    known = {"baselines": {"zero_shot": {"map": 0.4}}}
    metrics = {"test": {"map": 0.5, "map_raw": 0.5, "map_projected": 0.6}, "dev": {"map": 0.3}}
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5, metrics=metrics, **known))
    lines = recorded(tmp_path)
    assert [testable.untrained_level(lines, lines, name) for name in ("map", "map_raw", "map_projected", "p@1")] == [0.4] * 3 + [None]
    assert testable.untrained_level(lines, lines.assign(dataset="wikiqa_dev"), "map") is None


@pytest.mark.parametrize(
    ("learnt", "budget", "weights", "told"),
    [
        ("data", "small", "w", "RoBERTa-Base is not above its own untrained encoder, 60.0"),
        ("other", "small", "w", ""),
        ("data", "gpu", "w", ""),
        ("data", "small", "v", ""),
    ],
)
def test_where_a_model_only_ranks_the_level_is_that_of_runs_on_the_same_data(tmp_path, learnt, budget, weights, told):
    """The baseline reaches 50 on what it only ranks. A run that learns from this data has measured the same encoder there: 60."""
    for row, mean in {"roberta_ssp": 0.9, "roberta_base": 0.5}.items():
        for seed in (0, 1):
            part = record(row, "selqa", "small", seed, mean)
            ranked = {key: part[key] for key in ("metrics", "baselines", "per_question")} | {"fingerprint": "data"}
            commit(tmp_path, record(row, "nq_sentences", "small", seed, 0.8, inputs={"model": "w"}, transfer={"selqa": ranked}))
    inputs, measured = {"model": weights, "dataset": learnt}, {"zero_shot": {"p@1": 0.6}}
    commit(tmp_path, record("roberta_psd", "selqa", budget, 0, 0.7, inputs=inputs, baselines=measured))
    assert reason(recorded(tmp_path), dataset="selqa_from_nq_sentences") == told


# ------------------------------------------------------------------ a model at chance


@pytest.mark.slow
def test_a_model_is_above_chance_where_the_exact_interval_is(tmp_path):
    """P@1 of 40 questions that are drawn with replacement is a binomial share: its 2.5 % quantile against the random order's .123."""
    seen = set()
    for right in range(1, 21):
        low = stats.binom.ppf([0.022, 0.028], 40, right / 40) / 40  # 10,000 draws do not tell what lies between
        if (low[0] > 0.123) == (low[1] > 0.123):
            above = low[0] > 0.123
            lines = compared(tmp_path, ours=right / 40, base=0.9, seeds=[0])
            said = testable.of_row(DATA, lines[lines.row == "roberta_ssp"], "p@1")
            assert said == ("" if above else "P@1 is not above chance, 12.3"), right
            assert above or reason(lines) == f"RoBERTa + SSP: {said}"
            seen.add(above)
    assert seen == {True, False}


def test_chance_is_a_result_at_budget_paper_and_where_the_paper_says_so_of_row_b(tmp_path):
    assert reason(compared(tmp_path / "paper", ours=0.1, base=0.9, budget="paper")) == ""
    lines = compared(tmp_path, ours=0.9, base=0.1)
    assert reason(lines) == "RoBERTa-Base: P@1 is not above chance, 12.3" and reason(lines, b_at_chance=True) == ""
    assert reason(compared(tmp_path / "a", ours=0.1, base=0.9), b_at_chance=True) != "", "row B alone may be at chance"


def test_the_chance_of_evidence_and_of_claims_is_their_own(tmp_path):
    """Of evidence the expected mAP of a random order, the F1 of all sentences and of one answer; of claims the most frequent label."""
    one = next(compared(tmp_path).itertuples())
    known = {"before training": {"map_raw": 0.9}, "random": {"map": 0.6}, "document_order": None}
    known |= {"all_sentences": {"evidence_f1": 0.3}, "most_frequent_answer": {"answer_f1": 0.2}}
    one.record.update(notebook="find_evidence", baselines=known)
    assert [testable.chance(one, name) for name in ("map_raw", "map_projected", "evidence_f1", "answer_f1")] == [0.6, 0.6, 0.3, 0.2]
    one.record.update(notebook="verify_claims", baselines={"majority": {"label_accuracy": 0.35}})
    assert testable.chance(one, "label_accuracy") == 0.35
    assert testable.chance(one._replace(dataset="wikiqa_dev"), "label_accuracy") is None  # the baselines are of the test questions


@pytest.mark.slow
def test_an_own_task_at_chance():
    """An AUC of scores without any signal is called chance 39 times of 40; the limit is that of the ranks' own distribution."""
    draw, labels = np.random.default_rng(0), np.arange(500) < 100
    lines = found_on_its_own_task()
    below = []
    for _ in range(2000):
        ranks = stats.rankdata(draw.random(500))
        lines.record.iloc[0]["metrics"]["validation"]["auc"] = (ranks[labels].sum() - 5050) / (100 * 400)
        below.append(bool(testable.at_chance(lines, "accuracy")))
    assert np.mean(below) == pytest.approx(0.975, abs=0.01)
    lines.record.iloc[0]["metrics"]["validation"]["auc"] = 0.505
    assert testable.at_chance(lines, "f1") == "at chance on its own task, AUC 50.5"
    lines.record.iloc[0]["settings"]["labels"] = "shuffled"
    assert testable.at_chance(lines, "f1") == "at chance on its own task, as labels that were shuffled intend, AUC 50.5"


def test_an_own_task_of_mspp_has_a_label_for_each_candidate():
    """The least AUC that 500 groups of one right and four wrong candidates need, by the variance of ranks over 2,500 labels."""
    lines = found_on_its_own_task()
    one = lines.record.iloc[0]
    one["settings"] |= {"objective": "mspp", "positives": 1, "negatives": 4}
    limit = 0.5 + 1.96 * math.sqrt((500 + 2000 + 1) / (12 * 500 * 2000))
    for auc, said in ((limit - 0.001, True), (limit + 0.001, False)):
        one["metrics"]["validation"]["auc"] = auc
        assert bool(testable.at_chance(lines, "accuracy")) == said == bool(traced_reasons.own_task([one]))


def found_on_its_own_task():
    validation = {"accuracy": 0.8, "majority": 0.8, "examples": 500}
    one = record("roberta_ssp", "pretraining", "small", 0, 0.5) | {"notebook": "pretrain", "metrics": {"validation": validation}}
    columns = {"row": "roberta_ssp", "dataset": "pretraining", "budget": "small", "seed": 0, "source": "committed", "name": "run"}
    return pd.DataFrame([{**columns, "folder": None, "record": one, "earlier": []}])


# ------------------------------------------------------------------ collapsed slots


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "mean", "pooling", "expected"),
    [
        ([0.5, 0.9995], [0.2, 0.7], "first", True),
        ([0.5, 0.9995], [0.2, 0.7], "mean", False),  # what is not read may be one vector
        ([0.9999, 0.99], [0.2, 0.7], "first", False),  # the last layer counts
        ([0.5, 0.6], [0.2, 1.0], "mean", True),
    ],
)
@pytest.mark.parametrize("is_earlier", [False, True])
def test_collapsed_slots_anywhere_in_the_chain(tmp_path, first, mean, pooling, expected, is_earlier):
    figures = {"slot_cosines": {"first": first, "mean": mean, "pooling": pooling}}
    before = {"notebook": "pretrain", "name": "p", "budget": "small", "seed": 0, "settings": {}, "figures": figures}
    lines = compared(tmp_path, **({"earlier": [before]} if is_earlier else {"figures": figures}))
    assert reason(lines) == "RoBERTa + SSP: the slots of its joint model are one vector" * expected


# ------------------------------------------------------------------ what a paper's file declares


def test_a_declared_reason_is_of_one_budget(tmp_path):
    data = papers.read(PAPER, declaring(tmp_path, {"small": "it is <not> there"}))
    told = "RoBERTa-Base: it is <not> there"
    nothing = recorded(tmp_path / "nothing")
    assert reason(nothing, data) == told and reason(nothing) == ""
    assert reason(nothing, data, dataset="asnq") == ""  # this budget never has it
    assert reason(compared(tmp_path / "results"), data) == told
    assert reason(compared(tmp_path / "results", budget="gpu"), data) == ""
    of_claim = {"not_testable": {"small": "two vectors"}}
    assert reason(nothing, **of_claim) == "two vectors"
    assert reason(compared(tmp_path / "claims"), **of_claim) == "two vectors" and reason(recorded(tmp_path / "results"), **of_claim) == ""


def test_rows_of_masked_language_modelling_alone_are_not_testable_at_budget_small():
    """Because objectives are learnt without it there, see the plan."""
    declared = {name for name, row in DATA["rows"].items() if "small" in row.get("not_testable", {})}
    assert declared == {f"roberta_mlm_only_{name}_data" for name in ("ssp", "sp", "psd")}
    assert not declared & set(DATA["budgets"]["small"]["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("reasons", [{"smal": "x"}, {"small": ""}, "x"])
def test_a_reason_that_is_none_is_refused(tmp_path, reasons):
    with pytest.raises(ValueError, match="row roberta_base: not_testable"):
        papers.read(PAPER, declaring(tmp_path, reasons))
