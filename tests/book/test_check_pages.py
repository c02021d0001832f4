"""A made-up page with each fault: the checks of pages in a browser name it, and find nothing in a page without one."""

import pytest

from . import check_pages
from .check_pages import Fault

pytestmark = pytest.mark.skipif(bool(check_pages.missing()), reason=check_pages.missing() or "nothing is missing")

HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A page</title><link rel="icon" href="data:,"><style>body {margin: 8px} a {color: inherit} pre {width: 200px; overflow: auto}
html[data-theme=dark] {background: #111; color: #eee}</style></head>"""
DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
FAULTS = {  # kind -> what stands in the page; the widths and themes in which it is a fault; a part of the element's name
    "overflow": ('<p style="width: 800px">Wide</p>', {(390, "light"), (390, "dark")}, 'p "Wide"'),
    "clipped code": (f'<pre tabindex="0">{"long " * 50}</pre>', {(1400, "light"), (1400, "dark")}, 'pre "long'),
    "no alt": (f'<img src="{DOT}" alt=" ">', None, "img"),
    "axe button-name": ("<details><summary>More</summary><button></button></details>", {(1400, "light"), (390, "light")}, "button"),
    "axe color-contrast": ('<p style="color: #222">Dark</p>', {(1400, "dark"), (390, "dark")}, "p"),
    "console": ("<script>missing()</script>", {(1400, "dark"), (390, "dark")}, "missing is not defined"),
    "other host": ('<link rel="preload" href="http://out.test/x" as="fetch">', {(1400, "dark"), (390, "dark")}, "http://out.test/x"),
    "broken link": ('<a href="none.html">Away</a>', {(390, "dark")}, "/none.html"),
    "heavy": ('<script src="big.js"></script>', {(390, "dark")}, "page"),
}


def page(body: str) -> str:
    return f"{HEAD}<body><main><h1>A page</h1>{body}</main></body></html>"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The faults and weights of one page for each kind, and of three pages without a fault."""
    html = tmp_path_factory.mktemp("html")
    for kind, (body, *_) in FAULTS.items():
        (html / f"{kind.replace(' ', '-')}.html").write_text(page(body), "utf-8")
    (html / "big.js").write_text(" " * check_pages.HEAVIEST, "utf-8")
    (html / "index.html").write_text(page('<p id="here">Good. <a href="other.html#there">On</a> <a href="#here">here</a></p>'), "utf-8")
    (html / "other.html").write_text(page(f'<p id="there">Good.</p><img src="{DOT}" alt="A dot">'), "utf-8")
    wide = '<p style="width: 800px">Wide</p>'
    (html / "boxed.html").write_text(page(f'<div style="overflow: auto" tabindex="0">{wide}</div>'), "utf-8")
    (html / "anchors.html").write_text(page('<a href="other.html#none">None</a>'), "utf-8")
    return check_pages.check(html)


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_named_with_its_page_width_theme_and_element(checked, kind):
    _, states, element = FAULTS[kind]
    faults = [fault for fault in checked[0] if fault.page == f"{kind.replace(' ', '-')}.html" and fault.kind == kind]
    every = {(width, theme) for width in check_pages.WIDTHS for theme in check_pages.THEMES}
    assert {(fault.width, fault.theme) for fault in faults} == (states or every)
    assert all(element in fault.element for fault in faults)


def test_pages_have_no_other_fault(checked):
    faults, weights = checked
    others = [fault for fault in faults if fault.page != f"{fault.kind.replace(' ', '-')}.html"]
    assert [str(fault) for fault in others if fault.kind != "axe image-alt"] == [
        "anchors.html, 390 pixels, dark: broken link: /other.html#none"
    ]
    assert weights["heavy.html"] == check_pages.HEAVIEST + len(page(FAULTS["heavy"][0])) and weights["index.html"] < 1000


def test_a_fault_is_one_line():
    assert str(Fault("a.html", 390, "dark", "overflow", "p", "2 of 1")) == "a.html, 390 pixels, dark: overflow: p (2 of 1)"
