"""Large arrays in kept memory: page faults counted by the system."""

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from asutil.models import memory

def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(size)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""
LARGE = """
again = lambda: (faults(10_000_000), faults(10_000_000))[1]
outside = again()
with memory.kept():
    with memory.kept():
        again()
    inside = again()
print(outside, inside, again())
"""
SMALLER = """
with memory.kept():
    pass
print([faults(500_000) for _ in range(4)][-1])
"""


def printed(code: str) -> list[int]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", FAULTS + code], env=environment, capture_output=True, text=True, check=True)
    return list(map(int, done.stdout.split()))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_memory_of_large_arrays_is_used_again():
    """80 MB a second time: the kernel hands out no new pages, where it otherwise hands out all of them."""
    before, inside, after = printed(LARGE)
    assert inside < 50 < min(before, after)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_afterwards_arrays_of_some_megabytes_are_used_again_as_in_a_process_that_never_kept_memory():
    assert printed(SMALLER)[0] < 50
