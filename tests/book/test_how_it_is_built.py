"""The page on how the project is built: the picture of folders and imports, the files that it names, and those of CONTRIBUTING.md."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from aslab import papers
from tests import test_import_directions as directions

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "how_it_is_built.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
NS = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def page(directives):
    return directives("as2_built")


# ------------------------------------------------------------------ the picture


def test_every_folder_with_code_is_a_box(page):
    expected = {"asutil/draws", "asutil/losses", "aslab", "aslab/analysis", "aslab/show", "book/_ext", "book/_ext/pages"}
    expected |= {f"asutil/{path.parent.name}" for path in (ROOT / "asutil").glob("*/__init__.py")}
    assert set(page.folders()) == expected


def test_imports_are_those_that_the_test_of_directions_reads(page):
    known = directions.files()
    found = {name: set(directions.imported(name, path, known)) for name, path in known.items()}
    edges = page.folders()
    for folder in ("asutil.corpus", "asutil.models", "asutil.tasks"):
        inside = [name for name in found if name == folder or name.startswith(f"{folder}.")]
        targets = {directions.folder_of(target) for name in inside for target in found[name]} - {
            folder,
            "asutil.lazy",
            "asutil.plugins",
            "asutil",
        }
        assert edges[folder.replace(".", "/")] == {target.replace(".", "/") for target in targets}


def test_only_implied_imports_are_left_out(page):
    edges = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set(), "e": {"d"}}
    assert page.direct(edges) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set(), "e": {"d"}}
    real = page.folders()
    direct = page.direct(real)
    assert all(page.reachable(direct, name) == page.reachable(real, name) for name in real)


def test_every_arrow_points_down_and_packages_do_not_mix(page):
    edges = page.direct(page.folders())
    row = page.rows(edges)
    assert all(row[name] < row[target] for name in edges for target in edges[name])
    bands = [sorted(row[name] for name in row if page.band_of(name) == band) for band in ("book/_ext", "aslab", "asutil")]
    assert bands[0][-1] < bands[1][0] and bands[1][-1] < bands[2][0]


def test_the_drawing_has_a_box_a_folder_and_an_arrowhead_an_import(page):
    edges = page.folders()
    drawing = ET.fromstring(page.drawing(edges))
    words = [node.text for node in drawing.iter(f"{NS}text")]
    assert sorted(word for word in words if ":" not in word) == sorted(name.removeprefix("asutil/") for name in edges)
    heads = sum(node.get("d").count("M") - 1 for node in drawing.iter(f"{NS}path"))
    assert heads == sum(map(len, page.direct(edges).values()))
    width, height = map(float, drawing.get("viewBox").split()[2:])
    boxes = [
        [float(node.get(name)) for name in ("x", "y", "width", "height")] for node in drawing.iter(f"{NS}rect") if node.get("class") == "p"
    ]
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    for one in boxes:
        for other in boxes:
            apart = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0] or one[1] != other[1]
            assert one is other or apart, "no two boxes of a row overlap"
    assert not re.search("#[0-9a-f]{3}|fill=", ET.tostring(drawing, "unicode"))  # the page's colours, light and dark
    assert page.drawing(edges) == page.drawing(page.folders())


# ------------------------------------------------------------------ the files that are named


def test_every_named_file_exists():
    for path in re.findall(r"\{as2-src\}`([^`]+)`", PAGE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`((?:asutil|aslab|book|tests|data_cards|notebooks|experiments)/[\w./]*)`", CONTRIBUTING + PAGE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([\w/]+\.md)\)", PAGE):
        assert (ROOT / "book" / path).is_file(), path


def test_every_paper_has_five_files_to_read():
    _, *parts = re.split(r"^\[.*?\]\(papers/(\w+)\.md\)$", PAGE.split("## Five files")[1].split("## Change it")[0], flags=re.MULTILINE)
    files = {paper: re.findall(r"^\| \{as2-src\}`([^`]+)` \| \S", text, re.MULTILINE) for paper, text in zip(parts[::2], parts[1::2])}
    assert list(files) == list(papers.papers())
    assert all(len(set(names)) == 5 for names in files.values())


def test_the_code_and_tests_that_contributing_names_exist():
    for name in re.findall(r"`(test_\w+)`", CONTRIBUTING):
        assert any(f"def {name}(" in path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")), name
    for name, path in re.findall(r"`([A-Z][A-Z_]+)` (?:in|of) `(\w[\w/]*\.py)`", CONTRIBUTING):
        assert re.search(rf"^{name}\b.*=", (ROOT / path).read_text("utf-8"), re.MULTILINE), (name, path)


def test_functions_that_the_page_names_exist():
    for path, words in re.findall(r"^\| \{as2-src\}`([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE):
        text = (ROOT / path).read_text("utf-8")
        for name in re.findall(r"`(\w+)`", words):
            assert re.search(rf"^\s*(?:class|def) {name}\b", text, re.MULTILINE), (path, name)


def test_the_readme_links_both():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "CONTRIBUTING.md" in text and "book/how_it_is_built.md" in text
