"""The embedded `pydocs_claims`: claims about the documented defaults and types of parameters, made from docstrings."""

import ast
import heapq
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from ..data.splits import SPLITS
from ..draws import text_hash
from . import documents
from .documents import Entry

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
TYPE = {documented: type for type, spellings in TYPES.items() for documented in spellings}
LITERAL = re.compile(r"""True|False|None|-?(\d+\.?\d*|\.\d+)([eE]-?\d+)?|'[\w.-]+'|"[\w.-]+\"""")
# Types that may be used for one another do not contradict one another.
ALIKE = {"a float": "an integer", "a list": "an array", "a tuple": "an array"}
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
    """The default or the type that the head of an entry documents."""

    entry: Entry
    kind: str  # facts of one kind exchange their values
    value: str  # as a claim has it
    meaning: object  # facts with different meanings contradict one another
    hash: int


def fact_of(entry: Entry) -> Fact | None:
    """The literal default of an entry whose description does not mention defaults; else its plain type; None where it has neither."""
    number = text_hash(entry.id, "claims")
    if default := re.search(r"\bdefaults?\b(?:\s+(?:is|to))?\s*[:=]?\s*(.+)$", entry.signature):
        value = default[1].rstrip(" .)")
        described = " ".join(entry.sentences[i] for i in entry.own[1:]).lower()
        usable = LITERAL.fullmatch(value) and "default" not in described
        return Fact(entry, "default", value, ast.literal_eval(value), number) if usable else None
    value = TYPE.get(re.sub(r"(,? of shape .*|, shape .*|, optional)$", "", entry.signature))
    return Fact(entry, "type", value, ALIKE.get(value, value), number) if value else None


def rows(most: int) -> dict[str, list[tuple]]:
    """Three claims a fact: with its own value, with another fact's value, and with either one without the sentence that proves it.

    Facts about one name exchange their values in pairs, and both facts of a pair appear with both values. So a name, a value, and a name
    with a value are equally frequent under each label: without the evidence, knowing what is usual does not help.
    Args:
        most: pieces of evidence that a claim has.
    Returns: (id, text, label, pieces of evidence) by split, in the order of the ids; a piece is (title, sentence number, text).
    """
    facts = {split: defaultdict(list) for split in SPLITS}
    for entry in documents.entries():
        if (fact := fact_of(entry)) and len(_others(entry)) > 1:
            facts[entry.split][fact.kind].append(fact)
    claims = {split: [] for split in SPLITS}
    for split, kinds in facts.items():
        for kind in sorted(kinds):
            for first, second in _paired(kinds[kind]):
                swapped = first.hash % 2
                claims[split] += _three_claims(first, second, swapped, most)
                claims[split] += _three_claims(second, first, swapped, most)
    return {split: sorted(unsorted, key=itemgetter(0)) for split, unsorted in claims.items()}


def _others(entry: Entry) -> list[int]:
    """The sentences of the docstring that are not the entry's and do not have its name."""
    name = re.compile(rf"\b{re.escape(entry.name)}\b")
    return [i for i, sentence in enumerate(entry.sentences) if i not in entry.own and not name.search(sentence)]


def _paired(facts: list[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs of facts about one name that contradict one another."""
    names = defaultdict(lambda: defaultdict(list))
    for fact in sorted(facts, key=lambda fact: fact.hash):
        names[fact.entry.name][fact.meaning].append(fact)
    for values in names.values():
        while len(values) > 1:  # the most frequent ones first, so that as few as possible are left over
            first, second = heapq.nlargest(2, values, key=lambda meaning: (len(values[meaning]), str(meaning)))
            yield values[first].pop(), values[second].pop()
            for meaning in (first, second):
                if not values[meaning]:
                    del values[meaning]


def _three_claims(fact: Fact, other: Fact, swapped: int, most: int) -> list[tuple]:
    entry = fact.entry
    wording = WORDED[entry.section if fact.kind == "type" else "default"][fact.hash // 2 % 2]
    others = sorted(_others(entry), key=lambda i: text_hash(f"{entry.id} {i}", size=8))[:most]
    proof = sorted([entry.own[0], *others[: len(others) - 1]])
    unproven = other if swapped else fact
    claims = []
    for label, value, numbers in ((0, fact.value, proof), (1, unproven.value, sorted(others)), (2, other.value, proof)):
        evidence = tuple((entry.title, i, f"{entry.title}. {entry.sentences[i]}") for i in numbers)
        text = wording.format(title=entry.title, name=entry.name, value=value)
        claims.append((f"{entry.id}:{fact.kind}-{label}", text, label, evidence))
    return claims
