"""What cannot be tested here, in tables: a reason in place of a direction, dev questions in quotes, and all of it counted again."""

import shutil

import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from pages import differences, intervals, quotes, report, verdicts

from aslab import papers, records
from aslab.analysis import testable
from tests.trust import pages

from ..made_up import FOLDER, PAPER, cells, commit, found, record, values

CLAIM = "On WikiQA the SSP objective lifts RoBERTa."
ROWS = "RoBERTa + SSP − RoBERTa-Base, WikiQA"
SLOTS = {"slot_cosines": {"first": [0.5, 0.9995], "mean": [0.2, 0.7], "pooling": "first"}}
REASON = "the slots of its joint model are one vector"


def made(folder, seeds=(0, 1, 2), budget="small", **more):
    """Records of SSP and of its baseline; `more` is in those of SSP."""
    for seed in seeds:
        commit(folder, record("roberta_base", "wikiqa", budget, seed, 0.5), record("roberta_ssp", "wikiqa", budget, seed, 0.9, **more))
    return found(folder)


def directions(lines, folder=FOLDER):
    """The verdict in the table of claims, what the table of tests sees, and the word of the row in the results."""
    claim = next(row for row in cells(differences.claims_table(PAPER, lines, folder=folder)) if row[0] == f"{ROWS}, MAP")
    tests = next((row for row in cells(differences.two_tests_table(PAPER, lines, folder=folder)) if row[0] == f"{ROWS}, MAP"), [""])
    word = verdicts.of_cells(papers.read(PAPER, folder), "roberta_ssp", "wikiqa", ["map"], lines[lines.row == "roberta_ssp"])
    return claim[-1], tests[-1], *word


@pytest.mark.parametrize(("more", "reason"), [({}, ""), ({"figures": SLOTS}, REASON)])
def test_a_reason_is_in_every_table_in_place_of_a_direction(tmp_path, more, reason):
    lines = made(tmp_path, **more)
    said = f"{testable.VERDICT}RoBERTa + SSP: {reason}"
    words = (said, said, (testable.VERDICT, reason)) if reason else ("supported", "seeds and questions", ("reduced budget", ""))
    assert directions(lines) == words
    assert (intervals.own_plot(PAPER, lines, FOLDER) is None) == bool(reason)
    html = report.results_table(PAPER, "table_2", lines, "wikiqa", folder=FOLDER)
    figure = next(row[1] for row in cells(html) if row[0] == "ours" and row[1].startswith("90.0 ± 0.0"))
    assert ("†" in figure, "‡" in figure) == (not reason, not reason)  # marks compare, too


@pytest.fixture
def declaring(tmp_path):
    """experiments/ where the baseline does not exist at budget small."""
    shutil.copytree(FOLDER, tmp_path / "experiments")
    path = tmp_path / "experiments" / f"{PAPER}.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["rows"]["roberta_base"]["not_testable"] = {"small": "it is <not> there"}
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path.parent


def test_a_declared_reason_is_shown_without_runs(declaring, tmp_path):
    nothing = made(tmp_path / "results", seeds=[])
    said = "not testable hereRoBERTa-Base: it is <not> there"
    assert (directions(nothing, declaring)[0], directions(nothing)[0]) == (said, "not run")
    html = report.results_table(PAPER, "table_1", nothing, "wikiqa", folder=declaring)
    line = next(row for row in cells(html) if row[:2] == ["RoBERTa-Base", "paper"])
    assert line[-1] == "not testable hereit is <not> there"
    assert verdicts.of_lines(papers.read(PAPER, declaring), nothing)["roberta_base", "wikiqa"] == testable.VERDICT
    assert "not testable" not in report.results_table(PAPER, "table_1", nothing, "asnq", folder=declaring)  # this budget never has it
    assert directions(made(tmp_path / "results"), declaring)[0] == said


# ------------------------------------------------------------------ dev and test


def dev(mean, seed):
    """Dev questions, whose ids are those of test questions."""
    return values(mean, questions=24, seed=100 + seed)


def with_dev(folder):
    for seed in (0, 1):
        for row, level in (("roberta_base", 0.5 + 0.05 * seed), ("roberta_ssp", 0.7 + 0.05 * seed)):
            commit(folder, record(row, "wikiqa", "small", seed, level, per_question_dev=dev(level, seed)))
    return found(folder)


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
    ("text", "message"),
    [
        ("50.0: p@1 of roberta_ssp on wikiqa at small over dev", "over dev: expected a difference of two rows"),
        ("supported: map of roberta_ssp - roberta_base on wikiqa at small over dev is better", "a verdict is over both or on test"),
    ],
)
def test_over_dev_only_differences_are_quoted_and_no_verdicts(tmp_path, text, message):
    lines = with_dev(tmp_path)
    assert quotes.quoted("supported: map of roberta_ssp - roberta_base on wikiqa at small over both is better", PAPER, lines, FOLDER)
    with pytest.raises(ValueError, match=message):
        quotes.quoted(text, PAPER, lines, FOLDER)


# ------------------------------------------------------------------ counted again


def test_every_reason_and_the_pooled_column_are_counted_again(declaring, tmp_path):
    """What `trust` computes from the same files with nothing of asutil: the same lines, and another one where a digit is changed."""
    results = tmp_path / "results"
    with_dev(results)
    commit(results, record("electra_base", "wikiqa", "small", 0, 0.6), record("electra_ssp", "wikiqa", "small", 0, 0.15))
    commit(results, record("roberta_sp", "wikiqa", "small", 0, 0.8, figures=SLOTS), record("roberta_psd", "wikiqa", "small", 0, 0.9))
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
    reasons = ("P@1 is not above chance", REASON, "budget small pre-trains without")
    assert all(reason in shown["two-tests"] + shown["claims"] for reason in reasons) and "64 questions" in shown["claims"]
    assert "at chance on its own task, AUC 51.0" in shown["results table_3"]
    for name, html in shown.items():
        told = " ".join([name.split()[0], PAPER, *name.split()[1:]])
        block = BeautifulSoup(f'<div data-as2="{told}">{html}</div>', "html.parser").div
        assert pages.traced_block(tmp_path, "page", block) > 5
