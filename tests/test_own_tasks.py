"""Released heads for NSP and SOP: read the right way round, and refused where they are not there."""

import json

import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForNextSentencePrediction, BertModel

from asutil import disk, own_tasks, runs

SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 64}


@pytest.fixture(scope="module")
def released(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("released")
    vocabulary = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(0)
    for name, model in (
        ("bert", BertForNextSentencePrediction(BertConfig(**SIZE, **vocabulary))),
        ("albert", AlbertForPreTraining(AlbertConfig(**SIZE, **vocabulary, embedding_size=8))),
        ("bare", BertModel(BertConfig(**SIZE, **vocabulary))),
    ):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


def batch(tokenizer):
    encoded = tokenizer(["One two.", "Three."], ["Four five six.", "Seven."], padding=True, return_tensors="pt")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


@pytest.mark.parametrize(("name", "objective", "field"), [("bert", "nsp", "logits"), ("albert", "sop", "sop_logits")])
def test_class_1_is_what_the_released_head_calls_0(released, tokenizer, name, objective, field):
    model = own_tasks.load(str(released / name), objective).eval()
    given = batch(tokenizer)
    with torch.no_grad():
        logits, masked = model(given)
        theirs = own_tasks.RELEASED[objective].from_pretrained(released / name).eval()(**given)[field]
    assert masked is None and torch.equal(logits, theirs[:, [1, 0]])


def test_weights_without_the_head_are_refused(released):
    with pytest.raises(ValueError, match=r"bare has no head for nsp: a BertForNextSentencePrediction with all its weights is expected"):
        own_tasks.load(str(released / "bare"), "nsp")


def run_of(folder, objective):
    name = f"pretrain-{objective}-{abs(hash(objective)) % 16**12:012x}"
    (folder / name).mkdir(parents=True)
    record = {"notebook": "pretrain", "rung": "laptop", "seed": 0, "settings": {"objective": objective, "max_tokens": 32}, "metrics": {}}
    disk.write_json(folder / name / "record.json", record | runs.hashes(folder / name))
    return str(folder / name)


def test_a_run_is_asked_what_it_learnt_and_a_released_model_what_is_said(tmp_path):
    ssp, union = run_of(tmp_path, "ssp"), run_of(tmp_path, "all")
    assert own_tasks.tasks([ssp, union]) == [(ssp, "ssp"), (union, "all")]
    assert own_tasks.tasks([union], "psd") == [(union, "psd")]
    assert own_tasks.tasks(["a/bert", "a/albert"], "nsp, sop") == [("a/bert", "nsp"), ("a/albert", "sop")]
    assert own_tasks.tasks(["a/bert", "b/bert"], "nsp") == [("a/bert", "nsp"), ("b/bert", "nsp")]


@pytest.mark.parametrize(
    ("objective", "asked", "message"),
    [
        ("ssp", "psd", r"objectives: .* can be asked for ssp; got psd"),
        ("mlm", None, r"can be asked for mlm; got mlm"),
        (None, None, r"objectives: a/bert can be asked for nsp, sop; got None"),
        (None, "ssp", r"objectives: a/bert can be asked for nsp, sop; got ssp"),
        (None, "nsp,sop", r"objectives: one for each of 1 models expected, got 2: nsp,sop"),
    ],
)
def test_what_cannot_be_asked(tmp_path, objective, asked, message):
    with pytest.raises(ValueError, match=message):
        own_tasks.tasks([run_of(tmp_path, objective) if objective else "a/bert"], asked)


def test_all_means_the_finished_runs_of_the_rung_that_learnt_a_task(tmp_path):
    ssp, _ = run_of(tmp_path, "ssp"), run_of(tmp_path, "mlm")
    (tmp_path / "pretrain-psd-000000000000").mkdir()  # not finished
    assert runs.models("all", "laptop", str(tmp_path)) == [ssp]
    assert runs.models(f"a/b, {ssp.split('/')[-1]}", "laptop", str(tmp_path)) == ["a/b", ssp]
    with pytest.raises(ValueError, match="no pre-training run of rung small is finished"):
        runs.models("all", "small", str(tmp_path))


def test_every_model_is_measured_on_its_own_task(released, tmp_path, documents):
    lines = ({"text": "\n\n".join(" ".join(paragraph) for paragraph in document)} for document in documents)
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = [(str(released / "bert"), "nsp"), (str(released / "albert"), "sop")]
    found = own_tasks.measured(asked, str(tmp_path / "own.jsonl"), tmp_path, 8, 512, longest=48)
    assert [name.split(", ")[1] for name in found] == ["nsp", "sop"]
    for one in found.values():
        assert one["majority"] == 0.5 and 0 <= one["accuracy"] <= 1 and 0 < one["examples"] <= 8
