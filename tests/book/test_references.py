"""References: every entry has a link, and those that readers copy are the entries of the bibliography."""

import re
from pathlib import Path

import pytest
import yaml

from aslab import papers

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", (ROOT / "book" / "references.bib").read_text("utf-8"), re.MULTILINE | re.DOTALL)

PUBLISHERS = (r"arxiv\.org/abs/\d{4}\.\d{5}", r"aclanthology\.org/\S+/", r"doi\.org/10\.\S+", r"www\.jstor\.org/stable/\d+")


def field(body: str, name: str) -> str:
    return " ".join(re.search(rf"^  {name} = \{{(.*?)\}},$", body, re.MULTILINE | re.DOTALL)[1].split())


@pytest.mark.parametrize(("key", "body"), ENTRIES, ids=[key for key, _ in ENTRIES])
def test_every_reference_has_a_link_and_fits_its_column(key, body):
    assert re.fullmatch(rf"https://({'|'.join(PUBLISHERS)})", field(body, "url"))
    assert max(map(len, body.splitlines())) <= 77
    assert field(body, "title") and field(body, "author") and int(field(body, "year")) > 1970


def test_the_papers_are_cited_alike_everywhere():
    entries = dict(ENTRIES)
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["references"]
    named = {reference["url"]: reference for reference in references}
    assert len(named) == len(papers.PAPERS)
    for slug in papers.PAPERS:
        reference = named[field(entries[slug], "url")]
        assert reference["title"] == re.sub(r"[{}]", "", field(entries[slug], "title"))
        authors = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert " and ".join(authors) == field(entries[slug], "author")


def test_the_entry_of_this_book_is_its_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    page = (ROOT / "book" / "references.md").read_text("utf-8")
    (author,) = (one["name"] for one in citation["authors"])
    year = yaml.safe_load((ROOT / "book" / "_config.yml").read_text("utf-8"))["copyright"]
    assert f"{author} ({year}). *{citation['title']}*. Version {citation['version']}." in page
    fields = {"title": citation["title"], "author": f"{{{author}}}", "version": citation["version"], "year": year}
    entry = page.split("@software{asutil,\n")[1].split("\n}")[0]
    assert entry.splitlines() == [f"  {name} = {{{value}}}," for name, value in fields.items()]


def test_papers_give_their_own_entry_to_copy():
    for slug in papers.PAPERS:
        for page in (f"papers/{slug}", "references"):
            assert f':start-at: "{{{slug},"' in (ROOT / "book" / f"{page}.md").read_text("utf-8")
        title = re.sub(r"[{}]", "", field(dict(ENTRIES)[slug], "title"))
        assert f"{{dropdown}} BibTeX: {title}\n" in (ROOT / "book" / "papers" / f"{slug}.md").read_text("utf-8")
