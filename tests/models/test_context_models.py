"""Models that read question, candidate and context: types, layouts, heads an objective, files and ranking, against slow loops."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig, DistilBertConfig, ElectraConfig, ModernBertConfig, RobertaConfig

from asutil import inputs
from asutil.data.answers import Candidate, Question
from asutil.models import electra, joint, loading, settings
from asutil.models import pair as pair_models
from asutil.tasks import base, rank, rankers

from ..conftest import WORDS
from ..inputs.test_packing import IDS, SIZE
from ..sampling.test_context_sampling import own_ids, triple
from . import test_electra
from .test_loading import assert_same, moved, parameters

TABLE = "backbone.embeddings.token_type_embeddings.weight"
CONFIGS = {
    "roberta": RobertaConfig(**SIZE, type_vocab_size=1),
    "bert": BertConfig(**SIZE),
    "electra": ElectraConfig(**SIZE, embedding_size=16),
    "electra with its generator": None,
}


def new_model(name, tokenizer=None, members=1, context=True):
    """Widened, without dropout, and away from the start, where a wrong type hardly shows."""
    if name == "electra with its generator":
        model = test_electra.new_model(tokenizer, wide={"type_vocab_size": 2})
    else:
        model = loading.from_config(copy.deepcopy(CONFIGS[name]), tokenizer, seed=1, mlm=name != "electra")
    model.give_members(members)
    if context:
        pair_models.widen_types(model, seed=1)
        settings.keep_parts(model.backbone.config, 3)
    moved(model)
    for number, head in enumerate(model.pairs):
        for parameter in head.parameters():
            parameter.data.add_(0.3 * number)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def examples(count=20, seed=0):
    """Examples of three parts with types 0, 1, 2, their labels, masked tokens, and whose of three objectives each is."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(2, 20, (count, 3))
    offsets = np.concatenate([[0], sizes.sum(1).cumsum()])
    types = np.repeat(np.tile([0, 1, 2], count), sizes.ravel()).astype(np.int8)
    places = np.flatnonzero(draw.random(offsets[-1]) < 0.15)
    ragged = inputs.Ragged(draw.integers(5, 60, offsets[-1]), offsets, types)
    return ragged, draw.integers(0, 2, count), (places, ragged.ids[places]), draw.integers(0, 3, count)


def batch_of(layout="ordered", tokens=10**6, count=20):
    ragged, labels, masked, members = examples(count)
    micros = inputs.laid_out(layout, ragged, np.arange(count), 1, tokens, masked)
    for micro in micros:  # example numbers go along in the place of the labels
        micro["members"], micro["labels"] = (torch.from_numpy(values)[micro["labels"]] for values in (members, labels))
    return {"micro": micros, "examples": count, "masked": len(masked[0]), "tokens": len(ragged.ids)}


# ------------------------------------------------------------------ token types


@pytest.mark.parametrize("name", CONFIGS)
def test_a_table_of_three_types_is_fresh_and_all_else_stays(name):
    before, model = new_model(name, context=False), new_model(name, context=False)
    state = torch.random.get_rng_state()
    assert pair_models.widen_types(model, seed=3)
    assert torch.equal(state, torch.random.get_rng_state())
    table = model.backbone.embeddings.token_type_embeddings
    assert table.weight.shape[0] == table.num_embeddings == model.backbone.config.type_vocab_size == 3
    assert table.weight.shape[1] == model.backbone.get_input_embeddings().weight.shape[1]
    assert 0.01 < table.weight.std() < 0.03  # initializer_range; the former table is 5 times larger
    former, now = parameters(before), parameters(model)
    assert former.pop(TABLE).shape[0] < 3
    assert torch.equal(now.pop(TABLE), table.weight)
    assert_same(former, {name: now[name] for name in former})
    assert now.keys() == former.keys()
    assert model.takes_types and model.fresh[-1] == "types"
    again, other = new_model(name, context=False), new_model(name, context=False)
    pair_models.widen_types(again, seed=3)
    pair_models.widen_types(other, seed=4)
    assert torch.equal(again.backbone.embeddings.token_type_embeddings.weight, table.weight)
    assert not torch.equal(other.backbone.embeddings.token_type_embeddings.weight, table.weight)
    assert not pair_models.widen_types(model, seed=5)  # wide enough: kept
    assert torch.equal(model.backbone.embeddings.token_type_embeddings.weight, again.backbone.embeddings.token_type_embeddings.weight)


@pytest.mark.parametrize("types", [True, False])
def test_an_offset_that_is_no_type_stays_under_the_fresh_rows(types, tokenizer):
    model = loading.tiny(tokenizer, mlm=False)
    model.tokenizer = copy.deepcopy(tokenizer)
    model.tokenizer.model_input_names = ["input_ids", "attention_mask", *["token_type_ids"] * types]
    with torch.no_grad():
        model.backbone.embeddings.token_type_embeddings.weight.fill_(7)
    pair_models.widen_types(model, seed=3)
    means = model.backbone.embeddings.token_type_embeddings.weight.mean(1)
    assert torch.allclose(means, torch.full((3,), 0.0 if types else 7.0), atol=0.02)


def test_the_generator_has_the_discriminators_types_even_where_its_own_were_others():
    for narrow in ({}, {"type_vocab_size": 1}):
        model = test_electra.new_model(narrow=narrow)
        assert test_electra.shared(model) == [True, True, narrow == {}, True]
        pair_models.widen_types(model)
        assert test_electra.shared(model) == [True] * 4
        assert model.generator.config.type_vocab_size == 3 and model.generator_takes_types


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (ModernBertConfig(**SIZE | IDS), "modernbert"),
        (DistilBertConfig(vocab_size=60, dim=16, n_layers=1, n_heads=2, hidden_dim=24), "distilbert"),
    ],
)
def test_backbones_without_token_types_are_refused_by_name(config, named, tokenizer, tmp_path):
    model = loading.from_config(type(config)(**config.to_diff_dict() | {"vocab_size": len(tokenizer)}), tokenizer, mlm=False)
    model.save(tmp_path / "model")
    assert loading.start_from(tmp_path / "model", tokenizer, 32).parts == 2
    with pytest.raises(ValueError, match=rf"^{named} has no token types.*take a backbone that has them \(roberta, bert, electra\)"):
        loading.start_from(tmp_path / "model", tokenizer, 32, context=True)
    with pytest.raises(ValueError, match=f"{named} has no token types"):
        joint.over(model, joint.shape(True, "ie_k", 3, 64, "linear", "absolute"))


@torch.no_grad()
@pytest.mark.parametrize("layout", ["ordered", "packed"])
@pytest.mark.parametrize("name", ["roberta", "bert", "electra"])
def test_every_type_is_read_where_it_stands(name, layout):
    """What a row of the table holds is added at the tokens of that type, and each row changes every score."""
    model = new_model(name).eval()
    (micro,) = batch_of(layout)["micro"]
    seen, table = [], model.backbone.embeddings.token_type_embeddings
    table.register_forward_hook(lambda module, given, out: seen.append(out))
    model(micro)
    assert torch.equal(seen[0], table.weight[micro["token_type_ids"]])
    before = model(micro)[0]
    for row in range(3):
        table.weight[row, 0] += 9
        assert ((model(micro)[0] - before).abs().amax(1) > 1e-4).all(), row
        table.weight[row, 0] -= 9
    with pytest.raises(ValueError, match="token types 0, 1 and 2 expected, got none"):
        model({key: value for key, value in micro.items() if key != "token_type_ids"})


# ------------------------------------------------------------------ the same in every layout


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", ["roberta", "bert", "electra", "electra with its generator"])
def test_packed_ordered_and_padded_have_the_same_loss_and_gradients(name, members, monkeypatch):
    monkeypatch.setattr(electra, "sampled", lambda logits: logits.argmax(-1))  # draws depend on the order of the examples
    model = new_model(name, members=members).train()
    scale = 50 if model.generator is not None else 1
    _, expected, gradients = test_electra.losses_of(model, batch_of())
    assert torch.isfinite(expected).all() and expected[1] > 0.1
    assert gradients[TABLE].abs().sum(1).min() > 1e-4
    for layout, tokens in (("ordered", 300), ("packed", 300), ("packed", 10**6)):
        _, parts, found = test_electra.losses_of(model, batch_of(layout, tokens))
        torch.testing.assert_close(parts, expected, rtol=1e-5, atol=1e-5)
        assert found.keys() == gradients.keys()
        for parameter in found:
            one, other = found[parameter] / scale, gradients[parameter] / scale
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, msg=f"{layout} {tokens} {parameter}")


# ------------------------------------------------------------------ one head, or one an objective


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["ordered", "packed"])
@pytest.mark.parametrize("name", ["roberta", "electra with its generator"])
def test_each_example_is_scored_by_the_head_of_its_objective(name, layout):
    model, seen = new_model(name, members=3).eval(), set()
    for micro in batch_of(layout, 300)["micro"]:
        torch.manual_seed(0)
        pair, *_ = model(micro)
        alone = []
        for head in ("pair", "pair_2", "pair_3"):
            torch.manual_seed(0)
            single = copy.deepcopy(model)
            single.pair, single.HEADS = getattr(single, head), type(model).HEADS
            alone.append(single(micro)[0])
        for row, member in enumerate(micro["members"].tolist()):
            torch.testing.assert_close(pair[row], alone[member][row], rtol=0, atol=1e-6)
            assert (alone[0][row] - alone[1][row]).abs().max() > 1e-3 < (alone[1][row] - alone[2][row]).abs().max()
            seen.add(member)
    assert seen == {0, 1, 2}
    with pytest.raises(ValueError, match="3 pair heads, one an objective: `members` expected"):
        model({key: value for key, value in micro.items() if key != "members"})


def test_a_head_learns_from_its_own_objective_alone():
    model = new_model("roberta", members=3)
    batch = batch_of()
    for micro in batch["micro"]:
        micro["labels"][micro["members"] != 1] = -100  # do not count
    _, _, gradients = test_electra.losses_of(model, batch)
    for head in ("pair", "pair_2", "pair_3"):
        reached = any(gradients[name].any() for name in model.head_parameters(head))
        assert reached == (head == "pair_2")


def test_heads_begin_as_copies_that_do_not_share(tokenizer):
    model = loading.start_from("tiny", tokenizer, 64, mlm=True, context=True, members=3)
    shared = loading.start_from("tiny", tokenizer, 64, mlm=True, context=True)
    assert len(model.pairs) == 3 and len(shared.pairs) == 1
    for head in model.pairs:
        assert_same(parameters(shared.pair), parameters(head))
    assert len({parameter.data_ptr() for head in model.pairs for parameter in head.parameters()}) == 3 * len(list(shared.pair.parameters()))


# ------------------------------------------------------------------ on disk


@pytest.fixture(params=["tiny", "tiny_electra"])
def saved(request, tokenizer, tmp_path):
    model = loading.start_from(request.param, tokenizer, 64, seed=2, mlm=True, context=True, members=3)
    with torch.no_grad():
        for number, head in enumerate(model.pairs):
            for parameter in head.parameters():
                parameter.add_(number)
    return model, model.save(tmp_path / "model")


def test_a_saved_model_comes_back_with_its_types_and_heads(saved):
    model, folder = saved
    again = loading.load(folder, mlm=True)
    assert_same(parameters(model), parameters(again))
    assert (again.parts, again.fresh, again.takes_types, len(again.pairs)) == (3, (), True, 3)
    bare = AutoModel.from_pretrained(folder)
    assert bare.config.type_vocab_size == 3
    assert torch.equal(bare.embeddings.token_type_embeddings.weight, model.backbone.embeddings.token_type_embeddings.weight)
    if model.generator is not None:
        assert AutoModel.from_pretrained(folder / "generator").config.type_vocab_size == 3
        assert test_electra.shared(again)[2]


def test_fine_tuning_starts_from_the_first_head(saved, caplog):
    model, folder = saved
    plain = loading.start_from(folder, model.tokenizer, 64, context=True)
    assert "one pair head an objective; the first is taken, not pair_2, pair_3" in caplog.text
    assert (plain.parts, plain.fresh, len(plain.pairs)) == (3, (), 1)
    assert_same(parameters(model.backbone), parameters(plain.backbone))
    assert_same(parameters(model.pair), parameters(plain.pair))
    anew = loading.start_from(folder, model.tokenizer, 64, context=True, keep_head=False, members=3)
    assert anew.fresh == ("pair",)
    assert all(not torch.equal(one.classifier.dense.weight, two.classifier.dense.weight) for one, two in zip(anew.pairs, model.pairs))
    plain.save(folder.parent / "one")
    more = loading.load(folder.parent / "one", members=2)
    assert_same(parameters(more.pair), parameters(more.pair_2))
    assert_same(parameters(model.pair), parameters(more.pair_2))
    assert len(loading.load(folder.parent / "one").pairs) == 1


def test_parts_are_kept_where_types_are_many(saved):
    """Pairs may be read by a model of three types, and a model of pairs is told from one of three parts."""
    model, folder = saved
    pairs = loading.start_from(folder, model.tokenizer, 64)
    assert (pairs.parts, pairs.backbone.config.type_vocab_size) == (2, 3)
    pairs.save(folder.parent / "pairs")
    assert loading.load(folder.parent / "pairs").parts == 2
    assert_same(parameters(pairs.backbone), parameters(model.backbone))


def test_a_model_of_pairs_is_widened_and_said_so(tokenizer, tmp_path, caplog):
    first = loading.tiny(tokenizer, seed=5)
    first.save(tmp_path / "pairs")
    assert "parts" not in (tmp_path / "pairs" / "config.json").read_text()
    model = loading.start_from(tmp_path / "pairs", tokenizer, 64, seed=7, mlm=True, context=True)
    assert model.fresh == ("types",)
    assert "a fresh table (seed 7) of 3 token types" in caplog.text
    assert_same(parameters(first.pair), parameters(model.pair))
    model.save(tmp_path / "wide")
    caplog.clear()
    again = loading.start_from(tmp_path / "wide", tokenizer, 64, seed=8, mlm=True, context=True)
    assert again.fresh == () and not caplog.text
    assert_same(parameters(model), parameters(again))


def test_the_shortest_input_has_room_for_three_parts(tokenizer, bert_tokenizer):
    for kind, own, shortest in (("roberta", tokenizer, 9), ("bert", bert_tokenizer, 7)):
        model = new_model(kind, own)
        loading.check_length(model, shortest)
        with pytest.raises(ValueError, match=f"{shortest} to .* got {shortest - 1}"):
            loading.check_length(model, shortest - 1)


# ------------------------------------------------------------------ ranking


def questions(count=9, seed=0):
    """Questions whose candidates have a sentence before, after, both or none."""
    draw = np.random.default_rng(seed)
    text = lambda: " ".join(draw.choice(WORDS, draw.integers(1, 9)))
    near = lambda: None if draw.random() < 0.3 else text()
    return [
        Question(f"q{n}", text() + "?", tuple(Candidate(f"q{n}-{k}", text(), int(k == 1), near(), near()) for k in range(n % 5)))
        for n in range(count)
    ]


@pytest.fixture(scope="module", params=["roberta", "bert"])
def ranker(request, tokenizer, bert_tokenizer):
    own = {"roberta": tokenizer, "bert": bert_tokenizer}[request.param]
    config = type(CONFIGS[request.param])(**CONFIGS[request.param].to_diff_dict() | {"vocab_size": len(own), "initializer_range": 0.3})
    model = loading.from_config(config, own, mlm=False)
    pair_models.widen_types(model, seed=1)
    settings.keep_parts(model.backbone.config, 3)
    return rank.Ranker(model, max_tokens=40)


@torch.no_grad()
def slow_scores(ranker, asked, max_tokens=40):
    """One triple at a time, put together by hand: question, candidate and context, each cut where the tokens are at their end."""
    model, scores = ranker.model.eval(), []
    tokenizer, ids_of = model.tokenizer, own_ids(model.tokenizer)
    special = tokenizer.cls_token_id, tokenizer.sep_token_id, 2 if tokenizer.sep_token == "</s>" else 1
    for question in asked:
        for candidate in question.candidates:
            context = f"{candidate.before or ''} {candidate.after or ''}".strip()
            row, types = triple(ids_of, [question.text, candidate.text, context], max_tokens, *special)
            given = {"input_ids": torch.tensor([row]), "token_type_ids": torch.tensor([types])}
            logits, _ = model(given)
            scores.append((logits[0, 1] - logits[0, 0]).item())
    return scores


def test_scores_equal_a_loop_over_single_triples(ranker):
    asked = questions()
    table = ranker.score(iter(asked), progress=False)
    assert table.score.std() > 0.1
    assert table.score.tolist() == pytest.approx(slow_scores(ranker, asked), abs=1e-4)
    assert rank.Ranker(ranker.model, 16).score(asked, progress=False).score.tolist() == pytest.approx(
        slow_scores(ranker, asked, 16), abs=1e-4
    )


def test_rank_reads_the_contexts(ranker):
    question = questions()[4]
    texts, contexts = [c.text for c in question.candidates], [(c.before, c.after) for c in question.candidates]
    scores = slow_scores(ranker, [question])
    ranked = ranker.rank(question.text, texts, contexts=contexts)
    assert [number for number, _ in ranked] == sorted(range(len(scores)), key=lambda n: -scores[n])
    assert ranked[0][1] == pytest.approx(max(scores), abs=1e-4)
    other = ranker.rank(question.text, texts, contexts=[(None, None)] * 4)
    assert all(abs(dict(other)[number] - score) > 1e-3 for number, score in ranked if contexts[number] != (None, None))
    assert ranker.rank(question.text, [], contexts=[]) == []


def test_contexts_that_do_not_fit_are_refused(ranker, tokenizer):
    with pytest.raises(ValueError, match=r"trained with contexts: contexts=\[.* expected, got none"):
        ranker.rank("q", ["c"])
    with pytest.raises(ValueError, match="one for each of the 2 candidates expected, got 1"):
        ranker.rank("q", ["c", "d"], contexts=[("b", "a")])
    for wrong in ("ab", ("b", "a", "x"), "x"):
        with pytest.raises(ValueError, match=r"\(sentence before, sentence after\) of each candidate expected, got"):
            ranker.rank("q", ["c"], contexts=[wrong])
    pairs = rank.Ranker(loading.tiny(tokenizer, mlm=False))
    bare = [replace(q, candidates=tuple(replace(c, before=None, after=None) for c in q.candidates)) for q in questions()]
    with pytest.raises(ValueError, match="the row order of these data is no document's"):
        ranker.score(bare, progress=False)
    assert len(pairs.score(bare, progress=False)) == 16
    known = base.Ordered(bare)  # single sentences: nothing stands around them
    assert ranker.score(known, progress=False).score.tolist() == pytest.approx(slow_scores(ranker, bare), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["before", "after"])
def test_another_context_is_scored_again(ranker, tokenizer, tmp_path, side, monkeypatch):
    monkeypatch.setattr(base, "WINDOW", 4)
    asked = questions()
    changed = [*asked[:3], replace(asked[3], candidates=(replace(asked[3].candidates[0], **{side: "other"}), *asked[3].candidates[1:]))]
    changed += asked[4:]
    seen, window = [], next(window for window in base.windows_of(changed) if changed[3] in window)
    size = sum(len(question.candidates) for question in window)
    for given, expected in ((ranker, size), (rank.Ranker(loading.tiny(tokenizer, mlm=False)), 0)):  # pairs have no context to change
        hook = given.model.register_forward_pre_hook(lambda model, arguments: seen.append(len(arguments[0]["input_ids"])))
        folder = tmp_path / str(expected)
        given.score(asked, progress=False, folder=folder)
        seen.clear()
        found = given.score(changed, progress=False, folder=folder)
        hook.remove()
        assert sum(seen) == expected
        assert found.score.tolist() == pytest.approx(given.score(changed, progress=False).score.tolist(), abs=1e-5)


def test_a_run_with_contexts_is_known_by_its_files(ranker, tmp_path):
    ranker.model.save(tmp_path / "model")
    again = rankers.load_ranker(tmp_path / "model", device="cpu")
    assert again.max_tokens == 256
    asked = questions()
    found = rank.Ranker(again.model, 40).score(asked, progress=False)
    assert found.score.tolist() == pytest.approx(slow_scores(ranker, asked), abs=1e-4)
