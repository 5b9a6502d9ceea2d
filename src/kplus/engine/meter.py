"""What a fit takes: memory, time to read, rows visited."""

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from kplus.core.types import Array, Blocks, IntArray

__all__ = [
    "Meter",
    "TimedBlocks",
    "keeping_freed",
    "resident_bytes",
]

# As glibc's malloc.h numbers its settings, and the largest value it takes.
_TRIM, _MMAP = -1, -3
_KEPT_BYTES = 32 << 20
_MMAP_BYTES = 128 << 10  # freed memory of this size is usually given back at once
_LOOK_SECONDS = 0.005  # a look takes 10 µs, and a pass over few rows not much longer


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


class Meter:
    """What engines did for a fit.

    Attributes
    ----------
    rows : int
        Visits of rows.
    seconds, read_seconds : float
        Time of all engines, and what their threads took to read.
    workers : int
        Threads that worked at once, here or elsewhere.
    peak : int
        Most bytes of memory that were seen at the ends of sweeps.
    visited : int
        Visits of rows, with those of the engine at work.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.rows = self.workers = self.peak = 0
        self.seconds = self.read_seconds = 0.0
        self._due = 0.0
        self._begun: float | None = None  # when the first engine was
        self._at_work = 0  # rows that the engine at work has visited

    @property
    def visited(self) -> int:
        return self.rows + self._at_work

    def pace(self) -> float:
        """Visits of rows in a second, since the first engine began."""
        if self._begun is None:
            return 0.0
        return self.visited / max(time.monotonic() - self._begun, 1e-9)

    def begin(self) -> None:
        """An engine begins."""
        if self._begun is None:
            self._begun = time.monotonic()

    def add(self, rows: int, seconds: float, read_seconds: float, workers: int) -> None:
        with self._lock:
            self._at_work = 0
            self.rows += rows
            self.seconds += seconds
            self.read_seconds += read_seconds
            self.workers = max(self.workers, workers)

    def look(self, rows: int = 0) -> None:
        """Note what an engine has visited by now, and now and then how much memory."""
        self._at_work = rows
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _LOOK_SECONDS
        self.peak = max(self.peak, resident_bytes())


class TimedBlocks:
    """The blocks of another table, timed; what is mapped is read as it is used."""

    def __init__(self, source: Blocks) -> None:
        self._source = source
        self._lock = Lock()
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.block_rows = source.block_rows
        self.seconds = 0.0

    def read(self, index: int) -> Array:
        begun = time.perf_counter()
        rows = self._source.read(index)
        self._count(begun)
        return rows

    def take(self, rows: IntArray) -> Array:
        begun = time.perf_counter()
        taken = self._source.take(rows)
        self._count(begun)
        return taken

    def _count(self, begun: float) -> None:
        with self._lock:
            self.seconds += time.perf_counter() - begun
