"""What a notebook takes: its parameters, what each may be, and what a budget sets where none is given."""

import ast
import io
import json
import math
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from asutil.io.rundir import root
from asutil.io.spelling import nearest

TYPES = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: `steps: int = None  # optimiser steps; by budget`."""

    name: str
    default: object
    type: str
    help: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None


def parameters(notebook: str) -> dict[str, Parameter]:
    """The parameters of a notebook, read from its cell tagged `parameters` without running it.

    Each is a typed assignment of a literal with a comment; `one of: a, b, c` and `at least 1` in the comment say what is allowed.
    """
    path = root() / "notebooks" / f"{notebook}.ipynb"
    if not path.is_file():
        known = [other.stem for other in path.parent.glob("*.ipynb")]
        raise FileNotFoundError(f"no notebook {notebook!r} in {path.parent.name}/{nearest(notebook, known)}")
    return _parameters_of(path, path.stat().st_mtime_ns)


@cache
def _parameters_of(path: Path, changed: int) -> dict[str, Parameter]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    return _read_parameters(sources[0]) if sources else {}


def _read_parameters(source: str) -> dict[str, Parameter]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ").strip() for token in tokens if token.type == tokenize.COMMENT}
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = comments.get(node.end_lineno, "")
            listed = re.search(r"one of: ([^;]+)", text)
            choices = tuple(choice.strip() for choice in listed.group(1).split(",")) if listed else ()
            bound = re.search(r"at least (\d+)", text)
            at_least = float(bound.group(1)) if bound else None
            name = node.target.id
            found[name] = Parameter(
                name, ast.literal_eval(node.value), ast.unparse(node.annotation), text, choices, at_least
            )
    return found


def check(notebook: str, given: dict) -> None:
    """Refuse a parameter that the notebook does not have, or a value that it does not allow.

    Raises: ValueError naming the parameter, what was expected and the nearest name.
    """
    known = parameters(notebook)
    for name, value in given.items():
        if not str(name).isidentifier():
            raise ValueError(f"{name!r} is not a parameter name")
        if name not in known:
            raise ValueError(f"{notebook} has no parameter {name!r}{nearest(name, known)} (it has: {', '.join(known)})")
        parameter = known[name]
        if value is None and parameter.default is None:
            continue
        expected = TYPES[parameter.type]
        numeric = expected is float and isinstance(value, int) and not isinstance(value, bool)
        if not numeric and type(value) is not expected:
            kind = "True or False" if expected is bool else parameter.type
            raise ValueError(
                f"{name} of {notebook} is {kind}, got {_short(value)} ({type(value).__name__}): {parameter.help}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} of {notebook} must be finite, got {value!r}")
        if parameter.at_least is not None and value < parameter.at_least:
            raise ValueError(f"{name} of {notebook} is at least {parameter.at_least:g}, got {value!r}")
        if parameter.choices and value not in parameter.choices:
            known = ", ".join(parameter.choices)
            raise ValueError(
                f"{name} of {notebook} is one of {known}; got {_short(value)}{nearest(value, parameter.choices)}"
            )


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text):,} characters)"


@cache
def _budgets() -> dict:
    return yaml.safe_load((Path(__file__).parent / "budgets.yml").read_text(encoding="utf-8"))


def settings(notebook: str, given: dict) -> dict:
    """Every effective parameter: what is given, else the notebook's default, else (where that is None) what the budget sets.

    A budget's value may depend on another parameter: `max_tokens: {paper: {objective: {ssp: 128, sp: 256}}}`.
    """
    check(notebook, given)
    return effective(notebook, given)


def effective(notebook: str, given: dict) -> dict:
    """`settings` of what has been checked before."""
    values = {name: parameter.default for name, parameter in parameters(notebook).items()}
    values |= {name: value for name, value in given.items() if value is not None}
    table = _budgets().get(notebook, {})
    for name in values:
        if values[name] is None and name in table:
            values[name] = _depending(table[name][values["budget"]], values)
    return values


def _depending(value, values: dict):
    while isinstance(value, dict):
        ((name, table),) = value.items()
        value = table.get(str(values[name]), table.get("else"))
    return value
