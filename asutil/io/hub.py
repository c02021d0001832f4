"""Data sets and models by hub id: from a mirror folder first, then from the hub, never with remote code.

`ASUTIL_MIRROR` names a folder with the hub's layout (`<owner>/<name>/<split>.parquet`, models as saved folders). Every hub id is looked for
there first, because compute nodes without a network are common.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from .spelling import printable

MIRROR = "ASUTIL_MIRROR"
EMBEDDED_FOLDER = Path(__file__).parents[1] / "pydocs" / "pydocs_roberta"  # comes with this package
# Made of it by asutil.pydocs.backbone.
EMBEDDED = ("pydocs_roberta", "pydocs_electra", "pydocs_longformer", "pydocs_led")
# Files that can run any code when they are opened.
PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")
FORMS = ("parquet", "arrow", "json", "csv")  # of data sets that are read; .jsonl and .tsv are of the last two
commits: dict[str, str] = {}  # hub id -> the commit of it that this process has read; a mirror has none


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
                f"{name}: this checkout comes without {EMBEDDED_FOLDER.name}: `asutil embedded` makes it from a run"
            )
        return str(EMBEDDED_FOLDER)
    return str(mirror(str(name)) or name)


def joined(name: str | Path, is_one: Callable[[str], object]) -> list[str]:
    """The rankers of a fusion, `bm25+owner/name`, or the one that is named.

    Args: is_one: whether a run or a folder has this name, which may have a plus sign of its own.
    """
    return str(name).split("+") if "+" in str(name) and not is_one(str(name)) else [str(name)]


def table(hub_id: str, split: str, config: str | None = None, revision: str | None = None):
    """One split of a hub data set, whole, as a pyarrow.Table. Arguments and errors are those of `parquet_files`."""
    import pyarrow as pa

    from . import files

    return pa.concat_tables(map(files.table, parquet_files(hub_id, split, config, revision)))


def parquet_files(hub_id: str, split: str, config: str | None = None, revision: str | None = None) -> list[Path]:
    """The files of one split of a hub data set, in the mirror or downloaded: what was downloaded once needs no network again.

    They are named `<split>.parquet`, `<split>-00000-of-00007.parquet` or `<split>/0000.parquet`, at any depth. A name that
    goes on otherwise is another split: `dev_clean` is no part of `dev`.

    Args:
        config: the folder of one configuration, where the hub has several. A mirror may leave it out: files in its own folder are of the
            configuration that is asked for.
        revision: a branch of the hub other than `main`.
    Raises: FileNotFoundError that names the variable to set, or the files that are there instead.
    """
    folder = mirror(hub_id) or _downloaded(hub_id, split, config, revision)
    if config and not (folder / config).is_dir():
        paths = sorted(folder.glob(f"{split}[-.]*parquet"))
    else:
        root = folder / (config or "")
        paths = sorted({*root.rglob(f"{split}[-.]*parquet"), *root.rglob(f"{split}/*.parquet")})
    places = sorted({"/".join(path.relative_to(folder).parts[:-1][:1]) for path in paths})
    if len(places) > 1 and not config:
        raise ValueError(f"{hub_id}: {split} is in the folders {places}: name one, as {hub_id}:{places[-1]}")
    if not paths:
        from . import files

        where = f"{config}/" if config else ""
        cached = " (in the hub's cache; without a network, what was not downloaded before is missing)"
        cached *= mirror(hub_id) is None
        raise FileNotFoundError(
            f"{hub_id}: expected {where}{split}.parquet or {where}{split}-00000-of-00001.parquet, its folder holds "
            f"{files.listing(folder, '**/*.parquet')}{cached}"
        )
    return paths


def _downloaded(hub_id: str, split: str, config: str | None, revision: str | None) -> Path:
    """The folder in the hub's cache with the files of one split."""
    from huggingface_hub import snapshot_download

    where = f"{config}/" if config else ""
    patterns = [f"{where}{split}[-.]*parquet", f"{where}*/{split}[-.]*parquet", f"{where}{split}/*.parquet"]
    with _reaching(hub_id):
        folder = Path(snapshot_download(hub_id, repo_type="dataset", revision=revision, allow_patterns=patterns))
    commits[hub_id] = folder.name
    return folder


def stream(hub_id: str, split: str, config: str | None = None):
    """The rows of one split of a hub data set as dicts, one after the other, without a download of the whole; classes by their names.

    Raises: FileNotFoundError that names the variable to set, also where the network is lost in between.
    """
    import datasets
    from huggingface_hub import HfApi

    with _reaching(hub_id):
        commits[hub_id] = HfApi().dataset_info(hub_id).sha
        options = {"split": split, "streaming": True, "revision": commits[hub_id]}
        rows = datasets.load_dataset(hub_id, name=config, **options)
        classes = {name: kind for name, kind in (rows.features or {}).items() if isinstance(kind, datasets.ClassLabel)}
        names = {column: dict(enumerate(kind.names)) for column, kind in classes.items()}  # -1 is no class
        for row in rows:
            yield row | {column: of_number.get(row[column]) for column, of_number in names.items()}


def data_set(hub_id: str, part: str = ""):
    """A hub data set as `datasets` loads it, in any of its formats, from the mirror first; no code of it is run.

    Args: part: a configuration, or else the ending of its splits' names: `de` for train_de; "": the only one, or the default.
    Returns: a DatasetDict, and the ending: `_de`, or "".
    Raises: FileNotFoundError that names the variable to set; ValueError that lists the configurations.
    """
    import datasets
    from huggingface_hub import HfApi

    folder = mirror(hub_id)
    options = {"path": str(folder or hub_id)}
    with contextlib.nullcontext() if folder else _reaching(hub_id):
        if folder is None:
            with contextlib.suppress(Exception):  # without a network, what was loaded before is in the cache
                commits[hub_id] = options["revision"] = HfApi().dataset_info(hub_id).sha
        known = datasets.get_dataset_config_names(**options)
    if part not in known and len(known) > 1 and "default" not in known:
        listed = ", ".join(f"{hub_id}:{name}" for name in known)
        raise ValueError(f"{hub_id}: expected one of its configurations: {listed}")
    ending = f"_{part}" * (part not in ("", *known))
    options["name"] = part if part in known else None
    with contextlib.nullcontext() if folder else _reaching(hub_id), tempfile.TemporaryDirectory() as cache:
        if folder:  # the cache goes by the names of a folder's files, and would not see that one has changed
            options |= {"cache_dir": cache}
        form = type(datasets.load_dataset_builder(**options)).__module__.rpartition(".")[2]
        loaded = datasets.load_dataset(**options, keep_in_memory=folder is not None) if form in FORMS else None
    if loaded is None:
        raise ValueError(f"{hub_id}: expected files of the forms {', '.join(FORMS)}, got {form}")
    return loaded, ending


@contextlib.contextmanager
def _reaching(hub_id: str) -> Iterator[None]:
    """Whatever goes wrong on the way to the hub is a FileNotFoundError that names the variable to set; `local/` is on no hub."""
    try:
        if hub_id.startswith("local/"):
            raise LookupError("local")
        yield
    except Exception as error:
        raise FileNotFoundError(unreachable(hub_id, error)) from error


def advice_on_pickle(path: Path) -> str:
    """The end of an error message about a data file with the name of a pickle: the reason and the conversion; empty for other files."""
    if path.suffix not in PICKLES:
        return ""
    convert = f"import pandas; pandas.read_pickle({path.name!r}).to_parquet({path.stem + '.parquet'!r})"
    return f': a pickle can run any code when it is opened. If you trust its author, convert it once, there: python -c "{convert}"'


def unreachable(hub_id: str, error: Exception | None = None) -> str:
    """The message for a data set or model that is neither in the mirror nor on the hub."""
    hub_id = printable(hub_id)
    state = f"{MIRROR} is now {os.environ.get(MIRROR) or 'not set'}"
    if hub_id.startswith("local/"):
        return f"{hub_id} is on no hub: it is a folder of the mirror that you make (book/reproduce.md, Real data); {state}."
    reason = printable(str(error).partition("\n")[0])
    return (
        f"{hub_id} could not be loaded from the hub ({type(error).__name__}: {reason}). "
        f"Without a network, set {MIRROR} to a folder that holds {hub_id}/ ({state})."
    )


def sha256(path: Path) -> str:
    """Hash of a file, or of a folder's files by name and content.

    Hidden folders do not count: `hf download` keeps the times of its downloads in one.
    """
    path = Path(path)
    if path.is_file():
        state = path.stat()
        return _file_sha256(path.resolve(), state.st_size, state.st_mtime_ns)
    if not path.is_dir():
        raise FileNotFoundError(f"{path} does not exist")
    whole = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        name = file.relative_to(path)
        if not any(folder.startswith(".") for folder in name.parts[:-1]):
            whole.update(f"{name.as_posix()}\0{sha256(file)}\n".encode())
    return whole.hexdigest()


@lru_cache(maxsize=4096)
def _file_sha256(path: Path, size: int, changed: int) -> str:
    """Cached, because a plan of many runs needs the hashes of the same large files again and again; a changed file is another entry."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
