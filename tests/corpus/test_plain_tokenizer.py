"""A tokenizer.json read without transformers gives what transformers reads from the same folder."""

import json

import pytest
from tokenizers import Tokenizer

from asutil.corpus import tokenizers
from asutil.corpus.plain_tokenizer import PlainTokenizer
from asutil.inputs.template import Template


@pytest.fixture
def folder(tmp_path):
    """A saved tokenizer that pads and truncates by itself, as those of sentence-transformers do, with a further special token."""
    tokenizers.train_tokenizer(["one two two", "two three"], vocab_size=270).save_pretrained(tmp_path)
    backend = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.add_special_tokens(["<q>"])
    backend.enable_padding(length=128, pad_id=1, pad_token="<pad>")
    backend.enable_truncation(16)
    backend.save(str(tmp_path / "tokenizer.json"))
    config = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"additional_special_tokens": ["<q>"]}), encoding="utf-8")
    return tmp_path


def test_it_reads_what_transformers_reads(folder):
    plain, known = PlainTokenizer.load(folder), tokenizers.load_tokenizer(folder)
    text = "two three one </s> " * 9
    assert plain(text)["input_ids"] == known(text)["input_ids"] and len(plain(text)["input_ids"]) > 16
    assert plain.decode(plain("two three")["input_ids"]) == known.decode(known("two three")["input_ids"])
    assert plain.all_special_ids == sorted(known.all_special_ids)
    assert (plain.pad_token_id, plain.mask_token_id, len(plain)) == (known.pad_token_id, known.mask_token_id, len(known))
    assert repr(Template.of(plain, 2)) == repr(Template.of(known, 2))


def test_without_a_pad_token_it_is_said_what_to_take(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    del config["pad_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r"names no pad_token.*: take a tokenizer saved by asutil, or install asutil\[models\]"):
        PlainTokenizer.load(folder)


def test_a_part_of_transformers_that_is_missing_is_not_taken_for_none(folder, monkeypatch):
    real = __import__

    def broken(name, *rest):
        if name == "transformers":
            raise ModuleNotFoundError("No module named 'safetensors'", name="safetensors")
        return real(name, *rest)

    monkeypatch.setattr("builtins.__import__", broken)
    with pytest.raises(ModuleNotFoundError, match="safetensors"):
        tokenizers.load_tokenizer(folder)
