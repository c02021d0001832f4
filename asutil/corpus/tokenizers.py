"""Tokenizers that join exactly: the ids of a text are those of its sentences, one after the other."""

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ..io import checkpoints, disk, hub
from . import cleaning, sources

TOKENIZER_DOCUMENTS = 20_000
FROM_SCRATCH = ("tiny", "tiny_electra", "mini")  # models that have no tokenizer of their own


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a hub id, a folder or a finished run, set so that the ids of a text are its sentences' ids joined.

    A byte-level pre-tokenizer is given its prefix space on the backend itself: transformers 5 drops the argument
    `add_prefix_space` where it falls back to its generic class. Text is read as text, also where it spells a special token.

    Raises: FileNotFoundError for an unknown name; ValueError for an unfinished run or a tokenizer that does not join exactly.
    """
    tokenizer = checkpoints.from_pretrained(AutoTokenizer, checkpoints.source(name), name)
    if not tokenizer.is_fast:
        raise ValueError(f"{name}: a fast tokenizer (tokenizer.json) is expected, got {type(tokenizer).__name__}")
    backend = tokenizer.backend_tokenizer
    if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        options = {"use_regex": backend.pre_tokenizer.use_regex, "trim_offsets": backend.pre_tokenizer.trim_offsets}
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, **options)
        tokenizer.add_prefix_space = tokenizer.init_kwargs["add_prefix_space"] = True  # what save_pretrained writes
    _read_as_text(tokenizer)
    first, second = "Is it one?", "(The 2nd) isn't."
    try:
        apart, joined = (
            tokenizer(texts, add_special_tokens=False)["input_ids"]
            for texts in ([first, second], [f"{first} {second}"])
        )
    except Exception as error:  # a value of tokenizer_config.json that is looked at when it is used
        raise ValueError(
            f"{name}: this tokenizer cannot be used: {type(error).__name__}: {str(error)[:200]}"
        ) from error
    if apart[0] + apart[1] != joined[0]:
        raise ValueError(
            f"{name}: this tokenizer gives other ids to two sentences together than apart: {joined[0]}, {apart}"
        )
    if tokenizer.pad_token_id is None:
        raise ValueError(f"{name}: this tokenizer has no pad_token, which shorter texts of a batch are filled up with")
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
        raise ValueError(
            f"vocab_size is at least {len(special) + len(alphabet)} (special tokens and bytes), got {vocab_size}"
        )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(documents, trainer)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True
    )
    names = {
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "cls_token": "<s>",
        "sep_token": "</s>",
    }
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **names,
        mask_token=AddedToken("<mask>", lstrip=True),
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )
    return _read_as_text(tokenizer)


def tokenizer_for(
    model: str | Path, source: str, folder: str | Path, scratch: Iterable[str] = (), **form
) -> PreTrainedTokenizerFast:
    """The tokenizer of a model; for those from scratch a BPE of 8,192 trained on the first documents of `source`, kept under `folder`.

    Args:
        scratch: names of models from scratch, next to FROM_SCRATCH.
        form: what `corpus.documents` is told about the source (text_column, paragraph_separator, exclude_titles).
    """
    if model in hub.EMBEDDED or model not in (*FROM_SCRATCH, *scratch):
        return load_tokenizer(model)
    if (Path(source) / "corpus.json").is_file():  # an index has its own
        return load_tokenizer(Path(source) / "tokenizer")
    identity = json.dumps(
        [sources.fingerprint_of_source(source), {name: value for name, value in form.items() if value}]
    )
    kept = Path(folder) / f"tokenizer_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.with_name(f".{kept.name}.lock")):  # runs that start together train it once
        if not kept.is_dir():
            texts = (
                cleaning.clean(document) for document in sources.documents(source, limit=TOKENIZER_DOCUMENTS, **form)
            )
            trained = train_tokenizer(itertools.chain.from_iterable(texts), vocab_size=8192)
            with disk.whole_folder(kept) as part:
                trained.save_pretrained(part)
    return load_tokenizer(kept)


def _read_as_text(tokenizer):
    """A `</s>` in a document is five characters, not the end of a sequence."""
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer
