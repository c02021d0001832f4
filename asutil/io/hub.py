"""Data sets and models by hub id: from a mirror folder first, then from the hub, never with remote code.

`ASUTIL_MIRROR` names a folder with the hub's layout (`<owner>/<name>/<split>.parquet`, models as saved folders). Every hub id is looked for
there first, because compute nodes without a network are common.
"""

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path

MIRROR = "ASUTIL_MIRROR"
EMBEDDED_FOLDER = Path(__file__).parents[1] / "models" / "pydocs_roberta"  # comes with this package
EMBEDDED = (
    "pydocs_roberta",
    "pydocs_electra",
    "pydocs_longformer",
    "pydocs_led",
)  # made of it by asutil.models.embedded
PICKLES = (
    ".bin",
    ".ckpt",
    ".joblib",
    ".pickle",
    ".pkl",
    ".pt",
    ".pth",
)  # files that can run any code when they are opened


def mirror(hub_id: str) -> Path | None:
    """The folder of `hub_id` (owner/name) in the mirror; None where there is none, also for a name that is no hub id."""
    root = os.environ.get(MIRROR)
    if not root or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(hub_id)):
        return None
    folder = Path(root) / hub_id
    return folder if folder.is_dir() else None


def model_path(name: str | Path) -> str:
    """The name for `from_pretrained`: a folder itself, the folder of a mirrored or embedded model, else the hub id."""
    if Path(name).is_dir():
        return str(name)
    if name in EMBEDDED:
        if not EMBEDDED_FOLDER.is_dir():
            raise FileNotFoundError(
                f"{name}: this checkout comes without {EMBEDDED_FOLDER.name}: `python -m asutil.models.embedded` makes it from a run"
            )
        return str(EMBEDDED_FOLDER)
    return str(mirror(str(name)) or name)


def table(hub_id: str, split: str):
    """One split of a hub data set, whole, as a pyarrow.Table.

    Args:
        split: the stem of its file, `<split>.parquet` in the mirror, or `<split>-00000-of-00001.parquet` and so on at any depth, as
            on the hub. Files are named there, too, because a guess would take `dev_clean` for a part of `dev`.
    Raises: FileNotFoundError that names the variable to set when neither the mirror nor the hub has it.
    """
    folder = mirror(hub_id)
    if folder is None:
        return load_from_hub(hub_id, split=split, data_files={split: [f"**/{split}[-.]*"]}).data.table
    from . import files

    path = folder / f"{split}.parquet"
    paths = [path] if path.is_file() else sorted(folder.rglob(f"{split}-*-of-*.parquet"))
    if not paths:
        raise FileNotFoundError(f"{hub_id} in the mirror lacks {path.name}; it holds {files.listing(folder)}")
    import pyarrow as pa

    return pa.concat_tables(map(files.table, paths))


def stream(hub_id: str, split: str, config: str | None = None):
    """The rows of one split of a hub data set as dicts, one after the other, without a download of the whole."""
    return iter(load_from_hub(hub_id, name=config, split=split, streaming=True))


def load_from_hub(hub_id: str, **options):
    import datasets

    if hub_id.startswith("local/"):
        raise FileNotFoundError(unreachable(hub_id, LookupError("local")))
    try:
        return datasets.load_dataset(hub_id, **options)
    except Exception as error:
        raise FileNotFoundError(unreachable(hub_id, error)) from error


def advice_on_pickle(path: Path) -> str:
    """The end of an error message about a data file with the name of a pickle: the reason and the conversion; empty for other files."""
    if path.suffix not in PICKLES:
        return ""
    convert = f"import pandas; pandas.read_pickle({path.name!r}).to_parquet({path.stem + '.parquet'!r})"
    return f': a pickle can run any code when it is opened. If you trust its author, convert it once, there: python -c "{convert}"'


def unreachable(hub_id: str, error: Exception) -> str:
    """The message for a data set or model that is neither in the mirror nor on the hub."""
    state = f"{MIRROR} is now {os.environ.get(MIRROR) or 'not set'}"
    if hub_id.startswith("local/"):
        return f"{hub_id} is on no hub: it is a folder of the mirror that you make (book/reproduce.md, Real data); {state}."
    reason = str(error).partition("\n")[0]
    return (
        f"{hub_id} could not be loaded from the hub ({type(error).__name__}: {reason}). "
        f"Without a network, set {MIRROR} to a folder that holds {hub_id}/ ({state})."
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
    """Cached, because a plan of many runs needs the hashes of the same large files again and again; a changed file is another entry."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
