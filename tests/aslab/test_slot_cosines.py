"""Cosines between slots: against a slow loop, where slots are the same by construction, and from a command line into a record."""

import json
import logging
from functools import cache

import numpy as np
import pytest
import torch
from transformers import BertConfig, RobertaConfig

from aslab import rundir, slot_cosines
from aslab.commands import asutil
from asutil import inputs
from asutil.data import answers
from asutil.io import disk
from asutil.models import joint, loading

from ..inputs.test_packing import joint_examples, joint_model

read_once = cache(answers.load_answers)


@pytest.fixture(autouse=True)
def questions_are_read_once(monkeypatch):
    monkeypatch.setattr(answers, "load_answers", read_once)


def batch_of(layout="ordered"):
    ragged, labels, _, made = joint_examples()
    (micro,) = inputs.laid_out(layout, ragged, labels, 1, 10**6)
    return micro, [made[row] for row in np.argsort(ragged.lengths, kind="stable")]


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("positions", ["absolute", "skipping"])
@pytest.mark.parametrize("name", ["roberta", "bert"])
@torch.no_grad()
def test_cosines_equal_a_slow_loop_over_inputs_alone(name, positions, pooling):
    """Each input in a batch of its own, without padding; every pair of candidates by itself."""
    model, (micro, made) = joint_model(name, positions=positions, pooling=pooling).eval(), batch_of()
    offset = {"roberta": 2, "bert": 0}[name]
    expected = [{"first": [], "mean": []} for _ in range(3)]
    for example in made:
        ids = [token for slot in example for token in slot]
        types = [number for number, slot in enumerate(example) for _ in slot]
        places = [12 * number + step for number, slot in enumerate(example) for step in range(len(slot))]
        places = places if positions == "absolute" else range(len(ids))
        given = {"input_ids": ids, "token_type_ids": types, "position_ids": [place + offset for place in places]}
        given = {key: torch.tensor([list(value)]) for key, value in given.items()}
        layers = model.backbone(**given, output_hidden_states=True).hidden_states
        for found, layer in zip(expected, layers):
            vectors, at = [], 0
            for slot in filter(None, example):
                own = layer[0, at : at + len(slot)].numpy()
                vectors.append({"first": own[0], "mean": own.mean(0)})
                at += len(slot)
            del vectors[0]  # of the question
            for i, one in enumerate(vectors):
                for other in vectors[:i]:
                    for of in ("first", "mean"):
                        a, b = one[of], other[of]
                        found[of].append(float(a @ b / np.sqrt((a @ a) * (b @ b))))
    table = slot_cosines.slot_cosines(model, micro)
    assert table.shape == (3, 4) and table.index.tolist() == [0, 1, 2]
    for of in ("first", "mean"):
        assert table[of].tolist() == pytest.approx([np.mean(layer[of]) for layer in expected], abs=1e-5)
        assert table[f"{of}_least"].tolist() == pytest.approx([min(layer[of]) for layer in expected], abs=1e-5)
    last = slot_cosines.figures(model, table)["slot_cosines"]
    assert last == {"first": table["first"].round(6).tolist(), "mean": table["mean"].round(6).tolist(), "pooling": pooling}


def test_few_inputs_are_read_without_dropout_and_the_model_is_left_as_it_was(monkeypatch):
    model, (micro, _) = joint_model("bert").train(), batch_of()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    first, again = slot_cosines.slot_cosines(model, micro), slot_cosines.slot_cosines(model, micro)
    assert first.equals(again) and model.training
    monkeypatch.setattr(slot_cosines, "EXAMPLES", 3)
    few = {name: tensor[:3] for name, tensor in micro.items() if name != "masked_positions"}
    assert slot_cosines.slot_cosines(model, micro).equals(slot_cosines.slot_cosines(model, few))
    with pytest.raises(ValueError, match="a padded micro-batch is expected, got a packed one"):
        slot_cosines.slot_cosines(model, batch_of("packed")[0])


def same_everywhere(model):
    """Without types and positions a text is the same in any slot."""
    with torch.no_grad():
        embeddings = model.backbone.embeddings
        embeddings.token_type_embeddings.weight.zero_()
        embeddings.position_embeddings.weight.zero_()
    return model


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_one_text_in_every_slot_is_one_vector_and_a_warning(caplog, pooling):
    texts = inputs.Ragged(np.tile([5, 9, 30], 8), np.arange(0, 25, 3), None)
    joined = inputs.as_slots(texts, np.ones((2, 4), bool), 12)
    (micro,) = inputs.laid_out("ordered", joined, np.zeros((2, 3), int), 1, 10**6)
    model = same_everywhere(joint_model("roberta", pooling=pooling))
    with caplog.at_level(logging.WARNING):
        table = slot_cosines.measured(model, micro)
    assert np.allclose(table, 1, atol=1e-6)
    assert f"one vector (slot_pooling={pooling}: mean cosine 1.0000" in caplog.text
    caplog.clear()
    other = slot_cosines.measured(joint_model("roberta", pooling=pooling), micro)
    assert other[pooling].iloc[-1] < 0.999 and not caplog.text


def test_without_two_candidates_in_an_input_there_is_nothing_to_compare():
    texts = inputs.Ragged(np.tile([5, 9, 30], 4), np.arange(0, 13, 3), None)
    joined = inputs.as_slots(texts, np.tile([True, True, False, False], (2, 1)), 12)
    (micro,) = inputs.laid_out("ordered", joined, np.zeros((2, 3), int), 1, 10**6)
    assert slot_cosines.measured(joint_model("roberta"), micro) is None


def test_a_model_without_slots_has_none(tokenizer):
    pair = loading.tiny(tokenizer, mlm=False)
    pooled = joint.over(loading.tiny(tokenizer, mlm=False), joint.shape(True, "pair_max", 3, 16, None, None, classes=3))
    assert slot_cosines.measured(pair, {}) is None is slot_cosines.measured(pooled, {})
    assert slot_cosines.figures(pair, None) == {}


@pytest.mark.slow
@pytest.mark.parametrize("config", [RobertaConfig, BertConfig])
def test_a_model_of_the_readers_goes_into_a_record(config, tokenizer, bert_tokenizer, tmp_path, capsys):
    own = {RobertaConfig: tokenizer, BertConfig: bert_tokenizer}[config]
    size = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 420}
    model = loading.from_config(config(**size, vocab_size=len(own), pad_token_id=own.pad_token_id), own, mlm=False)
    folder, out = model.save(tmp_path / "model"), tmp_path / "results" / "cosines.json"
    asutil.main(["slots", str(folder), "--init", "0.02,0.5", "--out", str(out)])
    found = disk.read_json(out)
    assert [one["init"] for one in found["models"]] == [0.02, 0.5] and found["inputs"] == 16 and found["dataset"] == "pydocs"
    for one in found["models"]:
        made, table = slot_cosines.of(str(folder), one["init"])
        assert table["mean"].round(6).tolist() == one["mean"] and len(one["first"]) == one["layers"] + 1 == 4
        assert made.joint.init == one["init"] and one["type"] == made.backbone.config.model_type
    narrow, wide = (one["first"][0] for one in found["models"])
    assert wide < narrow and found["models"][0]["weights_sha256"] != found["models"][1]["weights_sha256"]
    assert "standard deviation 0.5" in capsys.readouterr().out


@pytest.mark.slow
def test_a_joint_run_is_measured_as_it_was_made(tokenizer, tmp_path):
    made = joint.shape(True, "ae_k", 3, 48, "linear", "skipping", pooling="mean")
    folder = loading.start_from("tiny", tokenizer, 48, seed=2, joint=made).save(tmp_path / "model")
    model, table = slot_cosines.of(str(folder), init=5.0)
    assert model.joint == made and len(table) == 3
    (once,) = slot_cosines.record([str(folder)], [0.02, 0.5], random=False, dataset="pydocs")["models"]
    assert once["init"] == made.init


@pytest.mark.parametrize("name", ["pretrain", "finetune", "verify_claims"])
def test_notebooks_look_before_they_train_and_record_it(name):
    notebook = json.loads((rundir.root() / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    steps = ("slot_cosines.measured(model,", "training.train(", "**slot_cosines.figures(model, cosines)")
    places = [next(n for n, cell in enumerate(code) if step in cell) for step in steps]
    assert places == sorted(places) and "run.finish(" in code[places[2]]


@pytest.mark.slow
@pytest.mark.parametrize(("positions", "slot_tokens"), [(70, 11), (258, 42), (420, 64)])
def test_slots_are_as_long_as_the_positions_of_the_model_allow(tokenizer, tmp_path, positions, slot_tokens):
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = RobertaConfig(**size, max_position_embeddings=positions, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    folder = loading.from_config(config, tokenizer, mlm=False).save(tmp_path / "model")
    model, table = slot_cosines.of(str(folder))
    assert model.joint.slot_tokens == slot_tokens == min(64, (positions - 2) // 6) and len(table) == 2
