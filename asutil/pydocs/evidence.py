"""The embedded `pydocs_evidence`: questions about parameters of documented functions, whose context is a page of a module's docstrings.

A passage is a function: the first sentence of its docstring, then the head of each entry (`axis : int, optional`), on larger pages with the
first sentence of its description. The evidence of an answer is the head, or the two heads, that give it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, islice
from typing import NamedTuple

from ..draws import text_hash
from . import documents
from .claims import ALIKE, TYPE, fact_of
from .documents import Entry

SIZES = {"train": 96, "dev": 32, "test": 32}  # questions of a wording that asks yes or no, with each answer
# Words and signs of a page -> sentences of each entry. They fit into some 256 and 512 tokens of BERT; a hash draws the page's size.
PAGES = {160: 1, 320: 2}
LARGEST = 10  # passages, as many as HotpotQA's questions have
WORDED = {
    "type": "What type does {name} of {title} have?",
    "default": "What is the default of {name} in {title}?",
    "is": "Is {name} of {title} {value}?",
    "optional": "Is {name} of {title} optional?",
    "same": "Do {name} of {title} and {other} of {second} have the same type?",
}


class Function(NamedTuple):
    module: str
    title: str
    names: set[str]
    numbers: list[int]  # which sentences of the docstring the passage has
    sentences: list[str]
    size: int  # words and signs


class PageQuestion(NamedTuple):
    id: str
    split: str
    wording: str
    kind: str
    text: str
    answer: str
    entries: tuple[Entry, ...]


def rows() -> dict[str, list[dict]]:
    """The questions of each split as rows of the form that a folder of one's own has, as many yes as no as spans."""
    entries = [entry for entry in documents.entries() if "#" not in entry.id]
    functions = [
        [entry for entry in group if entry.sentences is group[0].sentences] for group in _by(entries, _owner).values()
    ]
    modules = {
        room: _by((_function(group, each) for group in functions), lambda function: function.module)
        for room, each in PAGES.items()
    }
    parameters = [entry for group in functions for entry in group if entry.section == "Parameters"]
    parameters.sort(key=lambda entry: text_hash(entry.id, "entry"))
    questions = [*_spans(parameters), *_checks(parameters), *_comparisons(parameters)]
    questions.sort(key=lambda question: text_hash(question.id, "ask"))
    rows = {split: [] for split in SIZES}
    room_of = lambda question: list(PAGES)[text_hash(question.id, "page") % len(PAGES)]
    kinds = _by(questions, lambda question: (question.split, question.wording, question.kind, room_of(question)))
    for (split, wording, _, room), group in kinds.items():
        share = 3 if wording in ("type", "default") else 2
        wanted = SIZES[split] // len(PAGES) * share // 2
        pages = ((question, _page(question, modules[room], room)) for question in group)
        rows[split] += islice((_row(question, page) for question, page in pages if page), wanted)
    return {split: sorted(unsorted, key=lambda row: row["id"]) for split, unsorted in rows.items()}


def _owner(entry: Entry) -> tuple[str, str]:
    return entry.id.rpartition(":")[0].removesuffix(f".{entry.title}"), entry.title


def _function(entries: list[Entry], each: int) -> Function:
    numbers = sorted({0}.union(*(entry.own[:each] for entry in entries)))
    sentences = [entries[0].sentences[i] for i in numbers]
    size = sum(len(re.findall(r"\w+|[^\w\s]", text)) + 2 for text in [entries[0].title, *sentences])  # two markers each
    return Function(*_owner(entries[0]), {entry.name for entry in entries}, numbers, sentences, size)


def _spans(parameters) -> Iterator[PageQuestion]:
    for entry in parameters:
        if (type := _type(entry)) and not re.search(r"[{\['\"]", type) and len(type) <= 40:
            yield _question("type", "span", type, entry)
        if (fact := fact_of(entry)) and fact.kind == "default":
            yield _question("default", "span", fact.value, entry)


def _checks(parameters) -> Iterator[PageQuestion]:
    """Is a parameter of a type, its own or that of another parameter, and is it optional?"""
    previous = {}  # split -> type of the parameter before
    for entry in parameters:
        description = " ".join(entry.sentences[i] for i in entry.own[1:])
        if re.search(r"\boptional\b", entry.signature):
            yield _question("optional", "yes", "yes", entry)
        elif not re.search(r"optional|default|None|=", f"{entry.signature} {description}", re.IGNORECASE):
            yield _question("optional", "no", "no", entry)
        if type := TYPE.get(_type(entry)):
            other = previous.get(entry.split, type)
            if text_hash(entry.id, "is") % 2:
                yield _question("is", "yes", "yes", entry, value=type)
            elif _differ(type, other):
                yield _question("is", "no", "no", entry, value=other)
            previous[entry.split] = type


def _comparisons(parameters) -> Iterator[PageQuestion]:
    """Two parameters of two functions of a module, both in one split, whose types are the same or contradict one another."""
    typed = [entry for entry in parameters if _type(entry) in TYPE]
    for group in _by(typed, lambda entry: (_owner(entry)[0], entry.split)).values():
        for first, second in combinations(group[:8], 2):
            types = TYPE[_type(first)], TYPE[_type(second)]
            same = types[0] == types[1]
            if first.title != second.title and (same or _differ(*types)):
                answer = "yes" if same else "no"
                yield _question("same", answer, answer, first, second)


def _question(wording: str, kind: str, answer: str, entry, *others, value: str = "") -> PageQuestion:
    ids = [entry.id, *(other.id for other in others)]
    second = {"other": others[0].name, "second": others[0].title} if others else {}
    text = WORDED[wording].format(name=entry.name, title=entry.title, value=value, **second)
    return PageQuestion(":".join([wording, *ids]), entry.split, wording, kind, text, answer, (entry, *others))


def _type(entry: Entry) -> str:
    """The type in the head: its text before shape, default and optional."""
    return re.sub(r"(^|,? )(of shape|\(?(shape|optional|defaults?))\b.*$", "", entry.signature).strip(" ,.;")


def _differ(first: str, second: str) -> bool:
    return ALIKE.get(first, first) != ALIKE.get(second, second)


def _page(question: PageQuestion, modules: dict, room: int) -> list[Function]:
    """The question's functions, one that shares a parameter's name with them, and others of the module, shuffled; empty if too few."""
    names = {entry.name for entry in question.entries}
    titles = {entry.title for entry in question.entries}
    module = modules[_owner(question.entries[0])[0]]
    page = [function for function in module if function.title in titles]
    room -= sum(function.size for function in page)
    others = [function for function in module if function.title not in titles and function.size <= room]
    others.sort(key=lambda function: text_hash(f"{question.id} {function.title}", "other"))
    near = next((function for function in others if function.names & names), None)
    others.sort(key=lambda function: function is not near)
    for function in others:
        if function.size <= room and len(page) < LARGEST:
            page.append(function)
            room -= function.size
    if room < 0 or len(page) < 3:
        return []
    return sorted(page, key=lambda function: text_hash(f"{question.id} {function.title}", "place"))


def _row(question: PageQuestion, page: list[Function]) -> dict:
    places = {function.title: number for number, function in enumerate(page)}
    evidence = []
    for entry in question.entries:
        passage = places[entry.title]
        evidence.append([passage, page[passage].numbers.index(entry.own[0])])
    return {
        "id": question.id,
        "question": question.text,
        "passages": [{"title": function.title, "sentences": function.sentences} for function in page],
        "answer": question.answer,
        "kind": question.kind,
        "evidence": evidence,
    }


def _by(things, key) -> dict:
    groups = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups
