"""Notebooks as they are stored, and the line that they make: pre-train, stop, go on, fine-tune, read the record."""

import ast
import atexit
import inspect
import json
import os
import re
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
WITHOUT_RUN = ("tour", "report")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TINY = {"model": "tiny", "mlm_weight": 1.0, "steps": 6, "batch_size": 8, "max_tokens": 48, "validation_examples": 40, "warmup_steps": 1}

SET_BY_BUDGETS = ("model", "corpus", "dataset", "steps", "epochs", "batch_size", "peak_lr", "max_tokens", "micro_tokens")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs_in_short_cells(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    (parameters_cell,) = tagged
    first_met, *_ = "".join(parameters_cell["source"]).split("# For experts")
    assert len(first_met.splitlines()) <= 15
    assert all(len("".join(cell["source"]).splitlines()) <= 15 for cell in code if cell not in tagged)
    assert notebook["cells"][0]["cell_type"] == "markdown"
    assert not any(word in "".join(cell["source"]) for cell in code for word in ("class ", "\nfor ", "while ")) or path.stem in (
        "tour",
        "finetune",
    )


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem not in ("tour", "report", "rank")])
def test_every_parameter_is_explained_used_and_set_by_its_budget(name):
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = "\n".join(
        "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code" and c["metadata"].get("tags") != ["parameters"]
    )
    taken = runs.parameters(name)
    assert {"seed", "budget", "runs_dir"} <= set(taken)
    for parameter in taken.values():
        assert len(parameter.help) >= 8 and parameter.type in parameters.TYPES
        assert parameter.name in ("budget", "runs_dir") or f"s.{parameter.name}" in code, parameter.name
    for budget in () if name == "rerank" else taken["budget"].choices:  # it says what it ranks by its runs
        settings = runs.settings(name, {"budget": budget})
        runs.check(name, settings)
        assert name == "task_difficulty" or not [each for each in SET_BY_BUDGETS if settings.get(each, "") is None]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_names_of_runs_have_a_word_order_for_every_parameter(path):
    own = {name.removeprefix(f"{path.stem}.") for name in runs.WORDS}
    assert {*runs.parameters(path.stem)} - own <= {"runs_dir"} or path.stem in WITHOUT_RUN


# What takes an option by another name than its own.
OTHER_NAMES = {
    *("name=dataset", "name=model", "name=joint_run", "names=models", "names=objectives", "path=exclude_titles", "source=corpus"),
    *("limit=claim_limit", "limit=question_limit", "fewest=least_of_type", "size=validation_examples", "longest=max_tokens"),
    *("form=head_form", "by=rank_by", "share=mlm_share", "steps=warmup_steps", "share=warmup_share"),
    *("wrong_types=wrong_type_negatives", "checkpointing=gradient_checkpointing"),
}


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem not in WITHOUT_RUN], ids=lambda path: path.stem)
def test_an_option_is_given_to_the_argument_of_its_name(path):
    """By the signatures of what the notebook calls, whether arguments have names there or not."""
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    tree, names, given = ast.parse("\n".join("".join(cell["source"]) for cell in cells)), {}, []
    exec("\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)), names)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        try:
            signature = inspect.signature(eval(ast.unparse(call.func), dict(names)))
        except (NameError, AttributeError, ValueError):  # a method of what the notebook made
            continue
        plain = [value for value in call.args if not isinstance(value, ast.Starred)]
        arguments = signature.bind_partial(*plain, **{one.arg: one.value for one in call.keywords if one.arg}).arguments
        options = {name: re.fullmatch(r"s\.(\w+)", ast.unparse(value)) for name, value in arguments.items() if isinstance(value, ast.AST)}
        given += [(name, option[1]) for name, option in options.items() if option]
    assert len(given) >= 5
    assert not [one for one in given if one[0] != one[1] and "=".join(one) not in OTHER_NAMES]


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem not in WITHOUT_RUN], ids=lambda path: path.stem)
def test_before_a_run_starts_its_notebook_has_no_plain_variable_of_its_own(path, tmp_path, monkeypatch):
    """Its cells up to `runs.start` run as they are: `start` refuses a variable that is no parameter, and the kernel's own are none."""
    variables = {"__name__": "__main__", "_": "", "In": [""], "Out": {}}
    monkeypatch.setattr(runs, "start", lambda name, given: (parameters.require_no_other(name, given, again=False), 1 / 0))
    code = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    started = next(number for number, source in enumerate(code) if "runs.start(" in source)
    with pytest.raises(ZeroDivisionError):
        exec("\n".join(code[: started + 1]), variables)
    assert "s" not in variables and set(runs.parameters(path.stem)) <= set(variables)


def test_names_of_runs_do_not_follow_the_order_in_the_notebook():
    given = {"keep_head": False, "batch_size": 16, "seed": 1, "model": "tiny", "head_form": "released", "architecture": "joint"}
    name = runs.identity("finetune", given)["name"]
    assert name[:-13] == "finetune-pydocs-tiny-joint-released-keep-headFalse-batch-size16-seed1"


def test_the_budgets_are_of_notebooks():
    assert set(parameters._budgets()) <= {path.stem for path in NOTEBOOKS}


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
    assert ranker.calibration == fitted and (calibrated is None) == (fitted is None)
    for split in scores if fitted else ():
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
    tables, figures = rankers.scored("nobody/would-be-loaded", {"test": None}, kept)
    assert tables["test"].equals(pd.read_parquet(finetuned / "scores.parquet")) and figures["weights_mb"] > 0
    shutil.rmtree(made)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_text_of_a_notebook_has_a_backslash_and_an_n_for_a_line_break(path):
    """What is printed with them shows both characters."""
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    texts = [node.value for cell in cells for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, ast.Constant)]
    assert not [text for text in texts if isinstance(text, str) and re.search(r"\\[nt]", text)]


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
    assert all(f"  {name}: " in shown for name in runs.parameters("pretrain"))


def test_the_tour_runs(tmp_path):
    given = [word for pair in (("documents_read", 600), ("steps", 3), ("questions_asked", 8)) for word in ("-p", *map(str, pair))]
    command = [str(Path(sys.executable).with_name("papermill")), str(ROOT / "notebooks" / "tour.ipynb"), str(tmp_path / "out.ipynb")]
    result = run_python([*command, *given], tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
