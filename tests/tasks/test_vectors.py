"""Vectors on disk and the nearest of them, against loops in float64 and scikit-learn; stopped embeddings and damaged files."""

import csv
import hashlib
import io
import json
import math
import os
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from aslab import vector_commands as commands
from aslab.commands import asutil
from asutil.tasks import vector_search
from asutil.tasks import vectors as v

from ..made_up import refused


class Hashed:
    """Vectors that depend on nothing but their text; the texts that it was asked for are kept, and it stops before the n-th call."""

    dimensions, identity = 8, "hashed"

    def __init__(self, stops_at=None):
        self.asked, self.stops_at = [], stops_at

    def encode(self, texts):
        if len(self.asked) == self.stops_at:
            raise KeyboardInterrupt
        self.asked.append(texts)
        return np.array([[b / 16 - 8 for b in hashlib.sha256(text.encode()).digest()[:8]] for text in texts], np.float32)


class Given:
    """The rows of an array, for the texts "0", "1" and so on."""

    identity = "given"

    def __init__(self, array):
        self.array, self.dimensions = array, array.shape[1]

    def encode(self, texts):
        return self.array[[int(text) for text in texts]]


TEXTS = [f"text {n} " + "word " * (n % 7) for n in range(23)]


def in_memory(array) -> v.Vectors:
    return v.Vectors(Path("made up"), {}, np.asarray(array, np.float32), None)


def contents(folder) -> dict:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def by_loops(questions, vectors, k, by):
    """Sums without rounding, one pair after the other; scores as float32, equal ones by number."""
    scores, numbers = [], []
    for u in np.asarray(questions, np.float32).tolist():
        found = []
        for number, w in enumerate(np.asarray(vectors, np.float32).tolist()):
            dot = math.fsum(a * b for a, b in zip(u, w))
            sizes = math.sqrt(math.fsum(a * a for a in u) * math.fsum(b * b for b in w))
            cosine = dot / sizes if sizes else 0.0
            distance = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(u, w)))
            manhattan = math.fsum(abs(a - b) for a, b in zip(u, w))
            scores_by = {"dot": dot, "cosine": cosine, "distance": -distance, "manhattan": -manhattan}
            found.append((-float(np.float32(scores_by[by])), number))
        found = sorted(found)[:k]
        scores.append([-score for score, _ in found])
        numbers.append([number for _, number in found])
    return np.array(scores, np.float32).reshape(len(scores), -1), np.array(numbers, np.int64).reshape(len(scores), -1)


def equal(found, expected) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected))


# ------------------------------------------------------------------ searching


@pytest.fixture(scope="module")
def normal():
    draw = np.random.default_rng(0)
    return draw.normal(size=(5, 24)).astype(np.float32), draw.normal(size=(400, 24)).astype(np.float32)


few = st.integers(-2, 2).map(float)  # many equal scores, zero vectors and vectors that are multiples of others


@given(st.data(), st.sampled_from(v.BY), st.integers(1, 40), st.integers(1, 35), st.sampled_from([2.0**-10, 1.0, 2.0**10]))
def test_search_equals_loops_for_ties_zeros_and_all_sizes(data, by, k, block, scale):
    width = data.draw(st.integers(1, 5))
    draw = lambda least, most: data.draw(st.lists(st.lists(few, min_size=width, max_size=width), min_size=least, max_size=most))
    questions, vectors = np.reshape(draw(0, 3), (-1, width)) * scale, np.array(draw(1, 30))
    found = in_memory(vectors).search(questions, k, by, block)
    assert found[0].shape == found[1].shape == (len(questions), min(k, len(vectors)))
    if len(questions):
        assert equal(found, by_loops(questions, vectors, k, by))


@given(st.lists(st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=6, max_size=60), st.sampled_from(v.BY))
@example([1000.0, 1000.0, 1000.0, 1000.0, 1000.00006, 1000.0, 1000.0, 1000.00012], "distance")
@example([1.0, 0.0, 3.0, 3.0, 1.0, 1.0, 7.0, 7.0], "cosine")
def test_the_order_is_that_of_unrounded_scores(values, by):
    array = np.reshape(values[: len(values) // 2 * 2], (-1, 2)).astype(np.float32)
    scores, numbers = in_memory(array[1:]).search(array[:1], 3, by, 2)
    expected, _ = by_loops(array[:1], array[1:], 3, by)
    size = np.float32(1e-6) * max(1, float(np.abs(expected).max()))
    assert np.abs(scores - expected).max() <= size  # float64 sums may cancel; then two of nearly equal scores may change places
    assert (np.diff(scores[0]) <= 0).all() and len(set(numbers[0])) == len(numbers[0])
    ties = np.diff(scores[0]) == 0
    assert (np.diff(numbers[0])[ties] > 0).all()


@pytest.mark.parametrize("by", v.BY)
def test_what_float32_cannot_tell_apart_is_still_chosen_exactly(by, monkeypatch):
    draw = np.random.default_rng(1)
    centre = draw.normal(size=32) * 100
    vectors = (centre + draw.normal(size=(3000, 32)) * 1e-3).astype(np.float32)
    questions = (centre + draw.normal(size=(4, 32)) * 1e-3).astype(np.float32)
    u, w = questions.astype(np.float64)[:, None], vectors.astype(np.float64)
    dots = (u * w).sum(-1)
    exact = {
        "dot": dots,
        "cosine": dots / np.linalg.norm(u, axis=-1) / np.linalg.norm(w, axis=-1),
        "distance": -np.linalg.norm(u - w, axis=-1),
        "manhattan": -np.abs(u - w).sum(-1),
    }
    exact = exact[by].astype(np.float32)
    best = np.argsort(-exact, axis=1, kind="stable")[:, :20]
    expected = np.take_along_axis(exact, best, 1), best
    rising = np.argsort(exact[0], kind="stable")  # the best come last: no block's best are those of the block before
    for block, cells in ((64, vector_search.CELLS), (3000, vector_search.CELLS), (999, 3000)):  # cells: of questions at once
        monkeypatch.setattr(vector_search, "CELLS", cells)
        assert equal(in_memory(vectors).search(questions, 20, by, block), expected)
        scores, numbers = in_memory(vectors[rising]).search(questions, 20, by, block)
        assert np.array_equal(scores, expected[0]) and np.array_equal(exact[0][rising][numbers[0]], expected[0][0])


def test_search_equals_scikit_learn(normal):
    questions, vectors = normal
    for by, metric in (("distance", "euclidean"), ("cosine", "cosine")):
        distances, numbers = NearestNeighbors(n_neighbors=10, algorithm="brute", metric=metric).fit(vectors).kneighbors(questions)
        scores, found = in_memory(vectors).search(questions, 10, by)
        assert np.array_equal(found, numbers)
        assert np.abs(scores - (-distances if by == "distance" else 1 - distances)).max() < 1e-5


def test_memory_does_not_grow_with_what_is_searched(tmp_path):
    size, block, questions = 200_000, 4096, np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    array = np.memmap(tmp_path / "array", np.float32, "w+", shape=(size, 32))
    for start in range(0, size, block):
        array[start : start + block] = np.random.default_rng(start).normal(size=(len(array[start : start + block]), 32))
    found = v.Vectors(tmp_path, {}, array, None)
    tracemalloc.start()
    try:
        for by in v.BY:
            found.search(questions, 10, by, block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    lengths, table = 12 * size, 4 * 16 * block  # a float64 and its float32; the table of a block
    assert peak < lengths + 4 * table + (1 << 21) < 4 * 16 * size


def test_what_cannot_be_searched_is_refused(normal):
    questions, vectors = normal
    found = in_memory(vectors)
    for wrong in ({"k": 0}, {"block": 0}, {"by": "euclid"}):
        with pytest.raises(ValueError, match="by, one of dot, cosine, distance, manhattan, k and block of 1 or more expected, got"):
            found.search(questions, **{"k": 1, "by": "dot"} | wrong)
    with pytest.raises(ValueError, match=r"vectors of the shape \(5, 24\) expected for 5 questions, got \(5, 23\)"):
        found.search(questions[:, 1:], 1, "dot")
    with pytest.raises(ValueError, match=r"vectors of the shape \(24, 24\) expected for 24 questions, got \(24,\)"):
        found.search(questions[0], 1, "dot")
    for bad in (np.nan, np.inf, 1e20, 1e-30):
        asked = np.zeros((3, 24))
        asked[1, 2] = bad
        with pytest.raises(ValueError, match="question 1: expected a vector of length 0 or 1e-12 to 1000000000000.0, got"):
            found.search(asked, 1, "dot")
    with pytest.raises(ValueError, match="is damaged: vector 2 is not finite"):
        in_memory([[1.0], [2.0], [np.nan]]).search([[1.0]], 1, "dot")


# ------------------------------------------------------------------ embedding


def test_vectors_and_texts_are_kept_in_order(tmp_path):
    found = v.embed(Hashed(), (text for text in TEXTS), tmp_path / "kept", block=5, progress=False)
    assert np.array_equal(found.vectors, Hashed().encode(TEXTS)) and found.vectors.dtype == np.float32
    assert isinstance(found.vectors, np.memmap) and len(found) == 23
    assert found.texts(range(23)) == TEXTS and found.texts(np.array([7, 2])) == [TEXTS[7], TEXTS[2]]
    assert found.texts([3], "id") == [None]
    with_ids = [(f"q{n}", text) if n % 2 else text for n, text in enumerate(TEXTS)]
    named = v.embed(Hashed(), with_ids, tmp_path / "named", block=4, progress=False)
    assert named.texts([0, 1, 22, 21], "id") == [None, "q1", None, "q21"] and named.texts(range(23)) == TEXTS
    assert repr(found) == "Vectors(kept: 23 texts, 8 dimensions)"
    again = v.Vectors.open(tmp_path / "kept", verify=True)
    assert again.info["encoder"] == "hashed" and again.texts([22]) == [TEXTS[22]]
    for wrong in (-1, 23):
        with pytest.raises(IndexError, match=f"a number from 0 to 22 expected, got {wrong}"):
            found.texts([0, wrong])
    with pytest.raises(ValueError, match="kept was embedded by the encoder hashed, got given"):
        found.must_be_of(Given(np.zeros((1, 8))))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kept.lock", ".named.lock", "kept", "named"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=12), st.integers(3, 13))
@settings(max_examples=30)  # each is written to the disk, and waited for
def test_any_text_comes_back_whatever_the_block(tmp_path_factory, texts, block):
    found = v.embed(Hashed(), texts, tmp_path_factory.mktemp("any"), block=block, progress=False)
    assert found.texts(range(len(texts))) == texts
    assert np.array_equal(found.vectors, Hashed().encode(texts))


@pytest.mark.parametrize("stops_at", [0, 1, 3, 4])
def test_a_stopped_embedding_goes_on_at_its_unfinished_block(tmp_path, stops_at):
    v.embed(Hashed(), TEXTS, tmp_path / "whole", block=5, progress=False)
    with pytest.raises(KeyboardInterrupt):
        v.embed(Hashed(stops_at), TEXTS, tmp_path / "kept", block=5, progress=False)
    with pytest.raises(FileNotFoundError, match="kept holds no finished vectors: its embedding was stopped, the same command goes on"):
        v.Vectors.open(tmp_path / "kept")
    rest = Hashed()
    v.embed(rest, iter(TEXTS), tmp_path / "kept", block=5, progress=False)
    assert rest.asked == [TEXTS[n : n + 5] for n in range(5 * stops_at, 23, 5)]
    assert contents(tmp_path / "kept") == contents(tmp_path / "whole")
    finished = Hashed()
    assert len(v.embed(finished, TEXTS, tmp_path / "kept", block=5, progress=False)) == 23 and not finished.asked


def stopped(folder, texts=TEXTS):
    with pytest.raises(KeyboardInterrupt):
        v.embed(Hashed(3), texts, folder, block=5, progress=False)
    return folder.with_name(f".{folder.name}.embedding")


def test_changed_texts_and_another_encoder_are_never_gone_on_with(tmp_path, caplog):
    changed = [*TEXTS[:7], "another", *TEXTS[8:]]
    other = Hashed()
    other.identity = "another"
    cases = {"text": (changed, Hashed(), 5, 1), "encoder": (TEXTS, other, 5, 0), "block": (TEXTS, Hashed(), 1, 0)}
    cases["id"] = [("q", text) for text in TEXTS], Hashed(), 5, 0
    for name, (texts, encoder, block, kept) in cases.items():
        stopped(tmp_path / name)
        caplog.clear()
        v.embed(encoder, texts, tmp_path / name, block=block, progress=False)
        assert encoder.asked[0] == [text[1] if name == "id" else text for text in texts[kept * block : (kept + 1) * block]]
        assert f"{3 - kept} finished blocks were of other texts or of another encoder" in caplog.text
        v.embed(encoder, texts, tmp_path / "fresh" / name, block=block, progress=False)
        assert contents(tmp_path / name) == contents(tmp_path / "fresh" / name)


def test_what_a_stopped_write_left_is_written_over(tmp_path):
    v.embed(Hashed(), TEXTS, tmp_path / "whole", block=5, progress=False)
    for name, change in ((v.VECTORS, b"x" * 1000), (v.TEXTS, b"x" * 999), (v.VECTORS, -1), (v.TEXTS, -9)):
        folder = tmp_path / f"{name} {change if change in (-1, -9) else len(change)}"
        file = stopped(folder) / name
        file.write_bytes(file.read_bytes() + change if isinstance(change, bytes) else file.read_bytes()[:change])
        rest = Hashed()
        v.embed(rest, TEXTS, folder, block=5, progress=False)
        assert len(rest.asked) == (2 if isinstance(change, bytes) else 3)
        assert contents(folder) == contents(tmp_path / "whole")


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    v.embed(Hashed(), TEXTS, tmp_path / "kept", block=5, progress=False)
    other = Hashed()
    other.identity = "another"
    before = contents(tmp_path / "kept")
    for encoder, texts, block in ((other, TEXTS, 5), (Hashed(), TEXTS[:5], 5), (Hashed(), [*TEXTS, "more"], 5), (Hashed(), TEXTS, 4)):
        with pytest.raises(FileExistsError, match="kept is not what these texts, encoder and block make"):
            v.embed(encoder, texts, tmp_path / "kept", block=block, progress=False)
        assert contents(tmp_path / "kept") == before and not encoder.asked
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError):
        v.embed(Hashed(), TEXTS, tmp_path / "full", progress=False)
    assert contents(tmp_path / "full") == {"mine.txt": b"mine"}


@pytest.mark.parametrize("name", [v.VECTORS, v.TEXTS])
def test_a_damaged_file_is_named(tmp_path, name):
    """What is cut short, or has another bit, `tests.trust.damaged` tries."""
    v.embed(Hashed(), TEXTS, tmp_path / "kept", progress=False)
    path = tmp_path / "kept" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-30] + bytes([whole[-30] ^ 1]) + whole[-29:])
    v.Vectors.open(tmp_path / "kept", verify=False)  # its size is right
    path.unlink()
    with pytest.raises(ValueError, match=f"{name} is damaged: {len(whole):,} bytes expected, got 0"):
        v.Vectors.open(tmp_path / "kept")


def test_a_damaged_description_is_named(tmp_path):
    v.embed(Hashed(), TEXTS, tmp_path / "kept", progress=False)
    path = tmp_path / "kept" / v.INFO
    info = json.loads(path.read_text())
    endless = {name: {"bytes": float("inf"), "sha256": ""} for name in (v.VECTORS, v.TEXTS)}
    changed = [info | {name: value} for name, value in (("texts", None), ("texts", 1), ("encoder", 1), ("files", endless))]
    for wrong in ([], {name: value for name, value in info.items() if name != "files"}, *changed, None):
        path.write_text("{" if wrong is None else json.dumps(wrong))
        with pytest.raises(ValueError, match=r"vectors\.json is damaged"):
            v.Vectors.open(tmp_path / "kept")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"kept holds no finished vectors: vectors\.json is missing"):
        v.Vectors.open(tmp_path / "kept")
    arrow = tmp_path / "kept" / v.TEXTS
    path.write_text(json.dumps(info))
    arrow.write_bytes(b"\1" * arrow.stat().st_size)
    with pytest.raises(ValueError, match=r"texts\.arrows is damaged"):
        v.Vectors.open(tmp_path / "kept")


def test_what_cannot_be_embedded_is_refused(tmp_path):
    embed = lambda texts, encoder=None, **more: v.embed(encoder or Hashed(), texts, tmp_path / "kept", progress=False, **more)
    for texts, reason in (
        ([], "expected at least one text, got none"),
        ("one", "an iterable of texts, got one string"),
        (["a", 3], "text 1: expected a text, or its id and text, got 3"),
        ([("id", "a"), (1, "a")], r"text 1: expected a text, or its id and text, got \(1, 'a'\)"),
        (["a", "b\ud800"], "text 1: half of a surrogate pair"),
    ):
        with pytest.raises(ValueError, match=reason):
            embed(texts)
    with pytest.raises(ValueError, match="block: 1 or more expected, got 0"):
        embed(TEXTS, block=0)
    for bad in (np.nan, np.inf, 1e13, 1e-13):
        array = np.ones((7, 1))
        array[4] = bad
        with pytest.raises(ValueError, match="text 4: expected a vector of length 0 or"):
            embed(map(str, range(7)), Given(array), block=3)
    wide = Given(np.ones((7, 1)))
    wide.dimensions = 2
    with pytest.raises(ValueError, match=r"vectors of the shape \(3, 2\) expected for 3 texts, got \(3, 1\)"):
        embed(map(str, range(7)), wide, block=3)
    assert not (tmp_path / "kept").exists()


def test_a_full_disk_is_said_and_finished_blocks_are_kept(tmp_path, monkeypatch):
    full = iter([0, 0, 0, 0, 1])  # vectors.json and its folder, both files of a block, the first of the next block
    whole = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")) if next(full) else whole(file)
    )
    with pytest.raises(OSError, match=r"vectors\.f32 could not be written \(No space left on device\); finished blocks are kept") as error:
        v.embed(Hashed(), TEXTS, tmp_path / "kept", block=5, progress=False)
    assert error.value.errno == 28
    monkeypatch.undo()
    rest = Hashed()
    v.embed(rest, TEXTS, tmp_path / "kept", block=5, progress=False)
    assert len(rest.asked) == 4


def test_memory_does_not_grow_with_what_is_embedded(tmp_path):
    class Zero:
        dimensions, identity = 64, "zero"

        def encode(self, texts):
            return np.zeros((len(texts), 64), np.float32)

    def peak(count):
        tracemalloc.start()
        try:
            v.embed(Zero(), (f"{n} " * 10 for n in range(count)), tmp_path / str(count), block=500, progress=False)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(500)
    assert peak(10_000) < 1.2 * peak(1_500) < 4 * 64 * 10_000


# ------------------------------------------------------------------ the command line


ROWS = [{"id": f"a{n}", "question": "Where?", "answer": f"{word} answer"} for n, word in enumerate(("first", "second", "third"))]


def written(folder, suffix, rows=ROWS):
    path = folder / f"answers{suffix}"
    if suffix == ".txt":
        path.write_text("".join(row["answer"] + "\n" for row in rows))
    elif suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    elif suffix == ".tsv":
        path.write_text("\n".join("\t".join(line) for line in (rows[0], *(row.values() for row in rows))) + "\r\n")
    elif suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".csv", ".jsonl", ".parquet"])
def test_every_kind_of_file_is_read(tmp_path, suffix):
    ids = [None] * 3 if suffix == ".txt" else ["a0", "a1", "a2"]
    answers = ["first answer", "second answer", "third answer"]
    assert list(v.read(written(tmp_path, suffix), ("answer", "text"))) == list(zip(ids, answers))
    if suffix != ".txt":
        assert [text for _, text in v.read(written(tmp_path, suffix), ("question", "text"))] == ["Where?"] * 3
        expected = rf"answers{suffix} (line|row) \d: expected text in passage or text, got the columns id, question, answer"
        with pytest.raises(ValueError, match=expected):
            list(v.read(tmp_path / f"answers{suffix}", ("passage", "text")))


def test_a_column_called_line_is_no_text_and_marks_of_a_spreadsheet_are_none(tmp_path):
    (tmp_path / "a.tsv").write_text('line\tid\ttext\n1\tham-1\t"To be, or not to be."\n2\tham-2\tWords.\n')
    assert list(v.read(tmp_path / "a.tsv", ("answer", "text"))) == [("ham-1", "To be, or not to be."), ("ham-2", "Words.")]


def test_a_blank_text_is_named_with_its_row(tmp_path):
    blank = [*ROWS[:2], ROWS[2] | {"answer": " "}]
    for suffix, row in ((".txt", "line 3"), (".tsv", "row 4"), (".jsonl", "line 3"), (".parquet", "row 3")):
        with pytest.raises(ValueError, match=rf"answers\{suffix} {row}: expected text in (answer|line), got ' '"):
            list(v.read(written(tmp_path, suffix, blank), ("answer", "text")))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b'{"answer": "b"}\n{"answer": 7}\n', r"a\.jsonl line 2: expected text in answer, got 7"),
        ("a.tsv", b"id\tanswer\na\tb\nc\n", r"a\.tsv, row 3: expected 2 fields"),
        ("a.txt", b"good\ncaf\xe9\n", r"a\.txt line 2: expected UTF-8, got byte 0xe9 at 3"),
        ("a.parquet", b"no parquet", r"a\.parquet: expected a parquet file, got one that Arrow refuses"),
        ("a.pdf", b"", r"a\.pdf: expected a file that ends in \.txt, \.tsv, \.csv, \.jsonl, \.parquet, got \.pdf"),
        ("a.csv", b"id,answer\n1,b\n2,\n", r"a\.csv row 3: expected text in answer, got ''"),
        ("a.txt", b"a\tb\r\n", None),
    ],
)
def test_what_a_file_should_not_hold_is_named_with_its_row(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    if words is None:
        assert list(v.read(tmp_path / name, ("answer", "text"))) == [(None, "a\tb")]
        return
    with pytest.raises(ValueError, match=words):
        list(v.read(tmp_path / name, ("answer", "text")))


@pytest.fixture
def command(monkeypatch, capsys):
    """What a command line prints; its encoders are those of this file."""
    encoders = {name: Hashed() for name in ("hashed", "siamese", "triplet", "another")}
    encoders["another"].identity = "another"
    for name in ("siamese", "triplet"):
        encoders[name].embedding = SimpleNamespace(architecture=name)
    monkeypatch.setattr(commands, "load_encoder", lambda model, **_: encoders[model])

    def run(*arguments):
        asutil.main(["vectors", *map(str, arguments)])
        return capsys.readouterr().out

    return run


def test_the_command_line_embeds_and_finds(tmp_path, command, monkeypatch, capsys):
    texts = [*TEXTS, "with\x1b[31m\nan escape"]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps({"text": text} | ({"id": f"a{n}"} if n else {})) for n, text in enumerate(texts)))
    assert command("embed", path, "--model", "hashed", "--out", tmp_path / "kept") == "Vectors(kept: 24 texts, 8 dimensions)\n"
    found, question = v.Vectors.open(tmp_path / "kept"), "Which text?"
    usual = {"hashed": "cosine", "siamese": "distance", "triplet": "distance"}
    for model, by, given_by in (*((model, by, []) for model, by in usual.items()), ("hashed", "dot", ["--by", "dot"])):
        printed = command("search", tmp_path / "kept", "--model", model, "--question", question, "--k", 24, *given_by, "--verify")
        scores, numbers = found.search(Hashed().encode([question]), 24, by)
        lines = [line.split("\t") for line in printed.splitlines()]
        assert [line[:3] for line in lines] == [
            [str(r), f"{s:.4f}", f"a{n}" if n else "0"] for r, (s, n) in enumerate(zip(scores[0], numbers[0]), 1)
        ]
        shown = [" ".join(texts[n].split()) for n in numbers[0]]
        assert [line[3] for line in lines] == [text.replace("\x1b", "\ufffd") for text in shown]

    (tmp_path / "asked.txt").write_text("one?\ntwo?\n")
    several = command("search", tmp_path / "kept", "--model", "hashed", "--questions", tmp_path / "asked.txt", "--k", 1)
    assert several.splitlines()[1::3] == ["one?", "two?"] and several.count("\n") == 6
    assert several == command("search", tmp_path / "kept", "--model", "hashed", "--question", "one?", "--question", "two?", "--k", 1)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one?\n\n two? \n"))
    assert several == command("search", tmp_path / "kept", "--model", "hashed", "--k", 1)

    for arguments, reason in (
        (["search", tmp_path / "kept", "--model", "another", "--question", "x"], "was embedded by the encoder hashed, got another"),
        (["search", tmp_path / "none", "--model", "hashed", "--question", "x"], "none holds no finished vectors"),
        (["search", tmp_path / "kept", "--model", "hashed", "--question", "x", "--k", 0], "k and block of 1 or more expected"),
        (["embed", tmp_path / "none.txt", "--model", "hashed", "--out", tmp_path / "new"], "none.txt"),
    ):
        assert reason in refused(capsys, "vectors", *arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "texts.txt does not exist: a file of texts is expected"),
        ("one\n\nthree\n", "texts.txt line 2: expected text in line, got ''"),
        ("", "texts.txt: at least one text expected, got none"),
    ],
)
def test_texts_are_read_before_a_model_is_loaded(tmp_path, monkeypatch, capsys, content, message):
    def loads(**_):
        raise AssertionError("a model was loaded")

    if content is not None:
        (tmp_path / "texts.txt").write_text(content)
    monkeypatch.setattr(commands, "load_encoder", loads)
    assert message in refused(capsys, "vectors", "embed", tmp_path / "texts.txt", "--model", "a/model", "--out", tmp_path / "out")


def test_words_are_no_encoder_on_the_command_line(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("one\n")
    for model, message in (("bm25", "bm25 embeds no text"), ("bm52", "did you mean 'bm25'")):
        assert message in refused(capsys, "vectors", "embed", tmp_path / "texts.txt", "--model", model, "--out", tmp_path / "out")
