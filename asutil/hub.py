"""Where data sets and models come from: a mirror folder first, then the hub, never remote code.

`ASUTIL_MIRROR` names a folder laid out like the hub (`<owner>/<name>/<split>.parquet`, models as saved folders). It is looked in
first for every hub id, because compute nodes without a network are common.
"""

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path

MIRROR = "ASUTIL_MIRROR"


def mirror(hub_id: str) -> Path | None:
    """The folder of `hub_id` (owner/name) inside the mirror, or None where there is no mirror, it lacks that id, or this is no hub id."""
    root = os.environ.get(MIRROR)
    if not root or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(hub_id)):
        return None
    folder = Path(root) / hub_id
    return folder if folder.is_dir() else None


def model_path(name: str | Path) -> str:
    """What `from_pretrained` should be given: a folder as it is, a mirrored model's folder, else the hub id itself."""
    if Path(name).is_dir():
        return str(name)
    return str(mirror(str(name)) or name)


def table(hub_id: str, files: list[str], split: str, config: str | None = None, streaming: bool = False):
    """One split of a hub data set as a `datasets.Dataset` (an iterable one when streaming).

    Args:
        hub_id: `owner/name`.
        files: file names inside the mirror's folder that hold this split, e.g. `["test_clean.parquet"]`. On the hub the file
            whose name starts with the split is taken by `datasets` itself, unless `files` names more than the split.
        split: the hub's own name of the split.
    Raises: FileNotFoundError that names the variable to set when neither the mirror nor the hub has it.
    """
    import datasets

    folder = mirror(hub_id)
    if folder is not None:
        paths = [folder / name for name in files]
        absent = [path.name for path in paths if not path.is_file()]
        if absent:
            held = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
            raise FileNotFoundError(f"{hub_id} in the mirror lacks {', '.join(absent)}; it holds {held}")
        return datasets.load_dataset("parquet", data_files=[str(path) for path in paths], split="train", streaming=streaming)
    try:
        return datasets.load_dataset(hub_id, config, split=split, streaming=streaming)
    except Exception as error:
        raise FileNotFoundError(unreachable(hub_id, error)) from error


def unreachable(hub_id: str, error: Exception) -> str:
    """The message for a data set or model that neither the mirror nor the hub gives."""
    return (
        f"{hub_id} could not be loaded from the hub ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}). "
        f"Without a network, set {MIRROR} to a folder that holds {hub_id}/ (now: {os.environ.get(MIRROR) or 'not set'})."
    )


def sha256(path: Path) -> str:
    """Hash of a file, or of a folder's files by name and content."""
    path = Path(path)
    if path.is_file():
        state = path.stat()
        return _file_sha256(path.resolve(), state.st_size, state.st_mtime_ns)
    if not path.is_dir():
        raise FileNotFoundError(f"{path} does not exist")
    whole = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        whole.update(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\n".encode())
    return whole.hexdigest()


@lru_cache(maxsize=4096)
def _file_sha256(path: Path, size: int, changed: int) -> str:
    """A plan of many runs asks for the same large files again and again; a file that changed is another entry."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
