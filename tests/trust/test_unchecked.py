"""Nothing unchecked is used: edits that stay valid JSON and single bits, by the calls that users make, in what was written here."""

import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import asutil
from aslab import commands, export, own
from asutil import corpus, plugins
from asutil.corpus import arrays, index
from asutil.data import load_answers
from asutil.io import checkpoints, disk
from asutil.models import elsewhere, embedder, loading, word_vectors
from asutil.tasks import rankers
from tests.trust import damaged, saves

BITS = 100


@pytest.fixture
def finetuned(tokenizer, tmp_path):
    """A finished run of finetune, whose scores say little."""
    rows = {"question_id": np.repeat(["a", "b"], 2), "candidate_id": list("1234"), "label": [1, 0, 0, 1], "score": [1.0, 0, 1, 0]}
    folder = tmp_path / "runs" / "finetune-mine-0123456789ab"
    return saves.finished(folder, loading.tiny(tokenizer, mlm=False), pd.DataFrame(rows))


def test_without_the_entry_point_of_runs_no_model_is_read(finetuned, monkeypatch):
    """An installation of before it would rank by files that nobody has checked."""
    monkeypatch.setattr(plugins, "entry_points", lambda **_: ())
    plugins.load.cache_clear()
    try:
        for name in (finetuned, finetuned / "model"):
            with pytest.raises(LookupError, match=r"asutil.models has no runs in this installation: install asutil again"):
                asutil.load_ranker(str(name))
    finally:
        plugins.load.cache_clear()


@pytest.fixture
def exported(finetuned, tmp_path):
    return export.export(finetuned, tmp_path / "ranker")


READERS = {
    "ranker": lambda path: asutil.load_ranker(path, "cpu"),
    "pair model": loading.load,
    "fine-tuning": lambda path: loading.start_from(path, None, 48),
    "encoder": rankers.load_encoder,
    "embedder": embedder.load,
    "embedding": lambda path: embedder.start_from(path, None, embedder.Embedding("untrained", "mean", 48)),
    "cross-encoder": lambda path: elsewhere.load("sentence_transformer", str(path)),
    "tokenizer": lambda path: corpus.load_tokenizer(path),
    "export": lambda path: export.export(path.parent if path.name == "model" else path, path.with_name("out")),
}


@pytest.mark.parametrize("reader", READERS)
def test_all_that_read_a_model_check_all_of_it(finetuned, reader):
    """Changed, missing and further files; the run is named as a run and by its folder model."""
    model = finetuned / "model"
    config = (model / "config.json").read_bytes()
    changes = {
        "config.json is damaged": lambda: damaged.written(model / "config.json", config.replace(b"1e-12", b"0.5")),
        "config.json is damaged or was changed: sha256 [0-9a-f]* expected, got no such file": (model / "config.json").unlink,
        r"added_tokens.json is not in the list of .*record.json": (model / "added_tokens.json").touch,
    }
    assert b"1e-12" in config
    for message, change in changes.items():
        change()
        for path in (finetuned, model):
            with pytest.raises(ValueError, match=message):
                READERS[reader](path)
        (model / "config.json").write_bytes(config)
    (model / "added_tokens.json").unlink()
    (model / ".DS_Store").touch()
    checkpoints.source(model)


def test_who_changes_an_export_on_purpose_deletes_its_list(exported):
    (exported / "README.md").write_text("A card of one's own.")
    (exported / ".gitattributes").touch()
    asutil.load_ranker(exported, "cpu")
    config = exported / "config.json"
    damaged.written(config, config.read_bytes().replace(b"1e-12", b"1e-06"))
    with pytest.raises(ValueError, match=f"if you changed this folder on purpose, delete its {disk.LIST}"):
        asutil.load_ranker(exported, "cpu")
    (exported / disk.LIST).unlink()
    asutil.load_ranker(exported, "cpu")


@pytest.mark.parametrize("fault", ["damaged run", "full disk"])
def test_the_earlier_ranker_stays_until_the_new_one_is_whole(finetuned, exported, fault, monkeypatch):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    record = disk.read_json(finetuned / "record.json")
    sums = {"weights_sha256": {"model.safetensors": "0" * 64}, "model_sha256": {"model.safetensors": "0" * 64}}
    if fault == "damaged run":
        disk.write_json(finetuned / "record.json", record | sums)
    else:
        disk.write_json(finetuned / "record.json", record | {"weights_sha256": {}})

        def full(*given):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(export.tasks.cross_encoder, "save", full)
    with pytest.raises((OSError, ValueError), match=r"No space left|is damaged"):
        own.export(str(finetuned), exported)
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before
    monkeypatch.undo()
    disk.write_json(finetuned / "record.json", record | {"weights_sha256": {**record["weights_sha256"], "more": "0" * 64}})
    assert own.export(str(finetuned), exported) == exported
    asutil.load_ranker(exported, "cpu")


# ------------------------------------------------------------------ data, vectors, indexes


@pytest.mark.slow
def test_every_damage_is_noticed(tmp_path):
    """In each file of all that was written here, more often than the part `storage` damages it at its quick size."""
    draw = random.Random(1)
    for kind in damaged.kinds(tmp_path / "damaged"):
        rounds = -(-BITS // len(kind.files))
        tried, _ = damaged.refused(kind, rounds, draw)
        assert tried >= 2 * BITS, kind.name


def test_one_file_of_mined_data_is_checked_alone(tmp_path):
    saves.mined(saves.asked(tmp_path / "asked")).save(tmp_path)
    path = tmp_path / "mined" / "train.parquet"
    damaged.written(path, damaged.flipped(path.read_bytes(), random.Random(2)))
    with pytest.raises(ValueError, match=r"train\.parquet is damaged or was changed"):
        load_answers(path)


def test_single_bits_of_a_large_index_are_noticed(documents, tokenizer, tmp_path, monkeypatch, caplog):
    folder = corpus.build(documents, tokenizer, tmp_path / "index").folder
    assert corpus.Corpus.open(folder).verified
    assert not caplog.records
    monkeypatch.setattr(arrays, "VERIFIED_BYTES", 100)
    assert not corpus.Corpus.open(folder).verified
    assert "not verified" in caplog.text and f"asutil index verify {folder}" in caplog.text
    draw = random.Random(4)
    files = sorted(folder.glob("*.npy"))
    opened = 0
    for n in range(BITS):
        path = files[n % len(files)]
        whole = path.read_bytes()
        damaged.written(path, damaged.flipped(whole, draw))
        with pytest.raises(ValueError, match=rf"{path.name} is damaged|corpus\.json is damaged"):
            index.verify(folder)
        try:
            corpus.Corpus.open(folder)
        except ValueError:
            pass
        else:
            opened += 1
        damaged.written(path, whole)
    assert opened > BITS / 2, "an index that is large opens: only verify reads all of it"
    commands.asutil.main(["index", "verify", str(folder)])


@pytest.fixture
def small_disk(tmp_path):
    """A disk of three pages of 4 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_reading_of_word_vectors_in_an_error(tmp_path, small_disk):
    """The disk is full in the middle of the table: an error that names the folder, no SIGBUS, and nothing is left."""
    draw = np.random.default_rng(0)
    rows = [f"word{n} " + " ".join(f"{value:.4f}" for value in draw.normal(size=20)) for n in range(200)]
    file = tmp_path / "some.txt"
    file.write_text("\n".join(rows) + "\n")
    code = f"from asutil.models import word_vectors; word_vectors.WordVectors({str(file)!r}, {str(small_disk)!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "OSError" in ended.stderr and "word_vectors_" in ended.stderr, ended.stderr[-500:]
    assert not [path for path in small_disk.iterdir() if path.suffix != ".lock"]
    encoder = word_vectors.WordVectors(file, tmp_path / "large")
    expected = np.array([[np.float32(value) for value in row.split()[1:]] for row in rows])
    assert (encoder.vectors == expected).all() and encoder.vectors.dtype == np.float32
