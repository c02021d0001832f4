"""URLs: what is read through fsspec's file systems is what a path would give, copied once, and still there without a network."""

import functools
import http.server
import threading

import fsspec
import platformdirs
import pytest

from asutil.corpus import sources
from asutil.data import answers
from asutil.io import remote

TEXT = "A paragraph of a document that is long enough to be kept. " * 8


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """A file system in memory, and an empty cache of copies."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache")
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def test_questions_are_those_of_the_file(memory, tmp_path):
    own = tmp_path / "mine.tsv"
    rows = [f"question {q}?\tanswer {q} {c}\t{int(c == q % 3)}" for q in range(12) for c in range(3)]
    own.write_text("\n".join(["question\tanswer\tlabel", *rows]))
    memory.put_file(str(own), "/bucket/mine.tsv")
    assert answers.load_answers("memory://bucket/mine.tsv")["test"].frame().equals(answers.load_answers(own)["test"].frame())
    assert answers.fingerprint_of_answers("memory://bucket/mine.tsv") == answers.fingerprint_of_answers(own)


def test_a_file_behind_an_address_is_read(memory, tmp_path):
    """Over http, from a server of this machine; once it is gone the last copy serves."""
    (tmp_path / "mine.tsv").write_text("question\tanswer\tlabel")
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        copy = remote.copied(f"{address}/mine.tsv")
        with pytest.raises(FileNotFoundError, match=r"none\.tsv could not be read"):
            remote.copied(f"{address}/none.tsv")
        server.shutdown()
    assert copy.read_text() == "question\tanswer\tlabel" and remote.copied(f"{address}/mine.tsv") == copy


def test_a_folder_is_a_corpus(memory, tmp_path):
    for name in ("b.txt", "inner/a.jsonl", "left.out"):
        memory.pipe_file(f"/texts/{name}", f'{{"text": "{TEXT}{name}"}}'.encode() if "json" in name else f"{TEXT}{name}".encode())
        (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / name).write_bytes(memory.cat_file(f"/texts/{name}"))
    there, here = "memory://texts", str(tmp_path / "texts")
    assert list(sources.documents(there)) == list(sources.documents(here)) == [f"{TEXT}b.txt", f"{TEXT}inner/a.jsonl"]
    assert sources.fingerprint_of_source(there) == sources.fingerprint_of_source(here)
    assert sources.without_paths(there) == "own:texts" and sources.not_read(there) == "1 files are not read: 1 .out"


def test_what_has_not_changed_is_copied_once(memory, monkeypatch):
    memory.pipe_file("/one.txt", b"first")
    path = remote.path_of("memory://one.txt")
    monkeypatch.setattr(type(memory), "get_file", lambda *given, **more: pytest.fail("copied again"))
    assert remote.path_of("memory://one.txt") == path and path.name == "one.txt" and path.read_text() == "first"


def test_a_file_that_does_not_say_when_it_changed_is_copied_again(memory, monkeypatch, caplog):
    """Some servers tell a size alone."""
    info = type(memory).info
    monkeypatch.setattr(
        type(memory), "info", lambda *given, **more: {name: info(*given, **more)[name] for name in ("name", "size", "type")}
    )
    for content in (b"first", b"other"):
        memory.pipe_file("/one.txt", content)
        path = remote.path_of("memory://one.txt")
        assert path.read_bytes() == content
    monkeypatch.setattr(type(memory), "get_file", lambda *given, **more: 1 / 0)
    assert remote.path_of("memory://one.txt") == path and path.read_bytes() == b"other"
    assert "its last copy is read" in caplog.text


def test_another_content_is_another_copy_and_the_last_one_serves_without_a_network(memory, monkeypatch, caplog):
    for content in (b"first", b"second"):
        memory.pipe_file("/one.txt", content)
        assert remote.path_of("memory://one.txt").read_bytes() == content

    def unreachable(*given, **more):
        raise ConnectionError("no route")

    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "find", unreachable)
        assert remote.path_of("memory://one.txt").read_bytes() == b"second"
        with pytest.raises(FileNotFoundError, match="memory://two.txt could not be read: ConnectionError: no route"):
            remote.path_of("memory://two.txt")
    assert "memory://one.txt could not be read: ConnectionError: no route; its last copy is read" in caplog.text


def test_an_interrupted_copy_leaves_nothing(memory, tmp_path, monkeypatch):
    memory.pipe({"/texts/a.txt": b"a", "/texts/b.txt": b"b"})
    get_file = type(memory).get_file

    def broken(self, path, target, **more):
        if path.endswith("b.txt"):
            raise ConnectionError("cut")
        get_file(self, path, target, **more)

    monkeypatch.setattr(type(memory), "get_file", broken)
    with pytest.raises(OSError, match="memory://texts, /texts/b.txt could not be read: ConnectionError: cut"):
        remote.path_of("memory://texts")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("memory://nothing.tsv", FileNotFoundError, "memory://nothing.tsv could not be read: FileNotFoundError: /nothing.tsv"),
        ("memory://empty", FileNotFoundError, "memory://empty could not be read: FileNotFoundError: a folder without files"),
        ("nothing://here.tsv", ValueError, "nothing://here.tsv: Protocol not known: nothing"),
        ("s3://bucket/here.tsv", ValueError, "s3://bucket/here.tsv: Install s3fs to access S3"),
    ],
)
def test_what_cannot_be_read_is_named(memory, url, error, said):
    memory.makedirs("/empty")
    with pytest.raises(error, match=said):
        answers.load_answers(url)
