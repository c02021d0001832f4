import shlex
import subprocess
import sys

import datasets
import pandas as pd
import pytest

from asutil.corpus import sources
from asutil.data import tables
from asutil.io import hub


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    (tmp_path / "owner" / "name").mkdir(parents=True)
    for split in ("dev", "dev_clean"):
        pd.DataFrame({"text": [split]}).to_parquet(tmp_path / "owner" / "name" / f"{split}.parquet")
    return tmp_path


def test_the_mirror_is_looked_in_first(folder):
    assert hub.mirror("owner/name") == folder / "owner" / "name"
    assert hub.model_path("owner/name") == str(folder / "owner" / "name")
    assert hub.model_path("owner/other") == "owner/other"
    assert hub.table("owner/name", "dev")["text"].to_pylist() == ["dev"]
    assert hub.table("owner/name", "dev_clean")["text"].to_pylist() == ["dev_clean"]


def test_the_mirror_may_have_the_hubs_own_files(folder):
    shards = folder / "owner" / "as_downloaded" / "data"
    shards.mkdir(parents=True)
    for number, name in enumerate(("dev", "dev", "dev_clean")):
        pd.DataFrame({"text": [f"{name} {number}"]}).to_parquet(shards / f"{name}-{number:05}-of-00002.parquet")
    assert hub.table("owner/as_downloaded", "dev")["text"].to_pylist() == ["dev 0", "dev 1"]


@pytest.mark.parametrize("name", ["../name", "/etc", "owner/../..", "owner", "a/b/c", "owner/..", ""])
def test_nothing_leaves_the_mirror(folder, name):
    assert hub.mirror(name) is None


def test_an_absent_split_lists_what_there_is(folder):
    with pytest.raises(FileNotFoundError, match=r"owner/name in the mirror lacks test.parquet; it holds dev.parquet, dev_clean.parquet"):
        hub.table("owner/name", "test")


def test_on_the_hub_a_split_is_its_own_files(tmp_path, monkeypatch):
    """Files named as the hub names them, loaded from a folder in the place of the hub."""
    for split in ("train", "train_manual", "dev", "dev_clean"):
        (tmp_path / "data").mkdir(exist_ok=True)
        pd.DataFrame({"text": [split]}).to_parquet(tmp_path / "data" / f"{split}-00000-of-00001.parquet")
    monkeypatch.delenv(hub.MIRROR, raising=False)
    load = datasets.load_dataset
    cache = str(tmp_path / "cache")
    monkeypatch.setattr(datasets, "load_dataset", lambda hub_id, **options: load(str(tmp_path), cache_dir=cache, **options))
    for split in ("train", "train_manual", "dev", "dev_clean"):
        assert hub.table("owner/name", split)["text"].to_pylist() == [split]


@pytest.mark.parametrize("read", [tables.read_table, lambda path: list(sources.documents(path))], ids=["questions", "documents"])
def test_a_pickle_as_data_is_refused_and_the_conversion_that_is_named_works(tmp_path, read):
    path = tmp_path / "my data.pkl"
    rows = pd.DataFrame({"question": ["Why?"], "answer": ["So."], "label": [1], "text": ["A document."]})
    rows.to_pickle(path)
    with pytest.raises(ValueError, match=r"got .pkl: a pickle can run any code when it is opened. If you trust its author") as refused:
        read(path)
    command = shlex.split(str(refused.value).split("convert it once, there: ")[1])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    assert len(read(tmp_path / "my data.parquet")) == 1


def test_hashes_follow_content_and_names(tmp_path):
    (tmp_path / "a").write_text("one")
    whole = hub.sha256(tmp_path)
    (tmp_path / "a").write_text("two!")
    assert hub.sha256(tmp_path) != whole
    (tmp_path / "a").rename(tmp_path / "b")
    assert hub.sha256(tmp_path / "b") == __import__("hashlib").sha256(b"two!").hexdigest()
    with pytest.raises(FileNotFoundError):
        hub.sha256(tmp_path / "nothing")
