"""Tokenizers: those of models, and ones trained here, which join exactly: the ids of a text are those of its sentences."""

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from ..io import disk, hub, model_folders
from . import cleaning, sources
from .plain_tokenizer import PlainTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TOKENIZER_DOCUMENTS = 20_000
FROM_SCRATCH = ("tiny", "tiny_electra", "mini")  # models that have no tokenizer of their own


def load_tokenizer(name: str | Path) -> "PreTrainedTokenizerFast":
    """The tokenizer of a hub id, a folder or a finished run; a byte-level one joins the ids of a text's sentences exactly.

    A byte-level pre-tokenizer gets its prefix space on the backend itself: transformers 5 drops the argument
    `add_prefix_space` where it falls back to its generic class. In a sequence of pre-tokenizers only a first byte-level one gets it:
    a later one would put a space before each piece. Text that spells a special token is read as text. Whether ids join is checked
    where a corpus is indexed (`shards`), because only pre-training needs it. Without transformers it is a `PlainTokenizer` of a folder.

    Raises: FileNotFoundError for an unknown name; ValueError for an unfinished run or a tokenizer that cannot be used.
    """
    if not _has_transformers():
        plain = PlainTokenizer.load(hub.model_path(name))
        _join_exactly(plain.backend_tokenizer)
        return plain
    from transformers import AutoTokenizer

    from ..io import checkpoints

    path = checkpoints.source(name)
    model_folders.refuse_no_tokenizer(path, name)
    tokenizer = checkpoints.from_pretrained(AutoTokenizer, path, name)
    if not tokenizer.is_fast:
        raise ValueError(f"{name}: a fast tokenizer (tokenizer.json) is expected, got {type(tokenizer).__name__}")
    if _join_exactly(tokenizer.backend_tokenizer):
        tokenizer.add_prefix_space = tokenizer.init_kwargs["add_prefix_space"] = True  # what save_pretrained writes
    _read_as_text(tokenizer)
    try:
        tokenizer(["Is it one?"], add_special_tokens=False)
    except Exception as error:  # a wrong value in tokenizer_config.json shows only when it is used
        raise ValueError(f"{name}: its tokenizer cannot be used: {type(error).__name__}: {str(error)[:200]}") from error
    if tokenizer.pad_token_id is None:
        raise ValueError(f"{name}: this tokenizer has no pad_token, which shorter texts of a batch are filled up with")
    return tokenizer


def train_tokenizer(documents: Iterable[str], vocab_size: int) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE with RoBERTa's special tokens: `<s> <pad> </s> <unk> <mask>` are ids 0 to 4. Deterministic.

    Example:
        >>> tokenizer = train_tokenizer(["one two two", "two three"], vocab_size=270)
        >>> len(tokenizer), tokenizer.decode(tokenizer("two three")["input_ids"])
        (270, '<s> two three</s>')
    """
    mask = AddedToken("<mask>", lstrip=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", mask]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    smallest = len(special) + len(alphabet)
    if vocab_size < smallest:
        raise ValueError(f"vocab_size is at least {smallest} (special tokens and bytes), got {vocab_size}")
    options = {"special_tokens": special, "initial_alphabet": alphabet, "show_progress": False}
    backend.train_from_iterator(documents, trainers.BpeTrainer(vocab_size=vocab_size, **options))
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    config = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<s>"}
    config |= {"sep_token": "</s>", "model_max_length": 512, "model_input_names": ["input_ids", "attention_mask"]}
    if not _has_transformers():
        return PlainTokenizer(backend, config | {"mask_token": mask.content})
    from transformers import PreTrainedTokenizerFast

    return _read_as_text(PreTrainedTokenizerFast(tokenizer_object=backend, mask_token=mask, **config))


def tokenizer_for(
    model: str | Path, source: str, folder: str | Path, scratch: Iterable[str] = (), **form
) -> "PreTrainedTokenizerFast":
    """The tokenizer of a model; for a model from scratch a BPE of 8,192 trained on the first documents of `source`, saved in `folder`.

    Args:
        scratch: names of models from scratch, next to FROM_SCRATCH.
        form: arguments of `corpus.documents` (text_column, paragraph_separator, exclude_titles), and the limits of `clean`.
    """
    if model in hub.EMBEDDED or model not in (*FROM_SCRATCH, *scratch):
        return load_tokenizer(model)
    if (Path(source) / "corpus.json").is_file():  # an index has its own
        return load_tokenizer(Path(source) / "tokenizer")
    key = json.dumps([sources.fingerprint_of_source(source), {name: value for name, value in form.items() if value}])
    saved = Path(folder) / f"tokenizer_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    with disk.lock_beside(saved):
        if not saved.is_dir():
            limits = {name: value for name in cleaning.LIMITS if (value := form.pop(name, None))}
            documents = sources.documents(source, limit=TOKENIZER_DOCUMENTS, **form)
            texts = itertools.chain.from_iterable(cleaning.clean(document, **limits) for document in documents)
            with disk.whole_folder(saved) as part:
                train_tokenizer(texts, vocab_size=8192).save_pretrained(part)
    return load_tokenizer(saved)


def _has_transformers() -> bool:
    """Whether transformers is installed. Raises: ModuleNotFoundError where it is, and something that it needs is not."""
    try:
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        return False
    return True


def _join_exactly(backend: Tokenizer) -> bool:
    """Give a byte-level pre-tokenizer its prefix space, also as the first of a sequence; whether it is the only one."""
    words = backend.pre_tokenizer
    if isinstance(words, pre_tokenizers.ByteLevel):
        options = {"use_regex": words.use_regex, "trim_offsets": words.trim_offsets}
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, **options)
        return True
    if isinstance(words, pre_tokenizers.Sequence):
        first = words[0]
        if isinstance(first, pre_tokenizers.ByteLevel):
            first.add_prefix_space = True
    return False


def _read_as_text(tokenizer):
    """A `</s>` in a document is five characters, not the end of a sequence."""
    tokenizer.split_special_tokens = tokenizer.init_kwargs["split_special_tokens"] = True
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer
