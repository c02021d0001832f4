"""Installs the project for a notebook that runs where it is not installed, as on Colab: `python notebooks/install.py`.

Packages that are installed and that `pyproject.toml` accepts stay, others get the version of `requirements.lock`. What
runs the notebook is left alone: a kernel that loses its own packages stops.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("models", "lab")  # what the notebooks need besides the core
RUNS_THE_NOTEBOOK = ("ipykernel", "ipywidgets", "papermill")


def name_of(requirement: str) -> str:
    """The name of a package as pip compares it: `Jupyter_Core==5` is `jupyter-core`."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]*", requirement)[0]).lower()


def needed() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    return [line for line in lines if name_of(line) not in ("asutil", *RUNS_THE_NOTEBOOK)]


def pins(installed: set[str]) -> list[str]:
    """The lines of the lock file for packages that are not installed."""
    lock = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    return [line for line in lock if "==" in line and name_of(line) not in installed]


def main() -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = {name_of(package.name) for package in metadata.distributions()}
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "pins.txt"
        constraints.write_text("\n".join(pins(installed)), encoding="utf-8")
        subprocess.run([*pip, "--constraint", str(constraints), *needed()], check=True)
    subprocess.run([*pip, "--no-deps", str(ROOT)], check=True)


if __name__ == "__main__":
    main()
