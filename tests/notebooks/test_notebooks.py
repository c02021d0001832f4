"""The line that notebooks make: pre-train, stop, go on, fine-tune, read the record."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aslab import parameters, rundir, runs
from aslab import rankers as listed
from asutil.data import answers
from asutil.metrics import calibration
from asutil.tasks import rankers

from . import forked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TINY = {"model": "tiny", "mlm_weight": 1.0, "steps": 6, "batch_size": 8, "max_tokens": 48, "validation_examples": 40, "warmup_steps": 1}
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # the same number of threads, the same bytes


@cache
def forking():
    """What notebooks are forked from in this process of tests, once it is asked for."""
    folder = Path(tempfile.mkdtemp(prefix="forked-"))
    server = forked.Forking(folder)
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.close)
    return server


def run_python(command, folder):
    """A Python program, which on Linux finds torch imported: a start costs eight seconds of processor time less."""
    if sys.platform == "linux":
        kernel = ["-k", "forked"] if Path(command[0]).name == "papermill" else []
        return forking().run([*command, *kernel], folder, ENVIRONMENT)
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)


def papermill(notebook, folder, *extra, check=True, **given):
    arguments = [word for name, value in given.items() for word in ("-p", name, str(value))]
    command = [str(Path(sys.executable).with_name("papermill")), str(ROOT / "notebooks" / f"{notebook}.ipynb"), *extra, *arguments]
    result = run_python([*command, "-p", "runs_dir", str(folder)], folder)
    assert not check or result.returncode == 0, result.stderr[-3000:] + result.stdout[-2000:]
    return result


@pytest.fixture(scope="module")
def corpus_file(tmp_path_factory):
    from ..conftest import made_up_documents

    path = tmp_path_factory.mktemp("source") / "documents.jsonl"
    documents = ("\n\n".join(" ".join(p) for p in document) for document in made_up_documents(40))
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return path


@pytest.fixture(scope="module")
def questions_file(tmp_path_factory):
    from ..conftest import WORDS

    path = tmp_path_factory.mktemp("questions") / "mine.tsv"
    rows = ["question\tanswer\tlabel"]
    for n in range(30):
        word = WORDS[n % len(WORDS)]
        rows += [
            f"where is the {word} {n}?\tthe {other} stands by a {word if k == 1 else other} {n}\t{int(k == 1)}"
            for k, other in enumerate(WORDS[:4])
        ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def line(tmp_path_factory, corpus_file, questions_file):
    """A pre-training run and a fine-tuning run that starts from it."""
    folder = tmp_path_factory.mktemp("runs")
    papermill("pretrain", folder, corpus=corpus_file, **TINY)
    (pretrained,) = folder.glob("pretrain-*")
    papermill("finetune", folder, model=pretrained, dataset=questions_file, epochs=2, max_tokens=48, batch_size=8, evaluations=3)
    (finetuned,) = folder.glob("finetune-*")
    return folder, pretrained, finetuned


def test_the_line_from_documents_to_a_ranking(line):
    folder, pretrained, finetuned = line
    table = runs.read_all(folder)
    assert table.finished.all() and len(table) == 2
    validation = rundir.read_record(pretrained)["metrics"]["validation"]
    assert 0 <= validation["accuracy"] <= 1 and validation["majority"] == pytest.approx(0.8) and validation["mlm_loss"] > 0
    record = rundir.read_record(finetuned)
    assert record["metrics"]["test"]["questions"] > 0 and record["inputs"]["model"] == pretrained.name[-12:]
    text = (finetuned / "record.json").read_text() + (pretrained / "record.json").read_text()
    assert str(folder) not in text and "mine.tsv" in text
    tables = {"scores.parquet", "scores_dev.parquet", "per_question.parquet"}
    assert tables | {"notebook.ipynb", "record.json", "model", "log.jsonl", "checkpoints"} <= {path.name for path in finetuned.iterdir()}


def test_task_difficulty_gives_a_runs_own_figures_from_its_own_index(line, corpus_file):
    folder, pretrained, _ = line
    indexes = lambda: {path.parent.name for path in (folder / "shared").glob("*/corpus.json")}
    before = indexes()
    papermill("task_difficulty", folder, models=pretrained.name, corpus=corpus_file, validation_examples=40)
    (made,) = folder.glob("task_difficulty-*")
    own, found = (rundir.read_record(run)["metrics"]["validation"] for run in (pretrained, made))
    assert found == own and {"auc", "rank_1", "rank_1_chance", "examples"} < set(own)
    assert len(before) == 1 and indexes() == before
    shutil.rmtree(made)


def test_shuffled_labels_are_learnt_and_true_ones_are_validated(line, corpus_file):
    from aslab import task_difficulty

    folder, pretrained, _ = line
    (folder / "control").mkdir()
    papermill("pretrain", folder / "control", corpus=corpus_file, labels="shuffled", **TINY)
    (control,) = (folder / "control").glob("pretrain-*")
    record = rundir.read_record(control)
    assert record["settings"]["labels"] == "shuffled" and "shuffled" in control.name
    assert rundir.read_record(pretrained)["settings"]["labels"] is None and "labels" not in pretrained.name
    (found,) = task_difficulty.measured(
        [(str(control), "psd")], runs.pretrained_with, str(corpus_file), folder / "control" / "shared", 40, 1024
    ).values()
    assert found == record["metrics"]["validation"]  # `measured` knows of true labels alone
    logs = [[json.loads(row) for row in (run / "log.jsonl").read_text().splitlines()] for run in (pretrained, control)]
    assert [row["tokens"] for row in logs[0] if "tokens" in row] == [row["tokens"] for row in logs[1] if "tokens" in row]  # the same text
    first, other = (next(row for row in log if "objective_loss" in row) for log in logs)
    assert first["mlm_loss"] == other["mlm_loss"] and first["objective_loss"] != other["objective_loss"]


def test_a_run_learns_from_lists_and_another_from_it_as_its_teacher(line, questions_file):
    folder, pretrained, _ = line
    made = {}
    for loss in ("listwise", "distillation"):
        (folder / loss).mkdir()
        taught = {"teacher": made["listwise"]} if loss == "distillation" else {}
        options = {"epochs": 2, "max_tokens": 48, "loss": loss, "k": 3, **taught}
        papermill("finetune", folder / loss, model=pretrained, dataset=questions_file, **options)
        (made[loss],) = (folder / loss).glob("finetune-*")
    listwise, student = (rundir.read_record(run) for run in made.values())
    assert listwise["settings"]["loss"] == "listwise" and "listwise" in listwise["name"]
    assert (listwise["settings"]["k"], listwise["settings"]["batch_size"]) == (3, 8)
    assert student["inputs"]["teacher"] == listwise["hash"] and student["settings"]["teacher"] == listwise["name"]
    teacher = rundir.read_table(made["distillation"], "teacher.parquet")
    again = rankers.load_ranker(made["listwise"], "cpu").score(answers.load_answers(questions_file)["train"], progress=False)
    assert teacher["candidate_id"].tolist() == again["candidate_id"].tolist()
    assert np.abs(teacher["score"] - again["score"]).max() < 1e-4
    assert student["tables_sha256"]["teacher.parquet"] and student["weights_sha256"] != listwise["weights_sha256"]
    assert not (made["distillation"] / "scoring_teacher").exists()


def test_dev_is_ranked_as_often_as_asked(line):
    log = [json.loads(row) for row in (line[2] / "log.jsonl").read_text().splitlines()]
    steps, evaluated = max(row["step"] for row in log), [row["step"] for row in log if "eval_map" in row]
    every = -(-steps // 2 // 3)  # a third of one of the two epochs
    assert evaluated == sorted({*range(every, steps, every), steps}) and len(evaluated) == 6


def test_scores_give_the_record_and_trec_evals_values(line):
    import pandas as pd

    from asutil import metrics
    from asutil.metrics import peers

    scores = pd.read_parquet(line[2] / "scores.parquet")
    assert scores["score"].dtype == "float32"
    ours = metrics.of(scores).record()
    assert ours == rundir.read_record(line[2])["metrics"]["test"]
    assert peers.by_trec_eval(scores) == pytest.approx({name: ours[name] for name in ("p@1", "map", "mrr")}, abs=1e-6)


def test_the_ranker_of_a_run_has_the_probabilities_of_its_dev_questions(line):
    ranker, calibrated = rankers.load_ranker(line[2]), rundir.read_record(line[2])["calibration"]
    scores = {split: pd.read_parquet(line[2] / name) for split, name in (("dev", "scores_dev.parquet"), ("test", "scores.parquet"))}
    fitted = calibration.fit(scores["dev"])
    assert fitted is not None and ranker.calibration == fitted
    for split in scores:
        assert calibrated[split] == calibration.measured(scores[split], fitted)


def test_rankers_are_compared_on_the_same_questions_and_their_scores_are_kept(line, questions_file):
    folder, _, finetuned = line
    papermill("rank", folder, models=f"bm25,{finetuned}", dataset=questions_file)
    (made,) = folder.glob("rank-*")
    record, own = rundir.read_record(made), rundir.read_record(finetuned)
    assert record["metrics"][finetuned.name]["test"] == own["metrics"]["test"]
    assert record["metrics"]["bm25"]["test"] == own["baselines"]["bm25"]
    assert record["figures"]["bm25"]["parameters"] == 0 and record["figures"][finetuned.name]["parameters"] == own["figures"]["parameters"]
    assert all(figures["seconds_a_question"] > 0 for figures in record["figures"].values())
    published = listed.published(made)
    each = listed.questions_of(published)
    assert each[finetuned.name].reciprocal_rank.mean() == pytest.approx(own["metrics"]["test"]["mrr"], abs=1e-6)
    assert str(folder) not in json.dumps(published)
    kept = next(path.parent for path in (folder / "shared" / "scores").glob("*/figures.json") if json.loads(path.read_text())["parameters"])
    questions, name = (
        {"test": answers.load_answers(questions_file)["test"]},
        json.loads((kept / "figures.json").read_text())["of"]["ranker"],
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(rankers, "load_ranker")
        tables, figures = rankers.scored(name, questions, kept)
    assert tables["test"].equals(pd.read_parquet(finetuned / "scores.parquet")) and figures["weights_mb"] > 0
    shutil.rmtree(made)


def test_all_questions_of_a_folder_with_a_test_file_alone_are_ranked(tmp_path, questions_file):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / f"test{questions_file.suffix}").write_bytes(questions_file.read_bytes())
    papermill("rank", tmp_path, models="bm25", dataset=tmp_path / "mine")
    (made,) = tmp_path.glob("rank-*")
    measured = rundir.read_record(made)["metrics"]["bm25"]
    assert list(measured) == ["test"] and measured["test"]["questions"] == 30


@pytest.mark.parametrize(
    ("given", "message"), [({"objectiv": "ssp"}, "did you mean 'objective'?"), ({"corpus": "nowhere.jsonl"}, "does not exist")]
)
def test_what_is_wrong_stops_before_the_first_cell(tmp_path, given, message):
    result = papermill("pretrain", tmp_path, check=False, **given)
    assert result.returncode == 2 and message in result.stderr and not list(tmp_path.glob("pretrain*"))


def test_a_parameter_for_experts_is_set_and_explained(tmp_path):
    result = papermill("pretrain", tmp_path, str(tmp_path / "out.ipynb"), "--prepare-only", min_sentence_chars=7)
    assert "unknown parameter" not in result.stderr
    cells = json.loads((tmp_path / "out.ipynb").read_text("utf-8"))["cells"]
    tags = [(cell["metadata"].get("tags") or [""])[0] for cell in cells]
    injected = tags.index("injected-parameters")
    assert tags[injected - 1] == "parameters" and "min_sentence_chars = 7" in "".join(cells[injected]["source"])
    shown = papermill("pretrain", tmp_path, "--help-notebook").stdout
    assert all(f"  {name}: " in shown for name in parameters.parameters("pretrain"))


def test_the_tour_runs(tmp_path):
    given = [word for pair in (("documents_read", 600), ("steps", 3), ("questions_asked", 8)) for word in ("-p", *map(str, pair))]
    command = [str(Path(sys.executable).with_name("papermill")), str(ROOT / "notebooks" / "tour.ipynb"), str(tmp_path / "out.ipynb")]
    result = run_python([*command, *given], tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
