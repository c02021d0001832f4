"""The pages on the package: every module on one page, signatures, docstrings in their parts, links that lead somewhere, sources."""

import ast
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.application import Sphinx

from aslab import papers

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "book" / "api"
SHOWN = {path.stem: re.findall(r"^```\{as2-api\} (.*)$", path.read_text("utf-8"), re.MULTILINE) for path in sorted(PAGES.glob("*.md"))}
SMALL = "asutil.losses asutil.data.candidates asutil.data.answers asutil.tasks.rank aslab.blind aslab.slot_cosines"


@pytest.fixture
def api(directives):
    return directives("as2_api")


def build(source, built, settings):
    """The status of Sphinx, in a process of its own: autodoc gives the functions that it reads another signature."""
    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    app = Sphinx(source, None, built, built / "doctrees", "html", settings, status=None, warningiserror=True, keep_going=True)
    app.build()
    return app.statuscode


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page on some modules, built with the settings of the book."""
    source = tmp_path_factory.mktemp("source")
    orphan = "---\norphan: true\n---\n"
    for name in ("index", *(f"papers/{slug}" for slug in papers.papers())):
        (source / name).parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(f"{orphan}# {name}")
    (source / "api").mkdir()
    (source / "api" / "page.md").write_text(f"{orphan}# Page\n\n{{as2-name}}`asutil.data.Candidate`\n\n```{{as2-api}} {SMALL}\n```\n")
    config = yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
    own = {name: value for name, value in config.items() if name.startswith(("auto", "python_", "toc_", "add_"))}
    settings = own | {"extensions": ["myst_parser", "as2_api"]}
    built = source / "built"
    with pytest.MonkeyPatch.context() as patch, ProcessPoolExecutor(1, get_context("spawn")) as process:
        patch.setenv("ASUTIL_PROJECT", str(ROOT))
        assert process.submit(build, source, built, settings).result() == 0
    return BeautifulSoup((built / "api" / "page.html").read_text("utf-8"), "html.parser")


def entry_of(page, name):
    return page.find("dt", id=name).parent


def test_every_module_is_on_one_page_and_every_page_in_the_toc(api):
    listed = [name for lines in SHOWN.values() for line in lines for name in api.modules_of(*line.split())]
    paths = [path for package in ("asutil", "aslab") for path in (ROOT / package).rglob("*.py")]
    expected = {api.dotted(path) for path in paths if path.stem not in ("__init__", "__main__", "lazy")}
    assert set(listed) == expected and not [name for name, count in Counter(listed).items() if count > 1]
    toc = (ROOT / "book" / "_toc.yml").read_text("utf-8")
    index = (ROOT / "book" / "api.md").read_text("utf-8")
    assert all(f"- file: api/{page}\n" in toc and f"](api/{page}.md)" in index for page in SHOWN)
    with pytest.raises(ValueError, match="no module or package 'asutil.loss'"):
        api.modules_of("asutil.loss")


@pytest.mark.slow
def test_every_public_definition_of_a_module_has_an_entry(page):
    entries = {tag["id"] for tag in page.select("dt[id]")}
    for module in SMALL.split():
        path = ROOT / f"{module.replace('.', '/')}.py"
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                public = not node.name.startswith("_") and node.name not in ("main", "command")
                assert (f"{module}.{node.name}" in entries) == public, (module, node.name)


def test_fields_and_private_names_have_no_entry_but_properties_do(api):
    thing = cached_property(lambda self: 1)
    assert api.skip(None, "class", "first", thing, False, None) is None and api.skip(None, "class", "_first", thing, False, None)
    assert api.skip(None, "class", "first", property(), False, None) is None and api.skip(None, "class", "first", 1, False, None)


def test_links_lead_to_entries_and_to_pages(page):
    ids = {tag["id"] for tag in page.select("[id]")}
    for link in page.select("a.reference.internal"):
        address, _, anchor = link["href"].partition("#")
        assert anchor in ids if not address else address.startswith(("../papers/", "../index.html", "../genindex.html")), link


def test_an_entry_has_signature_formula_shapes_errors_example_and_source(page):
    entry = entry_of(page, "asutil.losses.siamese")
    assert re.sub(r"\s+", "", entry.dt.text) == "siamese(logits:Tensor,labels:Tensor,total:int|None=None,)→Tensor¶"
    assert entry.select_one(".as2-formula").text.startswith("L = -(1 / total) sum_i y_i log s(logits_i)")
    labels = [term.text for term in entry.select("dl.field-list > dt")]
    assert labels == ["Paper:", "Shapes:", "Arguments:", "Errors:", "Deviation:", "Example:"]
    assert entry.find("a", href="../deviations.html#d-24") and entry.find("a", href="../papers/asbert.html")
    assert entry.select("dl.field-list > dd")[-1].text.lstrip().startswith(">>> siamese(")
    source = (ROOT / "asutil" / "losses.py").read_text("utf-8").split("\n")
    line = next(number for number, text in enumerate(source, 1) if text.startswith("def siamese("))
    assert entry.details.summary.text == f"Source: asutil/losses.py, line {line}"
    assert "def siamese(" in entry.details.text and "The siamese network's loss" not in entry.details.text


def test_a_class_has_its_fields_with_their_comments_and_its_methods(page):
    entry = entry_of(page, "asutil.data.candidates.Candidate")
    assert re.search(r"before: *str *\| *None", entry.dt.text) and "the sentence before it in its document" in entry.text
    method = entry_of(page, "asutil.tasks.rank.BaseRanker.rank")
    assert method.dt.text.lstrip().startswith("rank(") and "self" not in method.dt.text


def test_what_a_package_passes_on_leads_to_where_it_is_defined(page):
    names = {link.text: link["href"] for link in page.select("table.autosummary td:first-child a")}
    assert names["asutil.data.Candidate"] == "#asutil.data.candidates.Candidate" and len(names) > 2
    assert page.p.a["href"] == "#asutil.data.candidates.Candidate"


def test_names_in_a_docstring_lead_to_their_entries_but_parameters_do_not(api):
    words = api.marked(r"`<b>` and `draws` of a*b, D-24, asbert, papers/asbert \n", ("draws",)).replace(r"\ ", "")
    assert words == (
        r":py:obj:`<b>` and ``draws`` of a\*b, `D-24 <../deviations.html#d-24>`__, :doc:`asbert </papers/asbert>`, papers/asbert \\n"
    )
    assert api.defined("asutil.metrics.ranking") == "asutil.metrics.rankings.ranking"
    assert api.defined("asutil.load_ranker") == "asutil.tasks.rankers.load_ranker" and api.defined("asutil.nothing") == "asutil.nothing"


def test_a_module_names_the_commands_that_it_declares(page):
    told = lambda name: [line.code.text for line in page.find(id=f"module-{name}").find_all("p") if line.text.startswith("Also a command")]
    assert told("aslab.blind") == ["asutil blind --help"] and told("aslab.slot_cosines") == ["asutil slots --help"]
    assert told("asutil.losses") == []
