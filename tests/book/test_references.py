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
    assert len(named) == len(papers.papers())
    for slug in papers.papers():
        reference = named[field(entries[slug], "url")]
        assert reference["title"] == re.sub(r"[{}]", "", field(entries[slug], "title"))
        authors = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert " and ".join(authors) == field(entries[slug], "author")


def test_an_entry_is_printed_as_the_bibliography_has_it(directives):
    references = directives("as2_references")
    text = references.entry("asbert")
    assert text.startswith("@misc{asbert,\n") and text.endswith("\n}") and text.count("@") == 1
    assert references.title(text) == "ASBERT: Siamese and Triplet network embedding for open question answering"
    assert f"{text}\n" in references.REFERENCES.read_text("utf-8")
    with pytest.raises(ValueError, match=r"no asbertt \(there are: sentence_objectives, "):
        references.entry("asbertt")


def test_the_entry_of_this_book_follows_from_its_citation_file(directives):
    citation = {"title": "name: what it is", "authors": [{"name": "A group"}, {"name": "Another"}], "version": "1.2"}
    entry = directives("as2_references").entry_of_this_book
    assert entry(citation, "2026", "").splitlines() == [
        "@software{name,",
        "  title = {name: what it is},",
        "  author = {{A group} and {Another}},",
        "  version = {1.2},",
        "  year = {2026},",
        "}",
    ]
    assert entry(citation, "2026", "https://example.org/").splitlines()[-2] == "  url = {https://example.org/},"
