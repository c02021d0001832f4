"""A sample of the part, and that it notices what it is there to notice."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from papermill.translators import PythonTranslator

from aslab import launch, rundir
from aslab.show import markup
from asutil.io import hub
from tests.trust import Broken, browser, hostile_book, pickled, published, security
from tests.trust.payloads import PAYLOADS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path):
    """A project with one notebook."""
    for name in ("book", "notebooks", "runs"):
        (tmp_path / "project" / name).mkdir(parents=True)
    for name in ("pretrain", "finetune", "rerank"):
        shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", tmp_path / "project" / "notebooks")
    return tmp_path / "project"


# ------------------------------------------------------------------ pickles


def test_a_pickle_that_is_read_ignored_or_refused_without_a_reason_is_noticed(tmp_path):
    trap = pickled.Trap(tmp_path / "trap")
    path = trap.array(trap.folder / "x.npy")
    with pytest.raises(Broken, match="read, which was to be refused"):
        trap.refuses("a reader", lambda: np.load(path, allow_pickle=True))
    with pytest.raises(Broken, match="what it holds was run"):
        trap.inert("a reader")
    trap.marker.unlink()
    with pytest.raises(Broken, match="got AttributeError"):
        trap.refuses("a reader", lambda: path.nothing)
    with pytest.raises(Broken, match="says why, and how was promised"):
        trap.refuses("a reader", lambda: np.load(path), "why", "and how")
    trap.refuses("numpy", lambda: np.load(path), "pickle")
    assert trap.refused == 1


def test_checkpoints_and_data_are_refused_and_their_absent_refusal_noticed(tmp_path, monkeypatch):
    for number, part in enumerate((pickled._checkpoints, pickled._data)):
        trap = pickled.Trap(tmp_path / str(number))
        part(trap)
        assert trap.refused >= 10
    monkeypatch.setattr(hub, "PICKLES", ())
    with pytest.raises(Broken, match="rng_state.pth in a checkpoint: read"):
        pickled._checkpoints(pickled.Trap(tmp_path / "checkpoints"))
    monkeypatch.setattr(hub, "PICKLES", (".pkl",))
    monkeypatch.setattr(hub, "advice_on_pickle", lambda path: "")
    with pytest.raises(Broken, match="pkl as questions: a refusal that says a pickle can run any code"):
        pickled._data(pickled.Trap(tmp_path / "data"))


@pytest.mark.parametrize(
    "line",
    [
        "load(path, trust_remote_code=True)",
        "options = {'trust_remote_code': True}",
        "torch.load(path, weights_only=False)",
        "torch.load(path)",
        "numpy.load(path, allow_pickle=True)",
        "pickle.loads(text)",
    ],
)
def test_a_source_that_allows_what_may_run_is_noticed(tmp_path, line):
    cells = [{"cell_type": "code", "source": ["import torch\n", line]}, {"cell_type": "markdown", "source": "trust_remote_code=True"}]
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "x.py").write_text(f"def function():\n    'Never'\n    return {line.removeprefix('options = ')}\n")
    assert len(pickled.unsafe(tmp_path / "x.ipynb")) == len(pickled.unsafe(tmp_path / "x.py")) >= 1
    allowed = "load(path, trust_remote_code=False, weights_only=True, allow_pickle=False)\njson.loads(text)\ntorch.save(x)"
    (tmp_path / "x.py").write_text(allowed)
    assert pickled.unsafe(tmp_path / "x.py") == []


# ------------------------------------------------------------------ parameters and names


def test_parameters_that_are_code_are_text(tmp_path, root, monkeypatch):
    marker = tmp_path / "ran"
    texts = security.code(marker)
    monkeypatch.setattr(security, "code", lambda marker: [texts[2], texts[-1]])
    assert security.parameters(root, marker, 0) == {"names_with_code": 16, "values_with_code": 22}


def test_a_value_that_becomes_code_is_noticed(tmp_path, root, monkeypatch):
    monkeypatch.setattr(PythonTranslator, "translate_str", classmethod(lambda cls, text: f'"{text}"'))
    marker = tmp_path / "ran"
    monkeypatch.setattr(security, "code", lambda marker, made=security.code: made(marker)[:1] + made(marker)[-1:])
    with pytest.raises(Broken):
        security.parameters(root, marker, 0)


def test_a_name_that_is_taken_for_a_parameter_is_noticed(tmp_path, root, monkeypatch):
    monkeypatch.setattr(launch, "prepare", lambda options: None)
    with pytest.raises(Broken, match="exit code 2 and no notebook were promised"):
        security.parameters(root, tmp_path / "ran", 0)


def test_names_of_runs_stay_inside_and_one_that_does_not_is_noticed(tmp_path, root, monkeypatch):
    assert security.run_names(tmp_path / "a", root) > 70
    monkeypatch.setattr(rundir, "no_link", lambda folder: folder)
    with pytest.raises(Broken, match="'link-0123456789ab' should lead nowhere"):
        security.run_names(tmp_path / "b", root)


# ------------------------------------------------------------------ pages


def page(folder: Path, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(4):
        (folder / f"{n}.html").write_text(f"<!doctype html><title>A page</title><body>{body}</body>")
    (folder / "search.html").write_text("<!doctype html><body>Search</body>")
    return folder


def test_escaped_payloads_are_inert_in_a_page(tmp_path, monkeypatch):
    html = page(tmp_path / "html", "".join(markup.cell(text, "p") for text in PAYLOADS))
    monkeypatch.setattr(browser, "found", lambda: None)
    assert published.pages(html, False, tmp_path) == {"pages_read": 5, "browser": "none", "pages_opened": 0}


@pytest.mark.skipif(browser.found() is None, reason="needs Chromium")
def test_a_browser_notices_what_runs_and_what_leaves(tmp_path):
    html = page(tmp_path / "html", markup.cell(PAYLOADS[0]))
    found = published.in_browser(html, ["0.html"], {"0.html": browser.Page((html / "0.html").read_text())}, tmp_path)
    assert found["payloads_that_run_in_a_bare_page"] >= 25 and found["pages_opened"] == 1 and found["requests_out"] == 0
    with browser.Site(page(tmp_path / "live", PAYLOADS[0])) as site:
        assert browser.Page(browser.opened(browser.found(), site, "0.html", tmp_path / "browser")).live[0] == "<html> data-pwn00=1"
        assert "http://out.test/pwn00" in site.elsewhere()


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_a_payload_that_is_not_escaped_is_noticed(tmp_path, monkeypatch, number):
    monkeypatch.setattr(browser, "found", lambda: None)
    escaped = [markup.cell(text, "p") for text in PAYLOADS]
    text = PAYLOADS[number]
    raw = hostile_book._as_markdown(text) if number >= 43 else f"<p title='{text}'>" if text.startswith("'") else text
    html = page(tmp_path, "".join(escaped[:number] + escaped[number + 1 :]) + f"<p>{raw}</p>")
    with pytest.raises(Broken, match="a payload is markup|should stand in a page as it was written|brought in a file"):
        published.pages(html, False, tmp_path)


def test_places_users_and_hosts_are_noticed(tmp_path):
    telling = published.telling(tmp_path)
    for told in ("/home/somebody/x", "'/tmp/x", r"C:\Users\x", published.STRANGER["user"], f"{ROOT}/x", str(tmp_path / "x")):
        assert any(by.search(f"See {told} for more") for by in telling), told
    for said in ("https://example.org/home/x", "a/tmp/b", "/etc/passwd", "root of 2", "asutil/home/x.py", r"D:\ P_i", "localhost"):
        assert not any(by.search(f"See {said} for more") for by in telling), said


def test_pickles_in_other_processes_are_heard(tmp_path):
    told = security.strangers(tmp_path, ROOT, tmp_path / "mirror")
    code = f"import pickle, socket, getpass; pickle.loads({pickle.dumps(Path('x'))!r}); print(socket.gethostname(), getpass.getuser())"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **told}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [published.STRANGER["host"], published.STRANGER["user"]]
    heard = (tmp_path / "heard").read_text()
    assert heard.count("listens") == 1 and "pickle ('pathlib', 'PosixPath')" in heard
