"""What the first page and *Findings* say without a figure role: words on claims, counts, ratios; and how the pages read."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aslab import blind, papers, records
from aslab.analysis import claims, comparisons
from asutil.metrics import two_sources

from .committed import EVERY, ROOT, as_read, committed, precisions

PAGES = ("index", "findings", "how_to_read", "glossary", "rank", "own_documents")
PRETRAINING = ("sentence_objectives", "contextual_as2", "joint_inference")


def prose(page: str) -> list[str]:
    """The paragraphs of a page as they are read, without tables."""
    text = as_read((ROOT / "book" / f"{page}.md").read_text("utf-8"))
    return [part for part in text.split("\n\n") if part.strip() and not part.startswith("|")]


# ------------------------------------------------------------------ how the pages read


@pytest.mark.parametrize(("page", "limit"), [("index", 600), ("findings", 1700)])
def test_a_page_of_answers_is_short(page, limit):
    assert len(" ".join(prose(page)).split()) <= limit


@pytest.mark.parametrize("page", PAGES)
def test_a_paragraph_has_at_most_three_decimals(page):
    many = [part for part in prose(page) if len(re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", part)) > 3]
    assert not many


def test_the_first_page_answers_each_paper_once_with_one_figure_a_question():
    text = (ROOT / "book" / "index.md").read_text("utf-8")
    answers = re.findall(r"^\[[^\]]+\?\]\(papers/(\w+)\.md\)\n: (.+)$", text, re.MULTILINE)
    assert sorted(paper for paper, _ in answers) == sorted(papers.PAPERS)
    assert all(len(re.findall(r"\{as2-figure\}`[+−]", answer)) <= 1 for _, answer in answers)
    assert "triplet_bert" not in text, "a baseline that did not train is no answer"


@pytest.mark.parametrize(("page", "words"), [("how_to_read", claims.VERDICTS), ("significance", claims.VERDICTS[:5])])
def test_a_page_that_explains_the_verdicts_has_all_of_them(page, words):
    text = (ROOT / "book" / f"{page}.md").read_text("utf-8")
    table = text[text.rindex("| verdict |") :].split("\n\n")[0]
    assert sorted(re.findall(r"^\| \*\*(.+?)\*\* \|", table, re.MULTILINE)) == sorted(words)


# ------------------------------------------------------------------ words on claims

WORDS = {
    # *both supported*; *ahead of that encoder on both data sets*
    ("asbert", "triplet_siamese_roberta_trecqa", "small"): "supported",
    ("asbert", "triplet_siamese_bert_trecqa", "small"): "not testable here",
    ("asbert", "triplet_sentence_bert_wikiqa", "small"): "supported",
    ("asbert", "triplet_sentence_bert_trecqa", "small"): "supported",
}


@pytest.mark.parametrize(("paper", "claim", "family"), WORDS)
def test_a_word_of_the_answers_is_the_verdict(paper, claim, family):
    (line,) = EVERY[(EVERY.paper == paper) & (EVERY.claim == claim) & (EVERY.family == family)].itertuples()
    assert line.verdict == WORDS[paper, claim, family]


def test_what_else_the_answers_say_of_claims():
    of = lambda paper, family: EVERY[(EVERY.paper == paper) & (EVERY.family == family)].set_index("claim")
    gains = of("contextual_as2", "laptop").loc[["sdc_wikiqa", "dpc_wikiqa", "dslc_wikiqa"]]
    assert (gains.difference > 0).all() and "supported" not in set(gains.verdict)
    on_wikiqa = of("contextual_as2", "small").difference
    assert on_wikiqa["sdc_wikiqa"] == on_wikiqa.max(), "up to"
    joint = of("joint_inference", "small")
    assert round(1 / joint.effect_ratio["mspp_mends_ie_k_wikiqa"]) == 12, "twelve times as large"
    assert joint.difference["mspp_mends_ae_k_wikiqa"] > joint.difference["mspp_mends_ie_k_wikiqa"], "no smaller"
    printed = joint.printed[joint.index.str.match("joint_alone.*(wikiqa|trecqa)")]
    assert len(printed) == 4 and (printed < -40).all()
    pairwise = joint[(joint.row_b == "pairwise_roberta_base") & joint.index.str.match("joint_alone|mspp_pairwise|top_5")]
    assert len(pairwise) > 10 and set(pairwise.verdict[pairwise.dataset.isin(["wikiqa", "trecqa"])]) == {"not testable here"}
    for family in ("small", "laptop"):
        answers = of("evidence_contrast", family).loc["answer_longformer_base"]
        assert answers.reason.startswith("Longformer-base + contrastive loss: Answer F1 is not above chance")


# ------------------------------------------------------------------ how good the models are


@pytest.mark.parametrize("row", ["roberta_base", "roberta_sp"])
def test_a_pair_model_of_granite_is_not_ahead_of_one_epoch_of_triplets(row):
    pair, triplets = precisions("sentence_objectives", row, "wikiqa"), precisions("asbert", "triplet_roberta", "wikiqa")
    common = pair.index.intersection(triplets.index)
    assert (len(pair), len(triplets), len(common)) == (237, 243, 237)
    assert {one["settings"]["epochs"] for one in committed("asbert", "triplet_roberta", "wikiqa")} == {1}
    tested = two_sources.over_questions_and_seeds(*(of.loc[common].T.to_numpy() for of in (pair, triplets)))
    assert tested.sign == 0


def test_triplets_of_minilm_lead_the_public_columns_and_all_rows_of_pydocs_share_their_questions():
    text = (ROOT / "book" / "findings.md").read_text("utf-8")
    shown = re.sub(r"\{as2-figure\}`([^:`]+)[^`]*`", r"\1", text)
    table = [line.strip("| ").split(" | ") for line in shown.split("\n") if re.match(r"\| (random|BM25|Granite|MiniLM|four)", line)]
    for column in (1, 2):
        best = max((line for line in table if line[column] != "–"), key=lambda line: float(line[column]))
        assert best[0] == "MiniLM, triplet network"
    rows = [("asbert", "triplet_bert", "small"), ("asbert", "mean_bert", "small"), ("sentence_objectives", "roberta_sp", "laptop")]
    asked = [{line[0] for line in committed(paper, row, "pydocs", budget)[0]["per_question"]} for paper, row, budget in rows]
    assert asked[0] == asked[1] == asked[2]


# ------------------------------------------------------------------ without the question


def kept_and_lost() -> dict:
    """(architecture, model, data set, protocol, scoring function) -> share of the lead over a random order kept, points lost."""
    each = {}
    for run in blind.committed()["runs"]:
        for name, of in run["readouts"].items():
            key = (run["architecture"], run["model"].rsplit("/", 1)[-1], run["dataset"], run["protocol"], name)
            each.setdefault(key, []).append([of[which]["map"] for which in ("own", "exchanged")])
    rows = [("sentence_objectives", "roberta_base", "wikiqa", "clean")]
    rows += [("asbert", "triplet_bert", *place) for place in (("wikiqa", "asbert"), ("trecqa", "asbert"), ("pydocs", "clean"))]
    level = {tuple(place): committed(paper, row, place[0])[0]["baselines"]["random"]["map"] for paper, row, *place in rows}
    made = {}
    for key, values in each.items():
        own, exchanged = np.mean(values, axis=0)
        chance = level[key[2:4]]
        made[key] = ((exchanged - chance) / (own - chance), own - exchanged)
    return made


def test_what_models_keep_and_lose_without_the_question():
    of = kept_and_lost()
    clean = lambda kind, model: of[kind, model, "wikiqa", "clean", "score"]
    granite, minilm = "granite-embedding-30m-english", "all-MiniLM-L6-v2"
    kept = lambda kind, model: clean(kind, model)[0]
    assert 0.63 < kept("pair", granite) < 0.69 and 0.70 < kept("pair", minilm) < 0.75
    assert all(0.45 < kept("pair", f"{granite} + {objective}") < 0.56 for objective in ("SP", "SSP", "ALL"))
    head = lambda model, dataset: of["siamese", model, dataset, "asbert", "probability"][0]
    assert min(head(minilm, "wikiqa"), head(minilm, "trecqa")) > 0.92 and head(granite, "wikiqa") > 0.75
    assert 0.58 < head(granite, "trecqa") < 0.63, "three fifths"
    distance = lambda model, dataset: of["triplet", model, dataset, "asbert", "distance"][0]
    assert max(distance(granite, "wikiqa"), distance(minilm, "wikiqa")) < 1 / 3 and round(1 / distance(minilm, "trecqa")) == 7
    lost = lambda kind, model: clean(kind, model)[1]
    for objective, least, most in (("SP", 4 / 3, 1.4), ("SSP", 4 / 3, 1.4), ("ALL", 1.5, 1.6)):  # more than a third, more than half
        assert least < lost("pair", f"{granite} + {objective}") / lost("pair", granite) < most
    assert lost("pair", f"{granite} + SSP, shuffled labels") < lost("pair", granite)
    assert 2.7 < lost("context", f"{granite} + DPC") / lost("context", granite) < 3 and kept("context", granite) > 0.8
    assert 2 < lost("joint", f"{minilm} + MSPP") / lost("joint", minilm) < 2.5
    assert lost("context", f"{granite} + DPC, shuffled labels") / lost("context", granite) < 1.33
    assert 0.45 < lost("joint", f"{minilm} + MSPP, shuffled labels") / lost("joint", minilm) < 0.6
    (words,) = [one["map"] for one in blind.committed()["bag_of_words"] if (one["dataset"], one["protocol"]) == ("wikiqa", "clean")]
    bm25 = committed("sentence_objectives", "roberta_base", "wikiqa")[0]["baselines"]["bm25"]["map"]
    assert words > bm25, "the warning of the first page"


# ------------------------------------------------------------------ limits


def test_how_much_text_budget_small_reads():
    paths = (ROOT / "results").glob("*/*/pretraining-small-seed*.json")
    tokens = [json.loads(path.read_text("utf-8"))["figures"]["tokens"] for path in paths]
    assert len(tokens) > 10 and (round(min(tokens) / 1e6), round(max(tokens) / 1e6)) == (2, 6)
    assert 32_000 * max(tokens) <= 400_000 * 4096 * 128  # section 5.2 of the first paper: steps, batch, tokens at most


def test_how_many_questions_and_how_many_docstrings_there_are():
    pooled = EVERY[(EVERY["sample"] == "dev and test") & EVERY.paper.isin(PRETRAINING)]
    expected = {"pydocs": [480], "trecqa": [137], "wikiqa": [359], "nq_sentences": [1901], "selqa": [1142]}
    assert pooled.groupby("dataset").questions.unique().map(list).to_dict() == expected


@pytest.mark.slow
def test_dev_shows_two_fifths_of_a_public_difference():
    """The slope through zero over all claims on WikiQA and TREC-QA of the papers with pre-training that were tested on both by MAP."""
    pairs = []
    for paper in PRETRAINING:
        data, runs = comparisons.rows_and_runs(paper)
        outcomes = [one.outcome for one in claims.judged(data, runs) if one.outcome.claim["dataset"] in ("wikiqa", "trecqa")]
        pairs += [(one.test.difference, one.dev.difference) for one in outcomes if one.dev and one.claim["metric"] == "map"]
    test, dev = np.array(pairs).T
    assert len(test) == 34 and 0.37 < stats.linregress(np.r_[test, -test], np.r_[dev, -dev]).slope < 0.43


def test_shuffled_labels_bring_a_third_of_the_gain_of_sp():
    """*Your own documents*, step 1."""
    data, runs = comparisons.rows_and_runs("sentence_objectives")
    gain = {}
    for row in ("roberta_sp", "roberta_sp_shuffled"):
        pair = next(comparisons.pairs(runs[runs.source == "committed"], row, "roberta_base", "pydocs", ("laptop",)))
        tested = comparisons.over_both(pair, row, "roberta_base", "map", of=partial(records.pooled, data))
        gain[row] = tested.difference
    assert 0.28 < gain["roberta_sp_shuffled"] / gain["roberta_sp"] < 0.38


@pytest.mark.slow
def test_drawing_docstrings_instead_of_questions_keeps_what_is_supported_or_suggestive_above_zero():
    """The paragraph of *Significance* on pydocs; the name of a question begins with its docstring: module.function:parameter."""
    questions_of = lambda data, line: records.per_question(line) if records.pooled(data, line) is None else records.pooled(data, line)
    page, draw, seen = (ROOT / "book" / "significance.md").read_text("utf-8"), np.random.default_rng(0), 0
    for paper in papers.PAPERS:
        data, runs = comparisons.rows_and_runs(paper)
        for one in claims.judged(data, runs):
            if one.family != claims.PYDOCS or one.word not in (claims.SUPPORTED, claims.SUGGESTIVE):
                continue
            claim, where = one.outcome.claim, one.outcome.where
            rows = (where.of(claim[row]).itertuples() for row in ("row_a", "row_b"))
            ours, other = (
                pd.concat([questions_of(data, line)["average_precision"] for line in lines], axis=1).mean(axis=1) for lines in rows
            )
            deltas = ours - other.reindex(ours.index)
            docstrings = deltas.groupby([str(name).rpartition(":")[0] for name in deltas.index])
            sums, sizes = docstrings.sum().to_numpy(), docstrings.size().to_numpy()
            drawn = draw.integers(len(sums), size=(10_000, len(sums)))
            low, _ = np.percentile(sums[drawn].sum(1) / sizes[drawn].sum(1), [2.5, 97.5])
            assert low > 0
            of_more = " of [more of pydocs](#more-of-pydocs)" * (claim["dataset"] == "pydocs_more")
            assert f"{len(deltas):,} questions{of_more} are about {len(sums)}" in page
            seen += 1
    assert seen > 3


def test_libraries_give_one_figure_where_no_right_and_wrong_candidate_tie():
    """The paragraph of *Significance* on libraries: every record of a paper, and what its run also ranked."""
    page, tied = (ROOT / "book" / "significance.md").read_text("utf-8"), {}
    for path in (ROOT / "results").glob("*/*/*-seed*.json"):
        record = json.loads(path.read_text("utf-8"))
        public = {name: other["metrics"] for name, other in record.get("transfer", {}).items()}
        for dataset, measured in ({record["settings"].get("dataset"): record["metrics"]} | public).items():
            test = measured.get("test", {})
            if "tied_questions" in test:
                tied.setdefault(dataset or test["questions"], []).append((test["tied_questions"], test["questions"]))
    most, questions = max(tied.pop("pydocs"))
    tied.pop(questions, None)  # re-ranked, whose record names its runs alone
    assert f"in at most {most} of {questions} questions" in page
    most, questions = max(tied.pop("pydocs_more"))
    tied.pop(questions, None)
    assert f", and {most} of the {questions:,} further ones" in page
    most, questions = max(tied.pop("selqa"))
    assert f"on SelQA alone, in {most} of {questions:,} test questions" in page
    assert len(tied) >= 4 and not any(count for figures in tied.values() for count, _ in figures)
