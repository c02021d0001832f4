"""A tokenizer.json without transformers: what the core asks of a tokenizer, where nothing but the core is installed."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from ..io import files


class Encoded(dict):
    """`input_ids` and `token_type_ids` of one text or pair."""

    def __init__(self, encoding):
        super().__init__(input_ids=encoding.ids, token_type_ids=encoding.type_ids)
        self.sequence_ids = lambda: encoding.sequence_ids


class PlainTokenizer:
    """The methods and attributes of `transformers.PreTrainedTokenizerFast` that sampling and inputs use.

    Args:
        config: the content of tokenizer_config.json: the special tokens by name (`pad_token`, ...), `model_input_names`.
    Raises: ValueError for a tokenizer without a pad_token.
    """

    def __init__(self, backend: Tokenizer, config: dict, name_or_path: str = ""):
        backend.encode_special_tokens = True
        backend.no_padding()
        backend.no_truncation()
        self.backend_tokenizer, self.config, self.name_or_path = backend, config, name_or_path
        self.model_input_names = config.get("model_input_names", ["input_ids", "token_type_ids", "attention_mask"])
        id_of = lambda token: backend.token_to_id(token["content"] if isinstance(token, dict) else token)
        named = {name: token for name, token in config.items() if name.endswith("_token")}
        ids = {name: id_of(token) for name, token in named.items() if isinstance(token, (str, dict))}
        lists = (config.get(name) or () for name in ("additional_special_tokens", "extra_special_tokens"))
        more = [id_of(token) for tokens in lists for token in tokens]
        self.all_special_ids = sorted({number for number in (*ids.values(), *more) if number is not None})
        self.pad_token_id, self.mask_token_id = ids.get("pad_token"), ids.get("mask_token")
        if self.pad_token_id is None:
            raise ValueError(
                f"{name_or_path}: tokenizer_config.json names no pad_token, which fills up shorter texts of a batch: "
                "take a tokenizer saved by asutil, or install asutil[models]"
            )

    @classmethod
    def load(cls, folder: str | Path) -> "PlainTokenizer":
        """Raises: FileNotFoundError for a folder without tokenizer.json; ValueError for damaged files."""
        folder = Path(folder)
        if not (folder / "tokenizer.json").is_file():
            raise FileNotFoundError(f"{folder}: a folder with tokenizer.json is expected; hub ids need asutil[models]")
        try:
            backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:
            raise ValueError(f"{folder.name}/tokenizer.json cannot be read: {error}") from error
        return cls(backend, files.json_object(folder / "tokenizer_config.json"), str(folder))

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()

    def __call__(self, first: str, second: str | None = None, return_token_type_ids: bool = True) -> Encoded:
        return Encoded(self.backend_tokenizer.encode(first, second))

    def decode(self, ids: Iterable[int], clean_up_tokenization_spaces: bool = False) -> str:
        return self.backend_tokenizer.decode(list(ids), skip_special_tokens=False)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, which transformers reads, too."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.backend_tokenizer.save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True} | self.config
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
