"""How much memory this process has, and when it gives it back."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["keeping_freed", "resident_bytes"]

# As glibc's malloc.h numbers its settings, and the largest value it takes.
_TRIM, _MMAP = -1, -3
_KEPT_BYTES = 32 << 20
_MMAP_BYTES = 128 << 10  # freed memory of this size is usually given back at once


def resident_bytes() -> int:
    """Memory of this process that is its own: mapped files can be let go any time."""
    try:
        with open("/proc/self/statm") as file:
            _, resident, shared = map(int, file.read().split()[:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the highest so far
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


@contextmanager
def keeping_freed() -> Iterator[None]:
    """Let freed memory be used again meanwhile, rather than given back at once.

    Workers of Dask are started with a small `MALLOC_TRIM_THRESHOLD_`. Then every large
    temporary array is made of new pages, which the system must clear first.
    """
    threshold = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    libc = _glibc() if threshold.isdecimal() else None
    if libc is None:
        yield
        return
    libc.mallopt(_MMAP, _KEPT_BYTES)
    libc.mallopt(_TRIM, 2 * _KEPT_BYTES)
    try:
        yield
    finally:
        libc.mallopt(_MMAP, _MMAP_BYTES)
        libc.mallopt(_TRIM, int(threshold))
        libc.malloc_trim(0)


@cache
def _glibc() -> Any:
    try:
        libc = ctypes.CDLL("libc.so.6")
        return libc if hasattr(libc, "mallopt") else None
    except OSError:  # not Linux, or another C library
        return None
