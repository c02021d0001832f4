"""What cannot be tested here: each reason from made-up records, its limits against exact ones; dev and test pooled, against scipy."""

import json
import math
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from pages import differences, intervals, quotes, report, verdicts
from scipy import stats

from aslab import papers, records
from aslab.analysis import testable
from tests.trust import pages, traced_reasons

from ..made_up import FOLDER, PAPER, cells, commit, found, record, values

CLAIM = "On WikiQA the SSP objective lifts RoBERTa."
ROW = "RoBERTa + SSP − RoBERTa-Base, WikiQA, P@1"


def made(folder, ours=0.9, base=0.5, seeds=(0, 1, 2), budget="small", **more):
    """Records of SSP and of its baseline; `more` is in those of SSP."""
    for seed in seeds:
        commit(folder, record("roberta_base", "wikiqa", budget, seed, base), record("roberta_ssp", "wikiqa", budget, seed, ours, **more))
    return found(folder)


def directions(lines, folder=FOLDER):
    """The direction of the claim on P@1 in the table of claims, in that of two tests, and the word of the row in the results."""
    line = next(row for row in cells(differences.claims_table(PAPER, lines, draws=500, folder=folder)) if row[0].startswith(CLAIM))
    two = next((row for row in cells(differences.two_tests_table(PAPER, lines, folder=folder)) if row[0] == ROW), [""])
    return line[4], two[-1]


def word_of(lines, name="roberta_ssp"):
    return verdicts.of_cells(papers.read(PAPER, FOLDER), name, "wikiqa", ["p@1"], lines[lines.row == name])


def test_without_a_reason_there_is_a_direction(tmp_path):
    lines = made(tmp_path)
    assert directions(lines) == ("shows", "seeds and questions") and word_of(lines) == [("reduced budget", "")]


# ------------------------------------------------------------------ one encoder under two names


@pytest.mark.parametrize("kept", [{"name": "one-run"}, {"weights_sha256": {"a": "b"}}, {"weights_sha256": {}, "inputs": {"model": "m"}}])
def test_one_encoder_under_two_names(tmp_path, kept):
    """The same run, the same weights or the same vectors, with the same figures of every question."""
    for row in ("roberta_base", "roberta_ssp"):
        commit(tmp_path, record(row, "wikiqa", "small", 0, 0.5, **kept))
    said = "not testable hereone encoder under two names"
    assert directions(found(tmp_path)) == (said, said)


def test_the_same_weights_that_rank_otherwise_are_two_systems(tmp_path):
    kept = {"weights_sha256": {"a": "b"}}
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5, **kept), record("roberta_ssp", "wikiqa", "small", 0, 0.9, **kept))
    assert directions(found(tmp_path))[0] == "shows"


# ------------------------------------------------------------------ a model at chance


def test_a_model_is_above_chance_where_the_exact_interval_is(tmp_path):
    """P@1 of 40 questions that are drawn with replacement is a binomial share: its 2.5 % quantile against the random order's .123."""
    seen = set()
    for right in range(1, 21):
        lines = made(tmp_path, ours=right / 40, base=0.9, seeds=[0])
        low = stats.binom.ppf([0.022, 0.028], 40, right / 40) / 40  # 10,000 draws do not tell what lies between
        if (low[0] > 0.123) == (low[1] > 0.123):
            above = low[0] > 0.123
            said = "not testable hereRoBERTa + SSP: P@1 is not above chance, 12.3"
            assert directions(lines)[0] == ("opposite" if above else said), right
            assert word_of(lines) == ([("reduced budget", "")] if above else [(testable.VERDICT, "P@1 is not above chance, 12.3")])
            seen.add(above)
    assert seen == {True, False}


def test_at_the_papers_own_budget_chance_is_a_result(tmp_path):
    assert directions(made(tmp_path, ours=0.1, base=0.9, budget="paper"))[0] == "opposite"


def test_the_chance_of_evidence_and_of_claims_is_their_own(tmp_path):
    """Of evidence the expected mAP of a random order, the F1 of all sentences and of one answer; of claims the most frequent label."""
    one = next(made(tmp_path).itertuples())
    known = {
        "before training": {"map_raw": 0.9},
        "random": {"map": 0.6},
        "all_sentences": {"evidence_f1": 0.3},
        "most_frequent_answer": {"answer_f1": 0.2},
        "document_order": None,
    }
    one.record.update(notebook="find_evidence", baselines=known)
    assert [testable.chance(one, name) for name in ("map_raw", "map_projected", "evidence_f1", "answer_f1")] == [0.6, 0.6, 0.3, 0.2]
    one.record.update(notebook="verify_claims", baselines={"majority": {"label_accuracy": 0.35}})
    assert testable.chance(one, "label_accuracy") == 0.35
    assert testable.chance(one._replace(dataset="wikiqa_dev"), "label_accuracy") is None  # the baselines are of the test questions


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


@pytest.mark.parametrize(
    ("first", "mean", "pooling", "expected"),
    [
        ([0.5, 0.9995], [0.2, 0.7], "first", True),
        ([0.5, 0.9995], [0.2, 0.7], "mean", False),  # what is not read may be one vector
        ([0.9999, 0.99], [0.2, 0.7], "first", False),  # the last layer counts
        ([0.5, 0.6], [0.2, 1.0], "mean", True),
    ],
)
def test_collapsed_slots_anywhere_in_the_chain(tmp_path, first, mean, pooling, expected):
    figures = {"slot_cosines": {"first": first, "mean": mean, "pooling": pooling}}
    before = {"notebook": "pretrain", "name": "p", "budget": "small", "seed": 0, "settings": {}, "figures": figures}
    for n, more in enumerate(({"figures": figures}, {"earlier": [before]})):
        lines = made(tmp_path / str(n), **more)
        said = "not testable hereRoBERTa + SSP: the slots of its joint model are one vector"
        assert directions(lines) == ((said, said) if expected else ("shows", "seeds and questions"))
        assert (intervals.own_plot(PAPER, lines, FOLDER) is None) == expected
        html = report.results_table(PAPER, "table_2", lines, "wikiqa", folder=FOLDER)
        figure = next(row[1] for row in cells(html) if row[0] == "ours" and row[1].startswith("90.0 ± 0.0"))
        assert ("†" in figure, "‡" in figure) == (not expected, not expected)  # marks compare, too


# ------------------------------------------------------------------ what a paper's file declares


@pytest.fixture
def declaring(tmp_path):
    """experiments/ where the baseline does not exist at budget small."""
    shutil.copytree(FOLDER, tmp_path / "experiments")
    path = tmp_path / "experiments" / f"{PAPER}.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["rows"]["roberta_base"]["not_testable"] = {"small": "it is <not> there"}
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path.parent


def test_a_declared_reason_stands_in_claims_and_tables(declaring, tmp_path):
    nothing = made(tmp_path / "results", seeds=[])
    said = "not testable hereRoBERTa-Base: it is <not> there"
    assert directions(nothing, declaring)[0] == said and directions(nothing)[0] == "not run"
    html = report.results_table(PAPER, "table_1", nothing, "wikiqa", folder=declaring)
    line = next(row for row in cells(html) if row[:2] == ["RoBERTa-Base", "paper"])
    assert line[-1] == "not testable hereit is <not> there"
    assert verdicts.of_lines(papers.read(PAPER, declaring), nothing)["roberta_base", "wikiqa"] == testable.VERDICT
    assert "not testable" not in report.results_table(PAPER, "table_1", nothing, "asnq", folder=declaring)  # this budget never has it
    assert directions(made(tmp_path / "results"), declaring)[0] == said
    assert directions(made(tmp_path / "results", budget="gpu"), declaring)[0] == "shows"  # another budget


def test_rows_of_masked_language_modelling_alone_are_not_testable_at_budget_small():
    """Because objectives are learnt without it there, see the plan."""
    data = papers.read(PAPER, FOLDER)
    declared = {name for name, row in data["rows"].items() if "small" in row.get("not_testable", {})}
    assert declared == {f"roberta_mlm_only_{name}_data" for name in ("ssp", "sp", "psd")}
    assert not declared & set(data["budgets"]["small"]["rows"])


@pytest.mark.parametrize("reasons", [{"smal": "x"}, {"small": ""}, "x"])
def test_a_reason_that_is_none_is_refused(declaring, reasons):
    path = declaring / f"{PAPER}.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["rows"]["roberta_base"]["not_testable"] = reasons
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ValueError, match="row roberta_base: not_testable"):
        papers.read(PAPER, declaring)


# ------------------------------------------------------------------ dev and test pooled


def dev(mean, seed):
    """Dev questions, whose ids are those of test questions."""
    return values(mean, questions=24, seed=100 + seed)


def with_dev(folder, **more):
    for seed in (0, 1):
        for row, level in (("roberta_base", 0.5 + 0.05 * seed), ("roberta_ssp", 0.7 + 0.05 * seed)):
            commit(folder, record(row, "wikiqa", "small", seed, level, per_question_dev=dev(level, seed), **more))
    return found(folder)


def test_dev_is_a_column_of_its_own_alone_and_pooled_with_test(tmp_path):
    lines = with_dev(tmp_path)
    table = cells(differences.claims_table(PAPER, lines, folder=FOLDER))
    assert table[0][-1] == "On dev, and pooled with test" and len(table[0]) == 6
    row = next(row for row in table if row[0].startswith(CLAIM))
    of_test, of_dev = (
        np.subtract(
            *(np.mean([[v[1] for v in of(level, s)] for s, level in enumerate(levels)], axis=0) for levels in ((0.7, 0.75), (0.5, 0.55)))
        )
        for of in (lambda level, s: values(level, seed=s), dev)
    )
    figures = r"([-+.0-9]+)\[(\S+), (\S+)\]"
    shown = re.match(rf"{figures}(\w+)pooled{figures}(\w+)$", row[-1]).groups()
    for apart, said in ((of_dev, shown[:4]), (np.r_[of_dev, of_test], shown[4:])):
        theirs = stats.bootstrap((apart,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1)).confidence_interval
        mean, low, high = map(float, said[:3])
        assert mean == round(100 * apart.mean(), 1)
        assert [low, high] == pytest.approx([100 * theirs.low, 100 * theirs.high], abs=100 / len(apart))  # a question is so much
        assert said[3] == ("shows" if low > 0 else "unclear")
    assert "pooled" not in report.results_table(PAPER, "table_1", lines, folder=FOLDER)  # never among the paper's columns
    for path in tmp_path.glob("*/*/*.json"):  # the same figures of test alone
        commit(tmp_path, {name: value for name, value in json.loads(path.read_text()).items() if name != "per_question_dev"})
    of_test = found(tmp_path)
    without = cells(differences.claims_table(PAPER, of_test, folder=FOLDER))
    assert len(without[0]) == 5 and next(line for line in without if line[0].startswith(CLAIM)) == row[:-1]


def test_a_quote_over_dev_or_both_is_checked_against_these_questions(declaring, tmp_path):
    lines = with_dev(tmp_path / "results")
    means = {"dev": [np.mean([v[1] for v in dev(level, s)]) for s, level in ((0, 0.7), (1, 0.75), (0, 0.5), (1, 0.55))]}
    means["test"] = [np.mean([v[1] for v in values(level, seed=s)]) for s, level in ((0, 0.7), (1, 0.75), (0, 0.5), (1, 0.55))]
    gain = {name: 50 * (sum(of[:2]) - sum(of[2:])) for name, of in means.items()}
    gain["both"] = (24 * gain["dev"] + 40 * gain["test"]) / 64
    assert len({round(one, 1) for one in gain.values()}) == 3
    place = "p@1 of roberta_ssp - roberta_base on wikiqa at small"
    for over in ("dev", "both"):
        assert quotes.quoted(f"{gain[over]:+.1f}: {place} over {over}", PAPER, lines, FOLDER).expression == f"{PAPER} {place} over {over}"
        with pytest.raises(ValueError, match="the records give"):
            quotes.quoted(f"{gain['test']:+.1f}: {place} over {over}", PAPER, lines, FOLDER)
    block = f'<span data-as2-figure="{PAPER} {place} over dev">{gain["dev"]:+.1f}</span>'
    assert pages.quoted(tmp_path, "page", BeautifulSoup(block, "html.parser")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "50.0: p@1 of roberta_ssp on wikiqa at small over dev",
        "a hint: p@1 of roberta_ssp - roberta_base on wikiqa at small over dev is better",
    ],
)
def test_over_dev_only_differences_are_quoted_and_not_as_findings(tmp_path, text):
    with pytest.raises(ValueError, match="over dev: expected a difference of two rows, findings and hints are of test"):
        quotes.quoted(text, PAPER, with_dev(tmp_path), FOLDER)


@pytest.mark.parametrize("place", ["its own", "earlier"])
def test_nothing_is_pooled_where_dev_chose_an_epoch(tmp_path, place):
    patient = {"dataset": "wikiqa", "patience": 5}
    before = {"notebook": "finetune", "name": "p", "budget": "small", "seed": 0, "settings": patient}
    lines = with_dev(tmp_path, **({"settings": patient} if place == "its own" else {"earlier": [before]}))
    assert all(records.pooled(papers.read(PAPER, FOLDER), one) is None for one in lines.itertuples())
    assert "pooled" not in differences.claims_table(PAPER, lines, draws=100, folder=FOLDER)


def test_nothing_is_pooled_where_dev_chose_settings(tmp_path):
    lines, data = with_dev(tmp_path), json.loads(json.dumps(papers.read(PAPER, FOLDER)))
    assert all(len(records.pooled(data, one)) == 64 for one in lines.itertuples())
    data["budgets"]["small"]["search"] = {"epochs": [1, 2], "datasets": ["wikiqa"]}
    assert all(records.pooled(data, one) is None for one in lines.itertuples())


# ------------------------------------------------------------------ counted again


def test_every_reason_and_the_pooled_column_are_counted_again(declaring, tmp_path):
    """What `trust` computes from the same files with nothing of asutil: the same lines, and another one where a digit is changed."""
    results = tmp_path / "results"
    with_dev(results)
    slots = {"slot_cosines": {"first": [0.1, 0.9999], "mean": [0.1], "pooling": "first"}}
    commit(results, record("electra_base", "wikiqa", "small", 0, 0.6), record("electra_ssp", "wikiqa", "small", 0, 0.15))
    commit(results, record("roberta_sp", "wikiqa", "small", 0, 0.8, figures=slots), record("roberta_psd", "wikiqa", "small", 0, 0.9))
    pre = {"accuracy": 0.8, "f1": 0.1, "majority": 0.8, "examples": 500, "auc": 0.51}
    own = record("roberta_ssp", "pretraining", "small", 0, 0.5)
    commit(results, own | {"notebook": "pretrain", "metrics": {"validation": pre}, "per_question": []})
    path = declaring / f"{PAPER}.yml"
    path.write_text(
        path.read_text("utf-8").replace("not_testable:\n      small: it is <not> there", "not_testable:\n      gpu: it is <not> there")
    )
    lines = records.records(PAPER, results, tmp_path / "none", declaring)
    laptop = f'<div class="as2-laptop">{differences.laptop_claims_table(PAPER, lines, folder=declaring)}</div>'
    shown = {
        "claims": differences.claims_table(PAPER, lines, folder=declaring) + laptop,
        "two-tests": differences.two_tests_table(PAPER, lines, folder=declaring),
    } | {f"results table_{n}": report.results_table(PAPER, f"table_{n}", lines, folder=declaring) for n in (1, 3)}
    reasons = ("P@1 is not above chance", "the slots of its joint model are one vector", "budget small pre-trains without")
    assert all(reason in shown["claims"] for reason in reasons) and "pooled" in shown["claims"]
    assert "at chance on its own task, AUC 51.0" in shown["results table_3"]
    for name, html in shown.items():
        told = " ".join([name.split()[0], PAPER, *name.split()[1:]])
        block = BeautifulSoup(f'<div data-as2="{told}">{html}</div>', "html.parser").div
        assert pages.traced_block(tmp_path, "page", block) > 5
