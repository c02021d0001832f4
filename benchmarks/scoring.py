"""Scoring candidates: this project against sentence-transformers' CrossEncoder.predict, same weights, same pairs, scores equal to 1e-5.

The model is a small RoBERTa of random weights (RoBERTa-base on a GPU). On a CPU both sides compute in float32. On a GPU this project's
body is bfloat16 by default, and CrossEncoder is measured as it comes (float32) and loaded in bfloat16. `tokenising` is the part before
the model alone, on more pairs: texts to padded tensors, against CrossEncoder's own preprocessing in the batches that it makes.

    python benchmarks/scoring.py [--quick]

The pairs are WikiQA's where ASUTIL_MIRROR has it, else the embedded pydocs'. It needs sentence-transformers (the extra `bench`); the
tokenizer is trained on the pairs' own texts, so that nothing else is needed: on a GPU machine without data, pydocs serves.
"""

import tempfile

import numpy as np
import side_by_side
import torch
import transformers
from sentence_transformers import CrossEncoder
from transformers import RobertaConfig, RobertaForSequenceClassification

from asutil import inputs
from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.inputs import batches
from asutil.io import hub
from asutil.models import loading
from asutil.tasks import rank

GOAL, TOKENISING_GOAL, GPU_GOAL, MAX_TOKENS = 1.5, 3, 3, 128
GPU = torch.cuda.is_available()
LAYERS, HIDDEN, VOCABULARY = (12, 768, 50265) if GPU else (4, 256, 8192)


def asked(dataset: str, pairs: int) -> list:
    """The first questions of the training split that have so many candidates together."""
    found, held = [], 0
    for question in answers.load_answers(dataset)["train"]:
        found.append(question)
        held += len(question.candidates)
        if held >= pairs:
            break
    return found


def models(tokenizer, folder):
    """The same random weights under this project's ranker and under CrossEncoder: as it comes and, on a GPU, in bfloat16."""
    config = RobertaConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=LAYERS,
        hidden_size=HIDDEN,
        num_attention_heads=HIDDEN // 64,
        intermediate_size=4 * HIDDEN,
        max_position_embeddings=514,
        type_vocab_size=1,
        initializer_range=0.05,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    RobertaForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = loading.load(folder).to("cuda" if GPU else "cpu")
    kinds = ("float32", "bfloat16") if GPU else ("float32",)
    peers = [CrossEncoder(folder, max_length=MAX_TOKENS, model_kwargs={"dtype": kind}) for kind in kinds]
    return rank.Ranker(model, MAX_TOKENS), peers


def tokenise_ours(tokenizer, given):
    pairs = inputs.Pairs(tokenizer, given)
    numbers = np.arange(len(pairs))
    return inputs.micro_batches(pairs.join(numbers, MAX_TOKENS), numbers, pairs.template.pad, batches.TOKENS_ON_CPU)


def tokenise_theirs(peer, pairs, batch_size):
    order = np.argsort([-len(first) - len(second) for first, second in pairs])
    return [
        peer.preprocess([pairs[row] for row in order[start : start + batch_size]])
        for start in range(0, len(order), batch_size)
    ]


def texts_of(given) -> list[tuple[str, str]]:
    return [(question.text, candidate.text) for question in given for candidate in question.candidates]


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument(
        "--batch-size", type=int, default=128 if GPU else 32, help="CrossEncoder's; on a CPU its own default"
    )
    given = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    rounds = given.rounds or (3 if given.quick else 5)
    count = (400 if given.quick else 2000) * (20 if GPU else 1)
    dataset = "wikiqa" if hub.mirror("microsoft/wiki_qa") else "pydocs"
    many = asked(dataset, count * (2 if GPU else 10))
    few = asked(dataset, count)
    tokenizer = tokenizers.train_tokenizer(dict.fromkeys(text for pair in texts_of(many) for text in pair), VOCABULARY)
    pairs, all_pairs = texts_of(few), texts_of(many)
    with tempfile.TemporaryDirectory() as folder:
        ranker, (peer, *halves) = models(tokenizer, folder)
    found = {}
    options = {"batch_size": given.batch_size, "show_progress_bar": False}
    sides = {
        "ours": lambda: found.update(ours=ranker.score(few, progress=False)["score"].to_numpy()),
        "peer": lambda: found.update(peer=peer.predict(pairs, **options)),
    }
    if halves:
        sides["peer_in_bfloat16"] = lambda: halves[0].predict(pairs, **options)
    tokenising = {
        "ours": lambda: tokenise_ours(tokenizer, many),
        "peer": lambda: tokenise_theirs(peer, all_pairs, given.batch_size),
    }
    ranker.score(few[:5], progress=False), peer.predict(pairs[:50], **options)
    for side in sides.values() if GPU else ():  # whose first time through anything is slow
        side()
    wall, processor = side_by_side.seconds(sides, rounds)
    tokens, _ = side_by_side.seconds(tokenising, rounds)
    logits = np.asarray(found["peer"], np.float64)
    ratio = side_by_side.ratios(wall["ours"], wall["peer"])
    measured = {
        **({"against_bfloat16": side_by_side.ratios(wall["ours"], wall["peer_in_bfloat16"])} if GPU else {}),
        "by_processor_time": side_by_side.ratios(processor["ours"], processor["peer"]),
        "tokenising": side_by_side.ratios(tokens["ours"], tokens["peer"])
        | {"goal": TOKENISING_GOAL, "pairs": len(all_pairs)},
        "pairs_a_second": side_by_side.spread(len(pairs) / second for second in wall["ours"]),
        "peer_pairs_a_second": side_by_side.spread(len(pairs) / second for second in wall["peer"]),
        "largest_difference": float(f"{np.abs(logits[:, 1] - logits[:, 0] - found['ours']).max():.2g}"),
        "spread_of_scores": float(f"{found['ours'].std():.2g}"),
        "dataset": dataset,
        "pairs": len(pairs),
        "different_texts": len({text for pair in pairs for text in pair}),
        "model": {"layers": LAYERS, "hidden": HIDDEN, "vocabulary": VOCABULARY},
        "batch_size": given.batch_size,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "quick": given.quick,
    }
    side_by_side.show(side_by_side.headline("scoring", GPU_GOAL if GPU else GOAL, {"peer": ratio}, **measured))


if __name__ == "__main__":
    main()
