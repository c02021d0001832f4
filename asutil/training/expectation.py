"""What a training is expected to take: its steps and tokens before the first step, the time that is left after the first ones."""

import time
from collections.abc import Iterable, Iterator

SECONDS = 10.0  # of training that are measured, after the first step; a shorter training needs no estimate


def told(batches: Iterable[dict], steps: int, bar, roughly: str = "about") -> Iterator[dict]:
    """The batches of a training of so many steps; its size and its expected time are written above its bar, if it is shown.

    Args:
        roughly: the word before the time: "about", or "at most" where the training may stop early.
    """
    started = None
    for taken, batch in enumerate(batches):
        if taken == 0 and not bar.disable:
            total = int(float(f"{steps * batch['tokens']:.1e}"))  # two digits: steps differ in their tokens
            bar.write(f"{counted(steps, 'step')} to train, about {total:,} tokens")
        elif taken == 1 and not bar.disable:
            started = time.monotonic()  # the first step also loads and compiles
        elif started is not None and (seconds := time.monotonic() - started) >= SECONDS:
            left, started = steps - taken, None
            rest = spoken(left * seconds / (taken - 1))
            bar.write(f"{roughly} {rest} for the {counted(left, 'step')} left, by the first {taken}")
        yield batch


def spoken(seconds: float) -> str:
    """A rough length of time.

    Example:
        >>> [spoken(seconds) for seconds in (0.3, 50, 100, 14 * 60, 5 * 3600, 90 * 3600)]
        ['1 second', '50 seconds', '2 minutes', '14 minutes', '5 hours', '4 days']
    """
    units = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
    longest = {"second": 90, "minute": 5400, "hour": 48 * 3600}
    unit = next((unit for unit, most in longest.items() if seconds < most), "day")
    count = max(1, round(seconds / units[unit]))
    return counted(count, unit)


def counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'s' * (count != 1)}"
