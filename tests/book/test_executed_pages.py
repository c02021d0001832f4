"""Pages of lessons: their outputs are made once, and look like those of the other pages."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from aslab import records
from aslab.gallery import OURS

from ..conftest import extension

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = "notebooks/lessons/ranking"
SVG = '<?xml version="1.0"?>\n<svg viewBox="0 0 9 9"><path id="a" d="M 0 0" style="stroke: #000000"/></svg>'
CELLS = [
    {"cell_type": "markdown", "id": "0", "metadata": {}, "source": "# 1. A lesson"},
    {
        **{"cell_type": "code", "id": "1", "metadata": {"alt": "A line."}, "source": "1 + 1", "execution_count": 1},
        "outputs": [
            {"output_type": "stream", "name": "stderr", "text": "40 %"},
            {"output_type": "display_data", "data": {"image/svg+xml": SVG}, "metadata": {}},
            {"output_type": "execute_result", "execution_count": 1, "data": {"text/html": "<td>2.5</td>"}, "metadata": {}},
        ],
    },
]
NOTEBOOK = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


lessons = extension("as2_executed")


def test_a_page_has_plots_in_its_colours_and_no_progress_bars(lessons):
    _, cell = lessons.executed_page(json.loads(json.dumps(NOTEBOOK)))["cells"]
    figure, table = (output["data"]["text/html"] for output in cell["outputs"])
    assert "<svg" in figure and "currentColor" in figure and "xml version" not in figure and "A line." in figure
    assert table == '<td class="as2-number">2.5</td>'


def test_on_a_site_a_run_is_shown_without_text_of_its_data(directives, tmp_path, monkeypatch):
    shown = {"output_type": "stream", "name": "stdout", "text": "a question of one's own"}
    cell = {"cell_type": "code", "metadata": {"tags": ["text"]}, "execution_count": 1, "source": "", "outputs": [shown]}
    path = tmp_path / "notebook.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}}), "utf-8")
    for site, is_there in (("", True), ("https://here", False)):
        monkeypatch.setenv("AS2_SITE", site)
        assert ("a question of" in json.dumps(directives("as2").of_run(path))) == is_there


def test_a_page_names_no_place_where_a_run_found_its_files(directives, tmp_path, monkeypatch):
    monkeypatch.delenv("AS2_SITE", raising=False)
    given = {"dataset": '/there/my "questions".tsv', "also_rank": "wikiqa,/there/others", "corpus": "texts", "seed": 1}
    (tmp_path / "run.json").write_text(json.dumps({"notebook": "finetune", "given": given}), "utf-8")
    said = f"{given['dataset']}, row 2: a blank; /there/others/dev.tsv: two; texts: three"
    cell = {"cell_type": "code", "metadata": {}, "outputs": [{"output_type": "stream", "name": "stderr", "text": said}]}
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}}), "utf-8")
    (shown,) = directives("as2").of_run(tmp_path / "notebook.ipynb")["cells"]
    expected = 'own:my "questions".tsv, row 2: a blank; own:others/dev.tsv: two; texts: three'
    assert shown["outputs"][0]["text"] == expected


def test_the_cell_that_installs_is_folded(lessons):
    cells = [{"cell_type": "code", "metadata": {"tags": [tag]}, "source": "", "outputs": []} for tag in ("install", "parameters")]
    page = lessons.executed_page({"cells": cells})
    assert [cell["metadata"]["tags"] for cell in page["cells"]] == [["install", "hide-input"], ["parameters"]]


def test_a_lesson_runs_again_where_its_text_changes(lessons, tmp_path, monkeypatch):
    ran = []

    def executed(text, made_from):
        ran.append(text)
        return NOTEBOOK | {"metadata": {lessons.MADE_FROM: made_from}}

    monkeypatch.setattr(lessons, "executed", executed)
    monkeypatch.delenv("AS2_EXECUTE", raising=False)
    app = SimpleNamespace(outdir=tmp_path / "html", env=SimpleNamespace(note_dependency=lambda path: None))
    for text, site in (("one", ""), ("one", ""), ("two", ""), ("two", "https://here"), ("two", "https://here")):
        monkeypatch.setenv("AS2_SITE", site)  # on a published site a notebook shows fewer texts
        source = [text]
        lessons.with_outputs(app, PAGE, source)
        assert "A line." in source[0]
    assert ran == ["one", "two", "two"]


@pytest.mark.parametrize(("page", "setting"), [("notebooks/tour", "on"), (PAGE, "off")])
def test_other_notebooks_and_lessons_that_are_switched_off_keep_their_text(page, setting, lessons, monkeypatch):
    monkeypatch.setenv("AS2_EXECUTE", setting)
    source = ["text"]
    lessons.with_outputs(None, page, source)
    assert source == ["text"]


def test_a_notebook_is_executed_in_a_kernel_and_its_plots_are_drawings(lessons):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": []}
    source = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    text = json.dumps({"cells": [cell | {"source": source}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    made = lessons.executed(text, "this text")
    (output,) = made["cells"][0]["outputs"]
    assert "image/svg+xml" in output["data"] and made["metadata"][lessons.MADE_FROM] == "this text"


def test_a_cell_that_shows_nothing_goes_with_the_words_before_it(directives):
    page = directives("as2_gallery")
    cell = lambda name, kind="code", outputs=(), **metadata: {
        "cell_type": kind,
        "source": name,
        "outputs": list(outputs),
        "metadata": metadata,
    }
    cells = [
        *(cell("a", "markdown"), cell("b", tags=["shows"]), cell("c", "markdown"), cell("d", outputs=[1], tags=["shows"])),
        *(cell("e", "markdown"), cell("f")),
    ]
    assert [one["source"] for one in page.that_show(cells)] == ["c", "d", "e", "f"]


def test_settings_that_are_not_set_are_left_out(directives):
    table = "<tr>\n <th>epochs</th>\n <td>3</td>\n</tr>\n<tr>\n <th>patience</th>\n <td>None</td>\n</tr>"
    html = directives("as2_gallery").for_page({"data": {"text/html": table}}, "")["data"]["text/html"]
    assert "patience" not in html and '<th>epochs</th>\n <td class="as2-number">3</td>' in html


def test_a_gallery_page_begins_with_what_came_out(directives):
    """By the committed records: the metric of the run, and the same one of every ranker without training."""
    page = directives("as2_gallery")
    for one in page.executed():
        name = f"{one.data['slug']}/{one.line.row}/{one.line.dataset}-{one.line.budget}-seed{one.line.seed}"
        files = [ROOT / f"results/{name}.json", *ROOT.glob(f"results/repeats/{name}-*.json")]
        created = json.loads(one.path.read_text("utf-8"))["metadata"][OURS].get("created")  # without it: the run in the tables
        made = [json.loads(file.read_text("utf-8")) for file in files]
        record = next(own for own in made if created in (None, own["created"]))
        told, split = page.came_out(one), records.split(one.line)
        metric = next(name for name in ("map", "map_projected", "auc", "label_accuracy") if name in one.key_metrics)
        reached = 100 * record["metrics"][split][metric]
        assert re.match(rf"\*\*[\w ]+(, as trained)? {reached:.1f} on {split}\.\*\* Without training: ", told)
        others = [own for name, own in record.get("baselines", {}).items() if name not in ("random", "before training")]  # the last of dev
        key = "map" if metric == "map_projected" else metric
        known = [own[key] for own in others if key in own]
        known = known or [record["metrics"][split]["auc_tfidf"]]
        assert [float(text) for text in re.findall(r" (\d+\.\d)", told.partition("training:")[2])] == [
            round(100 * value, 1) for value in known
        ]
        assert told in "".join(page.gallery_page(one)["cells"][0]["source"])
