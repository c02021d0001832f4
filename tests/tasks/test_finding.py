"""Finding evidence: losses against loops and against each other, models of three architectures, learning, spans, files."""

import contextlib
import copy
import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from asutil import training
from asutil.data.long_questions import KINDS as TYPES
from asutil.data.long_questions import Answer, LongQuestion, Passage
from asutil.inputs import LongBatches
from asutil.inputs.long import Contexts, add_markers
from asutil.io import checkpoints
from asutil.metrics import rankings
from asutil.models import finder
from asutil.models.finder import contrast_of
from asutil.tasks import finding
from asutil.training import cpu, trainer

from ..conftest import bytes_of, of_whole_batch, stopped_and_whole
from ..inputs.test_long import KINDS, made_up

USUAL = {"peak_lr": 2e-3, "warmup_steps": 4, "weight_decay": 0.0, "seed": 0, "save_every": 10_000, "log_every": 10, "progress": False}


def contrast(projection="none", similarity=None, loss_weight=0.0, temperatures="0.6", **chosen):
    usual = "cosine" if projection == "none" else "projected"
    return contrast_of(projection, similarity or usual, loss_weight, temperatures, KINDS, **chosen)


def new(tokenizer, name="tiny", max_tokens=200, form="marked", kinds=KINDS, seed=0, **chosen):
    settings = finder.Finding(list(kinds), form, max_tokens, contrast(**chosen))
    return finder.start_from(name, copy.deepcopy(tokenizer), settings, seed)


def read(model, questions):
    return Contexts(model.tokenizer, questions, model.finding.kinds, model.finding.max_tokens, model.finding.form)


@pytest.fixture(scope="module")
def questions():
    return [made_up(seed, kind=("span", "yes", "no")[seed % 3]) for seed in range(12)]


def in_one(model, contexts, **chosen):
    (batch,) = [LongBatches(contexts, 1, len(contexts), 10**6, 0, **chosen)[0]]
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in finder.MADE_HERE if name.startswith("tiny")])
def test_vectors_are_those_of_the_markers(tokenizer, questions, name):
    model = new(tokenizer, name, 400).eval()
    contexts = read(model, questions)
    micro = contexts.padded(range(len(contexts)), model.generates)
    with torch.no_grad():
        found = model(micro)
        for row, one in enumerate(contexts.read):
            alone = model(contexts.padded([row], model.generates))
            count = len(one.sentences)
            torch.testing.assert_close(found["sentences"][row, :count], alone["sentences"][0], atol=2e-5, rtol=1e-4)
            torch.testing.assert_close(found["evidence"][row, :count], alone["evidence"][0], atol=2e-5, rtol=1e-4)
            torch.testing.assert_close(found["questions"][row], alone["questions"][0], atol=2e-5, rtol=1e-4)


def test_without_its_type_the_loss_of_a_generating_model_is_evidence_and_text(tokenizer, questions):
    whole = new(tokenizer, "tiny_led", 300).eval()
    settings = replace(whole.finding, type_loss=False)
    part = finder.start_from("tiny_led", copy.deepcopy(tokenizer), settings, 0).eval()
    micro = read(whole, questions).padded(range(len(questions)), True)
    with torch.no_grad():
        found = whole(micro)
        types = torch.nn.functional.cross_entropy(found["kind"], micro["kinds"], reduction="none")
        assert part.qa_losses(found, micro).tolist() == pytest.approx((whole.qa_losses(found, micro) - types).tolist(), rel=1e-5)
    contexts, names = read(whole, questions), ("map_predicted_type", "type_accuracy", "map_projected")
    figures = [finding.measure(*finding.predict(model, contexts, progress=False), contexts).means for model in (whole, part)]
    assert [[name in means for name in names] for means in figures] == [[True, True, True], [False, False, True]]
    contexts.kinds = ("yes", "no", "span", "unanswerable")[: len(contexts.kinds)]
    with pytest.raises(ValueError, match="questions of the types .*span.* expected, got .*yes"):
        finding.predict(whole, contexts, progress=False)
    with pytest.raises(ValueError, match="type_loss: only a model with a decoder can do without"):
        finder.start_from("tiny", copy.deepcopy(tokenizer), settings, 0)


def test_without_weight_the_loss_of_the_task_is_untouched_to_the_last_bit(tokenizer, questions):
    plain, projected = new(tokenizer), new(tokenizer, projection="per_type")
    contexts, found = read(plain, questions), []
    for model in (plain, projected):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            batch = in_one(model, contexts)
            loss = sum(trainer.weighted(model.losses(model.train()(micro), micro, batch), model.loss_weights()) for micro in batch["micro"])
            loss.backward()
        found.append((loss.item(), [p.grad for p in model.backbone.parameters()]))
    assert found[0][0] == found[1][0]
    assert all((a is None and b is None) or torch.equal(a, b) for a, b in zip(found[0][1], found[1][1]))


def of_qasper(tokenizer, questions, projection, *rest):
    """A model of QASPER's kinds, and these questions as it reads them."""
    kinds = TYPES["qasper"]
    settings = finder.Finding(list(kinds), "separated", 300, contrast_of(projection, *rest, "0.6", kinds))
    model = finder.start_from("tiny", copy.deepcopy(tokenizer), settings).eval()
    return model, read(model, questions)


def test_questions_without_evidence_or_answer_are_not_contrasted(tokenizer):
    with_evidence, none = made_up(1, kind="yes"), made_up(2, kind="no")
    none = LongQuestion("none", none.text, none.passages, (Answer("no", "no", frozenset()),))
    unanswerable = LongQuestion("un", "what?", with_evidence.passages, (Answer("", "unanswerable", frozenset({(0, 0)})),))
    model, contexts = of_qasper(tokenizer, [with_evidence, none, unanswerable], "per_type", "projected", 1.0)
    batch = in_one(model, contexts)
    assert batch["contrasted"] == 1 and batch["examples"] == 3
    (micro,) = batch["micro"]
    assert (model.contrast_losses(model(micro), micro) > 0).tolist() == micro["contrasted"].tolist()


@pytest.mark.slow
def test_micro_batches_sum_to_the_loss_of_the_whole_batch(tokenizer, questions):
    model = new(tokenizer, projection="per_type", loss_weight=0.5).double().eval()
    contexts, total = read(model, questions), lambda parts: trainer.weighted(parts, model.loss_weights())
    (one, apart, several), (other, whole, single) = (
        of_whole_batch(model, LongBatches(contexts, 1, 12, micro_tokens, 0)[0], total) for micro_tokens in (1, 10**6)
    )
    assert (several, single) == (12, 1) and one == pytest.approx(other, rel=1e-5)
    torch.testing.assert_close(apart, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "tiny_led"])
def test_training_brings_evidence_to_the_front_and_near_the_question(tokenizer, tmp_path, name):
    """On the questions that it was trained on: a tiny model from scratch has nothing to generalise from."""
    model = new(tokenizer, name, 300, projection="shared", loss_weight=0.5)
    contexts = read(model, [made_up(seed, passages=2, kind="yes") for seed in range(6)])
    before = finding.measure(*finding.predict(model, contexts, progress=False), contexts).record()
    training.train(model, LongBatches(contexts, 20, 6, 4096, 0, model.generates), tmp_path, **USUAL)
    after = finding.measure(*finding.predict(model, contexts, progress=False), contexts).record()
    for figure in ("map_evidence_head", "map_projected"):
        assert before[figure] < 0.8 and after[figure] > 0.9
    assert after["evidence_f1"] > 0.9 > before["evidence_f1"] and after["type_accuracy"] == 1 and after["questions"] == 6


def test_figures_follow_the_data_sets_own_rules(tokenizer):
    passages = made_up(1).passages
    first, second = (Answer(text, "extractive", frozenset({unit})) for text, unit in (("river", (0, 0)), ("stone bridge", (1, 0))))
    asked = [LongQuestion("a", "what?", passages, (first, second)), LongQuestion("b", "who?", passages, (second,))]
    model, contexts = of_qasper(tokenizer, asked, "none", "cosine", 0.0)
    sentences, questions = finding.predict(model, contexts, progress=False)
    sentences["score"] = [1.0 if unit == "0-0" else -1.0 for unit in sentences.candidate_id]
    questions["answer"], questions["predicted_kind"] = ["a stone bridge", "river"], ["extractive", "abstractive"]
    measured = finding.measure(sentences, questions, contexts)
    record = measured.record()
    assert record["answer_f1"] == record["evidence_f1"] == 0.5  # best of two annotators: 1 and 1; then 0 and 0
    assert record["type_accuracy"] == 0.5 and measured.per_question.question_id.tolist() == ["a", "b"]
    assert 0 < record["map_raw"] <= 1


# ------------------------------------------------------------------ contexts that are cut


def ranked_best(contexts, column="score"):
    """Sentences and answers as of a model that knows all evidence that it has read."""
    lines = pd.concat([finding.sentence_rows(*one) for one in zip(contexts.questions, contexts.read)], ignore_index=True)
    for name in finding.SIMILARITIES.values():
        lines[name] = 2.0 * lines.label - 1
    said = {"question_id": [one.id for one in contexts.questions], "kind": "yes", "predicted_kind": "yes", "answer": "yes"}
    return lines, pd.DataFrame(said)


def test_no_figure_profits_from_evidence_that_was_cut_away(tokenizer):
    """The first sentence of two pieces of evidence fits, the other is cut: half is found at best, whatever the model says."""
    marked = copy.deepcopy(tokenizer)
    add_markers(marked)
    passages = (Passage("a", ("river mountain", "engine paper")), Passage("b", ("signal garden winter", "theory")))
    whole = LongQuestion("whole", "which?", passages, (Answer("yes", "yes", frozenset({(0, 0)})),))
    half = LongQuestion("half", "which?", passages, (Answer("yes", "yes", frozenset({(0, 0), (1, 1)})),))
    none = LongQuestion("none", "which?", passages, (Answer("yes", "yes", frozenset({(1, 1)})),))
    room = len(Contexts(marked, [whole], KINDS, 500).read[0].ids) - 5
    contexts = Contexts(marked, [whole, half, none], KINDS, room)
    assert [read.evidence.tolist() for read in contexts.read] == [[True, False, False], [True, False, False], [False] * 3]
    measured = finding.measure(*ranked_best(contexts), contexts)
    for name in finding.SIMILARITIES:
        assert measured.per_question[name].tolist() == [1.0, 0.5, 0.0] and measured.means[name] == pytest.approx(0.5)
    assert measured.per_question.evidence_f1.tolist() == pytest.approx([1.0, 2 / 3, 0.0])


# ------------------------------------------------------------------ lines of chance


def test_lines_of_chance_equal_a_slow_loop_on_the_contexts_as_they_are_cut(tokenizer, questions):
    model = new(tokenizer, max_tokens=90)
    contexts = Contexts(model.tokenizer, questions, KINDS, 90, distractors=2)
    assert contexts.dropped["evidence"] > 0 and contexts.dropped["others"] > 0 and contexts.dropped["distractors"] > 0
    found, order, random, cosine, every = finding.chance(model.train(), contexts, contexts, 300), [], [], [], []
    assert model.training
    alone = lambda ids: [model.tokenizer.cls_token_id, *ids, model.tokenizer.sep_token_id]

    def vector(text):
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        hidden = model.eval().backbone(torch.tensor([alone(ids)])).last_hidden_state[0, 1:-1]
        return torch.nn.functional.normalize(hidden.mean(0), dim=-1)

    def precision(labels, total):
        hits = [sum(labels[: rank + 1]) / (rank + 1) for rank, label in enumerate(labels) if label]
        return sum(hits) / total

    with torch.no_grad():
        for question, read in zip(questions, contexts.read):
            labels, total = read.evidence.tolist(), len(question.answers[0].evidence)
            order.append(precision(labels, total))
            arranged = {tuple(places) for places in itertools.permutations(labels)} if len(labels) < 9 else None
            random.append(
                np.mean([precision(one, total) for one in arranged])
                if arranged
                else rankings.at_random(pd.DataFrame({"question_id": "q", "label": labels})).map * sum(labels) / total
            )
            asked = vector(question.text)
            texts = [question.passages[p].sentences[s] for p, s in read.units.tolist()]
            cut = model.tokenizer.decode(read.ids[(read.pieces == read.pieces[read.sentences[-1] + 1])])  # the last text may be
            near = [float(asked @ vector(text)) for text in [*texts[:-1], cut]]
            cosine.append(precision([label for _, label in sorted(zip(near, labels), key=lambda pair: -pair[0])], total))
            hits = sum(labels)
            every.append(2 * hits / (len(labels) + total))
    assert found["document_order"]["map"] == pytest.approx(np.mean(order)) and found["random"]["map"] == pytest.approx(np.mean(random))
    assert found["zero_shot"]["map"] == pytest.approx(np.mean(cosine), abs=1e-6)
    assert found["all_sentences"]["evidence_f1"] == pytest.approx(np.mean(every))


@pytest.mark.parametrize("name", ["tiny_longformer", "tiny_led"])
def test_long_models_have_lines_of_chance(tokenizer, questions, name):
    model = new(tokenizer, name, 300)
    contexts = read(model, questions)
    found = finding.chance(model, contexts, contexts)
    assert list(found) == ["random", "document_order", "zero_shot", "all_sentences", "most_frequent_answer"]
    assert all(0 < value < 1 for of in found.values() for value in of.values())


# ------------------------------------------------------------------ warm-up, question types, memory, written answers


def test_warm_up_is_steps_or_a_share():
    assert finding.warmup(7, None, 500) == 7 and finding.warmup(0, None, 500) == 0 and finding.warmup(None, 0.1, 504) == 50
    for both in ((7, 0.1), (None, None)):
        with pytest.raises(ValueError, match="either warmup_steps or warmup_share expected, got"):
            finding.warmup(*both, 500)


def test_kinds_of_one_type_share_a_projection_and_a_temperature(tokenizer, questions):
    """Where yes and no are of the type of spans, the loss is that of one projection for all."""
    contrasts = [contrast("per_type", loss_weight=0.5), contrast_of("per_type", "projected", 0.5, "0.6", ["span"])]
    shared = contrast("shared", loss_weight=0.5)
    found = []
    for chosen, types in zip([*contrasts, shared], ([0, 1, 2], [0, 0, 0], None)):
        settings = finder.Finding(list(KINDS), "marked", 200, chosen, types)
        model = finder.start_from("tiny", copy.deepcopy(tokenizer), settings).eval()
        contexts = read(model, questions)
        (micro,) = in_one(model, contexts)["micro"]
        with torch.no_grad():
            found.append((len(model.projection.of_questions), model.contrast_losses(model(micro), micro)))
        sentences, _ = finding.predict(model, contexts, progress=False)
        assert sentences.gold.equals(sentences.predicted) == (found[-1][0] == 1)
    assert (
        [count for count, _ in found] == [3, 1, 1] and torch.equal(found[1][1], found[2][1]) and not torch.equal(found[0][1], found[1][1])
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny_longformer", "tiny_led"])
def test_gradient_checkpointing_changes_no_loss_and_no_gradient(tokenizer, questions, name):
    found = []
    for checkpointing in (False, True):
        settings = finder.Finding(list(KINDS), "marked", 300, contrast("per_type", loss_weight=0.4))
        model = finder.start_from(name, copy.deepcopy(tokenizer), settings, 0, checkpointing).train()
        contexts, kept = read(model, questions), 0
        batch = in_one(model, contexts, with_answers=model.generates)

        def keep(tensor):
            nonlocal kept
            kept += tensor.numel()
            return tensor

        fast = cpu.fast(model, cpu.KeyedDropout()) if checkpointing else contextlib.nullcontext()  # as it is trained; else other masks
        with fast:
            with checkpoints.seeded(1), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                loss = sum(trainer.weighted(model.losses(model(micro), micro, batch), model.loss_weights()) for micro in batch["micro"])
            with checkpoints.seeded(2):
                loss.backward()
        found.append((loss.item(), [p.grad for p in model.parameters()], kept))
    assert found[0][0] == found[1][0] and found[1][2] < 0.5 * found[0][2], "the same loss, with less kept in memory"
    for one, other in zip(found[0][1], found[1][1]):
        assert (one is None and other is None) or torch.equal(one, other)


def test_a_decoder_may_write_a_hundred_tokens(tokenizer, questions, monkeypatch):
    asked = []
    model = new(tokenizer, "tiny_led", 300).eval()
    contexts = read(model, questions)
    generate = model.backbone.generate
    monkeypatch.setattr(model.backbone, "generate", lambda **given: asked.append(given["max_new_tokens"]) or generate(**given))
    finding.predict(model, contexts, progress=False)
    assert set(asked) == {63}  # the tiny decoder has 64 positions
    monkeypatch.setattr(model.backbone, "generate", lambda **given: asked.append(given["max_new_tokens"]) or torch.zeros(1, 1).long())
    model.backbone.config.max_decoder_position_embeddings = 1024  # LED's
    finding._written(model, contexts.padded([0]))
    assert asked[-1] == 100


def test_an_answer_that_the_decoder_cannot_write_is_named_before_training(tokenizer, questions):
    model = new(tokenizer, "tiny_led", 300)
    model.check_answers(read(model, questions))
    longest = max(questions, key=lambda question: len(tokenizer(question.answers[0].text)["input_ids"]))
    tokens = len(tokenizer(longest.answers[0].text)["input_ids"])
    model.backbone.config.max_decoder_position_embeddings = tokens - 1
    with pytest.raises(ValueError, match=f"question '.+': an answer of at most {tokens - 1} tokens expected, got {tokens}"):
        model.check_answers(read(model, questions))
    new(tokenizer, "tiny_longformer", 300).check_answers(read(model, questions))  # it writes none


def test_answers_that_no_span_can_be_are_told(tokenizer, caplog):
    model, kinds = new(tokenizer, "tiny_longformer", 400), ("span", "span", "yes", "span")
    asked = [made_up(seed, kind=kind) for seed, kind in enumerate(kinds)]
    sentences = [text for passage in asked[1].passages for text in passage.sentences]
    texts = {0: max(sentences[0].split(), key=len)[:-1], 1: "x " * 40 + "x", 3: asked[3].answers[0].text}
    passage = Passage("t", (f"{texts[0]}s", f"of {texts[1]}."))
    for number in (0, 1):
        asked[number] = replace(asked[number], passages=(passage,), answers=(Answer(texts[number], "span", frozenset({(0, 0)})),))
    model.check_answers(read(model, asked))
    assert caplog.messages[-2:] == [
        "1 of 3 answers stand as whole words in nothing that is read: they are not learnt",
        "1 of 3 answers have more than 30 tokens: they are never given",
    ]


def test_a_decoder_without_global_attention_is_not_given_any(tokenizer, questions, monkeypatch):
    model, given = new(tokenizer, "tiny_led", 300).eval(), []
    monkeypatch.setattr(model.backbone, "generate", lambda **options: given.append(set(options)) or torch.zeros(1, 1).long())
    for model.reads_globally in (True, False):
        finding._written(model, read(model, questions).padded([0]))
    assert given[0] - given[1] == {"global_attention_mask"}


def test_markers_need_evidence_that_was_not_cut_away(tokenizer):
    sentences = [*["A few words that say nothing."] * 12, "The answer is blue."]
    answer = Answer("blue", "span", frozenset({(0, 12)}))
    contexts = read(
        model := new(tokenizer, max_tokens=60), [LongQuestion("q", "What is it?", (Passage("t", tuple(sentences)),), (answer,))]
    )
    assert contexts.dropped["evidence"] == 1
    with pytest.raises(ValueError, match="got none among 1: contexts are cut at max_tokens=60, which left out 1 pieces of evidence"):
        finding.markers(model, contexts)


def test_markers_are_unit_vectors_of_evidence_and_of_another_sentence(tokenizer, questions):
    model = new(tokenizer)
    contexts = read(model, questions)
    shown = finding.markers(model, contexts, count=3)
    counted = Counter(contexts.kinds[one.kind] for one in contexts.read)
    asked = sum(min(3, count) for count in counted.values())
    assert len(counted) > 1 and asked < len(contexts)
    assert Counter(shown["kinds"]) == {kind: 3 * min(3, count) for kind, count in counted.items()}  # three points a question
    assert shown["vectors"].shape == (3 * asked, 128) and np.linalg.norm(shown["vectors"], axis=1) == pytest.approx(1, abs=1e-5)
    assert shown["roles"] == ["question", "positive", "negative"] * asked and shown["questions"] == sorted([*range(asked)] * 3)
    sentences, _ = finding.predict(model, contexts, progress=False)
    near = (shown["vectors"][0::3] * shown["vectors"][1::3]).sum(1), (shown["vectors"][0::3] * shown["vectors"][2::3]).sum(1)
    for label, cosines in zip((1, 0), near):
        known = sentences.loc[sentences.label == label, "raw"].to_numpy()
        assert all(np.abs(known - cosine).min() < 1e-5 for cosine in cosines)


def test_the_likeliest_span_lies_within_one_text(tokenizer, questions):
    model = new(tokenizer).eval()
    contexts = read(model, questions)
    with torch.no_grad():
        found = model(contexts.padded([0]))
    one, best, chosen = contexts.read[0], -np.inf, None
    starts, ends = found["span"][0].unbind(-1)
    for start in range(len(one.ids)):
        for end in range(start, min(start + finding.LONGEST_SPAN, len(one.ids))):
            if one.pieces[start] == one.pieces[end] > 0 and float(starts[start] + ends[end]) > best:
                best, chosen = float(starts[start] + ends[end]), (start, end)
    output = {name: values[0] for name, values in found.items()}
    assert finding._answer(model, contexts, one, output, "span") == one.text(*chosen, contexts.encode)
    assert finding._answer(model, contexts, one, output, "yes") == "yes"


@pytest.mark.parametrize("name", ["tiny", "tiny_longformer", "tiny_led"])
def test_what_was_saved_is_loaded(tokenizer, questions, tmp_path, name):
    model = new(tokenizer, name, 300, projection="per_type", loss_weight=0.2)
    model.save(tmp_path / "model")
    again = finder.load(tmp_path / "model")
    assert again.finding == model.finding
    ours, theirs = (finding.predict(one, read(one, questions[:3]), progress=False) for one in (model, again))
    assert ours[0].equals(theirs[0]) and ours[1].equals(theirs[1])


@pytest.mark.slow
def test_a_stopped_training_ends_in_the_same_bytes(tokenizer, questions, tmp_path):
    make = lambda: new(tokenizer, projection="per_type", loss_weight=0.4)
    contexts = read(make(), questions)

    def run(folder, batches):
        model = make()
        training.train(model, batches, folder, **USUAL | {"save_every": 2})
        return bytes_of(model), None

    stopped_and_whole(tmp_path, run, lambda: LongBatches(contexts, 3, 5, 500, 0), 5)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"projection": "each"}, "projection: one of none, shared, per_type expected, got 'each'"),
        ({"projection": "none", "similarity": "projected"}, "similarity: dot or cosine expected with projection=none"),
        ({"projection": "shared", "similarity": "cosine"}, "similarity: bilinear or projected expected with projection=shared"),
        ({"loss_weight": 1.5}, "loss_weight: 0 to 1 expected, got 1.5"),
        ({"temperatures": "0.5,0.5"}, "temperatures: one, or one for each of span, yes, no"),
        ({"temperatures": "0"}, "above 0, expected, got 0"),
        ({"projection": "none", "projection_size": 4}, "only projected vectors have one"),
    ],
)
def test_contrasts_that_do_not_go_together_are_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        contrast(**chosen)


def test_a_context_longer_than_the_model_reads_is_refused(tokenizer):
    with pytest.raises(ValueError, match="max_tokens: at most 512 for tiny, got 513"):
        new(tokenizer, max_tokens=513)


def test_the_markers_are_drawn_by_the_seed(tokenizer, tmp_path):
    from asutil.corpus import tokenizers
    from asutil.models import loading

    with checkpoints.seeded(0):
        loading.tiny(tokenizer, mlm=False).backbone.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    rows = []
    for seed in (0, 0, 1):
        settings = finder.Finding(list(KINDS), "marked", 100, contrast())
        model = finder.start_from(tmp_path, tokenizers.load_tokenizer(tmp_path), settings, seed)
        rows.append(model.backbone.get_input_embeddings().weight[-8:].tolist())
        assert len(model.tokenizer) == len(tokenizer) + 8 and add_markers(model.tokenizer) == 0
    assert rows[0] == rows[1] != rows[2]
