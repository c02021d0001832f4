"""Cross-encoders of others: small models of many architectures against a plain loop over transformers' own call."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from asutil import load_ranker
from asutil.data.answers import Candidate, Question
from asutil.tasks import cross_encoder

from ..conftest import WORDS

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "initializer_range": 0.5}
KINDS = {
    "bert": SIZE,
    "roberta": SIZE | {"type_vocab_size": 1, "pad_token_id": 1},
    "electra": SIZE | {"embedding_size": 16},
    "deberta-v2": SIZE | {"relative_attention": True, "pos_att_type": ["c2p"], "type_vocab_size": 0},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "initializer_range": 0.5},
    "modernbert": SIZE | {"pad_token_id": 1, "cls_token_id": 0, "sep_token_id": 2, "reference_compile": False},
}
QUESTION, TEXTS = "Where is the old mill?", ["By the river.", "", "nowhere " * 60, "The mill is by the river, is it not?", "By the river."]


@pytest.fixture(scope="module")
def bert_tokenizer():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    return BertTokenizer(vocab={word: n for n, word in enumerate(words)})


def saved(folder, kind, labels, tokenizer, **config):
    """A folder as transformers writes it, with random weights."""
    settings = KINDS[kind] | {"vocab_size": len(tokenizer), "max_position_embeddings": 60, "num_labels": labels} | config
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(CONFIG_MAPPING[kind](**settings))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@torch.no_grad()
def by_a_loop(folder, question, texts, max_tokens):
    """One pair at a time by transformers alone."""
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    scores = []
    for text in texts:
        batch = tokenizer([question], [text], truncation="longest_first", max_length=max_tokens, return_tensors="pt")
        logits = model(**batch).logits[0].tolist()
        scores.append(logits[0] if len(logits) == 1 else logits[1] - logits[0])
    return scores


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_transformers_own_call(tmp_path, kind, labels, tokenizer, bert_tokenizer, monkeypatch):
    monkeypatch.setattr(cross_encoder, "BATCH", 2)
    own = tokenizer if kind in ("roberta", "modernbert") else bert_tokenizer
    model = load_ranker(saved(tmp_path, kind, labels, own), device="cpu")
    longest = 58 if kind == "roberta" else 60
    assert model.max_tokens == longest
    expected = by_a_loop(tmp_path, QUESTION, TEXTS, longest)
    assert np.std(expected) > 0.01
    ranked = model.rank(QUESTION, TEXTS)
    assert [score for _, score in sorted(ranked)] == pytest.approx(expected, abs=1e-5)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert model.rank(QUESTION, []) == []
    asked = [Question(f"q{n}", WORDS[n], tuple(Candidate(f"q{n}-{k}", t, k == n, None, None) for k, t in enumerate(TEXTS))) for n in (0, 1)]
    table = model.score(iter(asked), progress=False)
    assert table.columns.tolist() == ["question_id", "candidate_id", "label", "score"]
    assert table.label.tolist() == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0] and table.score.dtype == np.float32
    both = [score for question in asked for score in by_a_loop(tmp_path, question.text, TEXTS, longest)]
    assert table.score.tolist() == pytest.approx(both, abs=1e-5)


def test_a_byte_level_tokenizer_stays_as_it_was_saved(tmp_path, tokenizer):
    """A run's tokenizer puts a space before each text; that of others may not."""
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    place = tmp_path / "tokenizer" / "tokenizer.json"
    place.write_text(
        place.read_text()
        .replace('"add_prefix_space":true', '"add_prefix_space":false')
        .replace('"add_prefix_space": true', '"add_prefix_space": false')
    )
    without = AutoTokenizer.from_pretrained(tmp_path / "tokenizer", add_prefix_space=False)
    assert without("river")["input_ids"] != tokenizer("river")["input_ids"]
    folder = saved(tmp_path / "model", "roberta", 1, without)
    texts = ["river", "the river"]
    scores = [score for _, score in sorted(load_ranker(folder, "cpu").rank("mill", texts))]
    assert scores == pytest.approx(by_a_loop(folder, "mill", texts, 58), abs=1e-5)


def test_a_mirrored_hub_id(tmp_path, monkeypatch, bert_tokenizer):
    monkeypatch.setenv("ASUTIL_MIRROR", str(tmp_path))
    folder = saved(tmp_path / "somebody" / "ms-marco", "bert", 1, bert_tokenizer)
    scores = [score for _, score in sorted(load_ranker("somebody/ms-marco", "cpu").rank(QUESTION, TEXTS))]
    assert scores == pytest.approx(by_a_loop(folder, QUESTION, TEXTS, 60), abs=1e-5)


# ------------------------------------------------------------------ what is refused


def changed(folder, **values):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def test_other_models_are_refused_with_a_reason(tmp_path, bert_tokenizer):
    with pytest.raises(ValueError, match="1 or 2 logits for a pair expected, got 3"):
        load_ranker(saved(tmp_path / "nli", "bert", 3, bert_tokenizer))
    folder = saved(tmp_path / "bert", "bert", 1, bert_tokenizer)
    model = load_ranker(folder, "cpu")
    with pytest.raises(ValueError, match="takes no contexts"):
        model.rank("q", ["c"], contexts=[(None, None)])
    with pytest.raises(ValueError, match="a list of texts expected, got one text, 'c'"):
        model.rank("q", "c")
    model.model.bert.save_pretrained(folder)  # a backbone alone
    with pytest.raises(ValueError, match="no pair head: fine-tune it first"):
        load_ranker(folder)
    changed(folder, architectures=["BertForSequenceClassification"])
    with pytest.raises(ValueError, match="lack the head of a BertForSequenceClassification"):
        load_ranker(folder)


@pytest.mark.parametrize("head", ["LMHeadModel", "ForSequenceClassification"])
def test_a_decoder_only_model_is_refused(tmp_path, tokenizer, head):
    import transformers

    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=60)
    getattr(transformers, f"GPT2{head}")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"an encoder such as bert.* got a gpt2 model \(GPT2{head}\)"):
        load_ranker(tmp_path)


def test_no_tokenizer_and_one_that_cannot_pad(tmp_path, bert_tokenizer):
    folder = saved(tmp_path, "bert", 1, bert_tokenizer)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("pad_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    with pytest.raises(ValueError, match="no pad_token"):
        load_ranker(folder)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_ranker(folder)


def test_a_pickle_and_code_are_refused(tmp_path, bert_tokenizer):
    folder = saved(tmp_path, "bert", 1, bert_tokenizer)
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    changed(folder, model_type="own", auto_map={"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"})
    with pytest.raises(ValueError, match="code"):
        load_ranker(folder)
    changed(folder, model_type="bert", auto_map={})
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="can run any code when it is opened, so it is refused"):
        load_ranker(folder)
    assert not (folder / "ran").exists()
