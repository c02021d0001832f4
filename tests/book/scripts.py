"""What the scripts of pages compute, in a browser."""

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from tests.trust import browser

FOLDER = Path(__file__).resolve().parents[2] / "book" / "_ext"
needs_chromium = pytest.mark.skipif(browser.found() is None, reason="needs Chromium")


def computed(script: str, folder: Path, body: str, expression: str):
    """The value of `seen` after an expression ran on a page with a script, which asks nothing of another host."""
    site = folder / "site"
    site.mkdir()
    shutil.copy(FOLDER / script, site)
    code = f"{expression}; document.body.append(Object.assign(document.createElement('pre'), {{textContent: JSON.stringify(seen)}}));"
    (site / "page.html").write_text(f"<meta charset=utf-8><body>{body}<script src={script}></script><script>{code}</script>", "utf-8")
    with browser.Site(site) as served:
        dom = browser.opened(browser.found(), served, "page.html", folder / "browser", milliseconds=20_000)
        assert not served.elsewhere()
    return json.loads(unescape(re.search(r"<pre>(.*?)</pre>", dom, re.DOTALL)[1]))
