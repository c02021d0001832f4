"""What counts as a paper's own settings: all that it prints and nothing else, in whole chains of runs with one setting changed."""

import re
from pathlib import Path

import pytest

from aslab import papers, plan, rules

from .made_up import chain

PAGE = (Path(__file__).resolve().parents[2] / "book" / "deviations.md").read_text("utf-8")


SO, CA, AB, JI, EC = papers.PAPERS
BOTH = ("roberta", "electra")
CHANGED = [  # paper, rows, data sets, place of the run in its chain, changes of it, whether each of them is the paper's own
    # appendix B keeps the length of pre-training: 256 for SP and PSD, 128 for SSP; without a pre-training it is open
    (SO, [f"{m}_{n}" for m in BOTH for n in ("sp", "psd", "base")], ["wikiqa"], -1, [{"max_tokens": 128}, {"max_tokens": 256}], True),
    (SO, [f"{m}_{n}" for m in BOTH for n in ("ssp", "all")], ["wikiqa"], -1, [{"max_tokens": 256}], False),
    (SO, ["roberta_psd"], ["trecqa"], -1, [{"max_tokens": 64}], False),
    # warm-up is printed with ASNQ alone
    (SO, ["roberta_base", "electra_all"], ["wikiqa", "trecqa"], -1, [{"warmup_steps": 0}, {"warmup_steps": 100}], True),
    (SO, ["roberta_ssp"], ["asnq"], -1, [{"warmup_steps": 100}, {"batch_size": 1024}], False),
    (SO, ["roberta_ssp"], ["wikiqa"], -1, [{"batch_size": 24}, {"peak_lr": 3e-5}], False),
    (SO, ["roberta_all"], ["wikiqa"], 0, [{"heads": "per_objective"}], True),
    (SO, ["roberta_ssp"], ["wikiqa"], 0, [{"weight_decay": 0.0}], False),
    (CA, ["roberta_dpc"], ["wikiqa"], 0, [{"weight_decay": 0.0}], True),
    (CA, ["roberta_dpc"], ["wikiqa"], 0, [{"steps": 200_000}], False),
    (CA, ["roberta_all"], ["wikiqa"], 0, [{"heads": "per_objective"}], False),  # section 7: tried, and worse
    (CA, ["roberta_dpc"], ["wikiqa"], -1, [{"evaluations": 3, "keep_head": False}], True),
    (CA, ["roberta_dpc"], ["wikiqa"], -1, [{"patience": 6}, {"peak_lr": 2e-5}], False),
    # a tenth of the data: of all steps, or of one pass
    (AB, ["siamese_bert", "triplet_xlnet"], ["wikiqa"], -1, [{"epochs": 50}, {"warmup_share": 0.001}], True),
    (AB, ["siamese_bert"], ["trecqa"], -1, [{"warmup_share": 0.002, "epochs": 50}, {"weight_decay": 0.01}], True),
    (AB, ["siamese_bert"], ["trecqa"], -1, [{"warmup_share": 0.001, "epochs": 50}, {"warmup_share": 0.002}], False),
    (AB, ["triplet_bert", "mean_bert"], ["wikiqa"], -1, [{"model": "google-bert/bert-large-uncased"}], True),
    (AB, ["triplet_bert", "mean_bert"], ["wikiqa"], -1, [{"model": "FacebookAI/roberta-base"}], False),
    (AB, ["mean_bert"], ["wikiqa"], -1, [{"rank_by": "distance"}], True),
    (JI, ["pairwise_roberta_base", "joint_mspp_ae_k"], ["wikiqa"], -1, [{"patience": 6}, {"patience": 8}, {"evaluations": 2}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], -1, [{"slot_init": 0.1}, {"head_form": "released"}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], -1, [{"warmup_steps": 100}, {"slot_pooling": "mean"}], False),
    (JI, ["joint_mspp_ae_k"], ["wikiqa"], -1, [{"head_form": "released"}], False),  # C.3 names IE1, IEk and AE1
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], 0, [{"splitter": "nltk"}], True),
    (JI, ["joint_mspp_ie_k"], ["wikiqa"], 0, [{"max_sentences": 2}], False),
    (JI, ["joint_mspp_ie_k_ft_ie_1"], ["fever"], -1, [{"epochs": 15, "patience": 8, "weight_decay": 0.0}], True),
    (JI, ["joint_mspp_ie_k_ft_ie_1"], ["fever"], -1, [{"max_tokens": 128}], False),
    (JI, ["pairwise_roberta_base_maxpool"], ["fever"], -1, [{"max_tokens": 384}, {"max_tokens": 128}], True),
    (JI, ["pairwise_roberta_base_maxpool"], ["fever"], -1, [{"max_tokens": 256}], False),
    (SO, ["roberta_ssp", "electra_sp", "roberta_all"], ["wikiqa"], 0, [{"lengths": None}], True),
    (CA, ["roberta_sdc", "electra_dpc", "roberta_all"], ["wikiqa"], 0, [{"lengths": None}], True),
    (EC, ["led_base", "led_base_contrast"], ["qasper"], -1, [{"weight_decay": 0.01}, {"type_loss": None}], False),
    (EC, ["longformer_base_contrast"], ["hotpotqa"], -1, [{"projection_size": 128}, {"reduction": "log_sum"}], True),
    (EC, [f"longformer_base_{n}" for n in ("shared", "dot", "cosine", "bilinear")], ["hotpotqa"], -1, [{"temperatures": "0.4"}], True),
    (EC, ["longformer_base_contrast"], ["hotpotqa"], -1, [{"temperatures": "0.4"}, {"weight_decay": 0.01}], False),
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
    data, records = papers.read(paper), chain(paper, row, dataset)
    column = "fever_dev" if dataset == "fever" else dataset
    assert plan.at_paper_settings(data, row, column, records)
    known = set(records[place]["settings"])
    records[place] = {**records[place], "settings": records[place]["settings"] | change}
    assert set(change) <= known and plan.at_paper_settings(data, row, column, records) is expected


def test_settings_with_several_values_are_those_that_the_page_of_deviations_explains():
    """Each has one entry that names it, and no entry names another."""
    explained = []
    for setting, slugs in re.findall(r"\{as2-accepted\}`([\w.]+): ([^`]*)`", PAGE):
        explained += [(slug, setting) for slug in slugs.split(", ")]
    assert len(set(explained)) == len(explained)
    assert set(explained) == {(slug, setting) for slug in papers.PAPERS for setting in rules.several(papers.read(slug))}
