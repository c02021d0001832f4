"""The visible text of a built book, a file a page, so that two builds can be compared: `python -m tests.trust.page_texts HTML FOLDER`."""

import sys
from pathlib import Path

from bs4 import BeautifulSoup


def text_of(page: Path) -> str:
    """What a reader sees of a page's article, a line a block."""
    article = BeautifulSoup(page.read_text("utf-8"), "html.parser").select_one("article")
    for tag in article.select("script, style, .headerlink, .copybtn") if article else ():
        tag.decompose()
    for tag in article.find_all(["td", "th"]) if article else ():
        tag.insert_after(" | ")
    lines = article.get_text().split("\n") if article else []
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines))) + "\n"


def main(html: Path, folder: Path) -> None:
    for page in sorted(html.rglob("*.html")):
        target = folder / page.relative_to(html).with_suffix(".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(page), "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
