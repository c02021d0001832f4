"""Blocks of pages against the committed records: all say what these give, and what is changed on a page or in a file is noticed."""

import itertools
import json
import re
import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from pages import REGISTRY, miniature, note

from aslab import papers, records
from asutil.io import hub
from tests.trust import Broken, pages, plots, traced_blocks, traced_gains, traced_plots

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAPER = "evidence_contrast"
EVIDENCE_READ = ("raw vectors", "as trained", "predicted type", "evidence head")
UNTRAINED = ("Random order", "Document order", "Zero-shot cosine")
SOURCES = [*(ROOT / "book").glob("*.md"), *(ROOT / "book" / "papers").rglob("*.md")]
# The words of each directive -> the page on which it stands.
SHOWN = {
    words: path.relative_to(ROOT / "book").with_suffix("").as_posix()
    for path in sorted(SOURCES)
    for words in re.findall(r"^```+\{as2-show\} (.+)$", path.read_text("utf-8"), re.MULTILINE)
}


@pytest.fixture
def shown(directives, monkeypatch):
    """The words of a directive -> the block that its page has, by the committed records."""
    monkeypatch.delenv(hub.MIRROR, raising=False)
    directives("as2")

    def made(words: str):
        name, *arguments = words.split()
        entry = REGISTRY[name]
        page = {"page": directives("as2_pages").Page(SHOWN[words])} if entry.on_page else {}
        return block(words, entry.function(*arguments, **page) or note(entry.empty))

    return made


def block(words: str, html: str):
    return BeautifulSoup(f'<div data-as2="{words}">{html}</div>', "html.parser").div


def test_every_block_with_results_is_traced_in_one_way(directives):
    directives("as2")
    kinds = (pages.TRACED, pages.DRAWN, pages.NOT_RUN, pages.NO_RESULTS)
    assert sorted(itertools.chain(*kinds)) == sorted(name for name, entry in REGISTRY.items() if entry.sources)


TRACED = [words for words in SHOWN if words.split()[0] in {*pages.TRACED, *pages.DRAWN} - {"costs"} or words == "costs measured"]


@pytest.mark.parametrize("words", TRACED)
def test_a_block_says_and_draws_what_the_committed_records_give(words, shown):
    """Counted again without `aslab`, as `make trust` does with the built pages."""
    assert pages.traced_block(ROOT, SHOWN[words], shown(words)) > 0


@pytest.mark.parametrize(
    ("words", "heads"),
    [
        ("results sentence_objectives table_3 laptop", ["Accuracy", "F1", "Seeds", "Budget", "Verdict"]),
        ("results sentence_objectives table_3 laptop", ["Accuracy", "F1", "Seeds"]),
        ("results sentence_objectives order laptop", ["AUC", "First in its group", "Seeds", "Budget", "Verdict"]),
        (f"results {PAPER} table_3 laptop", ["Answer F1", "Evidence F1", "Seeds", "Evidence F1 against its baseline [95 %]"]),
        ("results asbert table_3 laptop", ["MAP", "Seeds", "Budget", "Verdict"]),
        ("results asbert table_3 laptop", ["MAP", "MRR", "Seeds", "Budget", "Verdict"]),
        ("first-stage", [f"of the best {depth}" for depth in (5, 10, 30, 100)]),
        ("readouts asbert", ["Distance", "Cosine", "Dot product", "Probability", "Seeds", "Budget"]),
        (
            f"evidence-near {PAPER} hotpotqa longformer_base longformer_base_shared longformer_base_contrast",
            ["Before training, dev", *(f"After: {how}" for how in EVIDENCE_READ), "Seeds", "Budget"],
        ),
        (
            f"evidence-chance {PAPER} led_base qasper",
            [*(f"{order}, MAP" for order in UNTRAINED), "All sentences, Evidence F1", "Most frequent answer, Answer F1", "Budget"],
        ),
        (
            f"evidence-left-out {PAPER} led_base qasper",
            ["Questions", "Sentences of passages not chosen", "Evidence cut away", "Other sentences cut away", "Tokens", "Budget"],
        ),
    ],
)
def test_the_columns_are_named(words, heads, shown):
    """Of the lines of a table, those above it are not counted again."""
    lines = [[cell.text for cell in head.find_all("th")] for head in shown(words).find_all("thead")]
    assert any(
        line[-len(heads) :] == heads and line[: -len(heads)] in (["Row"], ["Row", "From"], ["Split"], ["Data set"], ["First stage"])
        for line in lines
    )


# ------------------------------------------------------------------ what is changed


@pytest.mark.parametrize(
    "words",
    [
        *(f"{name} {PAPER}" for name in ("claims", "findings")),
        *(f"results {PAPER} {table} laptop" for table in ("table_1", "table_3")),
        "results sentence_objectives table_3 laptop",
        *("two-tests sentence_objectives", "readouts asbert", "in-corpus joint_inference"),
    ],
)
def test_a_digit_that_is_changed_anywhere_on_a_page_is_noticed(words, shown):
    """A decimal in a table, a count before `of`, or a digit above a table of the laptop."""
    html = str(shown(words))
    places = [match.start() for match in re.finditer(r"(?<=\d\.)\d|\d(?= of (?:the )?\d)", html) if match.start() > html.find("<tbody>")]
    places = places[:: len(places) // 4]
    if "as2-laptop" in html:
        first, last = (html.index(tag, html.index("as2-laptop")) for tag in ("<caption>", "</caption>"))
        places += [match.start() for match in re.finditer(r"\d", html) if first < match.start() < last]
    for place in places:
        other = html[:place] + str((int(html[place]) + 1) % 10) + html[place + 1 :]
        with pytest.raises(Broken, match="the page says|stands above a table"):
            pages.traced_block(ROOT, "page", BeautifulSoup(other, "html.parser").div)


def changing(change):
    """What a change of a record makes of its file."""

    def changed(content: bytes) -> bytes:
        record = json.loads(content)
        change(record)
        return json.dumps(record).encode()

    return changed


def of_log(change):
    """What a change of the first line of a log makes of it."""

    def changed(content: bytes) -> bytes:
        first, rest = content.split(b"\n", 1)
        return changing(change)(first) + b"\n" + rest

    return changed


EVIDENCE = f"results/{PAPER}/longformer_base_contrast/hotpotqa-small-seed0.json"
TRIPLETS = "results/asbert/triplet_bert/wikiqa-small-seed0.json"
BACKBONE = "asutil/pydocs/pydocs_roberta"
CURVE = "results/sentence_objectives/roberta_base_500/nq_sentences-small-seed0.json"
DRAWINGS = {f"pca {PAPER} longformer_base_contrast hotpotqa": EVIDENCE, "pca asbert triplet_bert wikiqa": TRIPLETS}
OF_PCA = [  # changes of coordinates
    (lambda drawn: drawn["after"]["x"].__setitem__(7, 0.1234), "is drawn at"),
    (lambda drawn: drawn["before"]["y"].__setitem__(0, 0.1234), "line is drawn at"),
    (lambda drawn: drawn["roles"].reverse(), "are drawn, the records give"),
    (lambda drawn: drawn["after"]["explained"].__setitem__(1, 0.99), "the page says"),
    (lambda drawn: drawn.pop("before"), "the page says"),
]
CHANGES = [
    (f"results {PAPER} table_3 laptop", EVIDENCE, changing(lambda one: one["metrics"]["dev"].update(answer_f1=0.123)), "the page says"),
    (f"results {PAPER} table_3 laptop", EVIDENCE, None, "the page says"),
    ("readouts asbert", TRIPLETS, changing(lambda one: one["readouts"]["dot"]["test"].update(map=0.123)), "the page says"),
    ("backbone", f"{BACKBONE}/record.json", changing(lambda one: one["figures"]["corpus"].update(documents=1)), "the page says"),
    ("backbone-command", f"{BACKBONE}/record.json", changing(lambda one: one["given"].update(steps=1)), "the page says"),
    ("backbone", f"{BACKBONE}/model.safetensors", lambda content: content[:-1] + b"?", "SHA-256 of the weights"),
    ("backbone-loss", f"{BACKBONE}/log.jsonl", of_log(lambda one: one.update(loss=one["loss"] + 0.02)), "is drawn at"),
    ("backbone-loss", f"{BACKBONE}/log.jsonl", lambda content: content + content.splitlines()[-1], "is drawn at"),
    (
        "growth",
        "results/benchmarks/growth.json",
        changing(lambda one: one["candidates"][1].update(milliseconds_a_question=9.9)),
        "is drawn at",
    ),
    (
        "latency",
        "results/benchmarks/latency.json",
        changing(lambda one: one["by_k"]["5"]["milliseconds_a_question"]["joint"]["alone"].update(median=9.9)),
        "is drawn at",
    ),
    (
        next(words for words in SHOWN if words.startswith("learning-curve")),
        CURVE,
        changing(lambda one: [values.__setitem__(2, 0.99 * values[2]) for values in one["per_question"]]),
        "fine-tuned is drawn at",
    ),
    (
        "slot-cosines",
        "results/joint_inference/slot_cosines.json",
        changing(lambda one: one["models"][0]["mean"].__setitem__(1, 0.25)),
        "is drawn at",
    ),
    *(
        (words, file, changing(lambda one, change=change: change(one["pca"])), said)
        for words, file in DRAWINGS.items()
        for change, said in OF_PCA
    ),
    (next(iter(DRAWINGS)), EVIDENCE, changing(lambda one: one["pca"]["kinds"].reverse()), "are drawn, the records give"),
]


@pytest.mark.parametrize(("words", "file", "change", "said"), CHANGES, ids=itertools.count())
def test_a_file_that_changed_after_the_build_or_is_gone_is_noticed(words, file, change, said, shown, tmp_path):
    for folder in ("experiments", BACKBONE, "/".join(file.split("/")[:2])):
        shutil.copytree(ROOT / folder, tmp_path / folder, dirs_exist_ok=True)
    built, path = shown(words), tmp_path / file
    assert pages.traced_block(tmp_path, "page", built) > 0
    path.write_bytes(change(path.read_bytes())) if change else path.unlink()
    with pytest.raises(Broken, match=said):
        pages.traced_block(tmp_path, "page", built)


def test_a_table_of_the_laptop_has_nothing_of_another_budget_and_no_other_table_has_anything_of_it(tmp_path):
    shutil.copytree(ROOT / "results" / PAPER, tmp_path / PAPER)

    def table(*laptop: bool) -> str:
        found = records.records(PAPER, tmp_path, tmp_path / "no runs")
        return miniature.results_tabs(papers.read(PAPER), found, "table_1", *laptop)

    panel = lambda html: BeautifulSoup(html, "html.parser").find(class_="as2-laptop")
    before = panel(table(True))
    assert len(before.select("tr")) > 5 and "laptop" not in table()
    for path in (tmp_path / PAPER).glob("*/*-small-*.json"):
        path.unlink()
    assert panel(table(True)) == before


def test_ranked_lists_of_embedded_data_are_compared_by_their_ids():
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


def test_a_table_of_numbers_that_nothing_traces_is_refused():
    with pytest.raises(Broken, match="nothing says what its numbers come from"):
        pages.traced_block(ROOT, "page", block("invented", "<table><tr><td>1.5</td></tr></table>"))
    with pytest.raises(Broken, match="no run has finished"):
        pages.traced_block(ROOT, "page", block("demo", "<table><tr><th>row</th><td>1.5</td></tr></table>"))


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


def test_lines_whose_words_in_the_legend_are_swapped_are_noticed(directives):
    result = json.loads((ROOT / "results" / "benchmarks" / "latency.json").read_text("utf-8"))
    html = directives("as2_benchmarks").latency(result).replace(">pair model<", ">other<").replace(">joint model<", ">pair model<")
    with pytest.raises(Broken, match="are drawn, the records give"):
        pages.plotted_as_expected("page", plots.lines(block("latency", html)), list(traced_plots.latency(ROOT)))


def test_the_smallest_gain_by_the_exact_distribution():
    assert [traced_gains.smallest_gain(68, lost) for lost in (0, 3)] == [4, 8]
