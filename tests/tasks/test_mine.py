"""Mined negatives: against slow loops and sentence-transformers, what never becomes one, the folder that a training reads."""

import functools
import json
import math
import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, BertConfig

from aslab.commands import asutil
from asutil.corpus import build, sources
from asutil.data import answers
from asutil.io import disk
from asutil.models import elsewhere, embedder
from asutil.tasks import mine, rankers

from ..conftest import WORDS, made_up_documents
from ..data.test_baselines import slow_bm25 as bm25
from ..io.test_weight_shapes import edited
from ..made_up import refused
from ..models.test_embedder import SIZES, settings_of, small_backbone
from .test_nearest import Given
from .test_nearest import by_hand as similarity

SPLITS = {"train": 40, "dev": 6, "test": 6}


def text(draw, longest):
    return " ".join(draw.choice(WORDS, draw.integers(2, longest)))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Questions of their own documents; each has right and wrong candidates, and one of train has none that is right."""
    folder, draw = tmp_path_factory.mktemp("questions") / "made_up", np.random.default_rng(3)
    folder.mkdir()
    for split, count in SPLITS.items():
        rows = []
        for number in range(count):
            labels = [0, 0, 0] if (split, number) == ("train", 7) else draw.permutation([1, 0, 0, 1][: draw.integers(2, 5)])
            asked = {"question_id": f"{split} {number}", "question": f"what {text(draw, 5)} {number}"}
            rows += [asked | {"answer": text(draw, 9), "label": int(label), "document_title": f"d{number}"} for label in labels]
        pd.DataFrame(rows).to_parquet(folder / f"{split}.parquet")
    return folder


@pytest.fixture(scope="module")
def sentences(tmp_path_factory, data):
    """A file of sentences, with candidates in other letters and white space, and a sentence twice in a row."""
    draw = np.random.default_rng(4)
    train = answers.load_answers(data)["train"]
    lines = [text(draw, 9) for _ in range(60)]
    lines += ["  ".join(candidate.text.upper().split()) for question in train[:20] for candidate in question.candidates]
    path = tmp_path_factory.mktemp("sentences") / "sentences.txt"
    path.write_text("\n".join([lines[0], *lines]), encoding="utf-8")
    return path


class Trained(Given):
    """An encoder whose usual readout is the distance: all scores are negative."""

    def __init__(self):
        super().__init__()
        self.embedding = embedder.Embedding("triplet", "mean", 32)


def plain(line):
    return " ".join(line.split()).casefold()


def by_loops(data, others, scores_of, rule):
    """Question id -> its negatives, sentence by sentence; and how many the margin excludes.

    scores_of: (question, sentences) -> a score each, None for one without a rank.
    """
    train = answers.load_answers(data)["train"]
    lines = {}
    for line in [*(c.text for question in train for c in question.candidates if c.label), *others]:
        lines.setdefault(plain(line), line)
    pool = list(lines.values())
    negatives, excluded = {}, 0
    for question in train:
        right = {plain(c.text) for c in question.candidates if c.label}
        own = {plain(c.text) for c in question.candidates}
        scores = scores_of(question.text, pool)
        if not right:
            negatives[question.id] = []
            continue
        lowest = min(score or 0.0 for line, score in zip(pool, scores) if plain(line) in right)
        ranked = [n for n, line in enumerate(pool) if plain(line) not in own and scores[n] is not None]
        ranked = sorted(ranked, key=lambda n: (-scores[n], n))[: rule.depth]
        bound = math.inf if rule.margin is None else lowest - rule.margin * abs(lowest)
        kept = [n for n in ranked if scores[n] <= bound]
        excluded += len(ranked) - len(kept)
        negatives[question.id] = [pool[n] for n in kept[rule.skip :][: rule.negatives]]
    return negatives, excluded


def mined(folder):
    """Question id -> its negatives in a written folder."""
    rows = pq.read_table(folder / "train.parquet").to_pandas()
    ids = rows["question_id"].unique()
    return {id: rows.loc[(rows["question_id"] == id) & rows["mined"], "answer"].tolist() for id in ids}


RULES = [mine.Rule(), mine.Rule(negatives=3, skip=2, margin=0.2), mine.Rule(negatives=200, margin=0.0)]
RULES += [mine.Rule(negatives=4, margin=None, depth=6), mine.Rule(negatives=2, margin=0.1, depth=40)]
ENCODERS = {"cosine": Given, "distance": Trained, "bm25": None}


@functools.cache
def vector_of(text):
    return Given().encode([text])[0]


@functools.cache
def slow_scores(by, question, pool):
    if by == "bm25":
        return [float(f"{score:.5g}") or None for score in bm25(question, pool)]  # float32 and ties of equal words
    return [similarity(vector_of(question), vector_of(line), by) for line in pool]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("by", ENCODERS)
def test_negatives_are_those_of_a_loop(tmp_path, monkeypatch, data, sentences, by, rule):
    monkeypatch.setattr(rankers, "load_encoder", lambda name: ENCODERS[by]())
    monkeypatch.setattr(mine, "TOGETHER", 7)
    record = mine.mine(data, sentences, "bm25" if by == "bm25" else "given", tmp_path / "mined", rule)
    scores_of = lambda question, pool: slow_scores(by, question, tuple(pool))
    expected, excluded = by_loops(data, sentences.read_text("utf-8").split("\n"), scores_of, rule)
    assert mined(tmp_path / "mined") == expected
    counts = record["counts"]
    assert record["model"]["readout"] == by and counts["negatives"] == sum(map(len, expected.values())) > 0
    if by != "bm25":
        assert record["model"] == {"name": "given", "readout": by, "identity": "given"} and counts["excluded_by_margin"] == excluded
        fewer = sum(len(negatives) < rule.negatives for negatives in expected.values())
        assert sum(counts["fewer"].values()) == fewer and counts["fewer"]["no right candidate"] == 1


class Judge:
    """Scores that have nothing to do with the first ranking's."""

    def rank(self, question, candidates):
        return mine.tasks.base.best_first(np.array([slow_judge(question, text) for text in candidates]))

    def _identity(self):
        return "judge"


def slow_judge(question, text):
    return zlib.crc32(f"{question} {text}".encode()) / 2**29 - 4


@pytest.mark.slow
def test_the_rule_goes_by_the_scores_of_a_judge(tmp_path, monkeypatch, data, sentences):
    """By a loop: the judge scores the best by BM25, its best come first, and its scores of right candidates are the bound."""
    monkeypatch.setattr(rankers, "load_ranker", lambda name: Judge())
    rule = mine.Rule(negatives=3, margin=0.1, depth=8)
    record = mine.mine(data, sentences, "bm25", tmp_path / "mined", rule, judge="cross/encoder")

    def scores_of(question, pool):
        first = slow_scores("bm25", question, tuple(pool))
        best = sorted((n for n, line in enumerate(pool) if first[n] is not None), key=lambda n: (-first[n], n))
        asked = next(q for q in answers.load_answers(data)["train"] if q.text == question)
        own = {plain(c.text) for c in asked.candidates}
        best = [n for n in best if plain(pool[n]) not in own][: rule.depth]
        return [slow_judge(question, line) if n in best or plain(line) in own else None for n, line in enumerate(pool)]

    expected, excluded = by_loops(data, sentences.read_text("utf-8").split("\n"), scores_of, rule)
    assert mined(tmp_path / "mined") == expected
    assert record["judge"] == {"name": "cross/encoder", "identity": "judge"} and record["counts"]["excluded_by_margin"] == excluded > 0


@given(
    scores=st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=30),
    right=st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=4),
    negatives=st.integers(1, 8),
    skip=st.integers(0, 5),
    margin=st.floats(0, 2),
)
def test_a_rule_takes_the_best_below_the_margin(scores, right, negatives, skip, margin):
    scores = np.sort(np.array(scores, np.float32))[::-1]
    positions, excluded = mine.Rule(negatives, skip, margin).taken(scores, np.array(right, np.float32))
    bound = min(right) - margin * abs(min(right))
    kept = [n for n, score in enumerate(scores) if score <= bound]
    assert positions.tolist() == kept[skip : skip + negatives] and excluded == len(scores) - len(kept)
    assert all(scores[n] <= min(right) for n in positions), "a negative never scores above a right candidate"


@pytest.mark.slow
def test_negatives_are_those_of_sentence_transformers(tmp_path, tokenizer, data):
    """Each question with its right candidates alone: `mine_hard_negatives` knows no wrong ones."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives

    model = embedder.Embedder(small_backbone(tokenizer), tokenizer, settings_of())
    model.save(tmp_path / "model")
    (tmp_path / "right").mkdir()
    for split in SPLITS:
        table = pd.read_parquet(data / f"{split}.parquet")
        table[table["label"] == 1].to_parquet(tmp_path / "right" / f"{split}.parquet")
    draw = np.random.default_rng(6)
    lines = list(dict.fromkeys(text(draw, 12) for _ in range(80)))
    (tmp_path / "sentences.txt").write_text("\n".join(lines), encoding="utf-8")
    pairs = pd.read_parquet(tmp_path / "right" / "train.parquet")[["question", "answer"]]
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    for skip, margin in ((0, 0.001), (2, 0.003), (1, None)):
        rule = mine.Rule(negatives=4, skip=skip, margin=margin)
        folder = tmp_path / f"mined {skip}"
        mine.mine(tmp_path / "right", tmp_path / "sentences.txt", tmp_path / "model", folder, rule)
        options = {"range_min": skip, "range_max": 1000, "relative_margin": margin, "num_negatives": 4}
        dataset = Dataset.from_pandas(pairs, preserve_index=False)
        found = mine_hard_negatives(dataset, theirs, corpus=lines, verbose=False, **options)
        expected = {question: list(dict.fromkeys(rows["negative"])) for question, rows in found.to_pandas().groupby("question")}
        ours = {question: [] for question in pairs["question"]}
        rows = pq.read_table(folder / "train.parquet").to_pandas()
        for question, answer in rows.loc[rows["mined"], ["question", "answer"]].to_numpy():
            ours[question].append(answer)
        assert {question: negatives for question, negatives in ours.items() if negatives} == expected
        assert len(expected) > 10 and len(expected) < len(ours) + (margin is None)


# ------------------------------------------------------------------ the folder


def test_a_training_reads_the_folder(tmp_path, data, sentences):
    """All splits as they were, negatives behind the candidates of train, without a place in the document."""
    record = mine.mine(data, sentences, "bm25", tmp_path / "mined", mine.Rule(margin=None))
    before, after = answers.load_answers(data, context=True), answers.load_answers(tmp_path / "mined", context=True)
    assert list(after["dev"]) == list(before["dev"]) and list(after["test"]) == list(before["test"])
    for old, new in zip(before["train"], after["train"], strict=True):
        count = len(old.candidates)
        assert (new.id, new.text, new.candidates[:count]) == (old.id, old.text, old.candidates)
        assert all((c.label, c.before, c.after) == (0, None, None) for c in new.candidates[count:])
        assert len(new.candidates) - count == (5 if any(c.label for c in old.candidates) else 0)
    kept = {split: questions.report["kept"] for split, questions in after.items()}
    candidates = before["train"].report["kept"]["candidates"]
    assert kept["train"] == {"questions": 40, "candidates": candidates + record["counts"]["negatives"]}
    assert record["counts"] == {"questions": 40, "negatives": 195, "excluded_by_margin": 0, "fewer": {"no right candidate": 1}}


def test_the_record_names_what_made_the_folder_and_is_the_same_again(tmp_path, data, sentences):
    record = mine.mine(data, sentences, "bm25", tmp_path / "mined", mine.Rule(skip=1), limit=10)
    mine.mine(data, sentences, "bm25", tmp_path / "again", mine.Rule(skip=1), limit=10)
    names = ["dev.parquet", "mined.json", "test.parquet", "train.parquet"]
    assert sorted(path.name for path in (tmp_path / "mined").iterdir()) == names
    assert all((tmp_path / "mined" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)
    assert disk.read_json(tmp_path / "mined" / disk.MINED) == json.loads(json.dumps(record))
    assert record["fingerprint"] == answers.fingerprint_of_answers(tmp_path / "mined")
    fingerprint = answers.fingerprint_of_answers(data)
    assert record["dataset"] == {"name": "made_up", "fingerprint": fingerprint, "protocol": "clean", "limit": 10}
    assert record["rule"] == {"negatives": 5, "skip": 1, "margin": 0.05, "depth": 1000}
    assert str(tmp_path) not in json.dumps(record) and record["counts"]["questions"] == 10


def test_candidates_are_those_of_all_training_questions(tmp_path, data):
    record = mine.mine(data, "candidates", "bm25", tmp_path / "mined", limit=5)
    texts = {plain(c.text) for question in answers.load_answers(data)["train"] for c in question.candidates}
    assert record["sentences"] == {"name": "candidates", "sha256": None, "distinct": len(texts)}
    again = mine.mine(tmp_path / "mined", "candidates", "bm25", tmp_path / "again", limit=5)
    assert again["dataset"]["name"] == "made_up", "what it was mined from is still known"


def test_a_folder_of_documents_is_read_and_split_as_a_corpus(tmp_path, data, tokenizer):
    documents = [[" ".join(paragraph) for paragraph in document] for document in made_up_documents(6)]
    (tmp_path / "texts").mkdir()
    for number, paragraphs in enumerate(documents):
        (tmp_path / "texts" / f"{number}.txt").write_text("\n\n".join(paragraphs))
    record = mine.mine(data, tmp_path / "texts", "bm25", tmp_path / "mined")
    corpus = build(sources.documents(tmp_path / "texts"), tokenizer, tmp_path / "index")
    sentences = {plain(corpus.text([n])) for n in range(corpus.info["sentences"])}
    right = {plain(c.text) for question in answers.load_answers(data)["train"] for c in question.candidates if c.label}
    assert len(sentences) > 20 and record["sentences"]["distinct"] == len(sentences | right)
    assert record["sentences"]["name"] == "texts"


def test_questions_with_one_text_share_their_candidates(tmp_path):
    """The answer to one is never a negative of the other, though nobody labelled it there."""
    rows = [("a", "what river", "a river of water", 1), ("b", "What  River?", "the river runs", 1), ("c", "what sea", "the sea", 1)]
    for split in SPLITS:
        table = pd.DataFrame(rows, columns=["question_id", "question", "answer", "label"])
        table.to_csv(tmp_path / f"{split}.tsv", sep="\t", index=False)
    mine.mine(tmp_path, "candidates", "bm25", tmp_path / "mined", mine.Rule(margin=None))
    assert mined(tmp_path / "mined") == {"a": [], "b": [], "c": []}
    (tmp_path / "more.txt").write_text("river\nRiver \nwhat\n", encoding="utf-8")
    mine.mine(tmp_path, tmp_path / "more.txt", "bm25", tmp_path / "more", mine.Rule(margin=None))
    assert mined(tmp_path / "more") == {"a": ["what", "river"], "b": ["what", "river"], "c": ["what"]}
    mine.mine(tmp_path, "candidates", "bm25", tmp_path / "two", mine.Rule(margin=None), limit=2)
    assert not any(mined(tmp_path / "two").values()), "the other question counts beyond the limit too"


def test_no_candidate_of_dev_or_test_is_mined(tmp_path, capsys):
    """Right ones would be trained as wrong; if they alone were left out, labels of dev and test would decide what is trained."""
    rows = {"train": [("what river", "a river of water", 1), ("what sea", "the sea", 1)]}
    rows |= {"dev": [("what bank", "the bank of the river", 1), ("what bank", "a river runs", 0)]}
    rows |= {"test": [("what boat", "River boats", 1), ("what boat", "the sea", 0), ("what boat", "Caf\xe9", 0)]}
    for split, known in rows.items():
        pd.DataFrame(known, columns=["question", "answer", "label"]).to_csv(tmp_path / f"{split}.csv", index=False)
    lines = ["The  bank of the RIVER", "a river runs", "river boats", "river boats", "the sea", "one more river", "cafe\u0301"]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    words = ["mine", str(tmp_path), str(tmp_path / "lines.txt"), "--model", "random", "--margin", "none", "--to"]
    asutil.main([*words, str(tmp_path / "mined")])
    river, sea = ({*texts} for texts in mined(tmp_path / "mined").values())
    assert river == {"the sea", "one more river"} and sea == {"a river of water", "one more river"}
    assert "sentences that are candidates of dev or test questions, left out: 4" in capsys.readouterr().out.split("\n")
    record = disk.read_json(tmp_path / "mined" / disk.MINED)["sentences"]
    assert (record["distinct"], record["left_out"]) == (3, 4)


# ------------------------------------------------------------------ what is refused


def test_a_sentence_with_another_mark_at_its_end_is_the_candidate(tmp_path):
    """The right answer of one's own question or of another one, and what is right in test: none becomes a wrong one."""
    known = [("q1", "what river", "a river of water", 1), ("q2", "what sea", "The sea!", 1), ("q3", "what boat", "River boats", 1)]
    for split, some in {"train": known[:2], "dev": known[2:], "test": known[2:]}.items():
        pd.DataFrame(some, columns=["question_id", "question", "answer", "label"]).to_csv(tmp_path / f"{split}.csv", index=False)
    (tmp_path / "lines.txt").write_text("A river of water.\nThe sea\nRiver boats.\none more river\n", encoding="utf-8")
    mine.mine(tmp_path, tmp_path / "lines.txt", "random", tmp_path / "mined", mine.Rule(margin=None))
    river, sea = ({*texts} for texts in mined(tmp_path / "mined").values())
    assert river == {"The sea!", "one more river"} and sea == {"a river of water", "one more river"}


def test_a_file_of_documents_is_refused_where_sentences_are_expected(tmp_path, data):
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": "one"}) + "\n" + json.dumps({"text": "first\n \nsecond"}) + "\n")
    with pytest.raises(ValueError, match=r"texts.jsonl, text 2: one sentence expected, got paragraphs; documents are split"):
        mine.mine(data, tmp_path / "texts.jsonl", "bm25", tmp_path / "mined")
    assert not (tmp_path / "mined").exists()


def test_a_source_without_a_sentence_is_refused(tmp_path, data):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match="empty.txt: expected sentences to mine from, got none"):
        mine.mine(data, tmp_path / "empty.txt", "bm25", tmp_path / "mined")
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "a.txt").write_text("Too short to be kept.")
    with pytest.raises(ValueError, match=r"short: expected .* got none: its documents need 200 characters in paragraphs of 60"):
        mine.mine(data, tmp_path / "short", "bm25", tmp_path / "mined")
    assert not (tmp_path / "mined").exists()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"negatives": 0}, "negatives: at least 1 expected, got 0"),
        ({"skip": -1}, "skip: at least 0 expected, got -1"),
        ({"margin": -0.1}, "margin: at least 0 expected, got -0.1"),
        ({"margin": math.nan}, "margin: at least 0 expected, got nan"),
        ({"negatives": 4, "skip": 3, "depth": 6}, "depth: at least 7 expected, got 6"),
    ],
)
def test_an_impossible_rule_is_refused(tmp_path, data, rule, message):
    with pytest.raises(ValueError, match=message):
        mine.mine(data, "candidates", "bm25", tmp_path / "mined", mine.Rule(**rule))


def test_nothing_is_left_where_something_is_wrong(tmp_path, monkeypatch, data, sentences):
    (tmp_path / "blank.txt").write_text("a river\n\nthe sea\n", encoding="utf-8")
    (tmp_path / "table.tsv").write_text("words\na river\n", encoding="utf-8")
    (tmp_path / "there").mkdir()
    for source, folder, error, message in [
        ("blank.txt", "mined", ValueError, "blank.txt line 2: expected text in line"),
        ("table.tsv", "mined", ValueError, "expected text in sentence or text"),
        ("absent.txt", "mined", FileNotFoundError, "absent.txt does not exist"),
        ("blank.txt", "there", FileExistsError, "there exists: expected a new folder"),
    ]:
        with pytest.raises(error, match=message):
            mine.mine(data, tmp_path / source, "bm25", tmp_path / folder)
    with pytest.raises(ValueError, match="limit must be at least 1 question, got 0"):
        mine.mine(data, sentences, "bm25", tmp_path / "mined", limit=0)

    class Failing(Given):
        def encode(self, texts):
            return super().encode(texts) * np.nan

    monkeypatch.setattr(rankers, "load_encoder", lambda name: Failing())
    with pytest.raises(ValueError, match="expected a vector"):
        mine.mine(data, sentences, "given", tmp_path / "mined")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blank.txt", "table.tsv", "there"]


def test_an_encoder_is_known_by_its_folder(tmp_path, tokenizer, monkeypatch):
    """The mean of one backbone by each way to it: trained here, by sentence-transformers, as a backbone."""
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    backbone = AutoModel.from_config(BertConfig(max_position_embeddings=130, **SIZES, **ids)).eval()
    folder, texts = tmp_path / "saved", ["a river of paper", "engine", "the violin"]
    embedder.Embedder(backbone, tokenizer, settings_of()).save(folder)
    encoder = rankers.load_encoder(folder)
    assert encoder.embedding.max_tokens == 32
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}', encoding="utf-8")
    edited(folder, embedding={})
    by_library = rankers.load_encoder(folder)
    assert isinstance(by_library, elsewhere.SentenceTransformerEncoder)
    (folder / "modules.json").unlink()
    mean = rankers.load_encoder(folder)
    assert mean.embedding.max_tokens == 128 and mean.embedding.architecture == "untrained"
    for other in (by_library, mean):
        np.testing.assert_allclose(other.encode(texts), encoder.encode(texts), atol=1e-5)
    edited(folder, architectures=["BertForSequenceClassification"])
    with pytest.raises(ValueError, match="expected a model that embeds each text by itself, got a model that reads question and candidate"):
        rankers.load_encoder(folder)
    monkeypatch.delenv("ASUTIL_MIRROR", raising=False)
    with pytest.raises(ValueError, match="trecqa_transfer: expected a data set with training questions"):
        mine.mine("trecqa_transfer", tmp_path / "sentences.txt", "bm25", tmp_path / "mined")
    with pytest.raises(FileNotFoundError, match="set ASUTIL_MIRROR"):
        rankers.load_encoder("nobody/nothing")


def test_the_command_says_what_it_mined(tmp_path, capsys, data, sentences):
    words = ["mine", str(data), str(sentences), "--model", "bm25", "--to", str(tmp_path / "mined"), "--margin", "none", "--negatives", "2"]
    asutil.main(words)
    printed = capsys.readouterr().out.split("\n")
    assert printed[0] == "40 training questions, 78 negatives added"
    assert printed[1] == "questions with fewer than 2: 1 (no right candidate)"
    assert sum(line.startswith("  not ") for line in printed) == 6 and str(tmp_path / "mined") in printed
    assert "exists: expected a new folder" in refused(capsys, *words)


@pytest.mark.parametrize("margin", [0.05, 1.5, None])
def test_random_negatives_are_a_control(data, sentences, tmp_path, margin):
    made = [mine.mine(data, sentences, "random", tmp_path / str(number), mine.Rule(margin=margin)) for number in range(2)]
    assert made[0]["fingerprint"] == made[1]["fingerprint"] and made[0]["model"] == {"name": "random", "readout": "random"}
    before, after = (answers.load_answers(folder)["train"] for folder in (data, tmp_path / "0"))
    drawn = []
    for question, more in zip(before, after):
        own = {" ".join(candidate.text.split()).casefold() for candidate in question.candidates}
        negatives = [candidate.text for candidate in more.candidates[len(question.candidates) :]]
        expected = 5 if any(candidate.label for candidate in question.candidates) else 0
        assert len(set(negatives)) == len(negatives) == expected
        assert not own & {" ".join(negative.split()).casefold() for negative in negatives}
        drawn += negatives
    assert len(set(drawn)) > 40  # not the same ones for every question


@pytest.mark.parametrize(
    ("asked", "texts", "model", "reasons"),
    [
        # All questions share "is" with the right candidates of the others.
        ("where is town{n}?\tit is town{n}\t1\nwhere is town{n}?\tnobody knows\t0\n", ["der Zug kommt nie"] * 9, "bm25", set()),
        ("q{n} wo?\tan{n}\t1\n", ["der Zug kommt nie"], "bm25", {"too few share a word with it"}),
        ("q{n} wo?\tan{n}\t1\n", ["der Zug kommt nie"], "random", {"too few sentences"}),
    ],
)
def test_the_reason_for_fewer_negatives_is_the_true_one(tmp_path, asked, texts, model, reasons):
    (tmp_path / "q.tsv").write_text("question\tanswer\tlabel\n" + "".join(asked.format(n=n) for n in range(30)))
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    rule = mine.Rule(negatives=50 if model == "random" else 5, margin=None)
    record = mine.mine(tmp_path / "q.tsv", tmp_path / "texts.txt", model, tmp_path / "mined", rule)
    assert set(record["counts"]["fewer"]) == reasons
