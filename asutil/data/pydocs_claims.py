"""The embedded `pydocs_claims`: claims about the documented defaults and types of parameters, made from docstrings."""

import ast
import hashlib
import heapq
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ..corpus import docstrings

SIDES = ("train", "dev", "test")
TYPES = {
    "a boolean": ("bool", "boolean"),
    "an integer": ("int", "integer"),
    "a float": ("float",),
    "a string": ("str", "string"),
    "a dictionary": ("dict", "dictionary"),
    "a callable": ("callable", "function"),
    "an array": ("ndarray", "numpy.ndarray", "array"),  # not array_like, which a number is too
    "a list": ("list",),
    "a tuple": ("tuple",),
}
TYPE = {documented: named for named, ways in TYPES.items() for documented in ways}
LITERAL = re.compile(r"""True|False|None|-?(\d+\.?\d*|\.\d+)([eE]-?\d+)?|'[\w.-]+'|"[\w.-]+\"""")
ALIKE = {
    "a float": "an integer",
    "a list": "an array",
    "a tuple": "an array",
}  # types that may stand for one another refute nothing
WORDED = {
    "default": (
        "By default, {name} of {title} is {value}.",
        "{title} takes {value} for {name} where nothing else is given.",
    ),
    "Parameters": ("In {title}, {name} is {value}.", "{title} expects {value} as {name}."),
    "Attributes": ("The attribute {name} of {title} is {value}.", "{title} has {value} as its attribute {name}."),
    "Returns": ("{title} returns {value} as {name}.", "The {name} that {title} returns is {value}."),
}
WORDED |= {"Other Parameters": WORDED["Parameters"], "Yields": WORDED["Returns"]}


@dataclass(frozen=True)
class Fact:
    """What the head of a documented entry says: the value that stands in a claim, and what decides whether another contradicts it."""

    entry: docstrings.Entry
    kind: str  # facts of one kind lend one another their values
    value: str
    means: object
    hash: int


def _fact(entry: docstrings.Entry) -> Fact | None:
    """A literal default, where nothing else of the entry speaks of defaults; else a plain type."""
    number = int.from_bytes(hashlib.blake2b(entry.id.encode(), digest_size=7, key=b"claims").digest())
    if found := re.search(r"\bdefaults?\b(?:\s+(?:is|to))?\s*[:=]?\s*(.+)$", entry.said):
        value = found[1].rstrip(" .)")
        described = " ".join(entry.sentences[i] for i in entry.own[1:]).lower()
        usable = LITERAL.fullmatch(value) and "default" not in described
        return Fact(entry, "default", value, ast.literal_eval(value), number) if usable else None
    value = TYPE.get(re.sub(r"(,? of shape .*|, shape .*|, optional)$", "", entry.said))
    return Fact(entry, "type", value, ALIKE.get(value, value), number) if value else None


def rows(most: int) -> dict[str, list[tuple]]:
    """Three claims a fact: with its own value, with another fact's, and with either where the sentence that says it is left out.

    Facts about one name lend values to one another in pairs, and both of a pair stand with both values. So a name, a value, and a name with
    a value are as frequent under each label: without the evidence, knowing what is usual is of no use.
    Args:
        most: pieces of evidence that a claim has.
    Returns: (id, text, label, pieces of evidence) by side, in the order of the ids; a piece is (title, sentence number, text).
    """
    facts = {side: defaultdict(list) for side in SIDES}
    for entry in docstrings.entries():
        if (fact := _fact(entry)) and len(_others(entry)) > 1:
            facts[entry.side][fact.kind].append(fact)
    sides = {side: [] for side in SIDES}
    for side, kinds in facts.items():
        for kind in sorted(kinds):
            for pair in _paired(kinds[kind]):
                sides[side] += [
                    claim for one, other in (pair, pair[::-1]) for claim in _three(one, other, pair[0].hash % 2, most)
                ]
    return {side: sorted(claims, key=lambda claim: claim[0]) for side, claims in sides.items()}


def _others(entry: docstrings.Entry) -> list[int]:
    """The sentences of the docstring that are not the entry's and do not name it."""
    named = re.compile(rf"\b{re.escape(entry.name)}\b")
    return [i for i, sentence in enumerate(entry.sentences) if i not in entry.own and not named.search(sentence)]


def _paired(facts: list[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs of facts about one name that contradict one another."""
    names = defaultdict(lambda: defaultdict(list))
    for fact in sorted(facts, key=lambda fact: fact.hash):
        names[fact.entry.name][fact.means].append(fact)
    for values in names.values():
        while len(values) > 1:  # the most frequent ones first, so that as few as can be are left
            first, second = heapq.nlargest(2, values, key=lambda means: (len(values[means]), str(means)))
            yield values[first].pop(), values[second].pop()
            for means in [means for means in (first, second) if not values[means]]:
                del values[means]


def _three(fact: Fact, other: Fact, swapped: int, most: int) -> list[tuple]:
    entry = fact.entry
    wording = WORDED[entry.section if fact.kind == "type" else "default"][fact.hash // 2 % 2]
    others = sorted(_others(entry), key=lambda i: hashlib.blake2b(f"{entry.id} {i}".encode(), digest_size=8).digest())[
        :most
    ]
    without, proof = sorted(others), sorted([entry.own[0], *others[: len(others) - 1]])
    made = []
    for label, value, numbers in (
        (0, fact.value, proof),
        (1, (fact, other)[swapped].value, without),
        (2, other.value, proof),
    ):
        evidence = tuple((entry.title, i, f"{entry.title}. {entry.sentences[i]}") for i in numbers)
        text = wording.format(title=entry.title, name=entry.name, value=value)
        made.append((f"{entry.id}:{fact.kind}-{label}", text, label, evidence))
    return made
