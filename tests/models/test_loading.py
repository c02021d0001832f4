"""Tokenizers, loading and saving, ranking: against transformers' own classes and slow loops."""

import json
import math
import re
import shutil
from collections import Counter
from types import SimpleNamespace

import huggingface_hub.constants
import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast, RobertaConfig
from transformers.modeling_outputs import BaseModelOutputWithPooling

from aslab import runs
from asutil import corpus
from asutil.corpus import tokenizers
from asutil.io import checkpoints, disk, hub
from asutil.models import loading
from asutil.tasks import base, rank, rankers
from tests.io.fake_hub import commit_of

from .test_pair import CONFIGS, SIZE

DOCUMENTS = ["The wheel turned, and the mill didn't stop.", "A second wheel: (42) of them!", "Ünïcode and  tabs\tare text too."]
GRANITE = "ibm-granite/granite-embedding-30m-english"


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizers.train_tokenizer(DOCUMENTS * 3, 300)


@pytest.fixture
def saved(tokenizer, tmp_path):
    model = loading.tiny(tokenizer, seed=5)
    model.save(tmp_path / "model")
    return model, tmp_path / "model"


def parameters(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def moved(model, by=0.1):
    """As if it had learnt: away from the start, where a wrong position hardly shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    return model


# ------------------------------------------------------------------ tokenizers


def test_own_tokenizer_is_deterministic_and_has_robertas_special_tokens(tokenizer):
    again = tokenizers.train_tokenizer(iter(DOCUMENTS * 3), 300)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3, 4]) == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert set(tokenizer.all_special_ids) == {0, 1, 2, 3, 4}
    assert len(tokenizer) == 300
    first, second = tokenizer(["the wheel", "(42)"], add_special_tokens=False)["input_ids"]
    assert tokenizer("the wheel", "(42)")["input_ids"] == [0, *first, 2, 2, *second, 2]
    assert "token_type_ids" not in tokenizer("a", "b")


def test_a_vocabulary_smaller_than_the_bytes_is_refused():
    with pytest.raises(ValueError, match=r"at least 261.*got 200"):
        tokenizers.train_tokenizer(DOCUMENTS, 200)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1), min_size=1, max_size=4))
def test_ids_of_a_text_are_its_sentences_ids_joined(sentences):
    tokenizer = tokenizers.train_tokenizer(DOCUMENTS, 290)
    apart = [i for ids in tokenizer(sentences, add_special_tokens=False)["input_ids"] for i in ids]
    assert tokenizer(" ".join(sentences), add_special_tokens=False)["input_ids"] == apart
    assert tokenizer.decode(apart, clean_up_tokenization_spaces=False) == " " + " ".join(sentences)


def test_the_prefix_space_is_set_where_the_argument_is_ignored(tokenizer, tmp_path):
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", mask_token="<mask>")
    plain.save_pretrained(tmp_path)
    text = "The wheel"
    ignored = AutoTokenizer.from_pretrained(tmp_path, add_prefix_space=True)
    assert ignored(text)["input_ids"] != tokenizer(text)["input_ids"]  # the reason for setting it on the backend
    loaded = tokenizers.load_tokenizer(tmp_path)
    assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]


def test_a_roberta_tokenizer_keeps_its_prefix_space_through_saving(tmp_path):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {word: n for n, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *alphabet])}
    transformers.RobertaTokenizer(vocab=vocab, merges=[]).save_pretrained(tmp_path / "a")
    first = tokenizers.load_tokenizer(tmp_path / "a")
    first.save_pretrained(tmp_path / "b")
    for again in (tokenizers.load_tokenizer(tmp_path / "b"), AutoTokenizer.from_pretrained(tmp_path / "b")):
        assert again("one </s> two")["input_ids"] == first("one </s> two")["input_ids"]
        assert again.decode(again("one")["input_ids"]) == "<s> one</s>"


def test_text_that_spells_a_special_token_stays_text(tokenizer, tmp_path):
    text = "</s> <mask>"
    assert not set(tokenizer(text, add_special_tokens=False)["input_ids"]) & set(tokenizer.all_special_ids)
    tokenizer.save_pretrained(tmp_path)
    assert tokenizers.load_tokenizer(tmp_path)(text)["input_ids"] == tokenizer(text)["input_ids"]


def test_a_tokenizer_that_does_not_join_is_refused_for_pre_training_alone(tmp_path):
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "Is it one?": 1, "(The 2nd) isn't.": 2}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[UNK]").save_pretrained(tmp_path)
    tokenizer = tokenizers.load_tokenizer(tmp_path)
    (tmp_path / "a.txt").write_text("A sentence of the corpus that is long enough to be kept, for once. " * 20)
    with pytest.raises(ValueError, match="cannot be pre-trained here; fine-tuning is possible.* other ids to two sentences"):
        corpus.prepare(tmp_path / "a.txt", tokenizer, tmp_path / "indexes")


# ------------------------------------------------------------------ the model


def test_tiny_is_small_and_a_function_of_its_seed(tokenizer):
    model = loading.tiny(tokenizer, seed=1)
    state = torch.random.get_rng_state()
    assert_same(parameters(model), parameters(loading.tiny(tokenizer, seed=1)))
    assert torch.equal(state, torch.random.get_rng_state())
    without = loading.tiny(tokenizer, seed=1, mlm=False)
    assert without.mlm is None
    assert_same(parameters(model.backbone), parameters(without.backbone))
    assert not torch.equal(model.pair.classifier.dense.weight, loading.tiny(tokenizer, seed=2).pair.classifier.dense.weight)
    at_8000 = sum(p.numel() for p in model.parameters()) + (8000 - len(tokenizer)) * 129  # an embedding and a bias a token
    assert 1e6 < at_8000 < 2e6


def test_forward_equals_transformers_own_model(saved):
    model, folder = saved
    model.eval()
    batch = {"input_ids": torch.randint(5, 300, (2, 9)), "attention_mask": torch.ones(2, 9, dtype=torch.long)}
    whole = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    whole.classifier.load_state_dict({k.removeprefix("pair.classifier."): v for k, v in model.head_parameters("pair").items()})
    with torch.no_grad():
        pair, nothing = model(batch)
        assert nothing is None  # no masked positions, no MLM logits
        torch.testing.assert_close(pair, whole(**batch).logits, rtol=0, atol=1e-6)
        assert model({**batch, "masked_positions": torch.tensor([2, 10])})[1].shape == (2, 300)


def test_save_and_load_give_the_same_weights_and_tokenizer(saved):
    model, folder = saved
    again = loading.load(folder, mlm=True)
    assert_same(parameters(model), parameters(again))
    assert again.fresh == ()
    assert again.mlm.get_output_embeddings().weight is again.backbone.get_input_embeddings().weight
    assert again.tokenizer("a wheel")["input_ids"] == model.tokenizer("a wheel")["input_ids"]
    backbone = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    assert_same(parameters(model.backbone), parameters(backbone))
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".json", ".json", ".safetensors", ".safetensors"]


def test_saving_over_a_former_model_replaces_it_whole(saved, tokenizer):
    _, folder = saved
    (folder / "leftover").touch()
    other = loading.tiny(tokenizer, seed=6)
    other.save(folder)
    assert_same(parameters(other), parameters(loading.load(folder, mlm=True)))
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert not (folder / "leftover").exists()


def full(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_save_that_fails_leaves_the_former_model(saved, monkeypatch):
    model, folder = saved
    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(OSError, match=r"model could not be written: .*No space left"):
        loading.tiny(model.tokenizer, seed=6).save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert_same(parameters(model), parameters(loading.load(folder, mlm=True)))


def test_the_head_is_kept_or_started_anew(saved, caplog):
    model, folder = saved
    kept, anew, other = loading.load(folder), loading.load(folder, keep_head=False), loading.load(folder, keep_head=False, seed=1)
    assert_same(parameters(model.pair), parameters(kept.pair))
    assert_same(parameters(model.backbone), parameters(anew.backbone))
    weights = [m.pair.classifier.out_proj.weight for m in (kept, anew, other)]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])
    assert [m.fresh for m in (kept, anew, other)] == [(), ("pair",), ("pair",)]
    assert "fresh weights (seed 1) for the head pair" in caplog.text


def test_a_head_that_learnt_nothing_is_left_out_and_starts_anew(saved, tmp_path):
    model, _ = saved
    kept = model.save(tmp_path / "without", untrained=("pair",))
    again = loading.load(kept, mlm=True, seed=5)
    assert again.fresh == ("pair",)
    assert_same(model.head_parameters("mlm"), again.head_parameters("mlm"))
    assert not torch.equal(next(iter(again.pair.parameters())), next(iter(model.pair.parameters())))


def test_a_fresh_mlm_head_on_large_embeddings_begins_near_a_guess(tokenizer, tmp_path):
    """Logits of a fresh head are as small as on fresh embeddings, and one that the checkpoint brings is left as it is."""
    large = transformers.RobertaForMaskedLM(RobertaConfig(**SIZE | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}))
    with torch.no_grad():
        large.get_input_embeddings().weight.mul_(20)
    for name, model in (("bare", large.roberta), ("whole", large)):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    hidden = torch.randn(200, SIZE["hidden_size"])
    guess = float(torch.tensor(float(len(tokenizer))).log())
    losses = {}
    for name in ("bare", "whole"):
        with torch.no_grad():
            logits = loading.load(tmp_path / name, mlm=True).mlm(inputs_embeds=BaseModelOutputWithPooling(hidden[None])).logits[0]
        losses[name] = float(torch.logsumexp(logits, -1).mean() - logits.mean())  # of targets by chance
    assert abs(losses["bare"] - guess) < 0.05 < losses["whole"] - guess


def test_a_fresh_mlm_head_begins_with_the_frequencies_of_the_corpus(tokenizer, tmp_path, monkeypatch):
    """The loss of a guess that reads nothing is the entropy of the tokens, counted by hand; a head that was loaded is left alone."""
    monkeypatch.setattr(loading, "COUNTED", 7)  # several blocks
    whole = transformers.RobertaForMaskedLM(RobertaConfig(**SIZE | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}))
    for name, model in (("bare", whole.roberta), ("whole", whole)):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    tokens = np.array([5] * 60 + [9] * 30 + [17] * 10, np.uint16)
    model = loading.load(tmp_path / "bare", mlm=True)
    assert loading.start_at_unigrams(model, tokens)
    with torch.no_grad():
        flat = model.mlm(inputs_embeds=BaseModelOutputWithPooling(torch.randn(1, 50, SIZE["hidden_size"]))).logits[0]
    counts = Counter(tokens.tolist())
    expected = {token: (counts[token] + 1) / (len(tokens) + len(tokenizer)) for token in range(len(tokenizer))}
    for token in (0, 5, 9, 17):
        assert abs(model.mlm.get_output_embeddings().bias[token].exp().item() - expected[token]) < 1e-6
    guess = -sum(counts[token] / len(tokens) * math.log(expected[token]) for token in counts)
    loss = torch.nn.functional.cross_entropy(flat.repeat(2, 1), torch.from_numpy(tokens.astype(np.int64))).item()
    assert abs(loss - guess) < 0.1
    loaded = loading.load(tmp_path / "whole", mlm=True)
    assert not loading.start_at_unigrams(loaded, tokens)
    assert not loading.start_at_unigrams(loading.load(tmp_path / "bare"), tokens)
    assert_same({"bias": loaded.mlm.get_output_embeddings().bias}, {"bias": whole.get_output_embeddings().bias})


def test_what_a_transformers_checkpoint_carries_is_kept(tokenizer, tmp_path, caplog):
    torch.manual_seed(3)
    config = RobertaConfig(**SIZE | {"vocab_size": 300}, max_position_embeddings=70, type_vocab_size=1)
    masked = transformers.AutoModelForMaskedLM.from_config(config).half()
    masked.save_pretrained(tmp_path / "mlm")
    tokenizer.save_pretrained(tmp_path / "mlm")
    model = loading.load(tmp_path / "mlm", mlm=True)
    assert model.fresh == ("pair",)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    torch.testing.assert_close(model.mlm.lm_head.dense.weight, masked.lm_head.dense.weight.float(), rtol=0, atol=0)

    classifier = AutoModelForSequenceClassification.from_config(config)
    classifier.save_pretrained(tmp_path / "pair")
    tokenizer.save_pretrained(tmp_path / "pair")
    model = loading.load(tmp_path / "pair", mlm=True)
    assert model.fresh == ("mlm",)
    assert "fresh weights (seed 0) for the head mlm" in caplog.text
    assert torch.equal(model.pair.classifier.out_proj.weight, classifier.classifier.out_proj.weight)

    assert loading.load(tmp_path / "pair", keep_head=False).fresh == ("pair",)
    anew = loading.load(tmp_path / "pair", keep_head=False).pair.classifier.out_proj.weight
    assert not torch.equal(anew, classifier.classifier.out_proj.weight)

    three = AutoModelForSequenceClassification.from_config(RobertaConfig(**config.to_diff_dict(), num_labels=3))
    three.save_pretrained(tmp_path / "three")
    tokenizer.save_pretrained(tmp_path / "three")
    with pytest.raises(ValueError, match="its trained head has 3 logits; .* keep_head=False starts a new one"):
        loading.load(tmp_path / "three")
    assert loading.load(tmp_path / "three", keep_head=False).fresh == ("pair",)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_makes_the_round_trip(name, tokenizer, tmp_path):
    config = type(CONFIGS[name])(**CONFIGS[name].to_diff_dict() | {"vocab_size": 300})
    mlm = name != "electra"  # whose pre-training has a generator: test_electra.py
    model = loading.from_config(config, tokenizer, mlm=mlm)
    model.save(tmp_path / "model")
    again = loading.load(tmp_path / "model", mlm=mlm)
    assert_same(parameters(model), parameters(again))
    assert again.fresh == ()


def test_token_types_are_passed_only_where_there_are_several(tokenizer, bert_tokenizer):
    torch.manual_seed(0)
    batch = {"input_ids": torch.randint(5, 50, (1, 6)), "attention_mask": torch.ones(1, 6, dtype=torch.long)}
    types = torch.tensor([[0, 0, 0, 1, 1, 1]])
    matters = {}
    for name, config in CONFIGS.items():
        model = loading.from_config(config, tokenizer, mlm=False).eval()
        matters[name] = not torch.equal(model(batch)[0], model({**batch, "token_type_ids": types})[0])
    assert matters == {name: name in ("bert", "electra") for name in CONFIGS}


# ------------------------------------------------------------------ what is refused


def test_a_pickled_checkpoint_is_refused(saved):
    _, folder = saved
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"no safetensors weights.*run any code.*convert it once") as refused:
        loading.load(folder)
    (command,) = re.findall(r'python -c "(.*)"$', str(refused.value))
    exec(command, {})  # as the message says
    assert sorted(load_file(folder / "model.safetensors")) == sorted(torch.load(folder / "pytorch_model.bin", weights_only=True))
    loading.load(folder)


def test_a_pickle_of_the_hub_is_not_converted_by_a_bot(saved, on_hub):
    """transformers would load what a bot proposes as `refs/pr/4`, which nobody has to have seen."""
    _, folder = saved
    root, asked = on_hub
    shutil.copytree(folder, root / "models/owner/name/refs__pr__4")
    shutil.copytree(folder, root / "models/owner/good/main")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    shutil.copytree(folder, root / "models/owner/name/main")
    with pytest.raises(ValueError, match=r"hf download owner/name --local-dir converted, then .* or move it to owner/name in the folder"):
        loading.load("owner/name")
    assert not any("pr/4" in line or "discussions" in line or "commits" in line for line in asked)
    assert not any(line.endswith(".bin") for line in asked if line.startswith("GET"))
    assert_same(parameters(loading.load("owner/good")), parameters(loading.load(root / "models/owner/good/main")))
    assert hub.commits == {"owner/good": commit_of("models", "owner/good")}


def test_a_missing_network_is_not_taken_for_a_pickle(saved, on_hub, monkeypatch):
    """The cache has the config of both models; the hub has said of one alone that it has no safetensors."""
    _, folder = saved
    root, _ = on_hub
    for name in ("weights", "pickle"):
        shutil.copytree(folder, root / f"models/owner/{name}/main")
        AutoConfig.from_pretrained(f"owner/{name}")
    (root / "models/owner/pickle/main/model.safetensors").unlink()
    with pytest.raises(ValueError, match="owner/pickle has no safetensors weights"):
        loading.load("owner/pickle")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="owner/pickle has no safetensors weights"):
        loading.load("owner/pickle")
    with pytest.raises(FileNotFoundError, match="owner/weights.*could not be loaded from the hub.*set ASUTIL_MIRROR"):
        loading.load("owner/weights")


def test_a_head_that_may_be_missing_is_warned_of(saved, on_hub, monkeypatch, caplog):
    """Of two models in the hub's cache: of one the hub has said that it has no head, of the other nothing is known."""
    _, folder = saved
    root, _ = on_hub
    for name in ("known", "unknown"):
        shutil.copytree(folder, root / f"models/owner/{name}/main")
        (root / f"models/owner/{name}/main/head.safetensors").unlink()
        AutoModel.from_pretrained(f"owner/{name}")
        AutoTokenizer.from_pretrained(f"owner/{name}")
    assert checkpoints.saved_heads("owner/known") == {}
    caplog.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert checkpoints.saved_heads("owner/known") == {} and not caplog.messages
    assert checkpoints.saved_heads("owner/unknown") == {}
    assert caplog.messages == ["owner/unknown: without a network it is not known whether it has a head.safetensors; its heads start fresh"]


def test_damaged_or_incomplete_weights_are_refused(saved):
    _, folder = saved
    file = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}  # they lie in the file itself
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="damaged or cut short"):
        loading.load(folder)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks 1 weights of a RobertaModel.*layer\.1\.output\.dense\.weight"):
        loading.load(folder)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("head.safetensors", b"{}", r"head\.safetensors is damaged or cut short"),
        ("head.safetensors", b"\x80\x04a pickle", r"head\.safetensors is damaged or cut short"),
        ("tokenizer.json", b'{"added_tokens": 7}', "cannot be read"),
        ("tokenizer_config.json", b'{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": []}', "cannot be (read|used)"),
        ("tokenizer_config.json", {"cls_token": "a token of another model"}, "'a token of another model' is beyond"),
        ("tokenizer_config.json", {"pad_token": None}, "this tokenizer has no pad_token"),
        ("config.json", b"[7]", "cannot be read"),
        ("config.json", {"pad_token_id": None}, "config.json has no pad_token_id, its tokenizer pads with 1"),
        ("config.json", {"hidden_dropout_prob": math.nan}, "config.json has a hidden_dropout_prob that is no number"),
        ("config.json", {"attention_probs_dropout_prob": math.nan}, "config.json has a attention_probs_dropout_prob that is no number"),
        ("config.json", {"layer_norm_eps": math.nan}, "config.json has a layer_norm_eps that is no number"),
    ],
)
def test_a_damaged_or_unfit_file_of_a_model_is_refused_in_words(saved, name, change, said):
    path = saved[1] / name
    path.write_bytes(change if isinstance(change, bytes) else json.dumps(json.loads(path.read_text()) | change).encode())
    with pytest.raises(ValueError, match=said):
        loading.load(path.parent)


def test_a_head_of_another_shape_is_refused(saved):
    _, folder = saved
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / "head.safetensors").items()}
    tensors["pair.classifier.out_proj.bias"] = torch.zeros(3)
    save_file(tensors, folder / "head.safetensors")
    with pytest.raises(ValueError, match=r"out_proj\.bias \(2,\), got \(3,\)"):
        loading.load(folder)


def test_names_that_lead_nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("ASUTIL_MIRROR", raising=False)
    with pytest.raises(FileNotFoundError, match="set ASUTIL_MIRROR"):
        loading.load("nobody/nothing")
    with pytest.raises(FileNotFoundError, match="set ASUTIL_MIRROR"):
        tokenizers.load_tokenizer("nobody/nothing")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        loading.load(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"holds no model\.safetensors"):
        loading.load(tmp_path)


def test_only_a_finished_run_is_loaded(saved, tmp_path):
    run = tmp_path / "finetune-pair-0123456789ab"
    run.mkdir()
    saved[1].rename(run / "model")
    with pytest.raises(ValueError, match=r"finetune-pair-0123456789ab is not a finished run"):
        rankers.load_ranker(run)
    disk.write_json(run / "record.json", {"settings": {"max_tokens": 32}} | runs.hashes(run))
    assert rankers.load_ranker(run, device="cpu").max_tokens == 32


def test_code_that_comes_with_a_model_is_not_run(saved):
    _, folder = saved
    config = json.loads((folder / "config.json").read_text())
    ran = folder / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="custom code|trust_remote_code"):
        loading.load(folder)
    assert not ran.exists()


# ------------------------------------------------------------------ ranking


def questions(count=5):
    words = ["wheel", "mill", "stop", "turned", "second", "them", "text"]
    of = lambda n: [SimpleNamespace(id=f"q{n}-{k}", text=" ".join(words[k:] * (n + 1)), label=int(k == n)) for k in range(n + 2)]
    return [SimpleNamespace(id=f"q{n}", text=" ".join(words[: n + 1]) + "?", candidates=of(n)) for n in range(count)]


@pytest.fixture(scope="module", params=["roberta", "bert"])
def ranker(request, tokenizer, bert_tokenizer):
    own = {"roberta": tokenizer, "bert": bert_tokenizer}[request.param]
    spread = SIZE | {"initializer_range": 0.5}  # at the usual 0.02 all scores of random weights are nearly equal
    config = {
        "roberta": RobertaConfig(**spread | {"vocab_size": len(own)}, max_position_embeddings=514, type_vocab_size=1),
        "bert": transformers.BertConfig(**spread | {"vocab_size": len(own)}),
    }
    return rank.Ranker(loading.from_config(config[request.param], own, mlm=False), max_tokens=24)


def test_windows_hold_every_question_once(monkeypatch):
    monkeypatch.setattr(base, "WINDOW", 7)
    windows = list(base.windows_of(iter(questions())))
    assert [[question.id for question in window] for window in windows] == [["q0", "q1", "q2"], ["q3", "q4"]]


def test_many_questions_are_ranked_as_each_alone_in_fewer_batches(ranker):
    asked = [(question.text, [candidate.text for candidate in question.candidates]) for question in questions()]
    passes = []
    counted = ranker.model.register_forward_hook(lambda *_: passes.append(1))
    alone = [dict(ranker.rank(*both)) for both in asked]
    before = len(passes)
    together = ranker.rank(*map(list, zip(*asked)))
    counted.remove()
    assert [dict(ranked) for ranked in together] == [pytest.approx(scores, abs=1e-5) for scores in alone]
    assert all(scores == sorted(scores, reverse=True) for scores in ([score for _, score in ranked] for ranked in together))
    assert len(passes) - before < before


def test_rank_is_the_order_of_the_scores(ranker):
    """One pair at a time goes through the tokenizer's own call."""
    question, model = questions()[-1], ranker.model.eval()
    texts, options = [candidate.text for candidate in question.candidates], {"truncation": "longest_first", "max_length": 24}
    ranked = ranker.rank(question.text, texts)
    each = [model(dict(model.tokenizer(question.text, text, **options, return_tensors="pt")))[0][0] for text in texts]
    scores = [(logits[1] - logits[0]).item() for logits in each]
    assert [number for number, _ in ranked] == sorted(range(len(scores)), key=lambda n: -scores[n])
    assert ranked[0][1] == pytest.approx(max(scores), abs=1e-4)
    same = ranker.rank("wheel?", ["mill", "mill", "mill"])
    assert sorted(number for number, _ in same) == [0, 1, 2]
    assert [score for _, score in same] == pytest.approx([same[0][1]] * 3, abs=1e-6)


def test_what_the_ranker_refuses(ranker, saved, caplog):
    with pytest.raises(ValueError, match="takes no contexts"):
        ranker.rank("q", ["c"], contexts=["x"])
    with pytest.raises(ValueError, match="got none"):
        ranker.score([], progress=False)
    with pytest.raises(ValueError, match="got 100000"):
        rank.Ranker(ranker.model, 100_000).score(questions(), progress=False)
    _, folder = saved
    assert rankers.load_ranker(folder).max_tokens == 128 and "read up to 128 tokens" in caplog.text
    (folder / "head.safetensors").unlink()
    without_head = rankers.load_ranker(folder)
    assert without_head.by == "cosine" and "an encoder without a head that ranks" in caplog.text


@pytest.mark.mirror
def test_the_real_backbone_loads_in_float32_with_its_tokenizer(mirror):
    model = loading.load(GRANITE, mlm=True)
    assert model.fresh == ("pair", "mlm")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert sum(p.numel() for p in model.backbone.parameters()) == pytest.approx(30.1e6, rel=0.01)
    text = "Where is it? </s> It isn't here."
    assert model.tokenizer.decode(model.tokenizer(text)["input_ids"]) == f"<s> {text}</s>"
    assert not model.tokenizer(text)["input_ids"].count(2) > 1
