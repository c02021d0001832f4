"""Small inputs that many tests share: made-up documents, a tokenizer trained on them, an index of them."""

import importlib
import json
import os
import random
import signal
from importlib import metadata
from pathlib import Path

# One thread, here and in every process that a test starts, set before torch is imported: the bytes of a sum depend on how many share it.
os.environ["OMP_NUM_THREADS"] = "1"
# No test asks the network: without one, huggingface_hub tries for 23 seconds before it gives up.
os.environ["HF_HUB_OFFLINE"] = "1"

# A shell's background job ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

from asutil.io import hub

from .nodes import nodes

__all__ = ["nodes"]

# A busy machine is no failure: laws are checked without a clock.
settings.register_profile("asutil", deadline=None)
settings.load_profile("asutil")

# Begun first, so that no worker is left with them at the end: these build books, run notebooks and start processes.
LONG = (
    *("test_book", "test_notebooks", "test_processes", "test_resume", "test_loop", "test_snakefile", "test_pages", "test_profiles"),
    *("test_embed_runs", "test_storage", "test_launch", "test_kernels", "test_electra", "test_packing"),
)
WORDS = (
    "river mountain engine paper signal garden winter theory kernel harbour violin matrix copper "
    "lantern bridge orbit forest market tensor glacier museum anchor pepper canyon saddle meadow"
).split()


def made_up_documents(count=30, seed=0, repeated=0.0, paragraphs=(1, 7), sentences=(1, 9)):
    """Documents as lists of paragraphs of sentences; a share of the sentences is one and the same."""
    draw = random.Random(seed)

    def sentence():
        if draw.random() < repeated:
            return "This very sentence stands in many places of the corpus, again and again."
        words = [draw.choice(WORDS) for _ in range(draw.randint(9, 16))]
        return " ".join(words).capitalize() + f" {draw.randint(0, 10**6)}."

    return [[[sentence() for _ in range(draw.randint(*sentences))] for _ in range(draw.randint(*paragraphs))] for _ in range(count)]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.fixture
def on_hub(tmp_path, monkeypatch):
    """A hub on this machine instead of a mirror: a folder for its repositories, and the list of what it was asked."""
    from tests.io.fake_hub import serving

    monkeypatch.delenv(hub.MIRROR, raising=False)
    monkeypatch.setattr(hub, "commits", {})
    with serving(tmp_path / "hub", monkeypatch, tmp_path / "hub_cache") as asked:
        yield tmp_path / "hub", asked


class Stopping:
    """Batches of a run that is stopped before a step."""

    def __init__(self, batches, at):
        self.batches, self.at = batches, at

    def __len__(self):
        return len(self.batches)

    @property
    def layout(self):
        return self.batches.layout

    @layout.setter
    def layout(self, layout):
        self.batches.layout = layout

    def __getitem__(self, step):
        if step == self.at:
            raise KeyboardInterrupt
        return self.batches[step]


class Later(Stopping):
    """Batches of a run that goes on at a step: what its checkpoint has is not asked for again, but for the first, which tells the data."""

    def __getitem__(self, step):
        assert step >= self.at or step == 0
        return self.batches[step]


def bytes_of(model):
    """The parameters and buffers of a model."""
    return b"".join(tensor.detach().cpu().numpy().tobytes() for tensor in model.state_dict().values())


def stopped_and_whole(folder, train, batches, at):
    """A training that is stopped before a step and started again ends with the bytes of one that was not.

    Args:
        train: (folder, batches) -> the bytes of a new model after its training, and anything else.
        batches: () -> batches, the same each time.
    Returns: what `train` gave of the whole training, and of the one that was started again.
    """
    whole = train(folder / "whole", batches())
    with pytest.raises(KeyboardInterrupt):
        train(folder / "stopped", Stopping(batches(), at))
    from asutil.training import checkpoints  # imports torch

    at = int(checkpoints.newest_checkpoint(folder / "stopped" / "checkpoints").name.split("-")[1])
    again = train(folder / "stopped", Later(batches(), at))
    assert at and again[0] == whole[0]
    return whole, again


def of_whole_batch(model, batch, total=sum):
    """Loss and gradient of an optimiser batch, by its micro-batches, and how many these are.

    Args:
        total: the parts of the loss -> the loss.
    """
    model.zero_grad()
    each = [total(model.losses(model(micro), micro, batch)) for micro in batch["micro"]]
    sum(each).backward()
    return sum(each).item(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}, len(each)


def run_cells(notebook, given):
    """The names of a notebook whose cells were run here, one after the other, with these parameters."""
    path, names = Path(__file__).parents[1] / "notebooks" / f"{notebook}.ipynb", {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            names |= given if "parameters" in cell["metadata"].get("tags", []) else {}
    return names


@pytest.fixture(scope="session")
def documents():
    return made_up_documents()


@pytest.fixture(scope="session")
def tokenizer(documents):
    from asutil.corpus import tokenizers

    texts = (" ".join(" ".join(p) for p in document) for document in documents)
    return tokenizers.train_tokenizer(texts, vocab_size=400)


@pytest.fixture(scope="session")
def bert_tokenizer():
    """BERT's tokenizer, of letters, digits and WORDS, with token types."""
    from transformers import BertTokenizer

    pieces = (*"abcdefghijklmnopqrstuvwxyz0123456789.", *WORDS)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", *pieces, *(f"##{piece}" for piece in pieces)]
    return BertTokenizer(vocab={word: n for n, word in enumerate(words)})


@pytest.fixture(scope="session")
def tokenizer_of_pydocs(tmp_path_factory):
    """A folder with the tokenizer of models from scratch, which takes seconds: trained once for all processes of tests."""
    from asutil.corpus import tokenizers

    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "tokenizer_of_pydocs"
    tokenizers.tokenizer_for("tiny", "pydocs", folder)
    return folder


@pytest.fixture(scope="session")
def corpus(documents, tokenizer, tmp_path_factory):
    from asutil import corpus

    return corpus.build(documents, tokenizer, tmp_path_factory.mktemp("corpus") / "index", source="made up")


@pytest.fixture(scope="session")
def held_out(tokenizer, tmp_path_factory):
    """An index whose two held-out documents are long enough for every objective, contexts too."""
    from asutil import corpus

    documents = made_up_documents(paragraphs=(4, 7), sentences=(4, 9))
    return corpus.build(documents, tokenizer, tmp_path_factory.mktemp("held out") / "index", source="made up")


@pytest.fixture(scope="session")
def entries():
    """The entries of pydocs, read once."""
    from asutil.pydocs import documents as docstrings

    return list(docstrings.entries())


@pytest.fixture(scope="session")
def _versions_of_the_cards():
    """The packages that the embedded data is read from have the versions that the data cards were written with."""
    lock = (Path(__file__).parents[1] / "requirements.lock").read_text("utf-8").splitlines()
    for name in ("numpy", "scipy", "pandas", "scikit-learn"):
        if f"{name}=={metadata.version(name)}" not in lock:
            pytest.skip(f"{name} {metadata.version(name)} is not the version of the cards")


@pytest.fixture
def directives(monkeypatch):
    """name -> the module of the book's directives that is called so, for this project."""
    monkeypatch.setenv("ASUTIL_PROJECT", str(Path(__file__).resolve().parents[1]))
    return importlib.import_module


def extension(name):
    """A fixture that is a module of the book's directives."""
    return pytest.fixture(lambda directives: directives(name))


@pytest.fixture(scope="session")
def mirror():
    """The folder of real data; a test that needs it is skipped where there is none."""
    if not os.environ.get(hub.MIRROR):
        pytest.skip(f"needs real data: set {hub.MIRROR} to a folder laid out like the hub")
    return os.environ[hub.MIRROR]
