"""Which kernel papermill's command line takes for a notebook of the project."""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from .test_launch import papermill, run_folders, write_notebook

pytestmark = pytest.mark.slow

ELSEWHERE = {"argv": ["false", "{connection_file}"], "display_name": "Python 3", "language": "python"}
SAID = "import os, sys; print(sys.executable, os.environ.get('MINE')); import sys,"


@pytest.fixture
def project(tmp_path):
    """A project whose notebook prints the Python of its kernel."""
    (tmp_path / "book").mkdir()
    path = tmp_path / "notebooks" / "demo.ipynb"
    write_notebook(path)
    path.write_text(path.read_text().replace("import sys,", SAID))
    return tmp_path


@pytest.mark.parametrize(("longer", "transport"), [("", "ipc"), ("t" * 80, "tcp")])
def test_a_kernel_is_reached_by_files_where_their_path_is_short_enough(project, monkeypatch, longer, transport):
    """Ports are chosen before a kernel takes them: two that start at once may get the same one."""
    path = project / "notebooks" / "demo.ipynb"
    asked = "from ipykernel.connect import get_connection_info; print(get_connection_info()); import sys,"
    path.write_text(path.read_text().replace("import sys,", asked))
    with tempfile.TemporaryDirectory(prefix=longer, dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        done = papermill(project, path)
        assert done.returncode == 0 and f'"transport": "{transport}"' in done.stdout, done.stderr
        assert not list(Path(folder).glob("kernel-*"))


def install(folder, monkeypatch, name, **spec):
    (folder / "kernels" / name).mkdir(parents=True)
    (folder / "kernels" / name / "kernel.json").write_text(json.dumps(ELSEWHERE | spec))
    monkeypatch.setenv("JUPYTER_PATH", str(folder))


@pytest.mark.parametrize("spec", [{"name": "my-as2", "display_name": "Mine", "language": "python"}, {"name": "python3"}, None])
def test_the_kernel_is_this_pythons_whatever_the_notebook_names(project, monkeypatch, spec):
    """JupyterLab stores the name of a user's kernel; a user's own python3 may be of another Python."""
    install(project, monkeypatch, "python3")
    path = project / "notebooks" / "demo.ipynb"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"metadata": {"kernelspec": spec} if spec else {}}))
    done = papermill(project, path, "-p", "seed", 7)
    assert done.returncode == 0, done.stderr
    assert f"{sys.executable} None\n" in done.stdout and len(list(project.glob("runs/demo-*/record.json"))) == 1


def test_a_kernel_that_was_asked_for_is_taken_or_refused(project, monkeypatch):
    install(project, monkeypatch, "mine", argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], env={"MINE": "x"})
    wrong = papermill(project, "notebooks/demo.ipynb", "-k", "pyton3")
    assert wrong.returncode == 2 and "-k pyton3: no kernel has this name; did you mean 'python3'? There are: mine, " in wrong.stderr
    assert not run_folders(project)
    right = papermill(project, "notebooks/demo.ipynb", "-k", "mine")
    assert right.returncode == 0 and f"{sys.executable} x\n" in right.stdout, right.stderr
