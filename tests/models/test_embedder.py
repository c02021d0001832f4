"""Embedding: vectors against transformers' own output, pooling by hand, any length and order, files, learning."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, BertConfig, PreTrainedTokenizerFast, RobertaConfig, XLNetConfig

from aslab import chains, identity, rundir
from aslab.show import tables
from asutil import heads, metrics
from asutil.corpus import tokenizers
from asutil.data import answers, baseline_scores
from asutil.data.answers import Candidate, Question
from asutil.io import checkpoints, disk
from asutil.models import embedder, loading
from asutil.tasks import nearest, rank, rankers

from ..conftest import WORDS

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "initializer_range": 0.2}


def settings_of(architecture="untrained", pooling="mean", max_tokens=32, **chosen):
    triplet = {"margin": 5.0, "distance": "squared", "selection": "all"} if architecture == "triplet" else {}
    return embedder.settings_of(architecture, pooling, max_tokens, **(triplet | chosen))


def small_backbone(tokenizer, kind="roberta"):
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if kind == "xlnet":
        config = XLNetConfig(d_model=32, n_layer=2, n_head=2, d_inner=64, initializer_range=0.2, **ids)
    else:
        config = {"roberta": RobertaConfig, "bert": BertConfig}[kind](max_position_embeddings=66, **SIZES, **ids)
    with checkpoints.seeded(5):
        return AutoModel.from_config(config)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A saved backbone of random weights that are large enough for texts to differ."""
    path = tmp_path_factory.mktemp("backbone")
    small_backbone(tokenizer).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return embedder.start_from(folder, tokenizers.load_tokenizer(folder), settings_of())


def texts_of(count=30, seed=0, longest=40):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(1, longest))) for _ in range(count)]


def by_transformers(folder, texts, pooling, max_tokens=32):
    """The tokenizer's own encoding and the model's own output, a text at a time."""
    tokenizer, backbone, found = tokenizers.load_tokenizer(folder), AutoModel.from_pretrained(folder).eval(), []
    for text in texts:
        one = tokenizer(text, return_tensors="pt", truncation=True, max_length=max_tokens)
        with torch.no_grad():
            hidden = backbone(**one).last_hidden_state[0]
        place = one["input_ids"][0].tolist().index(tokenizer.cls_token_id)
        found.append({"mean": hidden.mean(0), "max": hidden.max(0).values, "cls": hidden[place]}[pooling].numpy())
    return np.stack(found)


@pytest.mark.parametrize("pooling", embedder.POOLINGS)
def test_vectors_are_those_of_each_text_alone(folder, pooling):
    model, texts = embedder.start_from(folder, tokenizers.load_tokenizer(folder), settings_of(pooling=pooling)), ["", *texts_of()]
    vectors = model.encode(texts)
    assert vectors.shape == (31, 32) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, by_transformers(folder, texts, pooling), atol=2e-6)


def xlnet_tokenizer():
    """A word-level tokenizer in XLNet's form: `x <sep> <cls>`, the last two of types 0 and 2."""
    backend = Tokenizer(models.WordLevel(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "cls": "<cls>", "sep": "<sep>", "pad": "<pad>", "mask": "<mask>"}
    trainer = trainers.WordLevelTrainer(special_tokens=[*special.values()])
    backend.train_from_iterator([" ".join(WORDS) + " Is it one? (The 2nd) isn't."], trainer)
    ids = [(name, backend.token_to_id(name)) for name in ("<sep>", "<cls>")]
    backend.post_processor = processors.TemplateProcessing("$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2", ids)
    names = {f"{name}_token": token for name, token in special.items()}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names, model_max_length=512, model_input_names=inputs)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_xlnet_whose_class_token_stands_last(tmp_path, pooling):
    tokenizer = xlnet_tokenizer()
    small_backbone(tokenizer, "xlnet").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, texts = embedder.start_from(tmp_path, tokenizers.load_tokenizer(tmp_path), settings_of(pooling=pooling)), texts_of(12)
    np.testing.assert_allclose(model.encode(texts), by_transformers(tmp_path, texts, pooling), atol=2e-5)


def test_a_tokenizer_without_a_class_token(tmp_path):
    tokenizer = xlnet_tokenizer()
    small_backbone(tokenizer, "xlnet").save_pretrained(tmp_path)
    tokenizer.cls_token = None
    tokenizer.save_pretrained(tmp_path)
    tokenizer = tokenizers.load_tokenizer(tmp_path)
    assert tokenizer.cls_token_id is None
    assert np.isfinite(embedder.start_from(tmp_path, tokenizer, settings_of(pooling="mean")).encode(texts_of(3))).all()
    with pytest.raises(ValueError, match="has no class token for pooling=cls: take mean or max"):
        embedder.start_from(tmp_path, tokenizer, settings_of(pooling="cls"))


def test_many_windows_give_the_same(model, monkeypatch):
    texts = texts_of(23)
    whole = model.encode(texts)
    monkeypatch.setattr(embedder, "WINDOW", 5)
    np.testing.assert_allclose(model.encode(texts), whole, atol=2e-6)
    assert model.encode([]).shape == (0, 32)


def test_encoding_leaves_training_as_it_was(model):
    model.train()
    first, second = model.encode(["river mountain"]), model.encode(["river mountain"])
    assert model.training and (first == second).all(), "no dropout in a vector"


@pytest.mark.parametrize("architecture", embedder.ARCHITECTURES)
def test_what_was_saved_is_loaded(folder, tmp_path, monkeypatch, architecture):
    model = embedder.start_from(folder, tokenizers.load_tokenizer(folder), settings_of(architecture), seed=3)
    model.save(tmp_path / "model")
    again, texts = embedder.load(tmp_path / "model"), texts_of(5)
    monkeypatch.setattr("asutil.io.sentence_transformer.snapshot_download", lambda name, **given: str(tmp_path / "model"))
    for opened in (
        rankers.load_ranker("owner/model", "cpu").encoder,
        rankers.load_encoder("owner/model"),
    ):  # on the hub: no plain encoder of others
        assert opened.identity == again.identity
    assert again.embedding == model.embedding and again.fresh == ()
    assert (again.encode(texts) == model.encode(texts)).all() and again.identity == model.identity
    if architecture == "siamese":
        assert all((a == b).all() for a, b in zip(again.siamese.state_dict().values(), model.siamese.state_dict().values()))
    ranker = rankers.load_ranker(tmp_path / "model")
    assert ranker.by == nearest.USUAL[architecture]
    assert ranker.rank(texts[0], texts[1:]) == nearest.Nearest(model).rank(texts[0], texts[1:])
    assert type(AutoModel.from_pretrained(tmp_path / "model")).__name__ == "RobertaModel"
    if architecture != "siamese":
        loading.start_from(tmp_path / "model", model.tokenizer, 24).save(tmp_path / "pairs")  # as fine-tuning goes on from it
        assert type(rankers.load_ranker(tmp_path / "pairs")) is rank.Ranker


def test_a_backbone_without_a_network_of_its_own_is_not_loaded(folder):
    with pytest.raises(ValueError, match=r"was not trained to embed.*embed\.ipynb"):
        embedder.load(folder)


def test_a_siamese_head_is_fresh_by_its_seed(folder):
    tokenizer = tokenizers.load_tokenizer(folder)
    made = [embedder.start_from(folder, tokenizer, settings_of("siamese"), seed) for seed in (0, 0, 1)]
    weights_of = [model.siamese.linear.weight.tolist() for model in made]
    assert weights_of[0] == weights_of[1] != weights_of[2] and made[0].fresh == ("siamese",)


def test_a_siamese_head_gives_one_logit():
    fresh = heads.Siamese(4000).linear
    assert fresh.weight.std().item() == pytest.approx(0.02, rel=0.05) and fresh.weight.mean().abs() < 0.001 and fresh.bias.item() == 0


def test_identity_is_of_the_weights_and_the_settings(folder, tmp_path):
    tokenizer = tokenizers.load_tokenizer(folder)
    plain, other = (embedder.start_from(folder, tokenizer, settings_of(pooling=pooling)) for pooling in ("mean", "cls"))
    before = plain.identity
    assert before != other.identity and before == embedder.start_from(folder, tokenizer, settings_of()).identity
    plain.save(tmp_path / "model")
    loaded = [embedder.load(tmp_path / "model").identity for _ in range(2)]
    assert loaded == [before, before], "a pooler that nothing uses is drawn at random whenever a model is loaded"
    with torch.no_grad():
        next(plain.backbone.parameters())[0, 0] += 1
    assert plain.identity != before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pooling": "sum"}, "pooling: one of mean, cls, max expected, got 'sum'"),
        ({"architecture": "twins"}, "architecture: one of siamese, triplet, untrained"),
        ({"architecture": "triplet", "margin": -1.0}, "margin: at least 0 expected, got -1.0"),
        ({"architecture": "triplet", "selection": "easy"}, "selection: one of all, semi_hard, hard"),
        ({"architecture": "triplet", "distance": "cosine"}, "distance: one of squared, plain"),
        ({"architecture": "siamese", "margin": 5.0}, "margin: only the triplet network has one"),
        ({"epochs": 3, "peak_lr": None, "patience": 2}, "epochs, patience: nothing is trained"),
        ({"encoder": "use", "pooling": "mean"}, "use is taken as it is"),
        ({"encoder": "word_vectors", "pooling": None, "architecture": "siamese"}, "architecture=untrained and no pooling expected"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        settings_of(**given)


@pytest.mark.parametrize("max_tokens", [2, 65])
def test_texts_longer_than_the_model_reads_are_refused(folder, max_tokens):
    with pytest.raises(ValueError, match=f"max_tokens: 3 to 64 for this model, got {max_tokens}"):
        embedder.start_from(folder, tokenizers.load_tokenizer(folder), settings_of(max_tokens=max_tokens))


def test_the_longest_text_is_as_long_as_there_are_positions(folder):
    model = embedder.start_from(folder, tokenizers.load_tokenizer(folder), settings_of(max_tokens=64))
    texts = [" ".join(WORDS * 4), "river"]
    np.testing.assert_allclose(model.encode(texts), by_transformers(folder, texts, "mean", 64), atol=2e-6)


def test_a_checkpoint_that_lacks_a_layer_is_refused(folder, tmp_path, tokenizer):
    from safetensors.torch import load_file, save_file

    backbone = load_file(folder / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in backbone.items() if "layer.1" not in name}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    AutoConfig.from_pretrained(folder).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"num_hidden_layers 2, its weights have 1 layers"):
        embedder.start_from(tmp_path, tokenizer, settings_of())


def test_pooling_is_float32():
    assert embedder.pooled(torch.ones(1, 2, 3).bfloat16(), torch.ones(1, 2, dtype=torch.bool)).dtype == torch.float32


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_another_pooling_than_that_of_its_training_is_said(folder, tmp_path, caplog, pooling):
    tokenizer = tokenizers.load_tokenizer(folder)
    embedder.start_from(folder, tokenizer, settings_of("triplet", "cls")).save(tmp_path / "model")
    caplog.clear()
    embedder.start_from(tmp_path / "model", tokenizer, settings_of("untrained", pooling))
    told = [f"{tmp_path / 'model'} was trained with pooling=cls, and is read with pooling=mean"]
    assert [text for text in caplog.messages if "pooling" in text] == told * (pooling == "mean")


@pytest.mark.parametrize(
    ("saved", "modes"),
    [
        ({"pooling_mode": "cls", "include_prompt": True}, "cls"),
        ({"pooling_mode": ["mean", "max"]}, "max+mean"),
        ({"pooling_mode_lasttoken": True, "include_prompt": True}, "lasttoken"),
        ({"pooling_mode": "mean"}, ""),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ""),
    ],
)
@pytest.mark.parametrize("prompts", [{}, {"query": "", "document": ""}, {"query": "query: "}])
def test_the_pooling_of_every_version_of_sentence_transformers_is_known(tmp_path, monkeypatch, caplog, saved, modes, prompts):
    """Of a folder, and of a model of the hub."""
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 8} | saved))
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    monkeypatch.setattr(embedder, "hf_hub_download", lambda name, file: tmp_path / file)
    said = [f"a/model was trained with pooling={modes}, and is read with pooling=mean"] * bool(modes)
    said += ["a/model has prompts, and is read without them; encoder=sentence_transformer reads them"] * any(prompts.values())
    for path in (tmp_path, "a/model"):
        caplog.clear()
        embedder._warn_of_other_reading(path, "a/model", settings_of("untrained", "mean", 128))
        assert caplog.messages == said


def asked(count=6):
    """Questions with their candidates, as a split gives them."""
    texts, found = iter(texts_of(count * 4, seed=3, longest=12)), []
    for n in range(count):
        question, *others = (next(texts) for _ in range(4))
        candidates = tuple(Candidate(f"{n}-{k}", text, int(k == 1), None, None) for k, text in enumerate(others))
        found.append(Question(str(n), question, candidates))
    return found


def by_cosine(folder, questions, max_tokens=32):
    """One text at a time through transformers, one pair at a time through numpy."""
    found = []
    for question in questions:
        (u,) = by_transformers(folder, [question.text], "mean", max_tokens)
        for candidate in question.candidates:
            (v,) = by_transformers(folder, [candidate.text], "mean", max_tokens)
            found.append(float(u @ v / np.sqrt((u @ u) * (v @ v))))
    return found


@pytest.mark.slow
def test_the_zero_shot_line_is_the_cosine_of_the_backbone_as_it_is(folder):
    scores = nearest.Nearest(embedder.untrained(folder, 32)).score(asked())
    np.testing.assert_allclose(scores["score"], by_cosine(folder, asked()), atol=1e-6)


@pytest.mark.slow
def test_the_notebook_takes_it_from_the_backbone_that_the_chain_began_with(folder, tmp_path):
    """The cell of `finetune`, as it is stored, for a run that starts from a run that started from the saved backbone, and for `tiny`."""
    run = tmp_path / "pretrain-ssp-0123456789ab"
    run.mkdir()
    disk.write_json(run / "run.json", {"notebook": "pretrain", "given": {"objective": "ssp", "model": str(folder)}})
    cells = json.loads((rundir.root() / "notebooks" / "finetune.ipynb").read_text("utf-8"))["cells"]
    (cell,) = ["".join(one["source"]) for one in cells if one["cell_type"] == "code" and "baseline_scores(" in "".join(one["source"])]
    rows = [{"question_id": q.id, "question": q.text, "answer": c.text, "label": c.label} for q in asked() for c in q.candidates]
    pd.DataFrame(rows).to_json(tmp_path / "test.jsonl", orient="records", lines=True)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl").write_bytes((tmp_path / "test.jsonl").read_bytes())
    splits = answers.load_answers(str(tmp_path))
    measured = {}
    modules = {"baseline_scores": baseline_scores, "embedder": embedder, "metrics": metrics, "nearest": nearest}
    modules |= {"chains": chains, "identity": identity, "tables": tables}
    for model in (str(run), str(folder), "tiny"):
        known = {"s": SimpleNamespace(model=model, runs_dir=str(tmp_path), max_tokens=32, seed=0), "splits": splits, "pd": pd}
        exec(cell, known | modules, known)
        measured[model] = known["baselines"]
    frame = splits["test"].frame().assign(score=np.float32(by_cosine(folder, splits["test"])))
    assert measured[str(run)]["zero_shot"] == measured[str(folder)]["zero_shot"] == metrics.of(frame).record()
    assert "zero_shot" not in measured["tiny"]
