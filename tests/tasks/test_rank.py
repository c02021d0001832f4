"""Scoring at length: against transformers' own model one pair at a time, stopped and gone on with, in bounded memory."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import RobertaConfig, RobertaForSequenceClassification

from asutil import inputs
from asutil.data.answers import Candidate, Question
from asutil.inputs import batches as input_batches
from asutil.models import embedder, joint, loading
from asutil.tasks import base, rank

from ..conftest import WORDS

SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 130}


def questions(count=12, length=12, seed=0):
    """Questions in no order of length, with 0 to 6 candidates, some of which stand in several questions, or twice in one."""
    draw = np.random.default_rng(seed)
    text = lambda: " ".join(draw.choice(WORDS, draw.integers(1, length)))
    known = [text() for _ in range(8)]
    for n in range(count):
        texts = [known[k] if draw.random() < 0.5 else text() for k in draw.integers(0, 8, n % 7)]
        yield Question(f"q{n}", text() + "?", tuple(Candidate(f"q{n}-{k}", t, int(k == 1), None, None) for k, t in enumerate(texts)))


@pytest.fixture
def plain(tokenizer):
    """transformers' own model for sequence classification."""
    torch.manual_seed(0)
    return RobertaForSequenceClassification(RobertaConfig(vocab_size=len(tokenizer), initializer_range=0.3, **SIZE)).eval()


@pytest.fixture
def ranker(plain, tokenizer):
    """The same weights under the project's own ranker, with windows of a few questions."""
    model = loading.from_config(plain.config, tokenizer, mlm=False)
    model.backbone.load_state_dict(plain.roberta.state_dict())
    model.pair.classifier.load_state_dict(plain.classifier.state_dict())
    return rank.Ranker(model, max_tokens=24)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(base, "WINDOW", 8)


@pytest.fixture
def scored(ranker):
    """How many pairs the model has seen since the list was last cleared."""
    seen = []
    ranker.model.register_forward_pre_hook(lambda model, arguments: seen.append(len(arguments[0]["input_ids"])))
    return seen


@torch.no_grad()
def one_by_one(plain, tokenizer, asked, max_tokens=24):
    rows = []
    for question in asked:
        for candidate in question.candidates:
            options = {"truncation": "longest_first", "max_length": max_tokens, "return_tensors": "pt"}
            logits = plain(**tokenizer([question.text], [candidate.text], **options)).logits[0]  # lists: "" alone is no pair
            rows.append((question.id, candidate.id, candidate.label, float(logits[1] - logits[0])))
    return pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score"])


def test_a_score_that_is_no_number_is_not_ranked():
    with pytest.raises(ValueError, match="candidate 1: a score expected, got nan"):
        base.best_first(np.array([0.5, np.nan, 1.0]))
    with pytest.raises(ValueError, match="runs/mine, candidate 0: a score expected, got nan: its weights may be damaged"):
        base.best_first(np.array([np.nan]), "runs/mine")


@pytest.mark.parametrize("tokens", [40, 1 << 13])
def test_scores_equal_the_plain_model_one_pair_at_a_time(ranker, plain, tokenizer, tokens, monkeypatch):
    monkeypatch.setattr(rank, "TOKENS_ON_CPU", tokens)
    asked = list(questions())
    nothing = tuple(Candidate(f"n-{k}", text, 0, None, None) for k, text in enumerate(["", "paper " * 40, ""]))
    asked.insert(3, Question("nothing", "", nothing))
    ranker.model.train()  # dropout must not reach a score
    found = ranker.score(iter(asked), progress=False)
    assert ranker.model.training
    expected = one_by_one(plain, tokenizer, asked)
    assert expected.score.std() > 0.1
    pd.testing.assert_frame_equal(found.astype({"label": int, "score": float}), expected, rtol=0, atol=1e-5)
    assert found.score.dtype == np.float32 and found.label.dtype == np.int8


# ------------------------------------------------------------------ stopped and gone on with


def stopped_after(asked, number):
    for n, question in enumerate(asked):
        if n == number:
            raise KeyboardInterrupt
        yield question


def test_a_stopped_scoring_goes_on_where_it_was(ranker, scored, tmp_path):
    asked = list(questions(20))
    whole = ranker.score(asked, progress=False)
    scored.clear()
    with pytest.raises(KeyboardInterrupt):
        ranker.score(stopped_after(asked, 13), progress=False, folder=tmp_path / "parts")
    done = sum(scored)
    assert 0 < done < len(whole)
    assert sum(len(pd.read_parquet(path)) for path in (tmp_path / "parts").glob("*.parquet")) == done
    (tmp_path / "parts" / ".window-00099-0123456789abcdef.parquet.1.part").write_bytes(b"cut sh")  # a writer that was killed
    scored.clear()
    again = ranker.score(iter(asked), progress=False, folder=tmp_path / "parts")
    assert sum(scored) == len(whole) - done
    pd.testing.assert_frame_equal(again, whole, rtol=0, atol=1e-6)
    scored.clear()
    pd.testing.assert_frame_equal(ranker.score(asked, progress=False, folder=tmp_path / "parts"), again)
    assert not scored


def test_candidates_that_are_cut_at_their_slot_are_counted(tokenizer, caplog):
    model = loading.start_from("tiny", tokenizer, 48, joint=joint.shape(True, "ie_k", 2, 48, "linear", "absolute"))
    caplog.clear()
    for question, cut in (("a?", 1), ("a b " * 8, 2)):  # a question that is cut is cut for all
        vars(model).pop("told_cut", None)
        rank.Ranker(model, 48).rank(question, ["a b", "a b " * 8])  # 16 tokens a slot
        assert caplog.messages.pop() == f"cut at max_tokens=48: {cut} of 2 candidates"


def test_candidates_that_are_cut_are_counted_once(ranker, tokenizer, caplog):
    candidates = [["a b"] * 3, ["a b " * 30] + ["a b"] * 6]
    ranker.rank(["a?", "b?"], candidates)
    ranker.rank("a?", candidates[1])
    assert caplog.messages == ["cut at max_tokens=24: 1 of 10 candidates"]
    caplog.clear()
    untrained = embedder.Embedder(ranker.model.backbone, tokenizer, embedder.Embedding("untrained", "mean", 24))
    untrained.encode(candidates[0])
    untrained.encode(candidates[1])
    untrained.encode(candidates[1])
    assert caplog.messages == ["cut at max_tokens=24: 1 of 7 texts"]


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_window_that_was_damaged_is_scored_again(ranker, scored, tmp_path, caplog, suffix):
    asked = list(questions(20))
    whole = ranker.score(asked, progress=False, folder=tmp_path)
    damaged = sorted(tmp_path.glob(f"*{suffix}"))[1]
    damaged.write_bytes(damaged.read_bytes()[:-20] + b"0" * 20)
    scored.clear()
    pd.testing.assert_frame_equal(ranker.score(asked, progress=False, folder=tmp_path), whole, rtol=0, atol=1e-6)
    assert sum(scored) == len(pd.read_parquet(damaged.with_suffix(".parquet")))
    assert f"{damaged.name} is damaged" in caplog.text


def test_a_stop_inside_a_window_leaves_no_part_of_it(ranker, tmp_path, monkeypatch):
    asked, batches = list(questions(20)), inputs.micro_batches
    monkeypatch.setattr(rank, "TOKENS_ON_CPU", 60)
    monkeypatch.setattr(base.disk, "atomically", lambda path, write: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(OSError, match="disk full"):
        ranker.score(asked, progress=False, folder=tmp_path)
    monkeypatch.undo()

    def dying(*arguments):
        yield from batches(*arguments)[:1]
        raise KeyboardInterrupt

    monkeypatch.setattr(input_batches, "micro_batches", dying)
    with pytest.raises(KeyboardInterrupt):
        ranker.score(asked, progress=False, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def with_candidates(question, **changes):
    return replace(question, candidates=(replace(question.candidates[0], **changes), *question.candidates[1:]))


CHANGES = {
    "question text": lambda q: replace(q, text=q.text + "!"),
    "question id": lambda q: replace(q, id="other"),
    "candidate text": lambda q: with_candidates(q, text="another sentence"),
    "candidate id": lambda q: with_candidates(q, id="other"),
    "label": lambda q: with_candidates(q, label=1 - q.candidates[0].label),
    "fewer candidates": lambda q: replace(q, candidates=q.candidates[:-1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_questions_are_scored_again(ranker, scored, tmp_path, change):
    asked = [question for question in questions(9) if len(question.candidates) > 1]
    ranker.score(asked, progress=False, folder=tmp_path)
    changed = [asked[0], CHANGES[change](asked[1]), *asked[2:]]
    scored.clear()
    found = ranker.score(changed, progress=False, folder=tmp_path)
    window = next(window for window in base.windows_of(changed) if changed[1] in window)
    assert sum(scored) >= sum(len(question.candidates) for question in window)
    pd.testing.assert_frame_equal(found, ranker.score(changed, progress=False), rtol=0, atol=1e-6)


def moved(weights):
    with torch.no_grad():
        weights.view(-1)[-1] += 1e-3


MODEL_CHANGES = {
    "head": lambda ranker: moved(next(ranker.model.pair.parameters())),
    "body": lambda ranker: moved(list(ranker.model.backbone.parameters())[-1]),
    "architecture": lambda ranker: setattr(ranker.model.backbone.config, "layer_norm_eps", 1e-3),
    "length": lambda ranker: setattr(ranker, "max_tokens", 25),
}


@pytest.mark.parametrize("change", MODEL_CHANGES)
def test_a_changed_model_scores_everything_again(ranker, scored, tmp_path, change):
    asked = list(questions(9))
    pairs = len(ranker.score(asked, progress=False, folder=tmp_path))
    MODEL_CHANGES[change](ranker)
    scored.clear()
    ranker.score(asked, progress=False, folder=tmp_path)
    assert sum(scored) == pairs


# ------------------------------------------------------------------ memory and progress


@pytest.mark.slow
def test_memory_does_not_grow_with_the_questions(ranker, monkeypatch):
    """Four times the questions, each with kilobytes of text: what is held at once stays that of a window."""
    monkeypatch.setattr(base, "WINDOW", 64)
    peaks = []
    for count in (40, 160):
        tracemalloc.start()
        table = ranker.score(questions(count, length=600), progress=False)
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        peaks.append(peak - held)  # without the table itself
        del table
    assert peaks[0] > 200_000
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize("kind", [list, iter])
def test_the_bar_knows_how_many_pairs_there_are(ranker, monkeypatch, tmp_path, kind):
    bars, tqdm = [], base.tqdm
    monkeypatch.setattr(base, "tqdm", lambda **options: bars.append(tqdm(**options | {"disable": False})) or bars[-1])
    asked = list(questions(9))
    pairs = sum(len(question.candidates) for question in asked)
    for _ in range(2):  # scored, then found again
        ranker.score(kind(asked), folder=tmp_path)
    assert [bar.n for bar in bars] == [pairs, pairs]
    assert [bar.total for bar in bars] == [pairs if kind is list else None] * 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_body_is_bfloat16_and_scores_are_float32(ranker):
    asked = list(questions())
    exact = ranker.score(asked, progress=False).score
    ranker.model.to("cuda")
    kinds = []
    ranker.model.backbone.encoder.layer[0].register_forward_hook(lambda *given: kinds.append(torch.is_autocast_enabled("cuda")))
    ranker.model.pair.classifier.register_forward_hook(lambda module, given, out: kinds.append(out.dtype))
    rough = ranker.score(asked, progress=False).score
    assert set(kinds) == {True, torch.float32} and rough.dtype == np.float32
    assert (rough - exact).abs().max() < 0.1
