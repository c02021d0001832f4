"""What counts as a paper's own settings: all that it prints and nothing else, in whole chains of runs with one setting changed."""

import re
from functools import cache
from pathlib import Path

import pytest

from aslab import papers, plan, rules

from .made_up import chain

known_chain = cache(chain)
PAGE = (Path(__file__).resolve().parents[2] / "book" / "deviations.md").read_text("utf-8")


SO, CA, AB, JI, EC = papers.PAPERS
BOTH = ("roberta", "electra")
ENCODERS = ["glove", "fasttext", "infersent", "cls_bert", "mean_bert", "sentence_bert"]  # and another USE than the paper's, which is none
SIAMESE, TRIPLET = ([f"{kind}_{name}" for name in ("bert", "roberta", "xlnet")] for kind in ("siamese", "triplet"))
CONTEXTUAL = papers.read(CA)["budgets"]["paper"]["rows"]
EVIDENCE = [row for row in papers.read(EC)["budgets"]["paper"]["rows"] if row != "longformer_base_log_sum"]
HOTPOT, LED = ([row for row in EVIDENCE if row.startswith("led") == is_led] for is_led in (False, True))
ALONE = ["longformer_base", "longformer_large", "cdlm_base", "cdlm_large"]  # without the contrastive loss
ONE = ["longformer_base_shared", "longformer_base_dot", "longformer_base_cosine", "longformer_base_bilinear"]  # one space for all types
TYPED = [row for row in HOTPOT if row not in (*ALONE, *ONE) and not row.endswith(("_shared", "_temperature"))]
PLAIN = [*ALONE, *ONE[1:]]  # vectors are not projected, so that no dimension is chosen
OF_NONE = [{"epochs": 7}, {"question_limit": 100}, {"patience": 3}, {"batch_size": 16}, {"peak_lr": 3e-5}, {"max_tokens": 512}]
OF_NONE += [{"loss_weight": 0.3}, {"model": "tiny_longformer"}, {"other_evidence": "include"}, {"projection_size": 1025}]
OF_NONE += [{"weight_decay": 0.01}, {"distractors": 2}, {"least_of_type": 20}, {"warmup_share": 0.2, "warmup_steps": None}]
OF_NONE += [{"dataset": "pydocs_evidence"}, {"budget": "gpu"}]
RATES = {first: [{"peak_lr": float(f"{first}e-{power}")} for power in (4, 5, 6)] for first in (1, 5)}  # printed without exponents
WEIGHTS = [{"loss_weight": weight} for weight in (0.2, 0.4, 0.6, 0.8, 1.0)]
CHANGED = [  # paper, rows, data sets, place of the run in its chain, changes of it, whether each of them is the paper's own
    # appendix B keeps the length of pre-training: 256 for SP and PSD, 128 for SSP; without a pre-training it is open
    (SO, [f"{m}_{n}" for m in BOTH for n in ("sp", "psd", "base")], ["wikiqa"], -1, [{"max_tokens": 128}, {"max_tokens": 256}], True),
    (SO, [f"{m}_{n}" for m in BOTH for n in ("ssp", "all")], ["wikiqa"], -1, [{"max_tokens": 256}], False),
    (SO, ["roberta_psd"], ["trecqa"], -1, [{"max_tokens": 64}], False),
    # warm-up is printed with ASNQ alone
    (SO, ["roberta_base", "electra_all"], ["wikiqa", "trecqa"], -1, [{"warmup_steps": 0}, {"warmup_steps": 100}], True),
    (SO, ["roberta_ssp"], ["asnq"], -1, [{"warmup_steps": 100}, {"batch_size": 1024}], False),
    (SO, ["electra_ssp"], ["asnq"], -1, [{"batch_size": 2048}], False),
    (SO, ["tanda_roberta"], ["wikiqa"], 0, [{"batch_size": 1024}], False),
    (SO, ["tanda_electra"], ["wikiqa"], 0, [{"batch_size": 2048}], False),
    (SO, ["roberta_psd"], ["wikiqa"], -1, [{"peak_lr": 5e-6}, {"batch_size": 64, "micro_tokens": 1, "precision": "fp32"}], True),
    (SO, ["roberta_psd"], ["wikiqa"], -1, [{"also_rank": "selqa,wikiqa"}, {"patience": 6, "evaluations": 3}, {"keep_head": False}], True),
    (SO, ["roberta_psd"], ["wikiqa"], -1, [{"patience": 7}, {"peak_lr": 3e-5}, {"batch_size": 128}, {"question_limit": 5}], False),
    (SO, ["roberta_psd"], ["wikiqa"], -1, [{"max_tokens": 16}, {"dataset": "own:wikiqa"}, {"model": "pretrain-ffffffffffff"}], False),
    (SO, ["roberta_psd"], ["wikiqa"], 0, [{"steps": 1000}, {"objective": "ssp"}, {"hard_negatives": 0}, {"mlm_weight": 0.0}], False),
    (SO, ["roberta_psd"], ["wikiqa"], 0, [{"splitter": "nltk"}, {"model": "tiny"}, {"corpus": "vblagoje/cc_news"}], False),
    (SO, ["roberta_ssp"], ["wikiqa"], -1, [{"batch_size": 24}, {"budget": "small"}], False),
    (SO, ["roberta_all"], ["wikiqa"], 0, [{"heads": "per_objective"}], True),
    (SO, ["roberta_ssp"], ["wikiqa"], 0, [{"weight_decay": 0.0}], False),
    (CA, ["roberta_dpc"], ["wikiqa"], 0, [{"weight_decay": 0.0}], True),
    (CA, ["roberta_dpc"], ["wikiqa"], 0, [{"steps": 200_000}], False),
    (CA, ["roberta_all"], ["wikiqa"], 0, [{"heads": "per_objective"}], False),  # section 7: tried, and worse
    (CA, ["roberta_dpc"], ["wikiqa"], -1, [{"evaluations": 3, "keep_head": False}], True),
    (CA, ["roberta_dpc"], ["wikiqa"], -1, [{"patience": 6}, {"peak_lr": 2e-5}], False),
    (CA, CONTEXTUAL, ["asnq", "wikiqa", "newsas2"], -1, [{"weight_decay": 0.01}, {"batch_size": 64}, {"architecture": "joint"}], False),
    # a tenth of the data: of all steps, or of one pass
    (AB, ["siamese_bert", "triplet_xlnet"], ["wikiqa"], -1, [{"epochs": 50}, {"warmup_share": 0.001}], True),
    (AB, ["siamese_bert"], ["trecqa"], -1, [{"warmup_share": 0.002, "epochs": 50}, {"weight_decay": 0.01}], True),
    (AB, ["siamese_bert"], ["trecqa"], -1, [{"warmup_share": 0.001, "epochs": 50}, {"warmup_share": 0.002}], False),
    (AB, ["triplet_bert", "mean_bert"], ["wikiqa"], -1, [{"model": "google-bert/bert-large-uncased"}], True),
    (AB, ["triplet_bert", "mean_bert"], ["wikiqa"], -1, [{"model": "FacebookAI/roberta-base"}], False),
    (AB, ["mean_bert"], ["wikiqa"], -1, [{"rank_by": "distance"}], True),
    (AB, [*ENCODERS, *SIAMESE, *TRIPLET], ["wikiqa", "trecqa"], -1, [{"protocol": "clean"}, {"max_tokens": 256}, {"model": "tiny"}], False),
    (AB, [*ENCODERS, *SIAMESE, *TRIPLET], ["wikiqa", "trecqa"], -1, [{"rank_by": "dot"}, {"architecture": "other"}], False),
    (AB, [*SIAMESE, *TRIPLET], ["wikiqa", "trecqa"], -1, [{"batch_size": 16}, {"peak_lr": 3e-5}, {"warmup_share": 0.2}], False),
    (AB, [*SIAMESE, *TRIPLET], ["wikiqa", "trecqa"], -1, [{"patience": 5}, {"pooling": "cls"}, {"triplet_limit": 9}], False),
    (AB, SIAMESE, ["wikiqa"], -1, [{"rank_by": "distance"}, {"rank_by": "cosine"}], True),
    (AB, SIAMESE, ["wikiqa"], -1, [{"rank_by": "probability"}], False),
    (AB, TRIPLET, ["trecqa"], -1, [{"distance": "plain"}], True),
    (AB, TRIPLET, ["trecqa"], -1, [{"margin": 1.0}, {"selection": "hard"}, {"triplets_per_question": 100}], False),
    (JI, ["pairwise_roberta_base", "joint_mspp_ae_k"], ["wikiqa"], -1, [{"patience": 6}, {"patience": 8}, {"evaluations": 2}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], -1, [{"slot_init": 0.1}, {"head_form": "released"}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], -1, [{"warmup_steps": 100}, {"slot_pooling": "mean"}], False),
    (JI, ["joint_mspp_ae_k"], ["wikiqa"], -1, [{"head_form": "released"}], False),  # C.3 names IE1, IEk and AE1
    (JI, ["joint_mspp_ie_k_top_5"], ["wikiqa"], -1, [{run: "finetune-ffffffffffff"} for run in ("first_run", "joint_run")], False),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], 0, [{"splitter": "nltk"}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], 0, [{"max_sentences": 2}], False),
    (JI, ["joint_mspp_ie_k_ft_ie_1"], ["fever"], -1, [{"epochs": 15, "patience": 8, "weight_decay": 0.0}], True),
    (JI, ["joint_mspp_ie_k_ft_ie_1"], ["fever"], -1, [{"max_tokens": 128}], False),
    (JI, ["pairwise_roberta_base_maxpool"], ["fever"], -1, [{"max_tokens": 384}, {"max_tokens": 128}], True),
    (JI, ["pairwise_roberta_base_maxpool"], ["fever"], -1, [{"max_tokens": 256}], False),
    (SO, ["roberta_ssp", "electra_sp", "roberta_all"], ["wikiqa"], 0, [{"lengths": None}], True),
    (CA, ["roberta_sdc", "electra_dpc", "roberta_all"], ["wikiqa"], 0, [{"lengths": None}], True),
    (EC, LED, ["qasper"], -1, [*OF_NONE, {"type_loss": None}, {"warmup_steps": 100, "warmup_share": None}, {"peak_lr": 1e-5}], False),
    (EC, HOTPOT, ["hotpotqa"], -1, [*OF_NONE, {"warmup_steps": 50, "warmup_share": None}, {"peak_lr": 5e-5}], False),
    (EC, LED, ["qasper"], -1, [*RATES[5], {"reduction": "log_sum"}, {"gradient_checkpointing": False}], True),
    (EC, HOTPOT, ["hotpotqa"], -1, [*RATES[1], {"reduction": "log_sum"}, {"seed": 3, "precision": "fp32", "micro_tokens": 4096}], True),
    # a loss without weight has no temperature, and a space for all types has one
    (EC, ALONE, ["hotpotqa"], -1, [{"temperatures": "0.8"}, {"temperatures": "0.2,1.0"}, {"temperatures": "0.3"}], True),
    (EC, ["led_base"], ["qasper"], -1, [{"temperatures": "0.8"}, {"temperatures": "0.3"}], True),
    (EC, ALONE, ["hotpotqa"], -1, WEIGHTS, False),
    (EC, ["led_base"], ["qasper"], -1, WEIGHTS, False),
    (EC, [row for row in HOTPOT if row not in ALONE], ["hotpotqa"], -1, WEIGHTS, True),
    (EC, LED[1:], ["qasper"], -1, WEIGHTS, True),
    (EC, [row for row in HOTPOT if row not in ALONE], ["hotpotqa"], -1, [{"temperatures": "0.2,1.0"}, {"loss_weight": 0.0}], False),
    (EC, LED[1:], ["qasper"], -1, [{"temperatures": "0.2,1.0"}, {"loss_weight": 0.0}], False),
    (EC, [*ONE, "longformer_base_one_temperature"], ["hotpotqa"], -1, [{"temperatures": "0.8"}], True),
    (EC, TYPED, ["hotpotqa"], -1, [{"temperatures": "0.2,1.0,0.8"}], True),
    (EC, TYPED, ["hotpotqa"], -1, [{"temperatures": "0.8"}, {"temperatures": "0.2,0.5,0.6"}, {"temperatures": "0.3"}], False),
    (EC, ["longformer_base_one_temperature"], ["hotpotqa"], -1, [{"temperatures": "0.2,1.0,0.8"}], False),
    (EC, [row for row in HOTPOT if row not in PLAIN], ["hotpotqa"], -1, [{"projection_size": 1}, {"projection_size": 768}], True),
    (EC, [row for row in HOTPOT if row not in PLAIN], ["hotpotqa"], -1, [{"projection_size": "384"}, {"projection_size": True}], False),
    (EC, ["longformer_base_contrast"], ["hotpotqa"], -1, [{"projection_size": 769}], False),
    (EC, ["longformer_large_contrast"], ["hotpotqa"], -1, [{"projection_size": 1024}], True),
    (EC, PLAIN, ["hotpotqa"], -1, [{"projection_size": 1}, {"projection_size": 384}], False),
    (EC, ["led_base"], ["qasper"], -1, [{"projection_size": 384}], False),
]  # fmt: skip
CASES = [
    (paper, row, dataset, place, change, expected)
    for paper, rows, datasets, place, changes, expected in CHANGED
    for row in rows
    for dataset in datasets
    for change in changes
]


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "row", "dataset", "place", "change", "expected"), CASES)
def test_what_a_paper_prints_is_required_and_what_it_leaves_open_is_not(paper, row, dataset, place, change, expected):
    data, records = papers.read(paper), list(known_chain(paper, row, dataset))
    columns = {"fever": ["fever_dev"]}.get(dataset, [dataset, f"{dataset}_dev"][: 1 + (paper == AB)])
    own = lambda *some: {plan.at_paper_settings(data, row, column, some) for column in columns}
    assert own(*records) == {True} and own(*records[1:]) == {False}, "with the runs before it"
    assert set(change) <= set(records[place]["settings"])
    records[place] = {**records[place], "settings": records[place]["settings"] | change}
    assert own(*records) == {expected}


def test_settings_with_several_values_are_those_that_the_page_of_deviations_explains():
    """Each has one entry that names it, and no entry names another."""
    explained = []
    for setting, slugs in re.findall(r"\{as2-accepted\}`([\w.]+): ([^`]*)`", PAGE):
        explained += [(slug, setting) for slug in slugs.split(", ")]
    assert len(set(explained)) == len(explained)
    assert set(explained) == {(slug, setting) for slug in papers.PAPERS for setting in rules.several(papers.read(slug))}
