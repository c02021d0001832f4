"""Files that would run code when they are opened, put where the package reads: pickles, and the Python of a model's folder."""

import ast
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aslab import task_difficulty
from asutil import corpus
from asutil.corpus import arrays, sources, tokenizers
from asutil.data import answers, claims, long_questions, tables
from asutil.io import disk, hub
from asutil.models import embedder, finder, loading
from asutil.models.elsewhere import InferSent, SentenceTransformerEncoder
from asutil.models.word_vectors import WordVectors
from asutil.tasks import rankers
from asutil.training import checkpoints as saved
from tests.trust import Broken, must

ROOT = Path(__file__).resolve().parents[2]
CALLS = {"trust_remote_code": True, "weights_only": False, "allow_pickle": True, "use_safetensors": False}  # what no source may say
LOADERS = "pickle.load pickle.loads torch.load joblib.load dill.load pd.read_pickle pandas.read_pickle yaml.unsafe_load".split()


class Marked:
    """What writes a marker file when it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return exec, (f"open({str(self.marker)!r}, 'a').close()",)


class Trap:
    """Files that write a marker when they are opened, and whether it was written."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True)
        self.folder, self.marker, self.refused = folder, folder / "marker", 0
        self.bytes = pickle.dumps({"weights": Marked(self.marker)})
        self.code = f"open({str(self.marker)!r}, 'a').close()\nclass Own: pass\n"
        pickle.loads(self.bytes)
        must(self.marker.exists(), "a pickle of ours, opened, should write its marker")
        self.marker.unlink()

    def array(self, path: Path) -> Path:
        """An .npy file with objects in it."""
        np.save(path, np.array([Marked(self.marker)] * 2, dtype=object), allow_pickle=True)
        return path

    def refuses(self, what: str, read: Callable, *words: str, error=ValueError) -> None:
        """Raises: Broken where `read` reads, runs what it reads, or refuses it without these words."""
        try:
            read()
        except error as refusal:
            said = str(refusal)
            must(all(word in said for word in words), f"{what}: a refusal that says {', '.join(words)} was promised, got {said[:300]}")
        except Exception as other:
            raise Broken(f"{what}: refused with a ValueError was promised, got {type(other).__name__}: {str(other)[:300]}") from other
        else:
            raise Broken(f"{what}: read, which was to be refused")
        self.inert(what)

    def inert(self, what: str) -> None:
        """Raises: Broken where the marker was written."""
        must(not self.marker.exists(), f"{what}: what it holds was run")
        self.refused += 1

    def copied(self, folder: Path, name: str) -> Path:
        return Path(shutil.copytree(folder, self.folder / name))


def refused(folder: Path) -> int:
    """Pickles in every place that is read; the number of them."""
    trap = Trap(folder)
    tokenizer, model, documents = _made(trap)
    _weights(trap, model, tokenizer)
    _checkpoints(trap)
    _encoders(trap, model, tokenizer)
    _indexes(trap, tokenizer, documents)
    _data(trap)
    return trap.refused


def _made(trap: Trap):
    """A tokenizer, the folder of a small model, and the documents behind them."""
    texts = [f"The {word} of a {other} stands by the river number {n}." for n, word in enumerate("bcdfgh") for other in "klmnpq"]
    tokenizer = tokenizers.train_tokenizer(texts, vocab_size=300)
    loading.tiny(tokenizer).save(trap.folder / "model")
    return tokenizer, trap.folder / "model", [[texts[n : n + 3], texts[n + 3 : n + 6]] for n in range(0, 36, 6)]


def _weights(trap: Trap, model: Path, tokenizer) -> None:
    triplet = embedder.settings_of("triplet", "mean", 64, margin=1.0, distance="plain", selection="all")
    finding = finder.Finding(["span"], "plain", 64, {})
    for name in ("pytorch_model.bin", "model.pt", "weights.ckpt", "model.pkl"):
        place = trap.copied(model, name.replace(".", "_"))
        (place / "model.safetensors").unlink()
        (place / name).write_bytes(trap.bytes)
        readers = {
            "encoders.load": lambda place=place: loading.load(place),
            "encoders.load_ranker": lambda place=place: rankers.load_ranker(place),
            "embedding.start_from": lambda place=place: embedder.start_from(place, tokenizer, triplet),
            "evidence_models.start_from": lambda place=place: finder.start_from(place, tokenizer, finding),
            "task_difficulty.load": lambda place=place: task_difficulty.load(str(place), "nsp"),
        }
        for what, read in readers.items():
            trap.refuses(f"{name} by {what}", read, "can run any code when it is opened, so it is refused", 'python -c "')
    for name in ("model.safetensors", "head.safetensors"):
        place = trap.copied(model, f"disguised_{name}")
        (place / name).write_bytes(trap.bytes)
        trap.refuses(f"a pickle that is called {name}", lambda place=place: loading.load(place), "damaged")
    beside = trap.copied(model, "beside")
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "rng_state.pth"):
        (beside / name).write_bytes(trap.bytes)
    loading.load(beside)
    trap.inert("pickles beside model.safetensors")


def _checkpoints(trap: Trap) -> None:
    for name in ("rng_state.pth", "optimizer.pt", "scheduler.pt", "training_args.bin", "pytorch_model.bin"):
        folder = trap.folder / f"checkpoints_{name}"
        whole = folder / "checkpoint-2"
        whole.mkdir(parents=True)
        (whole / name).write_bytes(trap.bytes)
        disk.write_json(whole / saved.MARKER, disk.hashes(whole))  # it says that it is whole
        said = f"checkpoint-2/{name}: a pickle can run any code when it is opened, so it is refused", 'python -c "'
        trap.refuses(f"{name} in a checkpoint", lambda place=folder: saved.newest_checkpoint(place), *said)
        (whole / name).rename(folder / name)
        trap.refuses(f"{name} beside checkpoints", lambda place=folder: saved.newest_checkpoint(place), "so it is refused")
        must((folder / name).is_file() and whole.is_dir(), f"{name}: what is refused should be left as it is")


def _encoders(trap: Trap, model: Path, tokenizer) -> None:
    cache = trap.folder / "cache"
    infersent = trap.folder / "infersent"
    infersent.mkdir()
    (infersent / "vectors.vec").write_text("a 1 2\nb 3 4\n")
    (infersent / "infersent2.pkl").write_bytes(trap.bytes)
    trap.refuses("InferSent", lambda: InferSent(infersent, 8, cache), "can run any code", "Convert it once")
    (infersent / "infersent2.safetensors").write_bytes(trap.bytes)
    trap.refuses("InferSent, disguised", lambda: InferSent(infersent, 8, cache), "damaged")
    for name in ("glove.txt", "glove.pkl"):
        (trap.folder / name).write_bytes(trap.bytes)
        trap.refuses(f"{name}, a pickle", lambda name=name: WordVectors(trap.folder / name, cache))
    WordVectors(infersent / "vectors.vec", cache)
    (kept,) = cache.glob("*/vectors.npy")
    trap.refuses("kept word vectors", lambda: WordVectors(infersent / "vectors.vec", trap.array(kept) and cache), "refused: delete it")
    kept.write_bytes(trap.bytes)
    trap.refuses("kept word vectors, a pickle", lambda: WordVectors(infersent / "vectors.vec", cache), "refused: delete it")
    saved = trap.copied(_sentence_transformer(trap, model, tokenizer), "sentence_transformer_bin")
    (saved / "model.safetensors").unlink()
    (saved / "pytorch_model.bin").write_bytes(trap.bytes)
    trap.refuses(
        "sentence-transformers", lambda: SentenceTransformerEncoder(saved, 32), "can run any code when it is opened", 'python -c "'
    )


def _sentence_transformer(trap: Trap, model: Path, tokenizer) -> Path:
    """The folder of an embedder, which sentence-transformers reads."""
    folder = trap.folder / "sentence_transformer"
    if not folder.exists():
        settings = embedder.settings_of("triplet", "mean", 64, margin=1.0, distance="plain", selection="all")
        embedder.start_from(model, tokenizer, settings).save(folder)
    return folder


def _expected(index: Path) -> None:
    """Let corpus.json say that the arrays are what was written: its hashes are not what refuses them."""
    info = disk.read_json(index / "corpus.json")
    disk.write_json(index / "corpus.json", info | {"sha256": {name: hub.sha256(index / f"{name}.npy") for name in info["sha256"]}})


def _indexes(trap: Trap, tokenizer, documents: list) -> None:
    for name in arrays.ARRAYS:
        place = trap.folder / f"index_{name}"
        corpus.build(documents, tokenizer, place, source="made up")
        trap.array(place / f"{name}.npy")
        _expected(place)
        trap.refuses(f"objects in {name}.npy", lambda place=place: corpus.Corpus.open(place), "refused: build the index again")
        (place / f"{name}.npy").write_bytes(trap.bytes)
        _expected(place)
        trap.refuses(f"a pickle as {name}.npy", lambda place=place: corpus.Corpus.open(place), "refused: build the index again")


def _data(trap: Trap) -> None:
    for suffix in hub.PICKLES:
        path = trap.folder / f"data{suffix}"
        path.write_bytes(trap.bytes)
        for what, read in {"questions": answers.load_answers, "documents": lambda path: list(sources.documents(path))}.items():
            said = "a pickle can run any code when it is opened", 'convert it once, there: python -c "'
            trap.refuses(f"{suffix} as {what}", lambda read=read, path=path: read(path), *said)
    readers = {"questions": answers.load_answers, "claims": claims.load_claims, "evidence": long_questions.load_evidence}
    readers["documents"] = lambda path: list(sources.documents(path))
    for suffix in (".pkl", ".parquet", ".tsv", ".jsonl", ".json", ".txt"):
        folder = trap.folder / f"folder{suffix}"
        folder.mkdir()
        for side in answers.SPLITS:
            (folder / f"{side}{suffix}").write_bytes(trap.bytes)
        for what, read in readers.items():
            trap.refuses(
                f"pickles in a folder of {what}, {suffix}", lambda read=read, folder=folder: read(folder), error=(ValueError, OSError)
            )
    for binary in (True, False):
        _extension(trap, trap.folder / "extension.parquet", binary)
    hub_set = trap.folder / "hub_set"
    for name, content in {"train.pkl": trap.bytes, "hub_set.py": trap.code.encode()}.items():
        hub_set.mkdir()
        (hub_set / name).write_bytes(content)
        trap.refuses(f"{name} of a data set of the hub", lambda: next(hub.stream(str(hub_set), "train")), error=OSError)
        shutil.rmtree(hub_set)


def _extension(trap: Trap, path: Path, binary: bool) -> None:
    """A parquet file whose columns name the extension type that pyarrow once unpickled: read as what is stored, or refused."""
    named = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": trap.bytes}
    kind = pa.binary() if binary else pa.string()
    fields = [pa.field(name, kind, metadata=named) for name in ("question", "answer", "label", "text")]
    pq.write_table(pa.table([pa.array(["1"] * 4, pa.string()).cast(kind)] * 4, schema=pa.schema(fields)), path)
    for read in (tables.read_table, lambda path: list(sources.documents(path))):
        if binary:
            trap.refuses("bytes of a pickled extension type", lambda read=read: read(path), "expected")
        else:
            read(path)
            trap.inert("text of a pickled extension type")


# ------------------------------------------------------------------ Python in a model's folder


def remote(folder: Path) -> int:
    """Folders of models that name Python files of their own: refused, or loaded without running them; the number of them."""
    trap = Trap(folder)
    tokenizer, model, _ = _made(trap)
    known = {f"Auto{name}": "own.Own" for name in ("Config", "Model", "ModelForSequenceClassification", "ModelForMaskedLM")}
    for changes in ({}, {"model_type": "own", "architectures": ["Own"]}):
        place = trap.copied(model, f"auto_map_{len(changes)}")
        (place / "own.py").write_text(trap.code)
        _changed(place / "config.json", auto_map=known, **changes)
        _changed(place / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", "own.Own"]}, trust_remote_code=True)
        if changes:
            trap.refuses("a model of its own Python", lambda place=place: loading.load(place), "custom code")
            _changed(place / "tokenizer_config.json", tokenizer_class="Own")
            trap.refuses("a tokenizer of its own Python", lambda place=place: tokenizers.load_tokenizer(place), "custom code")
        else:
            loading.load(place)
            embedder.start_from(place, tokenizer, embedder.settings_of("untrained", "mean", 64))
            trap.inert("a known model with Python beside it")
    saved = _sentence_transformer(trap, model, tokenizer)
    own = [{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]
    for name, change in {"module": own, "auto_map": None}.items():
        place = trap.copied(saved, f"sentence_transformer_{name}")
        (place / "own.py").write_text(trap.code)
        if change:
            (place / "modules.json").write_text(json.dumps(change))
        else:
            _changed(place / "config.json", auto_map=known, model_type="own")
            allowed = {"trust_remote_code": True}
            _changed(place / "sentence_bert_config.json", model_args=allowed, config_args=allowed, tokenizer_args=allowed)
        trap.refuses(f"sentence-transformers with Python, {name}", lambda place=place: SentenceTransformerEncoder(place, 32))
    return trap.refused


def _changed(path: Path, **values) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(known | values), encoding="utf-8")


# ------------------------------------------------------------------ what the sources say


def sources_say_nothing_unsafe() -> int:
    """No source of the project allows a pickle or remote code, read as syntax; the number of sources. Raises: Broken with what it says."""
    folders = ("asutil", "aslab", "benchmarks", "book/_ext", "notebooks")
    files = [path for name in folders for path in sorted((ROOT / name).rglob("*.*")) if path.suffix in (".py", ".ipynb")]
    found = {path.relative_to(ROOT).as_posix(): lines for path in files if (lines := unsafe(path))}
    must(not found, f"no source should allow a pickle or remote code: {found}")
    must(len(files) > 50, f"the sources of the package, the book, notebooks and benchmarks were expected, got {len(files)} files")
    return len(files)


def unsafe(path: Path) -> list[str]:
    """What a source, of Python or a notebook, says that allows a pickle or remote code."""
    return [ast.unparse(node) for tree in _trees(path) for node in ast.walk(tree) if _unsafe(node)]


def _trees(path: Path) -> list[ast.AST]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [ast.parse(text)]
    return [ast.parse("".join(cell["source"])) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def _unsafe(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return _is(node.value, CALLS.get(node.arg, ...))
    if isinstance(node, ast.Dict):
        return any(isinstance(key, ast.Constant) and _is(value, CALLS.get(key.value, ...)) for key, value in zip(node.keys, node.values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        return ast.unparse(node.func) in LOADERS
    return False


def _is(node: ast.AST, value) -> bool:
    return isinstance(node, ast.Constant) and node.value is value and value is not ...
