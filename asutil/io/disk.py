"""Files that are whole or not there, and refused where they are not what was written.

A file or folder is written under another name and renamed when it is on the disk: whatever stops a program, a reader sees the old one
or the new one. JSON carries the hash of its own content, other files are listed in one with theirs.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from . import hub

SEAL = "content_sha256"


def atomically(path: Path, write) -> Path:
    """Let `write(temporary path)` write, then rename: a reader sees the old file or the whole new one, never a part.

    What a process that was killed left half-written of the same file goes.
    Raises: OSError naming the path.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with naming(path):
            _sweep_of(path)
            write(part)
            _to_disk(part)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


@contextlib.contextmanager
def naming(path: Path, what: str = "{path} could not be written: {error}") -> Iterator[None]:
    """What is done inside writes to a path: where the system refuses, an OSError with its number says so in these words.

    Libraries in Rust (safetensors, tokenizers) end in errors of their own, which have the number in their text alone.
    """
    try:
        yield
    except FileNotFoundError:  # it names what is missing, which may be what is read
        raise
    except Exception as error:
        number = (
            error.errno
            if isinstance(error, OSError)
            else next(iter(re.findall(r"\(os error (\d+)\)", str(error))), None)
        )
        if number is None and not isinstance(error, OSError | SafetensorError):
            raise
        raise OSError(int(number or errno.EIO), what.format(path=path, error=error)) from error


@contextlib.contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` once all that was put into it is on the disk; where that fails nothing is left.

    Raises: OSError naming the folder, where it cannot be written.
    """
    folder = Path(folder)
    part, former = folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.former")
    try:
        with naming(folder):
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
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep_of(path: Path) -> None:
    """Remove what processes of this machine that live no more left half-written of one file."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        process = leftover.suffixes[-2][1:] if len(leftover.suffixes) > 1 else ""
        if process.isdigit() and not psutil.pid_exists(int(process)):
            leftover.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed programs left half-written in a folder; only for who knows that nobody writes there now."""
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.former")):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def lock_folder(folder: Path) -> FileLock:
    """The lock of a folder, held as long as this process lives or until it is released; what a killed one left half-written is removed.

    Where another process holds it, that one's end is waited for.
    """
    lock = FileLock(
        folder / ".lock", is_singleton=True, thread_local=False
    )  # who asks again in the same process has it already
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print(f"{folder.name} is open in another process: waiting for it to end", flush=True)
        lock.acquire()
    sweep(folder)
    return lock


def sealed(content: dict) -> dict:
    """The content of a JSON file with its hash as the last entry."""
    content = {name: value for name, value in content.items() if name != SEAL}
    as_read = json.loads(
        json.dumps(content, allow_nan=False)
    )  # a number that is a key is a text there, and sorted as one
    return content | {SEAL: hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()}


def write_json(path: Path, content: dict) -> Path:
    """Write JSON that `read_json` can check. Raises: ValueError for a number that is not finite; OSError naming the path."""
    text = json.dumps(sealed(content), indent=1, allow_nan=False) + "\n"
    return atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> dict:
    """The content of a file by `write_json`, without its hash. Raises: ValueError, with both hashes, for one that was changed."""
    where = f"{path.parent.name}/{path.name}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        said = content.pop(SEAL)
        came = sealed(content)[SEAL]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{where} is damaged, or of no version that writes {SEAL}: {type(error).__name__}: {error}"
        ) from error
    if came != said:
        raise ValueError(
            f"{where} is damaged or was changed: sha256 {str(said)[:16]} expected, its content has {came[:16]}"
        )
    return content


def hashes(folder: Path, pattern: str = "*") -> dict[str, str]:
    """sha256 of some files of a folder, by their names in it."""
    return {path.relative_to(folder).as_posix(): hub.sha256(path) for path in sorted(folder.glob(pattern))}


def check(path: Path, sha256: str | None) -> Path:
    """The path itself. Raises: ValueError, with both values, for a file that is missing or has another hash."""
    came = hub.sha256(path) if path.is_file() else None
    if came != sha256:
        said = [value[:16] if value else "no such file" for value in (sha256, came)]
        raise ValueError(
            f"{path.parent.name}/{path.name} is damaged or was changed: sha256 {said[0]} expected, got {said[1]}"
        )
    return path
