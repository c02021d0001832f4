"""Joint models: against the padded input of the paper on the bare backbone, from disk and back, and trained to the byte."""

import copy
import json

import numpy as np
import pytest
import torch
from transformers import AutoModel, ElectraConfig
from transformers.modeling_outputs import BaseModelOutputWithPooling

from asutil import heads, inputs, sampling, training
from asutil.inputs import groups
from asutil.models import joint, loading
from asutil.models import pair as pair_models
from asutil.models.joint import JointEncoder
from asutil.models.pair import PairEncoder
from asutil.tasks import rankers

from ..conftest import bytes_of, stopped_and_whole
from ..inputs.test_packing import SIZE, by_example, joint_examples, joint_model, new_model
from ..tasks.test_rank import questions
from .test_loading import assert_same, moved, parameters

OFFSET = {"roberta": 2, "bert": 0, "electra": 0}  # RoBERTa counts positions from its padding on
TABLE = "backbone.embeddings.token_type_embeddings.weight"


def shape(head="ie_k", k=3, slot_tokens=16, form="linear", positions="absolute", **options):
    return joint.shape(True, head, k, (k + 1) * slot_tokens, form, positions, **options)


# ------------------------------------------------------------------ the padded input of the paper


def padded(slots, slot_tokens=12, pad=1):
    """Every slot padded to its length, token by token: ids, mask and types (B, S L), and where each token went."""
    ids, places = np.full((len(slots), len(slots[0]) * slot_tokens), pad), []
    for row, example in enumerate(slots):
        for number, slot in enumerate(example):
            for step, token in enumerate(slot):
                ids[row, number * slot_tokens + step] = token
                places.append((row, number * slot_tokens + step))
    mask = np.zeros_like(ids)
    mask[tuple(zip(*places))] = 1
    types = np.tile(np.repeat(np.arange(len(slots[0])), slot_tokens), (len(ids), 1))
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "token_type_ids": torch.tensor(types)}, places


def by_hand(layer, head, embeddings, present):
    """z of the four heads of section 3.3 from the embeddings (B, S, H)."""
    question, candidates = embeddings[:, :1], embeddings[:, 1:]
    mean = torch.stack([row[there].mean(0) for row, there in zip(embeddings, present)])
    read = {"ie_k": candidates, "ae_k": torch.cat([question.expand_as(candidates), candidates], -1), "ie_1": question[:, 0], "ae_1": mean}
    return read[head] @ layer.weight.T + layer.bias


def embeddings_by_hand(hidden, slots, pooling, slot_tokens=12):
    """E (B, S, H) of the padded input, slot by slot and token by token: the first token, or the mean over the slot's own; 0 without any."""
    found = torch.zeros(len(slots), len(slots[0]), hidden.shape[-1], dtype=hidden.dtype)
    for row, example in enumerate(slots):
        for number, slot in enumerate(example):
            own = [hidden[row, number * slot_tokens + step] for step in range(len(slot))]
            if own:
                found[row, number] = own[0] if pooling == "first" else sum(own) / len(own)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("positions", ["absolute", "skipping"])
@pytest.mark.parametrize("head", heads.EVIDENCE)
@pytest.mark.parametrize("name", OFFSET)
@torch.no_grad()
def test_compact_inputs_equal_the_padded_ones_of_the_paper(name, head, positions, pooling):
    """Positions 0 to (k + 1) L - 1; or, skipping, those that transformers' own RoBERTa gives to an input with padding."""
    model, (ragged, _, masked, slots) = joint_model(name, head, positions=positions, pooling=pooling).eval(), joint_examples()
    given, places = padded(slots)
    if positions == "absolute":
        given["position_ids"] = torch.arange(48)[None] + OFFSET[name]
    elif name != "roberta":  # the others know no way of their own
        given["position_ids"] = (given["attention_mask"].cumsum(1) - 1).clamp(min=0)
    hidden = model.backbone(**given).last_hidden_state
    present = torch.tensor([[bool(slot) for slot in row] for row in slots])
    expected = by_hand(getattr(model, head).layers[-1], head, embeddings_by_hand(hidden, slots, pooling), present)
    rows, columns = torch.tensor([places[place] for place in masked[0]]).T
    words = torch.zeros(12, 60, dtype=torch.float64)
    words.index_add_(0, rows, pair_models.mlm_logits(model.mlm, BaseModelOutputWithPooling(hidden), rows * 48 + columns))

    there = present[:, 1:] if head.endswith("k") else torch.ones(12, dtype=bool)
    for layout, tokens in (("ordered", 10**6), ("ordered", 60), ("packed", 200)):
        micros = inputs.laid_out(layout, ragged, np.arange(12), 1, tokens, masked)
        found = by_example(ragged, model, micros)
        torch.testing.assert_close(found[0][there], expected[there], rtol=0, atol=1e-10)
        torch.testing.assert_close(found[1], words, rtol=0, atol=1e-10)
    for changed in (
        {"positions": "absolute" if positions == "skipping" else "skipping"},
        {"pooling": "first" if pooling == "mean" else "mean"},
    ):
        other = joint_model(name, head, **{"positions": positions, "pooling": pooling, **changed}).eval()
        assert_same(parameters(other), parameters(model))
        assert (by_example(ragged, other, micros)[0] - found[0])[there].abs().max() > 1e-3


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("head", heads.EVIDENCE)
@torch.no_grad()
def test_padded_slots_change_no_other_slots_score(head, pooling):
    """Three texts in slots 0, 1 and 2 of four, and the same three as all that there is."""
    model, (whole, *_, slots) = joint_model("roberta", head, pooling=pooling).eval(), joint_examples()
    kept = [row[:3] for row in slots if row[2]]
    texts = [slot for row in kept for slot in row]
    ragged = inputs.Ragged(np.concatenate(texts), np.cumsum([0, *map(len, texts)]), None)
    found = []
    for present in ([True] * 3, [True] * 3 + [False]):
        joined = inputs.as_slots(ragged, np.tile(present, (len(kept), 1)), 12)
        (micro,) = inputs.laid_out("ordered", joined, np.arange(len(kept)), 1, 10**6)
        logits = model(micro)[0]
        found.append(logits[:, :2] if head.endswith("k") else logits)
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
    # what lies in the padding, and what an empty slot happens to read, is without effect as well
    (micro,) = inputs.laid_out("ordered", whole, np.arange(12), 1, 10**6)
    other = micro["input_ids"].where(micro["attention_mask"].bool(), torch.randint(5, 60, micro["input_ids"].shape))
    there = micro["firsts"][:, 1:] >= 0 if head.endswith("k") else torch.ones(12, dtype=bool)
    torch.testing.assert_close(model({**micro, "input_ids": other})[0][there], model(micro)[0][there], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["roberta", "bert"])
def test_means_of_slots_have_the_same_gradients_in_every_layout(name):
    model, (ragged, labels, *_) = joint_model(name, "ae_k", pooling="mean").eval(), joint_examples()
    found = []
    for layout, tokens in (("ordered", 10**6), ("ordered", 60), ("packed", 200)):
        model.zero_grad()
        for micro in inputs.laid_out(layout, ragged, labels, 1, tokens):
            torch.nn.functional.cross_entropy(model(micro)[0].flatten(0, 1), micro["labels"].flatten(), reduction="sum").backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert max(grad.abs().max() for grad in found[0].values()) > 0.1
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-9)


def test_the_mean_of_a_slot_is_taken_in_single_precision():
    """300 ones of which half a precision cannot hold the sum; fill of a packed row, which is far away, has no say."""
    batch = {"input_ids": torch.zeros(1, 512), "token_type_ids": torch.zeros(1, 512, dtype=torch.long), "firsts": torch.tensor([[0, -1]])}
    batch["cu_seq_lens"] = torch.tensor([0, 300, 512], dtype=torch.int32)
    hidden = torch.ones(512, 1, dtype=torch.bfloat16)
    hidden[300:] = 9e9
    found = joint.slot_means(hidden, batch)
    assert found.dtype == torch.float32 and found.tolist() == [[[1.0], [0.0]]]


@torch.no_grad()
def test_candidates_see_each_other_and_no_other_question():
    model, (ragged, *_, slots) = joint_model("bert").eval(), joint_examples()
    row = next(row for row, slot in enumerate(slots) if slot[2] and slot[3])
    start = ragged.offsets[row] + ragged.firsts[row, 3]
    changed = ragged.ids.copy()
    changed[start + 1] = 5 + (changed[start + 1] - 4) % 55
    other = inputs.Ragged(changed, ragged.offsets, ragged.types, ragged.positions, ragged.firsts)
    for layout in ("ordered", "packed"):
        before, after = (logits_of(model, inputs.laid_out(layout, made, np.arange(12), 1, 200)) for made in (ragged, other))
        there = torch.tensor([[bool(slot) for slot in example[1:]] for example in slots])
        changes = (before != after).any(-1) & there
        assert changes[row].all() and not changes[torch.arange(12) != row].any()


def logits_of(model, micros):
    """Of examples by number, which are their labels."""
    found = {}
    for micro in micros:
        found.update(zip(micro["labels"].tolist(), model(micro)[0]))
    return torch.stack([found[number] for number in range(len(found))])


# ------------------------------------------------------------------ what makes a model a joint one


def test_the_shape_says_all_and_refuses_what_does_not_fit():
    assert joint.shape(False, None, None, 128, None, None) is None
    assert joint.shape(True, "ae_k", 5, 384, "released", "skipping") == joint.Joint(
        head="ae_k", k=5, slot_tokens=64, form="released", positions="skipping", classes=2, pooling="first", init=None, start="class"
    )
    wide = joint.shape(True, "ie_1", 5, 384, "linear", "absolute", pooling="mean", init=0.3)
    assert (wide.pooling, wide.init) == ("mean", 0.3)
    for wrong, said in (
        (("pair", 5, 384, "linear", "absolute"), "head: one of ae_1, ae_k, ie_1, ie_k.* got 'pair'"),
        ((None, 5, 384, "linear", "absolute"), "head: .* got None"),
        (("ie_k", 5, 384, "linear", "relative"), "positions: one of absolute, skipping expected, got 'relative'"),
        (("ie_k", 5, 100, "linear", "absolute"), "max_tokens: a multiple of the 6 slots of a question and 5 candidates expected, got 100"),
    ):
        with pytest.raises(ValueError, match=said):
            joint.shape(True, *wrong)
    with pytest.raises(ValueError, match="slot_pooling: one of first, mean expected, got 'max'"):
        joint.shape(True, "ie_k", 5, 384, "linear", "absolute", pooling="max")
    with pytest.raises(ValueError, match="slot_start: one of class, separator expected, got 'sep'"):
        joint.shape(True, "ie_k", 5, 384, "linear", "absolute", start="sep")
    for number, name in ((0, "head"), (1, "k"), (3, "head_form"), (4, "positions")):
        given = [None, None, 128, None, None]
        given[number] = 3
        with pytest.raises(ValueError, match=f"^{name}: only joint models have one .*got 3"):
            joint.shape(False, *given)
    for given in ({"pooling": "mean"}, {"init": 0.0}, {"start": "class"}):
        with pytest.raises(ValueError, match=f"^slot_{next(iter(given))}: only joint models have one"):
            joint.shape(False, None, None, 128, None, None, **given)
    with pytest.raises(ValueError, match="head_form: .* got 'dense'"):
        joint.over(new_model(ElectraConfig(**SIZE)), shape(form="dense"))


def test_an_electra_is_fine_tuned_but_not_pre_trained(tokenizer):
    with pytest.raises(ValueError, match="an ELECTRA has two"):
        loading.start_from("tiny_electra", tokenizer, 64, mlm=True, joint=shape())
    model = loading.start_from("tiny_electra", tokenizer, 64, joint=shape())
    assert (model.HEADS, model.fresh) == (("ie_k", "mlm"), ("ie_k", "types"))


def test_lengths_have_room_for_every_slot(tokenizer):
    loading.start_from("tiny", tokenizer, 12, joint=shape(slot_tokens=3))
    with pytest.raises(ValueError, match="12 to 512 .* got 8"):
        loading.start_from("tiny", tokenizer, 8, joint=shape(slot_tokens=2))
    with pytest.raises(ValueError, match="12 to 512 .* got 516"):
        loading.start_from("tiny", tokenizer, 516, joint=shape(slot_tokens=129))


def test_what_starts_from_scratch_is_a_function_of_its_seed(tokenizer):
    plain = loading.tiny(tokenizer, seed=2)
    state = torch.random.get_rng_state()
    one, same, other = (loading.start_from("tiny", tokenizer, 64, seed, mlm=True, joint=shape()) for seed in (2, 2, 3))
    assert torch.equal(state, torch.random.get_rng_state())
    assert_same(parameters(one), parameters(same))
    assert not torch.equal(one.ie_k.layers[0].weight, other.ie_k.layers[0].weight)
    assert not torch.equal(parameters(one)[TABLE], parameters(other)[TABLE])
    former, now = parameters(plain), parameters(one)
    assert former.pop(TABLE).shape == (1, 128) and now.pop(TABLE).shape == (4, 128)
    assert_same({n: p for n, p in former.items() if not n.startswith("pair.")}, {n: p for n, p in now.items() if not n.startswith("ie_k.")})
    assert one.fresh == ("ie_k", "mlm", "types")


@pytest.mark.parametrize("types", [True, False])
def test_fresh_slot_types_lie_around_row_0_as_far_as_asked(tokenizer, types):
    """A text alone has always had row 0, whether its tokenizer says so or not."""
    for init, expected in ((None, 0.02), (0.3, 0.3), (0.0, 0.0)):
        model = loading.tiny(tokenizer, mlm=False)
        model.tokenizer = copy.deepcopy(tokenizer)
        model.tokenizer.model_input_names = ["input_ids", "attention_mask", *["token_type_ids"] * types]
        with torch.no_grad():
            model.backbone.embeddings.token_type_embeddings.weight.fill_(7)
        table = parameters(joint.over(model, shape(init=init)))[TABLE]
        assert table.shape == (4, 128)
        assert float(table.mean()) == pytest.approx(7, abs=0.1) and float(table.std()) == pytest.approx(expected, rel=0.1)


# ------------------------------------------------------------------ on disk


@pytest.fixture(params=["linear", "released"])
def saved(request, tokenizer, tmp_path):
    model = moved(loading.start_from("tiny", tokenizer, 64, seed=2, mlm=True, joint=shape(form=request.param)), 0.05)
    return model, model.save(tmp_path / "model")


def test_a_saved_joint_model_comes_back_whole(saved):
    model, folder = saved
    again = loading.load(folder, mlm=True)
    assert isinstance(again, JointEncoder) and again.fresh == () and again.joint == model.joint
    assert_same(parameters(model), parameters(again))
    bare = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    assert_same(parameters(bare), parameters(model.backbone))
    going_on = loading.start_from(folder, model.tokenizer, 64, joint=model.joint)  # as fine-tuning from pre-training
    assert going_on.fresh == () and going_on.mlm is None
    assert_same(going_on.head_parameters(), model.head_parameters("ie_k"))


def test_a_pair_model_keeps_the_backbone_of_a_joint_one(saved, caplog):
    model, folder = saved
    pair = loading.start_from(folder, model.tokenizer, 64, seed=5, mlm=True)
    assert type(pair) is PairEncoder and (pair.fresh, pair.parts) == (("pair",), 2)
    assert "fresh weights (seed 5) for the head pair" in caplog.text
    assert_same(parameters(pair.backbone), parameters(model.backbone))
    assert_same(pair.head_parameters("mlm"), model.head_parameters("mlm"))
    assert not hasattr(pair.backbone.config, "joint")
    ranker = rankers.load_ranker(pair.save(folder.parent / "pair"), device="cpu")
    assert (ranker.joint_k, ranker.max_tokens, type(ranker.model)) == (None, 128, PairEncoder)
    pairs = inputs.Pairs(pair.tokenizer, list(questions(3)))
    ragged, numbers = pairs.join(np.arange(len(pairs)), 20), np.arange(len(pairs))
    one, other = (logits_of(pair.eval(), inputs.laid_out(layout, ragged, numbers, 1, 60)) for layout in ("ordered", "packed"))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_another_head_starts_anew_and_says_so(saved, caplog):
    model, folder = saved
    form = model.joint.form
    other = loading.load(folder, mlm=True, joint=shape("ae_k", form=form))
    assert (other.fresh, other.HEADS) == (("ae_k",), ("ae_k", "mlm"))
    assert "for the head ae_k" in caplog.text
    assert_same(parameters(other.backbone), parameters(model.backbone))
    anew, seeded = (loading.load(folder, keep_head=False, seed=seed) for seed in (0, 1))
    assert anew.fresh == ("ie_k",)
    assert not torch.equal(anew.ie_k.layers[-1].weight, model.ie_k.layers[-1].weight)
    assert not torch.equal(anew.ie_k.layers[-1].weight, seeded.ie_k.layers[-1].weight)
    one = loading.load(folder, joint=shape("ie_1", classes=3, form=form))  # of claims
    assert one.fresh == ("ie_1",) and one.ie_1.layers[-1].weight.shape == (3, 128)


def test_token_types_are_kept_while_they_are_enough(saved, caplog):
    model, folder = saved
    form = model.joint.form
    for k, fresh in ((2, ()), (3, ()), (5, ("types",))):
        again = loading.load(folder, mlm=True, seed=3, joint=shape(k=k, form=form, positions="skipping"))
        assert again.fresh == fresh and again.joint.k == k and again.joint.positions == "skipping"
        assert f"{folder}: its head learnt with positions=absolute, and goes on with skipping" in caplog.messages
        now, former = parameters(again), parameters(model)
        table, known = now.pop(TABLE), former.pop(TABLE)
        assert_same(now, former)
        assert table.shape == ((6, 128) if fresh else (4, 128)) and torch.equal(table, known) == (not fresh)


def test_a_head_of_another_form_is_refused_in_words(saved):
    model, folder = saved
    form, other = sorted(["linear", "released"], key=lambda form: form != model.joint.form)
    with pytest.raises(ValueError, match=rf"its ie_k head has head_form {form}, got {other}: .*keep_head"):
        loading.load(folder, joint=shape(form=other))
    assert loading.load(folder, joint=shape(form=other), keep_head=False).fresh == ("ie_k",)
    assert loading.load(folder, joint=shape("ae_k", form=other)).fresh == ("ae_k",)
    with pytest.raises(ValueError, match="its ie_k head has classes 2, got 3"):
        loading.load(folder, joint=shape(form=form, classes=3))


@pytest.mark.slow
def test_pooling_is_kept_with_the_model_and_never_exchanged_under_a_head(saved, tmp_path):
    model, folder = saved
    config = json.loads((folder / "config.json").read_text())
    assert config["joint"].pop("pooling") == "first" and config["joint"].pop("init") is None
    assert config["joint"].pop("start") == "class"
    (folder / "config.json").write_text(json.dumps(config))  # as it was saved before there was a choice
    assert loading.load(folder).joint == model.joint
    form = model.joint.form
    assert loading.load(folder, joint=shape(form=form)).fresh == ()
    with pytest.raises(ValueError, match="its ie_k head has slot_pooling first, got mean: take that, or a fresh head"):
        loading.load(folder, joint=shape(form=form, pooling="mean"))
    with pytest.raises(ValueError, match="its ie_k head has slot_start class, got separator: take that, or a fresh head"):
        loading.load(folder, joint=shape(form=form, start="separator"))
    other = loading.load(folder, joint=shape("ie_1", form=form, pooling="mean", init=0.3))
    assert other.fresh == ("ie_1",) and loading.load(other.save(tmp_path / "other")).joint == other.joint == shape(
        "ie_1", form=form, pooling="mean", init=0.3
    )


def test_a_joint_model_starts_from_a_pair_model_of_any_kind(tokenizer, tmp_path, caplog):
    plain = loading.start_from("tiny", tokenizer, 64, seed=2, mlm=True).save(tmp_path / "pair")
    union = loading.start_from("tiny", tokenizer, 64, seed=2, mlm=True, context=True, members=3).save(tmp_path / "union")
    for folder in (plain, union):
        caplog.clear()
        model = loading.start_from(folder, tokenizer, 64, seed=2, joint=shape(k=3))
        assert (model.HEADS, model.fresh, model.parts) == (("ie_k", "mlm"), ("ie_k", "types"), 2)
        assert "fresh weights (seed 2) for the heads ie_k, types" in caplog.text
        now, before = parameters(model.backbone), parameters(loading.load(folder).backbone)
        assert_same(*({name: value for name, value in one.items() if "token_type" not in name} for one in (now, before)))


# ------------------------------------------------------------------ training


def mspp_batches(corpus, layout="packed"):
    make = lambda epoch: sampling.Sampler(corpus, "mspp", 0, epoch, hard_negatives=1, negatives=2, max_tokens=64)
    return inputs.PretrainingBatches(make, steps=6, batch_size=6, micro_tokens=200, layout=layout)


USUAL = {"peak_lr": 1e-3, "warmup_steps": 2, "weight_decay": 0.01, "seed": 3, "save_every": 2, "log_every": 3, "progress": False}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pre-training", "fine-tuning"])
def test_a_stopped_joint_run_ends_in_the_same_bytes(corpus, tokenizer, tmp_path, task):
    def run(folder, batches):
        options = {"seed": 1, "mlm": task == "pre-training", "joint": shape("ae_k", form="released", pooling="mean", init=0.3)}
        model = loading.start_from("tiny", tokenizer, 64, **options)
        training.train(model, batches, folder, **USUAL)
        return bytes_of(model), None

    asked = lambda: inputs.FinetuningBatches(groups.Groups(tokenizer, list(questions(6)), 3), 2, 4, 64, 100)
    stopped_and_whole(tmp_path, run, (lambda: mspp_batches(corpus)) if task == "pre-training" else asked, 3)


def test_mlm_and_mspp_are_weighted(corpus, tokenizer, tmp_path):
    """L = w_mlm L_mlm + w_objective L_mspp, each the mean over all masked tokens, or labels, of the batch."""
    model, batch = loading.start_from("tiny", tokenizer, 64, mlm=True, joint=shape()).eval(), mspp_batches(corpus)[0]
    assert batch["labels"] == 18 and batch["examples"] == 6 and len(batch["micro"]) > 1
    sums, found, counts = np.zeros(2), 0, np.zeros(2)
    for micro in batch["micro"]:
        logits, words = model(micro)
        for number, (one, targets) in enumerate(((words, micro["masked_targets"]), (logits.flatten(0, 1), micro["labels"].flatten()))):
            sums[number] += torch.nn.functional.cross_entropy(one, targets, reduction="sum").item()
            counts[number] += len(targets)
        found += (model.losses((logits, words), micro, batch) @ torch.tensor([0.5, 3.0])).item()
    assert counts.tolist() == [batch["masked"], 18]
    assert found == pytest.approx(sums / counts @ [0.5, 3.0], rel=1e-5)
    result = training.train(model, mspp_batches(corpus), tmp_path, mlm_weight=0.5, objective_weight=3.0, **USUAL)
    last = result["log"][-1]
    assert last["loss"] == pytest.approx(0.5 * last["mlm_loss"] + 3 * last["objective_loss"])


def test_validation_counts_every_candidate(corpus, tokenizer):
    sampler = sampling.Sampler(corpus, "mspp", hard_negatives=1, negatives=2, max_tokens=64)
    model = loading.start_from("tiny", tokenizer, 64, mlm=True, joint=shape())
    with torch.no_grad():
        model.ie_k.layers[-1].weight.zero_()
        model.ie_k.layers[-1].bias.copy_(torch.tensor([2.0, 0.0]))
    found = training.validate(model, sampler, 9, 200)
    assert found["accuracy"] == found["majority"] == pytest.approx(2 / 3)  # one of three is of the paragraph
    guess = np.log1p(np.exp(-2.0))  # the loss of a label 0; a 1 costs 2 more
    assert found["loss"] == pytest.approx(guess + 2 / 3, rel=1e-5)
