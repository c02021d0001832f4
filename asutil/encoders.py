"""Encoders: tokenizers that join exactly, and any backbone that AutoModel loads, under its own heads.

Weights are safetensors and nothing else: a pickled checkpoint runs whatever its author put into it when it is opened.
"""

import contextlib
import errno
import hashlib
import inspect
import itertools
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import transformers
from filelock import FileLock
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast, RobertaConfig

from . import cleaning, heads, hub, packing, runs, sources

HEAD = "head.safetensors"
CLASSES = 2
TOKENIZER_DOCUMENTS = 20_000
log = logging.getLogger(__name__)

# ------------------------------------------------------------------ tokenizers


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a hub id, a folder or a finished run, set so that the ids of a text are its sentences' ids joined.

    A byte-level pre-tokenizer is given its prefix space on the backend itself: transformers 5 drops the argument
    `add_prefix_space` where it falls back to its generic class. Text is read as text, also where it spells a special token.

    Raises: FileNotFoundError for an unknown name; ValueError for an unfinished run or a tokenizer that does not join exactly.
    """
    tokenizer = _from_pretrained(AutoTokenizer, source(name), name)
    if not tokenizer.is_fast:
        raise ValueError(f"{name}: a fast tokenizer (tokenizer.json) is expected, got {type(tokenizer).__name__}")
    backend = tokenizer.backend_tokenizer
    if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        options = {"use_regex": backend.pre_tokenizer.use_regex, "trim_offsets": backend.pre_tokenizer.trim_offsets}
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, **options)
        tokenizer.add_prefix_space = tokenizer.init_kwargs["add_prefix_space"] = True  # what save_pretrained writes
    _read_as_text(tokenizer)
    first, second = "Is it one?", "(The 2nd) isn't."
    apart, joined = (tokenizer(texts, add_special_tokens=False)["input_ids"] for texts in ([first, second], [f"{first} {second}"]))
    if apart[0] + apart[1] != joined[0]:
        raise ValueError(f"{name}: this tokenizer gives other ids to two sentences together than apart: {joined[0]}, {apart}")
    return tokenizer


def train_tokenizer(documents: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE with RoBERTa's special tokens: `<s> <pad> </s> <unk> <mask>` are ids 0 to 4. Deterministic.

    Example:
        >>> tokenizer = train_tokenizer(["one two two", "two three"], vocab_size=270)
        >>> len(tokenizer), tokenizer.decode(tokenizer("two three")["input_ids"])
        (270, '<s> two three</s>')
    """
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(special) + len(alphabet):
        raise ValueError(f"vocab_size is at least {len(special) + len(alphabet)} (special tokens and bytes), got {vocab_size}")
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(documents, trainer)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **names,
        mask_token=AddedToken("<mask>", lstrip=True),
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )
    return _read_as_text(tokenizer)


def tokenizer_for(model: str | Path, source: str, folder: str | Path, **form) -> PreTrainedTokenizerFast:
    """The tokenizer of a model; for `tiny` a BPE of 8,192 trained on the first documents of `source`, kept under `folder`.

    Args:
        form: what `corpus.documents` is told about the source (text_column, paragraph_separator, exclude_titles).
    """
    if model != "tiny":
        return load_tokenizer(model)
    identity = json.dumps([sources.fingerprint(source), {name: value for name, value in form.items() if value}])
    kept = Path(folder) / f"tokenizer_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.with_name(f".{kept.name}.lock")):  # runs that start together train it once
        if not kept.is_dir():
            texts = (cleaning.clean(document) for document in sources.documents(source, limit=TOKENIZER_DOCUMENTS, **form))
            trained = train_tokenizer(itertools.chain.from_iterable(texts), vocab_size=8192)
            with whole_folder(kept) as part:
                trained.save_pretrained(part)
    return load_tokenizer(kept)


def _read_as_text(tokenizer):
    """A `</s>` in a document is five characters, not the end of a sequence."""
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer


# ------------------------------------------------------------------ the model


class PairEncoder(nn.Module):
    """One backbone under its own pair head and, for pre-training, its own masked-language-model head.

    Shapes: input_ids, attention_mask (B, T); masked_positions (M,) into B*T -> pair logits (B, C), MLM logits (M, V) or None;
        packed, a row of N tokens in the place of B*T, and no attention_mask
    """

    def __init__(self, backbone, pair, mlm, tokenizer, fresh=()):
        super().__init__()
        self.backbone, self.pair, self.mlm = backbone, pair, mlm
        self.tokenizer, self.fresh = tokenizer, tuple(fresh)
        self.compiled = None  # the backbone's forward for packed micro-batches, where `train` compiles it
        # RoBERTa has one token type, ModernBERT and DistilBERT have none; tokenizers of RoBERTa's kind give none, which means 0.
        accepted = "token_type_ids" in inspect.signature(backbone.forward).parameters
        self.takes_types = accepted and getattr(backbone.config, "type_vocab_size", 1) > 1

    def forward(self, batch: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
        if "cu_seq_lens" in batch:
            outputs = packing.outputs(self.backbone, batch, self.takes_types, self.compiled)
            first = heads.first_tokens(outputs, batch["first"], getattr(self.backbone, "pooler", None))
            pair = heads.pair_logits(self.pair, first, None)
        else:
            names = ["input_ids", "attention_mask"] + ["token_type_ids"] * self.takes_types
            outputs = self.backbone(**{name: batch[name] for name in names if name in batch})
            pair = heads.pair_logits(self.pair, outputs, batch["attention_mask"])
        if self.mlm is None or "masked_positions" not in batch:
            return pair, None
        return pair, heads.mlm_logits(self.mlm, outputs, batch["masked_positions"])

    def head_parameters(self, *names: str) -> dict[str, nn.Parameter]:
        """Parameters of the heads by name, each once, without what is tied to the backbone's embeddings."""
        tied = self.backbone.get_input_embeddings().weight
        modules = {name: getattr(self, name) for name in names or ("pair", "mlm")}
        found = [named for name, module in modules.items() if module is not None for named in module.named_parameters(name)]
        return {name: parameter for name, parameter in found if parameter is not tied}

    def save(self, folder: str | Path) -> Path:
        """Write backbone (loads with AutoModel), heads and tokenizer: all of it, or nothing."""
        with whole_folder(folder) as part, _quiet():
            self.backbone.save_pretrained(part)
            save_file({name: p.detach().contiguous() for name, p in self.head_parameters().items()}, part / HEAD)
            self.tokenizer.save_pretrained(part)
        return Path(folder)


def tiny(tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """A RoBERTa small enough to train from scratch in minutes on two CPU cores: 2 layers of 128, some 1.5 M parameters.

    Example:
        >>> model = tiny(train_tokenizer(["a few words"], 300))
        >>> model.backbone.config.num_hidden_layers, model.fresh
        (2, ('pair', 'mlm'))
    """
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=514,
        type_vocab_size=1,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return from_config(config, tokenizer, seed, mlm)


def from_config(config, tokenizer, seed: int = 0, mlm: bool = True) -> PairEncoder:
    """Any architecture with random weights; the backbone and the pair head do not depend on `mlm`."""
    with _seeded(seed):
        pair = AutoModelForSequenceClassification.from_config(config)
        masked = AutoModelForMaskedLM.from_config(config) if mlm else None
    return _assemble(pair, masked, tokenizer, ("pair", "mlm") if mlm else ("pair",))


def load(name: str | Path, mlm: bool = False, keep_head: bool = True, seed: int = 0) -> PairEncoder:
    """Load a backbone with its heads from a finished run, a folder or the hub, in float32 whatever it was stored in.

    Args:
        mlm: with the masked-language-model head, for pre-training.
        keep_head: take the pair head that was saved with the backbone; False starts it anew.
        seed: of what starts anew; the model's `fresh` names those heads, and they are logged.
    Raises: FileNotFoundError for an unknown name; ValueError for an unfinished run, pickled or incomplete weights.
    """
    path = source(name)
    _refuse_pickle(path, name)
    with _seeded(seed):
        pair, new_pair = _with_head(AutoModelForSequenceClassification, path, name, num_labels=CLASSES)
        masked, new_mlm = _with_head(AutoModelForMaskedLM, path, name) if mlm else (None, False)
        if not keep_head:
            backbone = heads.take_backbone(pair)
            pair = AutoModelForSequenceClassification.from_config(backbone.config)
            setattr(pair, pair.base_model_prefix, backbone)
    model = _assemble(pair, masked, load_tokenizer(name))
    if new_mlm:
        _near_uniform(masked, model.backbone)
    wanted, fresh = {"pair": keep_head, "mlm": mlm}, {"pair": new_pair or not keep_head, "mlm": new_mlm}
    saved = _saved_heads(path)
    for head in {key.split(".")[0] for key in saved}:
        if wanted[head]:
            _restore(model.head_parameters(head), saved, name)
            fresh[head] = False
    model.fresh = tuple(head for head, new in fresh.items() if new)
    if model.fresh:
        log.warning("%s: fresh weights (seed %d) for the head%s %s", name, seed, "s" * (len(model.fresh) > 1), ", ".join(model.fresh))
    return model


def start_from(name: str | Path, tokenizer, max_tokens: int, seed: int = 0, mlm: bool = False, keep_head: bool = True) -> PairEncoder:
    """What a run starts from: `tiny` from scratch with this tokenizer, anything else as `load` gives it.

    Raises: ValueError for inputs longer than the model reads, before anything is trained.
    """
    model = tiny(tokenizer, seed, mlm) if name == "tiny" else load(name, mlm, keep_head, seed)
    check_length(model, max_tokens)
    return model


def check_length(model: PairEncoder, max_tokens: int) -> None:
    """Refuse inputs longer than the model reads, or too short for two parts."""
    longest = min(model.tokenizer.model_max_length, model.backbone.config.max_position_embeddings)
    shortest = model.tokenizer.num_special_tokens_to_add(pair=True) + 2
    if not shortest <= max_tokens <= longest:
        raise ValueError(f"max_tokens: {shortest} to {longest} for this model, got {max_tokens}")


def load_ranker(name: str | Path, device: str | None = None):
    """A fine-tuned model, ready to rank: a finished run's name or folder, a model folder, or a hub id.

    Args:
        device: "cpu" or "cuda"; a GPU where there is one, if left out.
    Returns: a `ranking.Ranker`.
    Raises: ValueError for a model that never learned to rank (its pair head would be random).
    """
    from .ranking import Ranker

    model = load(name)
    if "pair" in model.fresh:
        raise ValueError(f"{name} has no pair head: fine-tune it first (notebooks/finetune.ipynb -p model {name})")
    record = Path(source(name)).parent / "record.json"
    record = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {"settings": {}}
    settings = record["settings"]
    if record.get("notebook") == "pretrain":
        raise ValueError(f"{name} learnt its pre-training task, not to rank: fine-tune it first (notebooks/finetune.ipynb -p model {name})")
    model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return Ranker(model.eval(), settings.get("max_tokens") or 128)


@torch.no_grad()
def _near_uniform(masked: nn.Module, backbone: nn.Module) -> None:
    """Let a fresh masked-language-model head on trained embeddings begin with nearly equal guesses, as one on fresh embeddings does.

    Embeddings that were trained for something else can be much larger than fresh ones: the loss then begins far above that of a guess,
    and its gradient drowns the objective's.
    """
    norms = [module for module in masked.modules() if isinstance(module, nn.LayerNorm)]
    if norms:
        norms[-1].weight.mul_(min(1.0, backbone.config.initializer_range / float(backbone.get_input_embeddings().weight.std())))


def _assemble(pair, masked, tokenizer, fresh=()) -> PairEncoder:
    backbone = heads.take_backbone(pair)
    if masked is not None:
        heads.share_embeddings(masked, backbone)
        heads.take_backbone(masked)
    return PairEncoder(backbone, pair, masked, tokenizer, fresh)


def _with_head(auto, path, name, **options):
    """The model and whether its head is fresh. Weights that the backbone lacks, but for a pooler, mean a broken checkpoint."""
    options |= {"dtype": torch.float32, "use_safetensors": True, "ignore_mismatched_sizes": True, "output_loading_info": True}
    model, info = _from_pretrained(auto, path, name, **options)
    absent = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    broken = sorted(key for key in absent if key.startswith(f"{model.base_model_prefix}.") and "pooler" not in key)
    if broken:
        raise ValueError(f"{name} lacks {len(broken)} weights of a {type(model.base_model).__name__}, the first is {broken[0]}")
    return model, bool(absent)


# ------------------------------------------------------------------ where models come from


def source(name: str | Path) -> str:
    """What `from_pretrained` should be given for a run, a folder or a hub id (the mirror is looked in first).

    Raises: ValueError for a run that is not finished.
    """
    found = runs.find(str(name))
    run = found or Path(name)
    if found is None and ((run / "config.json").is_file() or not (run / "model").is_dir()):
        if not run.is_dir() and str(name).startswith(("/", ".", "~")):
            raise FileNotFoundError(f"{name}: no such folder")
        return hub.model_path(name)
    if not (run / "record.json").is_file():
        raise ValueError(f"{run.name} is not a finished run (it has no record.json): run its command to the end first")
    return str(run / "model")


def _from_pretrained(auto, path, name, **options):
    try:
        with _quiet():
            return auto.from_pretrained(path, trust_remote_code=False, **options)
    except SafetensorError as error:
        raise ValueError(f"{name}: the weights in {path} are damaged or cut short ({error})") from error
    except OSError as error:
        if "safetensors" in str(error):
            raise ValueError(_pickled(name)) from error
        absent = "" if Path(path).is_dir() else "no such folder, and "
        raise FileNotFoundError(f"{name}: {absent}{hub.unreachable(str(name), error)}") from error


def _refuse_pickle(path, name):
    folder = Path(path)
    if folder.is_dir() and not any(folder.glob("model*.safetensors")):
        pickled = sorted(file.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for file in folder.glob(pattern))
        raise ValueError(_pickled(name) if pickled else f"{name}: {folder} holds no model.safetensors")


def _pickled(name) -> str:
    return (
        f"{name} has no safetensors weights. A pickled checkpoint can run any code when it is opened, so it is refused. If you trust "
        f'its author, convert it once: python -c "from transformers import AutoModelForMaskedLM as M; '
        f"M.from_pretrained('{name}', use_safetensors=False).save_pretrained('converted')\""
    )


def _saved_heads(path) -> dict[str, torch.Tensor]:
    """The tensors of `head.safetensors` beside a backbone, in a folder or on the hub; none where there is no such file."""
    file = Path(path) / HEAD
    if not Path(path).is_dir():
        try:
            file = Path(hf_hub_download(str(path), HEAD))
        except EntryNotFoundError:
            return {}
    return load_file(file) if file.is_file() else {}


@torch.no_grad()
def _restore(parameters, saved, name):
    for key, parameter in parameters.items():
        if key not in saved or saved[key].shape != parameter.shape:
            found = tuple(saved[key].shape) if key in saved else "nothing"
            raise ValueError(f"{name}: {HEAD} should hold {key} {tuple(parameter.shape)}, got {found}")
        parameter.copy_(saved[key])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and reports of transformers: what is fresh is said by `load`, for the model as it is put together."""
    logger = transformers.utils.logging
    level, bars = logger.get_verbosity(), logger.is_progress_bar_enabled()
    logger.set_verbosity_error()
    logger.disable_progress_bar()
    try:
        yield
    finally:
        logger.set_verbosity(level)
        if bars:
            logger.enable_progress_bar()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` once all that was put into it is on the disk; where that fails nothing is left.

    Raises: OSError naming the folder, where it cannot be written.
    """
    folder = Path(folder)
    part, former = folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.former")
    try:
        for leftover in (part, former):
            shutil.rmtree(leftover, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        for path in (*part.rglob("*"), part):
            _to_disk(path)
        if folder.exists():
            folder.rename(former)
        part.rename(folder)
        _to_disk(folder.parent)
        shutil.rmtree(former, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise OSError(getattr(error, "errno", None) or errno.EIO, f"{folder} could not be written: {error}") from error


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
