"""Small mistakes, one at a time, in the modules that decide numbers and in those that read and save files: how many do the tests notice?

What a mistake is, mutmut says: another operator, number, word or argument. It leaves out annotations, docstrings, decorated functions and
what stands in `len(...)` and `isinstance(...)`. Each mistake goes into a copy of the project, whose tests run in a process of their own.
"""

import contextlib
import faulthandler
import itertools
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import libcst
import yaml
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode
from tqdm.contrib.concurrent import thread_map

from . import must

ROOT = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).with_name("survivors.yml")
COPIED = ("asutil", "aslab", "book", "data_cards", "experiments", "notebooks", "tests")  # without the book it is no project
# Which tests reach every line of a module, beside the examples in it: its own first, then the quickest.
TESTS = {
    **{
        f"sampling/{file}": ("sampling/test_pin", "sampling/test_sampler", "sampling/test_mspp", "sampling/test_context_sampling")
        for file in ("base", "pairs")
    },
    **dict.fromkeys(("inputs/cut", "inputs/ragged"), ("inputs/test_cut", "inputs/test_pairs", "inputs/test_groups")),
    "inputs/pairs": ("inputs/test_pairs", "models/test_context_models", "inputs/test_groups", "models/test_joint"),
    "inputs/batches": (
        *("inputs/test_pairs", "models/test_context_models", "inputs/test_groups"),
        *("inputs/test_lists", "models/test_joint", "tasks/test_finding"),
    ),
    "models/pair": ("models/test_pair", "models/test_context_models", "models/test_joint", "models/test_loading", "inputs/test_lists"),
    **{
        f"heads/{file}": ("models/test_pair", "heads/test_heads", "models/test_embedder", "models/test_joint")
        for file in ("base", "ie_k", "ae_k", "ie_1", "ae_1", "pair_max", "pair_weighted", "siamese", "question_types")
    },
    "losses": ("test_losses", "heads/test_heads", "inputs/test_triplets", "tasks/test_finding"),
    "metrics/rankings": ("metrics/test_rankings", "metrics/test_trec"),
    "metrics/registry": ("metrics/test_rankings", "metrics/test_measures"),
    **{f"metrics/measures/{file}": ("metrics/test_rankings", "metrics/test_peers") for file in ("p_at_1", "average_precision", "mrr")},
    "metrics/significance": ("metrics/test_significance",),
    "io/disk": ("io/test_disk",),
    "io/checkpoints": ("models/test_loading", "models/test_elsewhere", "models/test_electra_files"),
    "io/files": ("io/test_files", "data/test_tables", "data/test_answers"),
    "io/hub": ("io/test_hub", "models/test_loading", "data/test_hub_answers"),
    "training/checkpoints": ("training/test_loop",),
}
AT_ONCE = 2
SECONDS, MINUTES = 120, 40  # until one test counts as hanging, and until all of them do not count at all
MEMORY = 16 << 30  # bytes of address space: a mistake may ask for any amount
PRELOADED = (
    *("torch", "transformers", "transformers.models.roberta.modeling_roberta", "datasets", "pandas", "scipy.stats", "hypothesis"),
    *("pytest", "tqdm.auto", "tests.trust.mutants"),
)
LEAST = 0.9


class Mutant(NamedTuple):
    """One mistake: module (its path in the package), function, the lines before and after, and the module's whole text with it."""

    module: str
    function: str
    line: str
    becomes: str
    text: str

    @property
    def name(self) -> tuple[str, ...]:
        return self[:4]


class Ran(NamedTuple):
    """How tests ended: pytest's exit code (a signal's is negative; None where they came to no end), and which failed first."""

    code: int | None
    seconds: float
    failed: str


def check(full: bool, seed: int, folder: Path) -> dict:
    """A hundred mistakes, or ten, drawn from all that the library can make."""
    mutants = drawn(100 if full else 10, random.Random(seed))
    return judged(mutants, tested(mutants, folder))


def tested(mutants: list[Mutant], folder: Path) -> list[Ran]:
    """How the tests end with each mutant. Raises: Broken where a test that notices one fails without it, too."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    whole = copied(folder / "whole")

    def with_mistake(mutant: Mutant, number: int) -> Ran:
        tree = shutil.copytree(whole, folder / f"mutant-{number}")
        (tree / "asutil" / f"{mutant.module}.py").write_text(mutant.text, encoding="utf-8")
        ran = run(tree, [f"asutil/{mutant.module}.py", *(f"tests/{name}.py" for name in TESTS[mutant.module])])
        shutil.rmtree(tree)
        return ran

    ran = thread_map(with_mistake, mutants, range(len(mutants)), max_workers=AT_ONCE, desc="mutants", dynamic_ncols=True)
    passing(whole, sorted({one.failed for one in ran if one.failed}))
    return ran


# ------------------------------------------------------------------ mutants


def drawn(count: int, draw: random.Random) -> list[Mutant]:
    """Some of all mutants of the modules, each as likely as any other."""
    made = [(module, *one) for module in TESTS for one in possible((ROOT / "asutil" / f"{module}.py").read_text("utf-8"))]
    return [mutant(*made[place]) for place in draw.sample(range(len(made)), count)]


def possible(text: str) -> list[tuple]:
    """Every mutation of a module's text that the library knows, each with the parsed module."""
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    parsed = MetadataWrapper(libcst.parse_module(text)).visit(visitor)
    return [(parsed, mutation) for mutation in visitor.mutations]


def mutant(module: str, parsed: libcst.Module, mutation) -> Mutant:
    function = mutation.contained_by_top_level_function
    text = parsed.deep_replace(mutation.original_node, mutation.mutated_node).code
    named = function.name.value if isinstance(function, libcst.FunctionDef) else ""
    return Mutant(module, named, *differing(parsed.code, text), text)


def differing(before: str, after: str) -> tuple[str, str]:
    """The lines in which two texts differ, from each."""
    texts = before.splitlines(), after.splitlines()
    start = shared(*texts)
    end = shared(*(lines[start:][::-1] for lines in texts))
    return tuple("\n".join(line.strip() for line in lines[start : len(lines) - end]) for lines in texts)


def shared(first: list[str], second: list[str]) -> int:
    """How many lines two lists begin with in common."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second)))


# ------------------------------------------------------------------ runs of tests


def copied(tree: Path) -> Path:
    """What the tests need of the project."""
    tree.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("_build", "runs"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy2(ROOT / name, tree)
    return tree


def passing(tree: Path, tests: list[str]) -> None:
    """Raises: Broken where a test fails, or a file cannot be read, in a tree without a mistake. Some files have no example (5)."""
    files = [test for test in tests if "::" not in test]
    for given in ([test for test in tests if test not in files], ["--collect-only", *files] if files else []):
        ran = run(tree, given) if given else Ran(0, 0.0, "")
        without_example = ran.code == 5 and given[0] == "--collect-only"
        must(ran.code == 0 or without_example, f"tests pass without a mistake: {ran.failed or given} ended with {ran.code}")


def run(tree: Path, given: list[str]) -> Ran:
    """Tests of a tree until the first that fails, in a process of its own that ends with all that it started."""
    log = tree.with_suffix(".txt")
    process = multiprocessing.get_context("forkserver").Process(target=in_child, args=(tree, given, log))
    started = time.monotonic()
    process.start()
    process.join(60 * MINUTES)
    code = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return Ran(code, round(time.monotonic() - started, 1), failed_first(log.read_text("utf-8", "replace")))


def failed_first(log: str) -> str:
    """The test that failed, the file all tests need that could not be read, or the test that stood when its time was over."""
    failed = re.search(r"^(?:FAILED|ERROR|ImportError while loading conftest '.*/(?=tests/)) ?(.+?)(?: - |'\.$|$)", log, re.MULTILINE)
    stood = re.search(r'^  File ".*/(tests/[\w/]*test_\w+\.py)", line \d+ in (test_\w+)$', log, re.MULTILINE)
    return failed[1] if failed else "::".join(stood.groups()) if stood else ""


def in_child(tree: Path, given: list[str], log: Path) -> None:
    """pytest in a tree; nothing of the project has been imported before."""
    os.setsid()
    with log.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ.pop("ASUTIL_MIRROR", None)  # which tests run must not depend on the machine
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # the tests of the tree are to run, not those next to this file
    import pytest

    if torch := sys.modules.get("torch"):  # it read its environment before
        torch.set_num_threads(1)
    options = ["-x", "--tb=short", f"--basetemp={tree / 'tmp'}", "--hypothesis-profile=ci"]  # ci: no database, and nothing drawn anew
    limits = ["-o", f"faulthandler_timeout={SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # while files are read; pytest sets it anew for each test
    sys.exit(pytest.main([*options, *limits, *given]))


# ------------------------------------------------------------------ judgement


def judged(mutants: list[Mutant], ran: list[Ran]) -> dict:
    """Figures. Raises: Broken where tests did not run, or noticed too few of the mutants that are not known to change nothing."""
    for one, how in zip(mutants, ran):
        # All passed; one failed or hung; a file could not be read, that all tests need (4) or another; or a signal.
        ended = how.code is not None and (how.code <= 2 or (how.code == 4 and how.failed))
        must(ended, f"tests run to their end with {one.name}: pytest ended with {how.code}")
    survivors = [one.name for one, how in zip(mutants, ran) if how.code == 0]
    missed = [name for name in survivors if name not in equivalent()]
    count, without_effect = len(mutants), len(survivors) - len(missed)
    noticed = count - len(survivors)
    shown = "\n".join(f"{module}.{function}: {line}\n  -> {becomes}" for module, function, line, becomes in missed)
    must(noticed >= LEAST * (count - without_effect), f"{LEAST:.0%} of {count} mistakes are noticed, {noticed} were; not\n{shown}")
    figures = {"mutants": count, "noticed": noticed, "equivalent": without_effect, "missed": len(missed)}
    each = [dict(zip(Mutant._fields, one.name)) | how._asdict() for one, how in zip(mutants, ran)]
    return figures | {"slowest_seconds": max(how.seconds for how in ran), "each": each}


def equivalent() -> set[tuple[str, ...]]:
    """The mutants that were looked at and change nothing, by name."""
    listed = yaml.safe_load(SURVIVORS.read_text("utf-8")) or []
    return {tuple(one[field] for field in Mutant._fields[:4]) for one in listed if one["judgement"] == "equivalent"}
