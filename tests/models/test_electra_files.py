"""ELECTRA on disk: both halves saved and loaded, pairs as the hub has them, and what is no pair."""

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from aslab import runs
from asutil import inputs
from asutil.corpus import tokenizers
from asutil.io import disk
from asutil.models import electra, loading
from asutil.models.pair import PairEncoder

from .test_electra import NARROW, WIDE, batch_of, new_model, shared
from .test_loading import assert_same, full, parameters

HUB = "google/electra-base-discriminator"


@pytest.fixture
def saved(tokenizer, tmp_path):
    model = new_model(tokenizer, wide={"vocab_size": len(tokenizer)}, narrow={"vocab_size": len(tokenizer)})
    model.save(tmp_path / "model")
    return model, tmp_path / "model"


def test_a_loaded_pair_gives_the_same_outputs(saved):
    model, folder = saved
    again = loading.load(folder, mlm=True)
    assert type(again) is electra.ElectraEncoder and again.fresh == ()
    assert shared(again) == [True] * 4
    assert_same(parameters(model), parameters(again))
    (micro,) = batch_of()[0]["micro"]
    found = []
    for one in (model, again):
        torch.manual_seed(0)
        pair, mlm, (detection, replaced, _) = one.eval()(micro)
        found.append((pair, mlm, detection, replaced))
    for before, after in zip(*found):
        assert torch.equal(before, after)


def test_each_half_loads_with_transformers_alone(saved):
    model, folder = saved
    assert_same(parameters(model.backbone), parameters(AutoModel.from_pretrained(folder)))
    generator = AutoModelForMaskedLM.from_pretrained(folder / "generator")
    assert_same(parameters(model.generator), parameters(generator))
    assert not any(path.suffix in (".bin", ".pt") for path in folder.rglob("*"))


def test_fine_tuning_starts_from_the_discriminator(saved):
    model, folder = saved
    plain = loading.start_from(folder, model.tokenizer, 64)
    assert type(plain) is PairEncoder and plain.fresh == ()
    assert_same(parameters(model.backbone), parameters(plain.backbone))
    assert_same(parameters(model.pair), parameters(plain.pair))
    assert loading.start_from(folder, model.tokenizer, 64, keep_head=False).fresh == ("pair",)
    anew = loading.load(folder, mlm=True, keep_head=False)
    assert anew.fresh == ("pair",)
    assert_same(parameters(model.detection), parameters(anew.detection))
    assert not torch.equal(anew.pair.classifier.dense.weight, model.pair.classifier.dense.weight)


def test_a_save_that_fails_leaves_the_former_pair(saved, monkeypatch):
    model, folder = saved
    other = electra.tiny(model.tokenizer)
    monkeypatch.setattr(other.generator, "save_pretrained", full)
    with pytest.raises(OSError, match="No space left"):
        other.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert_same(parameters(model), parameters(loading.load(folder, mlm=True)))


@pytest.fixture
def mirrored(bert_tokenizer, tmp_path, monkeypatch):
    """A pair as the hub has them: whole models in two folders, with a WordPiece tokenizer that gives token types."""
    torch.manual_seed(2)
    for half, kind, size in (("discriminator", ElectraForPreTraining, WIDE), ("generator", ElectraForMaskedLM, NARROW)):
        folder = tmp_path / "hub" / "google" / f"electra-base-{half}"
        kind(ElectraConfig(**size | {"vocab_size": len(bert_tokenizer)})).save_pretrained(folder)
        bert_tokenizer.save_pretrained(folder)
    monkeypatch.setenv("ASUTIL_MIRROR", str(tmp_path / "hub"))
    return tmp_path / "hub" / "google"


def test_a_pair_of_the_hub_is_found_by_the_discriminators_name(mirrored):
    model = loading.start_from(HUB, tokenizers.load_tokenizer(HUB), 64, mlm=True)
    assert model.fresh == ("pair",)
    assert shared(model) == [True] * 4
    discriminator = ElectraForPreTraining.from_pretrained(mirrored / "electra-base-discriminator")
    generator = ElectraForMaskedLM.from_pretrained(mirrored / "electra-base-generator")
    assert_same(parameters(discriminator.electra), parameters(model.backbone))
    assert_same(parameters(discriminator.discriminator_predictions), parameters(model.detection.discriminator_predictions))
    assert_same(parameters(generator.generator_predictions), parameters(model.generator.generator_predictions))
    assert_same(parameters(generator.electra.encoder), parameters(model.generator.electra.encoder))
    template = inputs.Template.of(model.tokenizer)
    assert template.has_types and model.takes_types and model.generator_takes_types


@pytest.mark.slow
def test_a_named_generator_is_taken(mirrored, saved, tokenizer):
    own, folder = saved
    other = electra.tiny(tokenizer, seed=3)
    with pytest.raises(ValueError, match=r"\(400, 16\) expected, got \(400, 128\)"):
        loading.load(folder, mlm=True, generator=other.save(folder.parent / "other"))
    other = new_model(tokenizer, seed=9, wide={"vocab_size": len(tokenizer)}, narrow={"vocab_size": len(tokenizer), "hidden_size": 4})
    other.save(folder.parent / "other")
    for place in (folder.parent / "other", folder.parent / "other" / "generator"):  # a saved pair, and a bare folder
        model = loading.load(folder, mlm=True, generator=place)
        assert_same(parameters(other.generator.generator_predictions), parameters(model.generator.generator_predictions))
        assert_same(parameters(own.backbone), parameters(model.backbone))
    run = folder.parent / "pretrain-psd-0123456789ab"
    run.mkdir()
    (folder.parent / "other").rename(run / "model")
    with pytest.raises(ValueError, match="not a finished run"):
        loading.load(folder, mlm=True, generator=run)
    disk.write_json(run / "record.json", {} | runs.hashes(run))
    model = loading.start_from(folder, tokenizer, 64, mlm=True, generator=str(run))
    assert_same(parameters(other.generator.generator_predictions), parameters(model.generator.generator_predictions))


def test_what_is_no_generator_is_refused(mirrored, saved, tokenizer, tmp_path):
    own, folder = saved
    (mirrored / "electra-base-discriminator").rename(mirrored / "electra")
    with pytest.raises(ValueError, match="google/electra comes without its generator"):
        loading.load("google/electra", mlm=True)
    assert loading.load("google/electra", mlm=True, generator=mirrored / "electra-base-generator").fresh == ("pair",)
    (mirrored / "electra-base-generator" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"holds no model\.safetensors"):
        loading.load("google/electra", mlm=True, generator=mirrored / "electra-base-generator")
    loading.tiny(tokenizer).save(tmp_path / "roberta")
    with pytest.raises(ValueError, match="an ELECTRA model expected, .* is roberta"):
        loading.load(folder, mlm=True, generator=tmp_path / "roberta")
    with pytest.raises(ValueError, match=r"only the pre-training of ELECTRA has one, .* is roberta"):
        loading.load(tmp_path / "roberta", mlm=True, generator=folder)
    with pytest.raises(ValueError, match="only the pre-training of ELECTRA has one"):
        loading.load(folder, generator=folder)
    texts = ["other words stand here, and more of them"] * 9
    own.tokenizer = tokenizers.train_tokenizer(texts, 300)
    own.save(tmp_path / "strange")
    with pytest.raises(ValueError, match="another vocabulary than"):
        loading.load(folder, mlm=True, generator=tmp_path / "strange")
