"""Rankers by name: fine-tuned models, cross-encoders of others, BM25; and their scores for a data set."""

import hashlib
import logging
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .. import io, metrics, models, tasks
from ..data import baselines
from ..io import disk, hub, spelling
from . import base

CROSS_ENCODERS = ("ForSequenceClassification", "ForCausalLM")  # how the names of models end that read a pair of texts
WORDS = ("bm25", "random")  # what ranks without a model, here or in `mine`
WEIGHTS = "ranker's weights"  # among what kept scores are known by; older ones have none
EMBEDS = "a run of notebooks/embed.ipynb, a model of sentence-transformers, or an encoder such as bert"
log = logging.getLogger(__name__)


class Bm25(base.BaseRanker):
    """BM25 (k1 1.5, b .75) of lower-cased words.

    Document frequencies are counted over all candidates that `score` gets, over those of one question in `rank`, `answer` and `calibrate`.
    """

    counts_words = True

    def _window(self, questions: list, bar) -> pd.DataFrame:
        pairs = base.pairs_of(questions)
        texts = [candidate.text for _, candidate in pairs]
        sizes = [len(question.candidates) for question in questions]
        scores = baselines.bm25([question.text for question in questions], texts, sizes)
        bar.update(len(pairs))
        return base.rows_of(pairs).assign(score=scores.astype(np.float32))

    def _identity(self) -> str:
        return "bm25"


class Fusion(base.BaseRanker):
    """Reciprocal rank fusion of rankers: no score is compared with another ranker's, only the ranks are.

    s(q, c) = sum over rankers of 1 / (60 + rank(q, c)), ranks from 1 on; equal scores have their mean rank
    Cormack, Clarke and Buettcher, 2009: Reciprocal rank fusion outperforms Condorcet and individual rank learning methods.
    """

    def __init__(self, rankers: list[base.BaseRanker]):
        self.rankers = rankers
        self.reads_contexts = any(ranker.reads_contexts for ranker in rankers)
        self.counts_words = any(ranker.counts_words for ranker in rankers)

    def require_contexts(self, contexts: list[tuple] | None) -> None:
        for ranker in self.rankers:
            ranker.require_contexts(contexts if ranker.reads_contexts or not self.reads_contexts else None)

    def _window(self, questions: list, bar) -> pd.DataFrame:
        tables = [ranker._window(questions, tqdm(disable=True)) for ranker in self.rankers]
        numbers = np.repeat(np.arange(len(questions)), [len(question.candidates) for question in questions])
        ranks = [table["score"].groupby(numbers).rank(ascending=False) for table in tables]
        bar.update(len(numbers))
        fused = sum(1 / (60 + each) for each in ranks).astype(np.float32)
        return base.rows_of(base.pairs_of(questions)).assign(score=fused)

    def _identity(self) -> str:
        return "+".join(ranker._identity() for ranker in self.rankers)


def load_ranker(name: str | Path, device: str | None = None, prompts: dict[str, str] | None = None) -> base.BaseRanker:
    """A model, ready to rank.

    `model.rank(question, candidates, contexts=None, calibrated=False)` gives [(candidate number, score)], best first;
    `model.answer(question, candidates)` the best one, or None below the threshold of `model.calibration`.

    Args:
        name: "bm25"; name or folder of a finished run; a folder or hub id (mirror first) of a model that was saved
            here, of a cross-encoder that `sentence_transformers.CrossEncoder` opens without code of its own and that
            has one or two logits (cross-encoder/ms-marco-MiniLM-L6-v2, one made of modules, a causal language model),
            of an encoder of sentence-transformers, or of an encoder alone, whose last layer is averaged (with a warning); several
            of them joined by plus signs (`bm25+owner/name`) are fused by their ranks.
        device: "cpu" or "cuda"; default: a GPU where there is one.
        prompts: of an encoder of sentence-transformers that was trained with prompts and does not keep them:
            `{"query": "query: ", "document": "passage: "}`; default: those that it keeps.
    Returns: a `rank.Ranker`; a `nearest.Nearest` for a model that embeds each text by itself, which ranks by the
        similarity that it was saved with, or by cosine; a `cross_encoder.CrossEncoder` for one of others; a `Bm25`; a `Fusion`.
    Raises: FileNotFoundError for an unknown name; ValueError for a run that learnt something else, for models of other
        kinds, for prompts of a model that takes none, and for pickled or damaged weights.
    """
    ranker = _loaded(name, device, prompts)
    _require_prompts_read(name, getattr(ranker, "encoder", None), prompts)
    ranker.name = str(name)
    return ranker


def _require_prompts_read(name, encoder, prompts) -> None:
    if prompts and not isinstance(encoder, models.elsewhere.SentenceTransformerEncoder):
        raise ValueError(f"{name}: only an encoder of sentence-transformers takes prompts")


def _loaded(name, device, prompts) -> base.BaseRanker:
    if name == "bm25":
        return Bm25()
    if len(parts := hub.joined(name, _exists)) > 1:
        return Fusion([load_ranker(part, device) for part in parts])
    path, device = _path(name), device or models.scoring.device()
    folder = io.sentence_transformer.folder(name)
    if _embeds(folder):  # on the hub, too: its settings are in the files
        return tasks.nearest.Nearest(models.embedder.load(path if Path(path).exists() else folder, device))
    kind = io.sentence_transformer.kind_of(folder)
    if kind == "SentenceTransformer":
        return tasks.nearest.Nearest(models.elsewhere.SentenceTransformerEncoder(name, None, device, prompts))
    if kind not in (None, "CrossEncoder"):
        raise ValueError(f"{name}: a SentenceTransformer or CrossEncoder is expected, got a {kind}")
    if kind == "CrossEncoder" or _reads_pairs(name, folder):
        return tasks.cross_encoder.load(name, folder, device)
    return _fine_tuned(name, folder, device)


def _embeds(path: str | Path) -> bool:
    """Whether a model was trained to embed last; the config of one that was fine-tuned after that may still say so."""
    saved = io.checkpoints.saved_model(path)
    own = saved is None or saved.trained_by in (None, "embed")
    return own and models.settings.saved(path, models.embedder.Embedding) is not None


def _exists(name: str) -> bool:
    try:
        return Path(io.checkpoints.source(name)).exists()
    except FileNotFoundError:
        return False


def _path(name: str | Path) -> str:
    """The path of `checkpoints.source`. Raises: ValueError for a misspelt name."""
    text, known = str(name), ("bm25", *hub.EMBEDDED)
    plain = "/" not in text and text not in known and not Path(text).exists()
    if advice := plain and spelling.nearest(text.lower(), known, 0.7):
        raise ValueError(f"{spelling.printable(text)}: no such ranker, folder or run{advice}")
    return io.checkpoints.source(name)


def _reads_pairs(name: str | Path, folder: Path) -> bool:
    """Whether a model of transformers is one that sentence-transformers makes a cross-encoder of.

    Raises: ValueError for a config.json that cannot be read, and for a model that nothing here makes a ranker of.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    config = io.checkpoints.from_pretrained(AutoConfig, folder, name)
    architectures = config.architectures or []
    if not isinstance(architectures, list) or not all(isinstance(architecture, str) for architecture in architectures):
        raise ValueError(f"{name}: architectures in config.json is a list of names, got {config.architectures!r}")
    if any(architecture.endswith(CROSS_ENCODERS) for architecture in architectures):
        return True
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not (folder / io.checkpoints.HEAD).is_file():
        raise ValueError(
            f"{name}: an encoder such as bert, a cross-encoder (...ForSequenceClassification) or a causal language model "
            f"(...ForCausalLM) is expected, got a {config.model_type} model ({', '.join(architectures) or 'no architecture'})"
        )
    return False


def load_encoder(name: str | Path, prompts: dict[str, str] | None = None):
    """A model that embeds each text by itself: `encode(texts) -> (N, H)`, `dimensions`, `identity`.

    Args:
        name: a run of notebooks/embed.ipynb or its saved model; a folder or hub id of a model of sentence-transformers; any other
            model that `embedder.untrained` reads, whose last layer is averaged.
        prompts: as in `load_ranker`.
    Raises: FileNotFoundError for an unknown name; ValueError for a model of another kind, such as a cross-encoder.
    """
    encoder = _encoder(name, prompts)
    _require_prompts_read(name, encoder, prompts)
    return encoder


def _encoder(name, prompts):
    if name in WORDS:
        raise ValueError(f"{name} embeds no text: {EMBEDS} is expected")
    path = _path(name)
    folder = io.sentence_transformer.folder(name)
    if _embeds(folder):
        return models.embedder.load(path if Path(path).exists() else folder)
    saved = io.checkpoints.saved_model(path)
    if saved and saved.trained_by not in (None, "pretrain"):
        raise ValueError(f"{name}: expected a model that embeds each text by itself, got one of {saved.trained_by}")
    kind = io.sentence_transformer.kind_of(folder)
    if kind == "SentenceTransformer":
        return models.elsewhere.SentenceTransformerEncoder(name, None, prompts=prompts)
    if kind is not None or _reads_pairs(name, folder):
        reads = f"a {kind or 'model that reads question and candidate together'}"
        raise ValueError(f"{name}: expected a model that embeds each text by itself, got {reads}")
    return models.embedder.untrained(name)


def _fine_tuned(name: str | Path, folder: Path, device: str) -> base.BaseRanker:
    """The ranker of a model that was saved here, in a finished run or a folder; of an encoder alone, the mean of its tokens."""
    from .. import heads  # it loads torch, which BM25 does not need

    model, saved = models.loading.load(name), io.checkpoints.saved_model(folder)
    head = model.HEADS[0]
    fine_tune = f"fine-tune it first (notebooks/finetune.ipynb -p model {name})"
    if head not in model.fresh and not (folder / io.checkpoints.HEAD).is_file():
        return tasks.cross_encoder.load(name, folder, device)  # a config.json without the architecture of its weights
    if head in model.fresh and head != "pair":
        raise ValueError(f"{name} has no {head} head: {fine_tune}")
    if head in model.fresh:
        log.warning(
            "%s: an encoder without a head that ranks; candidates are ranked by the cosine of the mean of its tokens' vectors, untrained",
            name,
        )
        return tasks.nearest.Nearest(models.embedder.untrained(name, device=device))
    if saved and saved.trained_by == "pretrain":
        raise ValueError(f"{name} learnt its pre-training task, not to rank: {fine_tune}")
    if head in ("ie_1", "ae_1", *heads.POOLED):
        raise ValueError(f"{name} gives one label for a claim and all its evidence: it ranks nothing")
    ranker = tasks.rank.Ranker(model.to(device).eval(), saved and saved.max_tokens)
    if saved is None and not model.joint:
        log.warning(
            "%s does not say how long its texts were in training: read up to %d tokens; `load_ranker(name).max_tokens = %d` reads more, "
            "and an export keeps its length",
            *(name, ranker.max_tokens, 2 * ranker.max_tokens),
        )
    if saved and saved.calibration:
        ranker.calibration = metrics.calibration.Calibration(**saved.calibration)
    return ranker


def scored(name: str | Path, splits: Mapping[str, Iterable], folder: str | Path):
    """The scores of a ranker for some splits, and what they took; kept in a folder, which a second call reads.

    A stopped scoring continues after its last finished window.
    Args:
        name: as in `load_ranker`. splits: name of a split -> its questions; the last one is timed.
        folder: of this ranker and these questions alone.
    Returns: split -> DataFrame as `Ranker.score` gives it; {"parameters", "weights_mb", "seconds_a_question"}, the
        last one None where the scoring was continued.
    Raises: ValueError for a folder of another ranker or of other questions.
    """
    folder = Path(folder)
    if not (folder / "figures.json").is_file():
        _score(name, splits, folder)
    figures = disk.read_json(folder / "figures.json")
    came, kept = _scored_from(name, splits), figures.pop("of", None)
    if kept and (
        wrong := [what for what, own in came.items() if kept.get(what, own if what == WEIGHTS else None) != own]
    ):
        raise ValueError(f"{folder}: its scores are not those of this {wrong[0]}: take another folder")
    sha256 = figures.pop("sha256")
    tables = {split: pd.read_parquet(disk.check(folder / f"{split}.parquet", sha256[split])) for split in splits}
    return tables, figures


def _scored_from(name: str | Path, splits: Mapping[str, Iterable]) -> dict:
    """What kept scores are known by: the ranker without the folders that it lies in, its weights where they are, a hash of each split."""
    parts = [Path(io.checkpoints.source(part)) for part in hub.joined(name, _exists) if _exists(part)]
    weights = [hub.sha256(file) for part in parts for file in sorted(part.rglob("*.safetensors"))]
    known = {"ranker": Path(name).name} | ({WEIGHTS: weights} if weights else {})
    for split, questions in splits.items():
        windows = "".join(base.window_hash("", window, True) for window in base.windows_of(questions))
        known[f"{split} split"] = hashlib.sha256(windows.encode()).hexdigest()
    return known


def _score(name: str | Path, splits: Mapping[str, Iterable], folder: Path) -> None:
    continued, ranker, sha256 = folder.exists(), load_ranker(name), {}
    for split, questions in splits.items():
        began = time.perf_counter()
        scores = ranker.score(questions, folder=folder / "windows")
        seconds = (time.perf_counter() - began) / len(questions)
        write = lambda path, scores=scores: scores.to_parquet(path, index=False)
        sha256[split] = hub.sha256(disk.atomically(folder / f"{split}.parquet", write))
    weights = [tensor for module in _modules(ranker) for tensor in module.parameters()]
    figures = {
        "of": _scored_from(name, splits),
        "parameters": sum(tensor.numel() for tensor in weights),
        "weights_mb": sum(tensor.numel() * tensor.element_size() for tensor in weights) / 1e6,
        "seconds_a_question": None if continued else seconds,
    }
    disk.write_json(folder / "figures.json", figures | {"sha256": sha256})
    shutil.rmtree(folder / "windows", ignore_errors=True)


def _modules(ranker: base.BaseRanker) -> list:
    """The networks of a ranker; none of BM25."""
    if isinstance(ranker, Fusion):
        return [module for part in ranker.rankers for module in _modules(part)]
    encoder = getattr(ranker, "encoder", None)
    parts = getattr(ranker, "model", None), encoder, getattr(encoder, "model", None)
    return [part for part in parts if hasattr(part, "parameters")]
