"""The page on how the project is built: the table of folders and imports, the files that it names, and those of CONTRIBUTING.md."""

import re
from pathlib import Path

import pytest

from aslab import papers
from tests import test_import_directions as directions

from ..conftest import extension

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "how_it_is_built.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


page = extension("as2_built")


# ------------------------------------------------------------------ the table


@pytest.mark.slow
def test_every_folder_with_code_is_a_line(page):
    expected = {"asutil/draws", "asutil/losses", "asutil/registry", "aslab", "aslab/analysis", "aslab/show", "book/_ext", "book/_ext/pages"}
    expected |= {f"asutil/{path.parent.name}" for path in (ROOT / "asutil").glob("*/__init__.py")}
    assert set(page.folders()) == expected


@pytest.mark.slow
def test_imports_are_those_that_the_test_of_directions_reads(page):
    known = directions.files()
    found = {name: set(directions.imported(name, path, known)) for name, path in known.items()}
    edges = page.folders()
    for folder in ("asutil.corpus", "asutil.models", "asutil.tasks"):
        inside = [name for name in found if name == folder or name.startswith(f"{folder}.")]
        targets = {directions.folder_of(target) for name in inside for target in found[name]}
        targets -= {folder, "asutil.lazy", "asutil.plugins", "asutil"}
        assert edges[folder.replace(".", "/")] == {target.replace(".", "/") for target in targets}


@pytest.mark.slow
def test_every_folder_stands_above_those_that_it_imports(page):
    edges, html = page.folders(), page.folder_table()
    names = re.findall(r'<th scope="row"><code class="as2-folder">([^<]+)</code>', html)
    assert sorted(names) == sorted(edges)
    assert all(names.index(name) < names.index(target) for name in edges for target in edges[name])


# ------------------------------------------------------------------ the files that are named


def test_every_named_file_exists():
    for path in re.findall(r"\{as2-src\}`([^`]+)`", PAGE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`((?:asutil|aslab|book|tests|data_cards|notebooks|experiments)/[\w./]*)`", CONTRIBUTING + PAGE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([\w/]+\.md)\)", PAGE):
        assert (ROOT / "book" / path).is_file(), path


def test_files_and_folders_of_the_packages_lead_to_their_first_module(page):
    assert page.described_at(ROOT / "asutil" / "heads" / "ie_k.py") == "api/models.html#asutil.heads.ie_k"
    assert page.described_at(ROOT / "asutil" / "heads") == "api/models.html#asutil.heads.ae_1"
    assert page.described_at(ROOT / "asutil" / "losses.py") == "api/losses.html#asutil.losses"
    others = ("aslab/budgets.yml", "tests/book", "asutil/heads/__init__.py", "experiments/asbert.yml", "LICENSE")
    assert not any(page.described_at(ROOT / name) for name in others)


def test_every_paper_has_five_files_to_read():
    _, *parts = re.split(r"^\[.*?\]\(papers/(\w+)\.md\)$", PAGE.split("## Five files")[1].split("## Change it")[0], flags=re.MULTILINE)
    files = {paper: re.findall(r"^\| \{as2-src\}`([^`]+)` \| \S", text, re.MULTILINE) for paper, text in zip(parts[::2], parts[1::2])}
    assert list(files) == list(papers.PAPERS)
    assert all(len(set(names)) == 5 for names in files.values())


def test_the_code_and_tests_that_contributing_names_exist():
    for name in re.findall(r"`(test_\w+)`", CONTRIBUTING):
        assert any(f"def {name}(" in path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")), name
    for name, path in re.findall(r"`([A-Z][A-Z_]+)` (?:in|of) `(\w[\w/]*\.py)`", CONTRIBUTING):
        assert re.search(rf"^{name}\b.*=", (ROOT / path).read_text("utf-8"), re.MULTILINE), (name, path)


def test_functions_that_the_page_names_exist():
    for path, words in re.findall(r"^\| \{as2-src\}`([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE):
        files = sorted((ROOT / path).glob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        text = "".join(file.read_text("utf-8") for file in files)
        for name in re.findall(r"`(\w+)`", words):
            assert re.search(rf"^\s*(?:class|def) {name}\b", text, re.MULTILINE), (path, name)


def test_the_readme_links_both():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "CONTRIBUTING.md" in text and "book/how_it_is_built.md" in text
