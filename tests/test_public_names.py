"""The names that scripts outside the packages rely on, and how little has to be imported for them."""

import importlib
import subprocess
import sys

import pytest

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
COMMANDS = ("asutil.tasks.vectors", "asutil.tasks.mine", "asutil.metrics.trec", "aslab.publish", "aslab.pipeline", "aslab.processes")


@pytest.mark.parametrize("module", NAMES)
def test_every_promised_name_is_there(module):
    for name in NAMES[module]:
        assert callable(getattr(importlib.import_module(module), name)), f"{module}.{name}"


@pytest.mark.parametrize("module", COMMANDS)
def test_every_command_is_a_module_with_a_main(module):
    assert callable(importlib.import_module(module).main)


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


def test_counting_ranks_and_reading_runs_need_no_torch():
    modules = "asutil.metrics.rankings, asutil.metrics.trec, asutil.data.answers, asutil.data.claims, aslab.runs, aslab.records, aslab.plan"
    modules += ", aslab.compare, aslab.blind, aslab.export, aslab.publish, asutil.tasks.mine, asutil.tasks.vectors"
    code = f"import sys, asutil; assert 'numpy' not in sys.modules; import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    import asutil

    with pytest.raises(AttributeError, match="module 'asutil.metrics' has no attribute 'rankingg'"):
        asutil.metrics.rankingg  # noqa: B018
