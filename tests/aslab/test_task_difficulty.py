"""Released heads for NSP and SOP, read the right way round; runs measured on their own task as they were trained."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForNextSentencePrediction, BertModel

from aslab import identity, parameters, runs, task_difficulty
from asutil import corpus as indexing
from asutil import sampling, training
from asutil.corpus import index as corpus_index
from asutil.corpus import sources, tokenizers
from asutil.io import disk, hub
from asutil.models import joint, loading
from asutil.models.pair import PairEncoder
from asutil.sampling import sampler as samplers
from asutil.tasks import own_tasks

from ..conftest import made_up_documents

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
    model = task_difficulty.load(str(released / name), objective).eval()
    given = batch(tokenizer)
    with torch.no_grad():
        logits, masked = model(given)
        theirs = own_tasks.RELEASED[objective].from_pretrained(released / name).eval()(**given)[field]
    assert masked is None and torch.equal(logits, theirs[:, [1, 0]])


def test_weights_without_the_head_are_refused(released):
    with pytest.raises(ValueError, match=r"bare has no head for nsp: a BertForNextSentencePrediction with all its weights is expected"):
        task_difficulty.load(str(released / "bare"), "nsp")


def run_of(folder, objective):
    name = f"pretrain-{objective}-{abs(hash(objective)) % 16**12:012x}"
    (folder / name).mkdir(parents=True)
    record = {"notebook": "pretrain", "budget": "laptop", "seed": 0, "settings": {"objective": objective, "max_tokens": 32}, "metrics": {}}
    disk.write_json(folder / name / "record.json", record | runs.hashes(folder / name))
    return str(folder / name)


def test_a_run_is_asked_what_it_learnt_and_a_released_model_what_is_said(tmp_path):
    ssp, union = run_of(tmp_path, "ssp"), run_of(tmp_path, "all")
    assert task_difficulty.tasks([ssp, union]) == [(ssp, "ssp"), (union, "all")]
    assert task_difficulty.tasks([union], "psd") == [(union, "psd")]
    assert task_difficulty.tasks(["a/bert", "a/albert"], "nsp, sop") == [("a/bert", "nsp"), ("a/albert", "sop")]
    assert task_difficulty.tasks(["a/bert", "b/bert"], "nsp") == [("a/bert", "nsp"), ("b/bert", "nsp")]


@pytest.mark.parametrize(
    ("objective", "asked", "message"),
    [
        ("ssp", "psd", r"objectives: ssp expected for .*, got psd"),
        ("mlm", None, r"mlm expected for .*, got mlm"),
        (None, None, r"objectives: nsp, sop expected for a/bert, got None"),
        (None, "ssp", r"objectives: nsp, sop expected for a/bert, got ssp"),
        (None, "nsp,sop", r"objectives: one for each of 1 models expected, got 2: nsp,sop"),
    ],
)
def test_what_cannot_be_asked(tmp_path, objective, asked, message):
    with pytest.raises(ValueError, match=message):
        task_difficulty.tasks([run_of(tmp_path, objective) if objective else "a/bert"], asked)


def test_all_means_the_finished_runs_of_the_budget_that_learnt_a_task(tmp_path):
    ssp, _ = run_of(tmp_path, "ssp"), run_of(tmp_path, "mlm")
    (tmp_path / "pretrain-psd-000000000000").mkdir()  # not finished
    assert identity.models("all", "laptop", str(tmp_path)) == [ssp]
    assert identity.models(f"a/b, {ssp.split('/')[-1]}", "laptop", str(tmp_path)) == ["a/b", ssp]
    with pytest.raises(ValueError, match="no pre-training run of budget small is finished"):
        identity.models("all", "small", str(tmp_path))


def test_every_model_is_measured_on_its_own_task(released, tmp_path, documents):
    lines = ({"text": "\n\n".join(" ".join(paragraph) for paragraph in document)} for document in documents)
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = [(str(released / "bert"), "nsp"), (str(released / "albert"), "sop")]
    found = task_difficulty.measured(asked, runs.pretrained_with, str(tmp_path / "own.jsonl"), tmp_path, 8, 512, longest=48)
    assert [name.split(", ")[1] for name in found] == ["nsp", "sop"]
    for one in found.values():
        assert one["majority"] == 0.5 and 0 <= one["accuracy"] <= 1 and 0 < one["examples"] <= 8
        assert "mlm_loss" not in one, "nothing predicts what the masks hide"


def test_a_released_model_reads_inputs_of_the_papers_length():
    assert runs.pretrained_with("google-bert/bert-base-uncased", "nsp", "pydocs").max_tokens == 128


# ------------------------------------------------------------------ accuracy, and the order of examples


class Summed(nn.Module):
    """A model of two classes that scores an example, of mspp each slot, by the sum of its tokens modulo 7: many scores are equal."""

    masked, reads_masks = None, False
    losses = PairEncoder.losses

    def __init__(self, slots):
        super().__init__()
        self.slots, self.weight = slots, nn.Parameter(torch.zeros(1))

    def forward(self, batch):
        ids = batch["input_ids"] * batch["attention_mask"]
        kinds = range(1, 1 + self.slots)
        sums = torch.stack([(ids * (batch["token_type_ids"] == slot)).sum(1) for slot in kinds], 1) if self.slots else ids.sum(1)
        score = (sums % 7 - 3).float()
        return torch.stack([torch.zeros_like(score), score], -1), None


def by_hand(sampler, size):
    """Label and score of each candidate of each group, example by example."""
    found = {}
    for number in range(size):
        batch = sampler.batch([number])
        if batch.labels.ndim == 2:
            slots = batch.input_ids[0].reshape(batch.lengths.shape[1], -1)
            sums = [int(ids[:length].sum()) for ids, length in zip(slots, batch.lengths[0])][1:]
            found[number] = [(int(label), total % 7 - 3) for label, total in zip(batch.labels[0], sums)]
        else:
            total = int(batch.input_ids[0].sum())
            found.setdefault(sampler[number].group, []).append((int(batch.labels[0]), total % 7 - 3))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "each"), [("ssp", 5), ("all", 5), ("context_all", 5), ("nsp", 2), ("sop", 2), ("mspp", 5)])
def test_auc_and_rank_1_are_those_of_a_loop_over_groups(corpus, objective, each):
    sampler = sampling.Sampler(corpus, objective, max_tokens=6 * 20 if objective == "mspp" else 60)
    size = 60 if objective == "mspp" else 40 * each + each - 1  # the last group is not whole
    found, groups = training.validate(Summed(each * (objective == "mspp")), sampler, size, 400), by_hand(sampler, size)
    pairs = [pair for group in groups for pair in group]
    gaps = [(right - wrong) for label, right in pairs if label for other, wrong in pairs if not other]
    assert found["auc"] == pytest.approx(np.mean([1.0 if gap > 0 else 0.5 if gap == 0 else 0.0 for gap in gaps]))
    whole = [group for group in groups if len(group) == each]
    assert len(whole) == (60 if objective == "mspp" else 40)
    best = [max(score for label, score in group if label) > max(score for label, score in group if not label) for group in whole]
    assert found["rank_1"] == pytest.approx(np.mean(best)) and found["rank_1_chance"] == pytest.approx(1 / each)
    assert found["accuracy"] == pytest.approx(np.mean([label == (score > 0) for label, score in pairs]))
    assert (found["rank_1"] == 0) == (objective == "sop") and found["rank_1"] < 1 and "mlm_loss" not in found  # sop: the same tokens
    assert any(max(score for _, score in group) == sorted(score for _, score in group)[-2] for group in whole)  # ties there were


def test_chance_of_two_positives_and_too_few_examples_for_a_group(corpus):
    sampler = sampling.Sampler(corpus, "mspp", positives=2, negatives=3)
    assert training.validate(Summed(5), sampler, 10, 400)["rank_1_chance"] == pytest.approx(2 / 5)
    found = training.validate(Summed(0), sampling.Sampler(corpus, "ssp"), 4, 400)
    assert set(found) == {"accuracy", "f1", "majority", "loss"}


def cosines_of_words(pairs):
    """Cosine of the TF-IDF vectors of each pair of texts, word by word: idf_w = ln((1 + n) / (1 + n_w)) + 1, n texts, n_w with the word."""
    texts = [Counter(re.findall(r"\b\w\w+\b", text.lower())) for pair in pairs for text in pair]
    held = Counter(word for text in texts for word in text)
    idf = {word: math.log((1 + len(texts)) / (1 + count)) + 1 for word, count in held.items()}
    vectors = [{word: count * idf[word] for word, count in text.items()} for text in texts]
    lengths = [math.sqrt(sum(value**2 for value in vector.values())) for vector in vectors]
    return [
        sum(value * second.get(word, 0) for word, value in first.items()) / (length * other or 1)
        for first, second, length, other in zip(vectors[::2], vectors[1::2], lengths[::2], lengths[1::2])
    ]


@pytest.mark.parametrize(("objective", "each"), [("ssp", 5), ("dpc", 5), ("mspp", 5), ("nsp", 2)])
def test_shared_words_are_counted_as_a_loop_counts_them(corpus, objective, each):
    sampler, size = sampling.Sampler(corpus, objective), 60
    pairs, labels = [], []
    for number in range(size):
        example = sampler[number]
        for part in example.parts[1:] if objective == "mspp" else example.parts[1:2]:
            pairs.append((example.parts[0], part))
        labels += example.label if objective == "mspp" else [example.label]
    scores = np.array(cosines_of_words(pairs))
    gaps = np.subtract.outer(scores[np.array(labels) == 1], scores[np.array(labels) == 0])
    found = own_tasks.shared_words(sampler, size)
    assert found["auc_tfidf"] == pytest.approx(((gaps > 1e-12) + 0.5 * (abs(gaps) <= 1e-12)).mean(), abs=1e-3)
    groups = zip(np.reshape(labels, (-1, each)), scores.reshape(-1, each))
    best = [right[known == 1].max() > right[known == 0].max() + 1e-12 for known, right in groups]
    assert found["rank_1_tfidf"] == pytest.approx(np.mean(best), abs=0.02)


def test_shared_words_are_seen_in_a_script_without_spaces():
    """The right second part has four characters of the first, in another clause."""
    written = lambda start: "".join(chr(0x4E00 + start + n) for n in range(6))
    parts = [(written(20 * n), written(20 * n + 2 if n % 2 else 20 * n + 10)) for n in range(8)]
    examples = [SimpleNamespace(label=n % 2, parts=own) for n, own in enumerate(parts)]
    sampler = type("Sampler", (list,), {"negatives": 1})(examples)
    assert own_tasks.shared_words(sampler, 8)["auc_tfidf"] == 1


def test_positives_alone_are_for_masked_language_modelling(corpus):
    assert sampling.objective_of_data("mlm", "psd", 0) == "psd"
    with pytest.raises(ValueError, match="negatives: 0 is for mlm alone, ssp learns from labels"):
        sampling.objective_of_data("ssp", None, 0)
    sampler = sampling.Sampler(corpus, "psd", hard_negatives=0, negatives=0)
    assert len(sampler) == sampler.groups and all(sampler[i].kind == "positive" for i in range(20))
    assert set(training.validate(Summed(0), sampler, 20, 400)) == {"accuracy", "f1", "majority", "loss"}


@pytest.mark.parametrize(("mlm", "share"), [(True, 0.15), (True, 0.4), (True, 0), (False, 0.15)])
def test_a_model_reads_as_many_masks_as_it_learnt_with(corpus, tokenizer, monkeypatch, mlm, share):
    model, seen = loading.start_from("tiny", tokenizer, 64, 0, mlm=mlm), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda batch: seen.append(batch["input_ids"]) or forward(batch))
    training.validate(model, sampling.Sampler(corpus, "ssp", max_tokens=64), 40, 400, mlm_share=share)
    masks, words = (
        sum(count(ids).sum().item() for ids in seen) for count in (lambda ids: ids == tokenizer.mask_token_id, lambda ids: ids > 3)
    )
    assert masks / words == pytest.approx(0.8 * share * mlm, rel=0.25)  # of ten chosen tokens two are no mask


# ------------------------------------------------------------------ runs on the documents of their own


def written(path, documents, column="text", between="\n\n"):
    lines = ({column: between.join(" ".join(p) for p in document), "title": f"Title {n}"} for n, document in enumerate(documents))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def pretrained(folder, source, objective, **given):
    """A run of `pretrain` without a training: index, model, validation and record as the notebook makes them."""
    settings = parameters.settings("pretrain", {"objective": objective, "corpus": source, "validation_examples": 60, **given})
    run, shared = folder / f"pretrain-{objective}-000000000001", folder / "shared"
    form = {"text_column": settings["text_column"], "paragraph_separator": settings["paragraph_separator"]}
    form["exclude_titles"] = sources.read_titles(settings["exclude_titles"])
    tokenizer = tokenizers.tokenizer_for("tiny", source, shared, **form)
    sentences = {name: settings[name] for name in ("splitter", "min_sentence_chars")}
    index = indexing.prepare(source, tokenizer, shared, **sentences, workers=1, progress=True, **form)
    names = ("hard_negatives", "negatives", "max_tokens", "same_paragraph_before", "positives", "max_sentences", "lengths")
    options = {name: settings[name] for name in names}
    held_out = sampling.Sampler(index, objective, 0, split="validation", **options)
    shape = None
    if objective == "mspp":
        k = settings["positives"] + settings["negatives"]
        pooled = {"pooling": settings["slot_pooling"], "init": settings["slot_init"], "start": settings["slot_start"]}
        shape = joint.shape(True, settings["head"], k, settings["max_tokens"], settings["head_form"], settings["positions"], **pooled)
    forms = {"mlm": settings["mlm_weight"] > 0, "context": held_out.parts == 3, "joint": shape}
    model = loading.start_from("tiny", tokenizer, settings["max_tokens"], 0, **forms)
    size = min(60, len(held_out))
    validation = training.validate(model, held_out, size, 512, 0) | own_tasks.shared_words(held_out, size)
    model.save(run / "model")
    inputs = {"corpus": sources.fingerprint_of_source(source)}
    if settings["exclude_titles"]:
        inputs["exclude_titles"] = hub.sha256(Path(settings["exclude_titles"]))
    record = {"notebook": "pretrain", "budget": "laptop", "seed": 0, "settings": identity.shown(settings), "inputs": inputs}
    disk.write_json(run / "run.json", {"notebook": "pretrain", "given": {"objective": objective, **given}})
    disk.write_json(run / "record.json", record | {"metrics": {"validation": validation}} | runs.hashes(run))
    return str(run), validation, index


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "given"),
    [
        ("ssp", {"mlm_weight": 1.0, "same_paragraph_before": True, "hard_negatives": 1, "min_sentence_chars": 60}),
        ("all", {"negatives": 3, "lengths": "even"}),
        ("dpc", {"max_tokens": 60, "text_column": "body", "paragraph_separator": "\n"}),
        (
            "mspp",
            {"positives": 2, "max_sentences": 2, "negatives": 3, "max_tokens": 6 * 20, "slot_pooling": "mean", "slot_start": "separator"},
        ),
        ("nsp", {}),
    ],
)
def test_a_run_is_measured_as_it_was_made_from_its_own_index(tmp_path, monkeypatch, objective, given):
    form = {"column": given.get("text_column", "text"), "between": given.get("paragraph_separator", "\n\n")}
    source = written(tmp_path / "own.jsonl", made_up_documents(120, paragraphs=(3, 5), sentences=(3, 9)), **form)
    if objective == "ssp":
        (tmp_path / "titles.txt").write_text("".join(f"Title {n}\n" for n in range(40)))
        given = {**given, "exclude_titles": str(tmp_path / "titles.txt")}
    run, validation, index = pretrained(tmp_path, source, objective, **given)
    built, build = [], indexing.build
    monkeypatch.setattr(corpus_index, "build", lambda *args, **options: built.append(args) or build(*args, **options))
    (found,) = task_difficulty.measured(task_difficulty.tasks([run]), runs.pretrained_with, source, tmp_path / "shared", 60, 512).values()
    assert found.pop("examples") <= 60 and found == validation and not built
    assert ("mlm_loss" in found) == (given.get("mlm_weight", 0) > 0)
    assert index.info["documents_read"] == 120 - 40 * (objective == "ssp")


@pytest.mark.slow
def test_other_documents_are_read_as_the_run_read_its_own(tmp_path, monkeypatch):
    """Wikipedia after four corpora: splitter, shortest sentence and negatives are the run's; a text column belongs to its corpus."""
    trained_on = written(tmp_path / "own.jsonl", made_up_documents(80, paragraphs=(3, 5), sentences=(3, 9)), column="body")
    given = {"text_column": "body", "min_sentence_chars": 70, "negatives": 3, "hard_negatives": 1}
    run, *_ = pretrained(tmp_path, trained_on, "ssp", **given)
    other = written(tmp_path / "other.jsonl", made_up_documents(90, seed=3, paragraphs=(3, 5), sentences=(3, 9)))
    made, sampler = [], sampling.Sampler
    monkeypatch.setattr(samplers, "Sampler", lambda *args, **options: made.append(sampler(*args, **options)) or made[-1])
    task_difficulty.measured([(run, "ssp")], runs.pretrained_with, other, tmp_path / "shared", 60, 512)
    assert (made[0].negatives, made[0].hard_negatives, made[0].split) == (3, 1, "validation")
    assert made[0].corpus.info["min_sentence_chars"] == 70 and made[0].corpus.info["documents_read"] == 90


def test_titles_that_changed_since_the_run_are_refused(tmp_path):
    source = written(tmp_path / "own.jsonl", made_up_documents(120, paragraphs=(3, 5), sentences=(3, 9)))
    (tmp_path / "titles.txt").write_text("Title 3\n")
    run, *_ = pretrained(tmp_path, source, "ssp", exclude_titles=str(tmp_path / "titles.txt"))
    (tmp_path / "titles.txt").write_text("Title 4\n")
    with pytest.raises(ValueError, match=r"titles.txt has changed since pretrain-ssp-000000000001 left its titles out"):
        task_difficulty.measured([(run, "ssp")], runs.pretrained_with, source, tmp_path / "shared", 60, 512)
