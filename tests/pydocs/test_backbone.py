"""The embedded backbone: other architectures begin as it, and it is made of a run without a loss."""

import copy

import pytest
import torch
from transformers import ElectraForMaskedLM, RobertaForMaskedLM

from aslab import backbone, identity, runs
from asutil.corpus import tokenizers
from asutil.io import disk, hub
from asutil.models import embedder, finder, loading

TEXTS = ["a few words", "a longer text with more words than the other one", "two"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, tokenizer):
    """A run of `pretrain` with the objective mlm, its weights far from a fresh model's."""
    folder = tmp_path_factory.mktemp("runs") / "pretrain-mlm-psd-mini-000000000001"
    model = loading.mini(tokenizer, seed=1)
    with torch.no_grad(), torch.random.fork_rng():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    model.save(folder / "model", untrained=("pair",))
    record = {"notebook": "pretrain", "settings": {"objective": "mlm", "data": "psd"}, "metrics": {"validation": {"mlm_loss": 3.25}}}
    disk.write_json(folder / "record.json", record | runs.hashes(folder))
    (folder / "log.jsonl").write_text('{"step": 1, "loss": 9.0}\n', encoding="utf-8")
    return folder


@pytest.fixture
def made(run, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "EMBEDDED_FOLDER", backbone.export(run, tmp_path / "pydocs_roberta"))
    return hub.EMBEDDED_FOLDER


def read_by(made, tokenizer):
    """A batch, which of its tokens are text, and the hidden states and logits that transformers gives for it."""
    model = RobertaForMaskedLM.from_pretrained(made, dtype=torch.float32).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=30, return_tensors="pt")  # all within one window
    with torch.no_grad():
        outputs = model(**batch, output_hidden_states=True)
    return batch, batch["attention_mask"].bool(), outputs.hidden_states[-1], outputs.logits


def test_it_is_the_run_in_half_precision(run, made, tokenizer):
    trained = loading.load(run, mlm=True)
    loaded = loading.start_from("pydocs_roberta", tokenizers.load_tokenizer("pydocs_roberta"), 256, mlm=True)
    names = [name for name, _ in loaded.backbone.named_parameters() if "pooler" not in name]
    for name in names:
        torch.testing.assert_close(loaded.backbone.get_parameter(name), trained.backbone.get_parameter(name).half().float(), rtol=0, atol=0)
    for name, value in loaded.head_parameters("mlm").items():
        torch.testing.assert_close(value, trained.head_parameters("mlm")[name].half().float(), rtol=0, atol=0)
    assert len(names) > 60 and loaded.fresh == ("pair",) and loaded.tokenizer.get_vocab() == tokenizer.get_vocab()
    record = disk.read_json(made / "record.json")
    assert record["metrics"]["validation"] == {"mlm_loss": 3.25} and record["model_sha256"] == hub.sha256(made / "model.safetensors")
    assert (made / "log.jsonl").read_bytes() == (run / "log.jsonl").read_bytes()


def test_an_electra_pair_begins_with_its_hidden_states_and_its_guesses(made, tokenizer):
    batch, text, hidden, logits = read_by(made, tokenizer)
    model = loading.start_from("pydocs_electra", tokenizer, 256, mlm=True).eval()
    assert model.fresh == ("pair", "detection")
    with torch.no_grad():
        found = model.backbone(**batch).last_hidden_state
        generator = ElectraForMaskedLM(model.generator.config).eval()
        generator.electra.load_state_dict(model.backbone.state_dict())
        generator.generator_predictions.load_state_dict(model.generator.generator_predictions.state_dict())
        generator.generator_lm_head.load_state_dict(model.generator.generator_lm_head.state_dict())
        guesses = generator(**batch).logits
    torch.testing.assert_close(found[text], hidden[text], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(guesses[text], logits[text], atol=1e-4, rtol=1e-4)


LONG = {
    "longformer, locally": (lambda model, batch: model(**batch, global_attention_mask=batch["attention_mask"] * 0), 1e-4),
    "longformer, globally": (lambda model, batch: model(**batch, global_attention_mask=batch["attention_mask"]), 1e-4),
    "led": (lambda model, batch: model.led.encoder(**batch), 5e-3),  # its layer norm adds 1e-5, RoBERTa's 1e-12
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_model_begins_with_its_hidden_states(made, tokenizer, name):
    batch, text, hidden, _ = read_by(made, tokenizer)
    read, apart = LONG[name]
    model = finder.MADE_HERE[f"pydocs_{name.partition(',')[0]}"](tokenizer).eval()
    with torch.no_grad():
        found = read(model, batch).last_hidden_state
    torch.testing.assert_close(found[text], hidden[text], atol=apart, rtol=min(apart, 1e-3))


@pytest.mark.parametrize("name", ["pydocs_longformer", "pydocs_led"])
def test_markers_of_long_inputs_get_embeddings_of_their_own(made, tokenizer, name):
    contrast = finder.contrast_of("none", "dot", 0.0, "0.6", ["span"])
    settings = finder.Finding(["span"], "marked", 200, contrast)
    marked = copy.deepcopy(tokenizer)
    model = finder.start_from(name, marked, settings).eval()
    table = model.backbone.get_input_embeddings().weight
    assert len(table) == len(marked) > len(tokenizer)
    words = RobertaForMaskedLM.from_pretrained(made, dtype=torch.float32).get_input_embeddings().weight
    assert torch.equal(table[: len(words)], words)
    ids = torch.arange(len(marked) - 9, len(marked))[None]
    with torch.no_grad():
        assert model.encoded(ids, torch.ones_like(ids)).last_hidden_state.isfinite().all()


def test_positions_are_repeated_in_long_inputs(made, tokenizer):
    table = RobertaForMaskedLM.from_pretrained(made, dtype=torch.float32).roberta.embeddings.position_embeddings.weight
    long = finder.MADE_HERE["pydocs_longformer"](tokenizer).embeddings.position_embeddings.weight
    assert len(table) == 258 and len(long) == 1026
    for place in (0, 1, 255, 256, 700, 1023):
        assert torch.equal(long[2 + place], table[2 + place % 256])


def test_an_embedder_of_it_is_not_called_fresh(made, tokenizer):
    settings = embedder.settings_of("untrained", "mean", 64)
    assert embedder.start_from("pydocs_electra", tokenizer, settings).fresh == ()
    assert embedder.start_from("tiny", tokenizer, settings).fresh == ("backbone",)


def test_the_same_name_with_other_weights_is_another_run(made, run):
    first = identity.of_run("finetune", {"model": "pydocs_roberta"})
    assert identity.of_run("finetune", {"model": "pydocs_roberta"}) == first
    model = RobertaForMaskedLM.from_pretrained(made)
    model.roberta.embeddings.word_embeddings.weight.data[7] += 1
    model.save_pretrained(made)
    assert identity.of_run("finetune", {"model": "pydocs_roberta"})["hash"] != first["hash"]


def test_a_checkout_without_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "EMBEDDED_FOLDER", tmp_path / "pydocs_roberta")
    for name in hub.EMBEDDED:
        with pytest.raises(FileNotFoundError, match=f"{name}: this checkout comes without pydocs_roberta"):
            identity.of_run("finetune", {"model": name})


def test_only_a_finished_run_of_masked_language_modelling_is_taken(run, tmp_path):
    folder = tmp_path / "pretrain-ssp-000000000002"
    (folder / "model").mkdir(parents=True)
    with pytest.raises(ValueError, match="is not a finished run"):
        backbone.export(folder, tmp_path / "out")
    disk.write_json(folder / "record.json", {"settings": {"objective": "ssp"}} | runs.hashes(folder))
    with pytest.raises(ValueError, match="objective=mlm is expected, its objective is ssp"):
        backbone.export(folder, tmp_path / "out")
    disk.write_json(folder / "record.json", {"settings": {"objective": "mlm", "corpus": "own:texts"}} | runs.hashes(folder))
    with pytest.raises(ValueError, match="the embedded backbone is of pydocs, this run read own:texts: give another --out"):
        backbone.export_and_measure(str(folder), hub.EMBEDDED_FOLDER)
    assert not (tmp_path / "out").exists()
