"""Blocks of pages against the records: a number that is changed on the page, in a record or in what is printed is noticed."""

import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from pages import REGISTRY, differences, findings, miniature

from aslab import papers, publish, records
from aslab.analysis import learning_curve
from aslab.show import pca
from asutil.io import disk
from tests.trust import Broken, pages, plots, traced_blocks, traced_gains, traced_plots

from ..experiments.test_evidence_rows import made

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAPER = "evidence_contrast"
LEVELS = {"led_base": 0.25, "led_base_contrast": 0.75, "longformer_base": 0.5}


def test_every_block_with_results_is_traced_in_one_way(directives):
    directives("as2")
    kinds = (pages.TRACED, pages.DRAWN, pages.NOT_RUN, pages.NO_RESULTS)
    assert sorted(itertools.chain(*kinds)) == sorted(name for name, entry in REGISTRY.items() if entry.sources)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Records of made-up runs of three rows with three seeds, as they are committed, with coordinates of made-up vectors."""
    folder, draw = tmp_path_factory.mktemp("published"), np.random.default_rng(0)
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    for budget in ("laptop", "small"):
        made(folder, budget, LEVELS, [0, 1, 2])
    about = ["question", "positive", "negative"] * 6, [n // 3 for n in range(18)], ["span", "yes", "no"] * 6
    both = (list(publish.publish(PAPER, folder / "results", folder / "runs", laptop)) for laptop in (False, True))
    for path in itertools.chain(*both):
        record = json.loads(path.read_text("utf-8"))
        if "pca" in record:
            record["pca"] = pca.coordinates(draw.normal(size=(18, 5)), draw.normal(size=(18, 5)), *about)
            disk.write_json(path, record)
    shutil.rmtree(folder / "runs")
    return folder


@pytest.fixture
def root(published, tmp_path):
    """A paper with its records, which may be changed."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path


def block(told: str, html: str):
    return BeautifulSoup(f'<div data-as2="{told}">{html}</div>', "html.parser").div


SHOWN = {
    f"claims {PAPER}": miniature.claims_tabs,
    f"findings {PAPER}": findings.findings_html,
    f"two-tests {PAPER}": differences.two_tests_table,
    f"results {PAPER} table_2": lambda *of: miniature.results_tabs(*of, "table_2"),
    f"results {PAPER} table_1 laptop": lambda *of: miniature.results_tabs(*of, "table_1", True),
}


def shown(told: str, root: Path):
    """The block of a directive, as the records give it."""
    found = records.records(PAPER, root / "results", root / "no runs")
    name = next(name for name in SHOWN if told in (name.split()[0], name.split()[-1]))
    return name, SHOWN[name](papers.read(PAPER, ROOT / "experiments"), found)


@pytest.mark.parametrize("told", ["results", "claims", "laptop", "findings", "two-tests"])
def test_a_table_says_what_the_records_give_and_one_digit_changed_anywhere_is_noticed(told, root):
    name, html = shown(told, root)
    assert pages.traced_block(root, "page", block(name, html)) > 10
    for place in [match.start() for match in re.finditer(r"(?<=\d\.)\d", html) if match.start() > html.find("<tbody>")][::29]:
        other = html[:place] + str((int(html[place]) + 1) % 10) + html[place + 1 :]
        with pytest.raises(Broken, match="the page says"):
            pages.traced_block(root, "page", block(name, other))


def test_a_record_that_changed_after_the_build_or_is_gone_is_noticed(root):
    name, html = shown("results", root)
    path = root / "results" / PAPER / "led_base" / "qasper-small-seed0.json"
    record = json.loads(path.read_text("utf-8"))
    record["metrics"]["dev"]["answer_f1"] += 0.05
    for text in (json.dumps(record), None):
        path.write_text(text, encoding="utf-8") if text else path.unlink()
        with pytest.raises(Broken, match="the page says"):
            pages.traced_block(root, "page", block(name, html))


@pytest.mark.parametrize("table", ["table_1", "table_3", "order", "controls"])
def test_what_stands_above_a_table_of_the_laptop_is_counted_from_its_records(table, tmp_path):
    paper = "sentence_objectives"
    for name in ("experiments", *(f"results/{paper}/roberta_{row}" for row in ("base", "ssp", "ssp_shuffled"))):
        shutil.copytree(ROOT / name, tmp_path / name)
    found = records.records(paper, tmp_path / "results", tmp_path / "no runs")
    name, html = f"results {paper} {table} laptop", miniature.results_tabs(papers.read(paper), found, table, True)
    assert pages.traced_block(tmp_path, "page", block(name, html)) > 5
    first, last = (html.index(tag, html.index("as2-laptop")) for tag in ("<caption>", "</caption>"))
    for place in [match.start() for match in re.finditer(r"\d", html) if first < match.start() < last]:
        other = html[:place] + str((int(html[place]) + 1) % 10) + html[place + 1 :]
        with pytest.raises(Broken, match="the page says"):
            pages.traced_block(tmp_path, "page", block(name, other))


def test_a_table_of_the_laptop_has_nothing_of_another_budget_and_no_other_table_has_anything_of_it(root):
    panel = lambda html: BeautifulSoup(html, "html.parser").find(class_="as2-laptop")
    before, (name, other) = panel(shown("laptop", root)[1]), shown("results", root)
    assert len(before.select("tr")) > 5 and "laptop" not in other
    for path in (root / "results" / PAPER).glob("*/*-small-*.json"):
        path.unlink()
    assert panel(shown("laptop", root)[1]) == before
    with pytest.raises(Broken, match="the page says"):
        pages.traced_block(root, "page", block(name, other))
    assert pages.traced_block(root, "page", block(*shown("results", root))) >= 0


@pytest.mark.parametrize("told", ["backbone", "backbone-command"])
def test_a_figure_of_the_backbone_that_its_record_does_not_give_is_noticed(told, tmp_path, directives):
    folder = Path("asutil/pydocs/pydocs_roberta")
    shutil.copytree(ROOT / folder, tmp_path / folder)
    made = directives("as2_backbone")
    html = made.backbone() if told == "backbone" else made.command()
    record = json.loads((tmp_path / folder / "record.json").read_text("utf-8"))
    assert pages.traced_block(tmp_path, "page", block(told, html)) > 10
    record["figures"]["corpus"]["documents"] += 1
    record["given"]["steps"] += 1
    disk.write_json(tmp_path / folder / "record.json", record)
    with pytest.raises(Broken, match="the page says"):
        pages.traced_block(tmp_path, "page", block(told, html))


def test_weights_that_are_not_those_of_the_record_are_noticed(tmp_path, directives):
    folder = Path("asutil/pydocs/pydocs_roberta")
    shutil.copytree(ROOT / folder, tmp_path / folder)
    weights = tmp_path / folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(Broken, match="SHA-256 of the weights"):
        pages.traced_block(tmp_path, "page", block("backbone", directives("as2_backbone").backbone()))


@pytest.mark.parametrize("change", ["a step", "the end"])
def test_a_loss_that_is_not_the_one_in_the_log_is_noticed_in_its_plot(change, tmp_path, directives):
    folder = Path("asutil/pydocs/pydocs_roberta")
    shutil.copytree(ROOT / folder, tmp_path / folder)
    page, log = block("backbone-loss", directives("as2_backbone").loss()), tmp_path / folder / "log.jsonl"
    lines = log.read_text("utf-8").splitlines()
    assert pages.traced_block(tmp_path, "page", page) > len(lines)
    other = json.loads(lines[0 if change == "a step" else -1])
    other |= {"loss": other["loss"] + 0.02} if change == "a step" else {"step": other["step"] + 100}
    log.write_text("\n".join([json.dumps(other), *lines[1:]] if change == "a step" else [*lines, json.dumps(other)]), "utf-8")
    with pytest.raises(Broken, match="is drawn at"):
        pages.traced_block(tmp_path, "page", page)


def test_ranked_lists_of_embedded_data_are_compared_by_their_ids(root):
    cell = '<td class="as2-right" data-candidate="{}"><abbr title="answers">✓</abbr> It is 5. <small>score {}</small></td>'
    head = "<p>pydocs, budget laptop, seed 0. Text: BSD.</p>"
    why = "<small>First right candidate: rank {} on the left, 1 on the right. Words that the best candidate shares: 3 and 1.</small>"
    html = f'{head}<table class="as2-beside"><caption>Lost: What?{why}</caption><tbody><tr><th>1</th>{cell}</tr></tbody></table>'
    said = list(pages.lines(block("examples", html.format("1", "some-id-1", "0.125"))))
    ranks = "Lost. First right candidate: rank 1 on the left, 1 on the right."
    assert said == ["pydocs, budget laptop, seed 0.", ranks, ["1", "✓ answers some-id-1 score 0.125"]]
    both = list(traced_blocks.ranked("Lost", [[["some-id-1", 1, 0.125, 1]], [["some-id-2", 1, 0.5, 1]]]))
    assert both == [ranks, ["1", "✓ answers some-id-1 score 0.125", "✓ answers some-id-2 score 0.500"]]
    for other in (("2", "some-id-1", "0.125"), ("1", "some-id-1", "0.126"), ("1", "some-id-2", "0.125")):
        assert said != list(pages.lines(block("examples", html.format(*other))))


def test_a_readout_with_another_digit_is_noticed(directives, tmp_path):
    for name in ("experiments", "results/asbert"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = tmp_path / "results/asbert/triplet_bert/wikiqa-small-seed0.json"
    for other in path.parent.glob("*-seed[12].json"):
        other.unlink()  # one seed, whose figures the table has as they are
    record = json.loads(path.read_text("utf-8"))
    measured = record["metrics"]["test"]
    record["readouts"] = {by: {"test": measured | {"map": measured["map"] - away}} for by, away in (("distance", 0), ("dot", 0.0571))}
    disk.write_json(path, record)
    found = records.records("asbert", tmp_path / "results", tmp_path / "no runs")
    html = directives("as2_vectors").readout_table(papers.read("asbert", tmp_path / "experiments"), found)
    assert pages.traced_block(tmp_path, "page", block("readouts asbert", html)) > 10
    other = f"{100 * measured['map'] - 5.71:.1f}"
    assert html.count(f">{other}<") == 1
    for wrong in (html.replace(f">{other}<", ">12.3<"), html.replace(f">{other}<", ">–<")):
        with pytest.raises(Broken, match="the page says"):
            pages.traced_block(tmp_path, "page", block("readouts asbert", wrong))


def test_a_table_of_numbers_that_nothing_traces_is_refused(root):
    with pytest.raises(Broken, match="nothing says what its numbers come from"):
        pages.traced_block(root, "page", block("invented", "<table><tr><td>1.5</td></tr></table>"))
    with pytest.raises(Broken, match="no run has finished"):
        pages.traced_block(root, "page", block("demo", "<table><tr><th>row</th><td>1.5</td></tr></table>"))


def test_a_result_that_is_typed_into_a_page_is_noticed(tmp_path):
    blocks = [block("results", "<table><tr><td>53.9 ± 1.8</td></tr></table>")]
    page = tmp_path / "page.md"
    page.write_text("Section 1.8 has 12.5 and ```53.9```.", encoding="utf-8")
    pages.none_typed(page, blocks)
    page.write_text("We got 53.9.", encoding="utf-8")
    with pytest.raises(Broken, match=r"typed into a page: page.md says \['53.9'\]"):
        pages.none_typed(page, blocks)


def test_two_builds_that_differ_in_a_byte_are_not_the_same(tmp_path):
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("same")
        (tmp_path / name / "page.html").write_text(text)
    assert pages.same(tmp_path / "one", tmp_path / "one") == 2
    with pytest.raises(Broken, match=r"\['page.html'\] differ"):
        pages.same(tmp_path / "one", tmp_path / "two")


def test_what_a_plot_draws_is_read_off_its_axis():
    tick = '<g><g><path clip-path="p" d="M {0} 9 L {0} 0" style="stroke: #b0b0b0"/></g><g><text x="{0}">{1}</text></g></g>'
    grid = "".join(tick.format(x, text) for x, text in ((100, "−5"), (200, "0"), (300, "5")))
    marks = (
        '<path clip-path="p" d="M 120 4 L 260 4" style="fill: none; stroke: #0173b2"/>'
        '<path clip-path="p" d="M 186 1 L 194 3" style="fill: #0173b2"/>'
    )
    dashed = '<path clip-path="p" d="M 220 9 L 220 0" style="fill: none; stroke: black; stroke-dasharray: 3"/>'
    found = plots.differences(block("gains", f"<svg><g><g>{grid}</g>{marks}{dashed}</g></svg>"))
    expected = {"intervals": [(-4.0, 3.0)], "differences": [-0.5], "dashed": [1.0]}
    assert pages.drawn_as_expected("page", found, expected) == 4
    with pytest.raises(Broken, match="intervals are drawn at"):
        pages.drawn_as_expected("page", found, expected | {"intervals": [(-4.0, 3.1)]})


CHANGES = {  # of a record with coordinates
    "a point": (lambda shown: shown["after"]["x"].__setitem__(7, 0.1234), "is drawn at"),
    "a point that a line starts from": (lambda shown: shown["before"]["y"].__setitem__(0, 0.1234), "line is drawn at"),
    "a role": (lambda shown: shown["roles"].reverse(), "are drawn, the records give"),
    "a share": (lambda shown: shown["after"]["explained"].__setitem__(1, 0.99), "the panels say"),
    "a panel": (lambda shown: shown.pop("before"), "the panels say"),
}


@pytest.mark.parametrize("change", [*CHANGES, "a type"])
@pytest.mark.parametrize(("paper", "row", "dataset"), [("asbert", "triplet_bert", "wikiqa"), (PAPER, "longformer_base", "hotpotqa")])
def test_a_point_of_a_drawing_that_is_not_where_the_record_has_it_is_noticed(paper, row, dataset, change, root, directives):
    if paper != PAPER:
        shutil.copytree(ROOT / f"results/{paper}/{row}", root / f"results/{paper}/{row}")
    path = next((root / "results" / paper / row).glob(f"{dataset}-*-seed0.json"))
    record = json.loads(path.read_text("utf-8"))
    shown, expected = record["pca"], lambda: list(traced_plots.components(root, paper, row, dataset))
    figure = plots.marks(block("pca", directives("as2_figures").drawn(pca.plot(shown), "vectors")))
    assert pages.plotted_as_expected("page", figure, expected()) == 4 * len(shown["roles"]) + 8 * shown["roles"].count("positive")
    if change == "a type" and "kinds" not in shown:
        pytest.skip("its questions have no types")
    alter, said = CHANGES.get(change, (lambda shown: shown["kinds"].reverse(), "are drawn, the records give"))
    alter(shown)
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(Broken, match=said):
        pages.plotted_as_expected("page", figure, expected())


@pytest.mark.parametrize("name", ["latency", "growth"])
def test_a_measured_time_that_is_not_the_one_on_record_is_noticed_in_its_plot(name, tmp_path, directives):
    (tmp_path / "results" / "benchmarks").mkdir(parents=True)
    kept = tmp_path / "results" / "benchmarks" / f"{name}.json"
    result = json.loads((ROOT / "results" / "benchmarks" / kept.name).read_text("utf-8"))
    figure = plots.lines(block(name, getattr(directives("as2_benchmarks"), name)(result)))
    read, expected = pages.PLOTS[name]
    kept.write_text(json.dumps(result), encoding="utf-8")
    assert read is plots.lines and pages.plotted_as_expected("page", figure, list(expected(tmp_path))) >= 28
    if name == "growth":
        result["candidates"][1]["milliseconds_a_question"] += 1
    else:
        result["by_k"]["5"]["milliseconds_a_question"]["joint"]["alone"]["median"] *= 1.01
    kept.write_text(json.dumps(result), encoding="utf-8")
    with pytest.raises(Broken, match="is drawn at"):
        pages.plotted_as_expected("page", figure, list(expected(tmp_path)))


def test_a_learning_curve_that_is_not_the_records_is_noticed(tmp_path, directives):
    paper, rows = "sentence_objectives", ("roberta_base_50", "roberta_base_500", "roberta_base")
    (tmp_path / "experiments").mkdir()
    shutil.copy(ROOT / "experiments" / f"{paper}.yml", tmp_path / "experiments")
    for row in rows:
        shutil.copytree(ROOT / "results" / paper / row, tmp_path / "results" / paper / row)
    figure = learning_curve.learning_curve(paper, "nq_sentences", "small", *rows)
    page = block(" ".join(["learning-curve", paper, "nq_sentences", "small", *rows]), directives("as2_figures").drawn(figure, figure.words))
    assert pages.traced_block(tmp_path, "page", page) > 2 * (3 * 2 + 3 + 3 * 2)
    kept = tmp_path / "results" / paper / "roberta_base_500" / "nq_sentences-small-seed0.json"
    record = json.loads(kept.read_text("utf-8"))
    for values in record["per_question"]:
        values[2] *= 0.99
    kept.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(Broken, match="fine-tuned is drawn at"):
        pages.traced_block(tmp_path, "page", page)


def test_lines_whose_words_in_the_legend_are_swapped_are_noticed(directives):
    result = json.loads((ROOT / "results" / "benchmarks" / "latency.json").read_text("utf-8"))
    html = directives("as2_benchmarks").latency(result).replace(">pair model<", ">other<").replace(">joint model<", ">pair model<")
    with pytest.raises(Broken, match="are drawn, the records give"):
        pages.plotted_as_expected("page", plots.lines(block("latency", html)), list(traced_plots.latency(ROOT)))


def test_the_smallest_gain_by_the_exact_distribution():
    assert [traced_gains.smallest_gain(68, lost) for lost in (0, 3)] == [4, 8]


def test_a_cosine_that_is_not_the_one_on_record_is_noticed(tmp_path, directives):
    (tmp_path / "results" / "joint_inference").mkdir(parents=True)
    kept = tmp_path / "results" / "joint_inference" / "slot_cosines.json"
    made = {"first": [0.5, 0.9, 0.99995], "first_least": [0.4, 0.8, 0.9999], "mean": [0.1, 0.2, 0.3], "mean_least": [0.0, -0.1, 0.1]}
    models = [{"model": "some/one", "init": 0.02, **made}, {"model": "random", "init": 0.3, **made, "first": [0.3, 0.2, 0.1]}]
    disk.write_json(kept, {"dataset": "pydocs", "inputs": 16, "models": models})
    joint = directives("as2_joint")
    result = disk.read_json(kept)
    html = joint.drawn(joint.cosine_plot(result), joint.cosine_caption(result)) + joint.cosine_table(result)
    page, (read, drawn) = block("slot-cosines", html), pages.PLOTS["slot-cosines"]
    assert read is plots.lines and pages.plotted_as_expected("page", plots.lines(page), list(drawn(tmp_path))) == 24
    assert "one, types 0.02" in html and "RoBERTa-Base, random weights, types 0.3" in html and "0.9999" in html
    pages.traced_block(tmp_path, "page", page)
    disk.write_json(kept, result | {"models": [models[0] | {"mean": [0.1, 0.25, 0.3]}, models[1]]})
    with pytest.raises(Broken, match="is drawn at"):
        pages.plotted_as_expected("page", plots.lines(page), list(drawn(tmp_path)))
    disk.write_json(kept, result | {"models": [models[0], models[1] | {"mean_least": [0.0, 0.1, 0.45]}]})
    with pytest.raises(Broken, match="the page says"):
        pages.traced_block(tmp_path, "page", page)
