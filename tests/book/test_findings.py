"""Sentences on claims, the plot of claims, rows tied for best, and figures quoted on pages: by hand from made-up records, and from ours."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from pages import comparisons, findings, intervals, quotes, report, testable
from scipy import stats

from aslab import blind, papers, records
from asutil import metrics
from asutil.data import baseline_scores, load_answers
from asutil.metrics import significance

from ..made_up import FOLDER, PAPER, cells, commit, found, record, values

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def results(tmp_path):
    """SSP is far ahead of the baseline on WikiQA, PSD is the baseline, and on our own questions SSP is behind."""
    for seed in (0, 1, 2):
        for row, mean in {"roberta_base": 0.4, "roberta_ssp": 0.9, "roberta_psd": 0.4}.items():
            commit(tmp_path, record(row, "wikiqa", "small", seed, mean, weights_sha256={"model": f"{row} {seed}"}))
        commit(tmp_path, record("roberta_base", "pydocs", "laptop", seed, 0.9), record("roberta_ssp", "pydocs", "laptop", seed, 0.5))
    return tmp_path


def sentences(html: str) -> list[str]:
    return [re.sub(r"\s+", " ", re.sub("<[^>]+>", "", item)) for item in re.findall(r"<li>(.*?)</li>", html)]


def test_every_claim_with_runs_is_a_sentence_and_the_others_are_counted(results):
    html = findings.findings_html(PAPER, found(results), draws=500, folder=FOLDER)
    said = sentences(html)
    first = next(text for text in said if text.startswith("On WikiQA the SSP objective lifts RoBERTa."))
    assert "RoBERTa + SSP − RoBERTa-Base, WikiQA, 3 seeds, budget small, roberta-base: P@1 +50.0 [" in first
    assert "] shows (a finding: p = 0.002, Holm = 0.0" in first and ", over seeds p &lt; 0.001)" in first
    laptop = [text for text in said if "budget laptop" in text]
    assert len(laptop) == 1 and "P@1 -40.0 [" in laptop[0] and "] opposite (" in laptop[0]
    assert "15 of 22 claims have no runs yet: 5 need budget small, 2 need budget gpu, 8 need budget paper" in html and not any(
        "ELECTRA too" in text for text in said
    )


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


def test_what_nothing_can_be_said_of_is_not_counted_as_a_test(results):
    runs = found(results)
    data = papers.read(PAPER, FOLDER)
    every = findings.findings(data, runs, draws=200)
    tested = [one for one in every if one.holm is not None]
    named = {(one.outcome.claim["id"], one.outcome.claim["metric"]) for one in tested}
    assert named == {(name, metric) for name in ("ssp_wikiqa", "psd_wikiqa", "ssp_single_document") for metric in ("p@1", "map")}
    assert [one.holm for one in tested] == pytest.approx(findings.significance.holm([one.outcome.questions.p_value for one in tested]))
    words, found_ = [one.outcome.word for one in tested], [one.word for one in tested]
    kept = f"({found_.count('finding')} findings)"
    assert findings.counted(every) == f"6 tests: {words.count('shows')} show {kept}, {words.count('unclear')} unclear, 0 opposite"
    assert findings.counted([]) == ""
    control = next(one.outcome for one in every if one.outcome.claim["id"] == "ssp_not_the_data")
    assert control.reason and control.word == "not testable here"


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([0.9, 0.91, 0.89], "finding"),
        ([0.9, 0.42, 0.9], "hint"),  # the same questions, but one seed gains nothing
        ([0.9], "hint"),  # other seeds were not tried
        ([0.4, 0.4, 0.4], "can be chance"),
    ],
)
def test_a_finding_needs_other_questions_and_other_seeds(tmp_path, seeds, said):
    for seed, mean in enumerate(seeds):
        commit(tmp_path, record("roberta_ssp", "wikiqa", "small", seed, mean))
    for seed in range(3):
        commit(tmp_path, record("roberta_base", "wikiqa", "small", seed, 0.4 + 0.01 * (seed - 1)))
    data = papers.read(PAPER, FOLDER)
    every = findings.findings(data, found(tmp_path), draws=500)
    one = next(one for one in every if one.outcome.claim["id"] == "ssp_wikiqa" and one.outcome.claim["metric"] == "map")
    assert one.word == said and (one.seeds is None) == (len(seeds) == 1)


def test_the_table_has_every_difference_that_is_a_finding_or_a_hint_somewhere(tmp_path, monkeypatch):
    for seed in (0, 1, 2):
        for row, mean, on_dev in (("roberta_base", 0.4, 0.4), ("roberta_ssp", 0.9, 0.9), ("roberta_psd", 0.4, 1)):
            more = {"weights_sha256": {"model": f"{row} {seed}"}, "per_question_dev": values(on_dev, questions=24)}
            commit(tmp_path, record(row, "wikiqa", "small", seed, mean, **more))
    data, runs = papers.read(PAPER), found(tmp_path)
    nothing = pd.DataFrame(columns=runs.columns)
    monkeypatch.setattr(comparisons, "rows_and_runs", lambda paper, *_: (papers.read(paper), runs if paper == PAPER else nothing))
    lines = cells(findings.findings_and_hints(draws=500))
    rows = [
        ["RoBERTa + SSP − RoBERTa-Base", "+30.0findingdev +30.0", "–", "–", "–"],  # 0.6 x 12 of 24 questions
        ["RoBERTa + SSP − RoBERTa + PSD", "+30.0findingdev -5.0", "–", "–", "–"],
    ]
    assert lines[1:] == [[data["title"]], *rows]
    again = (
        "<p>Dev questions that chose nothing are a second sample. On public ones 1 of 2 findings have the same sign and 1 show again.</p>"
    )
    assert findings.findings_and_hints(draws=500).endswith(again)
    monkeypatch.setattr(comparisons, "rows_and_runs", lambda paper, *_: (papers.read(paper), nothing))
    assert findings.findings_and_hints() == ""


def test_runs_of_this_machine_say_nothing_there(results):
    runs = found(results)
    here = runs[runs.row == "roberta_ssp"].assign(source="this machine", row="electra_ssp")
    base = runs[runs.row == "roberta_base"].assign(source="this machine", row="electra_base")
    ours = findings.findings_html(PAPER, runs, draws=200, folder=FOLDER)
    assert findings.findings_html(PAPER, pd.concat([runs, here, base]), draws=200, folder=FOLDER) == ours


def test_a_declared_reason_of_a_claim_is_its_verdict(results):
    data = papers.read(PAPER, FOLDER)
    claim = next(claim for claim in papers.claims(data) if claim["id"] == "ssp_wikiqa")
    outcome = comparisons.outcome(data, found(results), claim | {"not_testable": {"small": "stand-ins differ"}}, 100)
    assert outcome.reason == "stand-ins differ" and outcome.word == "not testable here"
    assert not comparisons.outcome(data, found(results), claim | {"not_testable": {"gpu": "stand-ins differ"}}, 100).reason


def test_every_claim_is_counted_once_on_the_scorecard():
    lines = cells(findings.scorecard())[1:]
    names = papers.papers()
    assert len(lines) == 2 * len(names)
    for name, own, ours in zip(names, lines[::2], lines[1::2]):
        data = papers.read(name)
        asked = [{claim["id"] for claim in of} for of in (papers.claims(data), papers.claims_asked(data, "laptop"))]
        assert [sum(int(cell) for cell in line[-5:] if cell != "–") for line in (own, ours)] == list(map(len, asked))
        assert own[1] == "its own" and ours[0] == "ours"


# ------------------------------------------------------------------ the plot


def test_the_plot_has_the_printed_difference_and_both_of_ours(results):
    data = papers.read(PAPER, FOLDER)
    points = intervals.claim_points(data, found(results), 500)
    pairs = points.set_index(["name", "test"]).pair
    name = "RoBERTa + SSP − RoBERTa-Base, WikiQA, MAP"
    (mean, std), (other, other_std) = (data["rows"][row]["published"]["wikiqa"]["map"] for row in ("roberta_ssp", "roberta_base"))
    expected = stats.ttest_ind_from_stats(mean, std, 5, other, other_std, 5)
    printed = pairs[name, intervals.PRINTED]
    assert 100 * printed.difference == pytest.approx(mean - other) and printed.p_value == pytest.approx(expected.pvalue)
    assert pairs[name, intervals.OURS["small"]].difference == pytest.approx(0.3)  # 0.6 x 50 points
    assert pairs[name, intervals.OURS["laptop"]].difference == pytest.approx(-0.24)
    (axis,) = intervals.claims_plot(PAPER, found(results), 500, FOLDER).axes
    assert [label.get_text() for label in axis.texts] == list(dict.fromkeys(points.name))
    drawn = [x for dots in axis.collections if isinstance(dots, PathCollection) for x, _ in dots.get_offsets()]
    assert sorted(drawn) == pytest.approx(sorted(100 * pair.difference for pair in points.pair))


def test_a_printed_difference_without_deviations_has_no_interval_and_lost_figures_none():
    of = lambda *maps: {"unit": "fraction", "rows": {str(n): {"published": {"d": {"map": x}}} for n, x in enumerate(maps)}}
    claim = {"row_a": "0", "row_b": "1", "dataset": "d", "metric": "map"}
    pair = comparisons.printed_difference(of(0.7, 0.5), claim)
    assert pair.difference == pytest.approx(0.2) and np.isnan(pair.interval).all() and pair.sign == 0
    assert comparisons.printed_difference(of(0.7, None), claim) is None


def test_no_runs_no_plot(tmp_path):
    assert intervals.claims_plot(PAPER, found(tmp_path), 100, FOLDER) is None


# ------------------------------------------------------------------ tied for best


def test_rows_that_are_not_told_from_the_best_are_tied_with_it(results):
    data, runs = papers.read(PAPER, FOLDER), found(results)
    lines = runs[runs.budget == "small"]
    assert comparisons.best_rows(data, lines, "map", 500) == ["roberta_ssp"]
    assert sorted(comparisons.best_rows(data, lines[lines.row != "roberta_ssp"], "p@1", 500)) == ["roberta_base", "roberta_psd"]
    assert not comparisons.best_rows(data, lines[lines.row == "roberta_ssp"], "map", 500), "one row is not the best of a table"
    html = report.results_table(PAPER, "table_1", runs, "wikiqa", folder=FOLDER)
    bold = [line for line in html.split("\n") if "as2-best" in line]
    assert len(bold) == 1 and bold[0].count("as2-best") == 3 and "90.0" in bold[0] and "Bold: the best of our rows" in html


# ------------------------------------------------------------------ figures on pages


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("+50.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", "+50.0"),
        ("−40.0: p@1 of roberta_ssp - roberta_base on pydocs at laptop", "−40.0"),
        ("90.0: p@1 of roberta_ssp on wikiqa at small", "90.0"),
        ("50: map of bm25 on wikiqa at small", "50"),
        ("SSP is ahead: map of roberta_ssp - roberta_base on wikiqa at small is better", "SSP is ahead"),
        ("a finding: map of roberta_ssp - roberta_base on wikiqa at small is better", "a finding"),
        ("none is seen: map of sentence_objectives/roberta_psd -\nroberta_base on wikiqa at small is unclear", "none is seen"),
    ],
)
def test_a_quoted_figure_follows_from_the_records(results, text, shown):
    quote = quotes.quoted(" ".join(text.split()), PAPER, found(results), FOLDER)
    assert quote.shown == shown and quote.files.startswith(f"results/{PAPER}/{{roberta_")
    assert "bm25" not in quote.files and "seed{}" not in quote.files, "a record that is there"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+49.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", r"'\+49.0' is quoted, the records give '\+50.0'"),
        ("50.0: p@1 of roberta_ssp - roberta_base on wikiqa at small", r"the records give '\+50.0'"),
        ("behind: map of roberta_ssp - roberta_base on wikiqa at small is worse", "'behind' is said to be worse, the records say better"),
        ("a hint: p@1 of roberta_ssp - roberta_base on wikiqa at small is better", "said of ssp_wikiqa, by p@1: the tests say 'finding'"),
        ("a finding: mrr of roberta_ssp - roberta_base on wikiqa at small is better", "no tested claim is about it"),
        ("1.0: map of roberta_ssp on trecqa at small", "no record of roberta_ssp on trecqa at small has map"),
        ("+1.0: map of roberta_ssp - roberta_sp on wikiqa at small", "have no common runs on wikiqa at small"),
        ("+1.0: of roberta_ssp", "expected `figure: metric of row"),
    ],
)
def test_a_figure_that_does_not_follow_is_refused(results, text, said):
    with pytest.raises(ValueError, match=said):
        quotes.quoted(text, PAPER, found(results), FOLDER)


QUOTED = re.compile(r"\{as2-figure\}`([^`]+)`")
EXPRESSION = re.compile(r"(.+?): (\S+) of (?:(\w+)/)?(\w+)(?: - (\w+))? on (\w+) at (\w+)(?: over (\w+))?(?: is (\w+))?")
PLACE = {
    "p@1": 1,
    "label_accuracy": 1,
    "map": 2,
    "mrr": 3,
    "answer_f1": 1,
    "evidence_f1": 2,
    "map_raw": 3,
    "map_projected": 4,
    "map_predicted_type": 5,
}


def committed(paper: str, row: str, dataset: str, budget: str) -> dict[int, dict]:
    files = (ROOT / "results" / paper / row).glob(f"{dataset}-{budget}-seed*.json")
    return {one["seed"]: one for one in (json.loads(path.read_text("utf-8")) for path in files)}


def by_question(records: list[dict], metric: str, over: str | None = None) -> pd.Series:
    """The means over seeds of the questions of test, of `over` "dev", or of "both"."""
    sides = {None: ["per_question"], "dev": ["per_question_dev"], "both": ["per_question_dev", "per_question"]}[over]
    of = lambda one, side: pd.DataFrame(one[side]).set_index(0)[PLACE[metric]]
    each = [pd.concat([of(one, side).add_prefix(f"{side} " if over else "") for side in sides]) for one in records]
    return pd.concat(each, axis=1).mean(axis=1)


def quotes_of_pages() -> list[tuple[str, str]]:
    pages = [*ROOT.glob("book/*.md"), *ROOT.glob("book/papers/**/*.md")]
    slug = lambda path: path.stem if path.parent.name in ("book", "papers") else path.parent.name
    return [(slug(path), " ".join(text.split())) for path in sorted(pages) for text in QUOTED.findall(path.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "text"), quotes_of_pages())
def test_what_pages_say_follows_from_the_committed_files(page, text):
    """Counted again from the files alone, with a bootstrap of its own."""
    shown, metric, paper, row, other, dataset, budget, over, direction = EXPRESSION.fullmatch(text).groups()
    ours = committed(paper or page, row, dataset, budget)
    if other is None:
        sides = [next(filter(None, map(one["metrics"].get, ("test", "dev", "validation")))) for one in ours.values()]
        means = [side[metric] for side in sides]  # hotpotqa has no test questions, an own task held-out documents
        if not ours:  # an untrained baseline
            files = sorted((ROOT / "results" / (paper or page)).glob(f"*/{dataset}-{budget}-seed0.json"))
            means = [json.loads(files[0].read_text("utf-8"))["baselines"][row][metric]]
        assert abs(100 * np.mean(means) - float(shown)) < 0.051
        return
    pair = [ours, committed(paper or page, other, dataset, budget)]
    trained = [own for own in pair if next(iter(own.values()))["settings"].get("architecture") != "untrained"] or pair
    seeds = set.intersection(*map(set, trained))
    assert seeds
    first, second = (by_question([one for seed, one in own.items() if own not in trained or seed in seeds], metric, over) for own in pair)
    deltas = (first - second.loc[first.index]).to_numpy()
    if direction is None:
        assert abs(100 * deltas.mean() - float(shown.replace("−", "-"))) < 0.051
        return
    low, high = np.percentile(np.random.default_rng(1).choice(deltas, (10_000, len(deltas))).mean(1), [2.5, 97.5])
    assert {"better": low > 0, "worse": high < 0, "unclear": low <= 0 <= high}[direction]


def test_pages_quote_figures():
    assert len(quotes_of_pages()) > 10


@pytest.mark.parametrize(
    ("paper", "budget", "survive"),
    [
        ("sentence_objectives", "laptop", {"sp_wikiqa", "sp_not_the_data"}),
        ("sentence_objectives", "small", set()),
        ("contextual_as2", "laptop", {"sdc_wikiqa_pair"}),
        ("contextual_as2", "small", {"context_wikiqa", "dpc_wikiqa", "dslc_wikiqa", "sdc_wikiqa"}),
        (
            "asbert",
            "small",
            {
                f"{claim}_{dataset}"
                for dataset in ("wikiqa", "trecqa")
                for claim in ("use_sentence_bert", "triplet_siamese_bert", "triplet_siamese_roberta", "triplet_use")
            }
            | {f"triplet_{encoder}_{dataset}" for dataset in ("wikiqa", "trecqa") for encoder in ("cls_bert", "glove", "sentence_bert")}
            | {"use_glove_trecqa"},
        ),
        ("joint_inference", "laptop", {"joint_alone_ae_k_wikiqa", "mspp_pairwise_ae_k_wikiqa"}),
        (
            "joint_inference",
            "small",
            {f"{name}_{head}_wikiqa" for name in ("mspp_pairwise", "top_5") for head in ("ie_k", "ae_k")}
            | {"mspp_mends_ie_k_wikiqa", "mspp_mends_ie_k_trecqa"},
        ),
        ("evidence_contrast", "laptop", {"near_loss", "near_shared"}),
        ("evidence_contrast", "small", set()),
    ],
)
def test_which_differences_are_findings(paper, budget, survive):
    """The words of the pages' boxes and of the first page, by MAP."""
    data, runs = comparisons.rows_and_runs(paper)
    found = findings.findings(data, runs, budget)
    assert {
        one.outcome.claim["id"] for one in found if one.word == "finding" and one.outcome.claim["metric"] in ("map", "map_projected")
    } == survive


def test_why_the_gain_of_mspp_with_aek_is_a_hint():
    """On WikiQA for its seeds, on TREC-QA for the number of tests."""
    data, runs = comparisons.rows_and_runs("joint_inference")
    by_claim = {one.outcome.claim["id"]: one for one in findings.findings(data, runs) if one.outcome.claim["metric"] == "map"}
    wikiqa, trecqa = (by_claim[f"mspp_mends_ae_k_{dataset}"] for dataset in ("wikiqa", "trecqa"))
    assert wikiqa.word == trecqa.word == "hint"
    assert wikiqa.holm < 0.05 and wikiqa.seeds.sign == 0 and trecqa.holm > 0.05 and trecqa.seeds.sign == 1


def over_seeds(paper: str, row: str, dataset: str, budget: str = "small") -> list[float]:
    return [one["metrics"]["test"]["map"] for one in committed(paper, row, dataset, budget).values()]


def test_what_is_said_of_rows_that_vary_unequally():
    """The paragraph of *Significance*: Welch's test of every finding, and of the largest lead."""
    page, weaker = (ROOT / "book" / "significance.md").read_text("utf-8"), []
    for dataset, said in (("wikiqa", ".055"), ("trecqa", ".032")):
        triplet, siamese = (over_seeds("asbert", row, dataset) for row in ("triplet_bert", "siamese_bert"))
        assert f"{stats.ttest_ind(triplet, siamese, equal_var=False).pvalue:.3f}" == f"0{said}" and said in page
    assert np.ptp(over_seeds("asbert", "siamese_bert", "wikiqa")) > 0.25 and np.ptp(over_seeds("asbert", "triplet_bert", "wikiqa")) < 0.005
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper)
        for one in (one for budget in findings.BUDGETS for one in findings.findings(data, runs, budget) if one.word == "finding"):
            rows = [records.values(one.outcome.where.of(one.outcome.claim[row]), one.outcome.claim["metric"]) for row in ("row_a", "row_b")]
            if min(map(len, rows)) > 1 and stats.ttest_ind(*rows, equal_var=False).pvalue >= 0.05:
                weaker.append(one.outcome.claim["id"])
    assert weaker == ["triplet_siamese_bert_wikiqa", "mspp_pairwise_ae_k_wikiqa"]


def test_what_is_said_of_a_sign_test_on_the_smallest_set():
    page = (ROOT / "book" / "significance.md").read_text("utf-8")
    assert significance.smallest_gain(68) == 4 and "four gains and no loss are enough" in page
    each = {gains: stats.binomtest(gains, gains).pvalue for gains in range(1, 10)}
    assert each[4] == 0.125 and "*p* = .125" in page
    assert min(gains for gains, p_value in each.items() if p_value < 0.05) == 6 and "needs six" in page


def test_what_can_be_chance_over_seeds():
    control, without = (over_seeds("joint_inference", row, "wikiqa") for row in ("joint_mspp_ie_k_shuffled", "joint_roberta_base_ie_k"))
    assert stats.ttest_ind(control, without).pvalue > 0.05
    for dataset, start, shows in (("wikiqa", "sentence_bert", False), ("trecqa", "sentence_bert", False), ("pydocs", "mean_bert", True)):
        (begun,) = over_seeds("asbert", start, dataset)
        assert (stats.ttest_1samp(over_seeds("asbert", "siamese_bert", dataset), begun).pvalue < 0.05) == shows


def test_drawing_docstrings_instead_of_questions_changes_no_word():
    """What *Significance* says of our own questions, several of which are about one docstring: module.function:parameter."""
    page, draw, seen = (ROOT / "book" / "significance.md").read_text("utf-8"), np.random.default_rng(0), 0
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper)
        for one in (one for one in findings.findings(data, runs, "laptop") if one.word in ("finding", "hint")):
            claim, where = one.outcome.claim, one.outcome.where
            ours, other = (
                by_question([line.record for line in where.of(claim[row]).itertuples()], claim["metric"]) for row in ("row_a", "row_b")
            )
            deltas = (ours - other.loc[ours.index]).dropna()
            of_docstring = deltas.groupby(deltas.index.str.rpartition(":").get_level_values(0))
            sums, sizes = of_docstring.sum().to_numpy(), of_docstring.size().to_numpy()
            if len(deltas) == 240:
                assert len(sums) == 174 and "the 240 test questions are about 174" in page
            drawn = draw.integers(len(sums), size=(10_000, len(sums)))
            low, high = np.percentile(sums[drawn].sum(1) / sizes[drawn].sum(1), [2.5, 97.5])
            assert int(low > 0) - int(high < 0) == one.outcome.questions.sign != 0
            seen += 1
    assert seen > 10


def test_by_p_at_1_fewer_claims_show():
    """Of those that are tested on MAP as well, each paper that argues with P@1."""
    for paper in ("sentence_objectives", "contextual_as2", "joint_inference"):
        data, runs = comparisons.rows_and_runs(paper)
        every = [one for budget in findings.BUDGETS for one in findings.findings(data, runs, budget) if one.outcome.word == "shows"]
        shows = [one.outcome.claim["metric"] for one in every]
        assert 0 < shows.count("p@1") < shows.count("map")


def test_what_is_said_of_bm25_with_ties_in_a_random_order():
    """On the 240 test questions of the records: within half a point in MAP, a little ahead in P@1, and what the models' leads are."""
    split = load_answers("pydocs")["test"]
    runs = {row: list(committed("sentence_objectives", row, "pydocs", "laptop").values()) for row in ("roberta_base", "roberta_sp")}
    scored = baseline_scores(split.limited(240), "bm25")
    assert set(scored.question_id) == {line[0] for line in runs["roberta_base"][0]["per_question"]}
    draw, total = np.random.default_rng(0), []
    for _ in range(300):
        jittered = scored.assign(score=scored.score.astype(float) + 1e-9 * draw.random(len(scored)))
        total.append(metrics.of(jittered).per_question.set_index("question_id"))
    bm25 = sum(total) / len(total)  # by question
    assert abs(bm25["average_precision"].mean() - by_question(runs["roberta_base"], "map").mean()) < 0.005, "within half a point"
    assert 0 < bm25["p_at_1"].mean() - by_question(runs["roberta_sp"], "p@1").mean() < 0.01, "a little ahead"
    for metric, column in (("map", "average_precision"), ("p@1", "p_at_1")):
        for records_of in runs.values():
            deltas = (by_question(records_of, metric) - bm25[column]).to_numpy()
            low, high = np.percentile(draw.choice(deltas, (10_000, len(deltas))).mean(1), [2.5, 97.5])
            assert low < 0 < high


def test_what_is_said_of_evidence_on_hotpotqa_and_qasper():
    """The words of the paper's box: seeds, their spread, and evidence at chance."""
    near = {row: committed("evidence_contrast", row, "hotpotqa", "small") for row in ("longformer_base", "longformer_base_contrast")}
    assert [sorted(seeds) for seeds in near.values()] == [[0, 1, 2]] * 2
    without = [record["metrics"]["dev"]["map_projected"] for record in near["longformer_base"].values()]
    assert 0.085 < np.ptp(without) < 0.09, "almost nine points"
    qasper = {row: committed("evidence_contrast", row, "qasper", "small") for row in ("led_base", "led_base_contrast")}
    draw = np.random.default_rng(0)
    for ran in qasper.values():
        assert sorted(ran) == [0, 1, 2]
        assert ran[0]["figures"]["read"] == {"train": 158, "dev": 150}
        baselines = ran[0]["baselines"]
        above = lambda metric, level, ran=ran: low_of(by_question([*ran.values()], metric), draw) > level
        assert not above("map_projected", baselines["random"]["map"]), "no better than a random order"
        assert not above("evidence_f1", baselines["all_sentences"]["evidence_f1"]), "no better than marking every sentence"
        assert above("answer_f1", baselines["most_frequent_answer"]["answer_f1"]), "answers better than chance"
    for dataset, budget in (("hotpotqa", "small"), ("pydocs_evidence", "laptop")):
        ran = [*committed("evidence_contrast", "longformer_base_contrast", dataset, budget).values()]
        assert low_of(by_question(ran, "answer_f1"), draw) <= ran[0]["baselines"]["most_frequent_answer"]["answer_f1"]


def low_of(values: pd.Series, draw) -> float:
    """The lower end of the 95 % interval of a mean over questions."""
    values = values.dropna().to_numpy()
    return np.percentile(draw.choice(values, (10_000, len(values))).mean(1), 2.5)


@pytest.mark.parametrize("paper", papers.papers())
def test_a_box_says_it_in_short(paper):
    """A table and a few points; what is behind them stands below, under headings of its own."""
    text = (ROOT / f"book/papers/{paper}.md").read_text("utf-8")
    box = re.search(r":::\{admonition\} What we found\n(.*?)\n:::\n", text, re.DOTALL)[1]
    points = re.findall(r"^- \*\*", box, re.MULTILINE)
    assert 3 <= len(points) <= 6
    said = re.sub(r"\{as2-figure\}`([^:]*):[^`]*`", r"\1", re.sub(r"^\|.*$|```.*?```", "", box, flags=re.DOTALL | re.MULTILINE))
    assert len(said.split()) < 320
    assert "### What these figures cannot say" in text.split(box)[1]


@pytest.mark.parametrize(
    ("paper", "datasets", "rows"),
    [
        (
            "sentence_objectives",
            ("wikiqa", "trecqa"),
            {f"roberta_{name}": {"wikiqa", "trecqa"} for name in ("all", "base", "psd", "sp", "ssp", "ssp_head_anew")}
            | {f"roberta_{name}": {"wikiqa"} for name in ("sp_shuffled", "ssp_shuffled")},
        ),
        (
            "contextual_as2",
            ("wikiqa",),
            {row: {"wikiqa"} for row in ("roberta_base", "roberta_base_context")}
            | {f"roberta_{name}": {"wikiqa"} for name in ("all", "dpc", "dpc_head_anew", "dpc_shuffled", "dslc", "sdc")},
        ),
        (
            "joint_inference",
            ("wikiqa", "trecqa"),
            {"joint_mspp_ie_k_shuffled": {"wikiqa", "trecqa"}}
            | {
                f"joint_{name}_{head}_k{place}": {"wikiqa", "trecqa"}
                for name in ("mspp", "roberta_base")
                for head in ("ie", "ae")
                for place in ("", "_top_5")
            }
            | {f"pairwise_{name}": {"wikiqa", "trecqa"} for name in ("mspp", "roberta_base")},
        ),
        (
            "evidence_contrast",
            ("hotpotqa", "qasper"),
            {f"longformer_base{name}": {"hotpotqa"} for name in ("", "_contrast", "_cosine")}
            | {f"led_base{name}": {"qasper"} for name in ("", "_contrast")},
        ),
    ],
)
def test_what_pages_say_has_not_run_has_not(paper, datasets, rows):
    """The last words of the pages' boxes: they are to be written anew with the first record of another row."""
    files = [path for dataset in datasets for path in (ROOT / "results" / paper).glob(f"*/{dataset}-*.json")]
    ran = {path.parent.name: {other.name.split("-")[0] for other in files if other.parent == path.parent} for path in files}
    assert ran == rows


def test_the_gains_on_wikiqa_are_hints_but_that_of_ssp_and_over_dev_and_test_those_of_ssp_and_psd_can_be_chance():
    data, runs = comparisons.rows_and_runs("sentence_objectives")
    by_claim = {one.outcome.claim["id"]: one for one in findings.findings(data, runs) if one.outcome.claim["metric"] == "map"}
    for name, sign, pooled in (("ssp_wikiqa", 0, 0), ("sp_wikiqa", 1, 1), ("psd_wikiqa", 1, 0), ("all_wikiqa", 1, 1)):
        hint = by_claim[name]
        assert hint.word == ("can be chance", "hint")[sign] and hint.outcome.pooled.sign == pooled
    small = runs[runs.budget == "small"]
    seeds = {key: sorted(lines.seed) for key, lines in small[small.dataset.isin(["wikiqa", "trecqa"])].groupby(["row", "dataset"])}
    assert seeds["roberta_psd", "trecqa"] == [0, 1, 2]
    assert all(seeds[f"roberta_{row}", dataset] == [0, 1, 2, 3, 4] for row in ("base", "ssp") for dataset in ("wikiqa", "trecqa"))
    assert seeds["roberta_all", "trecqa"] == seeds["roberta_sp", "trecqa"] == seeds["roberta_ssp_head_anew", "trecqa"] == [0, 1, 2]
    for row in ("roberta_ssp_head_anew", "roberta_sp", "roberta_sp_shuffled", "roberta_psd", "roberta_all", "roberta_ssp_shuffled"):
        assert seeds[row, "wikiqa"] == [0, 1, 2]


def test_on_dev_every_public_finding_keeps_its_sign_and_half_of_the_hints_and_two_of_our_own_findings_lose_it():
    kept, lost = {}, []
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper)
        for budget in findings.BUDGETS:
            for one in findings.findings(data, runs, budget):
                claim, outcome = one.outcome.claim, one.outcome
                if one.word in ("finding", "hint") and claim["metric"] == "map" and outcome.dev:
                    same = outcome.dev.difference * outcome.questions.difference > 0
                    kept.setdefault((budget, one.word), []).append(same)
                    lost += [(claim["row_a"], claim["row_b"])] if not same and (budget, one.word) == ("laptop", "finding") else []
    assert all(kept["small", "finding"]) and sum(kept["small", "hint"]) * 2 == len(kept["small", "hint"])
    assert lost == [("roberta_sdc", "roberta_base"), ("joint_mspp_ae_k", "pairwise_roberta_base")]
    each = committed("sentence_objectives", "roberta_base", "wikiqa", "small")[0]
    assert 0.5 < len(each["per_question_dev"]) / len(each["per_question"]) < 0.52


def test_shuffled_labels_bring_nearly_half_of_the_gain_of_sp_and_nearly_all_of_that_of_ssp():
    of = lambda row: by_question(list(committed("sentence_objectives", row, "pydocs", "laptop").values()), "map").mean()
    base = of("roberta_base")
    share = {game: (of(f"roberta_{game}_shuffled") - base) / (of(f"roberta_{game}") - base) for game in ("sp", "ssp")}
    assert 0.4 < share["sp"] < 0.5 and 0.8 < share["ssp"] < 1


def test_all_runs_of_joint_models_on_wikiqa_have_one_precision_and_each_game_is_one_pre_training():
    games = ("joint_mspp_ie_k", "joint_mspp_ie_k_shuffled", "joint_mspp_ae_k")
    for row in ("pairwise_roberta_base", "joint_roberta_base_ie_k", "joint_roberta_base_ae_k", *games):
        records = committed("joint_inference", row, "wikiqa", "small")
        assert sorted(records) == [0, 1, 2] and {one["settings"]["precision"] for one in records.values()} == {"bf16"}
    for row in games:
        (own,) = committed("joint_inference", row, "pretraining", "small").values()
        assert {one["settings"]["model"] for one in committed("joint_inference", row, "wikiqa", "small").values()} == {own["name"]}


def test_runs_that_name_one_pre_training_start_from_the_same_weights():
    """A pre-training that is made again is another model: what starts from it is then made again, too."""
    weights = {}
    for path in sorted((ROOT / "results").glob("*/*/*-seed*.json")):
        own = json.loads(path.read_text("utf-8"))
        for run in (own, *own.get("earlier", ())):
            if run.get("notebook") == "pretrain" and "weights_sha256" in run:  # older records have no hash of earlier weights
                first, of = weights.setdefault(run["name"], (run["weights_sha256"], path))
                assert run["weights_sha256"] == first, f"{path} and {of} name one pre-training, {run['name']}, and have other weights"
    assert len(weights) > 20


def test_three_seeds_of_a_pairwise_model_after_mspp_differ_by_twelve_points():
    reached = [one["metrics"]["test"]["map"] for one in committed("joint_inference", "pairwise_mspp", "wikiqa", "small").values()]
    assert len(reached) == 3 and 0.115 < np.ptp(reached) < 0.125


def test_exchanged_questions_cost_a_joint_model_after_mspp_more_than_twice_as_many_points_and_after_its_control_fewer():
    runs = {run["name"]: run["readouts"] for run in blind.committed()["runs"]}
    cost = {}
    for row in ("joint_roberta_base_ie_k", "joint_mspp_ie_k", "joint_mspp_ie_k_shuffled"):
        seeds = [runs[one["name"]]["score"] for one in committed("joint_inference", row, "wikiqa", "small").values()]
        assert len(seeds) == 3
        cost[row] = np.mean([one["own"]["map"] - one["exchanged"]["map"] for one in seeds])
    without, game, control = cost.values()
    assert game > 2 * without and 0.45 < control / without < 0.65


def test_how_many_questions_the_page_says_there_are_and_how_many_of_bm25_tie():
    questions = {
        ("sentence_objectives", "roberta_base", "pydocs", "laptop"): 240,
        ("sentence_objectives", "roberta_base", "wikiqa", "small"): 237,
        ("sentence_objectives", "roberta_base", "trecqa", "small"): 68,
        ("asbert", "siamese_bert", "wikiqa", "small"): 243,
        ("evidence_contrast", "longformer_base", "hotpotqa", "small"): 100,
    }
    for (paper, row, dataset, budget), count in questions.items():
        assert {len(one["per_question"]) for one in committed(paper, row, dataset, budget).values()} == {count}
    for hotpotqa in committed("evidence_contrast", "longformer_base", "hotpotqa", "small").values():
        assert list(hotpotqa["metrics"]) == ["dev"]
    words = committed("sentence_objectives", "roberta_base", "pydocs", "laptop")[0]["baselines"]["bm25"]
    assert words["tied_questions"] > words["questions"] / 2, "most of BM25's questions have ties"


def test_pre_training_at_budget_small_leaves_no_article_out():
    records = [json.loads(path.read_text("utf-8")) for path in (ROOT / "results").glob("*/*/pretraining-small-seed*.json")]
    assert len(records) >= 10 and {json.dumps(one["settings"]["exclude_titles"]) for one in records} == {"null"}


def test_no_model_verifies_our_own_claims_better_than_chance():
    _, runs = comparisons.rows_and_runs("joint_inference")
    rows = dict(list(runs[runs.dataset == "pydocs_claims"].groupby("row")))
    assert {row: len(lines) for row, lines in rows.items()} == dict.fromkeys(rows, 3) and len(rows) == 5
    assert all(testable.at_chance(lines, "label_accuracy") for lines in rows.values())


def test_which_models_verify_the_claims_of_climate_fever_better_than_chance():
    _, runs = comparisons.rows_and_runs("joint_inference")
    rows = dict(list(runs[runs.dataset == "climate_fever"].groupby("row")))
    above = {row: not testable.at_chance(lines, "label_accuracy") for row, lines in rows.items()}
    assert above == {
        "joint_mspp_ae_k_ft_ae_1": True,
        "joint_mspp_ae_k_ft_ie_1": True,
        "joint_mspp_ie_k_ft_ae_1": True,
        "joint_mspp_ie_k_ft_ie_1": True,
        "joint_roberta_base_ie_1": False,
        "pairwise_roberta_base_maxpool": False,
        "pairwise_roberta_base_wgtsum": False,
    }
    assert {len(lines) for lines in rows.values()} == {3}


def test_what_the_page_says_of_asberts_networks_and_of_evidence_at_chance():
    _, runs = comparisons.rows_and_runs("asbert")
    trained = {"triplet_bert", "siamese_bert", "triplet_roberta", "siamese_roberta"}
    for dataset in ("wikiqa", "trecqa"):
        ours = runs[(runs.dataset == dataset) & (runs.budget == "small") & (runs.source == "committed")]
        reached = {row: np.mean(report.values(lines, "map")) for row, lines in ours.groupby("row")}
        assert {row for row in reached if row.startswith(("triplet", "siamese"))} == trained
        if dataset == "trecqa":
            seeds = {row: report.values(ours[ours.row == row], "map") for row in trained}
            assert {len(values) for values in seeds.values()} == {3}
            assert 0.155 < np.ptp(seeds["siamese_bert"]) < 0.165
            assert np.ptp(seeds["triplet_bert"]) < 0.005
        else:
            seeds = {row: report.values(ours[ours.row == row], "map") for row in ("siamese_bert", "triplet_bert")}
            by_head = [line.record["readouts"]["probability"]["test"]["map"] for line in ours[ours.row == "siamese_bert"].itertuples()]
            assert np.ptp(seeds["siamese_bert"]) > 0.25 and np.ptp(seeds["triplet_bert"]) < 0.005
            (chance,) = {line.record["baselines"]["random"]["map"] for line in ours.itertuples()}
            assert abs(min(seeds["siamese_bert"]) - chance) < 0.01, "within a point"
            gap = np.mean(seeds["triplet_bert"]) - np.mean(seeds["siamese_bert"])
            assert 0.4 < (np.mean(seeds["triplet_bert"]) - np.mean(by_head)) / gap < 0.6, "about half"
        best = max(reached.keys() - trained, key=reached.get)
        assert best in ("sentence_bert", "mean_bert") and reached["triplet_bert"] > reached[best], dataset
    records = [
        json.loads(path.read_text("utf-8")) for path in (ROOT / "results" / "evidence_contrast").glob("longformer_base/*-laptop-*.json")
    ]
    assert len(records) == 3
    trained = {name: np.mean([one["metrics"]["test"][name] for one in records]) for name in ("map_projected", "evidence_f1")}
    contrast = [
        json.loads(path.read_text("utf-8"))
        for path in (ROOT / "results/evidence_contrast").glob("longformer_base_contrast/*-laptop-*.json")
    ]
    reached = np.mean([one["metrics"]["test"]["map_projected"] for one in contrast])
    assert 0 < reached - contrast[0]["baselines"]["zero_shot"]["map"] < 0.03, "little more than an untrained encoder"
    light = list((ROOT / "results" / "evidence_contrast").glob("longformer_base_dot_light/*-laptop-*.json"))
    types = [
        np.mean([one["metrics"]["test"]["type_accuracy"] for one in of])
        for of in (records, [json.loads(path.read_text("utf-8")) for path in light])
    ]
    assert len(light) == 3 and abs(types[0] - types[1]) < 0.01, "within a point"
    assert trained["map_projected"] <= np.mean([one["baselines"]["random"]["map"] for one in records])
    assert trained["evidence_f1"] <= np.mean([one["baselines"]["all_sentences"]["evidence_f1"] for one in records])


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


def test_the_words_of_the_boxes_that_quote_no_figure():
    draw = np.random.default_rng(0)
    over = lambda paper, row, dataset, budget, side=None: by_question([*committed(paper, row, dataset, budget).values()], "map", side)
    for row, dataset, budget in (("siamese_roberta", "pydocs", "laptop"), ("siamese_bert", "pydocs", "small")):
        runs = committed("asbert", row, dataset, budget)
        assert low_of(over("asbert", row, dataset, budget), draw) <= runs[0]["baselines"]["random"]["map"], "a network at chance"
    changed = []
    for dataset, budget in (("wikiqa", "small"), ("trecqa", "small"), ("pydocs", "laptop")):
        for head in ("ie_k", "ae_k"):
            lead = lambda row, side=None, of=(dataset, budget): (
                over("joint_inference", row, *of, side) - over("joint_inference", "pairwise_roberta_base", *of, side)
            ).mean()
            assert min(lead(f"joint_roberta_base_{head}"), lead(f"joint_roberta_base_{head}", "dev")) > -0.06, "a few points at most"
            assert lead(f"joint_mspp_{head}") > 0
            changed += [(dataset, head)] if lead(f"joint_mspp_{head}", "dev") < 0 else []
    assert changed == [("trecqa", "ae_k"), ("pydocs", "ie_k"), ("pydocs", "ae_k")], "three leads change their sign on dev"
    near = {}
    for name in ("dot", "dot_light", "contrast", "cosine"):
        runs = [*committed("evidence_contrast", f"longformer_base_{name}", "pydocs_evidence", "laptop").values()]
        near[name] = by_question(runs, "map_projected").mean()
        assert name[:3] != "dot" or by_question(runs, "evidence_f1").max() == 0, "marks no right sentence"
    assert near["dot"] > near["dot_light"] > near["contrast"] > near["cosine"]
    for game in ("sp", "ssp", "psd", "all"):
        gains = over("sentence_objectives", f"roberta_{game}", "trecqa", "small") - over(
            "sentence_objectives", "roberta_base", "trecqa", "small"
        )
        assert low_of(gains, draw) <= 0, "no game gains anything that shows on TREC-QA"


def test_the_words_on_how_hard_the_games_are():
    rows = {"NSP": "bert_nsp", "SOP": "albert_sop", "SP": "roberta_sp", "SSP": "roberta_ssp", "PSD": "roberta_psd"}
    for budget, hardest_first, behind_words in (("small", "SOP SSP SP PSD NSP", ""), ("laptop", "SP SSP NSP PSD SOP", "SP SSP")):
        made = {
            game: committed("sentence_objectives", row, "pretraining", budget)[0]["metrics"]["validation"] for game, row in rows.items()
        }
        assert sorted(made, key=lambda game, made=made: made[game]["auc"]) == hardest_first.split()
        ours = ("SP", "SSP", "PSD")
        assert [game for game in ours if made[game]["auc"] < made[game]["auc_tfidf"]] == behind_words.split()
    assert abs(made["PSD"]["auc"] - made["PSD"]["auc_tfidf"]) < 0.01, "level"
