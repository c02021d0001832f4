"""The verdicts on claims: every word at its borders, Holm over what a budget plans, effect ratios by hand, and the committed table."""

import random
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from aslab import papers
from aslab.analysis import claims, comparisons
from aslab.analysis.claims import PYDOCS, Judged, verdict
from aslab.analysis.comparisons import Outcome
from aslab.commands import asutil
from aslab.records import COMMITTED
from asutil.metrics.significance import Comparison

from ..made_up import FOLDER, PAPER, ahead_and_behind, commit, record, recorded, values
from ..trust.recompute_claims import holm

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "results" / "claims.csv"
COMMAND = "asutil claims results/claims.csv"


@pytest.fixture
def results(tmp_path):
    return ahead_and_behind(tmp_path)


@pytest.fixture(scope="module")
def committed():
    """Paper -> its file and the verdicts on its claims, from the committed records."""
    each = {paper: comparisons.rows_and_runs(paper) for paper in papers.PAPERS}
    return {paper: (data, claims.judged(data, runs)) for paper, (data, runs) in each.items()}


# ------------------------------------------------------------------ the word


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize(
    ("low", "high", "p_value", "adjusted", "word"),
    [
        (0.02, 0.06, 0.001, 0.0499, "supported"),
        (0.001, 0.009, 0.001, 0.01, "supported"),  # below one point, and yet not zero
        (0.02, 0.06, 0.001, 0.05, "suggestive"),
        (0.001, 0.009, 0.04, 0.4, "suggestive"),
        (-0.001, 0.06, 0.05, 0.3, "inconclusive"),
        (-0.001, 0.06, 0.0500001, 1, "inconclusive"),
        (-0.01, 0.004, 0.3, 1, "inconclusive"),
        (-0.004, 0.01, 0.3, 1, "inconclusive"),
        (-0.0099, 0.0099, 1, 1, "no effect beyond 1 point"),
        (-0.009, -0.001, 0.01, 0.2, "no effect beyond 1 point"),  # the other way before Holm alone, and small
        (-0.06, -0.02, 0.001, 0.2, "inconclusive"),  # the other way before Holm alone
        (-0.06, -0.02, 0.001, 0.05, "inconclusive"),
        (-0.06, -0.02, 0.001, 0.0499, "reversed"),
        (-0.009, -0.001, 0.001, 0.0499, "reversed"),
    ],
)
def test_the_word_on_a_difference(way, low, high, p_value, adjusted, word):
    """The cases are of a claimed gain; of a claimed loss they are the same with all signs turned."""
    low, high = sorted((way * low, way * high))
    assert verdict("+" if way > 0 else "-", Comparison(p_value, (low + high) / 2, (low, high)), adjusted) == word


def test_a_claim_without_a_test_is_not_run_or_has_a_reason():
    assert verdict("+", None, None) == verdict("-", None, None) == "not run"
    significant, claim = Comparison(0.001, 0.04, (0.02, 0.06)), {"sign": "+"}
    assert Judged(Outcome(claim, "", test=significant), "small", 0.01).word == "supported"
    assert Judged(Outcome(claim, "two stand-ins", test=significant), "small", None).word == "not testable here"
    assert Judged(Outcome(claim, "two stand-ins"), "small", None).word == "not testable here"


def test_dev_and_test_together_decide_where_both_count():
    test, pooled = Comparison(0.3, 0.01, (-0.01, 0.03)), Comparison(0.01, 0.02, (0.01, 0.03))
    alone = Judged(Outcome({"sign": "+"}, "", test=test), "small", 0.3)
    assert alone.word == "inconclusive"
    both = Judged(Outcome({"sign": "+"}, "", test=test, pooled=pooled), "small", 0.01)
    assert (both.sample, both.word) == ("dev and test", "supported") and both.outcome.primary is pooled


@pytest.mark.slow
def test_the_sample_is_the_split_that_the_records_are_about(committed):
    """HotpotQA has answers for its dev questions alone."""
    samples = {}
    for paper in ("evidence_contrast", "joint_inference"):
        for one in committed[paper][1]:
            if one.outcome.primary:
                measured = next(one.outcome.where.of(one.outcome.claim["row_a"]).itertuples()).record["metrics"]
                samples[one.outcome.claim["dataset"], one.sample] = set(measured)
    assert samples["hotpotqa", "dev"] == {"dev"} and ("hotpotqa", "test") not in samples
    assert all(set(sample.split(" and ")) <= measured for (_, sample), measured in samples.items())


@pytest.mark.slow
def test_one_seed_borrows_its_variance_from_rows_with_the_same_questions(tmp_path):
    """Those that have no dev questions lend for test alone; without any there is a reason."""
    on_dev = {"per_question_dev": values(0.5, questions=24)}
    commit(tmp_path, *(record(row, "wikiqa", "small", 0, mean, **on_dev) for row, mean in (("roberta_ssp", 0.9), ("roberta_base", 0.4))))
    ssp = lambda: next(
        one for one in claims.judged(papers.read(PAPER, FOLDER), recorded(tmp_path)) if one.outcome.claim["id"] == "ssp_wikiqa"
    )
    assert ssp().word == "not testable here" and ssp().outcome.reason == "one seed, and no row trained alike shows how much seeds differ"
    for seed, mean in enumerate((0.5, 0.4, 0.6)):
        commit(tmp_path, record("roberta_psd", "wikiqa", "small", seed, mean))
    assert (ssp().outcome.reason, ssp().sample, ssp().outcome.questions) == ("", "test", 40) and ssp().adjusted
    for seed, mean in enumerate((0.5, 0.4, 0.6)):
        commit(tmp_path, record("roberta_psd", "wikiqa", "small", seed, mean, **on_dev))
    assert (ssp().sample, ssp().outcome.questions) == ("dev and test", 64)


def test_a_row_that_was_trained_otherwise_lends_nothing_to_the_row_that_it_is_compared_with(tmp_path):
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.4))
    for seed, mean in enumerate((0.8, 0.9, 0.7)):
        commit(tmp_path, record("roberta_ssp", "wikiqa", "small", seed, mean, settings={"architecture": "joint"}))
    every = claims.judged(papers.read(PAPER, FOLDER), recorded(tmp_path))
    ssp = next(one for one in every if one.outcome.claim["id"] == "ssp_wikiqa")
    assert ssp.outcome.reason == "one seed, and no row trained alike shows how much seeds differ"


# ------------------------------------------------------------------ families


def test_what_is_not_tested_counts_as_p_1(results):
    """Budget small plans fourteen claims, three of which have runs. Claims of gpu and paper, and hypotheses that were stated
    later, are separate families."""
    data = papers.read(PAPER, FOLDER)
    every = claims.judged(data, recorded(results))
    small = [one for one in every if one.family == "small" and "stated" not in one.outcome.claim]
    tested = {one.outcome.claim["id"]: one for one in small if one.adjusted is not None}
    own = [claim for claim in papers.claims(data) if "stated" not in claim]
    planned = list(dict.fromkeys(claim["id"] for claim in own if papers.first_budget(data, claim) == "small"))
    assert [one.outcome.claim["id"] for one in small] == planned and len(planned) == 14
    p_values = [tested[name].outcome.primary.p_value if name in tested else 1.0 for name in planned]
    expected = dict(zip(planned, holm(p_values)))
    assert {name: one.adjusted for name, one in tested.items()} == pytest.approx({name: expected[name] for name in tested})
    assert tested["ssp_wikiqa"].adjusted == pytest.approx(len(planned) * tested["ssp_wikiqa"].outcome.primary.p_value)
    words = {one.outcome.claim["id"]: one.word for one in small}
    known = {"ssp_wikiqa": "supported", "ssp_single_document": "supported", "psd_wikiqa": "no effect beyond 1 point"}
    assert words == dict.fromkeys(planned, "not run") | known and set(tested) == set(known)
    (pydocs,) = [one for one in every if one.family == PYDOCS and one.adjusted is not None]
    assert pydocs.outcome.claim["id"] == "ssp_wikiqa" and pydocs.word == "reversed"


@pytest.mark.slow
@pytest.mark.parametrize("paper", [PAPER, "evidence_contrast"])
def test_the_order_of_claims_rows_and_records_changes_nothing(committed, paper):
    data, every = committed[paper]
    _, runs = comparisons.rows_and_runs(paper)
    draw = random.Random(0)
    shuffled = lambda values: draw.sample(list(values), len(values))
    other = data | {"claims": shuffled(data["claims"]), "rows": dict(shuffled(data["rows"].items()))}
    again = claims.judged(other, runs.sample(frac=1, random_state=0))
    assert [one.outcome.claim["id"] for one in again] != [one.outcome.claim["id"] for one in every]
    assert _by_comparison(again) == _by_comparison(every)


def _by_comparison(every: list[Judged]) -> dict:
    """On pydocs claims on several data sets are one, with the id of the first."""
    compared = lambda claim: tuple(claim[name] for name in ("row_a", "row_b", "dataset", "metric"))
    verdict_on = lambda one: (one.word, one.outcome.reason, one.adjusted and pytest.approx(one.adjusted))
    return {(one.family, *compared(one.outcome.claim)): verdict_on(one) for one in every}


@pytest.mark.parametrize(
    ("paper", "claim", "budget"),
    [
        ("sentence_objectives", "ssp_wikiqa", "small"),
        ("sentence_objectives", "ssp_wikiqa_electra", "gpu"),  # no ELECTRA below
        ("sentence_objectives", "sp_asnq", "paper"),
        ("joint_inference", "mspp_joint_climate_fever", "small"),  # a data set of claims
        ("joint_inference", "mspp_joint_fever_dev", "paper"),  # a column for one split
        ("joint_inference", "joint_alone_ie_k_asnq", "paper"),  # both rows at small, the data set not
    ],
)
def test_a_claim_needs_the_first_budget_that_has_its_rows_and_its_data_set(paper, claim, budget):
    data = papers.read(paper)
    assert papers.first_budget(data, next(one for one in papers.claims(data) if one["id"] == claim)) == budget


# ------------------------------------------------------------------ the effect ratio


def judged_with(family="small", adjusted: float | None = 0.3, difference=0.015) -> Judged:
    claim = {"id": "one", "row_a": "a", "row_b": "b", "dataset": "d", "metric": "map", "sign": "+"}
    return Judged(Outcome(claim, "", test=Comparison(0.2, difference, (-0.01, 0.04))), family, adjusted)


@pytest.mark.parametrize(
    ("cells", "ratio"),
    [
        (([80.0, 0.1], [77.5, 0.1]), (0.6, -0.4, 1.6)),  # 1.5, -1 and 4 over 2.5 points
        ((80.0, 77.5), (0.6, -0.4, 1.6)),
        ((77.5, 80.0), (-0.6, -1.6, 0.4)),
        ((80.0, 80.0), None),
        ((80.0, None), None),
    ],
)
def test_the_effect_ratio_by_hand(cells, ratio):
    data = {"unit": "percent", "rows": {row: {"published": {"d": {"map": cell}}} for row, cell in zip("ab", cells)}}
    ours = claims.effect_ratio(data, judged_with())
    assert ours is None if ratio is None else (ours.difference, *ours.interval) == pytest.approx(ratio)
    fractions = {"unit": "fraction", "rows": {row: {"published": {"d": {"map": value}}} for row, value in zip("ab", (0.8, 0.775))}}
    assert claims.effect_ratio(fractions, judged_with()).difference == pytest.approx(0.6)
    assert claims.effect_ratio(fractions, judged_with(family=PYDOCS)) is None
    assert claims.effect_ratio(fractions, judged_with(adjusted=None)) is None


# ------------------------------------------------------------------ the committed table


@pytest.mark.slow
def test_the_committed_table_is_up_to_date():
    told = f"results/claims.csv is not what the records give: {COMMAND} writes it anew"
    made = StringIO(claims.table().to_csv(index=False, float_format="%.6g"))
    try:
        pd.testing.assert_frame_equal(pd.read_csv(TABLE), pd.read_csv(made), rtol=1e-5)
    except AssertionError as error:
        raise AssertionError(told) from error


@pytest.mark.slow
def test_the_command_writes_the_table_and_counts_the_words(committed, tmp_path, capsys):
    to = tmp_path / "claims.csv"
    asutil.main(["claims", str(to)])
    written = pd.read_csv(to)
    assert list(written.columns) == claims.COLUMNS and [path.name for path in tmp_path.iterdir()] == ["claims.csv"]
    words = [one.word for _, every in committed.values() for one in every if one.family == "small"]
    header, *lines = capsys.readouterr().out.splitlines()
    assert [list(map(int, line.split()[1:])) for line in lines if line.startswith("small")] == [
        [words.count(word) for word in claims.VERDICTS if word in set(written.verdict)]
    ]
    assert header.split()[0] == "verdict"


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers.PAPERS)
def test_a_hypothesis_is_older_than_the_runs_that_test_it(committed, paper):
    """No record of row A, with which the hypothesis stands or falls, was made before the day on which it was stated."""
    _, every = committed[paper]
    _, runs = comparisons.rows_and_runs(paper)
    for one in [one for one in every if "stated" in one.outcome.claim]:
        claim = one.outcome.claim
        made = runs[(runs.row == claim["row_a"]) & (runs.dataset == claim["dataset"]) & (runs.source == COMMITTED)]
        assert len(made) or one.word in ("not run", "not testable here"), claim["id"]
        assert all(record["created"] >= str(claim["stated"]) for record in made.record), claim["id"]


def test_the_table_has_a_line_for_each_claim_and_family():
    lines = pd.read_csv(TABLE)
    assert not lines.duplicated(["paper", "claim", "family"]).any()
    for paper in papers.PAPERS:
        data, own = papers.read(paper), lines[lines.paper == paper]
        of_laptop = [claim["id"] for claim in data["claims"] if claim["dataset"] == "pydocs_more"]
        assert sorted(own[own.family != PYDOCS].claim) == sorted({claim["id"] for claim in data["claims"]} - {*of_laptop})
        asked, entry = set(), data["budgets"]["laptop"]
        for claim in data["claims"]:
            if claim["dataset"] in entry["asked_of"] and {claim["row_a"], claim["row_b"]} <= set(entry["rows"]):
                asked.add((claim["row_a"], claim["row_b"], claim["sign"], papers.primary_metrics(data)[claim["id"]]))
        assert own[(own.family == PYDOCS) & own.stated.notna()].claim.tolist() == of_laptop
        pydocs = own[(own.family == PYDOCS) & own.stated.isna()]
        assert {*zip(pydocs.row_a, pydocs.row_b, pydocs.sign, pydocs.metric)} == asked and len(pydocs) == len(asked)
        waves = own.groupby(["family", "stated"], dropna=False)
        assert (waves.size() == waves.tests.first()).all()
    for files in lines.records.dropna().str.split():
        assert all((ROOT / file).is_file() for file in files)
