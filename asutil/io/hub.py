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
EMBEDDED_FOLDER = (
    Path(__file__).parents[1] / "models" / "pydocs_roberta"
)  # comes with this package, with its tokenizer and record
EMBEDDED = (
    "pydocs_roberta",
    "pydocs_electra",
    "pydocs_longformer",
    "pydocs_led",
)  # what is made of it (asutil.models.embedded)
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
    """The folder of `hub_id` (owner/name) inside the mirror, or None where there is no mirror, it lacks that id, or this is no hub id."""
    root = os.environ.get(MIRROR)
    if not root or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(hub_id)):
        return None
    folder = Path(root) / hub_id
    return folder if folder.is_dir() else None


def model_path(name: str | Path) -> str:
    """What `from_pretrained` should be given: a folder as it is, a mirrored or embedded model's folder, else the hub id itself."""
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
        split: the stem of the file that holds it, `<split>.parquet` in the mirror. On the hub its files are named as well
            (`<split>-00000-of-00001.parquet`): guessing splits would take `dev_clean` for a part of `dev`.
    Raises: FileNotFoundError that names the variable to set when neither the mirror nor the hub has it.
    """
    folder = mirror(hub_id)
    if folder is None:
        return load_from_hub(hub_id, split=split, data_files={split: [f"**/{split}[-.]*"]}).data.table
    from . import files

    path = folder / f"{split}.parquet"
    if not path.is_file():
        held = ", ".join(sorted(other.name for other in folder.iterdir())) or "nothing"
        raise FileNotFoundError(f"{hub_id} in the mirror lacks {path.name}; it holds {held}")
    return files.table(path)


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
    """What to add to the refusal of a data file that is a pickle by its name: why, and how it is converted; nothing for any other file."""
    if path.suffix not in PICKLES:
        return ""
    convert = f"import pandas; pandas.read_pickle({path.name!r}).to_parquet({path.stem + '.parquet'!r})"
    return f': a pickle can run any code when it is opened. If you trust its author, convert it once, there: python -c "{convert}"'


def unreachable(hub_id: str, error: Exception) -> str:
    """The message for a data set or model that neither the mirror nor the hub gives."""
    if hub_id.startswith("local/"):
        return f"{hub_id} is on no hub: it is a folder of the mirror that you make (book/reproduce.md, Real data); {_mirror_state()}."
    return (
        f"{hub_id} could not be loaded from the hub ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}). "
        f"Without a network, set {MIRROR} to a folder that holds {hub_id}/ ({_mirror_state()})."
    )


def _mirror_state() -> str:
    return f"{MIRROR} is now {os.environ.get(MIRROR) or 'not set'}"


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
