"""Cross-encoders of others: small models of many architectures against a plain loop over transformers' own call."""

import copy
import json
import re

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from asutil import load_ranker
from asutil.data.answers import Candidate, Question
from asutil.tasks import base, cross_encoder

from ..conftest import WORDS
from ..io.test_weight_shapes import edited

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


def saved(folder, kind, labels, tokenizer, **config):
    """A folder as transformers writes it, with random weights."""
    settings = KINDS[kind] | {"vocab_size": len(tokenizer), "max_position_embeddings": 60, "num_labels": labels} | config
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(CONFIG_MAPPING[kind](**settings))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def scores_of(ranker, question=QUESTION, texts=TEXTS):
    """The scores of a ranker, or of the one in a folder, in the order of the texts."""
    ranker = ranker if hasattr(ranker, "rank") else load_ranker(ranker, "cpu")
    return [score for _, score in sorted(ranker.rank(question, texts))]


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


@pytest.mark.slow
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
    path = tmp_path / "tokenizer" / "tokenizer.json"
    path.write_text(re.sub(r'("add_prefix_space": ?)true', r"\1false", path.read_text()))
    without = AutoTokenizer.from_pretrained(tmp_path / "tokenizer", add_prefix_space=False)
    assert without("river")["input_ids"] != tokenizer("river")["input_ids"]
    folder = saved(tmp_path / "model", "roberta", 1, without)
    texts = ["river", "the river"]
    assert scores_of(folder, "mill", texts) == pytest.approx(by_a_loop(folder, "mill", texts, 58), abs=1e-5)


def test_a_mirrored_hub_id(tmp_path, monkeypatch, bert_tokenizer):
    monkeypatch.setenv("ASUTIL_MIRROR", str(tmp_path))
    folder = saved(tmp_path / "somebody" / "ms-marco", "bert", 1, bert_tokenizer)
    assert scores_of("somebody/ms-marco") == pytest.approx(by_a_loop(folder, QUESTION, TEXTS, 60), abs=1e-5)


# ------------------------------------------------------------------ as sentence-transformers saves them

TEMPLATE = "{%- for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}answer:"


def modular(folder, labels, tokenizer):
    """A re-ranker of three modules: a RoBERTa, the mean of its vectors, a linear layer."""
    torch.manual_seed(0)
    transformers.RobertaModel(
        transformers.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=60, **KINDS["roberta"])
    ).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    transformer = Transformer(str(folder / "base"), max_seq_length=50)
    dense = Dense(16, labels, activation_function=None, module_output_name="scores")
    sentence_transformers.CrossEncoder(modules=[transformer, Pooling(16, "mean"), dense]).save_pretrained(str(folder / "whole"))
    return folder / "whole"


def causal(folder, tokenizer, kind="qwen3", template=TEMPLATE, words=("yes", "no")):
    """A causal language model, as transformers saves it."""
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.add_tokens(list(words))
    tokenizer.chat_template = template
    torch.manual_seed(0)
    size = SIZE | {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 200, "tie_word_embeddings": False}
    config = CONFIG_MAPPING[kind](vocab_size=len(tokenizer), **size, pad_token_id=tokenizer.pad_token_id)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def by_the_library(folder, question, texts):
    model = sentence_transformers.CrossEncoder(str(folder), device="cpu", local_files_only=True)
    logits = model.predict([(question, text) for text in texts], activation_fn=torch.nn.Identity())
    return logits if logits.ndim == 1 else logits[:, 1] - logits[:, 0]


@torch.no_grad()
def test_a_cross_encoder_of_modules(tmp_path, tokenizer, caplog):
    for labels in (1, 2):
        folder = modular(tmp_path / str(labels), labels, tokenizer)
        model = load_ranker(folder, "cpu")
        assert model.max_tokens == 50
        scores = scores_of(model)
        assert scores == pytest.approx(by_the_library(folder, QUESTION, TEXTS), abs=1e-5) and np.std(scores) > 0.01
        cut = sum(len(tokenizer(QUESTION, text)["input_ids"]) > 50 for text in TEXTS)
        assert caplog.messages.pop() == f"cut at max_tokens=50: {cut} of 5 candidates" and cut
        backbone, dense = transformers.AutoModel.from_pretrained(tmp_path / str(labels) / "base").eval(), model.model[-1].linear
        for text, score in zip(TEXTS, scores):
            batch = tokenizer([QUESTION], [text], truncation="longest_first", max_length=50, return_tensors="pt")
            logits = dense(backbone(**batch).last_hidden_state.mean(1))[0].tolist()
            assert score == pytest.approx(logits[-1] - sum(logits[:-1]), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3", "llama"])
@torch.no_grad()
def test_a_causal_language_model_is_asked_for_yes_or_no(tmp_path, tokenizer, kind):
    folder = causal(tmp_path / "plain", tokenizer, kind)
    sentence_transformers.CrossEncoder(str(folder)).save_pretrained(str(tmp_path / "saved"))  # with modules.json
    scores = scores_of(folder)
    assert scores == pytest.approx(by_the_library(folder, QUESTION, TEXTS), abs=1e-5) and np.std(scores) > 0.01
    assert scores_of(tmp_path / "saved") == pytest.approx(scores, abs=1e-5)
    network, words = transformers.AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    yes, no = words.convert_tokens_to_ids(["yes", "no"])
    for text, score in zip(TEXTS, scores):
        ids = words(f"query: {QUESTION}\ndocument: {text}\nanswer:", add_special_tokens=False, return_tensors="pt")["input_ids"]
        if ids.shape[1] <= 200:  # else it is cut
            logits = network(ids).logits[0, -1]
            assert score == pytest.approx((logits[yes] - logits[no]).item(), abs=1e-5)


def test_a_causal_model_without_the_two_words_or_their_template(tmp_path, tokenizer):
    with pytest.raises(ValueError, match="ranks by its tokens yes and no; its tokenizer has no such tokens"):
        load_ranker(causal(tmp_path / "words", tokenizer, words=()))
    deaf = "{%- for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    with pytest.raises(ValueError, match="chat template of .* cannot carry a 'query'/'document' pair"):
        load_ranker(causal(tmp_path / "template", tokenizer, template=deaf))


@pytest.mark.slow
def test_a_stopped_scoring_continues(tmp_path, bert_tokenizer, monkeypatch):
    folder = saved(tmp_path / "model", "bert", 1, bert_tokenizer)
    other = saved(tmp_path / "other", "bert", 1, bert_tokenizer, hidden_act="relu")
    asked = [Question(f"q{n}", WORDS[n], tuple(Candidate(f"q{n}-{k}", t, 0, None, None) for k, t in enumerate(TEXTS))) for n in range(3)]
    monkeypatch.setattr(base, "WINDOW", len(TEXTS))
    tables = []
    for model, questions, windows in ((folder, asked[:2], 2), (folder, asked, 1), (other, asked, 3)):
        ranker, read = load_ranker(model, "cpu"), []
        inner = ranker.scores_of
        ranker.scores_of = lambda pairs, inner=inner, read=read: read.append(len(pairs)) or inner(pairs)
        tables.append(ranker.score(questions, progress=False, folder=tmp_path / "kept"))
        assert sum(read) == windows * len(TEXTS)
    assert tables[1].equals(load_ranker(folder, "cpu").score(asked, progress=False))


# ------------------------------------------------------------------ what is refused


def test_foreign_and_incomplete_modules_are_refused(tmp_path, tokenizer):
    folder = modular(tmp_path, 1, tokenizer)
    known, config = (json.loads((folder / f"{name}.json").read_text()) for name in ("modules", "config_sentence_transformers"))
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    for name, content, words in (
        ("modules", [*known[:2], known[2] | {"type": "own.Dense"}], "names own.Dense, which is not part of sentence-transformers"),
        ("modules", {"0": known[0]}, "modules.json: a list of modules with type and path expected, got"),
        (
            "config_sentence_transformers",
            config | {"model_type": "SparseEncoder"},
            "a SentenceTransformer or CrossEncoder is expected, got",
        ),
    ):
        before = (folder / f"{name}.json").read_text()
        (folder / f"{name}.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=words):
            load_ranker(folder)
        (folder / f"{name}.json").write_text(before)
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="lacks 1 weights of a RobertaModel, the first is encoder.layer.1.output.dense.weight"):
        load_ranker(folder)
    assert not (folder / "ran").exists()


def test_other_models_are_refused_with_a_reason(tmp_path, bert_tokenizer, caplog):
    with pytest.raises(ValueError, match="1 or 2 logits for a pair expected, got 3"):
        load_ranker(saved(tmp_path / "nli", "bert", 3, bert_tokenizer))
    folder = saved(tmp_path / "bert", "bert", 1, bert_tokenizer)
    model = load_ranker(folder, "cpu")
    with pytest.raises(ValueError, match="a list of texts expected, got one text, 'c'"):
        model.rank("q", "c")
    model.model.model.bert.save_pretrained(folder)  # a backbone alone
    assert load_ranker(folder, "cpu").by == "cosine" and "an encoder without a head that ranks" in caplog.text
    edited(folder, architectures=["BertForSequenceClassification"])
    with pytest.raises(ValueError, match="lack the head of a BertForSequenceClassification"):
        load_ranker(folder)


@pytest.mark.parametrize(
    ("head", "fault"),
    [("LMHeadModel", r"\.\.\.ForCausalLM\) is expected, got a gpt2 model"), ("ForSequenceClassification", "no padding token")],
)
def test_a_decoder_that_cannot_score_pairs_is_refused(tmp_path, tokenizer, head, fault):
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=60)
    getattr(transformers, f"GPT2{head}")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=fault):
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
