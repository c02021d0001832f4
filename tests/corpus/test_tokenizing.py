"""Ids that are put together from words are the tokenizer's own ids of the text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers

from asutil.corpus import tokenizing

TEXTS = [
    "What isn't 'quoted' (or 3,000.5 things)?",
    "",
    " ",
    "two  spaces",
    " before",
    "after ",
    "a\tb\n c \u00a0d",
    "</s> <mask>",
    "caf\u00e9 \u4e2d\u6587 e\u0301",
    "What isn't",
]
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


@pytest.fixture
def by_words_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("tokenised text by text")

    monkeypatch.setattr(tokenizing, "_whole", refuse)


def test_ids_are_those_of_each_text(backend, by_words_alone, monkeypatch):
    assert apart(backend, TEXTS) == one_by_one(backend, TEXTS)
    assert apart(backend, []) == []
    assert apart(backend, ["", ""]) == [[], []]
    monkeypatch.setattr(tokenizing, "BLOCK", 3)
    monkeypatch.setattr(tokenizing, "CHUNK", 2)
    assert apart(backend, TEXTS) == one_by_one(backend, TEXTS)


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


def without_prefix_space(backend):
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def with_a_token_of_two_words(backend):
    backend.add_tokens([AddedToken("New York")])


def with_special_tokens_in_text(backend):
    backend.encode_special_tokens = False


def with_another_pre_tokenizer(backend):
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), backend.pre_tokenizer])


def with_another_normalizer(backend):
    backend.normalizer = normalizers.Replace(" ", "_")


@pytest.mark.parametrize(
    "change",
    [without_prefix_space, with_a_token_of_two_words, with_special_tokens_in_text, with_another_pre_tokenizer, with_another_normalizer],
)
def test_other_tokenizers_are_given_whole_texts(tokenizer, change):
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.encode_special_tokens = True
    texts = [*TEXTS, "in New York <mask> a </s>b"]
    change(backend)
    assert apart(backend, texts) == one_by_one(backend, texts)
    assert not tokenizing._parts_at_spaces(backend)


def test_truncation_and_padding_are_off(tokenizer):
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    (ids,) = apart(backend, ["one two three four five six"])
    assert tokenizer.decode(ids) == " one two three four five six"
