"""The parameters of a notebook, the values that each may have, and the values that a budget sets (`budgets.yml`)."""

import ast
import importlib
import io
import json
import math
import os
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from asutil.io.spelling import nearest

from .rundir import root

BUDGETS = Path(__file__).with_name("budgets.yml")
TYPES = {"str": str, "int": int, "float": float, "bool": bool}
ELSEWHERE = {  # what other libraries call a parameter
    **dict.fromkeys(("learning_rate", "lr"), "peak_lr"),
    **dict.fromkeys(("max_length", "max_seq_length", "max_seq_len"), "max_tokens"),
    **dict.fromkeys(("num_train_epochs", "num_epochs"), "epochs"),
    **dict.fromkeys(("max_steps", "num_train_steps"), "steps"),
    **dict.fromkeys(("warmup", "num_warmup_steps"), "warmup_steps"),
    **dict.fromkeys(("train_batch_size", "per_device_train_batch_size"), "batch_size"),
    **dict.fromkeys(("model_name", "model_name_or_path"), "model"),
}


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: `steps: int = None  # optimiser steps; by budget`."""

    name: str
    default: object
    type: str
    help: str
    listed: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have: those listed, a registry such as `asutil.sampling.OBJECTIVES` by its names."""
        choices = []
        for listed in self.listed:
            module, _, name = listed.rpartition(".")
            choices += getattr(importlib.import_module(module), name) if module.startswith("asutil.") else [listed]
        return tuple(choices)


def parameters(notebook: str) -> dict[str, Parameter]:
    """The parameters of a notebook, read from its cell tagged `parameters` without running it.

    Each is a typed assignment of a literal with a comment. The comment may limit the values:
    `one of: a, b, c`, `one of: asutil.sampling.OBJECTIVES`, `at least 1`, `at most 5`.
    """
    return _parameters_of(*_version(notebook))


def stays_text(notebook: str, name: str, text: str) -> bool:
    """Whether a word of the command line is the value itself: papermill makes a number of `0.6`, where a parameter is text, too."""
    known = parameters(notebook).get(name)
    return known is not None and known.type == "str" and text != "None"


def as_meant(notebook: str, name: str, value):
    """The number or truth value that a text means: YAML makes text of `2e-5`, papermill's command line of `false`."""
    known = parameters(notebook).get(name)
    if known is None or not isinstance(value, str):
        return value
    if known.type == "bool":
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.lower(), value)
    try:
        return float(value) if known.type == "float" else value
    except ValueError:
        return value


def names_of(text: str) -> list[str]:
    """Names joined by commas. A path may have a comma of its own: the longest that exists is taken."""
    names, pieces = [], text.split(",")
    while pieces:
        paths = (",".join(pieces[:count]).strip() for count in range(len(pieces), 1, -1))
        names.append(next(filter(os.path.exists, paths), pieces[0].strip()))
        del pieces[: names[-1].count(",") + 1]
    return names


def _version(notebook: str) -> tuple[Path, int]:
    """The path of a notebook, and when it was changed: what is read from it is kept until then."""
    path = root() / "notebooks" / f"{notebook}.ipynb"
    try:
        return path, path.stat().st_mtime_ns
    except (OSError, ValueError):  # a name with a NUL, or below a file
        others = [other.stem for other in path.parent.glob("*.ipynb")]
        raise FileNotFoundError(f"no notebook {notebook!r} in {path.parent.name}/{nearest(notebook, others)}") from None


@cache
def _code(path: Path, changed: int) -> tuple[str, list[str]]:
    """The source of the cell tagged `parameters`, "" without one, and those of the other code cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tagged = lambda cell: "parameters" in cell["metadata"].get("tags", [])
    own = next(("".join(cell["source"]) for cell in cells if tagged(cell)), "")
    others = [cell for cell in cells if cell["cell_type"] == "code" and not tagged(cell)]
    return own, ["".join(cell["source"]) for cell in others]


@cache
def _parameters_of(path: Path, changed: int) -> dict[str, Parameter]:
    source, _ = _code(path, changed)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ").strip() for token in tokens if token.type == tokenize.COMMENT}
    read = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            comment = comments.get(node.end_lineno, "")
            listed = re.search(r"one of: ([^;]+)", comment)
            choices = tuple(choice.strip() for choice in listed.group(1).split(",")) if listed else ()
            bounds = [re.search(rf"at {limit} (\d+)", comment) for limit in ("least", "most")]
            limits = [float(bound.group(1)) if bound else None for bound in bounds]
            default, kind = ast.literal_eval(node.value), ast.unparse(node.annotation)
            read[name] = Parameter(name, default, kind, comment, choices, *limits)
    return read


def check(notebook: str, given: dict) -> None:
    """Refuse a parameter that the notebook does not have, or a value that it does not allow.

    Raises: ValueError naming the parameter, what was expected and the nearest name.
    """
    known = parameters(notebook)
    for name, value in given.items():
        if not str(name).isidentifier():
            raise ValueError(f"{name!r} is not a parameter name")
        if name not in known:
            meant = ELSEWHERE.get(name.lower())
            hint = f"; did you mean {meant!r}?" if meant in known else nearest(name, known)
            raise ValueError(f"{notebook} has no parameter {name!r}{hint} (it has: {', '.join(known)})")
        parameter = known[name]
        if value is None and parameter.default is None:
            continue
        expected = TYPES[parameter.type]
        numeric = expected is float and isinstance(value, int) and not isinstance(value, bool)
        if not numeric and type(value) is not expected:
            kind = "True or False" if expected is bool else parameter.type
            came = f"{_short(value)} ({type(value).__name__})"
            raise ValueError(f"{name} of {notebook} is {kind}, got {came}: {parameter.help}")
        if value == "":
            raise ValueError(f"{name} of {notebook} is empty: {parameter.help}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} of {notebook} must be finite, got {value!r}")
        if parameter.at_least is not None and value < parameter.at_least:
            raise ValueError(f"{name} of {notebook} is at least {parameter.at_least:g}, got {value!r}")
        if parameter.at_most is not None and value > parameter.at_most:
            raise ValueError(f"{name} of {notebook} is at most {parameter.at_most:g}, got {value!r}")
        if parameter.choices and value not in parameter.choices:
            choices = ", ".join(parameter.choices)
            hint = nearest(value, parameter.choices)
            raise ValueError(f"{name} of {notebook} is one of {choices}; got {_short(value)}{hint}")


PLAIN = (str, int, float, bool, list, tuple, dict, type(None))
OF_THE_KERNEL = re.compile("_.*|In|Out|PAPERMILL_(IN|OUT)PUT_PATH")  # what IPython and papermill set


def require_no_other(notebook: str, variables: dict, again: bool) -> None:
    """Refuse a plain value among a notebook's variables that is no parameter: papermill and JupyterLab set any name.

    Args:
        again: the kernel has run the notebook's later cells, whose variables it keeps.
    """
    sources = _code(*_version(notebook))[1] if again else ()
    names = (node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
    allowed = {*parameters(notebook), *(name.id for name in names if isinstance(name.ctx, ast.Store))}
    for name, value in variables.items():
        if isinstance(value, PLAIN) and name not in allowed and not OF_THE_KERNEL.fullmatch(name):
            try:
                check(notebook, {name: value})
            except ValueError as error:
                raise ValueError(f"{error}; the name of a variable of your own begins with _") from None


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text):,} characters)"


class Entry(NamedTuple):
    """One entry of `budgets.yml`: the parameters of the runs that it is for, and what it sets."""

    when: dict[str, list]
    set: dict[str, object]


@cache
def _budgets() -> dict:
    return yaml.safe_load(BUDGETS.read_text(encoding="utf-8"))


@cache
def _entries(path: Path, changed: int) -> list[Entry]:
    """What `budgets.yml` says about a notebook. Raises: ValueError naming the entry that is wrong."""
    known, entries = _parameters_of(path, changed), []
    for number, entry in enumerate(_budgets().get(path.stem, ()), 1):
        try:
            if not (isinstance(entry, dict) and "set" in entry and set(entry) <= {"when", "set"}):
                raise ValueError(f"`set: {{...}}`, with or without `when: {{...}}`, is expected, got {entry!r}")
            if wrong := [key for key, value in entry.items() if not isinstance(value, dict)]:
                raise ValueError(f"{wrong[0]}: a mapping of parameters is expected, got {entry[wrong[0]]!r}")
            when = {name: fits if isinstance(fits, list) else [fits] for name, fits in entry.get("when", {}).items()}
            for name, fits in [*when.items(), *((name, [value]) for name, value in entry["set"].items())]:
                for value in fits:
                    check(path.stem, {name: value})
            if fixed := [name for name in entry["set"] if known[name].default is not None]:
                raise ValueError(f"{fixed[0]} has a default in the notebook, so no budget sets it: make it None there")
        except ValueError as error:
            raise ValueError(f"{BUDGETS.name}, {path.stem}, entry {number}: {error}") from error
        entries.append(Entry(when, entry["set"]))
    return entries


def settings(notebook: str, given: dict) -> dict:
    """Every effective parameter: the given value, else the notebook's default, else (if that is None) the budget's."""
    check(notebook, given)
    return effective(notebook, given)


def effective(notebook: str, given: dict) -> dict:
    """`settings` of parameters that were checked before."""
    version = _version(notebook)
    values = {name: parameter.default for name, parameter in _parameters_of(*version).items()}
    values |= {name: value for name, value in given.items() if value is not None}
    unset = {name for name, value in values.items() if value is None}
    for entry in _entries(*version):
        if all(values[name] in fits for name, fits in entry.when.items()):
            values |= {name: value for name, value in entry.set.items() if name in unset}
    return values


def require_no_none(notebook: str, given: dict) -> None:
    """Refuse a given None where the budget sets a value: None leaves the parameter to it. Raises: ValueError."""
    values = effective(notebook, {name: value for name, value in given.items() if name in parameters(notebook)})
    for name, value in given.items():
        if value is None and values.get(name) is not None:
            raise ValueError(f"{name}: None leaves it to the budget, which sets {values[name]}: expected a value")


def changed(notebook: str, given: dict) -> set[str]:
    """The given parameters, checked before, whose values are not what they would be if they were not given."""
    values = effective(notebook, given)
    default = lambda name: effective(notebook, {other: given[other] for other in given if other != name})[name]
    return {name for name in given if values[name] != default(name)}
