"""Files behind a URL of any file system that fsspec knows (`hf://`, `s3://`, `gs://`, `https://`), as copies on this machine."""

import hashlib
import logging
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from . import disk

# What changes with a file's content, in the descriptions of fsspec's file systems; a size does not always.
CHANGE = set(
    "etag last-modified lastmodified last_modified mtime modify created updated content-md5 digest sha blob_id md5hash".split()
)
log = logging.getLogger(__name__)


def is_url(name) -> bool:
    return "://" in str(name)


def path_of(name: str | Path) -> Path:
    """The path to read for a name: the copy of a URL, else the name with its ~ expanded."""
    return copied(str(name)) if is_url(name) else expanded(name)


def expanded(name: str | Path) -> Path:
    """The path of a name that may begin with ~ or ~user; unchanged where there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def copied(url: str) -> Path:
    """Copy a file, or a folder with all files below it, into the user's cache; one that says that it is unchanged is not copied again.

    If the URL cannot be read, the last copy is used, with a warning: compute nodes often have no network.
    Returns: the path of the copy.
    Raises: ValueError for an unknown file system or a missing package; FileNotFoundError if the URL cannot be read and was never copied;
        OSError if copying fails, after removing the partial copy.
    """
    import platformdirs
    from fsspec.callbacks import TqdmCallback
    from fsspec.core import url_to_fs

    name = PurePosixPath(urlsplit(url).path if url.startswith("http") else url).name
    copies = platformdirs.user_cache_path("asutil") / "remote" / hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        system, root = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{url}: {error}") from error
    try:
        infos = {path: system.info(path) for path in sorted(system.find(root)) or [root]}
        if any(info["type"] == "directory" for info in infos.values()):
            raise FileNotFoundError("a folder without files")
    except Exception as error:
        reason = f"{url} could not be read: {type(error).__name__}: {error}"
        if not (earlier := sorted(copies.glob("[!.]*"), key=lambda copy: copy.stat().st_mtime)):
            raise FileNotFoundError(reason) from error
        log.warning("%s; its last copy is read, %s", reason, earlier[-1])
        return earlier[-1] / name
    copy = copies / hashlib.sha256(repr(infos).encode()).hexdigest()[:16]
    known = [{name.lower() for name, value in info.items() if value is not None} for info in infos.values()]
    if copy.is_dir() and all(map(CHANGE.intersection, known)):
        return copy / name
    try:
        with disk.whole_folder(copy) as part:
            for path in infos:
                inside = PurePosixPath(path).relative_to(PurePosixPath(root))
                if ".." in inside.parts:
                    raise ValueError(f"{url}: expected files below it, got {path}")
                target = part / name / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                bar = TqdmCallback(tqdm_kwargs={"desc": target.name, "unit": "B", "unit_scale": True, "delay": 5})
                try:
                    system.get_file(path, str(target), callback=bar)
                except Exception as error:
                    raise OSError(f"{url}, {path} could not be read: {type(error).__name__}: {error}") from error
    except OSError as error:
        if not copy.is_dir():
            raise
        log.warning("%s; its last copy is read, %s", error, copy)
    return copy / name
