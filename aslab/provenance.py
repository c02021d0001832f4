"""The provenance in a record: versions, hardware, commit and sources of both packages."""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import asutil
from asutil.io import hub

RECORDED_VERSIONS = "asutil torch transformers datasets tokenizers numpy pandas torchmetrics papermill".split()


def of_project(folder: Path) -> dict:
    """Versions, hardware, commit and sources, and the commits of what was read from the hub; no path, user or host name."""
    versions = {"python": platform.python_version()}
    for name in RECORDED_VERSIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "versions": versions,
        "hardware": _hardware(),
        "commit": _commit(folder),
        "sources_sha256": sources_sha256(),
        **({"hub_commits": dict(sorted(hub.commits.items()))} if hub.commits else {}),
        "peak_memory_bytes": _peak_memory(),
        **_peak_gpu_memory(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def sources_sha256() -> str:
    """One hash of all source files of both packages."""
    sources = hashlib.sha256()
    for package in (Path(asutil.__file__).parent, Path(__file__).parent):
        for name, path in source_files(package):
            sources.update(f"{package.name}/{name}\0{hub.sha256(path)}\n".encode())
    return sources.hexdigest()


def source_files(package: Path) -> list[tuple[str, Path]]:
    """The names and paths of all source files of a package and its folders, sorted by name."""
    return sorted((path.relative_to(package).as_posix(), path) for path in package.rglob("*.py"))


def _hardware() -> dict:
    torch = sys.modules.get("torch")
    machine = {
        "cpu_cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "gpu": None,
    }
    if not (torch and torch.cuda.is_available()):
        return machine
    return machine | {
        "gpu": torch.cuda.get_device_name(),
        "gpus": torch.cuda.device_count(),
        "cuda": torch.version.cuda,
    }


def _peak_gpu_memory() -> dict:
    torch = sys.modules.get("torch")
    gpu = torch and torch.cuda.is_available()
    return {"peak_gpu_memory_bytes": torch.cuda.max_memory_allocated()} if gpu else {}


def _peak_memory() -> int:
    try:
        import resource
    except ImportError:  # not a POSIX system
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _commit(folder: Path) -> str:
    """The commit, with +changes where tracked files differ from it; those of results/, which follow from the others, do not count."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "-uno", "--", ".", ":(exclude)results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+changes" if changed else "")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
