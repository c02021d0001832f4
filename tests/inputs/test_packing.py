"""Packing: the same loss and gradients as with padding, no example seen by another, and nothing lost on the way."""

import copy
import itertools
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, DistilBertConfig, ElectraConfig, ModernBertConfig, RobertaConfig

from asutil import inputs, sampling, training
from asutil.inputs import packing
from asutil.models import joint as joint_models
from asutil.models import loading

from ..conftest import bytes_of

SIZE = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
SIZE |= {"max_position_embeddings": 80}
IDS = {"pad_token_id": 1, "cls_token_id": 0, "sep_token_id": 2, "bos_token_id": 0, "eos_token_id": 2}
CONFIGS = {
    "roberta": RobertaConfig(**SIZE, type_vocab_size=1),
    "roberta with types": RobertaConfig(**SIZE, type_vocab_size=3),
    "bert": BertConfig(**SIZE),
    "electra": ElectraConfig(**SIZE, embedding_size=16),
    "modernbert": ModernBertConfig(**SIZE | IDS, local_attention=12, num_local_layers=1, global_attn_every_n_layers=2),
}
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def filled_as_for_a_gpu(monkeypatch):
    monkeypatch.setattr(packing, "MULTIPLE", packing.BLOCK)


def new_model(config, still=True, joint=None):
    model = loading.from_config(copy.deepcopy(config), None, seed=1)
    model = joint_models.over(model, joint, seed=1) if joint else model
    with torch.no_grad():
        for parameter in model.parameters():  # away from the start, where a wrong position hardly shows
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    for module in model.modules():
        if still and isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def examples(count=20, seed=0, types=True, shortest=6, longest=60):
    draw = np.random.default_rng(seed)
    offsets = np.concatenate([[0], draw.integers(shortest, longest, count).cumsum()])
    ids, kinds = draw.integers(5, 60, offsets[-1]), draw.integers(0, 2, offsets[-1]).astype(np.int8)
    places = np.flatnonzero(draw.random(offsets[-1]) < 0.15)
    ragged = inputs.Ragged(ids, offsets, kinds if types else None)
    return ragged, draw.integers(0, 2, count), (places, draw.integers(5, 60, len(places)))


def joint_model(name, head="ie_k", form="linear", positions="absolute", classes=2, pooling="first"):
    """Over 4 slots of 12 tokens; in float64, where every difference shows."""
    return new_model(CONFIGS[name], joint=joint_models.shape(True, head, 3, 48, form, positions, classes, pooling)).double()


def joint_examples(count=12, seed=0):
    """Joint examples, their labels, masked tokens, and the ids in each slot: from 2 of them to 12, none where it is empty."""
    draw = np.random.default_rng(seed)
    present = draw.random((count, 4)) < 0.7
    present[:, :2] = True
    slots = [[draw.integers(5, 60, draw.choice([2, 5, 12])).tolist() if there else [] for there in row] for row in present]
    sizes = [len(slot) for row in slots for slot in row if slot]
    texts = inputs.Ragged(np.concatenate([slot for row in slots for slot in row]).astype(int), np.cumsum([0, *sizes]), None)
    places = np.flatnonzero(draw.random(sum(sizes)) < 0.15)
    labels = np.where(present[:, 1:], draw.integers(0, 2, (count, 3)), -100)
    return inputs.as_slots(texts, present, 12), labels, (places, draw.integers(5, 60, len(places))), slots


def by_example(ragged, model, micros):
    """Pair logits and the summed MLM logits of every example, whatever micro-batch and row it is in; labels are example numbers."""
    pairs, masked = {}, torch.zeros(len(ragged.lengths), 60, dtype=next(model.parameters()).dtype)
    for micro in micros:
        pair, mlm = model(micro)
        pairs.update(zip(micro["labels"].tolist(), pair))
        if "cu_seq_lens" in micro:
            row = torch.searchsorted(micro["cu_seq_lens"], micro["masked_positions"], right=True) - 1
        else:
            row = micro["masked_positions"] // micro["input_ids"].shape[1]
        masked.index_add_(0, micro["labels"][row], mlm)
    return torch.stack([pairs[number] for number in range(len(masked))]), masked


def loss_and_gradients(model, ragged, labels, masked, layout, tokens):
    model.zero_grad()
    batch, total = {"examples": len(labels), "labels": (labels != -100).sum(), "masked": len(masked[0])}, 0
    for micro in inputs.laid_out(layout, ragged, labels, 1, tokens, masked):
        parts = model.losses(model(micro), micro, batch)
        parts.sum().backward()
        total = total + parts.detach()
    return total, {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


# ------------------------------------------------------------------ the same as padded


@pytest.mark.slow
@pytest.mark.parametrize("types", [False, True], ids=["no types", "types"])
@pytest.mark.parametrize("name", CONFIGS)
def test_packed_ordered_and_padded_have_the_same_loss_and_gradients(name, types):
    model, batch = new_model(CONFIGS[name]).train(), examples(types=types)
    expected = loss_and_gradients(model, *batch, "ordered", 10**6)  # all in one piece, padded to the longest
    assert not torch.isnan(expected[0]).any()
    assert_layouts_agree(model, batch, expected, 300, rtol=1e-5, atol=1e-5)


def assert_layouts_agree(model, batch, expected, tokens, **tolerance):
    """Loss and gradients of micro-batches of so many tokens, padded and packed, and of one that is packed."""
    for layout, most in (("ordered", tokens), ("packed", tokens), ("packed", 10**6)):
        assert (len(inputs.laid_out(layout, *batch[:2], 1, most)) > 1) == (most == tokens)
        parts, found = loss_and_gradients(model, *batch, layout, most)
        torch.testing.assert_close(parts, expected[0], **tolerance)
        assert found.keys() == expected[1].keys()
        for parameter in found:
            torch.testing.assert_close(found[parameter], expected[1][parameter], **tolerance, msg=f"{layout} {most} {parameter}")


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["absolute", "skipping"])
@pytest.mark.parametrize("name", ["roberta", "bert", "electra"])
def test_joint_examples_have_the_same_loss_and_gradients_in_every_layout(name, positions):
    """Slots of several lengths, some of them empty: an empty one has no label, and the mean is that over the labels there are."""
    model, (*batch, _) = joint_model(name, "ae_k", "released", positions).train(), joint_examples()
    expected, gradients = loss_and_gradients(model, *batch, "ordered", 10**6)
    (micro,) = inputs.laid_out("ordered", batch[0], batch[1], 1, 10**6)
    with torch.no_grad():
        log = model(micro)[0].log_softmax(-1)
    real = [-log[i, j, label].item() for i, row in enumerate(micro["labels"].tolist()) for j, label in enumerate(row) if label >= 0]
    assert 12 < len(real) < 36 and expected[1].item() == pytest.approx(sum(real) / len(real), rel=1e-12)
    assert all(gradients[name].any() for name in gradients if name.startswith("ae_k"))
    assert gradients["backbone.embeddings.token_type_embeddings.weight"].any(1).all()
    assert_layouts_agree(model, batch, (expected, gradients), 60, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", CONFIGS)
def test_no_example_sees_another(name):
    ragged, _, masked = examples()
    model, numbers = new_model(CONFIGS[name]).eval(), np.arange(20)
    before = by_example(ragged, model, packing.packed(ragged, numbers, 1, 400, masked))
    ids, chosen = ragged.ids.copy(), int(np.abs(ragged.lengths - 40).argmin())  # one between others of its row
    ids[slice(*ragged.offsets[chosen : chosen + 2])] = np.random.default_rng(9).integers(5, 60, ragged.lengths[chosen])
    changed = inputs.Ragged(ids, ragged.offsets, ragged.types)
    after = by_example(ragged, model, packing.packed(changed, numbers, 1, 400, masked))
    for one, other in zip(before, after):
        differs = (one != other).any(1)
        assert differs.nonzero().flatten().tolist() == [chosen]


def slow_attention(query, key, value, ends, reach):
    """Softmax within each segment, one after the other."""
    rows = []
    for a, b in itertools.pairwise(ends.tolist()):
        scores = query[0, :, a:b] @ key[0, :, a:b].transpose(1, 2) * 0.3
        if reach is not None:
            scores = scores.masked_fill((torch.arange(b - a)[:, None] - torch.arange(b - a)).abs() >= reach, -torch.inf)
        rows.append((scores.softmax(-1) @ value[0, :, a:b]).transpose(0, 1))
    return torch.cat(rows)


@pytest.mark.parametrize("kernel", ["_by_block", "_padded"])
def test_attention_is_kept_apart_and_dropped_out(kernel, monkeypatch):
    """With dropout some weights vanish, and the mean of many draws stays."""
    monkeypatch.setattr(packing, "_by_block", getattr(packing, kernel))
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, 256, 8)
    ends = torch.tensor([0, 100, 130, 256], dtype=torch.int32)

    def attended(dropout=0.0, **options):
        return packing.attention(None, query, key, value, None, 0.3, dropout, cu_seq_lens=ends, longest=128, **options)[0][0]

    for reach in (None, 5):
        expected = slow_attention(query, key, value, ends, reach)
        torch.testing.assert_close(attended(sliding_window=reach), expected, rtol=1e-5, atol=1e-5)
    draws = torch.stack([attended(0.5) for _ in range(200)])
    assert not torch.equal(draws[0], draws[1])
    assert (draws.mean(0) - attended()).abs().mean() < 0.1 < (draws[0] - attended()).abs().mean()


@pytest.mark.parametrize("reach", [None, 5])
def test_gradients_of_attention_are_those_of_a_slow_loop(reach):
    """Examples shorter and longer than a step, with padding in every run and without."""
    lengths = [40, 33, packing.STEP + 1, packing.STEP, packing.STEP - 1, 2, 1]
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, sum(lengths), 8, requires_grad=True) for _ in range(3)]
    weight = torch.randn(sum(lengths), 2, 8)
    options = {"cu_seq_lens": ends, "longest": 128, "sliding_window": reach}
    ours = packing.attention(None, *inputs, None, 0.3, **options)[0][0]
    slow = slow_attention(*inputs, ends, reach)
    torch.testing.assert_close(ours, slow, rtol=1e-5, atol=1e-5)
    found, expected = (torch.autograd.grad((output * weight).sum(), inputs) for output in (ours, slow))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_dropout_is_active_in_training_alone():
    config = RobertaConfig(**SIZE, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.3)
    model, (ragged, labels, _) = new_model(config, still=False), examples()
    (micro,) = packing.packed(ragged, labels, 1, 10**6)

    def drawn(seed):
        torch.manual_seed(seed)
        return packing.outputs(model.backbone, micro, False).last_hidden_state

    model.train()
    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    model.eval()
    assert torch.equal(drawn(1), drawn(2))


# ------------------------------------------------------------------ micro-batches


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(4, 40), min_size=1, max_size=30), tokens=st.integers(1, 500), seed=st.integers(0, 9), types=st.booleans()
)
def test_every_token_is_there_once_and_in_its_place(lengths, tokens, seed, types):
    draw = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids, kinds = draw.integers(5, 900, offsets[-1]), draw.integers(0, 3, offsets[-1]).astype(np.int8)
    places = np.flatnonzero(draw.random(offsets[-1]) < 0.3)
    ragged = inputs.Ragged(ids.astype(np.uint16), offsets, kinds if types else None)
    members = draw.integers(0, 3, len(lengths)) if types else None
    micros = packing.packed(ragged, np.arange(len(lengths)), 1, tokens, (places, ids[places]), members)
    seen, targets = [], 0
    for micro in micros:
        row, ends = micro["input_ids"][0].numpy(), micro["cu_seq_lens"].numpy()
        assert len(row) == ends[-1] and len(row) % packing.BLOCK == 0 == micro["longest"] % packing.BLOCK
        assert np.diff(ends).max() <= micro["longest"]
        for number, start, end in zip(micro["labels"].tolist(), ends, ends[1:]):
            at = slice(offsets[number], offsets[number + 1])
            assert row[start:end].tolist() == ids[at].tolist()
            assert micro["position_ids"][0, start:end].tolist() == list(range(end - start))
            if types:
                assert micro["token_type_ids"][0, start:end].tolist() == kinds[at].tolist()
            seen.append(number)
        assert micro["first"].tolist() == ends[: len(micro["labels"])].tolist()
        assert np.array_equal(row[micro["masked_positions"].numpy()], micro["masked_targets"])
        assert ("token_type_ids" in micro) == ("members" in micro) == types
        assert not types or micro["members"].tolist() == members[micro["labels"].numpy()].tolist()
        assert end - tokens < max(lengths)  # about the budget: an example is never cut
        targets += len(micro["masked_targets"])
    assert sorted(seen) == list(range(len(lengths)))
    assert targets == len(places)
    assert len(micros) <= -(-offsets[-1] // tokens)


@settings(max_examples=60, deadline=None)
@given(tokens=st.integers(1, 300), seed=st.integers(0, 99), count=st.integers(1, 15), layout=st.sampled_from(["ordered", "packed"]))
def test_every_slot_is_found_by_its_first_token(tokens, seed, count, layout):
    ragged, _, _, slots = joint_examples(count, seed)
    seen = []
    for micro in inputs.laid_out(layout, ragged, np.arange(count), 1, tokens):
        flat = {name: micro[name].flatten().tolist() for name in ("input_ids", "token_type_ids", "position_ids")}
        for number, firsts in zip(micro["labels"].tolist(), micro["firsts"].tolist()):
            seen.append(number)
            assert [first >= 0 for first in firsts] == [bool(slot) for slot in slots[number]]
            for slot, (first, ids) in enumerate(zip(firsts, slots[number])):
                at = slice(first, first + len(ids))
                assert not ids or flat["input_ids"][at] == ids
                assert flat["token_type_ids"][at] == [slot] * len(ids)
                assert flat["position_ids"][at] == list(range(12 * slot, 12 * slot + len(ids)))
    assert sorted(seen) == list(range(count))


def made(corpus, layout, steps=6):
    return inputs.PretrainingBatches(lambda epoch: sampling.Sampler(corpus, "ssp", 0, epoch), steps, 16, 400, layout=layout)


def test_batches_of_both_layouts_hold_the_same(corpus):
    packed, ordered, default = (made(corpus, layout)[1] for layout in ("packed", "ordered", None))
    for name in ("examples", "masked", "tokens"):
        assert packed[name] == ordered[name]
    for name in ("labels", "masked_targets"):
        both = [torch.cat([micro[name] for micro in batch["micro"]]).sort().values for batch in (packed, ordered)]
        assert torch.equal(*both)
    assert all(torch.equal(a[name], b[name]) for a, b in zip(default["micro"], ordered["micro"]) for name in a)
    with pytest.raises(ValueError, match="got 'stacked'"):
        made(corpus, "stacked")[0]


# ------------------------------------------------------------------ training


def train(corpus, tokenizer, folder, batches, still=False, **options):
    model = loading.tiny(tokenizer, seed=1)
    for module in model.modules():
        if still and isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    usual = {"peak_lr": 1e-3, "warmup_steps": 2, "weight_decay": 0.01, "seed": 3, "save_every": 2, "log_every": 2, "progress": False}
    result = training.train(model, batches, folder, **usual | options)
    return bytes_of(model), result


def test_batches_of_no_stated_layout_are_packed(corpus, tokenizer, tmp_path):
    for stated, used in ((None, "packed"), ("ordered", "ordered")):
        batches = made(corpus, stated, steps=1)
        train(corpus, tokenizer, tmp_path / used, batches)
        assert batches.layout == used


@pytest.mark.slow
def test_compile_is_an_option(corpus, tokenizer, tmp_path, monkeypatch):
    compiled = []

    def compile_(function, **options):
        def call(**given):
            compiled.append(options)
            return function(**given)

        return call

    monkeypatch.setattr(torch, "compile", compile_)
    plain = train(corpus, tokenizer, tmp_path / "a", made(corpus, "packed"), still=True, compile=False)
    assert not compiled
    assert train(corpus, tokenizer, tmp_path / "b", made(corpus, "packed"), still=True, compile=True)[0] == plain[0]
    assert compiled == [{"dynamic": True}] * sum(len(made(corpus, "packed")[step]["micro"]) for step in range(6))


@pytest.mark.slow
def test_what_cannot_be_compiled_is_trained_as_it_is(corpus, tokenizer, tmp_path, monkeypatch, caplog):
    """For real up to the compiler itself, which a machine may lack."""
    tried = []

    def no_compiler(graph, _):
        tried.append(graph)
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=no_compiler))
    plain = train(corpus, tokenizer, tmp_path / "plain", made(corpus, "packed"), still=True, compile=False)
    told = lambda: [record.message for record in caplog.records if record.name == training.loop.__name__]
    assert not tried and not told()
    assert train(corpus, tokenizer, tmp_path / "a", made(corpus, "packed"), still=True, compile=True)[0] == plain[0]
    assert len(tried) == len(told()) == 1
    assert "(backend='no_compiler' raised: RuntimeError: no C compiler): it is trained as it is" in told()[0]
    torch.compiler.reset()


@pytest.mark.slow
def test_one_training_does_not_count_against_the_limit_of_the_next(corpus, tokenizer, tmp_path, monkeypatch):
    graphs = []

    def compiler(graph, _):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=compiler))
    with torch._dynamo.config.patch(recompile_limit=1):
        for number, folder in enumerate("ab", start=1):
            train(corpus, tokenizer, tmp_path / folder, made(corpus, "packed", steps=1), compile=True)
            assert len(graphs) == number
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kernel"), [("roberta", "padded"), ("roberta", "flash"), ("bert", "flash"), ("electra", "flash"), ("modernbert", "flash")]
)
def test_the_backbone_compiles_to_one_graph_for_all_sizes(name, kernel, monkeypatch):
    """Without breaks and without compiling anew; flash attention, which has no CPU kernel, is traced on tensors without data."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    device = "meta" if kernel == "flash" else "cpu"
    monkeypatch.setattr(packing, "_has_flash", lambda query: kernel == "flash")
    model = new_model(CONFIGS[name], still=False).train().to(device)
    forward = torch.compile(model.backbone.forward, fullgraph=True, dynamic=True, backend="eager")
    for count in (20, 7, 33):
        for micro in packing.packed(*examples(count)[:2], 1, 500, examples(count)[2]):
            micro = {key: value.to(device) if torch.is_tensor(value) else value for key, value in micro.items()}
            hidden = packing.outputs(model.backbone, micro, model.takes_types, forward).last_hidden_state
            assert hidden.shape == (*micro["input_ids"].shape, 32)
            hidden.sum().backward()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


# ------------------------------------------------------------------ what cannot be packed


def test_what_cannot_be_packed_is_refused():
    (micro,) = packing.packed(*examples()[:2], 1, 10**6)
    distil = loading.from_config(DistilBertConfig(vocab_size=60, dim=32, n_layers=1, n_heads=2, hidden_dim=48), None)
    mean = new_model(ModernBertConfig(**SIZE | IDS, classifier_pooling="mean"))
    recomputing = new_model(CONFIGS["bert"])
    recomputing.backbone.gradient_checkpointing_enable()
    for model in (distil, mean, recomputing):
        with pytest.raises(ValueError, match='cannot be packed .*layout="ordered"'):
            model(micro)


def test_the_backbone_is_left_as_it_was():
    model = new_model(CONFIGS["roberta"])
    (micro,) = packing.packed(*examples()[:2], 1, 10**6)
    model(micro)
    assert model.backbone.config._attn_implementation == "sdpa"
    with pytest.raises(IndexError):
        model({**micro, "input_ids": micro["input_ids"] + 60})
    assert model.backbone.config._attn_implementation == "sdpa"


# ------------------------------------------------------------------ on a GPU


@GPU
@pytest.mark.parametrize("reach", [-1, 6])
def test_flash_equals_padded(reach):
    query, key, value = torch.randn(3, 512, 4, 32, device="cuda", dtype=torch.bfloat16).unbind()
    ends = torch.tensor([0, 128, 130, 250, 512], dtype=torch.int32, device="cuda")
    found = []
    for attend in (packing._flash, packing._padded):
        given = [states.clone().requires_grad_() for states in (query, key, value)]
        output = attend(*given, ends, 384, 0.0, 0.2, reach)
        output.square().sum().backward()
        found.append([output, *(states.grad for states in given)])
    for one, other in zip(*found):
        assert (one - other).norm() / other.norm() < 1e-2
    draws = torch.stack([packing._flash(query, key, value, ends, 384, 0.5, 0.2, reach) for _ in range(200)])
    assert not torch.equal(draws[0], draws[1])
    assert (draws.float().mean(0) - found[0][0]).abs().mean() < (draws[0] - found[0][0]).abs().mean() / 4


@GPU
@pytest.mark.parametrize("name", CONFIGS)
def test_on_a_gpu_packed_and_compiled_is_padded_in_bfloat16(name):
    model, (ragged, _, masked) = new_model(CONFIGS[name]).cuda().eval(), examples()
    numbers, found = np.arange(20), []
    for layout, compiled in (("ordered", False), ("packed", False), ("packed", True)):
        model.compiled = torch.compile(model.backbone.forward, fullgraph=True, dynamic=True) if compiled else None
        for micro in inputs.laid_out(layout, ragged, numbers, 1, 10**6, masked):
            micro = {key: value.cuda() if torch.is_tensor(value) else value for key, value in micro.items()}
            with torch.autocast("cuda", torch.bfloat16):
                pair = model(micro)[0]
            found.append(pair[micro["labels"].argsort()].float())
    for other in found[1:]:
        assert (other - found[0]).norm() / found[0].norm() < 2e-2
