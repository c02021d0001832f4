"""A model's own settings: a frozen dataclass on the model, which the config of its backbone keeps; only this file reads and writes it.

The key in config.json is the name of the class in lower case. A field that an earlier version did not write has its default.
"""

from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

from ..io import files

KEYS = ("joint", "embedding", "finding")


def keep(config, settings) -> None:
    """Write a model's settings into the config of its backbone; the fields in `settings.optional` only where they are not None."""
    optional = getattr(settings, "optional", ())
    values = {name: value for name, value in asdict(settings).items() if name not in optional or value is not None}
    setattr(config, _key(type(settings)), values)


def kept(config, kind: type):
    """The settings of a kind in a config; None for a model without them."""
    return _made(getattr(config, _key(kind), None), kind)


def saved(path: str | Path, kind: type):
    """The settings of a kind in the config.json of a folder; None for a model without them, or one on the hub."""
    config, key = Path(path) / "config.json", _key(kind)
    return _made(files.json_object(config, **{key: dict}).get(key), kind) if config.is_file() else None


def drop_all(config) -> None:
    """Take the settings of every kind out of a config: another kind of model starts from its backbone."""
    for key in KEYS:
        vars(config).pop(key, None)


def parts_of(config) -> int:
    """The number of texts of an example: 2, or 3 with a context."""
    return getattr(config, "parts", 2)


def keep_parts(config, parts: int) -> None:
    """Write the number of texts of an example, 2 where a config has none."""
    config.parts = parts


def _key(kind: type) -> str:
    return kind.__name__.lower()


def _made(values: dict | None, kind: type):
    if not values:
        return None
    try:
        parts = {part.name: part.type(**values[part.name]) for part in fields(kind) if is_dataclass(part.type)}
        return kind(**values | parts)
    except (KeyError, TypeError) as error:
        names = ", ".join(field.name for field in fields(kind))
        raise ValueError(f"config.json, {_key(kind)}: the fields {names} expected, got {values}") from error
