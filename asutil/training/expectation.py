"""What a training is expected to take: its steps and tokens before the first step, the time that is left after the first ones."""

import time

SECONDS = 10.0  # of training that are measured, after the first step; a shorter training needs no estimate


class Expectation:
    """Prints the size of a training, then its expected time. It only reads a clock, so the training stays the same.

    Args:
        steps: those to come.
        bar: the training's bar, above which the lines are written; nothing is printed where it is disabled.
        roughly: the word before the time: "about", or "at most" where the training may stop early.
    """

    def __init__(self, steps: int, bar, roughly: str = "about"):
        self.steps, self.bar, self.roughly = steps, bar, roughly
        self.taken = 0
        self.started = None
        self.done = bar.disable

    def announce(self, tokens: int) -> None:
        """Call before each step, with its tokens: prints before the first."""
        if not self.done and not self.taken:
            total = int(float(f"{self.steps * tokens:.1e}"))  # two digits: steps differ in their tokens
            self.bar.write(f"{counted(self.steps, 'step')} to train, about {total:,} tokens")

    def estimate(self) -> None:
        """Call after each step: prints once, when enough steps were measured."""
        self.taken += 1
        left = self.steps - self.taken
        if self.taken == 1:
            self.started = time.monotonic()  # the first step also loads and compiles
        elif not self.done and left and (seconds := time.monotonic() - self.started) >= SECONDS:
            self.done = True
            rest = spoken(left * seconds / (self.taken - 1))
            self.bar.write(f"{self.roughly} {rest} for the {counted(left, 'step')} left, by the first {self.taken}")


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
