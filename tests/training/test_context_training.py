"""Training with contexts, from text to scores: what a context is for, and unions with one head or one an objective."""

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import RobertaConfig

from asutil import inputs, metrics, sampling, training
from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.models import loading
from asutil.tasks import rank, rankers

from ..conftest import bytes_of, stopped_and_whole

pytestmark = pytest.mark.slow

USUAL = {"weight_decay": 0.0, "seed": 4, "save_every": 10**6, "progress": False}
NAMES = ["the violin", "the glacier"]


def write(file, count, seed):
    """A question names one of two things. Each has a document of two sentences: one names it, the other one, `it`, may be the answer."""
    draw, rows = np.random.default_rng(seed), []
    for n in range(count):
        asked = draw.integers(2)
        for k in draw.permutation(2):
            place = draw.choice(["here", "there"])
            rows.append((n, f"where is {NAMES[asked]}?", f"{NAMES[k]} is old.", 0, f"{n} {k}"))
            rows.append((n, f"where is {NAMES[asked]}?", f"it is {place}.", int(k == asked), f"{n} {k}"))
    columns = ["question_id", "question", "answer", "label", "document_title"]
    pd.DataFrame(rows, columns=columns).to_csv(file, sep="\t", index=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The data set in files of the user's own, and a small model of pairs with its tokenizer."""
    folder = tmp_path_factory.mktemp("data")
    for seed, (split, count) in enumerate({"train": 100, "dev": 9, "test": 60}.items()):
        write(folder / f"{split}.tsv", count, seed)
    tokenizer = tokenizers.train_tokenizer([f"where is {name}? {name} is old. it is here. it is there." for name in NAMES] * 2, 300)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 514}
    size |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # with it the seed decides whether so few steps are enough
    config = RobertaConfig(vocab_size=300, type_vocab_size=1, pad_token_id=1, initializer_range=0.05, **size)
    loading.from_config(config, tokenizer, seed=1, mlm=False).save(folder / "model")
    return answers.load_answers(folder), folder / "model"


def learnt(data, folder, context):
    """The ranker of a fine-tuning as a notebook runs it, and its metrics on the test questions."""
    splits, start = data
    tokenizer = tokenizers.load_tokenizer(start)
    model = loading.start_from(start, tokenizer, 32, seed=1, context=context)
    batches = inputs.FinetuningBatches(inputs.Pairs(tokenizer, splits["train"], context=context), 24, 48, 32)
    training.train(model, batches, folder, peak_lr=2e-3, warmup_steps=10, log_every=100, **USUAL)
    model.save(folder / "model")
    ranker = rankers.load_ranker(folder / "model", device="cpu")
    table = rank.Ranker(ranker.model, 32).score(splits["test"], progress=False)
    return ranker, metrics.ranking(table.question_id, table.label, table.score)


def test_what_only_the_context_tells_is_learnt_with_it_and_not_without(data, tmp_path):
    """Of two sentences that begin with `it` one is the answer: the pairs say nothing of which, and the best order is a guess."""
    _, without = learnt(data, tmp_path / "pairs", context=False)
    ranker, found = learnt(data, tmp_path / "context", context=True)
    assert found.p_at_1 > 0.95 and found.map > 0.95
    assert without.p_at_1 < 0.7 and 0.45 < without.map < 0.8  # above that of any order: `it` is known
    texts, contexts = ["it is here.", "it is here."], [(f"{name} is old.", None) for name in NAMES]
    for number, name in enumerate(NAMES):
        assert ranker.rank(f"where is {name}?", texts, contexts)[0][0] == number
        assert ranker.rank(f"where is {name}?", texts, contexts[::-1])[0][0] == 1 - number


# ------------------------------------------------------------------ unions


def batches_of(corpus):
    make = lambda epoch: sampling.Sampler(corpus, "context_all", 0, epoch, max_tokens=48)
    return inputs.PretrainingBatches(make, steps=6, batch_size=12, micro_tokens=300, layout="packed")


@pytest.mark.parametrize(("name", "members"), [("tiny", 1), ("tiny", 3), ("tiny_electra", 3)])
def test_the_accuracy_of_each_objective_is_that_of_a_loop_over_its_examples(held_out, tokenizer, name, members):
    model = loading.start_from(name, tokenizer, 96, seed=1, mlm=True, context=True, members=members)
    with torch.no_grad():
        for number, head in enumerate(model.pairs):  # so different that a wrong head shows
            list(head.parameters())[-1].copy_(torch.tensor([0.0, 0.0 if members == 1 else number - 1.0]))
    sampler = sampling.Sampler(held_out, "context_all", split="validation", max_tokens=96)
    size = min(60, len(sampler))
    found = training.validate(model, sampler, size, 500)
    made = sampler.spans(np.arange(size))
    shares = np.bincount(made.members, minlength=3) / size
    each = [found[f"accuracy_{objective}"] for objective in ("sdc", "dpc", "dslc")]
    assert found["accuracy"] == pytest.approx(shares @ each)
    if members == 3:  # the first head says 0, the last 1: their examples' labels alone give the accuracy
        ours = [made.labels[made.members == number] for number in range(3)]
        assert each[0] == pytest.approx(1 - ours[0].mean()) and each[2] == pytest.approx(ours[2].mean())
    if members == 1:
        assert "accuracy_sdc" not in training.validate(model, sampling.Sampler(held_out, "sdc", max_tokens=96), 9, 500)


def test_a_stopped_run_with_a_head_an_objective_ends_in_the_same_bytes(corpus, tokenizer, tmp_path):
    def run(folder, batches):
        model = loading.start_from("tiny", tokenizer, 96, seed=1, mlm=True, context=True, members=3)
        training.train(model, batches, folder, peak_lr=1e-3, warmup_steps=2, log_every=2, **USUAL | {"save_every": 2})
        return bytes_of(model), model

    (_, model), _ = stopped_and_whole(tmp_path, run, lambda: batches_of(corpus), 5)
    start = loading.start_from("tiny", tokenizer, 96, seed=1, mlm=True, context=True, members=3)
    for head in ("pair", "pair_2", "pair_3"):  # each has learnt
        assert any(not torch.equal(one, two) for one, two in zip(getattr(model, head).parameters(), getattr(start, head).parameters()))
