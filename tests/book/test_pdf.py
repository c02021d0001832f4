"""The book as one document and as a PDF: ids are unique, links lead into it, and what is not printed is no link."""

import re
import sys

import pytest
from bs4 import BeautifulSoup

from tests.trust import browser

from ..conftest import extension

SIDEBAR = """<nav class="bd-links"><div class="bd-toc-item"><ul><li><a href="#">Home</a></li></ul><p class="caption">Part</p>
<ul><li class="x"><a href="papers/one.html">One</a><details><summary>x</summary><ul><li><a href="papers/two.html">Two</a></li></ul>
</details></li><li><a href="runs.html">Runs</a><details><summary>x</summary><ul><li><a href="runs/a.html">a</a></li></ul>
</details></li></ul>
</div></nav><p class="component-author">By nobody</p>"""
PAGES = {
    "index.html": '<h1 id="top">Home</h1><a href="papers/one.html#top">one</a> <a href="#top">up</a> <a href="https://a.test">out</a>',
    "papers/one.html": '<h1 id="top">One</h1><a href="../index.html">home</a> <a href="two.html#b">two</a>'
    ' <a href="../runs/a.html">run</a>'
    '<details><summary>More</summary><p id="c">Folded away</p></details><a class="headerlink" href="#c">#</a>'
    '<svg viewBox="0 0 9 9"><clipPath id="k"></clipPath><path clip-path="url(#k)"/><use xlink:href="#k"/></svg>',
    "papers/two.html": '<h1 id="top">Two</h1><p id="b">There</p><script>alert(1)</script><img src="../a%20b.png">',
    "runs/a.html": "<h1>A run</h1>",
    "runs.html": "<h1>Runs</h1>",
}


pdf = extension("as2_pdf")


@pytest.fixture
def html(tmp_path):
    for name, text in PAGES.items():
        path = tmp_path / "html" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = '<meta property="og:site_name" content="A &amp; B"><link rel="stylesheet" href="_static/as2.css?v=1">'
        path.write_text(f'<html><head>{head}</head><body>{SIDEBAR}<article class="bd-article">{text}</article></body></html>', "utf-8")
    return tmp_path / "html"


def test_pages_become_one_document_in_their_order(pdf, html):
    page = BeautifulSoup(pdf.document(html), "html.parser")
    assert [section["id"] for section in page.select("section")] == ["index", "papers-one", "papers-two"]
    assert [section["class"] for section in page.select("section")] == [["as2-chapter"], ["as2-chapter"], ["as2-section"]]
    ids = [tag["id"] for tag in page.select("[id]")]
    assert len(set(ids)) == len(ids) and {"index--top", "papers-one--top", "papers-one--c", "papers-two--b"} <= set(ids)
    assert [(link.get_text(), link.get("href")) for link in page.select("a")] == [
        *[("Home", "#index"), ("One", "#papers-one"), ("Two", "#papers-two")],
        *[("one", "#papers-one--top"), ("up", "#index--top"), ("out", "https://a.test")],
        *[("home", "#index"), ("two", "#papers-two--b"), ("run", None)],
    ]
    assert page.select_one("section details").has_attr("open") and "alert" not in str(page)
    assert page.path["clip-path"] == "url(#papers-one--k)" and page.use["xlink:href"] == "#papers-one--k"
    assert page.img["src"] == (html / "a b.png").as_uri() and page.link["href"] == (html / "_static/as2.css").as_uri()
    assert page.title.get_text() == "A & B" and "By nobody" in page.header.get_text()


def test_what_is_missing_is_said(pdf, html, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pdf, "chromium", lambda: None)
    for folder, said in ((tmp_path, "there is none: run make book first"), (html, "install one, on Debian `apt-get install chromium`")):
        monkeypatch.setattr(sys, "argv", ["as2_pdf.py", str(folder)])
        with pytest.raises(SystemExit) as stopped:
            pdf.main()
        assert stopped.value.code == 2 and said in capsys.readouterr().err


def test_a_bookmark_says_its_words_once(pdf):
    made = b"/Title (The claimThe claim)\n/Title (papa and)\n/Title <FEFF00410042004100420>\n/Title <FEFF0041004200410042>"
    once = b"/Title (The claim)         \n/Title (papa and)\n/Title <FEFF00410042004100420>\n/Title <FEFF00410042>        "
    assert pdf.TWICE.sub(pdf.once, made) == once


@pytest.mark.slow
@pytest.mark.skipif(browser.found() is None, reason="needs Chromium")
def test_a_pdf_has_links_bookmarks_and_every_chapter(pdf, html, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["as2_pdf.py", str(html)])
    assert pdf.main() == 0 and "as2.pdf" in capsys.readouterr().out
    made = (html / "as2.pdf").read_bytes()
    assert made.startswith(b"%PDF") and b"/Outlines" in made
    assert len(re.findall(rb"/Subtype\s*/Link", made)) == 8 and made.count(b"a.test") == 1
    with pytest.raises(RuntimeError, match="wrote no PDF"):
        pdf.print_pdf(html, "false", html / "other.pdf")
