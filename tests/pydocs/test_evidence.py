"""The embedded questions with evidence: answers by an independent reading of their evidence, pages, balance, splits."""

import re
from collections import Counter

import pytest

from asutil.data.long_questions import load_evidence, question_types
from asutil.pydocs import documents as docstrings
from asutil.pydocs import evidence as pydocs_evidence

from .test_claims import WORDS


@pytest.fixture(scope="module")
def pydocs(entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docstrings, "entries", lambda: entries)  # read once
        return load_evidence("pydocs_evidence")


def test_pydocs_has_every_type_on_every_side(pydocs):
    for split, made in pydocs.items():
        each = 3 * pydocs_evidence.SIZES[split]
        assert Counter(question.answers[0].kind for question in made) == {"span": each, "yes": each, "no": each}
        wordings = Counter((question.id.partition(":")[0], question.answers[0].kind) for question in made)
        assert wordings["same", "yes"] == wordings["same", "no"] == pydocs_evidence.SIZES[split]
        assert {len(question.answers[0].evidence) for question in made if question.id.startswith("same:")} == {2}
        assert made.report["dropped"] == {}
    assert question_types("pydocs_evidence", pydocs) == ("span", "yes", "no")


def documented(head):
    """The type that a head says in plain words, read apart from the package."""
    said = re.split(r",? of shape|,? \(?(?:shape|optional|defaults?)\b", head.partition(" : ")[2])[0].strip(" ,.;")
    return next((named for named, ways in WORDS.items() if re.fullmatch(ways, said)), said)


def test_pydocs_answers_follow_from_their_evidence(pydocs):
    for question in [question for made in pydocs.values() for question in made]:
        (answer,) = question.answers
        heads = [question.passages[i].sentences[j] for i, j in sorted(answer.evidence)]
        wording = question.id.partition(":")[0]
        names = re.findall(r"(\w+) (?:of|in) ([\w.]+)", question.text.removeprefix("What is the default of "))
        titles = {question.passages[i].title for i, _ in answer.evidence}
        assert {name for name, _ in names} == {head.partition(" : ")[0] for head in heads}, question
        assert {title.rstrip("?") for _, title in names} == titles
        if wording in ("type", "default"):
            assert answer.kind == "span" and answer.text in heads[0].partition(" : ")[2], question
            if wording == "type":
                assert heads[0].startswith(f"{names[0][0]} : {answer.text}")
        elif wording == "optional":
            assert (answer.kind == "yes") == ("optional" in heads[0]), question
        elif wording == "is":
            asked = next(named for named in WORDS if question.text.endswith(f" {named}?"))
            assert (answer.kind == "yes") == (documented(heads[0]) == asked), question
        else:
            assert (answer.kind == "yes") == (len({documented(head) for head in heads}) == 1), question


def test_pydocs_pages(pydocs, entries):
    found = {(entry.id.partition(":")[0], sentence) for entry in entries for sentence in entry.sentences}
    ids = [question.id for made in pydocs.values() for question in made]
    assert len(set(ids)) == len(ids)
    for question in [question for made in pydocs.values() for question in made]:
        function = question.id.split(":")[1]
        module = next(function.removesuffix(f".{one.title}") for one in question.passages if function.endswith(f".{one.title}"))
        titles = [passage.title for passage in question.passages]
        assert 3 <= len(titles) == len(set(titles)) <= 10
        assert all((f"{module}.{one.title}", text) in found for one in question.passages for text in one.sentences), question.id
        texts = [text for passage in question.passages for text in (passage.title, *passage.sentences)]
        assert sum(len(re.findall(r"\w+|[^\w\s]", text)) + 2 for text in texts) <= max(pydocs_evidence.PAGES)
    first = Counter(next(iter(question.answers[0].evidence))[0] for question in pydocs["train"])
    assert first[0] < len(pydocs["train"]) / 2, "the asked function is not always the first"


def test_pydocs_asks_about_no_function_on_two_sides(pydocs):
    asked = {
        split: {question.passages[i].title.rpartition(".")[2] for question in made for i, _ in question.answers[0].evidence}
        for split, made in pydocs.items()
    }
    assert not asked["train"] & asked["dev"] | asked["train"] & asked["test"] | asked["dev"] & asked["test"]
    assert all(docstrings.split_of(name) == split for split, names in asked.items() for name in names)


def test_order_of_reading_changes_nothing(entries, monkeypatch):
    functions = {}
    for entry in entries:
        if entry.id.startswith("numpy."):
            functions.setdefault(entry.id.partition(":")[0], []).append(entry)
    made = []
    for order in (list(functions.values()), list(functions.values())[::-1]):
        monkeypatch.setattr(docstrings, "entries", lambda order=order: [entry for group in order for entry in group])
        made.append(pydocs_evidence.rows())
    assert made[0] == made[1] and len(made[0]["train"]) > 300
