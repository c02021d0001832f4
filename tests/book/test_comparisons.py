"""Claims, both tests of our runs, and what a test set can show: against scipy, a slow loop and sums by hand."""

import re

import numpy as np
import pandas as pd
import pytest
import yaml
from pages import differences, intervals
from scipy import stats

from aslab import papers, records
from aslab.analysis import comparisons
from aslab.show import markup
from asutil.data import answers
from asutil.io import rundir
from asutil.metrics import significance

from ..made_up import FOLDER, PAPER, cells, commit, found, record


@pytest.fixture
def results(tmp_path):
    for seed in (0, 1, 2):
        commit(tmp_path, record("roberta_base", "wikiqa", "small", seed, 0.5), record("roberta_ssp", "wikiqa", "small", seed, 0.7))
    return tmp_path


# ------------------------------------------------------------------ claims


def test_claims(results):
    html = differences.claims_table(PAPER, found(results), draws=500, folder=FOLDER)
    row = next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    assert row[1:3] == ["RoBERTa + SSP − RoBERTa-Base, WikiQA, P@1", "+4.6claimed +"]
    difference, low, high = map(float, re.fullmatch(r"(\S+)\[(\S+), (\S+)\]3 seeds, small", row[3]).groups())
    assert difference == 20.0  # 70 - 50
    assert low < 20 < high
    assert row[4:] == ["shows" if low > 0 else "unclear"]
    electra = next(r for r in cells(html) if "ELECTRA too" in r[0])
    assert electra[2:] == ["+5.4claimed +", "–needs gpu", "not run"]


def test_a_claim_is_tested_on_each_of_its_metrics(results):
    """P@1 and MAP of one claim: the printed difference of each from the published cells, ours from the records of each question."""
    data, table = papers.read(PAPER, FOLDER), cells(differences.claims_table(PAPER, found(results), draws=500, folder=FOLDER))
    alone = [claim["id"] for claim in data["claims"] if claim["metric"] != ["p@1", "map"]]
    assert alone == ["sp_tanda"]  # SP and TANDA have the same printed MAP
    assert len(table) == 2 + 2 * len(data["claims"]) - len(alone)
    place = next(n for n, row in enumerate(table) if row[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    of_map = table[place + 1]
    assert of_map[:2] == ["RoBERTa + SSP − RoBERTa-Base, WikiQA, MAP", "+2.9claimed +"]  # 88.7 - 85.8; its claim stands in the line above
    each = {
        row: np.mean([[v[2] for v in record(row, "wikiqa", "small", seed, m)["per_question"]] for seed in (0, 1, 2)])
        for row, m in (("roberta_ssp", 0.7), ("roberta_base", 0.5))
    }
    assert of_map[2].startswith(f"{100 * (each['roberta_ssp'] - each['roberta_base']):+.1f}[")


@pytest.mark.parametrize(("ours", "word"), [(1.0, "shows"), (0.3, "opposite"), (0.5, "unclear")])
def test_directions(tmp_path, ours, word):
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5), record("roberta_ssp", "wikiqa", "small", 0, ours))
    html = differences.claims_table(PAPER, found(tmp_path), draws=500, folder=FOLDER)
    assert next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))[-1] == word


def test_claims_pair_seeds(tmp_path):
    """Only seeds that both rows have are compared, whatever order the questions have."""
    shuffled = record("roberta_ssp", "wikiqa", "small", 0, 0.5)
    shuffled["per_question"] = shuffled["per_question"][::-1]
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5), record("roberta_base", "wikiqa", "small", 1, 0.9), shuffled)
    html = differences.claims_table(PAPER, found(tmp_path), draws=200, folder=FOLDER)
    row = next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    assert row[3:] == ["+0.0[+0.0, +0.0]1 seed, small", "unclear"]


def test_the_laptop_is_asked_the_papers_claims_once_and_on_its_own_questions(tmp_path):
    """Only the laptop's own records answer, the committed ones and, in a line below, those of this machine."""
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.9), record("roberta_ssp", "wikiqa", "small", 0, 0.1))
    commit(tmp_path, *[record("roberta_base", "pydocs", "laptop", seed, 0.4) for seed in (0, 1)])
    commit(tmp_path, *[record("roberta_ssp", "pydocs", "laptop", seed, 0.9) for seed in (0, 1, 2)])
    lines = found(tmp_path)
    local = lines[(lines.budget == "laptop") & (lines.seed == 0)]
    local = local.assign(source=records.HERE, row=local.row.map({"roberta_base": "roberta_ssp", "roberta_ssp": "roberta_base"}))
    table = cells(differences.laptop_claims_table(PAPER, pd.concat([lines, local]), draws=500, folder=FOLDER))
    place = next(n for n, row in enumerate(table) if row[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    ours, here = table[place : place + 2]
    assert ours[1:3] == ["RoBERTa + SSP − RoBERTa-Base, pydocs, P@1", "+"] and ours[3].startswith("+50.0 [")
    assert ours[4:] == ["ours", "2", "shows"] and here[1:] == ["ours, this machine", "1", "opposite"] and here[0].startswith("-50.0 [")
    data = papers.read(PAPER, FOLDER)
    asked = papers.claims_asked(data, "laptop")
    assert {claim["dataset"] for claim in asked} == {"pydocs"} and not {"psd_trecqa", "sp_tanda", "sp_asnq"} & {one["id"] for one in asked}
    assert len(asked) == len({(one["row_a"], one["row_b"], one["metric"], one["sign"]) for one in asked}) == 2 * 10
    assert next(row for row in table if row[0].startswith("On WikiQA the PSD"))[3:] == ["–", "–", "–", "not run"]


def test_claims_that_differ_in_the_papers_data_set_alone_are_asked_once():
    asked = [claim["id"] for claim in papers.claims_asked(papers.read("joint_inference", FOLDER), "laptop")]
    assert "joint_alone_ie_k_wikiqa" in asked and "mspp_joint_fever_dev" in asked
    assert not [name for name in asked if name.endswith(("_trecqa", "_asnq", "_fever_test", "climate_fever"))]
    data = {"claims": [{"id": name, "dataset": name, "row_a": "a", "row_b": "b", "metric": "map", "sign": "+"} for name in ("x", "y", "z")]}
    data["budgets"] = {"laptop": {"rows": ["a", "b"], "asked_of": {"x": "own", "y": "own", "z": "other"}}}
    assert [(claim["id"], claim["dataset"]) for claim in papers.claims_asked(data, "laptop")] == [("x", "own"), ("z", "other")]


def test_a_paper_without_claims(results, tmp_path):
    data = papers.read("evidence_contrast", FOLDER)
    (tmp_path / "evidence_contrast.yml").write_text(yaml.safe_dump({key: data[key] for key in data if key != "claims"}), encoding="utf-8")
    assert "nothing to show yet" in differences.claims_table("evidence_contrast", found(results), folder=tmp_path)


# ------------------------------------------------------------------ both tests


def test_both_tests_of_our_runs(tmp_path):
    ours, base = [0.7, 0.8, 0.75], [0.65, 0.55, 0.7]
    for seed in range(3):
        commit(tmp_path, record("roberta_ssp", "wikiqa", "small", seed, ours[seed]))
        commit(tmp_path, record("roberta_base", "wikiqa", "small", seed, base[seed]))
    tests = comparisons.own_tests(papers.read(PAPER, FOLDER), found(tmp_path))
    one = tests[tests.name == "RoBERTa + SSP − RoBERTa-Base, WikiQA, P@1"].iloc[0]
    theirs = stats.ttest_ind(ours, base)
    assert one.over_seeds.p_value == pytest.approx(theirs.pvalue)
    assert one.over_seeds.interval == pytest.approx(theirs.confidence_interval(0.95))
    # by question: the mean over seeds of both rows, resampled by scipy
    means = [
        np.mean([[v[1] for v in record(row, "wikiqa", "small", seed, level[seed])["per_question"]] for seed in range(3)], axis=0)
        for row, level in (("roberta_ssp", ours), ("roberta_base", base))
    ]
    theirs = stats.bootstrap((means[0] - means[1],), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1))
    assert one.over_questions.interval == pytest.approx(theirs.confidence_interval, abs=0.01)
    assert (one.budget, one.seeds) == ("small", 3)
    # both at once: the variance of the questions' means, and what the seeds' means vary beyond the residual of 3 x n cells
    variance = (means[0] - means[1]).var(ddof=1) / len(means[0])
    squares = [(variance, len(means[0]) - 1)]
    for row, level in (("roberta_ssp", ours), ("roberta_base", base)):
        table = np.array([[v[1] for v in record(row, "wikiqa", "small", seed, level[seed])["per_question"]] for seed in range(3)])
        rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        rest = (rest**2).sum() / 2 / (table.shape[1] - 1) / table.shape[1]
        if table.mean(axis=1).var(ddof=1) > rest:
            squares += [(table.mean(axis=1).var(ddof=1) / 3, 2), (-rest / 3, 2 * (table.shape[1] - 1))]
    error = sum(square for square, _ in squares) ** 0.5
    freedom = error**4 / sum(square**2 / own for square, own in squares)
    reach = stats.t(freedom).ppf(0.975) * error
    middle = (means[0] - means[1]).mean()
    assert one.over_both.interval == pytest.approx((middle - reach, middle + reach))
    assert one.over_both.p_value == pytest.approx(2 * stats.t(freedom).sf(middle / error))
    row = next(r for r in cells(differences.two_tests_table(PAPER, found(tmp_path), folder=FOLDER)) if r[0] == one["name"])
    assert re.match(r"\+11\.7†?\[", row[1]) and re.match(r"\+11\.7‡?\[", row[2]) and row[4:6] == ["3", "small"]
    assert row[3] == f"+11.7[{100 * (middle - reach):+.1f}, {100 * (middle + reach):+.1f}], {markup.probability(one.over_both.p_value)}"
    seen = [word for word, yes in (("seeds", one.over_seeds.p_value < 0.05), ("questions", one.over_questions.interval[0] > 0)) if yes]
    assert row[6] == (" and ".join(seen) or "neither")
    assert ("†" in row[1], "‡" in row[2]) == ("seeds" in seen, "questions" in seen)


def test_the_page_tells_where_both_sources_together_change_a_p_value():
    """The lead over MiniLM's siamese network, whose seeds differ most."""
    page = (rundir.root() / "book" / "significance.md").read_text("utf-8")
    pair = next(comparisons.pairs(records.records("asbert"), "triplet_bert", "siamese_bert", "wikiqa", ("small",)))
    lead = (pair, "triplet_bert", "siamese_bert", "map")
    questions, seeds, both = (test(*lead).p_value for test in (comparisons.over_questions, comparisons.over_seeds, comparisons.over_both))
    assert questions < 0.001
    told = f"*p* < .001 over questions and *p* = {seeds:.3f} over seeds, but *p* = {both:.3f} over both".replace("0.", ".")
    assert told in " ".join(page.split())
    assert both == pytest.approx(
        stats.ttest_ind(*(records.values(pair.of(row), "map") for row in lead[1:3]), equal_var=False).pvalue, abs=0.01
    )


def test_one_seed_has_no_t_test(tmp_path):
    commit(tmp_path, record("roberta_ssp", "wikiqa", "small", 0, 0.9), record("roberta_base", "wikiqa", "small", 0, 0.5))
    table = cells(differences.two_tests_table(PAPER, found(tmp_path), folder=FOLDER))
    row = next(r for r in table if r[0].startswith("RoBERTa + SSP − RoBERTa-Base"))
    assert row[1] == "one seed: no test"
    assert row[2].startswith("+40.0‡[")
    assert row[3] == "one seed" and row[6] == "questions"
    figure = intervals.own_plot(PAPER, found(tmp_path), FOLDER)
    assert len(figure.axes[0].collections[1].get_offsets()) == 2  # of each metric the point of the one interval


def test_nothing_has_run(tmp_path):
    assert "not run" in differences.two_tests_table(PAPER, found(tmp_path), folder=FOLDER)
    assert intervals.own_plot(PAPER, found(tmp_path), FOLDER) is None
    assert intervals.gains_plot("asbert", FOLDER) is None  # it prints no deviations
    assert "nothing to show yet" in differences.printed_table("asbert", folder=FOLDER)


# ------------------------------------------------------------------ what is printed


def test_printed_gains_equal_scipy():
    data = papers.read(PAPER, FOLDER)
    tests = comparisons.printed_tests(data)
    known = {(row.row, row.dataset): row.pair for row in tests.itertuples()}
    assert not any(row.startswith("released") for row, _ in known)  # they repeat what was printed once
    expected = 0
    for name, row in data["rows"].items():
        for dataset, cells_ in row["published"].items():
            if row.get("baseline") and isinstance(cells_.get("p@1"), list) and not name.startswith("released"):
                other = data["rows"][row["baseline"]]["published"][dataset]["p@1"]
                theirs = stats.ttest_ind_from_stats(*cells_["p@1"], 5, *other, 5)
                assert known[name, dataset].p_value == pytest.approx(theirs.pvalue)
                expected += 1
    assert len(known) == expected
    html = differences.printed_table(PAPER, folder=FOLDER)
    better = sum(pair.p_value < 0.05 and pair.difference > 0 for pair in known.values())
    worse = sum(pair.p_value < 0.05 and pair.difference < 0 for pair in known.values())
    assert f"{better} of {expected} are better at 95 %, {worse} worse" in html
    assert html.count("†</abbr>") == html.count("<u>") == better
    assert html.count("†↓</abbr>") == worse


def test_limits_of_a_test_set():
    at = comparisons.limits(papers.read(PAPER, FOLDER)).set_index(["dataset", "baseline"]).loc[("trecqa", "roberta_base")]
    assert at.questions == answers.COUNTS["trecqa"]["clean"]["test"][0] == 68
    interval = stats.binomtest(612, 680).proportion_ci(method="wilson")  # 90.0 % of ten times as many questions: narrower
    assert at.low < 100 * interval.low < 90.0 < 100 * interval.high < at.high
    assert at.gain == pytest.approx(100 * 4 / 68)  # (64/68)^68 = .016 < .025 < (65/68)^68 = .046
    assert at.gain_lost > at.gain
    html = differences.limits_table(PAPER, folder=FOLDER)
    row = next(r for r in cells(html) if r[0] == "TREC-QA, RoBERTa-Base")
    assert row[1:4] == ["68", "90.0", "± 1.9"]
    assert row[5] == "5.9"
    assert row[7] == "+0.9RoBERTa + SP"  # 90.9, the largest of its block


def test_plot_shows_the_data():
    """Each panel's points and lines are the differences and intervals, and its dashed line the smallest gain seen."""
    figure = intervals.gains_plot(PAPER, FOLDER)
    data = papers.read(PAPER, FOLDER)
    tests = comparisons.printed_tests(data)
    limits = comparisons.limits(data).drop_duplicates("dataset").set_index("dataset")
    for axis, dataset in zip(figure.axes, dict.fromkeys(tests.dataset)):
        expected = tests[tests.dataset == dataset].pair
        lines, points = axis.collections
        assert points.get_offsets()[:, 0].tolist() == pytest.approx([100 * pair.difference for pair in expected])
        ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
        assert ends == [pytest.approx([100 * x for x in pair.interval]) for pair in expected]
        dashed = [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == "--"]
        assert dashed == ([limits.gain[dataset]] if dataset in limits.index else [])
        assert axis.get_xlabel() == "difference in points"
    words = [text.get_text() for text in figure.legends[0].texts]
    assert {"better", "neither", "worse", "as printed"} <= set(words)


def test_a_plot_with_both_intervals():
    pairs = [significance.Comparison(0.01, 0.1, (0.05, 0.15)), significance.Comparison(0.2, 0.1, (-0.05, 0.25))]
    frame = pd.DataFrame({"name": "a <b>", "panel": "ours", "test": ["seeds", "questions"], "pair": pairs})
    axis = intervals.intervals_plot(frame).axes[0]
    assert len({tuple(offset) for offset in axis.collections[1].get_offsets()}) == 2  # one above the other
    assert len({tuple(colour) for colour in axis.collections[0].get_colors()}) == 2


def test_no_difference_has_no_minus():
    assert markup.points(significance.Comparison(1.0, -1e-17, (-0.01, 0.01))) == "+0.0 [-1.0, +1.0]"
