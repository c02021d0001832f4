"""The names that scripts outside the packages rely on, and how little has to be imported for them."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .data.test_answers import folder

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "asutil": ["load_ranker"],
    "asutil.corpus": ["build", "Corpus", "documents"],
    "asutil.sampling": ["Sampler"],
    "asutil.data": ["load_answers", "load_claims", "load_evidence", "Question", "Candidate"],
    "asutil.metrics": ["ranking", "student_t", "paired_bootstrap"],
    "asutil.losses": ["mlm", "replaced_token", "pair", "siamese", "triplet", "question_evidence"],
    "asutil.models.heads": [
        *("IndividualEvidenceK", "AggregatedEvidenceK", "IndividualEvidence1", "AggregatedEvidence1"),
        *("Siamese", "QuestionTypeProjection"),
    ],
    "aslab.runs": ["read_all"],
}


@pytest.mark.parametrize("module", NAMES)
def test_every_promised_name_is_there(module):
    for name in NAMES[module]:
        assert callable(getattr(importlib.import_module(module), name)), f"{module}.{name}"


def test_every_exported_name_of_a_package_is_there():
    import aslab.show
    import asutil

    packages = [importlib.import_module(f"asutil.{name}") for name in ("corpus", "data", "inputs", "sampling", "models", "metrics")]
    for package in [*packages, asutil.training, asutil.tasks, aslab.show]:
        names = package.__getattr__.__closure__
        exported = next(cell.cell_contents for cell in names if isinstance(cell.cell_contents, dict))
        for name in exported:
            assert getattr(package, name) is not None
            assert name in dir(package), "for completion"
    assert {"load_ranker", "metrics"} <= set(dir(asutil))
    with pytest.raises(AttributeError):  # an editor that asks for all members must run no command
        asutil.__main__  # noqa: B018


# What reads, counts and shows loads neither torch nor transformers, one statement after the other.
LIGHT = (
    "import asutil; assert 'numpy' not in sys.modules",
    "import asutil.metrics.rankings, asutil.metrics.significance, asutil.metrics.trec, asutil.metrics.answers",
    "import asutil.data.claims, asutil.data.long_questions, asutil.tasks.mine, asutil.tasks.vectors",
    "import aslab.runs, aslab.records, aslab.plan, aslab.compare, aslab.blind, aslab.export, aslab.publish, aslab.vector_commands",
    "from asutil.data import answers, baselines; split = answers.load_answers(sys.argv[1])['test']",
    "baselines.baseline_scores(split, 'bm25'); answers.fingerprint_of_answers('pydocs')",
    "asutil.load_ranker('bm25').rank('a question', ['an answer', 'another'])",
    "from asutil.pydocs import documents; documents.fingerprint_of_docstrings()",
    "assert len(list(documents.read_docstrings(('torch', 'transformers'), limit=20))) == 20",
    "from aslab.show import lists, plots, tables; assert 'scipy.stats' not in sys.modules",
    "from aslab import hours; from aslab.analysis import costs; costs.by_notebook('asbert')",
    f"sys.path.append({str(ROOT / 'book' / '_ext')!r}); import pages.report, pages.examples",
)


def test_counting_ranks_and_reading_runs_need_no_torch(tmp_path):
    check = "loaded = {'torch', 'transformers'} & set(sys.modules); assert not loaded, (loaded, %r)\n"
    code = "import sys\n" + "".join(f"{line}\n{check % line}" for line in LIGHT)
    subprocess.run([sys.executable, "-c", code, str(folder(tmp_path))], check=True)


def test_an_unknown_name_is_an_attribute_error():
    import asutil

    with pytest.raises(AttributeError, match="module 'asutil.metrics' has no attribute 'rankingg'"):
        asutil.metrics.rankingg  # noqa: B018


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
    ids=["unset", "spin count of the user", "wait policy of the user"],
)
def test_openmp_waits_without_taking_a_core_from_others(before, after):
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import os, asutil; print(os.environ.get('GOMP_SPINCOUNT'))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, env=environment | before, capture_output=True, text=True, check=True).stdout.strip() == after


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_sets_how_openmp_waits_before_torch_is_loaded(path):
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells).splitlines()
    imports = [line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))]
    heavy = {"torch", "transformers", "sklearn", "seaborn"} & set(imports)
    assert min(imports.index(name) for name in ("asutil", "aslab") if name in imports) < min(map(imports.index, heavy), default=99)
