"""What papermill's command line says about a data set, a run and a ranker before it starts a kernel."""

import pytest
from papermill.exceptions import PapermillException

from ..made_up import finished
from .test_launch import invoke

GOOD = "question\tanswer\tlabel\n" + "".join(f"q{n // 2}\ta{n}\t{n % 2}\n" for n in range(80))
WRONG = {
    "t.xlsx": (GOOD, "t.xlsx: expected a file that ends in .tsv"),
    "t.tsv": (GOOD + "q7\tb\tmaybe\n", "maybe"),
    "u.tsv": (GOOD + "q7\t\t1\n", "82"),
    "claims": ('{"id": 1}\n', "train.jsonl"),
}
READING = [(notebook, name) for notebook in ("finetune", "embed", "rank") for name in ("t.xlsx", "t.tsv", "u.tsv")]


@pytest.mark.parametrize(("notebook", "name"), [*READING, ("verify_claims", "claims"), ("find_evidence", "claims")])
def test_a_wrong_table_stops_before_a_kernel_starts(tmp_path, notebook, name):
    """No kernel: the notebook would be executed by an engine that there is not."""
    content, expected = WRONG[name]
    path = tmp_path / name
    for file in [path] if path.suffix else [path / f"{split}.jsonl" for split in ("train", "dev")]:
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    refused = invoke(notebook, "-p", "dataset", path, "-p", "runs_dir", tmp_path / "runs", "--engine", "none")
    assert refused.exit_code == 2 and expected in refused.output, refused.output
    assert not (tmp_path / "runs").exists()


def test_triplets_without_a_question_of_both_labels_stop_before_a_kernel_starts(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("question\tanswer\tlabel\n" + "".join(f"q{n}\ta{n}\t1\n" for n in range(30)))
    refused = invoke(
        "embed", "-p", "dataset", path, "-p", "architecture", "triplet", "-p", "runs_dir", tmp_path / "runs", "--engine", "none"
    )
    assert refused.exit_code == 2 and "triplets need a training question with right and wrong candidates" in refused.output


@pytest.mark.parametrize("context", [True, False])
def test_a_right_table_starts_its_run_and_its_warnings_are_the_notebooks(tmp_path, context, caplog):
    (tmp_path / "t.tsv").write_text(GOOD + "q7\ta15\t0\n")
    architecture = "context" if context else "pair"
    started = invoke(
        "finetune", "-p", "dataset", tmp_path / "t.tsv", "-p", "architecture", architecture, "-p", "runs_dir", tmp_path, "--engine", "none"
    )
    if context:
        assert started.exit_code == 2 and "document_title" in started.output
    else:
        assert isinstance(started.exception, PapermillException) and list(tmp_path.glob("finetune-*")) and not caplog.records


def test_questions_that_the_runs_did_not_rank_are_not_reranked(tmp_path):
    for name, architecture in (("finetune-a-0123456789ab", "pair"), ("finetune-b-0123456789ac", "joint")):
        settings = {"architecture": architecture, "dataset": "own:t.tsv", "protocol": "clean", "question_limit": None}
        record = {"notebook": "finetune", "budget": "laptop", "settings": settings, "inputs": {"dataset": "another"}}
        finished(tmp_path / name, record)
    (tmp_path / "t.tsv").write_text(GOOD)
    stages = ["-p", "first_run", tmp_path / "finetune-a-0123456789ab", "-p", "joint_run", tmp_path / "finetune-b-0123456789ac"]
    refused = invoke("rerank", *stages, "-p", "dataset", tmp_path / "t.tsv", "-p", "runs_dir", tmp_path, "--engine", "none")
    assert refused.exit_code == 2 and "is not what finetune-a-0123456789ab was made from" in refused.output
    assert not list(tmp_path.glob("rerank-*"))


@pytest.mark.parametrize("name", ["bm52", "BM25", "bm2"])
def test_a_misspelt_ranker_is_told_from_a_model(tmp_path, name):
    refused = invoke("rank", "-p", "models", f"bm25,{name}", "-p", "runs_dir", tmp_path / "runs", "--engine", "none")
    assert refused.exit_code == 2 and f"models: no folder or run {name!r}; did you mean 'bm25'?" in refused.output
    assert not (tmp_path / "runs").exists()
