"""A piece of work that is killed again and again and begun anew by the same call, until a number of kills is reached."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tqdm.auto import tqdm

from tests.trust import must

POLL = 2e-4  # seconds
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST = 120  # seconds until what was interrupted counts as hanging


@dataclass
class Killed:
    """What came of it: where nobody killed it, kills, those of them inside a save, and where it was brought to its end all the same."""

    whole: Path
    kills: int = 0
    inside: int = 0
    finished: list[Path] = field(default_factory=list)


def again_and_again(work: Callable[[Path], None], folder: Path, kills: int, draw: random.Random, saving: Callable | None = None) -> Killed:
    """Leave `work(folder)` alone once; then let it be killed at `kills` random moments, in one folder after the other, and end in each.

    A kill is SIGKILL, SIGTERM or SIGINT to all processes of the work. With `saving`, folder -> whether something is half-written there,
    every other kill waits for such a moment and comes a random time after it began.
    """
    found, inside = Killed(folder / "whole"), []
    found.whole.mkdir(parents=True)
    started = time.monotonic()
    must(begun(work, found.whole, None, None, random.Random()), f"{folder.name}: the work was killed by somebody else")
    seconds = time.monotonic() - started
    with tqdm(total=kills, desc=folder.name, unit=" kills", dynamic_ncols=True) as bar:
        while found.kills < kills:
            place = folder / f"{len(found.finished):03d}"
            place.mkdir()
            ended = False
            while not ended:
                last = found.kills >= kills
                moment = None if last else draw.uniform(0, 0.6 * seconds)
                waiting, looking = saving if found.kills % 2 else None, lambda at: inside.append(bool(saving and saving(at)))
                ended = begun(work, place, moment, waiting, draw, looking)
                if not ended:
                    found.kills += 1
                    found.inside += inside[-1]
                    bar.update()
            found.finished.append(place)
    return found


def begun(work, folder: Path, moment: float | None, saving, draw: random.Random, looking=lambda folder: None) -> bool:
    """Begin the work in a process of its own, or go on with it, and kill it at a moment; whether it came to its end before.

    `looking(folder)` is called just before the kill.
    """
    child = os.fork()
    if child == 0:
        _child(work, folder)
    started = time.monotonic()
    late = started + moment if moment is not None else float("inf")
    while True:
        with suppress(ChildProcessError):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return _ended(status, folder)
        now = time.monotonic()
        if now >= late and (saving is None or saving(folder)):
            if saving:
                time.sleep(draw.uniform(0, 0.02))
            looking(folder)
            return _killed(child, draw.choice(SIGNALS), folder)
        time.sleep(POLL)


def _killed(child: int, number: signal.Signals, folder: Path) -> bool:
    """Send a signal to the work, and in the end SIGKILL to what is left of it; whether the work came to its end all the same."""
    started, done = time.monotonic(), 0
    with suppress(ProcessLookupError):
        os.killpg(child, number)
    while not done and time.monotonic() < started + LONGEST:
        time.sleep(POLL)
        done, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    must(done, f"{folder}: the work still ran {LONGEST} seconds after {number.name}")
    return os.WIFEXITED(status) and not os.WEXITSTATUS(status)


def _child(work, folder: Path) -> None:
    status = 1
    try:
        os.setsid()  # its own workers die with it
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        tqdm.set_lock(threading.RLock())  # a killed process must not take the one of this process' bars with it
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        work(folder)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _ended(status: int, folder: Path) -> bool:
    """True. Raises: Broken with what the work said where it did not end by itself and well."""
    said = (folder / "output.txt").read_text(errors="replace")[-2000:]
    must(os.WIFEXITED(status) and not os.WEXITSTATUS(status), f"{folder}: the work failed (wait status {status}):\n{said}")
    return True


def noted(path: Path, line: str) -> None:
    """Append a line to a log in one write, which is there whatever happens to the process after it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def lines(path: Path) -> Iterator[str]:
    """The lines of such a log."""
    yield from path.read_text().splitlines() if path.is_file() else ()
