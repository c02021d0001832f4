"""The built book as one PDF, printed by headless Chromium: `python book/_ext/as2_pdf.py [FOLDER]`.

All pages become one document in the order of the sidebar, with a title page and a linked table of contents. Ids carry the name of
their page, so that links between pages lead to a place in the PDF. Notebooks, runs and the reference
of the package are left out.
"""

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from bs4 import BeautifulSoup, Tag
from pages import render

from aslab.show.markup import Html

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LEFT_OUT = ("notebooks", "gallery/", "runs", "api")  # how names of pages begin that are not printed
SCREEN = ".headerlink, .copybtn, script, noscript, .tocplaceholder, #print-main-content"  # nothing on paper
TWICE = re.compile(rb"(/Title (?:\(|<FEFF))([^()<>]{2,})\2([)>])")
OPTIONS = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-pdf-header-footer --generate-pdf-document-outline"


def chromium() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def anchor(page: str, fragment: str = "") -> str:
    """The id in the document of a page, or of what has an id in it."""
    return re.sub(r"\W+", "-", page.removesuffix(".html")) + (f"--{fragment}" if fragment else "")


def article(html: Path, page: str, pages: list[str]) -> Tag:
    """The text of a page with everything unfolded; links lead into the document, those to pages that are not printed are plain text."""
    text = read(html / page).select_one("article.bd-article")
    for tag in text.select(SCREEN):
        tag.decompose()
    for tag in text.find_all(True):
        if tag.name == "details":
            tag["open"] = ""
        for name, value in list(tag.attrs.items()):
            if name == "id":
                tag[name] = anchor(page, value)
            elif name == "xlink:href" or (isinstance(value, str) and "url(#" in value):
                tag[name] = re.sub(r"(^|url\()#", rf"\g<1>#{anchor(page)}--", value)
            elif name == "src" and not urlsplit(value).scheme:
                tag[name] = (html / posixpath.dirname(page) / unquote(value)).resolve().as_uri()
            elif (tag.name, name) == ("a", "href") and not urlsplit(value).scheme:
                address, fragment = urldefrag(value)
                target = (
                    posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(address))) if address else page
                )
                tag[name] = f"#{anchor(target, unquote(fragment))}" if target in pages else ""
        if tag.get("href") == "":
            del tag["href"]
    text.name, text["id"] = "section", anchor(page)
    return text


def document(html: Path) -> str:
    """The whole book as one page, in the order of the sidebar, with a table of contents."""
    home = read(html / "index.html")
    sidebar = home.select("nav.bd-links :is(p.caption, a[href])")
    for link in sidebar:
        link["href"] = link.get("href", "").lstrip("#") or ("index.html" if link.name == "a" else "")
    sidebar = [entry for entry in sidebar if not entry["href"].startswith(LEFT_OUT)]
    depths = {entry["href"]: len(entry.find_parents("ul")) for entry in sidebar if (html / entry["href"]).is_file()}
    pages = list(dict.fromkeys(["index.html", *depths]))
    chapters = {page: article(html, page, pages) for page in pages}
    for page, chapter in chapters.items():
        chapter["class"] = "as2-section" if depths.get(page, 1) > 1 else "as2-chapter"
    return render(
        "pdf.html",
        title=home.select_one('meta[property="og:site_name"]')["content"],
        author=home.select_one(".component-author").get_text(" ", strip=True),
        styles=[(html / urlsplit(link["href"]).path).as_uri() for link in home.select('link[rel~="stylesheet"]')],
        contents=[
            (entry.get_text(strip=True), anchor(entry["href"]), depths.get(entry["href"], 0)) for entry in sidebar
        ],
        chapters=[Html(chapter) for chapter in chapters.values()],
    )


def print_pdf(html: Path, browser: str, pdf: Path) -> None:
    """Writes the PDF. Raises: RuntimeError with the browser's words where it writes none."""
    with tempfile.TemporaryDirectory(prefix="pdf-") as folder:
        whole, printed = Path(folder) / "book.html", Path(folder) / "book.pdf"
        whole.write_text(document(html), encoding="utf-8")
        files = [f"--user-data-dir={folder}/browser", f"--print-to-pdf={printed}", whole.as_uri()]
        done = subprocess.run([browser, *OPTIONS.split(), *files], capture_output=True, text=True, timeout=600)
        if not printed.is_file():
            raise RuntimeError(f"{browser} ended with {done.returncode} and wrote no PDF: {done.stderr[-1000:]}")
        pdf.write_bytes(TWICE.sub(once, printed.read_bytes()))


def once(bookmark: re.Match) -> bytes:
    """A bookmark of the same length without the repetition that Chromium writes for a heading it moved to the next page."""
    opened, words, closed = bookmark.groups()
    return opened + words + closed + b" " * len(words)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python book/_ext/as2_pdf.py", description=__doc__.splitlines()[0])
    parser.add_argument("html", nargs="?", type=Path, default=HTML, help="the built book (default: %(default)s)")
    html, browser = parser.parse_args().html.resolve(), chromium()
    if not (html / "index.html").is_file():
        parser.error(f"expected a built book in {html}, there is none: run make book first")
    if browser is None:
        names = ", ".join(NAMES)
        parser.error(
            f"no Chromium or Chrome to print with ({names}): install one, on Debian `apt-get install chromium`"
        )
    pdf = html / "as2.pdf"
    print_pdf(html, browser, pdf)
    print(f"{pdf}: {pdf.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
