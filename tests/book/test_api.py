"""The pages on the package: every public name once, signatures as written, links that lead somewhere, docstrings in their parts."""

import ast
import re
from collections import Counter
from html import escape
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from ..conftest import extension

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "book" / "api"
SHOWN = {path.stem: re.findall(r"^```\{as2-api\} (.*)$", path.read_text("utf-8"), re.MULTILINE) for path in sorted(PAGES.glob("*.md"))}


api = extension("as2_api")
names = extension("as2_names")


def plain(text, language):
    return f"<pre>{escape(text)}</pre>"


def html_of(section):
    """The HTML of a section and of all in it, in their order."""
    return "".join(node.get("html") or node.astext() for node in section.findall(lambda one: one.tagname in ("raw", "Source")))


def section_of(api, dotted):
    return BeautifulSoup("".join(html_of(api.module_section(path, plain)) for path in api.as2_names.modules_of(dotted)), "html.parser")


def test_every_module_is_on_one_page_and_every_page_in_the_toc(names):
    listed = [names.dotted(path) for pages in SHOWN.values() for line in pages for path in names.modules_of(*line.split())]
    packages = ("asutil", "aslab")
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py") if path.stem not in ("__init__", "__main__", "lazy")]
    expected = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    assert set(listed) == expected and not [name for name, count in Counter(listed).items() if count > 1]
    toc = (ROOT / "book" / "_toc.yml").read_text("utf-8")
    index = (ROOT / "book" / "api.md").read_text("utf-8")
    assert all(f"- file: api/{page}\n" in toc and f"](api/{page}.md)" in index for page in SHOWN)


def test_every_public_definition_of_a_module_has_an_address(names):
    for path in (ROOT / "asutil").rglob("*.py"):
        module = names.dotted(path)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and path.stem not in ("__init__", "__main__", "lazy"):
                public = not node.name.startswith("_") and node.name != "main"
                assert (f"{module}.{node.name}" in names.addresses()) == public, (module, node.name)


def test_a_package_passes_on_names_that_are_described(names):
    assert names.addresses()["asutil.load_ranker"] == names.addresses()["asutil.tasks.rankers.load_ranker"]
    assert names.addresses()["asutil.metrics.ranking"].endswith("api/metrics.html#asutil.metrics.rankings.ranking")
    assert names.addresses()["asutil.tasks.Vectors"].endswith("#asutil.tasks.vector_search.Vectors")


@pytest.mark.parametrize("page", SHOWN)
def test_links_lead_to_entries_and_pages_are_not_too_large(api, page):
    ids, size = set(), 0
    shown = [node for line in SHOWN[page] for path in api.as2_names.modules_of(*line.split()) for node in [api.module_section(path, plain)]]
    for node in shown:
        for section in node.findall(lambda one: one.tagname == "section"):
            ids |= set(section["ids"])
        html = html_of(node)
        size += len(html)
        found = BeautifulSoup(html, "html.parser")
        ids |= {tag["id"] for tag in found.select("[id]")}
        for link in found.select("a"):
            path, _, anchor = link["href"].removeprefix("../").partition("#")
            source = ROOT / "book" / path.replace(".html", ".md")
            assert source.is_file(), link
            assert not path.startswith("api/") or f"{path}#{anchor}" in api.as2_names.addresses().values(), link
    assert {name.rpartition("#")[2] for name in api.as2_names.addresses().values() if name.startswith(f"api/{page}.html")} == ids
    assert size < 500_000


def test_an_entry_has_signature_formula_shapes_errors_example_and_source(api):
    page = section_of(api, "asutil.losses")
    entry = next(one for one in page.select(".as2-api") if one.pre.text.startswith("siamese("))
    parameters = "logits: torch.Tensor,\n    labels: torch.Tensor,\n    total: int | None = None"
    assert entry.pre.text == f"siamese(\n    {parameters},\n) -> torch.Tensor"
    assert entry.select_one("pre.as2-formula").text.startswith("L = -(1 / total) sum_i y_i log s(logits_i)")
    assert [term.text for term in entry.select("dt")] == ["Paper", "Shapes", "Arguments", "Errors", "Deviation", "Example"]
    assert entry.find("a", href="../deviations.html#d-24") and entry.find("a", href="../papers/asbert.html")
    assert entry.select("dd")[-1].text.startswith(">>> siamese(")
    source = (ROOT / "asutil" / "losses.py").read_text("utf-8").split("\n")
    line = next(number for number, text in enumerate(source, 1) if text.startswith("def siamese("))
    details = entry.find_next_sibling(class_="as2-api").details
    assert details.summary.text == f"Source: asutil/losses.py, line {line}"
    assert "def siamese(" in details.text and "The siamese network's loss" not in details.text


def test_a_class_has_its_fields_with_their_comments_and_its_methods(api):
    page = section_of(api, "asutil.data.candidates")
    entry = next(one for one in page.select(".as2-api") if one.pre.text.startswith("Candidate("))
    assert "before: str | None" in entry.pre.text and "the sentence before it in its document" in entry.dl.text
    ranker = section_of(api, "asutil.tasks.base").find(id="asutil.tasks.base.BaseRanker.rank")
    assert ranker.pre.text.startswith("rank(\n    question: str | list[str],\n") and "self" not in ranker.pre.text


def test_names_in_a_docstring_lead_to_their_entries_but_parameters_do_not(names):
    inside = names.Place("asutil.losses", "triplet", ("draws",))
    assert names.address("triplet_kinds", inside) == "api/losses.html#asutil.losses.triplet_kinds"
    assert names.address("calibration.fit", names.Place("asutil.tasks.base", "BaseRanker")).endswith("#asutil.metrics.calibration.fit")
    assert names.address("Comparison", inside).endswith("#asutil.metrics.significance.Comparison")
    assert names.address("draws", inside) is None and names.address("x + 1", inside) is None
    assert names.linked("`<b>` and `triplet`", inside) == "<code>&lt;b&gt;</code> and <code>triplet</code>"


def test_a_module_names_the_commands_that_it_declares(api):
    told = lambda name: [line.code.text for line in section_of(api, name).find_all("p") if line.text.startswith("Also a command")]
    assert told("aslab.blind") == ["asutil blind --help"] and told("aslab.vector_commands") == [
        "asutil vectors embed --help",
        "asutil vectors search --help",
    ]
    assert told("aslab.commands") == [] and told("aslab.slot_cosines") == ["asutil slots --help"]


def test_an_unknown_module_is_refused(names):
    with pytest.raises(ValueError, match=r"no module or package 'asutil\.looses'"):
        names.modules_of("asutil.looses")
