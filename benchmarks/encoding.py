"""Embedding texts: this project's Embedder.encode against sentence-transformers' SentenceTransformer.encode, same weights, same texts.

The model is a small BERT of random weights with mean pooling (BERT-base's shape on a GPU), or `--model`, whose backbone is then mean
pooled. sentence-transformers reads the folder that this project saves. On a CPU both sides compute in float32 and the vectors are equal
to 1e-5 of their length; on a GPU this project's body is bfloat16, and sentence-transformers is measured as it comes and in bfloat16.

    python benchmarks/encoding.py [--quick]
    python benchmarks/encoding.py --model sentence-transformers/all-MiniLM-L6-v2

The texts are candidates of WikiQA where ASUTIL_MIRROR has it, else of the embedded pydocs, each once, in the order that they stand in.
"""

import itertools
import tempfile

import numpy as np
import side_by_side
import torch
import transformers
from cpu_step import peak
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from asutil.corpus import tokenizers
from asutil.data import answers
from asutil.io import hub
from asutil.models import embedder

GOAL, GPU_GOAL, MAX_TOKENS = 1.2, 2, 128
GPU = torch.cuda.is_available()
LAYERS, HIDDEN, VOCABULARY = (12, 768, 30522) if GPU else (4, 256, 8192)


def candidates(dataset: str, count: int) -> list[str]:
    """The first different candidates of the training split."""
    texts = (candidate.text for question in answers.load_answers(dataset)["train"] for candidate in question.candidates)
    return list(itertools.islice(dict.fromkeys(itertools.islice(texts, 4 * count)), count))


def random_bert(texts: list[str], folder) -> str:
    tokenizer = tokenizers.train_tokenizer(texts, VOCABULARY)
    shape = {
        "num_hidden_layers": LAYERS,
        "hidden_size": HIDDEN,
        "num_attention_heads": HIDDEN // 64,
        "intermediate_size": 4 * HIDDEN,
    }
    torch.manual_seed(0)
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    BertModel(BertConfig(initializer_range=0.05, **shape, **ids)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def models(name: str) -> tuple[embedder.Embedder, list[SentenceTransformer]]:
    """The same weights and mean pooling on every side; on a GPU the peer in float32 and in bfloat16."""
    settings = embedder.settings_of("untrained", "mean", MAX_TOKENS)
    model = embedder.start_from(name, tokenizers.load_tokenizer(name), settings).to("cuda" if GPU else "cpu").eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        kinds = ("float32", "bfloat16") if GPU else ("float32",)
        return model, [SentenceTransformer(str(folder), model_kwargs={"dtype": kind}) for kind in kinds]


def forward_operations(model: embedder.Embedder, texts: list[str]) -> float:
    """Floating-point operations of the products of a forward pass on the real tokens: of its linear layers and of attention."""
    config = model.backbone.config
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    ids = model.tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
    lengths = np.array([len(row) for row in ids], float)
    return layers * float(lengths.sum() * 2 * (4 * width**2 + 2 * width * inner) + (lengths**2).sum() * 4 * width)


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--model", help="a folder, a run or a hub id, in place of random weights")
    parser.add_argument(
        "--batch-size", type=int, default=128 if GPU else 32, help="sentence-transformers'; on a CPU its own default"
    )
    given = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    rounds = given.rounds or (3 if given.quick else 5)
    dataset = "wikiqa" if hub.mirror("microsoft/wiki_qa") else "pydocs"
    texts = candidates(dataset, (400 if given.quick else 2000) * (10 if GPU else 1))
    with tempfile.TemporaryDirectory() as folder:
        model, (peer, *halves) = models(given.model or random_bert(texts, folder))
    found, options = {}, {"batch_size": given.batch_size, "show_progress_bar": False}
    sides = {
        "ours": lambda: found.update(ours=model.encode(texts)),
        "peer": lambda: found.update(peer=peer.encode(texts, **options)),
    }
    if halves:
        sides["peer_in_bfloat16"] = lambda: halves[0].encode(texts, **options)
    model.encode(texts[:50]), peer.encode(texts[:50], **options)
    for side in sides.values() if GPU else ():  # whose first time through anything is slow
        side()
    wall, processor = side_by_side.seconds(sides, rounds)
    apart = np.linalg.norm(found["ours"] - found["peer"], axis=1) / np.linalg.norm(found["peer"], axis=1)
    if GPU:
        on_this_device = {"against_bfloat16": side_by_side.ratios(wall["ours"], wall["peer_in_bfloat16"])}
    else:
        share = forward_operations(model, texts) / np.median(wall["ours"]) / peak("fp32")
        on_this_device = {"share_of_matrix_product": round(share, 3)}
    measured = {
        **on_this_device,
        "by_processor_time": side_by_side.ratios(processor["ours"], processor["peer"]),
        "texts_a_second": side_by_side.spread(len(texts) / second for second in wall["ours"]),
        "peer_texts_a_second": side_by_side.spread(len(texts) / second for second in wall["peer"]),
        "largest_relative_difference": float(f"{apart.max():.2g}"),
        "dataset": dataset,
        "texts": len(texts),
        "model": given.model or f"random BERT, {LAYERS} layers of {HIDDEN}",
        "max_tokens": MAX_TOKENS,
        "batch_size": given.batch_size,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "quick": given.quick,
    }
    ratio = side_by_side.ratios(wall["ours"], wall["peer"])
    side_by_side.show(side_by_side.headline("encoding", GPU_GOAL if GPU else GOAL, {"peer": ratio}, **measured))


if __name__ == "__main__":
    main()
