"""ELECTRA: against transformers' own classes, gradients by autograd, sampling by chi-square, resumes by bytes."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_model
from scipy.stats import chisquare
from torch.nn import functional
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining, AutoModelForSequenceClassification, ElectraConfig

from asutil import inputs, losses, sampling, training
from asutil.corpus.tokenizers import tokenizer_for
from asutil.models import electra, loading
from asutil.models.pair import PairEncoder
from asutil.training import trainer
from asutil.training.options import Options

from ..conftest import bytes_of, stopped_and_whole
from ..inputs.test_packing import examples
from .test_loading import assert_same, moved, parameters

SIZE = {"vocab_size": 60, "embedding_size": 16, "num_hidden_layers": 2, "max_position_embeddings": 80}
WIDE = SIZE | {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
NARROW = SIZE | {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}


def new_model(tokenizer=None, seed=1, wide=None, narrow=None):
    """A small pair of the true architecture with token types; away from the start, where a wrong position hardly shows."""
    torch.manual_seed(seed)
    wide, narrow = ElectraConfig(**WIDE | STILL | (wide or {})), ElectraConfig(**NARROW | STILL | (narrow or {}))
    both = [kind.from_config(wide) for kind in (AutoModelForSequenceClassification, AutoModelForPreTraining)]
    return moved(electra.assembled(*both, AutoModelForMaskedLM.from_config(narrow), tokenizer))


def batch_of(layout="ordered", tokens=10**6, count=20):
    """One optimiser batch, and its original ids by example; labels are example numbers modulo 2."""
    ragged, labels, _ = examples(count)
    draw = np.random.default_rng(3)
    places = np.flatnonzero(draw.random(len(ragged.ids)) < 0.2)
    ids = ragged.ids.copy()
    ids[places] = np.where(draw.random(len(places)) < 0.8, 4, ids[places])
    masked = inputs.Ragged(ids, ragged.offsets, ragged.types)
    micro = inputs.laid_out(layout, masked, labels, 1, tokens, (places, ragged.ids[places]))
    return {"micro": micro, "examples": count, "masked": len(places), "tokens": len(ids)}, ragged


def read_by(backbone, run):
    """The ids that a backbone was given while `run` ran, and what that returned."""
    seen = []
    hook = backbone.register_forward_pre_hook(lambda _, args, given: seen.append(given["input_ids"]), with_kwargs=True)
    try:
        return run(), seen
    finally:
        hook.remove()


def losses_of(model, batch, **weights):
    """The whole batch's loss, its parts and its gradients."""
    options = Options(**USUAL, **weights)
    model.zero_grad()
    total, parts = 0, 0
    for micro in batch["micro"]:
        found = model.losses(model(micro), micro, batch)
        loss = trainer.weighted(found, model.loss_weights(options))
        loss.backward()
        total, parts = total + loss.item(), parts + found.detach()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return total, parts, {name: gradient.clone() for name, gradient in gradients.items() if gradient is not None}


# ------------------------------------------------------------------ what reaches what


@pytest.mark.parametrize("layout", ["ordered", "packed"])
def test_gradients_reach_the_generator_through_mlm_alone_and_the_discriminator_through_the_others(layout):
    model, (batch, _) = new_model(), batch_of(layout)
    tied = {f"backbone.embeddings.{name}.weight" for name in electra.TIED}
    of = {part: {name for name, _ in model.named_parameters() if name.startswith(part)} for part in ("generator", "backbone")}
    heads = {part: set(model.head_parameters(part)) for part in ("pair", "detection")}
    assert not tied & of["generator"]  # a shared parameter has one name
    expected = {
        "mlm_weight": of["generator"] | tied,
        "detection_weight": of["backbone"] | heads["detection"],
        "objective_weight": of["backbone"] | heads["pair"],
    }
    for part, reached in expected.items():
        alone = dict.fromkeys(expected, 0.0) | {part: 1.0}
        _, _, gradients = losses_of(model, batch, **alone)
        found = {name for name, gradient in gradients.items() if gradient.abs().max() > 0}
        assert found <= reached, part
        assert {name for name in reached - found if not name.endswith("key.bias")} == set(), part  # softmax does not see a key's bias


# ------------------------------------------------------------------ what the discriminator reads


@pytest.mark.parametrize("layout", ["ordered", "packed"])
def test_labels_are_one_exactly_where_the_token_differs_from_the_original(layout):
    """The original text is read off the ragged examples, not off the masked places."""
    model, (batch, ragged), found = new_model(), batch_of(layout, 400), []
    for micro in batch["micro"]:
        ((_, _, (_, replaced, real)), (read,)) = read_by(model.backbone, lambda micro=micro: model(micro))
        if layout == "packed":
            ends = micro["cu_seq_lens"].tolist()
            rows = [(read[0, a:b], replaced[0, a:b]) for a, b in itertools.pairwise(ends)][: len(micro["labels"])]
            assert real[0].tolist() == [place < ends[len(rows)] for place in range(read.shape[1])]
        else:
            lengths = micro["attention_mask"].sum(1).tolist()
            rows = [(ids[:length], label[:length]) for ids, label, length in zip(read, replaced, lengths)]
            assert torch.equal(real, micro["attention_mask"].bool())
        assert not replaced[~real].any()
        found += [(tuple(ids.tolist()), tuple(label.tolist())) for ids, label in rows]
    originals = [ragged.ids[a:b] for a, b in itertools.pairwise(ragged.offsets)]
    assert len(found) == len(originals)
    changed = 0
    for original in originals:
        (nearest,) = [(ids, label) for ids, label in found if len(ids) == len(original) and np.mean(np.equal(ids, original)) > 0.5]
        assert np.array_equal(np.array(nearest[1]), np.array(nearest[0]) != original)
        changed += sum(nearest[1])
    assert 0.5 * batch["masked"] < changed < batch["masked"]  # a random generator over 60 tokens seldom hits, but some tokens stay


def test_sampling_follows_the_softmax():
    torch.manual_seed(0)
    logits = torch.tensor([[1.0, -2.0, 0.5, 3.0, 0.0, -torch.inf]])
    counts = np.bincount(electra.sampled(logits.expand(20_000, 6)).numpy(), minlength=6)
    assert counts[5] == 0
    assert chisquare(counts[:5], 20_000 * logits[0, :5].double().softmax(-1).numpy()).pvalue > 0.01
    assert electra.sampled(torch.eye(6) * 1e4).tolist() == list(range(6))
    assert electra.sampled(torch.zeros(0, 6)).shape == (0,)
    assert electra.sampled(torch.zeros(1000, 6, dtype=torch.bfloat16)).unique().tolist() == list(range(6))


def test_samples_are_a_function_of_torchs_seed():
    model, (batch, _) = new_model().eval(), batch_of()

    def drawn(seed):
        torch.manual_seed(seed)
        return model(batch["micro"][0])[2][1]

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


@torch.no_grad()
def test_both_halves_equal_transformers_own_models():
    model, (batch, _) = new_model().eval(), batch_of()
    (micro,) = batch["micro"]
    ((pair, mlm, (detection, _, real)), (read,)) = read_by(model.backbone, lambda: model(micro))
    given = {"attention_mask": micro["attention_mask"], "token_type_ids": micro["token_type_ids"]}
    assert given["token_type_ids"].any()

    generator = transformers.ElectraForMaskedLM(model.generator.config).eval()
    generator.load_state_dict(model.generator.state_dict())
    expected = generator(micro["input_ids"], **given).logits.flatten(0, 1)[micro["masked_positions"]]
    torch.testing.assert_close(mlm, expected, rtol=0, atol=1e-5)

    whole = transformers.ElectraForPreTraining(model.backbone.config).eval()
    whole.electra.load_state_dict(model.backbone.state_dict())
    whole.discriminator_predictions.load_state_dict(model.detection.discriminator_predictions.state_dict())
    torch.testing.assert_close(detection[real], whole(read, **given).logits[real], rtol=0, atol=1e-5)

    classifier = AutoModelForSequenceClassification.from_config(model.backbone.config).eval()
    classifier.electra.load_state_dict(model.backbone.state_dict())
    classifier.classifier.load_state_dict(model.pair.classifier.state_dict())
    torch.testing.assert_close(pair, classifier(read, **given).logits, rtol=0, atol=1e-5)


def test_a_batch_without_masks_is_read_as_it_is():
    model, (batch, _) = new_model().eval(), batch_of()
    (micro,) = batch["micro"]
    plain = {name: micro[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    pair, nothing = model(plain)
    assert nothing is None
    assert torch.equal(pair, PairEncoder(model.backbone, model.pair, None, None)(plain)[0])


# ------------------------------------------------------------------ ties


def shared(model):
    pairs = [(getattr(model.backbone.embeddings, name), getattr(model.generator.base_model.embeddings, name)) for name in electra.TIED]
    return [one.weight is other.weight for one, other in pairs] + [
        model.generator.get_output_embeddings().weight is model.backbone.get_input_embeddings().weight
    ]


def test_embeddings_are_shared_where_their_shapes_agree():
    assert shared(new_model()) == [True, True, True, True]
    assert shared(new_model(narrow={"max_position_embeddings": 70, "type_vocab_size": 3})) == [True, False, False, True]
    untied = new_model(narrow={"tie_word_embeddings": False})
    assert shared(untied) == [True, True, True, False]


def test_other_vocabularies_or_sizes_are_refused():
    with pytest.raises(ValueError, match=r"\(60, 16\) expected, got \(61, 16\)"):
        new_model(narrow={"vocab_size": 61})
    with pytest.raises(ValueError, match=r"\(60, 16\) expected, got \(60, 8\)"):
        new_model(narrow={"embedding_size": 8})


def test_a_generator_that_reads_less_limits_the_length(tokenizer):
    with pytest.raises(ValueError, match="to 70 for this model, got 71"):
        loading.check_length(new_model(tokenizer, narrow={"max_position_embeddings": 70}), 71)


# ------------------------------------------------------------------ from scratch


def test_tiny_electra_is_small_and_a_function_of_its_seed(tokenizer):
    model = loading.start_from("tiny_electra", tokenizer, 128, seed=1, mlm=True)
    state = torch.random.get_rng_state()
    assert_same(parameters(model), parameters(electra.tiny(tokenizer, seed=1)))
    assert torch.equal(state, torch.random.get_rng_state())
    without = loading.start_from("tiny_electra", tokenizer, 128, seed=1)
    assert type(without) is PairEncoder and without.mlm is None and without.fresh == ("pair",)
    assert_same(parameters(model.backbone), parameters(without.backbone))
    assert_same(parameters(model.pair), parameters(without.pair))
    assert not torch.equal(model.pair.classifier.dense.weight, electra.tiny(tokenizer, seed=2).pair.classifier.dense.weight)
    assert shared(model) == [True] * 4
    at_8192 = sum(p.numel() for p in model.parameters()) + (8192 - len(tokenizer)) * 129  # an embedding and a bias a token
    assert 1.5e6 < at_8192 < 2e6
    with pytest.raises(ValueError, match="tiny_electra has its own, got own"):
        loading.start_from("tiny_electra", tokenizer, 128, mlm=True, generator="own")


def test_both_tiny_models_have_one_tokenizer(tmp_path):
    (tmp_path / "own.txt").write_text("\n\n".join(f"The wheel turned {n} times, and the mill did not stop." for n in range(9)))
    tokenizers = [tokenizer_for(name, str(tmp_path / "own.txt"), tmp_path / "shared") for name in ("tiny", "tiny_electra")]
    assert tokenizers[0].backend_tokenizer.to_str() == tokenizers[1].backend_tokenizer.to_str()
    assert len([path for path in (tmp_path / "shared").iterdir() if path.is_dir()]) == 1


# ------------------------------------------------------------------ training

USUAL = {"peak_lr": 2e-3, "warmup_steps": 2, "weight_decay": 0.01, "seed": 3, "save_every": 2, "log_every": 2, "progress": False}


def batches_of(corpus, layout, steps=6):
    return inputs.PretrainingBatches(lambda epoch: sampling.Sampler(corpus, "ssp", 0, epoch), steps, 16, 400, layout=layout)


def train(tokenizer, folder, batches, **options):
    model = electra.tiny(tokenizer, seed=1)
    result = training.train(model, batches, folder, **USUAL | options)
    return bytes_of(model), result


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["ordered", "packed"])
def test_a_stopped_run_ends_in_the_same_bytes(corpus, tokenizer, tmp_path, layout):
    (_, result), (_, resumed) = stopped_and_whole(tmp_path, partial(train, tokenizer), lambda: batches_of(corpus, layout), 5)
    assert [row["step"] for row in result["log"]] == [2, 4, 6]
    for row in result["log"]:
        assert row["loss"] == pytest.approx(row["mlm_loss"] + row["objective_loss"] + 50 * row["detection_loss"])
        assert 0 < row["detection_loss"] < 1
    assert resumed["tokens"] == result["tokens"]
    progress = json.loads((tmp_path / "whole" / "checkpoints" / "checkpoint-6" / "progress.json").read_text())
    assert progress["settings"]["detection_weight"] == 50
    kept = electra.tiny(tokenizer, seed=1)
    load_model(kept, tmp_path / "whole" / "checkpoints" / "checkpoint-6" / "model.safetensors")
    assert shared(kept) == [True] * 4


@pytest.mark.slow
def test_half_precision_is_an_option(corpus, tokenizer, tmp_path):
    usual, _ = train(tokenizer, tmp_path / "a", batches_of(corpus, "packed", 2))
    other, result = train(tokenizer, tmp_path / "b", batches_of(corpus, "packed", 2), precision="bf16")
    assert other != usual
    assert 0 < result["log"][0]["detection_loss"] < 1


@pytest.mark.slow
def test_it_learns(corpus, tokenizer, tmp_path):
    _, result = train(tokenizer, tmp_path, batches_of(corpus, "ordered", 24), log_every=4, save_every=24)
    first, last = result["log"][0], result["log"][-1]
    assert last["mlm_loss"] < 0.9 * first["mlm_loss"]
    assert last["detection_loss"] < 0.9 * first["detection_loss"]


def test_validation_is_a_function_of_its_seed_and_reads_the_samples(corpus, tokenizer):
    model, sampler = electra.tiny(tokenizer, seed=1).train(), sampling.Sampler(corpus, "ssp", 0)
    torch.manual_seed(8)
    state = torch.random.get_rng_state()
    found, seen = read_by(model.backbone, lambda: training.validate(model, sampler, 40, 400))
    assert torch.equal(state, torch.random.get_rng_state()) and model.training
    torch.manual_seed(9)
    assert training.validate(model, sampler, 40, 400) == found
    assert training.validate(model, sampler, 40, 400, seed=1) != found
    assert set(found) == {"accuracy", "f1", "majority", "auc", "rank_1", "rank_1_chance", "loss", "mlm_loss", "detection_loss"}
    assert not any((ids == tokenizer.mask_token_id).sum() > 2 for ids in seen)  # samples stand in the places of the masks

    batch = inputs.PretrainingBatches(lambda epoch: sampler, 1, 1, 400, 0).made_of([(0, np.arange(40))])
    torch.manual_seed(0)
    sums, counts = np.zeros(3), [batch["masked"], 40, batch["tokens"]]
    with torch.no_grad():
        for micro in batch["micro"]:
            pair, mlm, (detection, replaced, real) = model.eval()(micro)
            sums += [
                functional.cross_entropy(mlm, micro["masked_targets"], reduction="sum").item(),
                functional.cross_entropy(pair, micro["labels"], reduction="sum").item(),
                functional.binary_cross_entropy_with_logits(detection[real], replaced[real].float(), reduction="sum").item(),
            ]
    assert [found[name] for name in ("mlm_loss", "loss", "detection_loss")] == pytest.approx(sums / counts, rel=1e-5)


def test_the_discriminator_alone_logs_no_detection(tokenizer, corpus, tmp_path):
    model = loading.start_from("tiny_electra", tokenizer, 64)
    batches = inputs.PretrainingBatches(lambda epoch: sampling.Sampler(corpus, "ssp", 0, epoch), 2, 16, 400, mlm_share=0)
    result = training.train(model, batches, tmp_path, **USUAL)
    assert "detection_loss" not in result["log"][0] and result["log"][0]["mlm_loss"] == 0


def test_without_a_masked_token_there_is_still_a_loss():
    model, (batch, _) = new_model(), batch_of()
    (micro,) = batch["micro"]
    none = micro | {name: micro[name][:0] for name in ("masked_positions", "masked_targets")}
    pair, mlm, (detection, replaced, real) = model(none)
    assert mlm.shape == (0, 60) and not replaced.any()
    parts = model.losses((pair, mlm, (detection, replaced, real)), none, batch | {"masked": 0})
    assert parts[0] == 0 and parts[2] == losses.replaced_token(detection, replaced, real)
