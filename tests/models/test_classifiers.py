"""Heads of others continued as ours: one logit, two logits in either order, and backbones that cannot be trained."""

import pytest
import torch
import transformers
from transformers import AutoModelForSequenceClassification

from asutil import load_ranker
from asutil.models import classifiers, joint, loading
from asutil.tasks import cross_encoder, rank

from ..tasks.test_cross_encoder import KINDS, QUESTION, TEXTS, by_a_loop, saved
from .test_loading import assert_same

NAMES = [
    (("entailment", "not_entailment"), 0, False),
    (("not_entailment", "entailment"), 1, False),
    (("Relevant", "Not Relevant"), 0, False),
    (("irrelevant", "relevant"), 1, False),
    (("YES", "NO"), 0, False),
    (("no", "yes"), 1, False),
    (("True", "False"), 0, False),
    (("answer", "no-answer"), 0, False),
    (("No Answer", "Answer"), 1, False),
    (("LABEL_0", "LABEL_1"), 1, False),
    (("apple", "pear"), 1, True),
    (("LABEL_0", "pear"), 1, True),
]


@pytest.mark.parametrize(("names", "positive", "warns"), NAMES)
def test_two_logits_are_read_by_the_names_of_their_classes(names, positive, warns, caplog):
    config = transformers.BertConfig(id2label=dict(enumerate(names)))
    assert classifiers.answering_class(config, "a/model") == positive
    assert bool(caplog.text) == warns
    assert not warns or all(name in caplog.text for name in (*names, "a/model", "the second is assumed"))


def scores_of(ranker):
    return [score for _, score in sorted(ranker.rank(QUESTION, TEXTS))]


def exchanged(folder, place, tokenizer):
    """A folder with the two last rows of the head exchanged, whose config names both classes."""
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    _, layer = classifiers.last_layer(model, 2)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(parameter.flip(0))
    model.config.id2label, model.config.label2id = {0: "relevant", 1: "not_relevant"}, {"relevant": 0, "not_relevant": 1}
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_cross_encoder_keeps_its_meaning_as_a_ranker_and_in_training(tmp_path, kind, tokenizer, bert_tokenizer):
    """One logit, two, and two in the other order: the same scores by a plain loop, as a ranker, as a start and after an export."""
    own = tokenizer if kind in ("roberta", "modernbert") else bert_tokenizer
    longest = 58 if kind == "roberta" else 60
    plain = saved(tmp_path / "two", kind, 2, own)
    folders = [saved(tmp_path / "one", kind, 1, own), plain, exchanged(plain, tmp_path / "exchanged", own)]
    expected = [by_a_loop(folder, QUESTION, TEXTS, longest) for folder in folders]
    expected[2] = expected[1]  # by_a_loop takes class 1
    for folder, scores in zip(folders, expected):
        ranker = load_ranker(folder, "cpu")
        assert scores_of(ranker) == pytest.approx(scores, abs=1e-5)
        model = loading.load(folder)
        assert model.fresh == ()
        started = scores_of(rank.Ranker(model.eval(), longest))
        texts_read_alike = [n for n, text in enumerate(TEXTS) if text]  # an empty part is read in another way by some tokenizers
        assert [started[n] for n in texts_read_alike] == pytest.approx([scores[n] for n in texts_read_alike], abs=1e-4)
        model.save(tmp_path / f"run-{folder.name}")
        assert scores_of(rank.Ranker(loading.load(tmp_path / f"run-{folder.name}").eval(), longest)) == pytest.approx(started, abs=1e-5)
        cross_encoder.save(model, tmp_path / f"export-{folder.name}", longest)
        again = loading.load(tmp_path / f"export-{folder.name}")
        assert scores_of(rank.Ranker(again.eval(), longest)) == pytest.approx(started, abs=1e-5)
        assert loading.load(folder, keep_head=False).fresh == ("pair",)


def test_continued_and_fresh_heads_are_functions_of_their_seed(tmp_path, bert_tokenizer):
    folder = saved(tmp_path, "bert", 1, bert_tokenizer)
    state = torch.random.get_rng_state()
    assert_same(*(loading.load(folder, keep_head=False, seed=3).head_parameters("pair") for _ in range(2)))
    assert torch.equal(state, torch.random.get_rng_state())


WIDE = {"d_model": 16, "num_heads": 2, "d_kv": 8, "d_ff": 16, "num_layers": 1}
BART = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
DECODER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16}
UNTRAINABLE = {
    "bart": transformers.BartConfig(**BART, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=60),
    "t5": transformers.T5Config(**WIDE),
    "xlnet": transformers.XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=16),
    "gpt2": transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=60),
    "llama": transformers.LlamaConfig(**DECODER),
    "qwen3": transformers.Qwen3Config(**DECODER, head_dim=8),
}


@pytest.mark.parametrize("kind", UNTRAINABLE)
def test_a_backbone_that_cannot_be_trained_is_refused_when_it_is_loaded(tmp_path, kind, tokenizer):
    config = type(UNTRAINABLE[kind])(**UNTRAINABLE[kind].to_diff_dict() | {"vocab_size": len(tokenizer)})
    config.num_labels = 2
    config.pad_token_id, config.eos_token_id, config.bos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id, 0
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"\({kind}\) cannot be trained here: an encoder such as BERT, .* ModernBERT is expected"):
        loading.start_from(tmp_path, tokenizer, 40)


@pytest.mark.parametrize(("kind", "said"), [("FNet", True), ("Bert", False)])
def test_a_score_that_depends_on_padding_is_said(tmp_path, tokenizer, caplog, kind, said):
    size = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": len(tokenizer), "initializer_range": 0.5}
    size |= {"num_attention_heads": 2} if kind == "Bert" else {}
    config = getattr(transformers, f"{kind}Config")(**size, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id, num_labels=2)
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loading.load(tmp_path)
    assert any("depends on how far its input is padded" in text for text in caplog.messages) == said


def test_a_joint_model_starts_from_a_classifier_of_three_classes(tmp_path, bert_tokenizer):
    """It has a head of its own, so the one that was saved is of no account."""
    folder = saved(tmp_path, "bert", 3, bert_tokenizer)
    shape = joint.shape(True, "ie_k", 3, 60, "linear", "absolute")
    assert "ie_k" in loading.load(folder, joint=shape).fresh
    with pytest.raises(ValueError, match="its trained head has 3 logits"):
        loading.load(folder)
