import hashlib
import shlex
import subprocess
import sys
from types import SimpleNamespace

import datasets
import huggingface_hub
import pandas as pd
import pytest

from asutil.corpus import sources
from asutil.data import tables
from asutil.io import hub
from tests.io import fake_hub


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
def test_nothing_leaves_the_mirror(folder, name, monkeypatch):
    """Nor is a folder read that is there but has no hub id."""
    monkeypatch.setenv(hub.MIRROR, str(folder / "owner"))
    for path in (folder / "name", folder / "owner" / "a" / "b" / "c", folder / "owner" / "owner"):
        path.mkdir(parents=True, exist_ok=True)
    assert hub.mirror(name) is None


def test_an_absent_split_lists_what_there_is(folder):
    with pytest.raises(FileNotFoundError, match=r"owner/name: expected test.parquet or test-0.*, its folder holds dev.parquet, dev_clean"):
        hub.table("owner/name", "test")


def put(folder, *names):
    """Parquet files whose one text is their own name."""
    for name in names:
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"text": [name]}).to_parquet(path)


def test_on_the_hub_a_split_is_its_own_files_and_needs_no_network_again(on_hub, monkeypatch):
    root, asked = on_hub
    splits = ("train", "train_manual", "dev", "dev_clean")
    put(root / "datasets/owner/name/main", *(f"data/{split}-00000-of-00001" for split in splits))
    read = lambda split: hub.table("owner/name", split)["text"].to_pylist()
    for split in splits:
        assert read(split) == [f"data/{split}-00000-of-00001"]
    assert hub.commits == {"owner/name": fake_hub.commit_of("datasets", "owner/name")}
    assert sum(line.startswith("GET") and "/resolve/" in line for line in asked) == 4, "each file once"
    asked.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert read("dev") == ["data/dev-00000-of-00001"] and not asked
    with pytest.raises(FileNotFoundError, match=r"expected test.parquet .* holds dev-\S+, .* without a network, what was not downloaded"):
        read("test")
    with pytest.raises(FileNotFoundError, match=rf"owner/other could not be loaded from the hub .* set {hub.MIRROR} to a folder"):
        hub.table("owner/other", "dev")
    with pytest.raises(FileNotFoundError, match="local/mine is on no hub"):
        hub.table("local/mine", "dev")


# How the hub lays configurations out: a folder each, or, on the branch that it makes itself, a folder for each split.
LAYOUTS = {
    "folders": ["a/dev-00000-of-00002", "a/dev-00001-of-00002", "a/dev_clean-00000-of-00001", "b/dev-00000-of-00001"],
    "branch": ["a/dev/0000", "a/dev/0001", "a/test/0000", "b/dev/0000"],
}


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_configuration_is_its_own_folder(on_hub, monkeypatch, layout, mirrored):
    root, _ = on_hub
    branch = {"folders": None, "branch": "refs/convert/parquet"}[layout]
    put(root / "datasets/owner/name" / (branch or "main").replace("/", "__"), *LAYOUTS[layout])
    if mirrored:  # as `hf download` writes it
        put(root / "mirror/owner/name", *LAYOUTS[layout])
        monkeypatch.setenv(hub.MIRROR, str(root / "mirror"))
    for config, files in {"a": LAYOUTS[layout][:2], "b": LAYOUTS[layout][3:]}.items():
        assert hub.table("owner/name", "dev", config, branch)["text"].to_pylist() == files
    with pytest.raises(FileNotFoundError, match=r"owner/name: expected c/dev.parquet or c/dev-00000"):
        hub.table("owner/name", "dev", "c", branch)
    with pytest.raises(ValueError, match="owner/name: dev is in the folders \\['a', 'b'\\]: name one, as owner/name:b"):
        hub.table("owner/name", "dev", None, branch)


def test_a_corpus_of_the_hub_is_streamed_and_its_configuration_too(on_hub):
    """OpenWebText has NULs, and no reader can mend it."""
    root, _ = on_hub
    files = {"a/train-00000-of-00001": ["One\0two.", "Three."], "b/train-00000-of-00001": ["Four."]}
    for name, texts in files.items():
        path = root / f"datasets/owner/name/main/{name}.parquet"
        path.parent.mkdir(parents=True)
        pd.DataFrame({"text": texts}).to_parquet(path)
    about = "".join(f"- config_name: {name}\n  data_files: {name}/*\n" for name in "ab")
    (root / "datasets/owner/name/main/README.md").write_text(f"---\nconfigs:\n{about}---\n")
    assert list(sources.documents("owner/name:a")) == ["One two.", "Three."]
    assert list(sources.documents("owner/name:b")) == ["Four."]
    assert hub.commits == {"owner/name": fake_hub.commit_of("datasets", "owner/name")}


def test_classes_are_streamed_by_their_names(on_hub):
    root, _ = on_hub
    path = root / "datasets/owner/name/main/data/train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    features = datasets.Features({"label": datasets.ClassLabel(names=["yes", "no"])})
    datasets.Dataset.from_dict({"label": [1, 0, -1]}, features=features).to_parquet(path)
    assert [row["label"] for row in hub.stream("owner/name", "train")] == ["no", "yes", None]


def test_a_lost_network_is_named_in_the_middle_of_a_stream(monkeypatch):
    def rows():
        yield {"text": "one"}
        raise ConnectionError("the network is gone")

    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.IterableDataset.from_generator(rows))
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_: SimpleNamespace(sha="0"))
    monkeypatch.setattr(hub, "commits", {})
    read = sources.documents("owner/name")
    assert next(read) == "one"
    said = r"owner/name could not be loaded from the hub \(ConnectionError: the network is gone"
    with pytest.raises(FileNotFoundError, match=rf"{said}.* set {hub.MIRROR} to a folder that holds owner/name"):
        next(read)


@pytest.mark.slow
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


def test_what_a_download_notes_in_a_hidden_folder_is_no_part_of_the_hash(tmp_path):
    folder = tmp_path / ".hidden" / "data"  # where the folder itself lies does not matter
    (folder / ".cache/huggingface").mkdir(parents=True)
    (folder / "a").write_text("one")
    (folder / ".gitattributes").write_text("one")
    (folder / ".cache/huggingface/a.metadata").write_text("1764150000.0")
    whole = hub.sha256(folder)
    (folder / ".cache/huggingface/a.metadata").write_text("1764160000.0")
    assert hub.sha256(folder) == whole
    (folder / ".gitattributes").write_text("two")
    assert hub.sha256(folder) != whole


def test_hashes_follow_content_and_names(tmp_path):
    (tmp_path / "a").write_text("one")
    whole = hub.sha256(tmp_path)
    (tmp_path / "a").write_text("two!")
    assert hub.sha256(tmp_path) != whole
    (tmp_path / "a").rename(tmp_path / "b")
    assert hub.sha256(tmp_path / "b") == hashlib.sha256(b"two!").hexdigest()
    with pytest.raises(FileNotFoundError):
        hub.sha256(tmp_path / "nothing")
