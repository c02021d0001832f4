"""What every run of budget paper is made with, against the settings that the papers print, typed from their texts.

A list has the values of a printed grid. Settings that a paper leaves open are not here.
"""

from collections import Counter

import pytest

from aslab import papers, parameters, plan

from . import made_up

GRID = [0.2, 0.4, 0.6, 0.8, 1.0]
PAIRS = {"hard_negatives": 2, "negatives": 4, "weight_decay": 0.01, "batch_size": 4096, "warmup_steps": 10_000, "mlm_weight": 1.0}
PRINTED = [  # paper, notebook, the runs by their settings (and backbone), the printed values; all that fit a run hold
    # sentence_objectives: sections 4 and 5.2, appendices A.1 and B
    ("sentence_objectives", "pretrain", {}, PAIRS | {"peak_lr": 1e-4, "splitter": "blingfire", "detection_weight": 50.0}),
    ("sentence_objectives", "pretrain", {"objective": ["ssp", "all"]}, {"steps": 400_000, "max_tokens": 128, "objective_weight": 1.0}),
    ("sentence_objectives", "pretrain", {"objective": ["sp", "psd"]}, {"steps": 200_000, "max_tokens": 256, "objective_weight": 1.0}),
    ("sentence_objectives", "pretrain", {"data": ["ssp"]}, {"steps": 400_000, "max_tokens": 128, "objective_weight": 0.0}),
    ("sentence_objectives", "pretrain", {"data": ["sp", "psd"]}, {"steps": 200_000, "max_tokens": 256, "objective_weight": 0.0}),
    ("sentence_objectives", "finetune", {}, {"weight_decay": 0.01, "patience": [5, 6], "protocol": "clean"}),
    ("sentence_objectives", "finetune", {"dataset": ["asnq"]}, {"peak_lr": 1e-5, "warmup_steps": 1000, "epochs": 6}),
    ("sentence_objectives", "finetune", {"dataset": ["asnq"], "backbone": ["roberta"]}, {"batch_size": 2048}),
    ("sentence_objectives", "finetune", {"dataset": ["asnq"], "backbone": ["electra"]}, {"batch_size": 1024}),
    # the second rate is printed as 5e-5, out of order (D-14)
    ("sentence_objectives", "finetune", {"dataset": ["wikiqa", "trecqa"]}, {"peak_lr": [2e-6, 5e-6, 1e-5, 2e-5]}),
    ("sentence_objectives", "finetune", {"dataset": ["wikiqa", "trecqa"]}, {"batch_size": [16, 32, 64], "epochs": 40}),
    # contextual_as2: section 5, appendices A.1, C and D, table 3
    ("contextual_as2", "pretrain", {}, PAIRS | {"steps": 400_000, "peak_lr": 1e-4, "max_tokens": 128, "objective_weight": 1.0}),
    ("contextual_as2", "pretrain", {}, {"splitter": "nltk", "min_sentence_chars": 20, "detection_weight": 50.0}),
    ("contextual_as2", "finetune", {}, {"max_tokens": 256, "weight_decay": 0.0, "patience": 5, "protocol": "clean"}),
    ("contextual_as2", "finetune", {"dataset": ["asnq"]}, {"peak_lr": 1e-5, "warmup_steps": 10_000, "epochs": 6}),
    ("contextual_as2", "finetune", {"dataset": ["wikiqa"]}, {"warmup_steps": 1000, "epochs": 30}),
    ("contextual_as2", "finetune", {"dataset": ["newsas2"]}, {"warmup_steps": 5000, "epochs": 8}),
    ("contextual_as2", "finetune", {"dataset": ["asnq"], "backbone": ["roberta"]}, {"batch_size": 2048}),
    ("contextual_as2", "finetune", {"dataset": ["wikiqa"], "backbone": ["roberta"]}, {"batch_size": 32, "peak_lr": 5e-6}),
    ("contextual_as2", "finetune", {"dataset": ["newsas2"], "backbone": ["roberta"]}, {"batch_size": 256, "peak_lr": 5e-6}),
    ("contextual_as2", "finetune", {"dataset": ["asnq"], "backbone": ["electra"]}, {"batch_size": 1024}),
    ("contextual_as2", "finetune", {"dataset": ["wikiqa"], "backbone": ["electra"]}, {"batch_size": 128, "peak_lr": 2e-5}),
    ("contextual_as2", "finetune", {"dataset": ["newsas2"], "backbone": ["electra"]}, {"batch_size": 128, "peak_lr": 1e-5}),
    # asbert: sections 3.2, 4.1 and 4.3
    ("asbert", "embed", {}, {"protocol": "asbert", "max_tokens": 128, "question_limit": None}),
    ("asbert", "embed", {"architecture": ["siamese", "triplet"]}, {"batch_size": 32, "peak_lr": 2e-5, "patience": 20, "pooling": "mean"}),
    ("asbert", "embed", {"architecture": ["siamese", "triplet"]}, {"rank_by": "distance", "weight_decay": 0.0}),
    ("asbert", "embed", {"architecture": ["siamese", "triplet"]}, {"warmup_share": [0.1, 0.001, 0.002], "encoder": "transformer"}),
    ("asbert", "embed", {"architecture": ["triplet"]}, {"margin": 5.0, "selection": "all", "distance": "squared"}),
    # joint_inference: sections 3.4 and 4.2, appendix B.1
    ("joint_inference", "pretrain", {}, PAIRS | {"steps": 100_000, "peak_lr": 5e-5, "positives": 1, "objective_weight": 1.0}),
    ("joint_inference", "pretrain", {}, {"max_tokens": 384, "max_sentences": 1}),
    ("joint_inference", "finetune", {}, {"max_tokens": 384, "weight_decay": 0.01, "protocol": "clean"}),
    ("joint_inference", "finetune", {"architecture": ["joint"]}, {"k": 5}),
    ("joint_inference", "finetune", {"dataset": ["asnq"]}, {"batch_size": 512, "peak_lr": 1e-5, "warmup_steps": 5000, "epochs": 6}),
    ("joint_inference", "finetune", {"dataset": ["wikiqa", "trecqa"]}, {"batch_size": 32, "epochs": 40}),
    ("joint_inference", "finetune", {"dataset": ["wikiqa", "trecqa"]}, {"peak_lr": 2e-6, "warmup_steps": 1000}),
    ("joint_inference", "rerank", {}, {"k": 5}),
    ("joint_inference", "verify_claims", {}, {"k": 5, "max_tokens": 384, "batch_size": 64, "peak_lr": 1e-5, "warmup_steps": 1000}),
    ("joint_inference", "verify_claims", {}, {"weight_decay": 0.01}),
    # evidence_contrast: section 4.1, appendices B and C; the exponents of its learning rates are lost
    ("evidence_contrast", "find_evidence", {}, {"weight_decay": 0.0, "question_limit": None}),
    ("evidence_contrast", "find_evidence", {"dataset": ["hotpotqa"]}, {"epochs": 5, "batch_size": 32, "warmup_steps": 100}),
    ("evidence_contrast", "find_evidence", {"dataset": ["hotpotqa"]}, {"distractors": None, "warmup_share": None}),
    ("evidence_contrast", "find_evidence", {"dataset": ["qasper"]}, {"epochs": 10, "batch_size": 2, "warmup_share": 0.1}),
    ("evidence_contrast", "find_evidence", {"dataset": ["qasper"]}, {"gradient_checkpointing": True}),
    ("evidence_contrast", "find_evidence", {"similarity": ["projected"]}, {"loss_weight": [*GRID, 0.0]}),
]  # fmt: skip
# Rows whose point is that one setting is another.
OTHERS = {f"joint_roberta_base_{head}_k_{peak}": {"peak_lr", "warmup_steps"} for head in ("ie", "ae") for peak in ("1e_5", "5e_6")}


@pytest.mark.slow
def test_every_run_at_budget_paper_has_what_its_paper_prints():
    checked, used = Counter(), set()
    for paper in papers.PAPERS:
        rows = papers.read(paper)["rows"]
        for job in plan.jobs(paper, "paper"):
            settings = parameters.settings(job.notebook, job.parameters) | {"backbone": rows[job.row].get("backbone", "roberta")}
            for number, (of, notebook, when, printed) in enumerate(PRINTED):
                fits = (of, notebook) == (paper, job.notebook) and all(settings.get(name) in values for name, values in when.items())
                for name, expected in printed.items() if fits else ():
                    if name not in OTHERS.get(job.row, ()):
                        allowed = expected if isinstance(expected, list) else [expected]
                        assert settings[name] in allowed, (paper, job.row, job.notebook, job.dataset, name, settings[name], expected)
                        checked[paper] += 1
                        used.add(number)
    assert used == set(range(len(PRINTED)))  # each line is about some run
    assert set(checked) == set(papers.PAPERS) and min(checked.values()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_chain_at_budget_paper_counts_as_the_papers_own(paper):
    """All runs of budget paper are compared with printed figures, but another USE and the rows with other peaks, which have none."""
    data, own = papers.read(paper), set()
    jobs = {job.folder: job for job in made_up.plan(paper, "paper") if job.notebook != "task_difficulty"}
    last = {(job.row, job.dataset): job for job in jobs.values() if job.dataset not in ("pretraining", plan.TRANSFER)}
    for (row, dataset), job in last.items():
        if not plan.at_paper_settings(data, row, "fever_dev" if dataset == "fever" else dataset, made_up.chain_of(job, jobs)):
            own.add(row)
    assert own == {"asbert": {"use"}, "joint_inference": set(OTHERS)}.get(paper, set())  # D-150, D-19
