"""What the summaries of sentence_objectives and contextual_as2 say without a figure role."""

import json

import numpy as np
import pandas as pd
import pytest

from aslab import papers
from aslab.analysis import quotes

from .committed import EVERY, ROOT, committed, precisions

SENTENCES, CONTEXTS = "sentence_objectives", "contextual_as2"
RAN = EVERY[EVERY.paper.isin([SENTENCES, CONTEXTS]) & EVERY.difference.notna()].set_index(["paper", "family", "claim"]).sort_index()


# ------------------------------------------------------------------ words on claims

SUPPORTED, SUGGESTIVE, INCONCLUSIVE = "supported", "suggestive", "inconclusive"
VERDICTS = {
    (SENTENCES, "small"): {
        **dict.fromkeys(["sp_wikiqa", "all_wikiqa"], SUGGESTIVE),
        **dict.fromkeys(["sp_500_nq_sentences", "ssp_500_nq_sentences"], SUPPORTED),
        **dict.fromkeys(["ssp_wikiqa", "psd_wikiqa", "psd_trecqa", "ssp_single_document", "psd_many_documents"], INCONCLUSIVE),
    },
    (SENTENCES, "laptop"): {
        **{"sp_wikiqa": SUPPORTED, "sp_not_the_data": SUGGESTIVE, "ssp_wikiqa_electra": INCONCLUSIVE},
        **{"sp_pydocs_more": INCONCLUSIVE, "ssp_pydocs_more": SUGGESTIVE, "psd_pydocs_more": INCONCLUSIVE, "all_pydocs_more": INCONCLUSIVE},
    },
    (CONTEXTS, "small"): {
        **dict.fromkeys(["context_wikiqa", "sdc_wikiqa", "dpc_wikiqa", "dslc_wikiqa"], SUPPORTED),
        **dict.fromkeys([f"{name}_wikiqa_pair" for name in ("sdc", "dpc", "dslc")], INCONCLUSIVE),
        **dict.fromkeys(["dpc_sdc_wikiqa", "dslc_sdc_wikiqa", "all_wikiqa"], INCONCLUSIVE),
    },
    (CONTEXTS, "laptop"): {
        "dslc_wikiqa": SUGGESTIVE,
        **dict.fromkeys(["sdc_wikiqa", "dpc_wikiqa", "context_wikiqa", "sdc_wikiqa_electra"], INCONCLUSIVE),
        **dict.fromkeys([f"{name}_wikiqa_pair" for name in ("sdc", "dpc", "dslc")], INCONCLUSIVE),
    },
}


@pytest.mark.parametrize(("paper", "family"), VERDICTS)
def test_the_verdicts_that_the_summaries_name(paper, family):
    told = VERDICTS[paper, family]
    assert RAN.loc[(paper, family)].verdict[list(told)].to_dict() == told


def test_what_made_the_gain_of_sp_on_pydocs_smaller():
    """The first of three pre-trainings is that of pydocs: its model gains a third less than there, the others a point and none."""
    parts = {"pydocs": ("per_question", "per_question_dev"), "pydocs_more": ("per_question",)}
    values = lambda one, dataset: [line[2] for part in parts[dataset] for line in one[part]]
    each = lambda row, dataset: [np.mean(values(one, dataset)) for one in committed(SENTENCES, row, dataset, "laptop")][:3]
    gains = {dataset: 100 * np.subtract(each("roberta_sp", dataset), each("roberta_base", dataset)) for dataset in parts}
    assert 1 - gains["pydocs_more"][0] / gains["pydocs"][0] == pytest.approx(1 / 3, abs=0.03)
    assert gains["pydocs_more"][1:].round().tolist() == [1, 0]
    for row in ("roberta_sp", "roberta_base"):
        same = [committed(SENTENCES, row, dataset, "laptop")[0]["metrics"]["dev"] for dataset in gains]
        assert same[0] == same[1], "one model"


def test_what_each_seed_gains_over_context_alone_on_more_of_pydocs():
    maps = lambda row: np.array([100 * one["metrics"]["test"]["map"] for one in committed(CONTEXTS, row, "pydocs_more", "laptop")])
    alone = maps("roberta_base_context")
    for row in ("roberta_sdc", "roberta_dpc"):
        first, second, third = maps(row) - alone
        assert first.round() == second.round() == 2 and third < 0, "both lose"
    assert (alone[2] - alone[:2]).mean().round() == 1


OBJECTIVES = ("sp", "ssp", "psd", "all")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "words"),
    [
        *((SENTENCES, f"map of roberta_{one} - roberta_{other} on wikiqa at small over both is unclear")
          for n, one in enumerate(OBJECTIVES) for other in OBJECTIVES[:n]),
        *((SENTENCES, f"p@1 of roberta_{one} - roberta_base on wikiqa at small over both is {'better' if one == 'sp' else 'unclear'}")
          for one in OBJECTIVES),
        *((SENTENCES, f"map of roberta_{one} - roberta_base on trecqa at small over both is unclear") for one in OBJECTIVES),
        *((SENTENCES, f"map of roberta_sp - roberta_{other} on pydocs at laptop over both is better") for other in ("psd", "all")),
        *((SENTENCES, f"map of roberta_{one} - roberta_{one}_shuffled on {place} over both is {word}")
          for place in ("wikiqa at small", "pydocs at laptop") for one, word in (("sp", "better"), ("ssp", "unclear"))),
        *((SENTENCES, f"map of roberta_{one}_shuffled - roberta_base on wikiqa at small over dev is worse") for one in ("sp", "ssp")),
        *((CONTEXTS, f"map of roberta_{one} on wikiqa at small over dev is unclear")
          for one in ("base_context - roberta_base", *(f"{name} - roberta_base_context" for name in ("sdc", "dpc", "dslc", "all")))),
    ],
)  # fmt: skip
def test_what_is_significant_and_what_is_not(paper, words):
    quotes.quoted(f"as said: {words}", paper)


@pytest.mark.parametrize("dataset", ["wikiqa", "pydocs"])
def test_the_differences_of_context_have_one_sign_wherever_they_were_measured(dataset):
    budget = "laptop" if dataset == "pydocs" else "small"
    of = lambda row, part: np.mean([[line[2] for line in one[part]] for one in committed(CONTEXTS, row, dataset, budget)])
    parts = ["per_question", "per_question_dev"]
    level = lambda row: [of(row, part) for part in parts] if dataset == "wikiqa" else [np.mean([of(row, part) for part in parts])]
    alone, none = np.array(level("roberta_base_context")), np.array(level("roberta_base"))
    assert (alone < none).all()
    assert all((np.array(level(f"roberta_{name}")) > alone).all() for name in ("sdc", "dpc", "dslc"))


def test_the_tests_see_as_little_as_the_summaries_say_and_where_print_lies():
    smallest = lambda paper, dataset: RAN.loc[paper][RAN.loc[paper].dataset == dataset].smallest_effect
    first, few, context = smallest(SENTENCES, "wikiqa"), smallest(SENTENCES, "trecqa"), EVERY[EVERY.paper == CONTEXTS].smallest_effect
    assert first.between(1.8, 3).all() and few.between(2.4, 4).all()
    assert context.dropna().between(2, 4).all()
    assert RAN.loc[SENTENCES][RAN.loc[SENTENCES].dataset == "trecqa"].printed.max() <= 1
    ours, context = RAN.loc[(SENTENCES, "small")], RAN.loc[(CONTEXTS, "small")]
    names = ["sp_wikiqa", "ssp_wikiqa", "psd_wikiqa"]
    assert (ours.printed[names].idxmax(), ours.difference[names].idxmax()) == ("ssp_wikiqa", "sp_wikiqa")
    assert (ours.printed > ours.high)[["ssp_wikiqa", "ssp_single_document"]].all()
    assert (context.printed > context.high)[["dpc_wikiqa_pair", "dslc_wikiqa_pair", "dpc_sdc_wikiqa"]].all()
    assert round(context.effect_ratio["context_wikiqa"]) == 5, "about five times"


# ------------------------------------------------------------------ advice, cost, difficulty


@pytest.mark.parametrize("paper", [SENTENCES, CONTEXTS])
def test_minilm_on_triplets_ranks_wikiqa_better_than_every_model_of_the_page(paper):
    triplets = precisions("asbert", "triplet_bert", "wikiqa")
    rows = {path.parent.name for path in (ROOT / "results" / paper).glob("*/wikiqa-small-seed0.json")}
    assert len(rows) > 5
    for row in rows:
        own = precisions(paper, row, "wikiqa")
        assert set(own.index) <= set(triplets.index)
        assert triplets.loc[own.index].to_numpy().mean() > own.to_numpy().mean()


def test_the_hours_expected_of_a_pre_training_at_the_papers_setting():
    text = (ROOT / "book" / "papers" / f"{SENTENCES}.md").read_text("utf-8")
    assert f"[{papers.read(SENTENCES)['budgets']['paper']['gpu_hours']['pretrain']} GPU-hours]" in text


def test_how_hard_the_objectives_are():
    rows = {"NSP": "bert_nsp", "SOP": "albert_sop", "SP": "roberta_sp", "SSP": "roberta_ssp", "PSD": "roberta_psd"}
    for budget, hardest_first, behind_words in (("small", "SOP SSP SP PSD NSP", []), ("laptop", "SP SSP NSP PSD SOP", ["SP", "SSP"])):
        made = {name: committed(SENTENCES, row, "pretraining", budget)[0]["metrics"]["validation"] for name, row in rows.items()}
        assert sorted(made, key=lambda name, made=made: made[name]["auc"]) == hardest_first.split()
        assert [name for name in ("SP", "SSP", "PSD") if made[name]["auc"] < made[name]["auc_tfidf"]] == behind_words
        if budget == "small":
            assert all(abs(made[name]["f1"] - made["SOP"]["f1"]) < 0.01 for name in ("SP", "SSP")), "as hard by F1"


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize(("paper", "tokens_of_the_paper"), [(SENTENCES, 400_000 * 4096 * 128), (CONTEXTS, 210e9)])
def test_what_pre_training_at_budget_small_reads(paper, tokens_of_the_paper):
    paths = sorted((ROOT / "results" / paper).glob("*/pretraining-small-seed*.json"))
    every = [json.loads(path.read_text("utf-8")) for path in paths]
    again = {path.parent.name for path in paths if not path.stem.endswith("seed0")}
    assert again == ({"roberta_sp"} if paper == SENTENCES else set()), "one pre-training seed, of SP two"
    assert 32_000 * max(one["figures"]["tokens"] for one in every) <= tokens_of_the_paper
    assert {(one["settings"]["exclude_titles"], one["settings"]["mlm_weight"]) for one in every} == {(None, 0)}


def test_how_the_rows_of_sentence_objectives_differ_beyond_their_objective():
    paths = sorted((ROOT / "results" / SENTENCES).glob("*/wikiqa-small-seed*.json"))
    every = [json.loads(path.read_text("utf-8")) for path in paths]
    bf16 = {one["row"]: one["settings"]["precision"] == "bf16" for one in every}
    assert [row for row, is_bf16 in bf16.items() if not is_bf16] == ["roberta_psd"]
    seeds = pd.Series([one["row"] for one in every]).value_counts()
    assert sorted(seeds[seeds == 5].index) == ["roberta_base", "roberta_ssp"] and set(seeds) == {3, 5}
    keeps = {one["row"] for one in every if one["settings"]["keep_head"] and one.get("earlier")}  # the baseline has no pre-training
    assert keeps == {f"roberta_{name}" for name in (*OBJECTIVES, "sp_shuffled", "ssp_shuffled")}


@pytest.mark.parametrize(
    ("row", "keeps"), [("sp", True), ("ssp", True), ("psd", True), ("mlm_only_sp_data", False), ("ssp_head_anew", False)]
)
def test_which_rows_keep_their_head_on_pydocs(row, keeps):
    assert {one["settings"]["keep_head"] for one in committed(SENTENCES, f"roberta_{row}", "pydocs", "laptop")} == {keeps}
