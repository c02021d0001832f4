"""The report of a paper: its figures again from the committed files, its examples with text alone, its notebook in a kernel."""

import csv
import json
import statistics
from pathlib import Path

import nbformat
import pytest

from aslab import papers
from aslab.analysis import examples, report

ROOT = Path(__file__).parents[2]


def claims_of(paper: str) -> list[dict]:
    """The committed lines of a paper's headline claims, on its own data."""
    with (ROOT / "results" / "claims.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["paper"] == paper and line["family"] != "laptop"]
    return [line for line in lines if line["claim"] in papers.read(paper)["headline"]]


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_the_outcome_is_that_of_the_committed_claims(paper):
    table, expected = report.outcome(paper), claims_of(paper)
    assert table.verdict.tolist() == [line["verdict"] for line in expected]
    assert [text.split(" ")[0] for text in table["ours [95 %]"]] == [
        f"{float(line['difference']):+.1f}" if line["difference"] else "–" for line in expected
    ]
    text = report.answer(paper).data
    assert text.startswith(f"**{len(expected)} claims: ")
    decided = [line for line in expected if line["verdict"] in ("supported", "suggestive", "reversed", "no effect beyond 1 point")]
    assert text.count("\n- *") == len(decided)


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_what_is_undecided_has_its_reason_or_its_smallest_difference(paper):
    lines = [line for line in claims_of(paper) if line["reason"] or line["verdict"] == "inconclusive"]
    said = [line for line in report.undecided(paper).data.split("\n") if line.startswith("- ")]
    assert len(said) == len(lines)
    for text, line in zip(said, lines):
        own = (
            line["reason"][1:]
            if line["reason"]
            else f"from {float(line['smallest_effect']):.1f} points on would be significant in 80 % of repetitions"
        )
        assert text.startswith(f"- *{line['verdict']}*: ") and own in text
        assert line["reason"] or not line["printed"] or text.endswith(f"; the paper prints {float(line['printed']):+.1f}.")


def test_the_main_table_has_printed_figures_and_those_of_the_records():
    table = report.main_table("asbert")
    records = [json.loads(path.read_text()) for path in (ROOT / "results/asbert/triplet_roberta").glob("wikiqa-small-seed*.json")]
    reached = [100 * record["metrics"]["test"]["map"] for record in records]
    own = f"{statistics.mean(reached):.1f} ± {statistics.stdev(reached):.1f}"
    assert table.loc["Triplet-RoBERTa", ("WikiQA", "MAP, ours")] == own
    printed = papers.read("asbert")["rows"]["triplet_roberta"]["published"]["wikiqa"]["map"]
    assert table.loc["Triplet-RoBERTa", ("WikiQA", "MAP, paper")] == f"{100 * printed:.1f}"
    assert "Triplet-XLNet" not in table.index  # no run
    assert not any(name.endswith("paper") for _, name in report.main_table("evidence_contrast"))  # no figure of these is printed


def test_only_models_of_single_texts_have_components():
    assert report.components("contextual_as2") is None
    assert [axis.get_title().split("\n")[0] for axis in report.components("asbert").axes] == ["before training", "after training"]
    assert report.moves("evidence_contrast") is None  # sentences of a context have no first right candidate of a list
    assert "Siamese-RoBERTa (rows)" in report.moves("asbert").words


def test_examples_have_text_and_stay_words(monkeypatch):
    bad = "<script>alert(1)</script>"
    one = examples.Example("rescued", bad, {"a": [["x", 1, 0.5, 1]], bad: [["x", 1, 0.5, 1]]}, {"x": bad})
    for shown in ([one] * 5, [one._replace(texts={})]):
        monkeypatch.setattr(examples, "of_pair", lambda *_, shown=shown: shown)
        html = report.ranked_examples("asbert")
        assert html is None if not shown[0].texts else html.data.count("<table") == 3 and "<script" not in html.data


@pytest.mark.slow
def test_the_notebook_runs_for_a_paper_and_its_page_leaves_out_what_does_not_apply(directives):
    pages = directives("as2_executed")
    made = pages.executed(pages.reports()["contextual_as2.ipynb"].decode())
    page = pages.executed_page(made)
    texts = ["".join(cell["source"]) for cell in page["cells"]]
    assert texts[0].startswith("# Report: Context-Aware Transformer Pre-Training")
    assert "report.main_table(paper)" in texts and not any("components" in text or "## Vectors" in text for text in texts)
    assert not any("one of: sentence_objectives" in text for text in texts) and 'paper = "contextual_as2"' in "".join(texts)
    outputs = [output for cell in page["cells"] for output in cell.get("outputs", ())]
    html = "".join("".join(output["data"].get("text/html", "")) for output in outputs)
    assert "72.3 ± 0.1" in html and html.count('class="as2-figure"') == 2
    nbformat.validate(nbformat.from_dict(made))
