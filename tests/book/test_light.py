"""What is done to the built site at its end: names for readers of the screen, less to load, prose first in searches."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from fontTools.ttLib import TTFont

from tests.trust import browser
from tests.trust.devtools import Tab

from ..conftest import extension

light = extension("as2_light")


def test_the_theme_s_pages_get_names_and_lose_empty_headers(light):
    nav = '<a href="datasets.html">Data sets</a><details><summary><span class="toctree-toggle" role="presentation"></span></summary>'
    assert '<summary aria-label="Pages below Data sets"><span class="toctree-toggle"' in light.mended(nav)
    assert light.mended('<div id="pst-primary-sidebar" class="x">') == (
        '<div id="pst-primary-sidebar" role="navigation" aria-label="Book" class="x">'
    )
    button = '<button class="btn search-button-field x" title="Search"{} data-bs-toggle="tooltip">'
    assert light.mended(button.format(' aria-label="Search"')) == button.format("")
    opened = "<summary{}><p>Show code cell source</p>"
    assert light.mended(opened.format(' aria-label="Toggle hidden content"')) == opened.format("")
    line = '<li class="toctree-l2{}"><a class="reference{}" href="a.html">A</a>'
    assert light.mended(line.format("", " internal")) == '<li><a href="a.html">A</a>'
    below = line.format(" has-children", "")
    assert light.mended(below) == below, "the theme moves these for the button beside them"
    row = '<thead>\n<tr class="row-odd"><th class="head"><p>{}</p></th>\n<th class="head"><p></p></th>\n</tr>\n</thead>'
    assert light.mended(f"<table>{row.format('')}<tbody>") == "<table><tbody>"
    assert light.mended(row.format("a")) == row.format("a").replace('<th class="head"><p></p></th>', "<td></td>")
    formula = '<th class="head"><p><math{}><mi>k</mi><mo>&#x00028;</mo></math></p></th>'
    assert light.mended(formula.format("")) == formula.format(' aria-label="k &#x00028;"')
    for html in (formula.format(""), nav, button.format(' aria-label="Search"'), row.format("a")):
        assert light.mended(light.mended(html)) == light.mended(html)  # pages that are not rebuilt are mended again


def test_code_is_the_same_text_in_fewer_bytes_and_no_contents_stand_twice(light):
    code = '<pre><span class="k">def</span><span class="w"> </span><span class="n">a</span><span class="p">():</span></pre>'
    assert light.mended(code) == '<pre><span class="k">def</span> a():</pre>'
    toc = '<div id="jb-print-docs-body" class="onlyprint">\n<div><nav>a</nav></div>\n</div>\n'
    assert light.mended(f'<h1>A</h1>{toc}<div id="searchbox"></div><p>b</p>') == '<h1>A</h1><div id="searchbox"></div><p>b</p>'


@pytest.mark.parametrize(
    ("file", "use"),
    [
        ('<script src="../_static/togglebutton.js?v=b8"></script>', '<div class="admonition dropdown">'),
        ('<link rel="stylesheet" type="text/css" href="_static/sphinx-design.min.css?v=6a" />', '<div class="sd-card">'),
        ('<script src="searchindex.js"></script>', '<div id="search-results"></div>'),
        ('<script src="_static/copybutton.js?v=f2"></script>', '<div class="highlight-bash notranslate"><div class="highlight">'),
    ],
)
def test_a_page_loads_only_what_it_uses(light, file, use):
    page = '<head><script src="_static/doctools.js?v=9a"></script>\n    {}\n</head><p>togglebutton.js searchindex.js</p>'
    assert light.mended(page.format(file)) == page.format("").replace("\n    \n", "\n")
    assert light.mended(page.format(file) + use) == page.format(file) + use


def test_styles_and_icons_that_nothing_uses_are_dropped(light, tmp_path):
    import pydata_sphinx_theme

    static = tmp_path / "_static"
    theme = next(iter(pydata_sphinx_theme.__path__))
    fonts = static / "vendor" / "fontawesome" / "webfonts"
    for path in (fonts, static / "styles", static / "scripts"):
        path.mkdir(parents=True)
    source = f"{theme}/theme/pydata_sphinx_theme/static/vendor/fontawesome/webfonts/fa-solid-900"
    for kind in ("ttf", "woff2"):
        shutil.copy(f"{source}.{kind}", fonts)
    (static / "scripts" / "theme.js").write_text("element.classList.add('added')")
    (static / "scripts" / "fontawesome.js").write_text("")
    (static / "styles" / "theme.css.map").write_text("")
    kept = [
        "/*! Licence */",
        ".shown > b:not(.gone, .never){color:red}",
        "#place{color:red}",
        "@media print{.added{color:red}}",
        ":is(.gone, b) i{color:red}",
        "@font-face{font-family:Icons;src:url(fa.ttf)}",
        r'.fa-list:before{content:"\f03a"}',
    ]
    dropped = ["/* note */", ".gone{color:blue}", "@media screen{b .gone{color:blue}}", "#gone b{color:blue}"]
    dropped.append(r'.fa-bars:before{content:"\f0c9"}')
    css = "\n".join([*kept, *dropped, ".gone, .shown{color:green}"]).replace("url(fa.ttf)", 'url(fa.woff2) format("woff2"),url(fa.ttf)')
    (static / "styles" / "pydata-sphinx-theme.css").write_text(css)
    (tmp_path / "a.html").write_text('<p class="fa-list shown" id="place">')
    for _ in range(2):  # a second build may find what the first one left
        light.lighten(SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=tmp_path), None)
        text = re.sub(r"\s*\n\s*", "\n", (static / "styles" / "pydata-sphinx-theme.css").read_text())
        assert text.split("\n") == [*kept, ".shown{color:green}"]
        assert set(TTFont(fonts / "fa-solid-900.ttf").getBestCmap()) == {0xF03A}
    assert (tmp_path / "a.html").read_text() == '<p class="fa-list shown" id="place">'
    assert sorted(path.name for path in static.rglob("*.*")) == ["fa-solid-900.ttf", "pydata-sphinx-theme.css", "theme.js"]


@pytest.mark.skipif(browser.found() is None, reason="needs Chromium")
def test_prose_ranks_above_notebooks_runs_and_the_package(light, tmp_path):
    config = SimpleNamespace()
    light.rank_prose_first(None, config)
    results = [["notebooks/tour", 30], ["task", 5], ["runs/pretrain-psd", 40], ["api", 3], ["api/data", 50], ["papers/asbert", 9]]
    scorer = Path(config.html_search_scorer).read_text("utf-8")
    with browser.Site(tmp_path) as site, Tab(browser.found(), site, tmp_path / "own") as tab:
        rows = str([[page, "", "", None, score, ""] for page, score in results]).replace("None", "null")
        scores = tab.run(f"var Scorer = {{}};\n{scorer}\n{rows}.map(Scorer.score)")
    ranked = [page for _, (page, _) in sorted(zip(scores, results), reverse=True)]
    assert ranked == ["papers/asbert", "task", "api", "api/data", "runs/pretrain-psd", "notebooks/tour"]
