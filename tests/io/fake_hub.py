"""A hub on this machine: repositories are folders, served as huggingface.co serves them, with branches and commits."""

import contextlib
import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse


def commit_of(kind: str, repository: str, branch: str = "main") -> str:
    return hashlib.sha1(f"{kind} {repository} {branch}".encode()).hexdigest()


def described(path: Path, folder: Path) -> dict:
    name = path.relative_to(folder).as_posix()
    about = {"path": name, "oid": hashlib.sha1(name.encode()).hexdigest()}
    return about | ({"type": "file", "size": path.stat().st_size} if path.is_file() else {"type": "directory"})


def forget_the_hub() -> None:
    """transformers keeps the address that it asked first; where nobody answers any more it asks again for a minute and a half."""
    if (module := sys.modules.get("transformers.utils.hub")) is not None:
        module._hf_api = None


@contextlib.contextmanager
def serving(root: Path, monkeypatch, cache: Path) -> Iterator[list[str]]:
    """Lets `huggingface_hub` and `datasets` read `root/{datasets,models}/<owner>/<name>/<branch>/`, a branch with `__` for each slash.

    Yields: the requests so far, as `GET /api/...`.
    """
    import datasets
    from huggingface_hub import constants, hf_api

    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.answer()

        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.answer()

        def send(self, code: int, body: bytes = b"", **headers):
            self.send_response(code)
            for name, value in {"Content-Length": len(body), **headers}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def answer(self):
            asked.append(f"{self.command} {self.path}")
            parts = [unquote(part) for part in urlparse(self.path).path.strip("/").split("/")]
            if parts[0] == "api":
                parts = parts[1:]
            kind = parts.pop(0) if parts[0] in ("datasets", "models") else "models"
            if len(parts) < 2:
                return self.send(404)
            owner, name, verb, branch, *path = [*parts, "revision", "main"][: max(4, len(parts))]
            repository = f"{owner}/{name}"
            known = {folder.name.replace("__", "/"): folder for folder in (root / kind / repository).glob("*")}
            known |= {commit_of(kind, repository, name): folder for name, folder in known.items()}
            if branch not in known:
                code = "RevisionNotFound" if known else "RepoNotFound"
                return self.send(404, X_Error_Code=code)
            folder = known[branch]
            commit = commit_of(kind, repository, folder.name.replace("__", "/"))
            files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
            if verb == "revision":
                about = {"id": repository, "sha": commit, "siblings": [{"rfilename": file} for file in files]}
                return self.send(200, json.dumps(about).encode(), Content_Type="application/json")
            if verb == "tree":
                below = folder / "/".join(path)
                children = below.rglob("*") if "recursive=true" in self.path else below.glob("*")
                tree = [described(child, folder) for child in sorted(children)]
                return self.send(200, json.dumps(tree).encode(), Content_Type="application/json")
            if verb == "paths-info":
                wanted = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["paths"]
                infos = [described(folder / name, folder) for name in wanted if (folder / name).exists()]
                return self.send(200, json.dumps(infos).encode(), Content_Type="application/json")
            file = folder / "/".join(path)
            if not file.is_file():
                return self.send(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
            content, code, more = file.read_bytes(), 200, {}
            tag = hashlib.sha1(content).hexdigest()
            if wanted := self.headers.get("Range"):
                start, end = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
                more = {"Content_Range": f"bytes {start}-{end}/{len(content)}"}
                content, code = content[start : end + 1], 206
            return self.send(code, content, X_Repo_Commit=commit, ETag=f'"{tag}"', **more)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(hf_api.api, "endpoint", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)
    monkeypatch.setattr(datasets.config, "HUB_DATASETS_URL", address + "/datasets/{repo_id}/resolve/{revision}/{path}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    forget_the_hub()
    try:
        yield asked
    finally:
        forget_the_hub()
        server.shutdown()
        server.server_close()
