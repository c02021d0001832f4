"""Docstrings in the source files of installed packages, read without importing them and parsed once a machine."""

import ast
import gc
import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from importlib import util
from pathlib import Path

import platformdirs

from ..io import disk

log = logging.getLogger(__name__)


def of_package(package: str) -> Iterator[tuple[str, str, str]]:
    """(module, qualified name, docstring) of a package, ordered by module and name; a module's own has the name ''.

    Test folders are left out; so is a file in a newer Python's syntax, which is logged. Who reads to the end leaves what was found in the
    user's cache folder, named by a hash of the files' paths, sizes and times of change; the next reads it from there, many times as fast.

    Raises: FileNotFoundError for a package that is not installed.
    """
    files = sorted(_modules(package))
    kept = platformdirs.user_cache_path("asutil") / f"docstrings_{package}_{_fingerprint(files)}.json"
    found = _kept(kept)
    if found is None:
        found = []
        for module, path in files:
            for qualname, text in sorted(_in_file(path), key=lambda pair: pair[0]):
                found.append((module, qualname, text))
                yield found[-1]
        _keep(found, kept)
    else:
        yield from found


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"pydocs reads the package {package}, which is not installed")
    root = Path(spec.submodule_search_locations[0])
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if not any(part.startswith(("test", "conftest")) for part in parts):
            yield ".".join((package, *parts)).removesuffix(".__init__"), path


def _fingerprint(files: list[tuple[str, Path]]) -> str:
    """A hash of all that decides what is found: the files, this Python's grammar, and how docstrings are taken out."""
    hashed = hashlib.sha256(f"{sys.version_info[:2]}".encode() + Path(__file__).read_bytes())
    for module, path in files:
        state = path.stat()
        hashed.update(f"\n{module} {path} {state.st_size} {state.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()[:16]


def _in_file(path: Path) -> list[tuple[str, str]]:
    collected = gc.isenabled()
    gc.disable()  # a tree is many objects and no cycle: looking for some doubles the time
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in other people's strings
            nodes = [("", ast.parse(path.read_bytes()))]
    except SyntaxError as error:
        log.info("left out %s, line %s: %s", path.name, error.lineno, error.msg)
        return []
    finally:
        if collected:
            gc.enable()
    found = []
    while nodes:
        qualname, node = nodes.pop()
        found += [(qualname, text)] if (text := ast.get_docstring(node)) else []
        inner = (
            child for child in node.body if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )
        nodes += [(f"{qualname}.{child.name}".lstrip("."), child) for child in inner]
    return found


def _kept(path: Path) -> list[tuple[str, str, str]] | None:
    """What was kept; None where nothing was, or where it is damaged."""
    try:
        said, _, content = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        log.info("%s is parsed anew: %s", path.name, error)
        return None
    if hashlib.sha256(content).hexdigest().encode() != said:
        log.info("%s is parsed anew: it is damaged", path.name)
        return None
    return [tuple(row) for row in json.loads(content)]


def _keep(found: list[tuple[str, str, str]], path: Path) -> None:
    content = json.dumps(found).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.atomically(
            path, lambda part: part.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        )
    except OSError as error:  # a home that cannot be written costs time, nothing else
        log.info("docstrings are parsed each time: %s", error)
