"""Executed notebooks that are committed: their run is the record's, nothing of a data set's text is left, figures are the record's."""

import itertools
import json
import shutil
import zipfile

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from aslab import gallery, records, repeats, rundir
from aslab.show import tables
from aslab.show.lists import RANKING
from aslab.show.picture import SVG
from asutil.data.claims import LABELS
from asutil.io import disk

from ..notebooks.test_notebooks import TINY, papermill

pytestmark = pytest.mark.slow

ROOT = rundir.root()
COMMITTED = sorted((ROOT / "results" / "notebooks").glob("*.ipynb"))
MARK = "qzx"  # in every word of the made-up data sets, and in no word of a notebook


# ------------------------------------------------------------------ no text


@pytest.fixture
def words():
    numbers = itertools.count()
    return lambda count: " ".join(f"{MARK}{next(numbers)}" for _ in range(count))


def questions(folder, words):
    rows = ["question\tanswer\tlabel"]
    for _ in range(30):
        question = words(5) + "?"
        rows += [f"{question}\t{words(6)}\t{int(right)}" for right in (False, True, False)]
    path = folder / "mine.tsv"
    path.write_text("\n".join(rows) + "\n")
    return {"model": "tiny", "dataset": path, "epochs": 1, "max_tokens": 48, "batch_size": 8}


def claims(folder, words):
    (folder / "mine").mkdir()
    for split, count in {"train": 12, "dev": 6, "test": 6}.items():
        rows = [{"id": n, "claim": words(5), "label": LABELS[n % 3], "evidence": [["t", 0, words(6), 0.5]] * 2} for n in range(count)]
        (folder / "mine" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"model": "tiny", "dataset": folder / "mine", "epochs": 1, "max_tokens": 96, "batch_size": 8}


def contexts(folder, words):
    (folder / "mine").mkdir()
    for split in ("train", "dev", "test"):
        rows = []
        for n in range(8):
            passages = [{"title": words(2), "sentences": [words(6), words(6)]} for _ in range(2)]
            span = passages[0]["sentences"][1].split()[2]
            answer = {"answer": span, "kind": "span"} if n % 2 else {"answer": "yes", "kind": "yes"}
            rows.append({"id": f"{split}{n}", "question": words(4), "passages": passages, "evidence": [[0, 1]], **answer})
        (folder / "mine" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"model": "tiny_longformer", "dataset": folder / "mine", "epochs": 1, "max_tokens": 128, "batch_size": 4}


def documents(folder, words):
    texts = ["\n\n".join(" ".join(words(9).capitalize() + "." for _ in range(4)) for _ in range(5)) for _ in range(40)]
    path = folder / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return TINY | {"corpus": path}


MADE_UP = {"pretrain": documents, "finetune": questions, "embed": questions, "verify_claims": claims, "find_evidence": contexts}


@pytest.mark.parametrize("notebook", list(MADE_UP))
def test_no_word_of_a_data_set_is_left(notebook, words, tokenizer_of_pydocs, tmp_path):
    given = MADE_UP[notebook](tmp_path, words)
    shutil.copytree(tokenizer_of_pydocs, tmp_path / "runs" / "shared")
    papermill(notebook, tmp_path / "runs", **given)
    (made,) = (tmp_path / "runs").glob(f"{notebook}-*/notebook.ipynb")
    executed = json.loads(made.read_text("utf-8"))
    shown = {cell["id"] for cell in executed["cells"] if MARK in json.dumps(cell.get("outputs")).lower()}
    marked = {cell["id"] for cell in executed["cells"] if gallery.TEXT in cell["metadata"].get("tags", ())}
    assert shown and shown <= marked
    copy = gallery.cleaned(executed)
    outputs = json.dumps([cell.get("outputs") for cell in copy["cells"]])
    assert MARK not in outputs.lower() and str(tmp_path) not in outputs and '"stderr"' not in outputs
    pictures = [output for cell in copy["cells"] for output in cell.get("outputs", ()) if SVG in output.get("data", {})]
    assert pictures and all(len(one["metadata"][SVG]["alt"]) > 20 for one in pictures)
    assert "points" in outputs and len(json.dumps(copy)) < gallery.LARGEST


def test_an_error_is_never_published():
    error = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [error], "source": ""}
    with pytest.raises(ValueError, match="ended in an error"):
        gallery.cleaned({"cells": [cell], "metadata": {}})


# ------------------------------------------------------------------ what is committed


@pytest.fixture(scope="module")
def executed():
    return {one.path: one for one in gallery.executed()}


@pytest.fixture(params=COMMITTED, ids=lambda path: path.stem)
def one(executed, request):
    return executed[request.param]


def test_every_paper_has_an_executed_notebook(executed):
    assert {one.data["slug"] for one in executed.values()} == set(gallery.papers.PAPERS)
    assert len(executed) == len(COMMITTED)


def test_findings_on_public_data_have_an_executed_notebook(executed):
    """Of one of the two rows of each claim that is decided, or suggestive, on a data set that is not embedded."""
    rows = {(one.data["slug"], one.line.row, one.line.dataset) for one in executed.values()}
    decided = pd.read_csv(ROOT / "results" / "claims.csv").query("budget == 'small' and p_holm.notna() and verdict != 'inconclusive'")
    behind = {line.claim: rows & {(line.paper, row, line.dataset) for row in (line.row_a, line.row_b)} for line in decided.itertuples()}
    assert all(behind.values()) and len(behind) > 15


def test_a_committed_notebook_is_of_a_committed_record(one):
    about, record = one.content["metadata"][gallery.OURS], one.line.record
    assert about["hash"] == record["hash"] == one.path.stem[-12:] and about["name"] == record["name"]
    assert all(about[name] == getattr(one.line, name) for name in ("row", "dataset", "budget", "seed"))


def test_the_metrics_that_a_committed_notebook_shows_are_those_of_its_record(one):
    """The last table in points with a row of this run, or of what it ranked again; data sets that were also ranked have another."""
    html = ["".join(o["data"]["text/html"]) for c in one.content["cells"] for o in c.get("outputs", ()) if "text/html" in o.get("data", {})]
    split = records.split(one.line)
    again = "after re-ranking, whole lists"
    of_this_run = lambda text: f"{split}, points" in text and "this run" in text and ">data set<" not in text
    text = next(text for text in html[::-1] if of_this_run(text) or again in text)
    lines = [[cell.get_text() for cell in line.find_all(["th", "td"])] for line in BeautifulSoup(text, "html.parser").find_all("tr")]
    shown = pd.DataFrame([line[1:] for line in lines[1:]], index=[line[0] for line in lines[1:]], columns=lines[0][1:])
    shown = shown.T if "find_evidence" in one.path.stem else shown
    (row,) = [row for row in shown.index if row in ("this run", f"this run, {split}", again)]
    measured = one.line.record["metrics"][split]
    titles = {name: name if again in text else title for name, title in tables.METRIC_NAMES.items()}
    values = {name: shown.loc[row, title] for name, title in titles.items() if title in shown and name in measured}
    assert len(values) >= 2 and values.keys() >= one.key_metrics.keys()
    assert {name: round(float(value), 1) for name, value in values.items()} == {name: round(100 * measured[name], 1) for name in values}


def test_committed_scores_give_the_metrics_of_their_record(one):
    """MAP by hand from the two files of trec_eval."""
    file = one.path.with_suffix(gallery.TREC)
    if not file.is_file():
        pytest.skip("its scores are not committed")
    with zipfile.ZipFile(file) as both:
        run, judged = ([line.split() for line in both.read(name).decode().splitlines()] for name in ("run.txt", "qrels.txt"))
    label, ranked = {(line[0], line[2]): int(line[3]) for line in judged}, {}
    for question, _, candidate, _, score, tag in run:
        assert tag[-12:] == one.path.stem[-12:]  # the name of a run may spell out more of its settings
        ranked.setdefault(question, []).append((-float(score), label[question, candidate]))
    precisions = []
    for candidates in ranked.values():
        places = [place for place, (_, right) in enumerate(sorted(candidates), 1) if right]
        precisions.append(sum(number / place for number, place in enumerate(places, 1)) / len(places))
    assert len(label) == len(run) and sum(precisions) / len(precisions) == pytest.approx(one.line.record["metrics"]["test"]["map"])


def test_a_run_with_other_figures_than_its_record_is_refused(executed, tmp_path):
    one = next(one for one in executed.values() if one.line.record["notebook"] == "finetune")
    folder = tmp_path / one.path.stem
    folder.mkdir()
    (folder / "notebook.ipynb").write_text(json.dumps(one.content))
    disk.write_json(folder / "record.json", one.line.record | {"metrics": {"test": {"map": 0.5}}})
    with pytest.raises(ValueError, match="its figures are not those of the committed record"):
        gallery.publish(folder.name, runs_dir=tmp_path)


def test_a_committed_notebook_is_small_and_names_no_machine(one):
    text = one.path.read_text("utf-8")
    assert len(text.encode()) < gallery.LARGEST and '"stderr"' not in text and 'papermill": {' not in text
    assert not [name for name in ("/home/", "/root/", "/work/", "/tmp/", "/Users/") if name in text]
    assert one.pictures and all(svg.startswith("<svg") and words for svg, words in one.pictures)
    for cell in one.content["cells"]:
        if gallery.TEXT in cell["metadata"].get("tags", ()):
            (shown,) = cell["outputs"]
            data = dict(shown.get("data", {}))
            ids = data.pop(RANKING, {"question": "", "scores": {}})
            assert (data.get("text/plain") or shown["text"]).strip() == gallery.NOT_STORED and data.keys() <= {"text/plain"}
            assert ids.keys() == {"question", "scores"} and all(isinstance(score, float) for score in ids["scores"].values())


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("notebooks", "experiments", "aslab"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "results", tmp_path / "results")
    monkeypatch.setenv("ASUTIL_PROJECT", str(tmp_path))
    return tmp_path


def test_the_notebook_of_a_repeat_has_its_figures_and_names_the_run_of_the_tables(executed, project):
    """The same run made again, with another MAP; in another precision, so that its name and hash are others; and with another rate."""
    one = next(one for one in executed.values() if one.line.dataset == "pydocs" and not one.repeated)
    for map_, digits, changed in ((0.25, one.path.stem[-12:], {}), (0.5, "0123456789ab", {}), (0.75, "ab0123456789", {"peak_lr": 1.0})):
        name = f"{one.path.stem[:-12]}{digits}"
        again = one.line.record | {
            "settings": one.line.record["settings"] | changed,
            "name": name,
            "hash": name[-12:],
            "created": f"2026-12-0{int(4 * map_)}T10:00:00+00:00",
        }
        again |= {"metrics": one.line.record["metrics"] | {"test": one.line.record["metrics"]["test"] | {"map": map_}}}
        folder = project / "runs" / name
        folder.mkdir(parents=True)
        (folder / "notebook.ipynb").write_text(json.dumps(one.content))
        disk.write_json(folder / "record.json", again)
        disk.write_json(repeats.path_of(again), again)
        gallery.publish(name, runs_dir=project / "runs")
        (shown,) = [other for other in gallery.executed() if other.path.stem == name]
        assert shown.line.record["metrics"]["test"]["map"] == map_
        assert shown.repeated is None if changed else shown.repeated.record == one.line.record


def test_a_notebook_that_was_changed_by_hand_is_named(project):
    place = project / "results" / "notebooks" / COMMITTED[0].name
    content = json.loads(place.read_text("utf-8"))
    next(cell for cell in content["cells"] if cell.get("outputs"))["outputs"][0]["text"] = "P@1 99.9"
    place.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"{COMMITTED[0].name} was changed"):
        gallery.executed()


def test_a_run_without_a_committed_record_is_refused(tmp_path):
    folder = tmp_path / "finetune-pydocs-0123456789ab"
    folder.mkdir()
    (folder / "notebook.ipynb").write_text(json.dumps({"cells": [], "metadata": {}}))
    disk.write_json(folder / "record.json", {"name": folder.name})
    with pytest.raises(ValueError, match="no record of this run"):
        gallery.publish(str(folder), runs_dir=tmp_path)
