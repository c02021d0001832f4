"""Text in the pages of committed notebooks: from this machine's data, where they are those of the run and may be shown."""

import json
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup

from aslab import gallery
from aslab.show import lists
from asutil.data import answers
from asutil.data.candidates import Candidate, Question

from ..conftest import extension

pytestmark = pytest.mark.slow

QUESTION = Question("q", "Who <b>?", tuple(Candidate(f"q-{n}", f"answer {n}", int(n == 1), None, None) for n in range(3)))
SCORES = [0.5, 0.25, 1.0]


texts = extension("as2_texts")


@pytest.fixture
def joint():
    return next(one for one in gallery.executed() if one.path.stem.startswith("finetune-pydocs-joint"))


def output(**data) -> dict:
    return {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}


def notebook(*outputs: dict) -> dict:
    cell = {"cell_type": "code", "source": "", "metadata": {"tags": ["text"]}, "outputs": list(outputs), "execution_count": 1}
    return {"cells": [cell], "metadata": {}}


def test_a_published_ranking_keeps_ids_and_gets_its_text_back(texts, joint, monkeypatch):
    shown = output(**lists.Ranking(QUESTION, SCORES)._repr_mimebundle_())
    html = lists.ranked_example(QUESTION.text, [one.text for one in QUESTION.candidates], SCORES, [0, 1, 0])
    assert shown["data"]["text/html"] == html and "&lt;b&gt;" in html and "<b>" not in html
    (published,) = gallery.cleaned(notebook(shown))["cells"][0]["outputs"]
    assert "Who" not in json.dumps(published) and "answer" not in json.dumps(published)
    assert published["data"][lists.RANKING] == {"question": "q", "scores": dict(zip(("q-0", "q-1", "q-2"), SCORES))}
    monkeypatch.setattr(texts.examples, "at_hand", lambda record, dataset, ids: dict.fromkeys(ids, QUESTION))
    assert texts.ranked(json.loads(json.dumps(published)), joint)["data"]["text/html"] == html


def test_a_cell_without_ids_has_a_sentence(texts, joint):
    (published,) = gallery.cleaned(notebook(output(**{"text/html": "Who?"})))["cells"][0]["outputs"]
    assert published["text"].startswith("This cell shows text") and texts.ranked(published, joint) == published


@pytest.mark.parametrize("scores", [[1.0, 2.0], {"q-0": 1.0, "q-1": 2.0, "q-3": 3.0}])
def test_scores_of_other_candidates_are_refused(scores):
    with pytest.raises(ValueError, match="q: expected scores of q-0, q-1, q-2|shorter than argument"):
        lists.Ranking(QUESTION, scores)


def test_text_is_shown_only_where_it_is_what_the_run_has_read(texts, joint, tmp_path, monkeypatch):
    line = joint.line
    inputs = dict(line.record["inputs"])
    monkeypatch.setattr(texts.identity, "of_run", lambda *args, **options: {"inputs": inputs})
    assert texts.may_show(joint)
    monkeypatch.setenv("AS2_SITE", "1")
    assert texts.may_show(joint)  # documentation of packages may be passed on
    monkeypatch.setattr(texts.examples.hub, "mirror", lambda hub_id: tmp_path)
    of = lambda **settings: SimpleNamespace(line=SimpleNamespace(record=line.record | {"settings": settings}))
    closed = [of(dataset="wikiqa"), of(dataset="climate_fever"), of(corpus="wikipedia"), of(first_run="finetune-pydocs-0123456789ab")]
    assert not any(map(texts.may_show, closed)) and texts.may_show(of(dataset="nq_sentences"))
    monkeypatch.delenv("AS2_SITE")
    assert texts.may_show(closed[0])
    monkeypatch.setattr(texts.examples.hub, "mirror", lambda hub_id: None)
    assert not texts.may_show(closed[0])  # the hub is not asked
    inputs["dataset"] = "0" * 64
    assert not texts.may_show(joint)


def test_a_page_gets_the_text_and_its_licence(texts, joint):
    page = notebook(output(), output())
    page["cells"].insert(0, {"cell_type": "markdown", "source": f"# A\n\n{texts.WITHOUT_TEXT}\n", "metadata": {}})
    begun = notebook({"output_type": "stream", "name": "stderr", "text": "40 %"}, output(**{"text/html": "<td>2.5</td>"}))
    page = texts.filled(page, joint, begun)
    (shown,) = page["cells"][1]["outputs"]
    assert shown["data"]["text/html"] == '<td class="as2-number">2.5</td>'
    assert texts.WITHOUT_TEXT not in page["cells"][0]["source"] and "Licence of the text: BSD" in page["cells"][0]["source"]


def test_the_first_cells_of_a_run_show_the_text_of_its_data(texts, joint, tmp_path, monkeypatch, directives):
    """In a kernel, with the parameters of the record, without a model; of a chain, too, whose earlier runs are not here."""
    if answers.fingerprint_of_answers("pydocs") != joint.line.record["inputs"]["dataset"]:
        pytest.skip("pydocs of other versions of the packages")
    assert texts.may_show(joint)
    given = joint.line.record["given"] | {"model": "pretrain-psd-cd8c8d76991e", "also_rank": "wikiqa"}
    record = joint.line.record | {"given": given}
    monkeypatch.setattr(texts.records, "backbone", lambda one: "pydocs_roberta")
    line = SimpleNamespace(record=record, dataset="pydocs", seed=0)
    executed = directives("as2_executed").executed
    begun = texts.first_cells(SimpleNamespace(line=line), tmp_path)
    assert nbformat.writes(begun) == nbformat.writes(texts.first_cells(SimpleNamespace(line=line), tmp_path))  # else it runs every time
    cells = executed(nbformat.writes(begun))["cells"]
    question = next(iter(answers.load_answers("pydocs", limit=record["settings"]["question_limit"])["test"]))
    text, table = (one for one in cells[-1]["outputs"] if one.get("name") != "stderr")
    assert "".join(text["text"]) == f"{question.id} {question.text}\n"
    rows = BeautifulSoup("".join(table["data"]["text/html"]), "html.parser").select("tbody tr")
    assert [row.select("td")[-1].text for row in rows] == [one.text for one in question.candidates[:8]]
