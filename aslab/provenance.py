"""The provenance in a record: versions, hardware, commit and sources of both packages."""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import asutil
from asutil.io import hub

CODE = ("asutil", "aslab", "notebooks")  # folders in which a new file is a change
RECORDED_VERSIONS = "asutil torch transformers datasets tokenizers numpy pandas torchmetrics papermill".split()


def of_project(folder: Path) -> dict:
    """Versions, hardware, commit and sources, and the commits of what was read from the hub; no path, user or host name."""
    versions = {"python": platform.python_version()}
    for name in RECORDED_VERSIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    torch = sys.modules.get("torch")
    cuda = torch.cuda if torch and torch.cuda.is_available() else None
    system = platform.system()
    hardware = {"cpu_cores": os.cpu_count(), "architecture": platform.machine(), "system": system}
    hardware["gpu"] = cuda.get_device_name() if cuda else None
    if cuda:
        hardware |= {"gpus": cuda.device_count(), "cuda": torch.version.cuda}
    return {
        "versions": versions,
        "hardware": hardware,
        "commit": _commit(folder),
        "sources_sha256": sources_sha256(),
        **({"hub_commits": dict(sorted(hub.commits.items()))} if hub.commits else {}),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if system == "Darwin" else 1024),
        **({"peak_gpu_memory_bytes": cuda.max_memory_allocated()} if cuda else {}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def sources_sha256() -> str:
    """One hash of all source files of both packages."""
    sources = hashlib.sha256()
    for package in (Path(asutil.__file__).parent, Path(__file__).parent):
        for path in sorted(package.rglob("*.py"), key=Path.as_posix):
            sources.update(f"{package.name}/{path.relative_to(package).as_posix()}\0{hub.sha256(path)}\n".encode())
    return sources.hexdigest()


def _commit(folder: Path) -> str:
    """The commit, with +changes where tracked files differ from it, or new ones lie in the packages or among the notebooks.

    Changes in results/ are ignored: they follow from the others.
    """
    git = partial(subprocess.check_output, text=True, stderr=subprocess.PIPE, cwd=folder)
    try:
        commit = git(["git", "rev-parse", "HEAD"]).strip()
        changed = git(["git", "status", "--porcelain", "-uno", "--", ".", ":(exclude)results"]).strip()
        changed += git(["git", "ls-files", "--others", "--exclude-standard", "--", *CODE]).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+changes" if changed else "")
