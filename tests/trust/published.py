"""What is published, pages and records: texts stand in them as text, and nothing tells of the machine that made them."""

import getpass
import re
import socket
import sys
import tempfile
from functools import cache
from pathlib import Path

from tqdm import tqdm

from tests.trust import browser, hostile_book, must
from tests.trust.payloads import PAYLOADS

STRANGER = {"user": "zquserofnobody", "host": "zqhostofnobody", "home": "zqhomeofnobody", "temporary": "zqplaceofnobody"}
COMMON = {"root", "user", "runner", "ubuntu", "debian", "docker", "localhost", "build", "test", "admin"}  # words that a page may well say
PLACES = re.compile(r"(?<![\w.:/~>-])/(?:home|root|tmp|Users|private|mnt|srv|work|scratch)/[\w.-]+|\b[A-Za-z]:\\[\w]+")


def pages(html: Path, full: bool, folder: Path) -> dict:
    """Payloads stand in pages as text alone: in what was built, and in what a browser makes of it."""
    built = {path.relative_to(html).as_posix(): path.read_text(encoding="utf-8") for path in sorted(html.rglob("*.html"))}
    read = {name: browser.Page(text) for name, text in built.items() if not name.startswith("_static/")}
    for name, page in read.items():
        must(not page.live, f"{name}: a payload is markup: {page.live[:3]}")
    whole = "\n".join(page.text for page in read.values())
    lost = [text for text in PAYLOADS if " ".join(text.split()) not in whole]
    must(not lost, f"every payload should stand in a page as it was written, {len(lost)} do not: {lost[:2]}")
    must(not re.search(r"root:[^:]*:0:0:|\b1337\b", whole), "a payload brought in a file or was calculated")
    must(not any("pwn90" in name or hostile_book.LINKED in name for name in built), "a folder whose name is markup, or a link, has no page")
    shown = [name for name, page in read.items() if browser.MARK.search(page.text)]
    must(len(shown) >= 4, f"payloads were planted in four pages at least, got {shown}")
    opened = list(read) if full else [*shown, "search.html"]
    return {"pages_read": len(read), **in_browser(html, opened, read, folder)}


def in_browser(html: Path, names: list[str], read: dict, folder: Path) -> dict:
    """The same in headless Chromium, where there is one: no payload runs and no request leaves; in a page that is all markup they do."""
    chromium = browser.found()
    if chromium is None:
        return {"browser": "none", "pages_opened": 0}
    own = folder / "browser"
    hostile_book.control(folder / "control" / "control.html")
    with browser.Site(folder / "control") as site:
        browser.opened(chromium, site, "control.html", own, 8000)
        live = {found for address in site.elsewhere() for found in browser.MARK.findall(address)}
        must(len(live) >= 25, f"in a page that takes them for markup half of the payloads at least should run, got {len(live)}")
    with browser.Site(html) as site:
        for name in tqdm(names, desc="pages", leave=False):
            dom = browser.Page(browser.opened(chromium, site, f"{name}?q=pwn" if name == "search.html" else name, own))
            must(not dom.live, f"{name} in a browser: a payload runs or is markup: {dom.live[:3]}")
            must(read[name].text[:100] in dom.text or name == "search.html", f"{name} was not opened: {dom.text[:200]}")
        must(not site.elsewhere(), f"no request leaves, got {site.elsewhere()[:3]}")
    figures = {"browser": Path(chromium).name, "payloads_that_run_in_a_bare_page": len(live), "pages_opened": len(names)}
    return figures | {"scripts_run": 0, "requests_out": 0}


# ------------------------------------------------------------------ what pages and records tell of a machine


def traces(html: Path, root: Path, folder: Path, runs: list[Path]) -> int:
    """Pages, their sources and records carry no place, user or host of this machine. Raises: Broken with file and what stands there."""
    published = [path for path in html.rglob("*") if path.suffix in (".html", ".ipynb", ".md", ".txt", ".js", ".json", ".svg")]
    files = [path for path in published if path.is_file() and "_static" not in path.relative_to(html).parts]
    files += [*(root / "results").rglob("*.json"), *(hostile_book.ROOT / "results").rglob("*.json"), *(run / "record.json" for run in runs)]
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.name}: {text[max(0, at.start() - 60) : at.end() + 30]!r}" for by in telling(folder) for at in by.finditer(text)]
    must(len(files) > 200, f"pages and records were expected, got {len(files)} files")
    must(not found, f"a place or a name of this machine stands in {len(found)} places: {found[:3]}")
    return len(found)


@cache
def telling(folder: Path) -> list[re.Pattern]:
    """What no page or record may hold: the places and names of this machine, and anything in the form of a place."""
    own = {name for name in (getpass.getuser(), socket.gethostname(), socket.getfqdn()) if len(name) > 3 and name.lower() not in COMMON}
    places = {str(place) for place in (folder, hostile_book.ROOT, sys.prefix, Path.home(), Path(tempfile.gettempdir()))}
    names = [rf"\b{re.escape(name)}\b" for name in (*own, *STRANGER.values())]
    return [PLACES, re.compile("|".join([*map(re.escape, places - {"/", "/root", "/tmp"}), *names]))]
