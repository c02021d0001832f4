"""The embedded claims: their labels by an independent reading, their balance, their splits, and an invented package by hand."""

import re
from collections import Counter

import pytest

from asutil.data import claims
from asutil.data.claims import load_claims
from asutil.draws import text_hash
from asutil.pydocs import documents as docstrings


@pytest.fixture(scope="module")
def pydocs(entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docstrings, "entries", lambda: entries)  # read once
        return load_claims("pydocs_claims")


TOLD = re.compile(r"By default, (\S+) of (\S+) is (.+)\.|(\S+) takes (.+) for (\S+) where nothing else is given\.")
WORDS = {"a boolean": "bool|boolean", "an integer": "int|integer", "a float": "float", "a string": "str|string"}
WORDS |= {"a dictionary": "dict|dictionary", "a callable": "callable|function", "an array": r"ndarray|numpy\.ndarray|array"}
WORDS |= {"a list": "list", "a tuple": "tuple"}


def stated(claim):
    """(name, value, the same as a pattern) of a claim in words, read from its text alone."""
    if found := TOLD.fullmatch(claim.text):
        a, _, b, _, c, d = found.groups()
        name, value = (a, b) if a else (d, c)
        return name, value, rf"defaults?(?: is| to)?\s*[:=]?\s*{re.escape(value)}[ .)]*$"
    value = next(value for value in sorted(WORDS, key=len, reverse=True) if re.search(rf"\b{value}\b", claim.text))
    title = re.escape(claim.evidence[0].title)
    name = re.search(rf"(?:as|attribute|In {title},|The) (?!its |that )(\w+)(?: (?:of|that|is) |\.)", claim.text)[1]
    return name, value, rf": (?:{WORDS[value]})(?:,? of shape .*|, shape .*|, optional)?$"


def test_labels_follow_from_the_evidence(pydocs):
    for split in claims.SPLITS:
        for claim in pydocs[split]:
            name, _, pattern = stated(claim)
            named = [piece.text for piece in claim.evidence if re.search(rf"\b{name}\b", piece.text.removeprefix(piece.title))]
            if claim.label == 1:
                assert not named, (claim.id, named)
            else:
                assert len(named) == 1 and named[0].startswith(f"{claim.evidence[0].title}. {name} : "), (claim.id, named)
                assert bool(re.search(pattern, named[0])) == (claim.label == 0), (claim.text, named)


def test_evidence_is_the_functions_own(pydocs, entries):
    found = {entry.id: entry for entry in entries}
    for claim in [claim for split in claims.SPLITS for claim in pydocs[split]]:
        entry, numbers = found[claim.id.rpartition(":")[0]], [piece.sentence for piece in claim.evidence]
        assert numbers == sorted(set(numbers)) and 2 <= len(numbers) <= 5
        assert {piece.title for piece in claim.evidence} == {entry.title}
        assert [piece.text for piece in claim.evidence] == [f"{entry.title}. {entry.sentences[i]}" for i in numbers]
        assert set(numbers) & set(entry.own) == ({entry.own[0]} if claim.label != 1 else set())


def test_no_function_is_on_two_sides_and_they_are_those_of_the_questions(pydocs):
    functions = {split: {claim.evidence[0].title.rpartition(".")[2] for claim in pydocs[split]} for split in claims.SPLITS}
    assert not functions["train"] & functions["dev"] | functions["train"] & functions["test"] | functions["dev"] & functions["test"]
    for split, names in functions.items():
        for name in names:
            part = text_hash(name, "pydocs") % 10
            assert split == ("test" if part == 0 else "dev" if part == 1 else "train")


def test_a_claim_alone_does_not_give_its_label_away(pydocs):
    """Each label has the same words equally often, and the same names with the same values."""
    for split in claims.SPLITS:
        made = pydocs[split]
        assert Counter(claim.label for claim in made) == dict.fromkeys(range(3), len(made) // 3)
        assert len(made) > 300
        of = [[claim for claim in made if claim.label == label] for label in range(3)]
        words = [Counter(word for claim in group for word in re.findall(r"[\w.-]*\w", claim.text)) for group in of]
        assert words[0] == words[1] == words[2]
        facts = [Counter(str(stated(claim)[:2]) for claim in group) for group in of]
        assert facts[0] == facts[1] == facts[2]
        sizes = [Counter(len(claim.evidence) for claim in group) for group in of]
        assert sizes[0] == sizes[1] == sizes[2]


def test_ids_are_unique_and_a_limit_holds(pydocs):
    ids = [claim.id for split in claims.SPLITS for claim in pydocs[split]]
    assert len(set(ids)) == len(ids) > 5000
    assert pydocs["train"].limited(10).report["kept"]["claims"] == 10


FUNCTION = '''
def {name}(flag, other, size):
    """Do something with the things that are given.

    Parameters
    ----------
    flag : bool, default={default}
        {described}
    other, another : int, default=3
        Two further numbers of things.
    size : {type}
        How many there are of them.
    """
'''


def test_by_hand_on_an_invented_package(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read = docstrings.entries

    def invented(**functions):
        (tmp_path / "invented").mkdir(exist_ok=True)
        made = {"default": "True", "described": "Whether it is done at once.", "type": "int"}
        text = "".join(FUNCTION.format(name=name, **made | changed) for name, changed in functions.items())
        (tmp_path / "invented" / "__init__.py").write_text(text)
        return list(read(("invented",)))

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(docstrings, "split_of", lambda function: "train")
    made = invented(one={}, two={"default": "False", "type": "float"})
    flag, size = made[:2]
    assert (flag.title, flag.name, flag.signature, flag.section) == ("one", "flag", "bool, default=True", "Parameters")
    assert [flag.sentences[i] for i in flag.own] == ["flag : bool, default=True", "Whether it is done at once."]
    assert (size.name, size.signature, len(made)) == ("size", "int", 4)

    monkeypatch.setattr(docstrings, "entries", lambda: made)
    train = load_claims("pydocs_claims")["train"]
    assert {(stated(claim)[1], claim.evidence[0].title, claim.label) for claim in train if claim.label != 1} == {
        ("True", "one", 0),
        ("False", "one", 2),
        ("False", "two", 0),
        ("True", "two", 2),
    }, "an integer and a float do not contradict one another"
    assert len(train) == 6
    made = invented(one={}, two={"default": "False", "described": "The default is another one."})
    assert load_claims("pydocs_claims")["train"] == [], "a description that speaks of defaults, and nothing to contradict the other"
    made = invented(one={"type": "str"}, two={"type": "int, optional"})
    assert {claim.text for claim in load_claims("pydocs_claims")["train"] if claim.label == 0} <= {
        *("In one, size is a string.", "one expects a string as size."),
        *("In two, size is an integer.", "two expects an integer as size."),
    }
    assert len(load_claims("pydocs_claims")["train"]) == 6
