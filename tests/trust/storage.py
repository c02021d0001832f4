"""Storage that fails: no space, errors of the device, short writes and kills at every write, sync, rename and new file of a save, and files
that were damaged afterwards.

Whatever fails, the former state is read afterwards, the error names the path, and the next start leaves no temporary file. What was cut
short or has a flipped bit is refused with both hashes. The faults come from a small library that is preloaded (`faults.c`, needs a C
compiler): this part runs its saves in a process that has it.
"""

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path

from tqdm.auto import tqdm

from tests.trust import must

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KINDS = ("no space", "device error", "short write", "kill")
HALF = (".part", ".former", ".building", ".embedding")  # how what is half-written ends
TRIES = 12  # of a kind of save at quick size


def check(full: bool, seed: int, folder: Path) -> dict:
    """Faults at every write of every kind of save, a random share of them at quick size, and damaged files."""
    library = compiled(folder)
    command = [sys.executable, "-m", "tests.trust.storage", str(folder), str(seed), str(int(full))]
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    must(done.returncode == 0, f"faults: the process that saves ended with {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    must(not found["broken"], f"{len(found['broken'])} saves broke a promise:\n" + "\n".join(found["broken"][:40]))
    from tests.trust import damaged

    return {name: value for name, value in found.items() if name != "broken"} | damaged.check(full, seed, folder)


def compiled(folder: Path) -> Path:
    """The library of faults. Raises: Broken where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    must(compiler is not None, "storage: a C compiler (cc) is needed to inject faults")
    library = folder / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "faults.c"), "-ldl"], check=True)
    return library


# ------------------------------------------------------------------ in the process that has the faults


class Faults:
    """The preloaded library."""

    def __init__(self):
        self.library = ctypes.CDLL(None)
        self.library.disarm.restype = ctypes.c_long

    def arm(self, folder: Path, number: int, kind: int) -> None:
        self.library.arm(str(folder.resolve()).encode(), ctypes.c_long(number), kind)

    def disarm(self) -> int:
        """How many writes there were since `arm`."""
        return self.library.disarm()


def injected(folder: Path, seed: int, full: bool) -> dict:
    """How many faults each kind of save met, and what they broke."""
    import torch

    from tests.trust import saves

    torch.set_num_threads(1)
    faults, draw, made, broken, outcomes = Faults(), random.Random(seed), saves.all_of(folder), [], Counter()
    for save in made:
        before = folder / f"{save.name} before"
        save.prepare(before)
        writes = _in_a_child(save, before, folder, faults, 10**9, 0)["writes"]
        must(writes > 0, f"{save.name}: no write was seen, so that none can fail")
        points = [(number, kind) for number in range(1, writes + 1) for kind in range(len(KINDS))]
        points = points if full else sorted(draw.sample(points, min(TRIES, len(points))))
        for number, kind in tqdm(points, desc=save.name, unit=" faults", dynamic_ncols=True):
            came = _in_a_child(save, before, folder, faults, number, kind)
            outcomes[came["outcome"]] += 1
            if came["wrong"]:
                broken.append(f"{save.name}, {KINDS[kind]} at write {number} of {writes}: {came['wrong']}")
    return {"saves": len(made), "faults": sum(outcomes.values()), **outcomes, "broken": broken}


def _in_a_child(save, before: Path, folder: Path, faults: Faults, number: int, kind: int) -> dict:
    """One try on a copy of what was there before: the save with a fault, and the next start without one, each in a process of its own."""
    work, said = folder / "work", folder / "said.json"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(before, work)

    def saving() -> dict:
        faults.arm(work, number, kind)
        try:
            save.save(work)
            failed = None
        except Exception as error:
            failed = error
        writes = faults.disarm()
        wrong = "" if failed is None else _message(failed, work)
        return {"writes": writes, "outcome": "succeeded" if failed is None else "failed", "wrong": wrong}

    came = _answer(saving, said)
    if KINDS[kind] == "kill" and came["outcome"] == "died":
        came = {"outcome": "killed", "wrong": ""}
    if not came["wrong"]:
        came["wrong"] = _answer(lambda: {"wrong": _after(save, work, came["outcome"])}, said)["wrong"]
    return came


def _message(error: Exception, work: Path) -> str:
    """What is wrong with how a save failed, or nothing."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__} instead of OSError: {error}"
    return "" if str(work) in str(error) else f"the error does not name the path: {error}"


def _after(save, work: Path, outcome: str) -> str:
    """What is wrong with the next start, or nothing."""
    found = save.read(work)
    if found != save.new and (outcome == "succeeded" or found != save.former):
        return f"it {outcome}, and then {save.new if outcome == 'succeeded' else save.former} was expected, got {found}"
    save.save(work)
    again = save.read(work)
    leftovers = [str(path.relative_to(work)) for path in work.rglob(".*") if path.name.endswith(HALF)]
    if again != save.new:
        return f"done again it gives {again}, {save.new} expected"
    return f"left behind: {', '.join(leftovers)}" if leftovers else ""


def _answer(work, said: Path) -> dict:
    """What some work returns, done in a forked process."""
    said.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()  # its own workers die with it
        try:
            answer = work()
        except BaseException as error:
            answer = {"writes": 0, "outcome": "failed", "wrong": "".join(traceback.format_exception(error))[-1500:]}
        said.write_text(json.dumps(answer))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return json.loads(said.read_text()) if said.is_file() else {"outcome": "died", "wrong": f"its process ended with {status}"}


if __name__ == "__main__":
    print(json.dumps(injected(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")))
