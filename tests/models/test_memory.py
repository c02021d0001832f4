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

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

outside = faults(), faults()
with memory.kept():
    with memory.kept():
        faults()
    inside = faults(), faults()
print(outside[1], inside[1], (faults(), faults())[1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_memory_of_large_arrays_is_used_again():
    """80 MB a second time: the kernel hands out no new pages, where it otherwise hands out all of them."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
    before, inside, after = map(int, done.stdout.split())
    assert inside < 50 < min(before, after)


SMALLER = """
import resource
import numpy as np
from asutil.models import memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(500_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with memory.kept():
    pass
print([faults() for _ in range(4)][-1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_afterwards_arrays_of_some_megabytes_are_used_again_as_in_a_process_that_never_kept_memory():
    done = subprocess.run([sys.executable, "-c", SMALLER], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50
