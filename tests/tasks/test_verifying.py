"""Fact verification: inputs against the tokenizer, models against loops over single texts, masks, learning, and the notebook."""

import copy
import itertools
import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import RobertaConfig

from aslab import identity, papers, parameters, rundir
from aslab.show import lists, plots
from asutil import metrics, training
from asutil.corpus import tokenizers
from asutil.data import answers, claims
from asutil.data.claims import LABELS, Claim, Claims, Evidence
from asutil.inputs import slots as claim_slots
from asutil.metrics import verdicts
from asutil.models import joint, loading
from asutil.tasks import rankers, verifying

from ..conftest import WORDS, of_whole_batch, run_cells

HEADS = ("ie_1", "ae_1", "pair_max", "pair_weighted")
PAIRWISE = HEADS[2:]
L = 16  # tokens of a slot
USUAL = {"warmup_steps": 4, "weight_decay": 0.01, "seed": 3, "save_every": 10, "log_every": 10, "progress": False}


def shape(head, k=4):
    if head in PAIRWISE:
        return joint.shape(True, head, k, 2 * L, None, None, classes=3)
    return joint.shape(True, head, k, (k + 1) * L, "linear", "absolute", 3)


def length(head, k=4):
    return 2 * L if head in PAIRWISE else (k + 1) * L


def new_model(tokenizer, head):
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 130}
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.1, "type_vocab_size": 1}
    config = RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, bos_token_id=0, eos_token_id=2, **size, **still)
    return joint.over(loading.from_config(config, tokenizer, mlm=False), shape(head))


def sharpened(model):
    """The same with weights in the head that are large enough for differences to show."""
    with torch.no_grad():
        for parameter in model.head_parameters(model.HEADS[0]).values():
            parameter.mul_(10)
    return model.eval()


def made_up(count=24, seed=0, pieces=(0, 6), blind=False):
    """Claims in no order of length, with 0 to 5 pieces of evidence; the same sentence may stand in several."""
    draw = np.random.default_rng(seed)
    text = lambda longest: " ".join(draw.choice(WORDS, draw.integers(1, longest)))
    known = [text(20) for _ in range(6)]
    made = []
    for n in range(count):
        found = [known[draw.integers(6)] if draw.random() < 0.3 else text(20) for _ in range(draw.integers(*pieces))]
        evidence = tuple(Evidence(f"Title_{i}", i, f"title {i}. {sentence}") for i, sentence in enumerate(found))
        made.append(Claim(str(100 + n), text(14) + ".", None if blind else int(draw.integers(3)), evidence))
    return Claims(made)


def encoded(tokenizer, claim, text, max_tokens=2 * L):
    """The tokenizer's own encoding of a pair; in a list, because alone it takes an empty second text for none."""
    return tokenizer([(claim, text)], truncation="longest_first", max_length=max_tokens)["input_ids"][0]


@pytest.fixture(scope="module")
def asked():
    return made_up()


# ------------------------------------------------------------------ inputs


@pytest.mark.parametrize("k", [2, 5])
def test_slots_are_the_tokenizers_own_encodings_one_after_the_other(tokenizer, asked, k):
    read, numbers = claim_slots.Slots(tokenizer, asked, k), np.arange(len(asked))[::-1]
    joined = read.join(numbers, (k + 1) * L)
    assert len(read) == len(asked) and read.labels.tolist() == [claim.label for claim in asked]
    assert any(not claim.evidence for claim in asked) and any(len(claim.evidence) > k for claim in asked) == (k == 2)
    for row, number in enumerate(numbers):
        texts = [asked[number].text, *(piece.text for piece in asked[number].evidence)][: k + 1]
        slots = [tokenizer(text, truncation=True, max_length=L)["input_ids"] for text in texts]
        one = joined.take(np.array([row]))
        assert one.ids.tolist() == [token for ids in slots for token in ids]
        assert one.types.tolist() == [slot for slot, ids in enumerate(slots) for _ in ids]
        assert one.positions.tolist() == [slot * L + place for slot, ids in enumerate(slots) for place in range(len(ids))]
        ends = np.cumsum([0, *map(len, slots)])[:-1].tolist()
        assert one.firsts[0].tolist() == ends + [-1] * (k + 1 - len(slots))
    lengths = [len(tokenizer(one.text)["input_ids"]) for claim in asked for one in (claim, *claim.evidence[:k])]
    for most in (4, L, 200):
        assert read.are_cut((k + 1) * most).tolist() == [length > most for length in lengths]
    pairs = claim_slots.Pairs(tokenizer, asked, k)
    both = [(claim.text, text) for claim in asked for text in [piece.text for piece in claim.evidence[:k]] or [""]]
    assert pairs.are_cut(L).tolist() == [len(tokenizer(*pair)["input_ids"]) > L for pair in both]


@pytest.mark.parametrize("layout", ["ordered", "packed"])
@pytest.mark.parametrize("head", HEADS)
def test_micro_batches_hold_every_claim_once_and_keep_the_budget(tokenizer, asked, head, layout):
    model = new_model(tokenizer, head)
    read, numbers = verifying.inputs_of(model, asked), np.arange(len(asked))
    micros = read.laid_out(read.join(numbers, length(head)), numbers, numbers, 160, layout)
    assert len(micros) > 3 and sorted(torch.cat([micro["labels"] for micro in micros]).tolist()) == numbers.tolist()
    for micro in micros:
        flat = micro["input_ids"].flatten()
        for number, firsts in zip(micro["labels"].tolist(), micro["firsts"].tolist()):
            claim = asked[number]
            texts = [piece.text for piece in claim.evidence] or [""]
            if head in PAIRWISE:
                expected = [encoded(tokenizer, claim.text, text) for text in texts[:4]]
            else:
                slots = [claim.text, *(piece.text for piece in claim.evidence[:4])]
                expected = [tokenizer(text, truncation=True, max_length=L)["input_ids"] for text in slots]
            assert [first >= 0 for first in firsts] == [place < len(expected) for place in range(len(firsts))]
            for first, ids in zip(firsts, expected):
                assert flat[first : first + len(ids)].tolist() == ids
        if layout == "ordered":
            assert micro["input_ids"].numel() <= 160 or len(micro["labels"]) == 1
    sizes = [micro["input_ids"].shape[1] for micro in micros]
    assert layout == "packed" or sizes == sorted(sizes, reverse=True)


# ------------------------------------------------------------------ models against loops


@torch.no_grad()
def one_by_one(model, tokenizer, asked, head, k):
    """Log-probabilities from the padded form that the paper describes, or pair by pair, without any of the module's own code."""
    rows, layer, offset = [], getattr(model, head), 2
    for claim in asked:
        pieces = [piece.text for piece in claim.evidence[:k]]
        if head in PAIRWISE:
            firsts = []
            for text in pieces or [""]:
                ids = torch.tensor([encoded(tokenizer, claim.text, text)])
                firsts.append(model.backbone(input_ids=ids).last_hidden_state[0, 0])
            vectors = torch.stack(firsts)
            weights = layer.weigh(vectors).softmax(0) if head == "pair_weighted" else None
            pooled = vectors.max(0).values if weights is None else (weights * vectors).sum(0)
        else:
            texts = [claim.text, *pieces] + [None] * (k - len(pieces))
            ids, mask = torch.ones(1, (k + 1) * L, dtype=torch.int64), torch.zeros(1, (k + 1) * L)
            for slot, text in enumerate(texts):
                own = tokenizer(text, truncation=True, max_length=L)["input_ids"] if text is not None else []
                ids[0, slot * L : slot * L + len(own)], mask[0, slot * L : slot * L + len(own)] = torch.tensor(own, dtype=torch.int64), 1
            given = {"attention_mask": mask, "token_type_ids": torch.arange(k + 1).repeat_interleave(L)[None]}
            given["position_ids"] = torch.arange((k + 1) * L)[None] + offset
            slots = model.backbone(input_ids=ids, **given).last_hidden_state[0, ::L]
            pooled = slots[0] if head == "ie_1" else slots[: 1 + len(pieces)].mean(0)
        rows.append((layer.layers[-1].weight @ pooled + layer.layers[-1].bias).log_softmax(-1))
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("head", HEADS)
def test_verdicts_equal_a_loop_over_claims(tokenizer, asked, head, monkeypatch):
    model = sharpened(new_model(tokenizer, head))
    expected = one_by_one(model, tokenizer, asked, head, 4)
    assert expected.std(0).min() > 0.01
    scores = verifying.predict(model.train(), asked, length(head), progress=False)
    assert model.training
    assert scores.claim_id.tolist() == [claim.id for claim in asked]
    assert scores.label.dtype == np.int8 and scores.label.tolist() == [claim.label for claim in asked]
    columns = scores[["supports", "not_enough_info", "refutes"]]
    assert (columns.dtypes == np.float32).all() and list(columns) == list(verdicts.CLASSES)
    np.testing.assert_allclose(columns, expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(np.exp(columns).sum(axis=1), 1, rtol=1e-5)
    assert verdicts.predictions(scores).tolist() == expected.argmax(1).tolist()
    monkeypatch.setattr(verifying, "WINDOW", 5)
    monkeypatch.setattr(verifying, "TOKENS_ON_CPU", 64)
    again = verifying.predict(model, asked, length(head), progress=False)
    np.testing.assert_allclose(again[list(verdicts.CLASSES)], columns, rtol=0, atol=2e-6)


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_missing_evidence_changes_nothing(tokenizer, head):
    """A claim with two pieces has one verdict, alone or beside claims with four, with empty places for more or without."""
    short, long = made_up(4, 1, (2, 3)), made_up(4, 2, (4, 5))
    model = sharpened(new_model(tokenizer, head))
    alone = verifying.predict(model, short, length(head), progress=False)
    both = verifying.predict(model, [*long, *short], length(head), progress=False)[4:]
    narrow = copy.deepcopy(model)
    narrow.joint = shape(head, 2)
    tight = verifying.predict(narrow, short, length(head, 2), progress=False)
    for other in (both, tight):
        np.testing.assert_allclose(other[list(verdicts.CLASSES)], alone[list(verdicts.CLASSES)], rtol=0, atol=1e-6)
    cut = [Claim(claim.id, claim.text, claim.label, claim.evidence[:1]) for claim in short]
    less = verifying.predict(model, cut, length(head), progress=False)
    assert np.abs(less[list(verdicts.CLASSES)].to_numpy() - alone[list(verdicts.CLASSES)].to_numpy()).max() > 1e-3


@pytest.mark.parametrize("head", HEADS)
def test_layouts_and_micro_batches_have_the_gradient_of_the_whole_batch(tokenizer, head):
    asked, found = made_up(12), {}
    for name, tokens, layout in (("whole", 10**6, "ordered"), ("pieces", 100, "ordered"), ("packed", 200, "packed")):
        model = sharpened(new_model(tokenizer, head))
        batches = claim_slots.ClaimBatches(verifying.inputs_of(model, asked), 1, 12, length(head), tokens, layout=layout)
        found[name] = of_whole_batch(model, batches[0])
        assert (found[name][2] == 1) == (name == "whole") and batches[0]["examples"] == 12
        if layout == "ordered":
            assert batches[0]["tokens"] == sum(int(micro["attention_mask"].sum()) for micro in batches[0]["micro"])
    for name in ("pieces", "packed"):
        assert found[name][0] == pytest.approx(found["whole"][0], rel=1e-5)
        torch.testing.assert_close(found[name][1], found["whole"][1], rtol=1e-3, atol=1e-5)


# ------------------------------------------------------------------ learning


def learnable(count, seed):
    """The verdict hangs on one word in one piece of evidence, wherever that stands; the claim says nothing."""
    draw, made = np.random.default_rng(seed), []
    for n in range(count):
        label, size = int(draw.integers(3)), int(draw.integers(1, 4))
        texts = [" ".join(draw.choice(WORDS[3:9], 2)) for _ in range(size)]
        texts[draw.integers(size)] += f" {WORDS[label]}"
        made.append(
            Claim(str(n), " ".join(draw.choice(WORDS[3:9], 3)), label, tuple(Evidence("t", i, text) for i, text in enumerate(texts)))
        )
    return Claims(made)


def trained(model, head, folder, train, **options):
    batches = claim_slots.ClaimBatches(verifying.inputs_of(model, train), 4, 32, length(head), 2048)
    return training.train(model, batches, folder, **{"peak_lr": 4e-3, **USUAL, **options})


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_an_easy_rule_is_learnt(tokenizer, head, tmp_path):
    model, train, dev = new_model(tokenizer, head), learnable(320, 0), learnable(60, 1)
    evaluate = lambda model: verdicts.measured(verifying.predict(model, dev, length(head), progress=False))
    before = evaluate(model)["label_accuracy"]
    stopping = {"evaluate": evaluate, "evaluate_every": 10, "best_metric": "label_accuracy", "patience": 9}
    history = trained(model, head, tmp_path, train, **stopping)
    after = evaluate(model)
    assert before < 0.6 < 0.9 < after["label_accuracy"] and after["f1_refutes"] > 0.9
    assert history["best"]["label_accuracy"] == after["label_accuracy"]


# ------------------------------------------------------------------ save, load, start


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_saved_and_loaded_it_gives_the_same_verdicts(tokenizer, asked, head, tmp_path):
    model = sharpened(new_model(tokenizer, head))
    expected = verifying.predict(model, asked, length(head), progress=False)
    model.save(tmp_path / "model")
    for again in (
        loading.load(tmp_path / "model"),
        loading.start_from(tmp_path / "model", tokenizer, length(head), seed=7, joint=shape(head)),
    ):
        assert again.HEADS[0] == head and not again.fresh
        pd.testing.assert_frame_equal(verifying.predict(again, asked, length(head), progress=False), expected)
    anew = loading.start_from(tmp_path / "model", tokenizer, length(head), seed=7, keep_head=False, joint=shape(head))
    assert anew.fresh == (head,)
    assert not np.allclose(verifying.predict(anew, asked, length(head), progress=False).supports, expected.supports, atol=1e-3)
    with pytest.raises(ValueError, match="one label for a claim"):
        rankers.load_ranker(tmp_path / "model")


@pytest.mark.parametrize("head", HEADS)
def test_parameters_are_counted_by_hand(tokenizer, head):
    table = joint.parameters(new_model(tokenizer, head), papers.read("joint_inference")["parameters"]).set_index("part")
    assert table.parameters["of these token types"] == 32 * (5 if head in HEADS[:2] else 1)
    assert table.parameters[f"head {head}"] == 3 * 32 + 3 + 32 * (head == "pair_weighted")
    assert table.parameters["backbone"] == sum(p.numel() for p in new_model(tokenizer, head).backbone.parameters())
    ours = 50265 * 768 + 514 * 768 + 768 + 2 * 768 + 12 * (4 * (768**2 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)
    assert table.parameters["RoBERTa-Base"] == ours  # without pooler and head
    assert table.parameters["joint RoBERTa-Base, AEk"] == ours + 10 * 768


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("ie_2", 5, 96, "linear", "absolute"), r"head: one of ae_1, ae_k, ie_1, ie_k, pair_max, pair_weighted expected, got 'ie_2'"),
        (("ie_1", 5, 97, "linear", "absolute"), "max_tokens: a multiple of the 6 slots"),
        (("pair_max", 5, 64, "linear", None), "head_form: only joint models have one .*got 'linear'"),
        (("pair_weighted", 5, 64, None, "skipping"), "positions: only joint models have one .*got 'skipping'"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        joint.shape(True, *given, classes=3)


def test_what_cannot_be_verified_is_refused(tokenizer):
    model, pair = new_model(tokenizer, "ie_1"), loading.tiny(tokenizer, mlm=False)
    for other, asked, size, words in (
        (model, [], 80, "expected claims to verify, got none"),
        (model, made_up(3), 40, "max_tokens: 80, the length of this joint model's slots, expected, got 40"),
        (pair, made_up(3), 80, "expected a model of 3 verdicts.*got one with the head pair"),
        (joint.over(pair, joint.shape(True, "ie_k", 4, 80, "linear", "absolute")), made_up(3), 80, "got one with the head ie_k"),
    ):
        with pytest.raises(ValueError, match=words):
            verifying.predict(other, asked, size)
    with pytest.raises(ValueError, match="inputs with `firsts` expected, got none"):
        model({"input_ids": torch.ones(1, 4, dtype=torch.int64)})
    with pytest.raises(ValueError, match="row 0: a label is a class from 0 to 2, got -1"):
        verdicts.measured(verifying.predict(model, made_up(3, blind=True), 80, progress=False))


# ------------------------------------------------------------------ what is shown


def table_of(labels, guesses, best=0.8):
    scores = np.full((len(labels), 3), (1 - best) / 2)
    scores[np.arange(len(labels)), guesses] = best
    rows = {"claim_id": [str(n) for n in range(len(labels))], "label": np.array(labels, np.int8)}
    return pd.DataFrame(rows | dict(zip(verdicts.CLASSES, np.log(scores).astype(np.float32).T)))


def test_measures_by_hand():
    scores = table_of([0, 0, 1, 2, 2], [0, 1, 1, 2, 0])
    found = verdicts.measured(scores)
    assert found["label_accuracy"] == 0.6 and found["f1_supports"] == 0.5 and found["claims"] == 5
    assert verdicts.per_claim(scores).to_dict("list") == {"question_id": list("01234"), "label_accuracy": [1.0, 0.0, 1.0, 1.0, 0.0]}
    train, dev = ([Claim(str(n), "text", label, ()) for n, label in enumerate(labels)] for labels in ([1, 1, 2, 0], [0, 0, 0, 1]))
    assert verdicts.majority(train, dev)["label_accuracy"] == 0.25
    assert verdicts.majority(dev, train)["f1_supports"] == pytest.approx(2 / 5)
    with pytest.raises(ValueError, match="row 1: a score for each verdict expected, got"):
        verdicts.predictions(scores.assign(refutes=scores.refutes.where(scores.index != 1)))


def test_sides_are_counted():
    beyond = {"evidence beyond the first 5": {"claims": 0, "evidence": 3}}
    splits = {"train": Claims(made_up(9), beyond), "dev": made_up(5, 1), "test": made_up(7, 2, blind=True)}
    table = verifying.counted(splits)
    assert table.loc["test", "label not known"] == 7 and table.loc["train", list(LABELS)].sum() == 9
    pieces = sum(len(claim.evidence) for claim in splits["train"])
    assert table.loc["train", ["evidence, read", "evidence, kept"]].tolist() == [pieces + 3, pieces]
    assert table.loc["train", "dropped"] == "evidence beyond the first 5" and table.loc["dev", "dropped"] == ""
    assert verifying.measurable(splits) == ["dev"]
    assert verifying.measurable(splits | {"test": made_up(7)}) == ["dev", "test"]
    assert verifying.measurable(splits | {"test": Claims()}) == ["dev"]


def test_the_confusion_matrix_is_drawn():
    figure = plots.confusion_plot(table_of([0, 0, 0, 1], [0, 0, 1, 1]))
    (axis,) = figure.axes
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_title()) == ("predicted", "label", "claims; shade: share of the label's claims")
    assert [text.get_text() for text in axis.get_xticklabels()] == [text.get_text() for text in axis.get_yticklabels()] == list(LABELS)
    assert [text.get_text() for text in axis.texts] == ["2", "1", "0", "0", "1", "0", "0", "0", "0"]
    assert axis.collections[0].get_array().flatten().tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0, 1, 0, 0, 0, 0])


def test_claims_are_shown_escaped():
    evidence = (Evidence("T", 0, "T. <script>alert(1)</script>"), Evidence("T", 1, "T. & more"))
    asked = [Claim(str(n), f"claim <b>{n}</b>", n % 3, evidence if n % 2 else ()) for n in range(6)]
    html = lists.verdicts(asked, table_of([0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]), 2)
    root = ET.fromstring(f"<body>{html}</body>")
    assert {node.tag for node in root.iter()} == {"body", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    captions = ["".join(node.itertext()) for node in root.iter("caption")]
    assert len(captions) == 4 and sum("✓ right" in text for text in captions) == sum("✗ wrong" in text for text in captions) == 2
    for caption in captions:
        number = int(caption[len("claim <b>")])
        assert f"Label: {LABELS[number % 3]}. Verdict: {LABELS[(number + (number > 2)) % 3]}, probability 0.80" in caption
        assert ("✓" in caption) == (number < 3)
    cells = ["".join(node.itertext()) for node in root.iter("td")]
    assert {"T. <script>alert(1)</script>", "T. & more", "no evidence"} <= set(cells)
    assert lists.verdicts(asked, table_of([0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]), 1).count("<table") == 1


# ------------------------------------------------------------------ the notebook


def write_data(folder, blind=False, test=True, name=int):
    folder.mkdir()
    splits = {"train": learnable(30, 0), "dev": learnable(12, 1)} | ({"test": learnable(9, 2)} if test else {})
    for split, found in splits.items():
        rows = []
        for claim in found:
            label = {} if blind and split == "test" else {"label": LABELS[claim.label]}
            pieces = [[piece.title, piece.sentence, piece.text, 0.5] for piece in claim.evidence]
            rows.append(json.dumps({"id": name(claim.id), "claim": claim.text, **label, "evidence": pieces}))
        (folder / f"{split}.jsonl").write_text("\n".join(rows) + "\n")
    return folder


SMALL = {"model": "tiny", "max_tokens": 96, "epochs": 1, "batch_size": 8, "warmup_steps": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blind", "test", "name"), [(False, True, int), (True, True, int), (True, True, "c{}".format), (False, False, int)]
)
def test_the_notebook_from_claims_to_a_record(tmp_path, monkeypatch, tokenizer, blind, test, name):
    monkeypatch.setattr(tokenizers, "tokenizer_for", lambda model, source, folder: tokenizer)
    data = write_data(tmp_path / "mine", blind, test, name)
    names = run_cells("verify_claims", {**SMALL, "dataset": str(data), "runs_dir": str(tmp_path / "runs"), "patience": 3})
    folder, reported = names["run"].folder, "test" if test and not blind else "dev"
    record = rundir.read_record(folder)
    scores = {name: pd.read_parquet(folder / f"{name}.parquet") for name in ("scores", "scores_dev", "per_question")}
    assert list(scores["scores"]) == ["claim_id", "label", "supports", "not_enough_info", "refutes"]
    assert len(scores["scores"]) == (9 if test else 12) and set(scores["scores"].label) <= {-1, 0, 1, 2}
    assert list(record["metrics"]) == (["dev", "test"] if reported == "test" else ["dev"])
    assert record["metrics"]["dev"] == metrics.verification(scores["scores_dev"].label, verdicts.predictions(scores["scores_dev"]))
    mean = scores["per_question"].label_accuracy.mean()
    assert list(scores["per_question"]) == ["question_id", "label_accuracy"]
    assert mean == pytest.approx(record["metrics"][reported]["label_accuracy"])
    assert record["baselines"]["majority"]["claims"] == len(scores["per_question"])
    cosines = record["figures"]["slot_cosines"]
    assert cosines["pooling"] == "mean" and [len(cosines[name]) for name in ("first", "mean")] == [3, 3]  # after the embeddings, 2 layers
    assert record["figures"]["examples"] == 30 and record["figures"]["best"]["label_accuracy"] == record["metrics"]["dev"]["label_accuracy"]
    assert str(tmp_path) not in (folder / "record.json").read_text() and record["settings"]["dataset"] == "own:mine"
    assert (folder / "leaderboard.jsonl").is_file() == (blind and name is int)  # FEVER's ids are whole numbers
    if blind and name is int:
        lines = [json.loads(line) for line in (folder / "leaderboard.jsonl").read_text().splitlines()]
        expected = [LABELS[label] for label in verdicts.predictions(scores["scores"])]
        assert [line["predicted_label"] for line in lines] == expected and [line["id"] for line in lines] == list(range(9))
    again = loading.load(folder / "model")
    pd.testing.assert_frame_equal(verifying.predict(again, names["splits"]["dev"], 96, progress=False), scores["scores_dev"])


def test_every_budget_fits_every_head():
    for budget, head in itertools.product(parameters.parameters("verify_claims")["budget"].choices, HEADS):
        chosen = parameters.settings("verify_claims", {"budget": budget, "head": head})
        parameters.check("verify_claims", chosen)
        slots = {"pooling": chosen["slot_pooling"], "init": chosen["slot_init"], "start": chosen["slot_start"]}
        made = joint.shape(True, head, chosen["k"], chosen["max_tokens"], chosen["head_form"], chosen["positions"], 3, **slots)
        assert made.head == head


def test_a_run_is_known_by_the_content_of_its_claims(tmp_path):
    data = write_data(tmp_path / "mine")
    before = identity.of_run("verify_claims", {"dataset": str(data)})
    assert before["inputs"]["dataset"] == claims.fingerprint_of_claims(data)
    assert before["name"].startswith("verify_claims-mine-")
    of_questions = identity.of_run("finetune", {"dataset": "pydocs"})["inputs"]["dataset"]
    assert of_questions == answers.fingerprint_of_answers("pydocs")
    with (data / "dev.jsonl").open("a") as file:
        file.write('{"id": 99, "claim": "more", "label": "REFUTES", "evidence": []}\n')
    assert identity.of_run("verify_claims", {"dataset": str(data)})["hash"] != before["hash"]
    with pytest.raises(ValueError, match="head of verify_claims is one of ie_1, ae_1, pair_max, pair_weighted; got 'ie_k'"):
        identity.of_run("verify_claims", {"dataset": str(data), "head": "ie_k"})


@pytest.mark.mirror
def test_the_majority_of_climate_fever(mirror):
    splits = claims.load_claims("climate_fever")
    assert verifying.measurable(splits) == ["dev"]
    assert verdicts.majority(splits["train"], splits["dev"])["label_accuracy"] == 107 / 200
