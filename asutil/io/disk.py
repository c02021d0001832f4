"""Files and folders that are whole or absent, and refused where they are not what was written.

A file or folder is written under another name and renamed once it is on the disk: whenever a program stops, a reader sees the old one or
the new one. Where a file system cannot exchange two folders (macOS, NFS), a program that is killed between two renames leaves a folder
without its name until the next program writes there. JSON carries the hash of its own content; the hashes of other files are listed in a
JSON file.
"""

import contextlib
import ctypes
import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from . import hub

SEAL = "content_sha256"
LIST = "asutil_files.json"  # the hashes of the files of an exported model
MINED = "mined.json"  # describes mined training data, with the hashes of their files
BUILT = "built.json"  # the same of a data set that was made from a release
CARD = "README.md"  # of a model: people edit it, and no library computes with it
ABANDONED = 24 * 3600  # seconds after which another machine no longer writes a file
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
PART = re.compile(r"""(?<![^/'"\s])\.(?P<name>[^/]+)\.(?P<machine>[\w-]+)\.(?P<process>\d{1,9})\.[0-9a-f]{8}\.part""")


def atomically(path: Path, write) -> Path:
    """Let `write(temporary path)` write, then rename: a reader sees the old file or the whole new one, never a part.

    Missing folders above it are made. Half-written copies of the same file that killed processes left are removed. The target of a
    symbolic link is replaced, not the link.
    Raises: OSError naming the path.
    """
    target = _target(path)
    part = _new_part(target)
    try:
        with naming(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target)
            write(part)
            _to_disk(part)
            part.replace(target)
            _to_disk(target.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


@contextlib.contextmanager
def naming(path: Path, what: str = "{path} could not be written: {error}") -> Iterator[None]:
    """Turn errors of the system into an OSError with their number, whose message `what` names the path.

    Libraries in Rust (safetensors, tokenizers) end in errors of their own, which have the number only in their text.
    """
    try:
        yield
    except Exception as error:
        message, temporary_names = PART.subn(r"\g<name>", str(error))
        if isinstance(error, FileNotFoundError) and not temporary_names:  # it names a missing file that is read
            raise
        in_text = re.search(r"\(os error (\d+)\)", message)
        number = error.errno if isinstance(error, OSError) else in_text and int(in_text[1])
        if number is None and not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        raise OSError(number or errno.EIO, what.format(path=path, error=message)) from error


@contextlib.contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` once all of its files are on the disk; after an error nothing of it is left.

    Its files can be read by whom new files can be read by; safetensors writes some that only their owner reads.
    Raises: OSError naming the folder, where it cannot be written.
    """
    path, folder = Path(folder), _target(Path(folder))
    part = _new_part(folder)
    former = folder.with_name(f".{folder.name}.former")
    try:
        with naming(path):
            _put_back(former, folder)
            shutil.rmtree(former, ignore_errors=True)
            remove_leftovers(folder)
            part.mkdir(parents=True)
            yield part
            readers = part.stat().st_mode & 0o666
            for file in (*part.rglob("*"), part):
                if file.is_file():
                    file.chmod(readers)
                _to_disk(file)
            _rename(part, folder, former)
            _to_disk(folder.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # after an exchange it is the former folder


def _rename(part: Path, folder: Path, former: Path) -> None:
    """Give a folder its name, and remove the one that has it."""
    try:
        part.rename(folder)  # there is none, or an empty one
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if _exchanged(part, folder):
            return
        try:
            folder.rename(former)
            part.rename(folder)
        except BaseException:
            _put_back(former, folder)
            raise
        shutil.rmtree(former, ignore_errors=True)


def _exchanged(first: Path, second: Path) -> bool:
    """Let two folders have each other's name, at once; False where the system or the file system cannot."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and swap(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0


def _put_back(former: Path, folder: Path) -> None:
    """Give a replaced folder its name again, where the new one did not get it."""
    if former.is_dir() and not folder.exists():
        former.rename(folder)


def _target(path: Path) -> Path:
    """What a symbolic link leads to; any other path is itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _new_part(path: Path) -> Path:
    """A temporary name that no other process has, also on another machine that uses the same disk."""
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}.part")


def _machine() -> str:
    """The host, and the namespace in which a container numbers its processes."""
    namespace = Path("/proc/self/ns/pid")
    number = namespace.stat().st_ino if namespace.exists() else 0  # 0: not Linux
    return re.sub(r"[^\w-]", "-", f"{socket.gethostname()}-{number}")


def remove_leftovers(path: Path) -> None:
    """Remove half-written copies: of this machine those whose process has ended, of others those that nothing was written to for a day."""
    for leftover in path.parent.glob(f".*{glob.escape(path.name)}.*.part"):
        owner = inner = PART.fullmatch(leftover.name)
        # A model that was written into a folder in the making.
        while inner and (outer := PART.fullmatch(inner["name"])):
            inner = outer
        if inner is None or inner["name"] != path.name:
            continue
        with contextlib.suppress(OSError):  # renamed by its process, or another user's
            if owner["machine"] == _machine():
                ended = not psutil.pid_exists(int(owner["process"]))
            else:
                written = max(file.stat().st_mtime for file in (leftover, *leftover.rglob("*")))
                ended = time.time() - written > ABANDONED
            if ended:
                _remove(leftover)


def _remove(leftover: Path) -> None:
    if leftover.is_dir():
        shutil.rmtree(leftover, ignore_errors=True)
    else:
        leftover.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed programs of any machine left half-written; call it only when no other process writes to this folder."""
    for former in folder.glob(".*.former"):
        _put_back(former, folder / former.name[1 : -len(".former")])
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.former")):
        _remove(leftover)


def lock_folder(folder: Path) -> FileLock:
    """Lock a folder until this process ends or releases the lock, and sweep it. Waits for another process that has the lock."""
    lock = FileLock(folder / ".lock", is_singleton=True, thread_local=False)  # one lock for all callers in a process
    _acquired(lock, f"{folder.name} is open in another process: waiting for it to end")
    sweep(folder)
    return lock


def lock_beside(path: Path):
    """Lock a file or folder for a `with` statement: of processes that start together, the others wait until the first has made it."""
    told = f"{path.name} is being made by another process: waiting for it"
    return _acquired(FileLock(path.with_name(f".{path.name}.lock")), told)


def _acquired(lock: FileLock, told: str):
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        print(told, flush=True)
        return lock.acquire()


def sealed(content: dict) -> dict:
    """The content of a JSON file with its hash as the last entry."""
    content = {name: value for name, value in content.items() if name != SEAL}
    as_read = json.loads(json.dumps(content, allow_nan=False))  # a number as a key becomes a text, and is sorted as one
    return content | {SEAL: hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()}


def write_json(path: Path, content: dict) -> Path:
    """Write JSON that `read_json` can check. Raises: ValueError for a number that is not finite; OSError naming the path."""
    text = json.dumps(sealed(content), indent=1) + "\n"
    return atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> dict:
    """The content of a file by `write_json`, without its hash. Raises: ValueError, with both hashes, for one that was changed."""
    where = f"{path.parent.name}/{path.name}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        expected = content.pop(SEAL)
        came = sealed(content)[SEAL]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{where} is damaged, or of no version that writes {SEAL}: {reason}") from error
    if came != expected:
        raise ValueError(
            f"{where} is damaged or was changed: sha256 {str(expected)[:16]} expected, its content has {came[:16]}"
        )
    return content


def hashes(folder: Path, pattern: str = "*") -> dict[str, str]:
    """sha256 of some files of a folder, by their names in it."""
    paths = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): hub.sha256(path) for path in paths}


def check(path: Path, sha256: str | None) -> Path:
    """The path itself. Raises: ValueError, with both values, for a file that is missing or has another hash."""
    came = hub.sha256(path) if path.is_file() else None
    if came != sha256:
        expected, got = (value[:16] if value else "no such file" for value in (sha256, came))
        raise ValueError(
            f"{path.parent.name}/{path.name} is damaged or was changed: sha256 {expected} expected, got {got}"
        )
    return path


def check_all(folder: Path, sums: dict[str, str], listed_in: str, advice: str = "") -> None:
    """Check the files of a folder, and that it has no others, which a library could read; hidden files and the card may be there.

    Args:
        listed_in: the file that has the hashes, for the message; `advice` is added to every message.
    Raises: ValueError naming a file that is missing, was changed, or is not listed.
    """
    if not isinstance(sums, dict):
        raise ValueError(f"{listed_in} is damaged: names and hashes of files are expected, got {str(sums)[:80]}")
    try:
        for name, sha256 in sums.items():
            check(folder / name, sha256)
    except ValueError as error:
        raise ValueError(f"{error}{advice}") from None
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if name.as_posix() not in (*sums, listed_in, CARD) and not any(part.startswith(".") for part in name.parts):
            raise ValueError(f"{folder / name} is not in the list of {listed_in}: move it from {folder.name}/{advice}")


def check_made(path: Path) -> None:
    """Check a folder of data that this project made, or one file of it, by the hashes in its mined.json or built.json; others have none.

    Raises: ValueError.
    """
    folder = path if path.is_dir() else path.parent
    for record in (MINED, BUILT):
        sums = read_json(folder / record).get("files_sha256", {}) if (folder / record).is_file() else {}
        for name, sha256 in sums.items():
            if path in (folder, folder / name):
                check(folder / name, sha256)
