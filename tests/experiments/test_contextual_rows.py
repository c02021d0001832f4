"""The rows of contextual_as2 ask for what its appendix D prints, and its runs come in the order that its tables need."""

import pytest

from aslab import papers, plan

from . import made_up

PAPER = "contextual_as2"
DATA = papers.read(PAPER)
TABLE_3 = {  # batch size, peak learning rate, warm-up steps, epochs
    "roberta": {"asnq": (2048, 1e-5, 10_000, 6), "wikiqa": (32, 5e-6, 1_000, 30), "newsas2": (256, 5e-6, 5_000, 8)},
    "electra": {"asnq": (1024, 1e-5, 10_000, 6), "wikiqa": (128, 2e-5, 1_000, 30), "newsas2": (128, 1e-5, 5_000, 8)},
}


@pytest.mark.parametrize("row", DATA["budgets"]["paper"]["rows"])
def test_every_row_has_the_printed_settings_of_its_data_sets(row):
    backbone, other = ("electra", "roberta") if row.startswith("electra") else ("roberta", "electra")
    for dataset, printed in TABLE_3[backbone].items():
        *before, last = made_up.chain(PAPER, row, dataset)
        settings = last["settings"]
        assert tuple(settings[name] for name in ("batch_size", "peak_lr", "warmup_steps", "epochs")) == printed
        assert (settings["max_tokens"], settings["weight_decay"], settings["patience"]) == (256, 0.0, 5)
        assert settings["architecture"] == ("pair" if row.endswith("_base") else "context")
        assert len(before) == (0 if "base" in row else 1)
        for one in before:
            wanted = {"steps": 400_000, "batch_size": 4096, "peak_lr": 1e-4, "warmup_steps": 10_000, "max_tokens": 128}
            wanted |= {"splitter": "nltk", "min_sentence_chars": 20}
            wanted["heads"] = "per_objective" if row.endswith("separate_heads") else "shared"
            assert {name: one["settings"][name] for name in wanted} == wanted
        assert plan.at_paper_settings(DATA, row, dataset, [*before, last])
        its = TABLE_3[other][dataset][0]
        for name, value in (("weight_decay", 0.01), ("batch_size", its), ("architecture", "joint"), ("epochs", 40)):
            changed = {**last, "settings": settings | {name: value}}
            assert not plan.at_paper_settings(DATA, row, dataset, [*before, changed])


def test_runs_come_baselines_first_and_private_data_never():
    for budget in ("small", "gpu"):
        rows = list(dict.fromkeys(job.row for job in plan.jobs(PAPER, budget)))
        assert rows[:5] == ["roberta_base", "roberta_base_context", "roberta_dpc", "roberta_dslc", "roberta_sdc"]
    for budget in DATA["budgets"]:
        assert not any(job.dataset.startswith("iqad") for job in plan.jobs(PAPER, budget))
    assert set(DATA["private"]) == {"iqad_bench_1", "iqad_bench_2"}


def test_claims_have_the_printed_sign():
    assert {tuple(claim["metric"]) for claim in DATA["claims"]} == {("p@1", "map")}
    unprinted = "roberta_all_separate_heads"  # section 7 has words about it, no figures
    assert not any(DATA["rows"][unprinted]["published"].values())
    for claim in papers.claims(DATA):
        if claim["row_a"] == unprinted or "stated" in claim:  # or about data that the paper does not have
            continue
        a, b = (DATA["rows"][claim[row]]["published"][claim["dataset"]][claim["metric"]][0] for row in ("row_a", "row_b"))
        printed_otherwise = claim["id"] == "dslc_sdc_wikiqa"  # the advice of section 7 against table 1
        assert (a > b) == ((claim["sign"] == "+") != printed_otherwise), claim["id"]
