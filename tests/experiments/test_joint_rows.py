"""The rows of joint_inference: what its appendix B.1 prints, re-ranking after two rankings, claims beside questions, and their records."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pages import miniature

from aslab import papers, rundir
from aslab import plan as plans
from aslab import records as measured
from aslab.analysis import verdicts
from asutil.io import disk

from ..book.tables import results_table, verdict_of
from ..made_up import cells
from . import made_up

PAPER = "joint_inference"
DATA = papers.read(PAPER)
RUNNABLE = DATA["budgets"]["paper"]["rows"]
VERIFYING = [name for name in RUNNABLE if "fever_dev" in DATA["rows"][name]["published"]]
OTHER_PEAKS = [name for name in RUNNABLE if name.endswith(("1e_5", "5e_6"))]  # section 4.3: rows of our own
TOP_5 = [name for name in RUNNABLE if name.endswith("_top_5")]


plan, recorded, chain = (partial(of_a_paper, PAPER) for of_a_paper in (made_up.plan, made_up.recorded, made_up.chain))


# ------------------------------------------------------------------ what the paper prints


def test_some_printed_cells():
    """Typed from the paper's pages."""
    rows = DATA["rows"]
    assert rows["joint_mspp_ae_k"]["published"]["trecqa"] == {"p@1": [88.7, 0.8], "map": [90.1, 1.0], "mrr": [93.6, 0.6]}
    assert rows["joint_roberta_base_ae_k_top_5"]["published"]["asnq"] == {"p@1": [25.4, 3.3], "map": 44.8, "mrr": 46.2}
    assert rows["joint_mspp_ie_k_ft_ae_1"]["published"]["fever_test"] == {"label_accuracy": 74.25}
    assert rows["domlin_plus_plus"]["published"]["fever_dev"] == {"label_accuracy": 77.48}
    assert "fever_test" not in rows["pairwise_roberta_base_wgtsum"]["published"]  # a dash
    assert not any(rows[name].get("stages") for name in ("gear", "kgat_roberta_base", "transformer_xh", "dream", "joint_bert_base"))


def test_what_is_ours_alone_has_no_figure():
    assert DATA["rows"]["pairwise_mspp"]["published"] == {"asnq": {}, "wikiqa": {}, "trecqa": {}}
    assert {name for name, row in DATA["rows"].items() if row.get("stages")} == {*RUNNABLE, "joint_mspp_ie_k_shuffled"}
    for row in DATA["rows"].values():
        assert not row["published"].get("climate_fever")
    for name, table in DATA["tables"].items():
        assert table["datasets"] == ["climate_fever"] if name == "table_climate_fever" else "climate_fever" not in table["datasets"]


@pytest.mark.parametrize("row", [row for row in RUNNABLE if row not in OTHER_PEAKS])
def test_every_run_of_a_row_reads_slots_or_not_and_counts(row):
    """The printed settings themselves are in test_printed_settings.py."""
    for dataset, column in [("fever", "fever_dev")] if row in VERIFYING else [(name, name) for name in ("asnq", "wikiqa", "trecqa")]:
        records = chain(row, dataset)
        before = [one["settings"]["objective"] for one in records if one["notebook"] == "pretrain"]
        assert before == ["mspp"] * ("mspp" in row)
        for one in records:  # section 3.2: the first token of each slot, [CLS] or [SEP]
            reads_slots = one["settings"].get("head") in ("ie_k", "ae_k", "ie_1", "ae_1")
            slots = ("first", "separator") if reads_slots else (None, None)
            assert (one["settings"].get("slot_pooling"), one["settings"].get("slot_start")) == slots
        assert plans.at_paper_settings(DATA, row, column, records)
        assert not plans.at_paper_settings(DATA, row, column, records[1:])
        for place, one in enumerate(records):  # also a run of the row that ranked first counts
            changed = {"peak_lr": 3e-5} if "peak_lr" in one["settings"] else {"k": 4}
            other = [*records[:place], {**one, "settings": one["settings"] | changed}, *records[place + 1 :]]
            assert not plans.at_paper_settings(DATA, row, column, other), one["notebook"]


@pytest.mark.parametrize("row", OTHER_PEAKS)
def test_rows_with_another_peak_differ_from_the_joint_model_in_peak_and_warm_up(row):
    base, _, peak = row.rpartition("_k_")
    other, usual = (chain(name, "wikiqa")[-1]["settings"] for name in (row, f"{base}_k"))
    assert {name for name in usual if usual[name] != other[name]} == ({"peak_lr"} if peak == "5e_6" else {"peak_lr", "warmup_steps"})
    assert (other["peak_lr"], other["warmup_steps"]) == {"1e_5": (1e-5, 100), "5e_6": (5e-6, 1000)}[peak]


def test_heads_follow_the_names_of_rows():
    for row in sorted({*RUNNABLE} - {*OTHER_PEAKS}):
        made = chain(row, "fever" if row in VERIFYING else "wikiqa")
        last = next(one for one in reversed(made) if one["notebook"] != "rerank")["settings"]
        if row in TOP_5:
            last = made[-3]["settings"]  # then the first ranking, then the re-ranking
        learnt = [one["settings"]["head"] for one in made if one["notebook"] == "pretrain"]
        if "joint" in row:
            assert last["head"] == row.removesuffix("_top_5")[-4:], row
            assert learnt == ([] if "mspp" not in row else ["ie_k" if "mspp_ie_k" in row else "ae_k"])
    assert chain("pairwise_mspp", "wikiqa")[-1]["settings"]["architecture"] == "pair"
    heads = [chain(f"pairwise_roberta_base_{name}", "fever")[-1]["settings"]["head"] for name in ("maxpool", "wgtsum")]
    assert heads == ["pair_max", "pair_weighted"]


# ------------------------------------------------------------------ the plan


@pytest.mark.parametrize("budget", rundir.BUDGETS)
def test_every_run_comes_after_those_that_it_needs(budget):
    jobs = plan(budget)
    made = [job.folder for job in jobs]
    assert len(set(made)) == len(made)
    for place, job in enumerate(jobs):
        assert all(need in made[:place] for need in job.needs)
    entry = DATA["budgets"][budget]
    control = "joint_mspp_ie_k_shuffled" in entry["rows"]
    more = entry.get("more_datasets", {})  # two rows that are fine-tuned more than once, and MSPP with each seed
    assert [job.notebook for job in jobs].count("pretrain") == 2 + control + bool(more) * (len(entry["seeds"]) - 1)
    seeds, datasets = len(entry["seeds"]), len(entry["datasets"])
    # the pairwise ones twice, joint ones four times, and the control; other peaks on WikiQA and TREC-QA
    others = 4 * seeds * 2 * (budget == "paper")
    assert [job.notebook for job in jobs].count("finetune") == (6 + control) * seeds * datasets + others + bool(more) * 3 * seeds
    assert [job.notebook for job in jobs].count("rerank") == 4 * seeds * datasets + sum(row.endswith("_top_5") for row in more) * seeds
    assert [job.notebook for job in jobs].count("verify_claims") == 7 * seeds
    assert not any(job.dataset == plans.TRANSFER for job in jobs)  # what re-ranks is the run of its own row
    assert list(dict.fromkeys(job.row for job in jobs))[:5] == entry["rows"][:5]


def test_re_ranking_pairs_runs_of_one_seed_and_data_set():
    jobs = {job.folder: job for job in plan("gpu")}
    reranks = [job for job in jobs.values() if job.row == "joint_mspp_ae_k_top_5"]
    assert [(job.dataset, job.seed) for job in reranks] == [(name, seed) for name in ("wikiqa", "trecqa") for seed in range(5)]
    for job in reranks:
        joint, first = (jobs[need] for need in job.needs)
        assert (joint.row, first.row) == ("joint_mspp_ae_k", "pairwise_roberta_base")
        assert {(one.dataset, one.seed) for one in (joint, first)} == {(job.dataset, job.seed)}
        assert job.parameters == {"budget": "gpu", "first_run": str(first.folder), "joint_run": str(joint.folder), "k": 5, "seed": job.seed}
        assert jobs[joint.needs[0]].parameters["objective"] == "mspp"


def test_a_re_ranking_row_alone_brings_what_it_needs():
    jobs = plan("small", ["joint_roberta_base_ie_k_top_5"], [2])
    joint = "joint_roberta_base_ie_k_top_5"
    for n, dataset in enumerate(("wikiqa", "trecqa", "nq_sentences")):
        made = [(job.row, job.notebook, job.dataset, job.seed) for job in jobs[3 * n : 3 * n + 3]]
        first = ("pairwise_roberta_base", "finetune", dataset, 2)
        assert made == [first, (joint, "finetune", plans.TRANSFER, 2), (joint, "rerank", dataset, 2)]
    assert len(jobs) == 9
    both = plan("small", ["joint_roberta_base_ie_k_top_5", "joint_roberta_base_ie_k"], [2])
    assert [(job.row, job.dataset) for job in both][1] == ("joint_roberta_base_ie_k", "wikiqa")  # one run, and its own row's


def test_claims_run_on_the_budgets_claims_alone():
    wanted = {"laptop": "pydocs_claims", "small": "climate_fever", "gpu": "climate_fever", "paper": "fever"}
    for budget, name in wanted.items():
        jobs = plan(budget)
        asked = [job for job in jobs if job.notebook == "verify_claims"]
        assert {job.row for job in asked} == set(VERIFYING)
        assert {(job.dataset, job.parameters["dataset"]) for job in asked} == {(name, name)}
        assert name not in {job.parameters.get("dataset") for job in jobs if job not in asked}


# ------------------------------------------------------------------ records of made-up runs


CLAIMS, QUESTIONS = 40, 30


def verified(folder, accuracy, seed):
    right = np.random.default_rng(seed).permutation(CLAIMS) < accuracy * CLAIMS
    table = pd.DataFrame({"question_id": [f"c{i}" for i in range(CLAIMS)], "label_accuracy": right.astype(float)})
    table.to_parquet(folder / "per_question.parquet")
    return {"label_accuracy": float(right.mean()), "claims": CLAIMS}


def ranked(folder, p, seed):
    """Questions of two candidates each, p of them with the right one first."""
    right = np.random.default_rng(seed).permutation(QUESTIONS) < round(p * QUESTIONS)
    return made_up.write_scores(folder, made_up.two_candidates(right))


def made(tmp_path, budget, reached, seeds):
    """Finished runs of rows with a P@1 or a label accuracy each."""
    for row, level in reached.items():
        for job in plan(budget, [row], seeds, tmp_path / "runs"):
            if (job.folder / "record.json").is_file():
                continue
            job.folder.mkdir(parents=True)
            metrics = {"validation": {"accuracy": 0.8, "f1": 0.5, "majority": 0.8}}
            if job.notebook == "verify_claims":
                metrics = {"dev": verified(job.folder, level, job.seed)}
                if job.dataset == "pydocs_claims":  # the one with public labels of a test side
                    metrics["test"] = verified(job.folder, level / 2, job.seed)
            elif job.notebook != "pretrain":
                metrics = {"dev": {"map": 0.5}, "test": ranked(job.folder, level, job.seed)}
                metrics |= {"top_k": metrics["test"] | {"map": 0.99}} if job.notebook == "rerank" else {}
            majority = {"baselines": {"majority": {"label_accuracy": 0.35, "claims": CLAIMS}}}
            made_up.finish(job, metrics=metrics, **(majority if job.notebook == "verify_claims" else {}))


def test_records_of_re_ranking(tmp_path):
    made(tmp_path, "small", {"pairwise_roberta_base": 0.5, "joint_mspp_ie_k": 0.7, "joint_mspp_ie_k_top_5": 0.8}, [0])
    lines = recorded(tmp_path)
    assert lines.dataset.value_counts().to_dict() == {"wikiqa": 3, "trecqa": 3, "nq_sentences": 3, "pretraining": 1}
    lines = lines[~lines.dataset.isin(["trecqa", "nq_sentences"])].reset_index(drop=True)
    assert lines[["row", "dataset", "seed"]].to_numpy().tolist() == [
        ["pairwise_roberta_base", "wikiqa", 0],
        ["joint_mspp_ie_k", "pretraining", 0],
        ["joint_mspp_ie_k", "wikiqa", 0],
        ["joint_mspp_ie_k_top_5", "wikiqa", 0],
    ]
    last = lines.iloc[-1]
    assert last.record["notebook"] == "rerank"
    assert [one["name"] for one in last.earlier] == [lines.name[1], lines.name[2], lines.name[0]]
    assert measured.values(lines.tail(1), "map") == [pytest.approx(0.9)] and measured.values(lines.tail(1), "map", True) == [0.99]
    html = results_table(PAPER, "table_7", lines, "wikiqa")
    ours = next(row for row in cells(html) if row[0] == "ours, this machine" and "99.0" in row[2])
    assert ours[1].startswith("80.0") and ours[-1] == "small"
    assert verdict_of(html, *ours) == "reduced budget"


def test_records_of_claims(tmp_path):
    """FEVER's dev claims are a column, its blind test claims none, and Climate-FEVER stands apart."""
    for budget, row in (("paper", "joint_roberta_base_ie_1"), ("small", "joint_roberta_base_ie_1"), ("laptop", "joint_mspp_ie_k_ft_ie_1")):
        made(tmp_path, budget, {row: 0.8}, [0])
    lines = recorded(tmp_path)
    columns = [["climate_fever", "small"], ["fever_dev", "paper"], ["pretraining", "laptop"], ["pydocs_claims", "laptop"]]
    assert sorted(lines[["dataset", "budget"]].to_numpy().tolist()) == columns
    values = {line.dataset: measured.values(lines[lines.dataset == line.dataset], "label_accuracy") for line in lines.itertuples()}
    assert values == {"fever_dev": [0.8], "climate_fever": [0.8], "pydocs_claims": [0.4], "pretraining": []}
    fever = results_table(PAPER, "table_3", lines)
    (ours,) = (row for row in cells(fever) if row[0].startswith("ours"))
    assert ours == ["ours, this machine", "80.0", "1", "paper", "close"]  # 79.25 printed: one seed never matches
    climate = results_table(PAPER, "table_climate_fever", lines)
    first, (_, *without) = cells(climate)[:3], cells(climate)[3:6]
    assert [row[:3] for row in first[1:]] == [
        ["most frequent label", "no training", "35.0"],
        ["Joint RoBERTa-Base + FT IE1", "ours, this machine", "80.0"],
    ]
    assert [row[:3] for row in without] == [[f"Pairwise RoBERTa-Base + {pooling}", "ours", "–"] for pooling in ("MaxPool", "WgtSum")]
    assert "81.2" in fever and not any(figure in climate for figure in ("81.2", "79.25", "74.39", "80.01"))
    laptop = cells(miniature.laptop_table(papers.read(PAPER), lines, table="table_3"))
    assert laptop[0][2] == "Label accuracy" and laptop[0][-2:] == ["Seeds", "Label accuracy against its baseline [95 %]"]
    assert next(row for row in laptop if row[0] == "Joint Pre IEk + FT IE1")[1:4] == ["ours, this machine", "40.0", "1"]


def test_public_labels_of_both_sides_are_two_columns(tmp_path):
    made(tmp_path, "paper", {"joint_roberta_base_ie_1": 0.8}, [0])
    (path,) = tmp_path.glob("runs/*/record.json")
    record = json.loads(path.read_text())
    record["metrics"]["test"] = {"label_accuracy": 0.7, "claims": 9}
    disk.write_json(path, record)
    shown = [(line.dataset, measured.figures(line)["label_accuracy"]) for line in recorded(tmp_path).itertuples()]
    assert shown == [("fever_dev", 0.8), ("fever_test", 0.7)]


@pytest.mark.slow
def test_published_claims_and_re_rankings_are_read_back(tmp_path):
    made(tmp_path, "small", {"pairwise_roberta_base": 0.5, "joint_roberta_base_ie_k_top_5": 0.8, "pairwise_roberta_base_maxpool": 0.6}, [0])
    _, after, held = made_up.published(PAPER, tmp_path)
    assert "chosen" not in held["pairwise_roberta_base_maxpool/climate_fever-small-seed0"]
    (last,) = after[after.row == "joint_roberta_base_ie_k_top_5"].tail(1).itertuples()
    assert {entry["baseline"]["row"] for entry in last.record["chosen"] if "baseline" in entry} == {"pairwise_roberta_base"}


def test_lines_that_are_ours_alone_are_no_lines_of_the_paper(tmp_path):
    assert not DATA["rows"]["pairwise_mspp"]["published"]["wikiqa"]
    words = verdicts.of_cells(DATA, "joint_mspp_ie_k_ft_ie_1", "fever_dev", ("label_accuracy",), recorded(tmp_path))
    assert words == [("not run", "")]
    html = results_table(PAPER, "table_pairwise", recorded(tmp_path), "wikiqa")
    assert [row[0:2] for row in cells(html)[1:]] == [["Pairwise RoBERTa-Base", "paper"], ["MSPP IEk → FT pairwise", "ours"]]
