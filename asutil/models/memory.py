"""Memory of large tensors on a CPU, used again instead of given back."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of glibc's mallopt
_inside, _counting = 0, threading.Lock()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Let glibc reuse the memory of large tensors in here, instead of giving it back; here means all threads, until the last one leaves.

    The gradient of an embedding table is some 80 MB, the output of a layer for 1,024 tokens some 4 MB. Each time one is made, the kernel
    would hand out and clear its pages anew.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _inside
    with _counting:
        before, _inside = _inside, _inside + change
        if not (before and _inside):
            _keep(bool(_inside))


def _keep(all_of_it: bool) -> None:
    """Keep freed memory, or give large parts of it back: those that a glibc which nobody has set comes to give back, too."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)  # macOS and musl have none
    mallopt(M_MMAP_MAX, 0 if all_of_it else 65536)
    mallopt(M_MMAP_THRESHOLD, 32 << 20)  # its largest
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1 if all_of_it else 64 << 20)
