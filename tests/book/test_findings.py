"""Sentences on claims, headline claims, plots of claims, rows tied for best, and figures quoted on pages: by hand from made-up records,
and from ours.
"""

import collections
import json
import re
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from pages import findings
from scipy import stats

from aslab import papers
from aslab.analysis import claims, comparisons, difference_plots, quotes

from ..made_up import FOLDER, PAPER, ahead_and_behind, reader, recorded
from ..trust import traced_claims
from .tables import results_table

ROOT = Path(__file__).resolve().parents[2]
SSP = "RoBERTa + SSP − RoBERTa-Base, WikiQA, MAP"


@pytest.fixture
def results(tmp_path):
    return ahead_and_behind(tmp_path)


# ------------------------------------------------------------------ tables


def by_hand(folder, row: str, other: str, place: str) -> tuple[float, float, float]:
    """Difference and interval in points: all seeds of these records have one mean, so that a paired t test over questions is the test."""
    values = []
    for name in (row, other):
        files = [folder / PAPER / name / f"{place}-seed{seed}.json" for seed in (0, 1, 2)]
        values.append(np.mean([[line[2] for line in json.loads(file.read_text("utf-8"))["per_question"]] for file in files], axis=0))
    low, high = stats.ttest_rel(*values).confidence_interval(0.95)
    return tuple(100 * value for value in ((values[0] - values[1]).mean(), low, high))


@pytest.mark.slow
def test_runs_of_this_machine_say_nothing_there(results):
    runs = recorded(results)
    here = runs[runs.row == "roberta_ssp"].assign(source="this machine", row="electra_ssp")
    base = runs[runs.row == "roberta_base"].assign(source="this machine", row="electra_base")
    both = pd.concat([runs, here, base])
    assert findings.findings_html(papers.read(PAPER, FOLDER), both) == findings.findings_html(papers.read(PAPER, FOLDER), runs)
    drawn = [
        difference_plots.claim_points(papers.read(PAPER), claims.judged(papers.read(PAPER), lines)).name.tolist() for lines in (runs, both)
    ]
    assert drawn[0] == drawn[1]


def test_words_of_a_papers_file_are_never_markup(results, monkeypatch):
    data, payload = json.loads(json.dumps(papers.read(PAPER, FOLDER))), "<img src=x onerror=alert(1)> & <b>"
    data["title"] = data["rows"]["roberta_ssp"]["name"] = payload
    for claim in data["claims"]:
        claim |= {"claim": payload, "where": payload}
    runs = recorded(results)
    monkeypatch.setattr(comparisons, "rows_and_runs", lambda *_: (data, runs))
    monkeypatch.setattr(papers, "PAPERS", (PAPER,))
    for html in (findings.findings_html(data, runs), findings.headline_table()):
        assert "&lt;img" in html and "<img" not in html and "<b>" not in html


# ------------------------------------------------------------------ plots


def drawn(figure) -> list[float]:
    (axis,) = figure.axes
    return sorted(x for dots in axis.collections if isinstance(dots, PathCollection) for x, _ in dots.get_offsets())


def test_the_plot_of_a_paper_has_the_printed_difference_and_both_of_ours(results):
    data, runs = papers.read(PAPER, FOLDER), recorded(results)
    points = difference_plots.claim_points(data, claims.judged(data, runs))
    pairs = points.set_index(["name", "test"]).pair
    (mean, std), (other, other_std) = (data["rows"][row]["published"]["wikiqa"]["map"] for row in ("roberta_ssp", "roberta_base"))
    expected = stats.ttest_ind_from_stats(mean, std, 5, other, other_std, 5)
    printed = pairs[SSP, difference_plots.PRINTED]
    assert 100 * printed.difference == pytest.approx(mean - other) and printed.p_value == pytest.approx(expected.pvalue)
    for test, place in (("ours", "wikiqa-small"), (difference_plots.PYDOCS, "pydocs-laptop")):
        ours = [100 * value for value in (pairs[SSP, test].difference, *pairs[SSP, test].interval)]
        assert ours == pytest.approx(by_hand(results, "roberta_ssp", "roberta_base", place))
    figure = difference_plots.plot_of([(data, claims.judged(data, runs))])
    assert [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()] == list(dict.fromkeys(points.name))
    assert drawn(figure) == pytest.approx(sorted(100 * pair.difference for pair in points.pair))


def test_a_printed_difference_without_deviations_has_no_interval_and_lost_figures_none():
    of = lambda *maps: {"unit": "fraction", "rows": {str(n): {"published": {"d": {"map": x}}} for n, x in enumerate(maps)}}
    claim = {"row_a": "0", "row_b": "1", "dataset": "d", "metric": "map"}
    pair = comparisons.printed_difference(of(0.7, 0.5), claim)
    assert pair.difference == pytest.approx(0.2) and np.isnan(pair.interval).all() and pair.sign == 0
    assert comparisons.printed_difference(of(0.7, None), claim) is None


def test_without_runs_there_is_no_answer_and_no_plot(tmp_path, monkeypatch):
    nothing = recorded(tmp_path)
    monkeypatch.setattr(comparisons, "rows_and_runs", lambda paper, *_: (papers.read(paper), nothing))
    assert findings.answer() == "" and difference_plots.overview_plot() is None
    monkeypatch.setattr(difference_plots, "rows_and_runs", comparisons.rows_and_runs)
    assert difference_plots.claims_plot(PAPER) is None


# ------------------------------------------------------------------ tied for best


@pytest.mark.slow
def test_rows_that_are_not_told_from_the_best_are_tied_with_it(results):
    data, runs = papers.read(PAPER, FOLDER), recorded(results)
    lines = runs[runs.budget == "small"]
    assert comparisons.best_rows(data, lines, "map") == ["roberta_ssp"]
    assert sorted(comparisons.best_rows(data, lines[lines.row != "roberta_ssp"], "p@1")) == ["roberta_base", "roberta_psd"]
    assert not comparisons.best_rows(data, lines[lines.row == "roberta_ssp"], "map"), "one row is not the best of a table"
    html = results_table(PAPER, "table_1", runs, "wikiqa", folder=FOLDER)
    bold = [line for line in html.split("\n") if "as2-best" in line]
    assert len(bold) == 1 and bold[0].count("as2-best") == 3 and "90.0" in bold[0] and "Bold: the best of our rows" in html


# ------------------------------------------------------------------ figures on pages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("+50.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", "+50.0"),
        ("−40.0: p@1 of roberta_ssp - roberta_base on pydocs at laptop", "−40.0"),
        ("90.0: p@1 of roberta_ssp on wikiqa at small", "90.0"),
        ("50: map of bm25 on wikiqa at small", "50"),
        ("SSP is ahead: map of roberta_ssp - roberta_base on wikiqa at small is better", "SSP is ahead"),
        ("supported: map of roberta_ssp - roberta_base on wikiqa at small is better", "supported"),
        ("the claim is reversed: map of roberta_ssp - roberta_base on pydocs at laptop is worse", "the claim is reversed"),
        ("the claim is reversed: map of roberta_base - roberta_ssp on pydocs at laptop is better", "the claim is reversed"),
        (
            "no effect beyond 1 point: map of sentence_objectives/roberta_psd -\nroberta_base on wikiqa at small is unclear",
            "no effect beyond 1 point",
        ),
    ],
)
def test_a_quoted_figure_follows_from_the_records(results, text, shown):
    quote = quotes.quoted(" ".join(text.split()), PAPER, reader(recorded(results)))
    assert quote.shown == shown and quote.files.startswith(f"results/{PAPER}/{{roberta_")
    assert "bm25" not in quote.files and "seed{}" not in quote.files, "a record that is there"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+49.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", r"'\+49.0' is quoted, the records give '\+50.0'"),
        ("50.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", r"the records give '\+50.0'"),
        ("behind: map of roberta_ssp - roberta_base on wikiqa at small is worse", "'behind' is said to be worse, the records say better"),
        ("suggestive: map of roberta_ssp - roberta_base on wikiqa at small is better", "said of ssp_wikiqa, the verdict is 'supported'"),
        ("supported: map of roberta_psd - roberta_base on wikiqa at small is unclear", "of psd_wikiqa, the verdict is 'no effect"),
        ("not supported: map of roberta_ssp - roberta_base on wikiqa at small is better", "expected the verdict that a claim has"),
        ("supported: p@1 of roberta_ssp - roberta_base on wikiqa at small is better", "no claim is about it"),
        ("reversed: map of roberta_psd - roberta_base on pydocs at laptop is unclear", "have no common runs on pydocs at laptop"),
        ("1.0: map of roberta_ssp on trecqa at small", "no record of roberta_ssp on trecqa at small has map"),
        ("+1.0: map of roberta_ssp - roberta_sp on wikiqa at small", "have no common runs on wikiqa at small"),
        ("+34: map of roberta_ssp - bm25 on wikiqa at small", "have no common runs"),  # a baseline has no values of questions
        ("90.0: map of roberta_ssp on wikiqa at small over dev", "over dev: expected a difference of two rows"),
        ("+30.0: map of roberta_ssp - roberta_base on wikiqa at small over both", "have no common runs"),  # no dev questions
        ("+1.0: of roberta_ssp", "expected `figure: metric of row"),
    ],
)
def test_a_figure_that_does_not_follow_is_refused(results, text, said):
    with pytest.raises(ValueError, match=said):
        quotes.quoted(text, PAPER, reader(recorded(results)))


QUOTED = re.compile(r"\{as2-figure\}`([^`]+)`")


def quotes_of_pages() -> list[tuple[str, str]]:
    """(the paper of a page, what is quoted on it)"""
    pages = [*ROOT.glob("book/*.md"), *ROOT.glob("book/papers/**/*.md")]
    slug = lambda path: path.stem if path.parent.name in ("book", "papers") else path.parent.name
    return [(slug(path), " ".join(text.split())) for path in sorted(pages) for text in QUOTED.findall(path.read_text("utf-8"))]


@pytest.fixture(scope="module")
def quoted_again():
    """What a figure must say by a second computation, which reads the records of a paper once."""
    with mock.patch.multiple(traced_claims, Paper=cache(traced_claims.Paper), judged=cache(traced_claims.judged)):
        yield traced_claims.quoted


@pytest.mark.slow
@pytest.mark.parametrize(("page", "text"), quotes_of_pages())
def test_what_pages_say_follows_from_the_committed_files(page, text, quoted_again):
    shown, expression = text.split(": ", 1)
    paper = re.search(r" of (\w+)/", expression)
    expression = f"{paper[1] if paper else page} {re.sub(r' of .*/', ' of ', expression)}"
    assert quoted_again(ROOT, expression, shown) == shown.replace("−", "-")


def test_the_script_that_checks_a_number_gives_the_number(capsys, monkeypatch):
    """The page's own lines, run at the top of the checkout, print the figure that the page quotes."""
    text = (ROOT / "book" / "check.md").read_text("utf-8")
    monkeypatch.chdir(ROOT)
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    printed = capsys.readouterr().out
    quote = next(one for one in QUOTED.findall(text) if "triplet_roberta - siamese_roberta" in one)
    assert printed.split()[0] == quote.split(":")[0]
    low, high = map(float, re.search(r"\[\s*(\S+)\s+(\S+?)\s*\]", printed).groups())
    assert low < float(printed.split()[0]) < high


def test_runs_that_name_one_pre_training_start_from_the_same_weights():
    """A pre-training that is made again is another model: all that starts from it on a data set is then made again, too.

    Both have a record of their own, that of the second among the repeats.
    """
    weights, made = {}, collections.defaultdict(list)
    for path in [*(ROOT / "results").glob("*/*/*-seed*.json"), *(ROOT / "results" / "repeats").glob("*/*/*-seed*.json")]:
        own = json.loads(path.read_text("utf-8"))
        if own.get("notebook") == "pretrain":
            made[own["name"]].append(own.get("weights_sha256"))
        for run in own.get("earlier", ()):
            if run.get("notebook") == "pretrain" and "weights_sha256" in run:  # older records have no hash of earlier weights
                first, of = weights.setdefault((run["name"], own["dataset"]), (run["weights_sha256"], path))
                assert run["weights_sha256"] == first, f"{path} and {of} name one pre-training, {run['name']}, and have other weights"
    assert len(weights) > 20
    unknown = [name for (name, _), (known, _) in weights.items() if name in made and known not in made[name]]
    assert not unknown, "no record of a pre-training has these weights"
