"""Ids that are put together from words are the tokenizer's own ids of the text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers

from asutil.corpus import tokenizing

TEXTS = ["What isn't 'quoted' (or 3,000.5 things)?", "What isn't", "a\tb\n c \u00a0d", "</s> <mask>", "caf\u00e9 \u4e2d\u6587 e\u0301"]
TEXTS += ["", " ", "two  spaces", " before", "after "]
# White space of many kinds, marks that compose, apostrophes, digits, ideographs, special tokens spelled out.
PIECES = [*"abcAZ'\"-.,09\t\n\r\u00a0\u2003\u0301\u00e9\u4e2d\u0130\ufeff", *["the", "n't", "<mask>", "</s>", "[SEP]", "  "], *[" "] * 4]


@pytest.fixture(scope="module")
def word_pieces():
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend.train_from_iterator([*TEXTS, "the cat sat on the mat"] * 3, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    backend.encode_special_tokens = True
    return backend


@pytest.fixture(params=["bytes", "word pieces"])
def backend(request, tokenizer, word_pieces):
    return tokenizer.backend_tokenizer if request.param == "bytes" else word_pieces


def one_by_one(backend, texts):
    return [backend.encode(text, add_special_tokens=False).ids for text in texts]


def apart(backend, texts):
    ids, sizes = tokenizing.tokenized(backend, texts)
    assert ids.dtype == np.int32 and len(sizes) == len(texts) and sizes.sum() == len(ids)
    return [part.tolist() for part in np.split(ids, sizes.cumsum()[:-1])] if texts else []


def test_ids_are_those_of_each_text(backend, monkeypatch):
    monkeypatch.setattr(tokenizing, "_whole", lambda *_: pytest.fail("tokenised text by text"))
    assert apart(backend, TEXTS) == one_by_one(backend, TEXTS)
    assert apart(backend, []) == []
    assert apart(backend, ["", ""]) == [[], []]
    monkeypatch.setattr(tokenizing, "BLOCK", 3)
    monkeypatch.setattr(tokenizing, "CHUNK", 2)
    assert apart(backend, TEXTS) == one_by_one(backend, TEXTS)


@pytest.mark.slow
@given(texts=st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=8) | st.lists(st.text(max_size=30), max_size=4))
@settings(max_examples=250, deadline=None)
def test_ids_are_those_of_each_text_in_any_script(tokenizer, word_pieces, texts):
    for backend in (tokenizer.backend_tokenizer, word_pieces):
        assert apart(backend, texts) == one_by_one(backend, texts)


def test_every_different_word_is_tokenised_once(tokenizer):
    class Counting:
        """A backend that writes down what it is asked to tokenise."""

        def __getattr__(self, name):
            return getattr(tokenizer.backend_tokenizer, name)

        def encode_batch(self, chunks, **options):
            words.extend(word for chunk in chunks for word in chunk)
            return tokenizer.backend_tokenizer.encode_batch(chunks, **options)

    words = []
    tokenizing.tokenized(Counting(), ["one two two", "two three", "one  two"])
    assert sorted(words) == ["one", "one  two", "three", "two"]


CHANGES = {
    "no space before a text": lambda backend: {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=False)},
    "a token of two words": lambda backend: backend.add_tokens([AddedToken("New York")]) and {},
    "special tokens in texts": lambda backend: {"encode_special_tokens": False},
    "another pre-tokenizer": lambda backend: {"pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.Digits(), backend.pre_tokenizer])},
    "another normalizer": lambda backend: {"normalizer": normalizers.Replace(" ", "_")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_tokenizers_are_given_whole_texts(tokenizer, change):
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.encode_special_tokens = True
    texts = [*TEXTS, "in New York <mask> a </s>b"]
    for name, value in CHANGES[change](backend).items():
        setattr(backend, name, value)
    assert apart(backend, texts) == one_by_one(backend, texts)
    assert not tokenizing._parts_at_spaces(backend)


def test_truncation_and_padding_are_off(tokenizer):
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    (ids,) = apart(backend, ["one two three four five six"])
    assert tokenizer.decode(ids) == " one two three four five six"
