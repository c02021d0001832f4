"""The summaries: six lines first; and what joint_inference, asbert and evidence_contrast say without a figure role."""

import itertools
import json
import re

import numpy as np
import pytest

from aslab import papers
from aslab.analysis import comparisons, quotes, testable

from .committed import EVERY, ROOT, as_read, committed, precisions

SUMMARIES = papers.PAPERS
BOOK = ROOT / "book"
PAGES = sorted((*BOOK.glob("*.md"), *BOOK.glob("papers/**/*.md")))
LINES = ["Question.", "Answer.", "Size.", "Seen again on other questions?", "Cost.", "What to do."]
OLD_WORDS = re.compile(
    r"\b(a finding|(?:a )?hints?|can be chance|(?:more|less) than zero|opposite|games?|readouts?|our own questions|stands? for|at hand)\b",
    re.IGNORECASE,
)


def reached(paper: str, row: str, dataset: str, budget: str = "small", metric: str = "map") -> list[float]:
    """A value a seed, on test or else on dev."""
    return [(one["metrics"].get("test") or one["metrics"]["dev"])[metric] for one in committed(paper, row, dataset, budget)]


def mean(*place, **more) -> float:
    return np.mean(reached(*place, **more))


def baseline(paper: str, row: str, dataset: str, budget: str, name: str, metric: str = "map") -> float:
    return committed(paper, row, dataset, budget)[0]["baselines"][name][metric]


def at_chance(paper: str, row: str, dataset: str, metric: str) -> bool:
    _, runs = comparisons.rows_and_runs(paper)
    lines = runs[(runs.source == "committed") & (runs.row == row) & (runs.dataset == dataset)]
    assert len(lines) == 3
    return bool(testable.at_chance(lines, metric))


# ------------------------------------------------------------------ how the pages read


@pytest.mark.parametrize("paper", SUMMARIES)
def test_a_summary_begins_with_an_answer_of_six_lines(paper):
    text = (BOOK / "papers" / f"{paper}.md").read_text("utf-8")
    box = re.search(r":::\{admonition\} What we found\n:class: as2-found\n\n(.*?)\n:::\n", text, re.DOTALL)[1]
    lines = [re.fullmatch(r"- \*\*(.+?)\*\* (.+)", line).groups() for line in as_read(box).split("\n")]
    assert [name for name, _ in lines] == LINES
    told = dict(lines)
    assert not re.search(r"\d\.\d", told["Answer."]) and re.match(r"[+−]\d+\.\d \[", told["Size."])
    assert "untrained" in told["Size."] and "hours" in told["Cost."]
    assert len(as_read(box).split()) < 180


@pytest.mark.parametrize("page", [*(f"papers/{paper}" for paper in SUMMARIES), "index", "findings", "leaderboard", "rank", "reproductions"])
def test_a_paragraph_has_at_most_three_figures(page):
    text = re.sub(r"^\|.*\n", "", (BOOK / f"{page}.md").read_text("utf-8"), flags=re.MULTILINE)
    for part in re.split(r"\n\n|\n- ", text):
        assert len(re.findall(r"\{as2-figure\}`[+−]?\d", part)) <= 3, part


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(BOOK).with_suffix("").as_posix())
def test_a_page_has_none_of_the_old_words(path):
    explained = ["readout"] if path.stem == "glossary" else []  # a word of the settings
    assert OLD_WORDS.findall(as_read(path.read_text("utf-8"))) == explained


# ------------------------------------------------------------------ figures with an interval, and hours


def test_an_interval_in_the_text_is_that_of_the_claim():
    (claim,) = EVERY[(EVERY.claim == "mspp_mends_ie_k_wikiqa") & (EVERY.family == "small")].itertuples()
    shown = f"{claim.difference:+.1f} [{claim.low:+.1f}, {claim.high:+.1f}]"
    of = "map of joint_mspp_ie_k - joint_roberta_base_ie_k on wikiqa at small over both"
    assert quotes.quoted(f"{shown}: {of}", "joint_inference").shown == shown == "+4.1 [+2.0, +6.2]"
    for wrong in ("+4.1 [+2.0, +6.3]", "+4.1 [+1.9, +6.2]", "+4.2 [+2.0, +6.2]", "4.1 [+2.0, +6.2]"):
        with pytest.raises(ValueError, match=r"the records give '\+4.1 \[\+2.0, \+6.2\]'"):
            quotes.quoted(f"{wrong}: {of}", "joint_inference")
    with pytest.raises(ValueError, match="the records give '80.4'"):
        quotes.quoted("80.4 [79.0, 81.0]: map of joint_mspp_ie_k on wikiqa at small", "joint_inference")


def test_hours_in_the_text_are_the_mean_over_the_runs():
    hours = np.mean([one["seconds"] for one in committed("joint_inference", "pairwise_roberta_base", "wikiqa")]) / 3600
    of = "hours of pairwise_roberta_base on wikiqa at small"
    assert quotes.quoted(f"{hours:.3f}: {of}", "joint_inference").shown == f"{hours:.3f}"
    with pytest.raises(ValueError, match=f"the records give '{hours:.3f}'"):
        quotes.quoted(f"{hours + 0.001:.3f}: {of}", "joint_inference")


# ------------------------------------------------------------------ MSPP


def test_on_trecqa_joint_models_without_mspp_are_below_the_untrained_encoder_and_on_pydocs_mspp_is_hardly_learnt():
    for head in ("ie_k", "ae_k"):
        level = baseline("joint_inference", f"joint_roberta_base_{head}", "trecqa", "small", "zero_shot")
        assert mean("joint_inference", f"joint_roberta_base_{head}", "trecqa") < level
        for own in committed("joint_inference", f"joint_mspp_{head}", "pretraining", "laptop"):
            assert own["metrics"]["validation"]["auc"] < own["metrics"]["validation"]["auc_tfidf"]


@pytest.mark.parametrize("dataset", ["wikiqa", "trecqa"])
def test_triplets_of_the_same_encoder_are_ahead_of_joint_models_and_take_less_time(dataset):
    seconds = lambda paper, row, dataset: np.mean([one["seconds"] for one in committed(paper, row, dataset)])
    triplets = precisions("asbert", "triplet_bert", dataset)
    for row in ("joint_mspp_ie_k", "joint_mspp_ae_k"):
        joint = precisions("joint_inference", row, dataset)
        assert set(joint.index) <= set(triplets.index)
        assert triplets.loc[joint.index].to_numpy().mean() > joint.to_numpy().mean()
    trained = seconds("joint_inference", "joint_mspp_ie_k", "pretraining") + seconds("joint_inference", "joint_mspp_ie_k", dataset)
    assert seconds("asbert", "triplet_bert", dataset) < trained


def test_which_models_verify_claims_better_than_chance():
    _, runs = comparisons.rows_and_runs("joint_inference")
    rows = lambda dataset: sorted(set(runs[runs.dataset == dataset].row))
    above = [row for row in rows("climate_fever") if not at_chance("joint_inference", row, "climate_fever", "label_accuracy")]
    assert above == [row for row in rows("climate_fever") if row.startswith("joint_mspp")] and len(above) == 4
    assert len(rows("pydocs_claims")) == 7
    assert all(at_chance("joint_inference", row, "pydocs_claims", "label_accuracy") for row in rows("pydocs_claims"))


def test_what_limits_the_runs_of_joint_models():
    for row in ("joint_mspp_ie_k", "joint_mspp_ae_k", "joint_mspp_ie_k_shuffled"):
        (own,) = committed("joint_inference", row, "pretraining")
        assert own["settings"]["exclude_titles"] is None and own["settings"]["mlm_weight"] == 0
        assert {one["settings"]["model"] for one in committed("joint_inference", row, "wikiqa")} == {own["name"]}
    again = {one["settings"]["model"] for one in committed("joint_inference", "joint_mspp_ie_k_ft_ie_1", "climate_fever")}
    assert len(again) == 1 and again != {committed("joint_inference", "joint_mspp_ie_k", "pretraining")[0]["name"]}
    assert 0.115 < np.ptp(reached("joint_inference", "pairwise_mspp", "wikiqa")) < 0.125, "twelve points"
    (trecqa,) = set(EVERY.questions[(EVERY.dataset == "trecqa") & (EVERY["sample"] == "test") & (EVERY.paper == "joint_inference")])
    assert trecqa == 68


def test_joint_models_without_mspp_do_not_fail_as_printed():
    claims = EVERY[(EVERY.paper == "joint_inference") & (EVERY.family == "small")].set_index("claim")
    alone = claims[claims.index.str.startswith("joint_alone") & claims.stated.isna()]
    assert alone.printed.min() < -40 and len(alone) == 4 and alone.difference.min() > -6
    gains = claims.loc[["mspp_mends_ie_k_wikiqa", "mspp_mends_ae_k_wikiqa"]].effect_ratio
    assert ((gains > 0) & (gains < 0.1)).all()


@pytest.mark.parametrize(
    ("paper", "budget", "least"),
    [("sentence_objectives", "*", 20), ("contextual_as2", "*", 20), ("joint_inference", "small", 40), ("asbert", "small", 40)],
)
def test_no_run_was_stopped_or_picked_by_dev(paper, budget, least):
    paths = list((ROOT / "results" / paper).glob(f"*/*-{budget}-seed*.json"))
    assert len([path for path in paths if "pretraining" not in path.name]) > least
    for path in paths:
        record = json.loads(path.read_text("utf-8"))
        assert record["settings"].get("patience") is None and record.get("figures", {}).get("best") is None, path


# ------------------------------------------------------------------ triplets


def test_minilms_siamese_network_did_not_train_and_granites_hardly():
    for dataset, start in (("wikiqa", "sentence_bert"), ("trecqa", "sentence_bert"), ("pydocs", "mean_bert")):
        assert mean("asbert", "siamese_bert", dataset) < mean("asbert", start, dataset)
    for dataset in ("wikiqa", "trecqa"):
        asked = precisions("sentence_objectives", "roberta_base", dataset).index
        own = precisions("asbert", "siamese_roberta", dataset).loc[asked].to_numpy().mean()
        level = baseline("sentence_objectives", "roberta_base", dataset, "small", "zero_shot")
        assert 0 < own - level < 0.01, "a point or less"
    chance = baseline("asbert", "siamese_bert", "wikiqa", "small", "random")
    assert abs(min(reached("asbert", "siamese_bert", "wikiqa")) - chance) < 0.01, "within a point"
    head = np.mean([one["readouts"]["probability"]["test"]["map"] for one in committed("asbert", "siamese_bert", "wikiqa")])
    assert head > mean("asbert", "siamese_bert", "wikiqa")
    assert at_chance("asbert", "siamese_roberta", "pydocs", "map") and at_chance("asbert", "siamese_bert", "pydocs", "map")


def test_how_much_the_seeds_of_minilms_networks_differ():
    spread = {
        (row, dataset): np.ptp(reached("asbert", f"{row}_bert", dataset))
        for row in ("siamese", "triplet")
        for dataset in ("wikiqa", "trecqa")
    }
    assert 0.155 < spread["siamese", "trecqa"] < 0.165 and spread["siamese", "wikiqa"] > 0.25
    assert max(spread["triplet", "wikiqa"], spread["triplet", "trecqa"]) < 0.005


def test_the_order_of_encoders_here_and_as_printed():
    document_order = baseline("asbert", "use", "wikiqa", "small", "document_order")
    assert document_order > max(mean("asbert", row, "wikiqa") for row in ("use", "glove"))
    rows = papers.read("asbert")["rows"]
    ready = ("glove", "fasttext", "infersent", "use", "cls_bert", "mean_bert", "sentence_bert")
    for dataset in ("wikiqa", "trecqa"):
        assert max(ready, key=lambda row: rows[row]["published"][dataset]["map"]) == "use"
        assert mean("asbert", "sentence_bert", dataset) > mean("asbert", "use", dataset)
    assert rows["siamese_bert"]["published"]["wikiqa"]["map"] > rows["use"]["published"]["wikiqa"]["map"]
    ratios = EVERY[EVERY.claim.str.startswith("triplet_siamese_roberta") & (EVERY.family == "small")].effect_ratio
    assert len(ratios) == 2 and ((ratios > 0) & (ratios < 1)).all(), "smaller than printed"


# ------------------------------------------------------------------ the contrastive loss

HOTPOTQA, QASPER, PYDOCS = ("hotpotqa", "small"), ("qasper", "small"), ("pydocs_evidence", "laptop")
PAIRS = [("longformer_base", *HOTPOTQA), ("led_base", *QASPER), ("longformer_base", *PYDOCS)]
evidence = lambda row, place, metric: mean("evidence_contrast", row, *place, metric=metric)


def test_where_answers_are_above_the_most_frequent_one():
    each = [(row, dataset) for base, dataset, _ in PAIRS for row in (base, f"{base}_contrast")]
    above = [place for place in each if not at_chance("evidence_contrast", *place, "answer_f1")]
    assert above == [("longformer_base", "hotpotqa"), ("led_base", "qasper"), ("led_base_contrast", "qasper")]


@pytest.mark.parametrize(("base", "dataset", "budget"), PAIRS)
def test_evidence_is_nowhere_detected_better_than_by_marking_every_sentence(base, dataset, budget):
    assert at_chance("evidence_contrast", base, dataset, "evidence_f1")
    assert at_chance("evidence_contrast", f"{base}_contrast", dataset, "evidence_f1")
    level = baseline("evidence_contrast", base, dataset, budget, "zero_shot")
    assert (evidence(f"{base}_contrast", (dataset, budget), "map_projected") < level) == (dataset != "pydocs_evidence")
    assert evidence(base, (dataset, budget), "map_projected") < level


def test_the_loss_hardly_acts_on_qasper():
    """Nearly all answers are as good without it, below ten points of F1, and no order of evidence is better than at random."""
    text = (BOOK / "papers" / "evidence_contrast.md").read_text("utf-8")
    each = [committed("evidence_contrast", row, *QASPER) for row in ("led_base", "led_base_contrast")]
    pairs = [(ours, other) for one, two in zip(*each) for ours, other in zip(one["per_question"], two["per_question"])]
    assert f"{sum(ours[:2] == other[:2] for ours, other in pairs)} of {len(pairs)} answers are as good" in text
    for row, place in (("led_base", QASPER), ("longformer_base", HOTPOTQA)):
        assert max(evidence(name, place, "answer_f1") for name in (row, f"{row}_contrast")) < 0.1
    for row in ("led_base", "led_base_contrast"):
        assert at_chance("evidence_contrast", row, "qasper", "map_projected")


def test_evidence_is_not_nearer_in_raw_vectors():
    """The words of the summary, and those of the examples under figure 2."""
    assert evidence("longformer_base_contrast", PYDOCS, "map_raw") < evidence("longformer_base", PYDOCS, "map_raw")
    for row, place in (("longformer_base_contrast", HOTPOTQA), ("longformer_base", HOTPOTQA), ("longformer_base_contrast", PYDOCS)):
        distance = committed("evidence_contrast", row, *place)[0]["pca"]["after"]["distance"]
        assert distance["positive"] > distance["negative"]


def test_what_similarities_without_a_bound_do():
    names = ("", "_shared", "_contrast", "_cosine", "_dot", "_dot_light", "_bilinear", "_bilinear_light")
    near = {name: evidence(f"longformer_base{name}", PYDOCS, "map_projected") for name in names}
    assert max(near, key=near.get) == "_dot"
    for name in ("_dot", "_dot_light"):
        records = committed("evidence_contrast", f"longformer_base{name}", *PYDOCS)
        assert max(one["metrics"]["test"]["evidence_f1"] for one in records) == 0, "marks no right sentence"
    types = [evidence(f"longformer_base{name}", PYDOCS, "type_accuracy") for name in ("", "_dot_light")]
    assert abs(types[0] - types[1]) < 0.01, "keeps the types"


def test_how_many_questions_are_learnt_and_asked_and_how_much_seeds_differ():
    for row, place, read in (("longformer_base", HOTPOTQA, (300, 100)), ("led_base", QASPER, (158, 150))):
        assert {tuple(one["figures"]["read"].values()) for one in committed("evidence_contrast", row, *place)} == {read}
    spread = np.ptp(reached("evidence_contrast", "longformer_base", *HOTPOTQA, metric="map_projected"))
    gain = evidence("longformer_base_contrast", HOTPOTQA, "map_projected") - evidence("longformer_base", HOTPOTQA, "map_projected")
    assert 0.085 < spread < 0.09 and spread > gain


def test_what_the_page_on_ranking_says_of_labels_and_first_stages():
    """Of 50, 500 and all training questions of NQ sentences; of three losses; of first stages what is kept among the best 30."""
    text = (BOOK / "rank.md").read_text("utf-8")
    few, some, every = (mean("sentence_objectives", row, "nq_sentences") for row in ("roberta_base_50", "roberta_base_500", "roberta_base"))
    place = ("sentence_objectives", "roberta_base", "nq_sentences", "small")
    untrained = [baseline(*place, name) for name in ("bm25", "zero_shot", "document_order")]
    assert "With 50 questions the model is worse than the encoder that it started from" in text
    assert few < baseline(*place, "zero_shot") and max(untrained) < some < every
    assert "with 500 its interval over questions is above every ranker without training" in text
    listwise = mean("sentence_objectives", "roberta_listwise_500", "nq_sentences")
    assert "A loss on lists may gain a point of MAP" in text and 0.005 < listwise - some < 0.015
    assert "Ten times as many labelled questions gained ten points" in text and 0.095 < every - some < 0.115
    seeds = "one", "two", "three"
    student = committed("sentence_objectives", "roberta_distilled_500", "nq_sentences", "small")
    assert (
        f"(of the student {seeds[len(student) - 1]})" in text
        and len(committed("sentence_objectives", "roberta_base_500", "nq_sentences", "small")) == 3
    )
    _, runs = comparisons.rows_and_runs("sentence_objectives")
    for size, dataset in itertools.product(("50", "500"), ("selqa_from_nq_sentences", "trecqa_from_nq_sentences")):
        alone, after = (runs.record[(runs.dataset == dataset) & (runs.row == f"roberta_{row}_{size}")] for row in ("base", "sp"))
        bm25 = alone.iloc[0]["baselines"]["bm25"]["map"]  # Findings and the paper's page: far above the model alone, level with SP
        alone, after = (np.mean([one["metrics"]["test"]["map"] for one in of]) for of in (alone, after))
        assert alone < bm25 - 0.1 and abs(after - bm25) < 0.02
    sets = json.loads((ROOT / "results" / "first_stage.json").read_text("utf-8"))["sets"]
    granite, bm25 = (
        [1 - recall["30"]["recall"] for name, recall in sets[0]["recall"].items() if ("granite" in name) == own] for own in (1, 0)
    )
    assert sets[0]["dataset"] == "wikiqa" and granite[0] < 0.06 < 3 * granite[0] < bm25[0]


def test_what_the_joint_model_and_mspp_gain_on_more_of_pydocs():
    asked = EVERY[(EVERY.paper == "joint_inference") & (EVERY.dataset == "pydocs_more")]
    assert len(asked) == 4 and set(asked.verdict) == {"inconclusive"}
    assert asked.difference.abs().max() < 0.5, "near zero"
    assert 1.5 <= asked[["low", "high"]].abs().max().max() < 2, "a point and a half remain possible"
