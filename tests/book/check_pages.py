"""The built book in a browser, every page at two widths and in two themes: `python -m tests.book.check_pages [FOLDER]`.

A fault is the page scrolling sideways, an error in the console, a request to another host, a broken link or anchor, an image
without alt text, code that clips at 1400 pixels, a violation of a rule of axe-core (rules of colour in both themes, all others
in the light one), or a page over 500 KB; that of the search, which loads the index of the whole book, may have 1 MB. The weight
of a page is the size on disk, uncompressed, of all files that it asks for when it is loaded, each once, itself included.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

from tests.trust.browser import BOOK, Site, found
from tests.trust.devtools import Tab

ROOT = Path(__file__).resolve().parents[2]
WIDTHS, THEMES, HEIGHT = (1400, 390), ("light", "dark"), 1000
HEAVIEST = 500_000  # bytes
OF_SEARCH = 1_000_000  # its page loads the index of all others
CHECKS = Path(__file__).with_suffix(".js")
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}  # the rules of axe that a theme may break


class Fault(NamedTuple):
    page: str
    width: int
    theme: str
    kind: str
    element: str
    about: str = ""

    def __str__(self):
        return f"{self.page}, {self.width} pixels, {self.theme}: {self.kind}: {self.element}{self.about and f' ({self.about})'}"


def axe() -> Path:
    """axe.min.js of an installed axe-core: where AXE says, else in node_modules here."""
    return Path(os.environ.get("AXE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))


def missing() -> str:
    """What has to be installed first; "" if nothing."""
    if not found():
        return "no Chromium or Chrome: install one (on Debian `apt-get install chromium`)"
    return "" if axe().is_file() else "no axe-core: run `npm install --no-save axe-core` here, or name its axe.min.js in AXE"


def check(html: Path, progress=lambda page: None) -> tuple[list[Fault], dict[str, int]]:
    """All faults of the pages in a folder, and the weight of each page in bytes."""
    names = sorted(path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    names = [name for name in names if not name.startswith("_static/")]
    faults, weights, ids, links = [], {}, {}, {}
    with tempfile.TemporaryDirectory(prefix="pages-") as folder, Site(html) as site, Tab(found(), site, Path(folder)) as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=axe().read_text("utf-8") + CHECKS.read_text("utf-8"))
        tab.call("Emulation.setScrollbarsHidden", hidden=True)
        for name in names:
            progress(name)
            for width in WIDTHS:
                faults += _opened(tab, name, width)
            seen = tab.run("checks.links()")
            ids[name], links[name] = set(seen["ids"]), seen["links"]
            weights[name] = _weight(tab, html)
            if weights[name] > (OF_SEARCH if name == "search.html" else HEAVIEST):
                faults.append(Fault(name, WIDTHS[-1], THEMES[-1], "heavy", "page", f"{weights[name]:,} bytes"))
    return faults + broken_links(html, ids, links), weights


def _opened(tab: Tab, name: str, width: int) -> list[Fault]:
    """What is wrong with a page at one width, in both themes."""
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
    tab.open(f"{BOOK}/{name}")
    tab.run("checks.ready()")
    faults = []
    for theme in THEMES:
        tab.run(f"document.documentElement.dataset.theme = {json.dumps(theme)}")
        wrong = [fault for fault in tab.run("checks.faults()") if fault[0] != "clipped code" or width == WIDTHS[0]]
        wrong += tab.run(f"checks.broken({json.dumps({} if theme == THEMES[0] else COLOURS)})")
        faults += [Fault(name, width, theme, *one) for one in wrong]
    return faults + [Fault(name, width, theme, *one) for one in _reported(tab)]


def _reported(tab: Tab) -> list[tuple[str, str]]:
    """Errors in the console, and requests to other hosts."""
    errors = [told["exceptionDetails"].get("exception", {}).get("description", "") for told in tab.told("Runtime.exceptionThrown")]
    errors += [str(told["args"]) for told in tab.told("Runtime.consoleAPICalled") if told["type"] == "error"]
    entries = [told["entry"] for told in tab.told("Log.entryAdded") if told["entry"]["level"] == "error"]
    errors += [f"{entry['text']} {entry.get('url', '')}" for entry in entries]
    elsewhere = [address for address in _requested(tab) if not address.startswith((f"{BOOK}/", "data:", "blob:"))]
    return [("console", error) for error in errors] + [("other host", address) for address in elsewhere]


def _requested(tab: Tab) -> set[str]:
    return {told["request"]["url"] for told in tab.told("Network.requestWillBeSent")}


def _weight(tab: Tab, html: Path) -> int:
    paths = {unquote(urlsplit(address).path) for address in _requested(tab) if address.startswith(f"{BOOK}/")}
    files = [html / path.lstrip("/") for path in paths]
    return sum(file.stat().st_size for file in files if file.is_file())


def broken_links(html: Path, ids: dict[str, set[str]], links: dict[str, list[str]]) -> list[Fault]:
    """Links to a file or an anchor that the book does not have."""
    faults = []
    for name, addresses in links.items():
        for address in sorted({one for one in addresses if one.startswith(f"{BOOK}/")}):
            path, anchor = urldefrag(address)
            target = unquote(urlsplit(path).path).lstrip("/") or "index.html"
            anchored = not anchor or target not in ids or unquote(anchor) in ids[target]
            if not (html / target).is_file() or not anchored:
                faults.append(Fault(name, WIDTHS[-1], THEMES[-1], "broken link", address.removeprefix(BOOK)))
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.book.check_pages", description=__doc__.splitlines()[0])
    parser.add_argument("html", nargs="?", type=Path, default=ROOT / "book" / "_build" / "html", help="(default: %(default)s)")
    html = parser.parse_args().html
    if not (html / "index.html").is_file():
        parser.error(f"expected a built book in {html}, there is none: run make book first")
    if missing():
        parser.error(missing())
    started = time.monotonic()
    faults, weights = check(html, lambda page: print(page, file=sys.stderr, flush=True))
    for fault in faults:
        print(fault)
    heaviest = sorted(weights, key=weights.get, reverse=True)[:10]
    print("heaviest pages: " + ", ".join(f"{name} {weights[name] / 1000:.0f} KB" for name in heaviest))
    kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(fault.kind for fault in faults).most_common())
    print(f"{len(weights)} pages, {time.monotonic() - started:.0f} s: {kinds or 'no fault'}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
