"""Tables, plots and quotes of differences: claims, the tests of our runs, reasons in their place, what is printed, limits."""

import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from pages import differences

from aslab import papers, records
from aslab.analysis import difference_plots, quotes, testable, verdicts
from aslab.show import markup
from aslab.show.intervals import intervals_plot
from asutil.metrics import significance
from tests.trust import pages

from ..made_up import FOLDER, PAPER, by_hand, cells, commit, compared, declaring, in_a_cell, reader, record, recorded, values
from .tables import results_table

CLAIM = "On WikiQA the SSP objective lifts RoBERTa."
ROWS = "RoBERTa + SSP − RoBERTa-Base, WikiQA"
SLOTS = {"slot_cosines": {"first": [0.5, 0.9995], "mean": [0.2, 0.7], "pooling": "first"}}
REASON = "the slots of its joint model are one vector"


def lines_of(html):
    """The lines of the claim on P@1 and MAP, the second without the cell that spans both."""
    table = cells(html)
    place = next(n for n, row in enumerate(table) if row[0].startswith(CLAIM))
    return table[place][1:], table[place + 1]


def expected(ours, base, metric):
    """`by_hand` of the records of `made`."""
    return by_hand(*(np.array([[v[metric] for v in values(mean, seed=seed)] for seed in range(3)]) for mean in (ours, base)))


def dev(mean, seed):
    """Dev questions, whose ids are those of test questions."""
    return values(mean, questions=24, seed=100 + seed)


def with_dev(folder):
    for seed in (0, 1, 2):
        for row, level in (("roberta_base", 0.5 + 0.05 * seed), ("roberta_ssp", 0.7 + 0.05 * seed)):
            commit(folder, record(row, "wikiqa", "small", seed, level, per_question_dev=dev(level, seed)))
    return recorded(folder)


# ------------------------------------------------------------------ claims


def test_runs_of_this_machine_have_differences_and_no_verdict(tmp_path):
    lines = compared(tmp_path, 0.7, 0.5).assign(source=records.HERE)
    of_map = lines_of(differences.claims_table(papers.read(PAPER, FOLDER), lines))[1]
    assert of_map[2].startswith("+12.0[") and of_map[2].endswith("3 seeds, small, this machine") and of_map[4] == ""


def test_the_laptop_is_asked_the_papers_claims_once_and_on_its_own_questions(tmp_path):
    """Only the laptop's own records answer, the committed ones with a verdict and, in a line below, those of this machine."""
    compared(tmp_path, 0.1, 0.9, [0])
    commit(tmp_path, *[record("roberta_base", "pydocs", "laptop", seed, 0.4) for seed in (0, 1, 2)])
    commit(tmp_path, *[record("roberta_ssp", "pydocs", "laptop", seed, 0.9) for seed in (0, 1, 2, 3)])
    lines = recorded(tmp_path)
    local = lines[(lines.budget == "laptop") & (lines.seed < 3)]
    local = local.assign(source=records.HERE, row=local.row.map({"roberta_base": "roberta_ssp", "roberta_ssp": "roberta_base"}))
    table = cells(differences.laptop_claims_table(papers.read(PAPER, FOLDER), pd.concat([lines, local])))
    place = next(n for n, row in enumerate(table) if row[0] == "RoBERTa + SSP − RoBERTa-Base, pydocs, MAP")
    ours, here = (in_a_cell(expected(*levels, 2)).replace("[", " [") for levels in ((0.9, 0.4), (0.4, 0.9)))
    assert table[place][1:] == ["+", ours, "ours", "3", "supported"]
    assert table[place + 1] == [here, "ours, this machine", "3", ""]
    asked = papers.claims_asked(papers.read(PAPER, FOLDER), "laptop")
    assert {claim["dataset"] for claim in asked} == {"pydocs"} and not {"psd_trecqa", "sp_tanda", "sp_asnq"} & {one["id"] for one in asked}
    assert len(asked) == len({(one["row_a"], one["row_b"], one["metric"], one["sign"]) for one in asked}) == 2 * 15 + 1
    assert len(table) == 1 + 16 + 1 + 5, "a line a claim, one of this machine, and hypotheses about more questions"
    assert [row[0] for row in table[-5:]] == [row[0] for row in table if "more of pydocs" in row[0]] and "stated 2026-11-30" in table[-1][0]
    assert next(row for row in table if row[0].startswith("RoBERTa + PSD − RoBERTa-Base"))[1:] == ["+", "–", "–", "–", "not run"]


def test_a_paper_without_claims(tmp_path):
    data = papers.read("evidence_contrast", FOLDER)
    without = {key: data[key] for key in data if key not in ("claims", "headline")}
    (tmp_path / "evidence_contrast.yml").write_text(yaml.safe_dump(without), encoding="utf-8")
    assert "nothing to show yet" in differences.claims_table(papers.read("evidence_contrast", tmp_path), recorded(tmp_path))


# ------------------------------------------------------------------ the tests of our runs


@pytest.mark.slow
def test_one_seed_has_an_interval_over_questions_and_no_verdict(tmp_path):
    lines = compared(tmp_path, 0.9, 0.5, [0])
    row = next(r for r in cells(differences.two_tests_table(papers.read(PAPER, FOLDER), lines)) if r[0].startswith(ROWS))
    said = "not testable hereone seed, and no row trained alike shows how much seeds differ"
    assert row[1] == "one seed: no test" and row[2].startswith("+40.0‡[") and row[3:] == ["one seed", "1", "small", said]
    assert lines_of(differences.claims_table(papers.read(PAPER, FOLDER), lines))[1][2:] == ["–40 questions, 1 seed, small", "–", said]
    assert difference_plots.own_plot(papers.read(PAPER, FOLDER), lines) is None


def test_nothing_has_run(tmp_path):
    assert "not run" in differences.two_tests_table(papers.read(PAPER, FOLDER), recorded(tmp_path))
    assert difference_plots.own_plot(papers.read(PAPER, FOLDER), recorded(tmp_path)) is None
    assert difference_plots.gains_plot("asbert") is None  # it prints no deviations
    assert "nothing to show yet" in differences.printed_table("asbert")


# ------------------------------------------------------------------ reasons


def directions(lines, folder=FOLDER):
    """The verdict in the table of claims, what the table of tests sees, and the word of the row in the results."""
    claim = next(row for row in cells(differences.claims_table(papers.read(PAPER, folder), lines)) if row[0] == f"{ROWS}, MAP")
    tests = next((row for row in cells(differences.two_tests_table(papers.read(PAPER, folder), lines)) if row[0] == f"{ROWS}, MAP"), [""])
    word = verdicts.of_cells(papers.read(PAPER, folder), "roberta_ssp", "wikiqa", ["map"], lines[lines.row == "roberta_ssp"])
    return claim[-1], tests[-1], *word


@pytest.mark.slow
@pytest.mark.parametrize(("more", "reason"), [({}, ""), ({"figures": SLOTS}, REASON)])
def test_a_reason_is_in_every_table_in_place_of_a_direction(tmp_path, more, reason):
    lines = compared(tmp_path, **more)
    said = f"{testable.VERDICT}RoBERTa + SSP: {reason}"
    words = (said, said, (testable.VERDICT, reason)) if reason else ("supported", "seeds and questions", ("reduced budget", ""))
    assert directions(lines) == words
    figure = difference_plots.own_plot(papers.read(PAPER, FOLDER), lines)
    assert reason or len(figure.axes[0].collections[1].get_offsets()) == 4, "both intervals of each metric"
    assert (figure is None) == bool(reason)
    html = results_table(PAPER, "table_2", lines, "wikiqa", folder=FOLDER)
    figure = next(row[1] for row in cells(html) if row[0] == "ours" and row[1].startswith("90.0 ± 0.0"))
    assert ("†" in figure, "‡" in figure) == (not reason, not reason)  # marks compare, too


@pytest.mark.slow
def test_a_declared_reason_is_shown_without_runs(tmp_path):
    nothing, folder = recorded(tmp_path), declaring(tmp_path, {"small": "it is <not> there"})
    said = "not testable hereRoBERTa-Base: it is <not> there"
    assert (directions(nothing, folder)[0], directions(nothing)[0]) == (said, "not run")
    html = results_table(PAPER, "table_1", nothing, "wikiqa", folder=folder)
    line = next(row for row in cells(html) if row[:2] == ["RoBERTa-Base", "paper"])
    assert line[-1] == "not testable hereit is <not> there"
    words = verdicts.of_cells(papers.read(PAPER, folder), "roberta_base", "wikiqa", ("map", "mrr"), nothing)
    assert words == [(testable.VERDICT, "it is <not> there")] * 2
    assert "not testable" not in results_table(PAPER, "table_1", nothing, "asnq", folder=folder)  # this budget never has it
    assert directions(compared(tmp_path / "results"), folder)[0] == said


# ------------------------------------------------------------------ dev and test


def test_a_quote_over_dev_or_both_is_checked_against_these_questions(tmp_path):
    lines = with_dev(tmp_path / "results")
    each = [(seed, level + 0.05 * seed) for level in (0.7, 0.5) for seed in (0, 1, 2)]
    means = {"dev": [np.mean([v[1] for v in dev(level, seed)]) for seed, level in each]}
    means["test"] = [np.mean([v[1] for v in values(level, seed=seed)]) for seed, level in each]
    gain = {name: 100 * (np.mean(of[:3]) - np.mean(of[3:])) for name, of in means.items()}
    gain["both"] = (24 * gain["dev"] + 40 * gain["test"]) / 64
    assert len({round(one, 1) for one in gain.values()}) == 3
    place = "p@1 of roberta_ssp - roberta_base on wikiqa at small"
    for over in ("dev", "both"):
        assert quotes.quoted(f"{gain[over]:+.1f}: {place} over {over}", PAPER, reader(lines)).expression == f"{PAPER} {place} over {over}"
        with pytest.raises(ValueError, match="the records give"):
            quotes.quoted(f"{gain['test']:+.1f}: {place} over {over}", PAPER, reader(lines))
    shutil.copytree(FOLDER, tmp_path / "experiments")
    block = f'<span data-as2-figure="{PAPER} {place} over dev">{gain["dev"]:+.1f}</span>'
    assert pages.quoted(tmp_path, "page", BeautifulSoup(block, "html.parser")) == 1


def test_over_dev_only_differences_are_quoted_and_no_verdicts(tmp_path):
    lines, place = with_dev(tmp_path), "map of roberta_ssp - roberta_base on wikiqa at small over"
    assert quotes.quoted(f"suggestive: {place} both is better", PAPER, reader(lines))
    with pytest.raises(ValueError, match="not over dev: got 'supported"):
        quotes.quoted(f"supported: {place} dev is better", PAPER, reader(lines))


# ------------------------------------------------------------------ counted again


@pytest.mark.slow
def test_every_reason_and_the_pooled_column_are_counted_again(tmp_path):
    """What `trust` computes from the same files with nothing of asutil: the same lines, and another one where a digit is changed."""
    results = tmp_path / "results"
    with_dev(results)
    commit(results, record("electra_base", "wikiqa", "small", 0, 0.6), record("electra_ssp", "wikiqa", "small", 0, 0.15))
    commit(results, record("roberta_sp", "wikiqa", "small", 0, 0.8, figures=SLOTS), record("roberta_psd", "wikiqa", "small", 0, 0.9))
    pre = {"accuracy": 0.8, "f1": 0.1, "majority": 0.8, "examples": 500, "auc": 0.51}
    own = record("roberta_ssp", "pretraining", "small", 0, 0.5)
    commit(results, own | {"notebook": "pretrain", "metrics": {"validation": pre}, "per_question": []})
    folder = declaring(tmp_path, {"gpu": "it is <not> there"})
    lines = records.records(PAPER, results, tmp_path / "none")
    laptop = f'<div class="as2-laptop">{differences.laptop_claims_table(papers.read(PAPER, folder), lines)}</div>'
    shown = {
        "claims": differences.claims_table(papers.read(PAPER, folder), lines) + laptop,
        "two-tests": differences.two_tests_table(papers.read(PAPER, folder), lines),
    } | {f"results table_{n}": results_table(PAPER, f"table_{n}", lines, folder=folder) for n in (1, 3)}
    reasons = ("P@1 is not above chance", REASON, "budget small pre-trains without")
    assert all(reason in shown["two-tests"] + shown["claims"] for reason in reasons) and "64 questions" in shown["claims"]
    assert "at chance on its own task, AUC 51.0" in shown["results table_3"]
    for name, html in shown.items():
        told = " ".join([name.split()[0], PAPER, *name.split()[1:]])
        block = BeautifulSoup(f'<div data-as2="{told}">{html}</div>', "html.parser").div
        assert pages.traced_block(tmp_path, "page", block) > 5


# ------------------------------------------------------------------ what is printed


def test_a_plot_with_both_intervals():
    pairs = [significance.Comparison(0.01, 0.1, (0.05, 0.15)), significance.Comparison(0.2, 0.1, (-0.05, 0.25))]
    frame = pd.DataFrame({"name": "a <b>", "panel": "ours", "test": ["seeds", "questions"], "pair": pairs})
    axis = intervals_plot(frame, "").axes[0]
    assert len({tuple(offset) for offset in axis.collections[1].get_offsets()}) == 2  # one above the other
    assert len({tuple(colour) for colour in axis.collections[0].get_colors()}) == 2


def test_no_difference_has_no_minus():
    assert markup.points(significance.Comparison(1.0, -1e-17, (-0.01, 0.01))) == "+0.0 [-1.0, +1.0]"
