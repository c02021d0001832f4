"""Pages of lessons: their outputs are made once, and look like those of the other pages."""

import json
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow

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


@pytest.fixture
def lessons(directives):
    return directives("as2_executed")


def test_a_page_has_plots_in_its_colours_and_no_progress_bars(lessons):
    _, cell = lessons.executed_page(json.loads(json.dumps(NOTEBOOK)))["cells"]
    figure, table = (output["data"]["text/html"] for output in cell["outputs"])
    assert "<svg" in figure and "currentColor" in figure and "xml version" not in figure and "A line." in figure
    assert table == '<td class="as2-number">2.5</td>'


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
    for text in ("one", "one", "two"):
        source = [text]
        lessons.with_outputs(app, PAGE, source)
        assert "A line." in source[0]
    assert ran == ["one", "two"]


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
