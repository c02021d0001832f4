"""Memory of large tensors on a CPU, used again instead of given back."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of glibc's mallopt
_inside, _counting = 0, threading.Lock()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Let glibc reuse the memory of large tensors in here, in all threads, instead of giving it back to the kernel.

    The gradient of an embedding table is some 80 MB, the output of a layer for 1,024 tokens some 4 MB. Each time one is made, the kernel
    would hand out and clear its pages anew.
    """
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    """Keep freed memory while anyone is inside; otherwise glibc's thresholds at their adaptive maxima (32 and 64 MiB)."""
    global _inside
    with _counting:
        _inside += change
        # macOS and musl have none.
        mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)
        mallopt(M_MMAP_MAX, 0 if _inside else 65536)
        mallopt(M_MMAP_THRESHOLD, 32 << 20)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1 if _inside else 64 << 20)
