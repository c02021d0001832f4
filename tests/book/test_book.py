"""The book as a reader gets it: built offline from a copy of the tree without runs, by `jupyter-book build book/`."""

import ast
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urljoin

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from markupsafe import escape

from aslab import papers, runs
from aslab.analysis import difference_plots
from aslab.show import plots
from asutil import metrics
from asutil.data.answers import Candidate, Question
from asutil.io import disk

from ..trust.hostile_book import without_figures

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GENERATED = shutil.ignore_patterns("_build", "runs", "notebooks", "data_cards", "gallery", "reports", "__pycache__")
NO_NETWORK = (
    "import socket\ndef refuse(*_, **__): raise OSError('no network in this test')\nsocket.socket.connect = socket.getaddrinfo = refuse\n"
)
PAYLOAD = "<script>alert('x')</script><img src=x onerror=alert(1)>"
RUN = "pretrain-psd-0123456789ab"
MARKUP = "a <img src=x onerror=alert(1)>-0123456789ab"


class Book:
    """A copy of the tree and its built pages."""

    def __init__(self, root: Path):
        self.root = root
        for name in ("asutil", "aslab", "experiments", "notebooks", "data_cards"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        shutil.copytree(ROOT / "book", root / "book", ignore=GENERATED)
        shutil.copy(ROOT / "CITATION.cff", root)
        without_figures(root / "book")
        (root / "results").mkdir()
        (root / "offline").mkdir()
        (root / "offline" / "sitecustomize.py").write_text(NO_NETWORK)

    def build(self, *options):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASUTIL_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(self.root / "offline"), os.environ.get("PYTHONPATH", "")])
        environment["AS2_EXECUTE"] = "off"  # tests/notebooks/test_lessons.py runs them
        command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "--keep-going", *options, "book/"]
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    def pages(self) -> dict[str, str]:
        html = self.root / "book" / "_build" / "html"
        names = {path.relative_to(html).as_posix(): path.read_text("utf-8") for path in sorted(html.rglob("*.html"))}
        return {name: re.sub(r"\?v=\w+", "", text) for name, text in names.items()}  # of style sheets, absent in the first build


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return Book(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def fresh(book):
    """Pages of a fresh clone: no runs, no results."""
    book.build()
    return book.pages()


@pytest.fixture(scope="module")
def with_result(book, fresh):
    """Pages with committed results of three rows and one finished run more."""
    for row in ("roberta_base", "electra_base"):
        write_result(book.root, row, 0.5)
    better = {"row": "roberta_base", "candidates": [[f"Q1-1 {PAYLOAD}", 0, 0.9, 1]]}
    psd = {"per_question": [[f"Q1 {PAYLOAD}", 1.0, 1.0, 1.0]]}
    psd["chosen"] = [{"question_id": f"Q1 {PAYLOAD}", "candidates": [[f"Q1-0 {PAYLOAD}", 1, 0.9, 1]], "baseline": better}]
    write_result(book.root, "roberta_psd", 0.5, **psd)
    folder = book.root / "runs" / RUN
    folder.mkdir(parents=True)
    shutil.copy(next((book.root / "notebooks").glob("*.ipynb")), folder / "notebook.ipynb")
    record = {"notebook": "pretrain", "name": RUN, "budget": "laptop", "seed": f"0 {PAYLOAD}", "settings": {}}
    disk.write_json(folder / "record.json", record | {"metrics": {"validation": {"accuracy": 0.75}}} | runs.hashes(folder))
    shutil.copytree(folder, book.root / "runs" / MARKUP)
    (book.root / "runs" / RUN.replace("0123", "eeee")).symlink_to(folder)
    unfinished = book.root / "runs" / RUN.replace("0123", "ffff")
    unfinished.mkdir()
    shutil.copy(folder / "notebook.ipynb", unfinished)
    book.build()
    return book.pages()


def write_result(root: Path, row: str, accuracy: float, **more) -> None:
    values = {"p@1": accuracy, "map": accuracy, "mrr": accuracy, "questions": 237, "tied_questions": 0, "empty_questions": 0}
    record = {
        **{"paper": "sentence_objectives", "row": row, "dataset": "wikiqa", "budget": "small", "seed": 0},
        **{"notebook": "finetune", "name": f"finetune-{row}-ba9876543210", "settings": {"dataset": "wikiqa"}, "metrics": {"test": values}},
        "baselines": {"random": {"p@1": 0.1234, "map": 0.2, "mrr": 0.2}},
        "per_question": [[f"Q1 {PAYLOAD}", accuracy, accuracy, accuracy]],
        "chosen": [{"question_id": f"Q1 {PAYLOAD}", "candidates": [[f"Q1-0 {PAYLOAD}", 1, 0.9, 1], ["Q1-1", 0, 0.1, 2]]}],
    }
    path = root / "results" / "sentence_objectives" / row / "wikiqa-small-seed0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write_json(path, record | more)


# ------------------------------------------------------------------ a fresh clone


def test_builds_offline_without_runs(fresh, book):
    pages_of_papers = [f"papers/{slug}.html" for slug in papers.PAPERS]
    notebooks = [f"notebooks/{path.stem}.html" for path in (ROOT / "notebooks").glob("*.ipynb")]
    cards = [f"data_cards/{path.stem}.html" for path in (ROOT / "data_cards").glob("*.md") if path.stem != "TEMPLATE"]
    assert {"index.html", "task.html", *pages_of_papers, *notebooks, *cards} <= set(fresh)
    figures = book.root / "book" / "_build" / "html" / "figures"
    assert [path.read_text("utf-8")[:9] for path in sorted(figures.glob("*.csv"))] == ["row,name,"] * len(papers.PAPERS)
    assert "not run" in fresh["index.html"]


class Requests(HTMLParser):
    """What a browser would fetch for a page by itself, and scripts that name another host."""

    def __init__(self):
        super().__init__()
        self.found, self.tag = [], ""

    def handle_starttag(self, tag, attributes):
        self.tag = tag
        values = dict(attributes)
        names = ("src", "srcset", "data", "poster", "action") + (("href",) if tag in ("link", "use", "image") else ())
        self.found += [values[name] for name in names if values.get(name)]
        self.found += re.findall(r"url\(([^)]*)\)", values.get("style") or "")

    def handle_data(self, text):
        if self.tag in ("script", "style"):
            self.found += re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", re.sub(r"(^|\s)//.*", "", text))  # without comments


def test_no_page_asks_anything_of_another_host(fresh, book):
    for name, html in fresh.items():
        parser = Requests()
        parser.feed(html)
        elsewhere = [address for address in parser.found if re.match(r"\s*['\"]?(\w+:)?//", address)]
        assert not elsewhere, (name, elsewhere)
    for sheet in (book.root / "book" / "_build" / "html").rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet.name


def test_every_local_address_exists(fresh, book):
    html = book.root / "book" / "_build" / "html"
    for name, text in fresh.items():
        for address in re.findall(r"<(?:a|link|script|img)\b[^>]*?\b(?:href|src)=\"([^\"#]+)", text):
            if not name.startswith("_static/") and not re.match(r"\w+:", address):
                assert (html / name).parent.joinpath(address.split("?")[0]).exists(), (name, address)


def test_math_is_mathml_with_no_tex_left(fresh):
    formulas = [math for html in fresh.values() for math in re.findall(r"<math.*?</math>", html, re.DOTALL)]
    assert len(formulas) > 30
    for math in formulas:
        text = re.sub(r"<[^>]*>", "", math)
        assert not re.search(r"\\\w|&amp;", text), math


def test_cards_and_code_are_shown_from_their_sources(fresh):
    for path in (ROOT / "data_cards").glob("*.md"):
        card = yaml.safe_load(path.read_text("utf-8").split("---")[1])
        for split in [split for splits in (card["counts"] or {}).values() for split in splits.values() if path.stem != "TEMPLATE"]:
            assert f"{split['questions']:,} / {split['candidates']:,}" in fresh["datasets.html"]
    page = re.sub(r"<[^>]*>", "", fresh["papers/sentence_objectives/method.html"])
    line = next(
        n for n, text in enumerate((ROOT / "asutil" / "losses.py").read_text("utf-8").split("\n"), 1) if text.startswith("def mlm(")
    )
    assert f"asutil/losses.py, line {line}" in page
    assert 'id="asutil.losses.mlm"' in fresh["api/losses.html"]
    assert 'href="../../api/losses.html#asutil.losses.mlm"' in fresh["papers/sentence_objectives/method.html"]


# ------------------------------------------------------------------ results and runs


def test_one_changed_result_changes_the_pages_that_show_it_and_nothing_else(book, with_result):
    """What is built again equals a new build: the drill of the pages."""
    page = "papers/sentence_objectives/results.html"
    assert "50.0" in with_result[page] and "reduced budget" in with_result[page]
    write_result(book.root, "electra_base", 0.625)
    book.build()
    after = book.pages()
    assert [name for name in after if after[name] != with_result.get(name)] == ["leaderboard.html", page]
    assert "62.5" in after[page]


def test_finished_runs_have_pages(with_result):
    assert f"runs/{RUN}.html" in with_result
    assert RUN in with_result[f"runs/{RUN}.html"]
    assert f'href="runs/{RUN}.html"' in with_result["runs.html"]
    assert not any("ffff4567" in name for name in with_result)
    assert not any("eeee4567" in name or "onerror" in name for name in with_result)  # a link, and a name that would be markup
    assert "0 &lt;script&gt;" in with_result["runs.html"] and MARKUP not in with_result["runs.html"]


def test_a_run_has_a_page_once_its_record_can_be_read(directives, tmp_path):
    import as2

    record, notebook = tmp_path / "record.json", tmp_path / "notebook.ipynb"
    assert not as2.finished(notebook)
    record.write_text('{"notebook": "finetune", "metrics": {"test": {"map": 0.5')
    assert not as2.finished(notebook)
    disk.write_json(record, {"notebook": "finetune"})
    assert as2.finished(notebook)


# ------------------------------------------------------------------ what the pages say


def test_worked_example_agrees_with_the_metrics():
    text = (ROOT / "book" / "task.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-E]) \| .*\| (yes|no) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 5
    labels, scores = [row[1] == "yes" for row in rows], [float(row[2]) for row in rows]
    made = metrics.ranking(["1"] * 5 + ["2"] * 3, [*labels, True, False, False], [*scores, 3.0, 2.0, 1.0])
    first = made.per_question.iloc[0]
    assert f"| P@1 | {first.p_at_1:.0f} | 1 | {made.p_at_1:.3f} |" in text
    assert f"| average precision | {first.average_precision:.3f} | 1 | MAP {made.map:.3f} |" in text
    assert f"| reciprocal rank | {first.reciprocal_rank:.3f} | 1 | MRR {made.mrr:.3f} |" in text


def test_no_published_number_is_typed_into_a_page():
    for slug in papers.PAPERS:
        rows = papers.read(slug)["rows"].values()
        cells = [cell for row in rows for metrics_ in row["published"].values() for cell in metrics_.values()]
        numbers = {str(cell[0] if isinstance(cell, list) else cell) for cell in cells if isinstance(cell, list | float)}
        for page in [
            *(ROOT / "book" / "papers").rglob("*.md"),
            *(ROOT / "book" / name for name in ("index.md", "deviations.md", "significance.md", "examples.md")),
        ]:
            text = re.sub(r"\{as2-figure\}`[^`]*`", "", page.read_text("utf-8"))  # these are checked against our records
            typed = numbers & set(re.findall(r"(?<![\d.])(?:\d{2,}\.\d+|0\.\d{2,})(?![\d.])", text))
            assert not typed, (page.name, slug, typed)


def test_the_contents_beside_every_page_lead_to_all_pages_and_mark_it(fresh):
    def contents(page):
        nav = BeautifulSoup(fresh[page], "html.parser").select_one("nav.bd-docs-nav")
        links = [link["href"] for link in nav.select("li > a")]
        here = [urljoin(page, link) if link != "#" else page for link in links]
        return here, [link["href"] for link in nav.select("li.current > a")][-1:]

    whole, _ = contents("task.html")
    assert len(whole) == len(set(whole)) > 60 and set(whole) < set(fresh), "pages alone, without their headings"
    assert whole.index("papers/asbert.html") + 1 == whole.index("papers/asbert/method.html")
    for page in whole[::9]:
        assert contents(page) == (whole, ["#"]), page


def test_an_excerpt_of_a_missing_function_names_the_nearest(directives):
    import as2_code

    path, _, lines, first = as2_code.find_definition("asutil.losses.mlm")
    assert path.read_text("utf-8").split("\n")[first - 1] == lines[0]
    with pytest.raises(ValueError, match="did you mean 'mlm'"):
        as2_code.find_definition("asutil.losses.mlmm")
    with pytest.raises(ValueError, match=r"expected asutil\.folder\.module\.function"):
        as2_code.find_definition("os.system")


def test_excerpts_show_the_idea(directives):
    """Without types, docstrings and checks, in lines that fit; what is left computes what the function computes."""
    import as2_code

    pages = (path for path in (ROOT / "book").rglob("*.md") if "_build" not in path.parts)
    names = {name for path in pages for name in re.findall(r"^```\{as2-excerpt\} (\S+)$", path.read_text("utf-8"), re.MULTILINE)}
    assert len(names) > 25
    for name in sorted(names):
        _, node, lines, first = as2_code.find_definition(name)
        text = as2_code.idea(node, lines, first)
        assert not re.search(r"if .*:\n\s+raise", text) and '"""' not in text and "->" not in text, name
        assert max(map(len, text.split("\n"))) <= 77, name
        assert type(ast.parse(text).body[0]) is type(node), name
    _, node, lines, first = as2_code.find_definition("asutil.metrics.significance.holm")
    given = {"np": np, "_finite": lambda values, name: np.asarray(values)}
    exec(as2_code.idea(node, lines, first), given)
    assert given["holm"]([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_every_figure_is_inline_and_the_same_each_time(directives):
    import as2_figures

    def drawn():
        log = [{"step": step, "loss": 1 / step, "eval_map": 0.5} for step in range(1, 20)]
        moves = pd.DataFrame({"before": [1, 2, 7, 30], "after": [1, 1, 9, 3]})
        yield plots.training_curves({("a <b>", 0): log})
        yield plots.moves_plot(moves, "a <b>", "b")
        yield difference_plots.gains_plot("sentence_objectives")

    seen = set()
    for number, pair in enumerate(zip(drawn(), drawn(), drawn())):
        first, again, other = (as2_figures.drawn(figure, caption) for figure, caption in zip(pair, ("one", "one", "two")))
        assert first == again
        parts, others = (set(re.findall(r'\bid="([^"]+)"', drawing)) for drawing in (first, other))
        assert parts
        assert not parts & others  # two figures on one page
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', first)) <= parts  # nothing is drawn from a part that is not there
        assert ("a &lt;b&gt;" in first) == (number < 2)
        assert "<script" not in first and not re.search("#000000|#333333|#ffffff", first)
        seen |= parts
    html = as2_figures.drawn(plots.training_curves({}), f"what it shows {PAYLOAD}")
    assert "<script" not in html
    assert html.count("what it shows") == 2  # below the figure, and for those who cannot see it


def test_the_three_contexts_are_drawn_on_a_document(directives, fresh):
    import as2_contexts

    html = as2_contexts.figure("a <name>", [["First & <b>."], [f"s{n}." for n in range(5)], ["Last."]])
    assert html.count("a &lt;name&gt;") == 2 and "First &amp; &lt;b&gt;." in html
    panels = [re.findall(r"<b>(\w)</b>&nbsp;([^<]*)<", part) for part in html.split("<strong>")[1:]]
    assert panels == [
        [("c", "First &amp; &lt;b&gt;."), ("a", "s0."), ("b", "s3.")],
        [("a", "s0."), ("c", "s1."), ("c", "s2."), ("b", "s3."), ("c", "s4.")],
        [("a", "s0."), ("c", "s2."), ("b", "s3."), ("c", "s4.")],
    ]
    with pytest.raises(ValueError, match="five sentences"):
        as2_contexts.figure("name", [["One."] * 6, ["Two."] * 4])
    with pytest.raises(ValueError, match="no docstring"):
        as2_contexts.sentences_of("numpy", "nothing_of_this_name")
    assert fresh["papers/contextual_as2/method.html"].count("as2-part-a") == 3


def test_a_joint_input_is_drawn_as_it_is_read(directives, fresh):
    import as2_joint

    texts = ["Yes.", "Nine words stand in this text, too many here.", f"{PAYLOAD}", "No."]
    candidates = tuple(Candidate(str(n), text, int(n == 3), None, None) for n, text in enumerate(texts))
    html = as2_joint.figure(Question("id", f"Which? {PAYLOAD}", candidates), k=3, slot_tokens=8)
    assert "<script" not in html and "<img" not in html
    inputs = [re.findall(r'as2-slot-(\w+)">(.*?)</small>', part) for part in html.split("as2-input")[2:]]
    kinds = [[kind for kind, _ in slots] for slots in inputs]
    assert [len(one) for one in kinds] == [4, 4] and kinds[1][2:] == ["empty", "empty"]
    assert [one[0] for one in kinds] == ["question", "question"] and sorted(kinds[0][1:] + kinds[1][1:2]) == ["right", *["wrong"] * 3]
    shown = {
        text: (n, said) for slots in inputs for n, (_, said) in enumerate(slots) for text in texts if f"</code> {escape(text)}<" in said
    }
    assert set(shown) == set(texts)  # each in one slot of one input
    assert all("<code>[SEP]</code>" in said for _, said in shown.values()) and html.count("<code>[CLS]</code>") == len(inputs)
    for text, tokens in zip(texts, (4, 8, 8, 4)):  # [SEP] Yes . [SEP]; longer ones are cut
        n, said = shown[text]
        padding = f", padding to {8 * n + 7}" if tokens < 8 else ""
        assert f"<sub>{n}</sub>" in said and f"width:{100 * tokens / 8}%" in said
        assert f"type {n}, positions {8 * n} to {8 * n + tokens - 1}{padding}: <span>" in said
        assert f"<span>{'✓ answers' if text == 'No.' else '✗ does not answer'}</span>" in said
    page = fresh["papers/joint_inference/method.html"]
    counts = {kind: page.count(f"as2-slot-{kind}") for kind in ("question", "right", "wrong", "empty")}
    assert counts["question"] == 2 and counts["right"] and sum(counts.values()) == 2 * (1 + as2_joint.K)
    assert as2_joint.first_question(("pip",)) is None


def test_parameters_of_a_joint_model_are_those_that_transformers_makes(directives, fresh):
    import as2_joint
    import torch
    from transformers import RobertaConfig, RobertaModel

    from asutil import heads

    def count(module):
        return sum(parameter.numel() for parameter in module.parameters())

    with torch.device("meta"):
        models = [RobertaModel(RobertaConfig(max_position_embeddings=514, type_vocab_size=n), add_pooling_layer=False) for n in (1, 6)]
        linear = heads.IndividualEvidenceK(768), heads.AggregatedEvidenceK(768)
    printed = papers.read("joint_inference")["parameters"]["RoBERTa-Base"]
    assert as2_joint.backbone_size(**as2_joint.ROBERTA_BASE) == count(models[0]) == printed == 124_055_040
    assert [as2_joint.head_size(vectors, 768) for vectors in (1, 2)] == [count(head) for head in linear]
    cells = re.findall(r'"row">([^<]*)</th><td class="as2-number">([^<]*)<', as2_joint.joint_parameters())
    assert dict(cells)["the joint model with AEk"] == f"{count(models[1]) + count(linear[1]):,}"
    page = fresh["papers/joint_inference/method.html"]
    assert "124,062,720" in page and "7,680" in page


def test_verdicts_one_by_one(directives):
    import as2_joint

    rows = [("supports", 0), ("refutes", 0), ("not_enough_info", 1), ("not_enough_info", 1)]  # (verdict, label)
    names = ["supports", "not_enough_info", "refutes"]
    scores = pd.DataFrame([{name: float(name == verdict) for name in names} | {"label": label} for verdict, label in rows])
    found = metrics.verification(scores["label"], scores[names].to_numpy().argmax(1))
    record = {"notebook": "verify_claims", "metrics": {"dev": found}}
    made = {"row": "a", "dataset": "climate_fever", "budget": "small", "seed": [0, 1], "source": "this machine"}
    made |= {"record": [record] * 2}
    html = as2_joint.verdict_table({"rows": {"a": {"name": f"A {PAYLOAD}"}}}, pd.DataFrame(made))
    assert "<script" not in html
    cells = re.findall(r"<t[hd][^>]*>([^<]*)<", html)
    at = cells.index("Budget")
    assert cells[at + 3 : at + 10] == ["75.0", "66.7", "100.0", "0.0", "50.0", "2", "small, this machine"]  # by hand


def test_the_overlap_of_contexts_stands_with_its_corpus_and_budget(directives):
    import as2_contexts

    figures = {"context_overlap": {"examples": 1000, "identical": 0.25, "overlap": 0.625, "paragraph_sentences": 4.04}}
    records = [{"settings": {"corpus": "<local>", "splitter": "nltk"}, "figures": figures}, {"settings": {}, "figures": {}}]
    found = pd.DataFrame({"record": records, "budget": ["small", "gpu"], "source": "this machine"})
    cells = re.findall(r"<t[hd][^>]*>([^<]*)<", as2_contexts.overlap_table({}, found))
    assert cells[-7:] == ["&lt;local&gt;", "nltk", "small, this machine", "1,000", "4.0", "25.0%", "62.5%"]
    assert as2_contexts.overlap_table({}, found[1:]) == ""


def test_pages_show_marks_examples_and_moved_ranks(with_result, fresh):
    significance, shown = fresh["significance.html"], fresh["examples.html"]
    assert significance.count("<svg") >= 1 and "smallest gain" in significance.lower()
    assert '">† p = 0.' in fresh["papers/sentence_objectives/results.html"]
    assert significance.count("not run") >= 2  # no results: neither a table nor a figure of ours
    assert shown.count("not run") >= 6


def test_examples_and_moves_from_committed_results(with_result):
    """Two rows with results: the figure is on the page, and no list of questions without text."""
    page = with_result["examples.html"]
    assert "The texts of its questions are not available here." in page and "Q1-0" not in page
    assert "of 1 questions the first right candidate ranks higher" in page
    assert "1 rescued, 0 lost" in page
    assert not [name for name, html in with_result.items() if "<script>alert" in html or "<img src=x" in html]


def test_the_site_is_named_where_it_is_known_and_nowhere_else(tmp_path, monkeypatch):
    import as2

    for site in ("", "https://example.org/a&b/"):
        monkeypatch.setenv("AS2_SITE", site)
        config = SimpleNamespace()
        as2.published_at(None, config)
        builder = SimpleNamespace(format="html", get_target_uri=lambda name: f"{name}.html")
        app = SimpleNamespace(config=config, builder=builder, env=SimpleNamespace(found_docs={"task", "index"}), outdir=tmp_path)
        as2.sitemap(app, None)
        assert config.html_baseurl == config.ogp_site_url == site and config.ogp_social_cards == {"enable": bool(site)}
        assert (tmp_path / "sitemap.xml").is_file() == bool(site)
    addresses = [node.text for node in ET.parse(tmp_path / "sitemap.xml").iter() if node.tag.endswith("loc")]
    assert addresses == ["https://example.org/a&b/index.html", "https://example.org/a&b/task.html"]


@pytest.mark.parametrize("site", ["", "https://example.org/book/"])
def test_a_published_site_links_its_pdf_and_is_the_address_of_the_book(site, directives, monkeypatch):
    import as2

    monkeypatch.setenv("AS2_SITE", site)
    texts = {name: (ROOT / "book" / f"{name}.md").read_text("utf-8") for name in ("index", "references", "task")}
    shown = {name: [text] for name, text in texts.items()}
    for name, source in shown.items():
        as2.with_site(None, name, source)
    link = 'The whole book is also <a href="as2.pdf">one PDF</a>.'
    assert [link in text for (text,) in shown.values()] == [bool(site), False, False]
    assert ("`make pdf`" in shown["index"][0]) == (not site)
    assert shown["task"] == [texts["task"]] and (shown["references"] == [texts["references"]]) == (not site)
    assert shown["references"][0].replace(f"  url = {{{site}}},\n}}", "}") == texts["references"]


@pytest.mark.parametrize("address", ["https://github.com/owner/name", "https://github.com/owner/name.git", "https://example.org/a/b", ""])
def test_the_tour_and_the_lessons_open_in_colab_where_the_repository_is_known(address, monkeypatch):
    import as2

    monkeypatch.setenv("AS2_REPOSITORY", address)
    opened = ("notebooks/tour", "notebooks/lessons/ranking")
    buttons = {name: [] for name in (*opened, "notebooks/pretrain", "index")}
    for name, of_page in buttons.items():
        as2.open_in_colab(None, name, "page.html", {"header_buttons": of_page}, None)
    addresses = {name: [button["url"] for button in of_page] for name, of_page in buttons.items()}
    colab = "https://colab.research.google.com/github/owner/name/blob/main"
    expected = {name: [f"{colab}/{name}.ipynb"] if "github" in address else [] for name in opened}
    assert addresses == expected | {"notebooks/pretrain": [], "index": []}
    assert all((ROOT / f"{name}.ipynb").is_file() for name in opened)


def test_references_are_listed_and_can_be_copied(fresh):
    page = fresh["references.html"]
    keys = re.findall(r"^@\w+\{(\w+),$", (ROOT / "book" / "references.bib").read_text("utf-8"), re.MULTILINE)
    assert page.count('<div class="citation"') == len(keys)
    folded = re.findall(r"<details class=\"[^\"]*sd-dropdown[^>]*>", page)
    assert len(folded) == len(papers.PAPERS) and not any("open" in tag for tag in folded)
    copied = re.sub(r"<[^>]*>", "", page)
    for name in (*papers.PAPERS, "asutil"):
        assert re.search(rf"@\w+\{{{name},", copied), name


@pytest.mark.parametrize(("script", "page"), [("startReordering", "task.html"), ("startBootstrap", "significance.html")])
def test_one_page_alone_has_the_script_of_an_experiment(script, page, fresh):
    assert [name for name, text in fresh.items() if script in text] == [page]


def test_lessons_have_exercises_with_folded_solutions(fresh):
    names = [f"notebooks/lessons/{path.stem}.html" for path in (ROOT / "notebooks" / "lessons").glob("*.ipynb")]
    assert len(names) == 5
    for name in names:
        page = BeautifulSoup(fresh[name], "html.parser")
        asked, answered = page.select("div.exercise"), page.select("div.solution.dropdown")
        assert len(asked) == len(answered) >= 3, name
        assert all(box.select("div.cell") for box in answered), name
        assert "solution-start" not in page.text and "solution-end" not in page.text


def test_pages_say_what_they_are_about(fresh):
    for name in ("index.html", "task.html", "papers/asbert.html"):
        about = re.search(r'<meta name="description" content="([^"]{60,})"', fresh[name])
        assert about and f'<meta property="og:description" content="{about[1]}"' in fresh[name]
        assert "og:image" not in fresh[name] and 'rel="canonical"' not in fresh[name]  # no address is known


def test_no_page_loads_the_script_of_icons(fresh):
    assert not [name for name, text in fresh.items() if "fontawesome.js" in text]
