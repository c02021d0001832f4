"""Batches that a model would read otherwise than they were made, or of other data than a checkpoint, are refused before the first step."""

import pytest

from asutil import inputs, sampling, training
from asutil.data.candidates import Candidate, Question
from asutil.inputs import triplets
from asutil.models import embedder, joint, loading

pytestmark = pytest.mark.slow

USUAL = {"peak_lr": 1e-3, "warmup_steps": 0, "weight_decay": 0.0, "seed": 1, "save_every": 99, "log_every": 1, "progress": False}
SLOTS = {"joint": joint.shape(True, "ie_k", 5, 96, "linear", "absolute")}  # of 16 tokens
REFUSED = {
    "masked tokens": ({}, "psd", 64, 0.15, r"mask tokens \(\d+ in the first\), and the model has no head that predicts them"),
    "a context": ({}, "dpc", 64, 0, "have a context, and the model reads two texts: start it with context=True"),
    "longer slots": (SLOTS, "mspp", 6 * 64, 0, "slots of 16 tokens for this joint model, got slots of 64"),
}
READ = {
    "masked tokens": ({"mlm": True}, "psd", 64, 0.15),
    "two texts": ({}, "psd", 64, 0),
    "a context": ({"context": True}, "dpc", 64, 0),
    "slots": (SLOTS, "mspp", 96, 0),
}


def pretrain(corpus, folder, start, objective, max_tokens, mlm_share):
    sampler = sampling.Sampler(corpus, objective, max_tokens=max_tokens)
    batches = inputs.PretrainingBatches(lambda epoch: sampler, 1, 4, mlm_share=mlm_share)
    return training.train(loading.start_from("tiny", corpus.tokenizer, 96, **start), batches, folder, **USUAL)


@pytest.mark.parametrize(("start", "objective", "max_tokens", "mlm_share", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_model_would_not_read_is_refused(corpus, tmp_path, start, objective, max_tokens, mlm_share, message):
    with pytest.raises(ValueError, match=message):
        pretrain(corpus, tmp_path, start, objective, max_tokens, mlm_share)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("start", "objective", "max_tokens", "mlm_share"), READ.values(), ids=READ)
def test_what_the_model_reads_is_learnt(corpus, tmp_path, start, objective, max_tokens, mlm_share):
    assert pretrain(corpus, tmp_path, start, objective, max_tokens, mlm_share)["steps"] == 1


def test_a_folder_is_not_gone_on_with_by_another_model(tokenizer, tmp_path, caplog):
    split = [
        Question(str(n), "who?", tuple(Candidate(f"{n}.{k}", f"answer {k}", int(k == "0"), None, None) for k in "01")) for n in range(4)
    ]

    def train(margin, seed=0, model=None):
        model = model or embedder.start_from("tiny", tokenizer, embedder.settings_of("triplet", "mean", 32, margin, "squared", "all"), seed)
        batches = triplets.TripletBatches(triplets.Triplets(tokenizer, split), 1, 4, 32)
        training.train(model, batches, tmp_path, **USUAL)
        return model

    train(5.0)
    caplog.clear()
    for model in (None, train(5.0)):
        train(5.0, model=model)
    assert not [text for text in caplog.messages if "other weights" in text]
    assert [text for text in caplog.messages if "finished before, with these settings and this first batch: nothing is trained" in text]
    train(5.0, seed=1)
    assert [text for text in caplog.messages if " began from other weights than this model has" in text]
    with pytest.raises(ValueError, match=r"of another training, this one has embedding \{.*'margin': 0\.5.* instead of \{.*'margin': 5\.0"):
        train(0.5)


def test_a_folder_is_not_gone_on_with_by_other_data(tokenizer, tmp_path):
    """A cell that is run again with other labels must not give back the weights of the first ones."""

    def train(right, micro_tokens=8192):
        candidates = lambda n: tuple(Candidate(f"{n}.{k}", f"answer {k}", int(k == right), None, None) for k in range(3))
        pairs = inputs.Pairs(tokenizer, [Question(str(n), f"question {n}", candidates(n)) for n in range(4)])
        batches = inputs.FinetuningBatches(pairs, 2, 6, 32, micro_tokens)
        return training.train(loading.start_from("tiny", tokenizer, 32, seed=1), batches, tmp_path, **USUAL)

    first = train(0)
    assert train(0, micro_tokens=64)["log"] == first["log"]  # the same data in smaller micro-batches
    with pytest.raises(ValueError, match=r"of another training, this one has first_batch \d+ instead of \d+: give another folder"):
        train(1)
