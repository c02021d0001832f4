"""Averaged word vectors: averages by hand, every form of the text format, damaged and dangerous files."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asutil.io import hub
from asutil.models import word_vectors
from asutil.models.word_vectors import WordVectors

from ..conftest import WORDS

TEXTS = ["", "River", "the harbour of winter, the bridge", "nothing-of-these", "An orbit isn't a forest!", " ".join(WORDS), "River"]
TEXTS += [" ".join(WORDS[n : n + 3 + n % 5]) for n in range(15)]


def write_vectors(path, listed, dimensions=6, header=False, end="\n", seed=0):
    """A file in the text format with random vectors, which are given back as read."""
    vectors = np.random.default_rng(seed).normal(size=(len(listed), dimensions)).round(4)
    lines = [f"{word} {' '.join(map(str, row))}{end}" for word, row in zip(listed, vectors)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join([f"{len(listed)} {dimensions}\n"] * header + lines).encode())
    return dict(zip(listed, vectors))


VOCABULARY = ["the", ",", *WORDS, "n't", "is", "a", "!"]


def loaded(folder, cache="cache"):
    return WordVectors(folder, folder / cache)


@given(st.text(max_size=60))
def test_no_character_of_a_text_is_lost(text):
    assert "".join(word_vectors.words(text)) == "".join(character for character in text if not character.isspace())


def test_averages_by_hand(tmp_path, caplog):
    (tmp_path / "glove.txt").write_text("the 1 2\ncat 3 4\nsat -1 0\n")
    model = loaded(tmp_path)
    texts = ["The cat", "cat cat the", "dog", "", "the dog's sat"]
    expected = np.array([[2, 3], [7 / 3, 10 / 3], [0, 0], [0, 0], [0, 1]], np.float32)
    found = model.encode(texts)
    assert found.dtype == np.float32 and np.array_equal(found, expected)
    assert (model.dimensions, model.parameters_learnt) == (2, 6)
    assert "glove.txt: 2 of 5 texts have no word with a vector" in caplog.text
    assert model.encode([]).shape == (0, 2)


@pytest.mark.parametrize(("header", "end"), [(False, "\n"), (True, " \n"), (False, "\r\n")])
def test_every_form_of_the_text_format_gives_the_same_averages(tmp_path, header, end):
    listed = [*VOCABULARY[:4], ". . .", "at name@domain.com", "one\xa0word", "one\x85line", *VOCABULARY[4:]]
    known = write_vectors(tmp_path / "v.vec", listed, header=header, end=end)
    model = loaded(tmp_path)
    assert list(model.row_of) == listed[::-1] and model.parameters_learnt == 6 * len(listed)
    for word, row in model.row_of.items():
        assert np.array_equal(model.vectors[row], known[word].astype(np.float32)), word
    for text, found in zip(TEXTS, model.encode(TEXTS)):
        rows = [known[word] for word in re.findall(r"[a-z]+(?=n't)|n't|[a-z]+|[,!]", text.lower()) if word in known]
        expected = [sum(column) / len(rows) for column in zip(*rows)] or [0.0] * 6
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_kept_vectors_that_are_a_pickle_are_refused(tmp_path):
    write_vectors(tmp_path / "v.vec", VOCABULARY)
    loaded(tmp_path)
    (kept,) = tmp_path.rglob("vectors.npy")
    np.save(kept, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(
        ValueError, match=r"word_vectors_\w+ is damaged, or a pickle, which is refused: delete it, and .*v.vec is read again"
    ):
        loaded(tmp_path)


def test_case_is_the_vocabularys(tmp_path):
    known = write_vectors(tmp_path / "cased" / "v.vec", ["Apple", "apple", "eats"])
    cased = loaded(tmp_path / "cased")
    assert np.array_equal(cased.encode(["Apple"])[0], known["Apple"].astype(np.float32)) and not cased.lower_case
    assert not cased.encode(["EATS"]).any()
    write_vectors(tmp_path / "lower" / "v.vec", ["UNK", *(f"w{n}" for n in range(99))])
    write_vectors(tmp_path / "upper" / "v.vec", ["UNK", *(f"w{n}" for n in range(98))])
    assert loaded(tmp_path / "lower").lower_case and not loaded(tmp_path / "upper").lower_case


def test_of_a_word_that_stands_twice_the_first_counts(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\na 5 6\n")
    assert loaded(tmp_path).encode(["a"]).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"v.txt, line 1: a word and its numbers expected, got nothing"),
        (b"alone\n", r"v.txt, line 1: a word and its numbers expected, got b'alone'"),
        (b"3 2\n", r"v.txt, line 1: a word and its numbers expected, got b'3 2'"),
        (b"a 1 2\nb 3\n", r"v.txt, line 2: a word and 2 finite numbers expected \(got 1 values\)"),
        (b"a 1 2\nb 3 4 5\nc 1 2\n", r"v.txt, line 2: a word and 2 finite numbers expected \(got 3 values\)"),
        (b"a 1 2\n\nb 3 4\n", r"v.txt, line 2: a word and 2 finite numbers expected \(got 0 values\)"),
        (b"a 1 2\nb 3 x\n", r"v.txt, line 2: a word and 2 finite numbers expected \(could not convert .*'x'\)"),
        (b"2 2\na 1 2\nb nan 4\n", r"v.txt, line 3: a word and 2 finite numbers expected \(got nan\)"),
        (b"a 1 2\nb 3 -inf\n", r"v.txt, line 2: .* \(got -inf\)"),
        (b"a 1 2\nb 3 1e39\n", r"v.txt, line 2: .* \(got 1e\+39\)"),
        (b"a 1 2\n\xff 3 4\n", r"v.txt, line 2: .* \('utf-8' codec"),
        (b"3 2\na 1 2\nb 3 4\n", r"v.txt: 3 words expected by its first line, got 2"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line_and_nothing_is_kept(tmp_path, content, message):
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        loaded(tmp_path)
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_a_file_is_read_once(tmp_path, monkeypatch):
    write_vectors(tmp_path / "v.txt", VOCABULARY)
    first = loaded(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(word_vectors, "_convert", lambda *_: pytest.fail("read again"))
        again = loaded(tmp_path)
    assert isinstance(again.vectors.base, np.memmap)
    assert np.array_equal(first.encode(TEXTS), again.encode(TEXTS)) and first.identity == again.identity
    write_vectors(tmp_path / "v.txt", [*VOCABULARY, "more"])
    assert "more" in loaded(tmp_path).row_of and loaded(tmp_path).identity != first.identity


def test_where_word_vectors_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    write_vectors(tmp_path / "local" / "glove" / "v.txt", VOCABULARY)
    (tmp_path / "local" / "glove" / "ORIGIN.md").write_text("from here")
    for name in ("local/glove", tmp_path / "local" / "glove" / "v.txt"):
        assert WordVectors(name, tmp_path / "cache").file.name == "v.txt"
    for name, message in {
        "local/fasttext": r"local/fasttext: no such file or folder, and local/fasttext is on no hub",
        "/nowhere/v.txt": r"^/nowhere/v.txt: no such file or folder$",
    }.items():
        with pytest.raises(FileNotFoundError, match=message):
            WordVectors(name, tmp_path / "cache")
    write_vectors(tmp_path / "local" / "glove" / "w.vec", VOCABULARY)
    with pytest.raises(ValueError, match=r"one file of word vectors \(.txt or .vec\) expected, got v.txt, w.vec"):
        WordVectors("local/glove")
