"""Indexes of many shards: against the index that one process makes of the same documents, and started, killed and started again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aslab import pipeline
from aslab.commands import asutil
from asutil import corpus as c
from asutil import inputs, sampling
from asutil.corpus import arrays, shards, sources
from asutil.io import disk

from ..conftest import made_up_documents
from ..nodes import on_node

pytestmark = pytest.mark.slow

pytest.importorskip("datatrove", reason="needs the extra: pip install 'asutil[cluster]'")
TASKS = 4


def write(folder, documents, files=9):
    """JSON lines with a share of the documents each."""
    folder.mkdir()
    for number in range(files):
        lines = (json.dumps({"text": "\n\n".join(" ".join(p) for p in document)}) for document in documents[number::files])
        (folder / f"{number}.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def by_hand(source, tokenizer, out, tasks=TASKS, ranks=None, **options):
    """What the executors do, without them; the tasks in another order."""
    planned = pipeline.plan(source, tokenizer, tasks, **options)
    tokenizer.save_pretrained(out / "tokenizer")
    disk.write_json(out / "plan.json", planned)
    for rank in reversed(range(planned["tasks"]) if ranks is None else ranks):
        pipeline.Index(str(source), out).run(rank=rank)
    return planned


def contents(folder):
    """The bytes of all files but datatrove's own."""
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "datatrove" not in p.parts}


@pytest.fixture(scope="module")
def texts(tmp_path_factory, documents):
    return write(tmp_path_factory.mktemp("source") / "texts", [*documents, *made_up_documents(20, seed=5, repeated=0.2)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("tokenizer") / "made-up"
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def named(saved):
    from asutil.corpus import tokenizers

    return tokenizers.load_tokenizer(saved)


@pytest.fixture(scope="module")
def whole(texts, named, tmp_path_factory):
    """The index that one process makes."""
    return c.build(sources.documents(texts), named, tmp_path_factory.mktemp("whole") / "index", source="own:texts")


@pytest.fixture(scope="module")
def parted(texts, named, tmp_path_factory):
    out = tmp_path_factory.mktemp("parted") / "index"
    by_hand(texts, named, out)
    pipeline.join(out)
    return c.Corpus.open(out, named)


def equal(found, expected):
    assert all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in arrays.ARRAYS)
    assert all(found.info[name] == expected.info[name] for name in pipeline.COUNTS)


# ------------------------------------------------------------------ many shards as one index


@pytest.mark.parametrize("tasks", [1, 2, 9, 10])
def test_any_number_of_shards_is_the_index_of_the_source(texts, named, whole, tmp_path, tasks):
    planned = by_hand(texts, named, tmp_path / "index", tasks)
    pipeline.join(tmp_path / "index")
    built = c.Corpus.open(tmp_path / "index", named)
    equal(built, whole)
    assert planned["unit"] == ("documents" if tasks == 10 else "files")
    assert built.info["tasks"] == tasks and built.info["limit"] is None and built.info["source"] == "own:texts"


def test_a_limit_and_several_sources(texts, named, tmp_path, documents):
    other = tmp_path / "own, with a comma"
    other.mkdir()
    for number in (3, 4):
        shutil.copy(texts / f"{number}.jsonl", other)
    cases = [(texts, {"limit": 7}, "documents"), (other, {}, "files"), (f"{texts / '8.jsonl'}, {texts / '1.jsonl'}", {}, "files")]
    for number, (source, options, unit) in enumerate(cases):
        planned = by_hand(source, named, out := tmp_path / str(number), 2, **options)
        pipeline.join(out)
        assert planned["unit"] == unit
        equal(c.Corpus.open(out), c.build(sources.documents(source, **options), named, tmp_path / f"whole{number}"))


def test_the_task_of_documents_that_are_all_too_short(named, tmp_path, documents):
    texts = write(tmp_path / "texts", documents, 3)
    (texts / "1.jsonl").write_text('{"text": "short"}\n' * 5)
    (texts / "2.jsonl").write_text("")
    by_hand(texts, named, tmp_path / "index", 3)
    pipeline.join(tmp_path / "index")
    built = c.Corpus.open(tmp_path / "index")
    equal(built, c.build(sources.documents(texts), named, tmp_path / "whole"))
    assert built.info["documents_read"] == 10 + 5 and not list((tmp_path / "index").glob("shard-*"))
    (texts / "0.jsonl").write_text('{"text": "short"}\n')
    by_hand(texts, named, tmp_path / "empty", 3)
    with pytest.raises(ValueError, match="empty corpus: 6 documents read, none kept"):
        pipeline.join(tmp_path / "empty")


def test_prepare_opens_such_a_folder(parted, named, tmp_path):
    options = {"splitter": "blingfire", "min_sentence_chars": 0}
    opened = c.prepare(str(parted.folder), named, tmp_path, **options, workers=2, progress=True, text_column=None)
    assert opened.folder == parted.folder and not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="min_sentence_chars: the index index was built with 0, got 20"):
        c.prepare(str(parted.folder), named, tmp_path, **options | {"min_sentence_chars": 20})
    with pytest.raises(ValueError, match="text_column: the index index was built with None, got 'body'"):
        c.prepare(str(parted.folder), named, tmp_path, **options, text_column="body")


def test_damaged_and_missing_shards_are_refused(texts, named, whole, tmp_path):
    out = tmp_path / "index"
    by_hand(texts, named, out)
    array = out / "shard-00002" / "tokens.npy"
    kept = array.read_bytes()
    for damaged in (kept[:-1] + bytes([kept[-1] ^ 1]), kept[:-10]):
        array.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"shard-00002/tokens.npy is damaged or was changed: sha256 [0-9a-f]{16} expected, got"):
            pipeline.join(out)
    array.write_bytes(kept)
    (out / "shard-00001").rename(tmp_path / "aside")
    with pytest.raises(ValueError, match="1 of 4 shards are missing, the first is shard-00001"):
        pipeline.join(out)
    (tmp_path / "aside").rename(out / "shard-00001")
    with pytest.raises(FileNotFoundError, match=r"no finished index"):
        c.Corpus.open(out)
    pipeline.join(out)
    equal(c.Corpus.open(out), whole)


# ------------------------------------------------------------------ reads


class Counting(np.memmap):
    """An array on disk that remembers the positions that were read of it."""

    def __array_finalize__(self, array):
        super().__array_finalize__(array)
        self.read = getattr(array, "read", [])

    def take(self, indices, **options):
        self.read += np.asarray(indices).tolist()
        return super().take(indices, **options)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12))
def test_ranges_are_read_in_order_and_once(tmp_path_factory, ranges):
    tokens = np.arange(60, dtype=np.uint16) * 7
    starts, lengths = np.array(ranges, np.int64).reshape(-1, 2).T
    expected = [tokens[n] for start, length in ranges for n in range(start, start + length)]
    path = tmp_path_factory.mktemp("tokens") / "tokens.npy"
    np.save(path, tokens)
    on_disk = np.load(path, mmap_mode="r").view(Counting)
    assert arrays.read_ranges(on_disk, starts, lengths).tolist() == expected == arrays.read_ranges(tokens, starts, lengths).tolist()
    assert on_disk.read == sorted({n for start, length in ranges for n in range(start, start + length)})


def test_a_place_outside_gives_the_nearest_token(tmp_path):
    tokens, starts, lengths = np.arange(5) * 3, np.array([3, -2]), np.array([4, 3])
    np.save(tmp_path / "tokens.npy", tokens)
    for array in (tokens, np.load(tmp_path / "tokens.npy", mmap_mode="r")):
        assert arrays.read_ranges(array, starts, lengths).tolist() == [9, 12, 12, 12, 0, 0, 0]


@pytest.mark.parametrize("objective", sampling.OBJECTIVES)
def test_a_batch_comes_back_to_no_block(whole, parted, objective):
    for corpus in (whole, parted):
        sampler = sampling.Sampler(corpus, objective)
        numbers = np.arange(min(len(sampler), 40))
        spans = sampler.spans(numbers)
        expected = inputs.join_spans(sampler, spans).ids
        kept, corpus.tokens = corpus.tokens, corpus.tokens.view(Counting)
        try:
            assert np.array_equal(inputs.join_spans(sampler, spans).ids, expected)
            blocks = np.array(corpus.tokens.read) // 32  # tokens, for the 1 MiB of a disk
        finally:
            corpus.tokens = kept
        visits = 1 + np.count_nonzero(np.diff(blocks))
        assert (np.diff(blocks) >= 0).all() and visits == len(set(blocks.tolist())) > 20


# ------------------------------------------------------------------ stopped and started again


def test_a_task_goes_on_at_its_unfinished_part(texts, named, tmp_path, monkeypatch, whole):
    monkeypatch.setattr(shards, "SHARD_CHARACTERS", 2_000)
    indexing, calls = shards.index, []

    def stops(*arguments, **limits):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(1)
        return indexing(*arguments, **limits)

    monkeypatch.setattr(shards, "index", stops)
    with pytest.raises(KeyboardInterrupt):
        by_hand(texts, named, tmp_path / "index", 1)
    with pytest.raises(ValueError, match="1 of 1 shards are missing, the first is shard-00000"):
        pipeline.join(tmp_path / "index")
    assert len(list((tmp_path / "index" / ".shard-00000.building").glob("shard-*"))) == 3
    again = []
    monkeypatch.setattr(shards, "index", lambda *a, **limits: again.append(1) or indexing(*a, **limits))
    by_hand(texts, named, tmp_path / "index", 1)
    pipeline.join(tmp_path / "index")
    equal(c.Corpus.open(tmp_path / "index"), whole)
    assert len(again) == len(list(shards.grouped(sources.documents(texts)))) - 3 > 3


def test_tasks_of_two_nodes_make_the_index_of_one(texts, named, tmp_path, whole, nodes):
    by_hand(texts, named, tmp_path / "index", ranks=())
    tasks = "import sys, pathlib, aslab.pipeline as p; of = p.Index(sys.argv[1], pathlib.Path(sys.argv[2]))"
    tasks += "; [of.run(rank=int(n)) for n in sys.argv[3:]]"
    command = [sys.executable, "-c", tasks, str(texts), str(tmp_path / "index")]
    started = [on_node(f"node-{n}", [*command, *map(str, range(n, TASKS, 2))]) for n in (0, 1)]
    said = [node.communicate(timeout=120)[0] for node in started]
    assert not any(node.returncode for node in started), said
    pipeline.join(tmp_path / "index")
    equal(c.Corpus.open(tmp_path / "index"), whole)


def test_killed_and_started_again_it_redoes_unfinished_shards_only(saved, tmp_path, monkeypatch):
    source, tasks = write(tmp_path / "texts", made_up_documents(400), 12), 12
    options = ["index", "build", str(source), "--tokenizer", str(saved), "--tasks", str(tasks), "--workers"]
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "asutil", *options, "2", "--out", str(out)]
    started = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not list(out.glob("shard-*")):
        assert started.poll() is None, started.stderr.read().decode()
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    time.sleep(0.5)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.glob("shard-*/*.*")}
    finished = len(list(out.glob("shard-*")))
    assert 0 < finished < tasks and not (out / "corpus.json").exists()
    with pytest.raises(FileNotFoundError, match="no finished index"):
        c.Corpus.open(out)

    def run(folder, workers):
        asutil.main([*options, workers, "--out", str(folder)])

    joining = pipeline.join

    def join(folder):
        assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in before} == before
        assert len(list(folder.glob("shard-*"))) == tasks
        joining(folder)

    monkeypatch.setattr(pipeline, "join", join)
    run(out, "2")
    monkeypatch.setattr(pipeline, "join", joining)
    run(tmp_path / "once", "1")
    assert contents(out) == contents(tmp_path / "once")
    assert contents(out)[Path("corpus.json")] and not list(out.glob("*shard-*"))

    (out / "corpus.json").unlink()  # the shards are gone, and datatrove still has its marks
    run(out, "1")
    assert contents(out) == contents(tmp_path / "once")


# ------------------------------------------------------------------ the command line and Slurm


def test_a_dry_run_says_who_does_what_and_writes_nothing(texts, saved, tmp_path, capsys):
    assert pipeline.build(texts, saved, tmp_path / "index", dry_run=True, tasks=4) is None
    shares = ["0 to 1", "2 to 3", "4 to 5", "6 to 8"]
    assert capsys.readouterr().out.splitlines() == [f"task {number}: files {share}" for number, share in enumerate(shares)]
    pipeline.build(texts / "0.jsonl", saved, tmp_path / "index", dry_run=True, tasks=9)
    assert capsys.readouterr().out.splitlines()[-1] == "task 5: documents 5 to 5"
    assert not list(tmp_path.iterdir())


def test_slurm_is_given_what_the_dry_run_shows_and_its_tasks_build_the_same(texts, saved, tmp_path, monkeypatch, capsys, parted):
    import dill

    out, programs = tmp_path / "index", tmp_path / "programs"
    options = {"executor": "slurm", "partition": "cpu", "time": "02:00:00", "workers": 3, "tasks": TASKS}
    options |= {"memory": 7, "setup": "module load python", "sbatch": ["account=me", "constraint=a=b"]}
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    with pytest.raises(ValueError, match="executor slurm needs a partition, and sbatch"):
        pipeline.build(texts, saved, out, **options)
    pipeline.build(texts, saved, out, dry_run=True, **options)
    shown = capsys.readouterr().out
    for line in ("--array=0-3%3", "--array=0-0", "--partition=cpu", "--time=02:00:00", "--cpus-per-task=1", "--job-name=join"):
        assert f"#SBATCH {line}\n" in shown
    for line in ("#SBATCH --account=me", "#SBATCH --constraint=a=b", "#SBATCH --mem-per-cpu=7G", "module load python"):
        assert shown.count(f"{line}\n") == 2
    with pytest.raises(ValueError, match="sbatch: KEY=VALUE expected, as account=me, got '--account me'"):
        pipeline.build(texts, saved, out, dry_run=True, **options | {"sbatch": ["--account me"]})
    assert f"\nlaunch_pickled_pipeline {out}/datatrove/executor.pik\n" in shown
    assert f"\nlaunch_pickled_pipeline {out}/datatrove/join/executor.pik\n" in shown
    assert not list(out.rglob("*.*"))

    programs.mkdir()
    (programs / "sbatch").write_text(
        f'#!/bin/sh\nn=$(ls {programs} | wc -l)\necho "$@" > {programs}/$n.args\nfor last; do :; done\n'
        f'cp "$last" {programs}/$n.script\necho Submitted batch job 4$n\n'
    )
    scripts = lambda: [path.read_text() for path in sorted(programs.glob("*.script"), key=lambda path: int(path.stem))]
    (programs / "scontrol").write_text("#!/bin/sh\necho node\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    assert pipeline.build(texts, saved, out, **options) is None
    index, _, last, _ = scripts()
    assert f"{index}\n{last}\n" == shown
    assert "--dependency=afterok:42" in (programs / "6.args").read_text()

    monkeypatch.setenv("SLURM_NODELIST", "node")
    handler = signal.getsignal(signal.SIGUSR1)
    jobs = [(out / "datatrove", rank) for rank in range(TASKS)] + [(out / "datatrove" / "join", 0)]
    for folder, rank in jobs:
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(rank))
        dill.loads((folder / "executor.pik").read_bytes()).run()
    signal.signal(signal.SIGUSR1, handler)
    built, expected = ({path: kept for path, kept in contents(of).items() if path.name != "plan.json"} for of in (out, parted.folder))
    assert built == expected
    (out / "corpus.json").unlink()
    pipeline.build(texts, saved, out, **options)
    assert scripts()[4:6:2] == [index] and len(scripts()) == 8  # the shards are gone: all tasks run again


def test_the_limits_of_paragraphs_and_documents_are_part_of_the_plan(texts, named, saved, tmp_path):
    limits = {"min_paragraph_chars": 200, "min_document_chars": 500}
    by_hand(texts, named, tmp_path / "index", 2, **limits)
    pipeline.join(tmp_path / "index")
    built = c.Corpus.open(tmp_path / "index")
    equal(built, c.build(sources.documents(texts), named, tmp_path / "whole", **limits))
    assert limits.items() <= built.info.items() and built.info["documents"] < built.info["documents_read"]
    with pytest.raises(ValueError, match="holds a build with min_paragraph_chars 200, got 60"):
        pipeline.build(texts, saved, tmp_path / "index", dry_run=True, tasks=2)
    by_hand(texts, named, tmp_path / "none", 2, min_document_chars=10**6)
    with pytest.raises(ValueError, match="a document needs 1000000 characters in paragraphs of 60 or more"):
        pipeline.join(tmp_path / "none")


def test_another_build_in_the_same_folder_is_refused(texts, saved, named, tmp_path):
    by_hand(texts, named, tmp_path / "index", ranks=[])
    refused = [({"tasks": 3}, "tasks 4, got 3"), ({"tasks": TASKS, "limit": 9}, "limit None, got 9")]
    for options, message in refused:
        with pytest.raises(ValueError, match=f"holds a build with {message}"):
            pipeline.build(texts, saved, tmp_path / "index", dry_run=True, **options)
    with pytest.raises(ValueError, match="holds a build with source own:texts, got own:0.jsonl"):
        pipeline.build(texts / "0.jsonl", saved, tmp_path / "index", dry_run=True, tasks=TASKS)
    with pytest.raises(FileExistsError, match="exists already"):
        pipeline.build(texts, saved, texts, dry_run=True)
    with pytest.raises(ValueError, match="tasks and workers must be 1 or more, got 0 and None"):
        pipeline.build(texts, saved, tmp_path / "new", tasks=0)
    with pytest.raises(ValueError, match="not in the mirror, and each task would download it"):
        pipeline.build("owner/name", saved, tmp_path / "new")
    with pytest.raises(FileNotFoundError, match=r"no .parquet, .jsonl or .txt"):
        pipeline.build(saved.parent / "made-up", saved, tmp_path / "new")


def test_without_datatrove_it_says_what_to_install():
    script = "import sys; sys.modules['datatrove'] = None; import aslab.pipeline as p; p.build('pydocs', 'x', 'y')"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode and "ImportError: building through datatrove needs it: pip install 'asutil[cluster]'" in result.stderr
