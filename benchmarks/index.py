"""Building the token index on one core and on two, against the bare splitter and tokenizer on the same text.

The peer is the least that has to be done: blingfire on paragraphs that are clean already, then the tokenizer on all sentences. This
project reads, cleans, splits, tokenises, checks, hashes and writes. Memory and bytes a token are those of one build by one worker, each
in a process of its own: of the small corpus, and of 155 MB of Wikipedia where ASUTIL_MIRROR has local/wikipedia_large (not with --quick).

    python benchmarks/index.py [--quick]

The corpus is the first articles of local/wikipedia_large of ASUTIL_MIRROR (of local/wikipedia_small with --quick), else the embedded
pydocs. The ratio goes by the processor's clock, so that what else runs on the machine does not count. Two workers and one build the whole
corpus and go by the wall's: a dozen shards cannot be divided evenly.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core a process on both sides

import itertools
import multiprocessing
import re
import tempfile
import time
from pathlib import Path

import side_by_side
from livekit.blingfire import text_to_sentences

from asutil import corpus
from asutil.corpus import arrays, cleaning, sources, tokenizers
from asutil.io import hub

GOAL, TWO_GOAL = 0.8, 1.8  # of the raw speed of splitter and tokenizer, one worker; two workers of one
MODEL = "ibm-granite/granite-embedding-30m-english"


def build(documents, tokenizer, workers=1):
    with tempfile.TemporaryDirectory() as folder:
        return corpus.build(documents, tokenizer, Path(folder) / "index", workers=workers)


def raw(paragraphs, tokenizer):
    """Sentences and their token ids, and nothing of what makes an index of them."""
    sentences = [sentence for paragraph in paragraphs for sentence in text_to_sentences(paragraph).split("\n")]
    return [
        encoding.ids for encoding in tokenizer.backend_tokenizer.encode_batch_fast(sentences, add_special_tokens=False)
    ]


def memory(start=False) -> int | None:
    """The most memory of this process, in MiB, since it began or was last asked with `start`; None where the system does not say."""
    if start and Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) // 1024 if status.exists() else None


def whole(source, folder) -> dict:
    """One build by one worker: its time, its size and this process's memory. Documents come one after the other, as from any source."""
    tokenizer = tokenizers.tokenizer_for(MODEL if hub.mirror(MODEL) else "tiny", source, folder)
    characters = 0

    def counted():
        nonlocal characters
        for document in sources.documents(source):
            characters += len(document) if isinstance(document, str) else sum(map(len, document))
            yield document

    before, started = memory(start=True), time.perf_counter()
    with tempfile.TemporaryDirectory() as built:
        found = corpus.build(counted(), tokenizer, Path(built) / "index")
        seconds = time.perf_counter() - started
        size = sum((found.folder / f"{name}.npy").stat().st_size for name in arrays.ARRAYS)
    return {
        "corpus": source,
        "characters": characters,
        "seconds": round(seconds, 1),
        "characters_a_second": round(characters / seconds),
        "tokens": found.info["tokens"],
        "bytes_a_token": round(size / found.info["tokens"], 3),
        "peak_memory_mib": memory(),
        "before_the_build_mib": before,
    }


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument(
        "--folder", default="runs/benchmarks", help="where a tokenizer is kept, if one has to be trained"
    )
    given = parser.parse_args()
    real = {size: f"local/wikipedia_{size}" for size in ("small", "large") if hub.mirror(f"local/wikipedia_{size}")}
    source = (real.get("large") or real.get("small") or "pydocs") if not given.quick else real.get("small") or "pydocs"
    tokenizer = tokenizers.tokenizer_for(MODEL if hub.mirror(MODEL) else "tiny", source, given.folder)
    whole_corpus = list(itertools.islice(sources.documents(source), 450 if given.quick else None))
    documents = whole_corpus[:3000]
    paragraphs = [paragraph for document in documents for paragraph in cleaning.clean(document)]
    size, rounds = sum(map(len, paragraphs)), given.rounds or (2 if given.quick else 3)
    sides = {
        "raw": lambda: raw(paragraphs, tokenizer),
        "one": lambda: build(documents, tokenizer),
    }
    workers = {number: lambda number=number: build(whole_corpus, tokenizer, number) for number in (1, 2)}
    _, processor = side_by_side.seconds(sides, rounds)
    wall, _ = side_by_side.seconds(workers, rounds)
    ratio = side_by_side.ratios(processor["one"], processor["raw"])
    measured = {
        "two_workers_against_one": side_by_side.ratios(wall[2], wall[1]) | {"goal": TWO_GOAL},
        "characters_a_second": side_by_side.spread(size / second for second in processor["one"]),
        "raw_characters_a_second": side_by_side.spread(size / second for second in processor["raw"]),
        "corpus": source,
        "characters": size,
        "rounds": rounds,
        "quick": given.quick,
    }
    with multiprocessing.get_context("spawn").Pool(
        1, maxtasksperchild=1
    ) as pool:  # a fresh process each: its peak is its own
        measured["build"] = pool.apply(whole, (real.get("small") or "pydocs", given.folder))
        if "large" in real and not given.quick:
            measured["large_build"] = pool.apply(whole, (real["large"], given.folder))
    side_by_side.show(side_by_side.headline("index", GOAL, {"raw": ratio}, **measured))


if __name__ == "__main__":
    main()
