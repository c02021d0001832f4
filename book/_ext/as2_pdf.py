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
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls")  # attributes that name an id


def chromium() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def slug(page: str) -> str:
    """The name of a page as the beginning of its ids."""
    return re.sub(r"\W+", "-", page.removesuffix(".html"))


# ------------------------------------------------------------------ one document


def contents(home: BeautifulSoup) -> list[Tag]:
    """The captions and lists of the sidebar, with links to the pages that are printed."""
    parts = home.select("nav.bd-links .bd-toc-item > :is(p, ul)")
    for part in parts:
        for folded in part.select("details"):
            folded.summary.decompose()
            folded.unwrap()
        for item in part.select("li"):
            if not item.decomposed and item.a["href"].startswith(LEFT_OUT):
                item.decompose()
        for tag in (part, *part.find_all(True)):
            tag.attrs = {"href": tag["href"].lstrip("#") or "index.html"} if tag.name == "a" else {}
    return parts


def article(html: Path, page: str, pages: list[str]) -> Tag:
    """The text of a page with everything unfolded, its ids its own, its links leading into the document."""
    found = read(html / page).select_one("article.bd-article")
    for tag in found.select(SCREEN):
        tag.decompose()
    for details in found.select("details"):
        details["open"] = ""
    own = slug(page)
    for tag in found.find_all(True):
        for name, value in list(tag.attrs.items()):
            if name == "id" or name in REFERENCES:
                tag[name] = " ".join(f"{own}--{one}" for one in value.split())
            elif name == "xlink:href" or (isinstance(value, str) and "url(#" in value):
                tag[name] = re.sub(r"(^|url\()#", rf"\g<1>#{own}--", value)
    for image in found.select("img[src]"):
        if not urlsplit(image["src"]).scheme:
            image["src"] = (html / posixpath.dirname(page) / unquote(image["src"])).resolve().as_uri()
    for link in found.select("a[href]"):
        if not urlsplit(link["href"]).scheme:
            lead(link, page, pages)
    found.name, found["id"] = "section", own
    return found


def lead(link: Tag, page: str, pages: list[str]) -> None:
    """Makes a link between pages one within the document; one to a page that is not printed becomes plain text."""
    address, anchor = urldefrag(link["href"])
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(address))) if address else page
    if target in pages:
        link["href"] = f"#{slug(target)}" + (f"--{unquote(anchor)}" if anchor else "")
    else:
        del link["href"]


def document(html: Path) -> str:
    """The whole book as one page."""
    home = read(html / "index.html")
    title = home.select_one('meta[property="og:site_name"]')["content"]
    author = home.select_one(".component-author").get_text(" ", strip=True)
    styles = [link["href"] for link in home.select('link[rel~="stylesheet"]')]
    parts = contents(home)
    pages = ["index.html", *(link["href"] for part in parts for link in part.select("a[href]"))]
    pages = list(dict.fromkeys(page for page in pages if (html / page).is_file()))
    nested = {link["href"] for part in parts for link in part.select("li li a")}
    chapters = {page: article(html, page, pages) for page in pages}
    for page, chapter in chapters.items():
        chapter["class"] = "as2-section" if page in nested else "as2-chapter"
    for link in [link for part in parts for link in part.select("a[href]")]:
        lead(link, "index.html", pages)
    styles = [(html / urlsplit(style).path).as_uri() for style in styles]
    contents_of_book, articles = ([Html(tag) for tag in tags] for tags in (parts, chapters.values()))
    return render("pdf.html", title=title, author=author, styles=styles, contents=contents_of_book, chapters=articles)


# ------------------------------------------------------------------ paper


def print_pdf(html: Path, browser: str, pdf: Path) -> None:
    """Writes the PDF. Raises: RuntimeError with the browser's words where it writes none."""
    with tempfile.TemporaryDirectory(prefix="pdf-") as folder:
        whole = Path(folder) / "book.html"
        whole.write_text(document(html), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder}/browser",
        ]
        options += ["--no-pdf-header-footer", "--generate-pdf-document-outline", f"--print-to-pdf={folder}/book.pdf"]
        done = subprocess.run([browser, *options, whole.as_uri()], capture_output=True, text=True, timeout=600)
        if not (Path(folder) / "book.pdf").is_file():
            raise RuntimeError(f"{browser} ended with {done.returncode} and wrote no PDF: {done.stderr[-1000:]}")
        pdf.write_bytes(TWICE.sub(once, (Path(folder) / "book.pdf").read_bytes()))


def once(bookmark: re.Match) -> bytes:
    """A bookmark of the same length without the repetition that Chromium writes for a heading it moved to the next page."""
    opened, words, closed = bookmark.groups()
    return opened + words + closed + b" " * len(words)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python book/_ext/as2_pdf.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "html", nargs="?", type=Path, default=HTML, help="the folder of the built book (default: %(default)s)"
    )
    html = parser.parse_args().html.resolve()
    if not (html / "index.html").is_file():
        parser.error(f"expected a built book in {html}, there is none: run make book first")
    browser = chromium()
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
