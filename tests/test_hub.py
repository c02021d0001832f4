import datasets
import pandas as pd
import pytest

from asutil import hub


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


def test_hashes_follow_content_and_names(tmp_path):
    (tmp_path / "a").write_text("one")
    whole = hub.sha256(tmp_path)
    (tmp_path / "a").write_text("two!")
    assert hub.sha256(tmp_path) != whole
    (tmp_path / "a").rename(tmp_path / "b")
    assert hub.sha256(tmp_path / "b") == __import__("hashlib").sha256(b"two!").hexdigest()
    with pytest.raises(FileNotFoundError):
        hub.sha256(tmp_path / "nothing")
