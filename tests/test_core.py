"""The core alone: it is imported, and it samples, ranks and measures, in an interpreter that has its dependencies and nothing else."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("draws", "losses", "heads", "corpus", "sampling", "inputs", "metrics")
# Refuses the packages that are named on the command line, then imports every module of the core's rooms and uses them.
PROGRAM = """
import importlib, pkgutil, sys
from pathlib import Path

refused, rooms, folder = set(sys.argv[1].split(",")), sys.argv[2].split(","), Path(sys.argv[3])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"{name} is no dependency of the core", name=name)

sys.meta_path.insert(0, Refuse())
for room in rooms:
    package = importlib.import_module(f"asutil.{room}")
    for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
        importlib.import_module(f"asutil.{room}.{module.name}")

import torch
import asutil
from asutil import corpus, heads, inputs, losses, metrics, sampling

sentences = [f"This is sentence {n} of a text, which has some words." for n in range(40)]
documents = [[sentences[n : n + 4], sentences[n + 4 : n + 8]] for n in range(0, 32, 2)]
tokenizer = corpus.train_tokenizer(sentences, vocab_size=300)
index = corpus.build(documents, tokenizer, folder / "index")
sampler = sampling.Sampler(corpus.Corpus.open(index.folder, tokenizer), "ssp")
example, batch = sampler[0], sampler.batch(range(5))
assert example.parts[0] in " ".join(sentences) and batch.labels.tolist().count(1) == 1
steps = inputs.PretrainingBatches(lambda epoch: sampler, steps=1, batch_size=5, micro_tokens=1000, seed=0)
assert sum(len(micro["labels"]) for micro in steps[0]["micro"]) == 5
logits = heads.IndividualEvidenceK(8)(torch.zeros(2, 4, 8))
assert losses.pair(logits, torch.ones(2, 3, dtype=torch.long)) > 0
assert metrics.ranking(["q", "q"], [0, 1], [0.1, 0.9]).p_at_1 == 1
assert metrics.student_t([0.5, 0.6, 0.7], [0.1, 0.2, 0.4]).p_value < 0.05
ranked = asutil.load_ranker("bm25").rank("Where do penguins breed?", ["They eat fish.", "Penguins breed on ice."])
assert [number for number, _ in ranked] == [1, 0]
"""


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]*", requirement)[0]).lower()


def needed_by(requirements: list[str]) -> set[str]:
    """The distributions that some requirements install, with all that they need themselves."""
    names, waiting = set(), [name_of(line) for line in requirements]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            try:
                waiting += [name_of(line) for line in metadata.requires(name) or () if "extra ==" not in line]
            except metadata.PackageNotFoundError:  # of another system
                continue
    return names


def core_dependencies() -> list[str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]


def test_the_core_runs_without_any_other_package(tmp_path):
    installed = needed_by(core_dependencies())
    owners = metadata.packages_distributions()
    others = {module for module, names in owners.items() if not installed & {name_of(name) for name in names}}
    refused = others - {"asutil"} | {"aslab"}
    assert {"transformers", "pyarrow", "sklearn", "papermill"} <= refused
    command = [sys.executable, "-c", PROGRAM, ",".join(refused), ",".join(ROOMS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_refused_is_no_small_thing():
    installed = needed_by(core_dependencies())
    assert {"torch", "numpy", "bm25s"} <= installed
    assert not installed & {"transformers", "pyarrow", "datasets", "scikit-learn", "papermill", "matplotlib", "safetensors"}
    assert len(core_dependencies()) <= 11
