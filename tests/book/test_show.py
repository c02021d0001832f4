"""The directives that show what a function returns: which errors are a page's, and which files a page depends on."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def page(directives):
    directives("as2")
    return directives("as2_pages")


@pytest.fixture
def env():
    files = []
    return SimpleNamespace(docname="a", note_dependency=files.append, files=files, found_docs={"a"})


def shown(page, env, monkeypatch, function, *arguments, **entry):
    """The HTML of a directive with these arguments."""
    import pages

    known = pages.Entry(function, **{"sources": "", "empty": "Not run.", "files": (), "on_page": False} | entry)
    monkeypatch.setitem(pages.REGISTRY, "made-up", known)
    monkeypatch.setattr(page.Show, "env", env)
    monkeypatch.setattr(page.Show, "error", lambda self, text: RuntimeError(text))
    directive = object.__new__(page.Show)
    directive.arguments = ["made-up", *arguments]
    return directive.run()[0].astext()


def test_only_bad_arguments_are_an_error_of_the_page(page, env, monkeypatch):
    assert shown(page, env, monkeypatch, lambda name: f"<p>{name}</p>", "a") == "<p>a</p>"
    assert shown(page, env, monkeypatch, lambda: "") == '<p class="as2-note">Not run.</p>'
    with pytest.raises(RuntimeError, match="missing a required argument: 'name'"):
        shown(page, env, monkeypatch, lambda name: name)
    with pytest.raises(RuntimeError, match="too many positional arguments"):
        shown(page, env, monkeypatch, lambda: "", "a")
    with pytest.raises(RuntimeError, match="invalid literal for int"):
        shown(page, env, monkeypatch, lambda name: str(int(name)), "a")
    with pytest.raises(TypeError, match="can only concatenate"):
        shown(page, env, monkeypatch, lambda name: name + 1, "a")


def test_a_name_is_registered_once_and_a_paper_is_read_for_its_function(page):
    import pages

    with pytest.raises(ValueError, match="costs is registered already, by as2_costs"):
        pages.register("costs")(lambda: "")
    known = pages.REGISTRY["evidence-near"].function
    page.bind(known, "evidence_contrast", "qasper")
    with pytest.raises(ValueError, match="missing a required argument: 'dataset'"):
        page.bind(known, "evidence_contrast")


def test_a_page_depends_on_the_files_of_its_function_and_of_its_kind(page, env, monkeypatch):
    shown(page, env, monkeypatch, lambda: "", sources="costs", files=["book/deviations.md"])
    names = {path.removeprefix(f"{page.ROOT}/") for path in env.files}
    assert {"book/deviations.md", "aslab/analysis/costs.py", "aslab/budgets.yml", "notebooks/pretrain.ipynb"} <= names
    assert page.outdated(None, env, (), (), ()) == []
    monkeypatch.setitem(page.SOURCES, "costs", lambda _: [])
    assert page.outdated(None, env, (), (), ()) == ["a"]


def test_the_version_of_all_pages_follows_from_the_sources_of_the_extension(page, directives, monkeypatch):
    from pathlib import Path

    as2 = directives("as2")
    before, read = as2.sources_version(), Path.read_bytes
    assert before == as2.sources_version() > 0
    for name in ("note.html", "scorer.js", "pages/mined.py"):
        monkeypatch.setattr(Path, "read_bytes", lambda path, name=name: read(path) + b"#" * path.as_posix().endswith(name))
        assert as2.sources_version() != before, name
