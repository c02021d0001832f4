"""The examples of all objectives, and batches of every kind, are those of earlier versions: a record names seeds, not examples.

`python -m tests.sampling.test_pin` writes `examples.json` again; new objectives add lines to it and change none.
"""

import contextlib
import hashlib
import json
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from asutil import corpus as c
from asutil import sampling
from asutil.corpus import tokenizers
from asutil.inputs import packing
from asutil.sampling import Sampler
from tests.trust import processes
from tests.trust.laws import numbered

from ..conftest import made_up_documents

FILE = Path(__file__).with_name("examples.json")
COLUMNS = ("ranges", "paragraphs", "labels", "kinds", "groups")
SEEDS = ((7, 2), (0, 0))
OPTIONS = [{}, {"hard_negatives": 1, "negatives": 3}, {"hard_negatives": 0}, {"labels": "shuffled"}, {"lengths": "even"}]
OPTIONS += [{"same_paragraph_before": True}, {"positives": 2, "max_sentences": 2}, {"max_tokens": 60}]
FIRST = {"ssp": "c7472b33", "sp": "30b30b46", "psd": "c1d960cf", "nsp": "0f78705a", "sop": "4ae564f2", "sdc": "27e0dcee", "dpc": "6c680789"}
FIRST |= {"dslc": "a234df4d", "mspp": "aaf4a60b", "all": "33e4254e", "context_all": "a888cf9b"}  # D-120: the last two in equal parts


def index(folder: Path, tokenizer) -> c.Corpus:
    """An index whose documents are held out by their number, some of whose sentences repeat."""
    documents = made_up_documents(60, seed=1, repeated=0.05, paragraphs=(2, 7), sentences=(2, 9))
    return by_number(c.build(documents, tokenizer, folder / "index"))


def by_number(corpus: c.Corpus) -> c.Corpus:
    corpus = c.Corpus.open(corpus.folder)
    corpus.document_hashes = numbered(corpus.info["documents"])
    return corpus


def hashes(corpus: c.Corpus) -> dict[str, str]:
    """Objective, seed, epoch, split and options -> a hash of all examples as ranges, and one of the token ids of the first of them."""
    made = {}
    for objective in sampling.OBJECTIVES:
        for options in OPTIONS:
            for (seed, epoch), split in [*((pair, "train") for pair in SEEDS), (SEEDS[0], "validation")]:
                with contextlib.suppress(ValueError):  # an option of other objectives
                    sampler = Sampler(corpus, objective, seed, epoch, split, **options)
                    spans = sampler.spans(np.arange(len(sampler)))
                    batch = sampler.batch(np.arange(min(len(sampler), 40)))
                    words = [objective, f"seed={seed} epoch={epoch} {split}", *(f"{key}={value}" for key, value in options.items())]
                    made[" ".join(words)] = f"{digest(spans, *COLUMNS)} {digest(batch, 'input_ids', 'lengths', 'token_type_ids', 'labels')}"
    with mock.patch.object(packing, "MULTIPLE", 32):  # as without a GPU
        for name, batches in processes.batches(corpus, 7).items():
            steps = [batches[step] for step in range(len(batches))]
            for step in steps:
                del step["content"]  # a checksum of ids and labels
            made[f"batches of {name}"] = processes.digest(steps)[:16]
    return made


def digest(table, *columns: str) -> str:
    """The beginning of a SHA-256 of some columns; absent ones have no bytes."""
    arrays = [np.asarray(getattr(table, name)) for name in columns if getattr(table, name) is not None]
    return hashlib.sha256(b"".join(array.astype("<i8").tobytes() for array in arrays)).hexdigest()[:16]


@pytest.fixture(scope="module")
def found(tokenizer, tmp_path_factory):
    return hashes(index(tmp_path_factory.mktemp("pin"), tokenizer))


def test_examples_and_batches_are_those_of_earlier_versions(found):
    pinned = json.loads(FILE.read_text("utf-8"))
    assert {name: value for name, value in found.items() if name in pinned} == pinned
    assert not found.keys() - pinned.keys(), "new objectives: write examples.json again, see above"


@pytest.mark.parametrize(
    ("objective", "options", "expected"),
    [*((name, {}, made) for name, made in FIRST.items()), ("mspp", {"positives": 2, "max_sentences": 2}, "d060305f")],
)
def test_examples_are_those_of_the_first_version(corpus, objective, options, expected):
    """Hashes that were taken when an objective was new, typed by hand."""
    sampler = Sampler(by_number(corpus), objective, seed=7, epoch=2, **options)
    assert digest(sampler.spans(np.arange(len(sampler))), *COLUMNS)[:8] == expected


if __name__ == "__main__":
    texts = (" ".join(" ".join(p) for p in document) for document in made_up_documents())
    with tempfile.TemporaryDirectory() as folder:
        lines = json.dumps(hashes(index(Path(folder), tokenizers.train_tokenizer(texts, vocab_size=400))), indent=1)
    FILE.write_text(lines + "\n", "utf-8")
