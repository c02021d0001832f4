"""What the workflows, the hooks of commits and the container take from others is pinned."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")


def test_actions_and_hooks_have_one_version():
    """A tag can be moved to other code: actions are pinned by commit, hooks by the version of the lock."""
    texts = [path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = re.findall(r"uses: *(.*)", "\n".join(texts))
    assert used and not [action for action in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)]
    assert len({*used}) == len({action.partition("@")[0] for action in used})
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    locked = dict(re.findall(r"^(\S+)==(\S+)", LOCK, re.MULTILINE))
    assert [hook["rev"].removeprefix("v") for hook in hooks] == [locked["ruff"], locked["nbstripout"]]


def test_the_container_installs_the_lock_with_torch_of_the_index_that_is_named(tmp_path):
    """Its steps after Debian's, with a pip that writes down what it is asked for and files that are copied as it says."""
    steps = re.findall(r"^(COPY|RUN) (.*)", (ROOT / "Containerfile").read_text("utf-8"), re.MULTILINE)
    stand_ins = {"python": 'mkdir -p .venv/bin && cp "$PIP" .venv/bin/pip', "make": 'echo "make $@" >> asked', "pip": 'echo "$@" >> asked'}
    for name, line in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PIP": str(tmp_path / "pip"), "TORCH": "https://index"}
    folder = tmp_path / "image"
    folder.mkdir()
    for kind, words in steps:
        if kind == "COPY" and words != ". .":
            for name in words.split()[:-1]:
                shutil.copy(ROOT / name, folder)
        elif kind == "RUN" and "apt-get" not in words:
            subprocess.run(["sh", "-e", "-c", words], cwd=folder, env=os.environ | own, check=True)
    (torch,) = (line for line in LOCK.splitlines() if line.startswith("torch=="))
    first, *others = (folder / "asked").read_text().splitlines()
    assert first == f"install --no-cache-dir --index-url https://index {torch}"
    assert others == ["install --no-cache-dir --no-deps --require-hashes --requirement requirements.hashes", "make install"]


def test_every_pin_but_torch_has_the_hashes_of_its_files():
    hashed = (ROOT / "requirements.hashes").read_text("utf-8")
    entries = re.findall(r"^(\S+)==([^\s;]+).*((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", hashed, re.MULTILINE)
    pins = re.findall(r"^(\S+)==([^\s;]+)", LOCK, re.MULTILINE)
    same = lambda pins: sorted((re.sub(r"[-_.]+", "-", name).lower(), version) for name, version, *_ in pins)
    assert same(entries) == same(pin for pin in pins if pin[0] != "torch")
    assert hashed.count("--hash") == sum(files.count("--hash") for *_, files in entries) > len(pins)
