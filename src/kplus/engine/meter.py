"""How long reading takes, and how many rows are visited."""

import time
from threading import Lock

from kplus.core.types import Array, Blocks, IntArray
from kplus.engine.memory import resident_bytes

__all__ = ["Meter", "TimedBlocks"]


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
        Most bytes of memory that were seen at the end of a sweep.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.rows = self.workers = self.peak = 0
        self.seconds = self.read_seconds = 0.0

    def add(self, rows: int, seconds: float, read_seconds: float, workers: int) -> None:
        with self._lock:
            self.rows += rows
            self.seconds += seconds
            self.read_seconds += read_seconds
            self.workers = max(self.workers, workers)

    def look(self) -> None:
        """Note how much memory there is."""
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
