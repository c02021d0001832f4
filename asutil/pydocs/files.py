"""Docstrings in the source files of installed packages, read without importing them and parsed once a machine."""

import ast
import gc
import hashlib
import logging
import sys
import warnings
from collections.abc import Iterator
from importlib import util
from operator import itemgetter
from pathlib import Path

import platformdirs

from ..io import disk

log = logging.getLogger(__name__)


def of_package(package: str) -> Iterator[tuple[str, str, str]]:
    """(module, qualified name, docstring) of a package, ordered by module and name; a module's own docstring has the name ''.

    Test folders are left out, and so is a file in a newer Python's syntax, which is logged. A complete reading is kept in the user's cache
    folder, named by a hash of the files' paths, sizes and times of change; the next reading takes it from there, many times as fast.

    Raises: FileNotFoundError for a package that is not installed.
    """
    files = sorted(_modules(package))
    cache = platformdirs.user_cache_path("asutil") / f"docstrings_{package}_{_fingerprint(files)}.json"
    docstrings = _cached(cache)
    if docstrings is not None:
        yield from docstrings
        return
    docstrings = []
    for module, path in files:
        for qualname, text in sorted(_in_file(path), key=itemgetter(0)):
            docstrings.append((module, qualname, text))
            yield module, qualname, text
    try:
        disk.write_json(cache, {"docstrings": docstrings})
    except OSError as error:  # without a cache the next reading takes longer, nothing else
        log.info("docstrings are parsed each time: %s", error)


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
    """A hash of all that the docstrings depend on: the files, this Python's grammar, and the code of this module."""
    hashed = hashlib.sha256(f"{sys.version_info[:2]}".encode() + Path(__file__).read_bytes())
    for module, path in files:
        state = path.stat()
        hashed.update(f"\n{module} {path} {state.st_size} {state.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()[:16]


def _in_file(path: Path) -> list[tuple[str, str]]:
    collected = gc.isenabled()
    gc.disable()  # a tree is many objects without a cycle: looking for cycles doubles the time
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in other people's strings
            nodes = [("", ast.parse(path.read_bytes()))]
    except SyntaxError as error:
        log.info("left out %s, line %s: %s", path.name, error.lineno, error.msg)
        return []
    finally:
        if collected:
            gc.enable()
    docstrings = []
    while nodes:
        qualname, node = nodes.pop()
        if text := ast.get_docstring(node):
            docstrings.append((qualname, text))
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                nodes.append((f"{qualname}.{child.name}".lstrip("."), child))
    return docstrings


def _cached(path: Path) -> list[tuple[str, str, str]] | None:
    """The docstrings in a cache file; None where it is missing or damaged."""
    try:
        return [tuple(row) for row in disk.read_json(path)["docstrings"]]
    except (OSError, ValueError) as error:
        if path.exists():
            log.info("%s is parsed anew: %s", path.name, error)
        return None
