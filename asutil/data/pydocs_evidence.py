"""The embedded `pydocs_evidence`: questions about parameters of documented functions, whose context is a page of a module's docstrings.

A passage is a function: the first sentence of its docstring, then the head of each entry (`axis : int, optional`), on larger pages with the
first sentence of its description. The evidence of an answer is the head, or the two heads, that it can be read from.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from ..corpus import docstrings
from .pydocs_claims import ALIKE, TYPE, _fact

SIZES = {"train": 96, "dev": 32, "test": 32}  # questions of a wording that asks yes or no, with each answer
PAGES = {
    160: 1,
    320: 2,
}  # words and signs of a page -> sentences of each entry: what some 256 and 512 tokens of BERT hold; drawn by hash
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


class Asked(NamedTuple):
    id: str
    side: str
    wording: str
    kind: str
    text: str
    answer: str
    entries: tuple[docstrings.Entry, ...]


def rows() -> dict[str, list[dict]]:
    """The questions of each side as rows of the form that a folder of one's own has, as many yes as no as spans."""
    entries = [entry for entry in docstrings.entries() if "#" not in entry.id]
    groups = [
        [entry for entry in group if entry.sentences is group[0].sentences] for group in _by(entries, _owner).values()
    ]
    modules = {
        room: _by((_function(group, each) for group in groups), lambda function: function.module)
        for room, each in PAGES.items()
    }
    parameters = [entry for group in groups for entry in group if entry.section == "Parameters"]
    parameters.sort(key=lambda entry: _hash("entry", entry.id))
    asked = sorted(
        [*_spans(parameters), *_checks(parameters), *_comparisons(parameters)], key=lambda asked: _hash("ask", asked.id)
    )
    found = {side: [] for side in SIZES}
    for (side, wording, _, room), group in _by(
        asked, lambda asked: (asked.side, asked.wording, asked.kind, _room(asked))
    ).items():
        wanted = SIZES[side] // len(PAGES) * (3 if wording in ("type", "default") else 2) // 2
        pages = ((one, _page(one, modules[room], room)) for one in group)
        made = (_row(one, page) for one, page in pages if page)
        found[side] += [row for row, _ in zip(made, range(wanted))]
    return {side: sorted(made, key=lambda row: row["id"]) for side, made in found.items()}


def _owner(entry: docstrings.Entry) -> tuple[str, str]:
    return entry.id.rpartition(":")[0].removesuffix(f".{entry.title}"), entry.title


def _function(entries: list[docstrings.Entry], each: int) -> Function:
    numbers = sorted({0}.union(*(entry.own[:each] for entry in entries)))
    sentences = [entries[0].sentences[i] for i in numbers]
    size = sum(len(re.findall(r"\w+|[^\w\s]", text)) + 2 for text in [entries[0].title, *sentences])  # two markers each
    return Function(*_owner(entries[0]), {entry.name for entry in entries}, numbers, sentences, size)


# ------------------------------------------------------------------------------------------------------- what is asked


def _spans(parameters) -> Iterator[Asked]:
    for entry in parameters:
        if (type := _type(entry)) and not re.search(r"[{\['\"]", type) and len(type) <= 40:
            yield _asked("type", "span", type, entry)
        if (fact := _fact(entry)) and fact.kind == "default":
            yield _asked("default", "span", fact.value, entry)


def _checks(parameters) -> Iterator[Asked]:
    """Is it of a type, the entry's own or that of another, and is it optional."""
    previous = {}
    for entry in parameters:
        said, described = entry.said, " ".join(entry.sentences[i] for i in entry.own[1:])
        if re.search(r"\boptional\b", said):
            yield _asked("optional", "yes", "yes", entry)
        elif not re.search(r"optional|default|None|=", f"{said} {described}", re.IGNORECASE):
            yield _asked("optional", "no", "no", entry)
        if named := TYPE.get(_type(entry)):
            other = previous.get(entry.side, named)
            if _hash("is", entry.id) % 2:
                yield _asked("is", "yes", "yes", entry, value=named)
            elif _differ(named, other):
                yield _asked("is", "no", "no", entry, value=other)
            previous[entry.side] = named


def _comparisons(parameters) -> Iterator[Asked]:
    """Two parameters of two functions of a module, both on one side, whose types are the same or contradict one another."""
    known = [entry for entry in parameters if _type(entry) in TYPE]
    for group in _by(known, lambda entry: (_owner(entry)[0], entry.side)).values():
        for one, other in combinations(group[:8], 2):
            first, second = TYPE[_type(one)], TYPE[_type(other)]
            kind = "yes" if first == second else "no" if _differ(first, second) else None
            if kind and one.title != other.title:
                yield _asked("same", kind, kind, one, other)


def _asked(wording: str, kind: str, answer: str, entry, *others, value: str = "") -> Asked:
    ids = [entry.id, *(other.id for other in others)]
    second = {"other": others[0].name, "second": others[0].title} if others else {}
    text = WORDED[wording].format(name=entry.name, title=entry.title, value=value, **second)
    return Asked(":".join([wording, *ids]), entry.side, wording, kind, text, answer, (entry, *others))


def _type(entry: docstrings.Entry) -> str:
    """What the head says before shape, default and optional."""
    return re.sub(r"(^|,? )(of shape|\(?(shape|optional|defaults?))\b.*$", "", entry.said).strip(" ,.;")


def _differ(one: str, other: str) -> bool:
    return ALIKE.get(one, one) != ALIKE.get(other, other)


# ------------------------------------------------------------------------------------------------------------ the pages


def _page(asked: Asked, modules: dict, room: int) -> list[Function]:
    """The functions asked about, one that shares a parameter's name with them, and others of the module, shuffled; empty if too few."""
    names, titles = {entry.name for entry in asked.entries}, {entry.title for entry in asked.entries}
    module = modules[_owner(asked.entries[0])[0]]
    page = [function for function in module if function.title in titles]
    room -= sum(function.size for function in page)
    others = [function for function in module if function.title not in titles and function.size <= room]
    others.sort(key=lambda function: _hash("other", f"{asked.id} {function.title}"))
    near = next((function for function in others if function.names & names), None)
    others.sort(key=lambda function: function is not near)
    for function in others:
        if function.size <= room and len(page) < LARGEST:
            page.append(function)
            room -= function.size
    enough = room >= 0 and len(page) > 2
    return sorted(page, key=lambda function: _hash("place", f"{asked.id} {function.title}")) if enough else []


def _room(asked: Asked) -> int:
    return list(PAGES)[_hash("page", asked.id) % len(PAGES)]


def _row(asked: Asked, page: list[Function]) -> dict:
    places = {function.title: number for number, function in enumerate(page)}
    evidence = [[places[entry.title], page[places[entry.title]].numbers.index(entry.own[0])] for entry in asked.entries]
    return {
        "id": asked.id,
        "question": asked.text,
        "passages": [{"title": function.title, "sentences": function.sentences} for function in page],
        "answer": asked.answer,
        "kind": asked.kind,
        "evidence": evidence,
    }


def _by(things, key) -> dict:
    groups = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups


def _hash(purpose: str, text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7, key=purpose.encode()).digest())
