"""Ranking k candidates of a question: one pass of a joint model against k passes of a pair model, both as this project runs them.

The paper reckons with texts of L tokens each: pairs of 2 L, a joint input of (k + 1) L. Then attention, which is quadratic, takes
(k + 1)^2 / 4k times as long in the joint model, and what is linear (k + 1) / 2k times. This project pads neither, so both models are
measured once more with every text padded to L = 64, as the formula has it. All ways rank the same candidates, none of them longer than
L, so that nothing is cut. Padding may change no score: that is checked first, on a CPU in float32, to five digits.

    python benchmarks/latency.py [--quick]
    python benchmarks/latency.py --dataset wikiqa --model ibm-granite/granite-embedding-30m-english
    python benchmarks/latency.py --model base      # RoBERTa-base's shape; the default where there is a GPU

`together` are all questions in batches, from texts to scores; `passes` is the part of it inside the model; `alone` is one question at a
time. Time does not care for weights: those of tiny and base are random, and their tokenizer is trained on the texts. Nothing is fetched.
"""

import contextlib
import itertools
import time
from collections import defaultdict
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import side_by_side
import torch
from transformers import RobertaConfig

from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.inputs import batches
from asutil.inputs.template import Template
from asutil.models import joint, loading
from asutil.tasks import rank

GOAL, TOKENS = 1.0, 64  # the joint model takes no longer; L
PUBLISHED = {"k": 5, "pair_seconds": 71, "joint_seconds": 81, "on": "WikiQA, one A100"}  # joint_inference, section 4.3
VOCABULARIES = {"tiny": 8192, "base": 50265}
GPU = torch.cuda.is_available()
WAYS, SETTINGS = ("pair", "joint", "pair_padded", "joint_padded"), ("together", "passes", "alone")


def formula(k: int) -> dict[str, float]:
    """How many times as long as pairs a joint input takes: by what is quadratic in the length, and by what is linear.

    Paper: joint_inference, appendix C.3.

    Example:
        >>> formula(5)
        {'attention': 1.8, 'linear': 0.6}
    """
    return {"attention": round((k + 1) ** 2 / (4 * k), 3), "linear": round((k + 1) / (2 * k), 3)}


# ------------------------------------------------------------------ questions and models


def tokenizer_of(model: str, texts: list[str]):
    return (
        tokenizers.train_tokenizer(texts, VOCABULARIES[model])
        if model in VOCABULARIES
        else tokenizers.load_tokenizer(model)
    )


def asked(dataset: str, model: str, count: int, k: int) -> tuple[list, object]:
    """Test questions with their first k candidates of at most L tokens, and the model's tokenizer.

    Raises: ValueError where there is no such question.
    """
    enough = (question for question in answers.load_answers(dataset)["test"] if len(question.candidates) >= k)
    found = list(itertools.islice(enough, 2 * count))
    texts = list(
        dict.fromkeys(
            text for question in found for text in (question.text, *(one.text for one in question.candidates))
        )
    )
    tokenizer = tokenizer_of(model, texts)
    room = TOKENS - Template.of(tokenizer, 1).added
    sizes = dict(zip(texts, map(len, tokenizer(texts or [""], add_special_tokens=False)["input_ids"])))
    short = [
        replace(one, candidates=tuple(c for c in one.candidates if sizes[c.text] <= room))
        for one in found
        if sizes[one.text] <= room
    ]
    chosen = [question for question in first(short, k) if len(question.candidates) == k][:count]
    if not chosen:
        raise ValueError(f"{dataset}: expected test questions with {k} candidates of at most {room} tokens, got none")
    return chosen, tokenizer


def first(given: list, k: int) -> list:
    """The questions with their first k candidates."""
    return [replace(question, candidates=question.candidates[:k]) for question in given]


def ranker_of(model: str, tokenizer, k: int | None = None) -> rank.Ranker:
    """Of pairs, or of k candidates together under IEk.

    Args:
        model: tiny, base, or what `loading.load` takes.
    """
    length = (k + 1) * TOKENS if k else 2 * TOKENS
    shape = joint.shape(True, "ie_k", k, length, "linear", "absolute") if k else None
    if model != "base":
        return rank.Ranker(loading.start_from(model, tokenizer, length, joint=shape).eval(), length)
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "pad_token_id", "eos_token_id")}
    config = RobertaConfig(vocab_size=VOCABULARIES["base"], max_position_embeddings=514, type_vocab_size=1, **ids)
    pair = loading.from_config(config, tokenizer, mlm=False)
    return rank.Ranker((joint.over(pair, shape) if shape else pair).eval(), length)


# ------------------------------------------------------------------ with and without padding


def padded(ragged, members: np.ndarray, pad: int, micro_tokens: int) -> list[dict]:
    """Micro-batches like those of `inputs.micro_batches`, with every text padded to L tokens, a pair to 2 L; no slot is empty here."""
    if ragged.firsts is None:
        batch, places = ragged.padded(pad, members), np.arange(2 * TOKENS)
        arrays = {"input_ids": widened(batch.input_ids, pad), "attention_mask": places < batch.lengths[:, None]}
        types = widened(batch.token_type_ids, 0)
    else:
        batch, places = ragged.slotted(pad, members, TOKENS), np.arange(TOKENS)
        real = (places < batch.lengths[..., None]).reshape(len(members), -1)
        arrays = {"input_ids": batch.input_ids, "attention_mask": real}
        arrays["position_ids"] = np.tile(np.arange(real.shape[1]), (len(members), 1))
        types = batch.token_type_ids
    arrays |= {"labels": members} | ({} if types is None else {"token_type_ids": types})
    tensors = {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}
    rows = max(1, micro_tokens // tensors["input_ids"].shape[1])
    found = [{name: tensor[at : at + rows] for name, tensor in tensors.items()} for at in range(0, len(members), rows)]
    for micro in found if ragged.firsts is not None else ():
        micro["firsts"] = torch.arange(0, micro["input_ids"].numel(), TOKENS).view(len(micro["labels"]), -1)
    return found


def widened(table: np.ndarray | None, fill: int) -> np.ndarray | None:
    return None if table is None else np.pad(table, ((0, 0), (0, 2 * TOKENS - table.shape[1])), constant_values=fill)


def scores(ranker: rank.Ranker, given: list, way: str) -> np.ndarray:
    """From texts to scores as the project does it, or padded and else the same."""
    with mock.patch.object(batches, "micro_batches", padded) if way.endswith("padded") else contextlib.nullcontext():
        return ranker.score(given, progress=False)["score"].to_numpy()


def checked(ranker: rank.Ranker, given: list, way: str) -> dict[str, float]:
    """Real tokens a question, and the largest difference that padding makes to a score, beside how far scores spread.

    Raises: ValueError for a difference of more than 1e-5, or 1e-5 of the largest score.
    """
    ours, theirs = (scores(ranker, given[:8], name) for name in (way, f"{way}_padded"))
    apart = float(f"{np.abs(ours - theirs).max():.2g}")
    if not apart <= 1e-5 * max(1, np.abs(ours).max()):
        raise ValueError(f"{way}: equal scores expected with and without padding, got a difference of {apart}")
    read = ranker.inputs_of(given)
    lengths = read.join(read.members(np.arange(len(read))), ranker.max_tokens).lengths
    figures = {"largest_difference": apart, "spread_of_scores": float(f"{ours.std():.2g}")}
    return {"tokens_a_question": round(int(lengths.sum()) / len(given), 1)} | figures


# ------------------------------------------------------------------ time


class Passes:
    """Seconds in which forward passes of a model are under way; on a GPU by its own clock, which nothing has to wait for."""

    def __init__(self, model: torch.nn.Module):
        self.times, self.start = [], None
        model.register_forward_pre_hook(self.begin)
        model.register_forward_hook(self.end)

    def now(self):
        if not GPU:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def begin(self, *_) -> None:
        self.start = self.now()

    def end(self, *_) -> None:
        self.times.append((self.start, self.now()))

    def seconds(self) -> float:
        """Of the passes since it was last asked; on a GPU these must be done, as they are once there are scores."""
        times, self.times = self.times, []
        return sum(start.elapsed_time(end) / 1000 if GPU else end - start for start, end in times)


def timed(rankers: dict, given: list, alone: int, rounds: int) -> tuple[dict, dict]:
    """Milliseconds a question of every (k, way, setting) in each round, by the clock on the wall and by the processor's.

    Args:
        rankers: None -> that of pairs, k -> that of k candidates together.
        alone: how many of the questions are also ranked one at a time.
    """
    clocks, inside, sides, counts = (
        {k: Passes(ranker.model) for k, ranker in rankers.items()},
        defaultdict(list),
        {},
        {},
    )

    def side(k, way, parts, setting):
        kind = k if way.startswith("joint") else None
        for part in parts:
            scores(rankers[kind], part, way)
        seconds = clocks[kind].seconds()
        if setting == "together":
            inside[k, way, "passes"].append(1000 * seconds / len(given))

    for k, setting, way in itertools.product(filter(None, rankers), ("together", "alone"), WAYS):
        few = first(given, k)
        parts = [few] if setting == "together" else [[question] for question in few[:alone]]
        sides[k, way, setting], counts[k, way, setting] = partial(side, k, way, parts, setting), sum(map(len, parts))
    for run in sides.values() if GPU else ():  # whose first time through anything is slow
        run()
    inside.clear()
    clocked = side_by_side.seconds(sides, rounds)
    wall, processor = (
        {key: [1000 * second / counts[key] for second in taken] for key, taken in one.items()} for one in clocked
    )
    return wall | inside, processor


def compared(wall: dict, k: int) -> dict:
    """How many times as long as pairs the joint model took, as run and padded, and what the formula says; the time of every way."""

    def ratio(setting, suffix=""):
        return side_by_side.ratios(wall[k, f"pair{suffix}", setting], wall[k, f"joint{suffix}", setting])

    return {
        "joint_by_pair": {setting: ratio(setting) for setting in SETTINGS},
        "joint_by_pair_padded": {setting: ratio(setting, "_padded") for setting in SETTINGS},
        "formula": formula(k),
        "milliseconds_a_question": {
            way: {setting: side_by_side.spread(wall[k, way, setting]) for setting in SETTINGS} for way in WAYS
        },
    }


def lines(by_k: dict):
    """What was measured beside the formula, a line for each k and setting."""
    for k, one in by_k.items():
        for name, setting in itertools.product(("joint_by_pair", "joint_by_pair_padded"), SETTINGS):
            times = [
                one["milliseconds_a_question"][f"{kind}{name[13:]}"][setting]["median"] for kind in ("pair", "joint")
            ]
            said = "pair {:9.3f} ms, joint {:9.3f} ms a question, joint / pair {:.3f}".format(
                *times, one[name][setting]["median"]
            )
            yield f"k = {k} {'padded' * name.endswith('padded'):<6} {setting:<8} {said}"
        yield "k = {} by the formula: attention {attention:.3f}, linear {linear:.3f}".format(k, **one["formula"])
    ratio = PUBLISHED["joint_seconds"] / PUBLISHED["pair_seconds"]
    yield "k = {k} as published: joint {joint_seconds} s, pair {pair_seconds} s, joint / pair {ratio:.3f} ({on})".format(
        **PUBLISHED, ratio=ratio
    )


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--dataset", default="pydocs", help="whose test questions are ranked")
    parser.add_argument(
        "--model", default="base" if GPU else "tiny", help="tiny, base (both random), a run, a folder or a hub id"
    )
    parser.add_argument(
        "--k", type=int, nargs="+", default=[2, 5, 7], help="numbers of candidates; with 7 a joint input has 512 tokens"
    )
    parser.add_argument(
        "--questions", type=int, default=2000 if GPU else 48, help="at most; a quarter of them, or 32, also alone"
    )
    given = parser.parse_args()
    count, rounds = (16, given.rounds or 2) if given.quick else (given.questions, given.rounds or 5)
    chosen, tokenizer = asked(given.dataset, given.model, count, max(given.k))
    rankers = {k: ranker_of(given.model, tokenizer, k) for k in (None, *sorted(given.k))}
    read = {
        k: {way: checked(rankers[k * (way == "joint") or None], first(chosen, k), way) for way in WAYS[:2]}
        for k in filter(None, rankers)
    }
    for ranker in rankers.values():
        ranker.model.to("cuda" if GPU else "cpu")
    alone = max(1, min(32, len(chosen) // 4))
    wall, processor = timed(rankers, chosen, alone, rounds)
    by_k = {k: compared(wall, k) | {"inputs": inputs_read} for k, inputs_read in read.items()}
    print(*lines(by_k), sep="\n")
    against = [
        {k: side_by_side.ratios(clock[k, "joint", "together"], clock[k, "pair", "together"]) for k in read}
        for clock in (wall, processor)
    ]
    config = rankers[None].model.backbone.config
    measured = {
        "by_k": by_k,
        "by_processor_time": against[1],
        "published": PUBLISHED,
        "dataset": given.dataset,
        "questions": len(chosen),
        "questions_alone": alone,
        "slot_tokens": TOKENS,
        "model": {
            "name": given.model,
            "layers": config.num_hidden_layers,
            "hidden": config.hidden_size,
            "vocabulary": config.vocab_size,
        },
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "quick": given.quick,
    }
    side_by_side.show(side_by_side.headline("latency", GOAL, against[0], **measured))


if __name__ == "__main__":
    main()
