"""Some consecutive rows of a table, as a table."""

import numpy as np

from kplus.core.types import Array, Blocks, IntArray
from kplus.sources.categories import Coding
from kplus.sources.wrapped import WrappedBlocks

__all__ = ["BlockRun"]


class BlockRun(WrappedBlocks):
    """The rows from `start` to `stop` of other blocks, in blocks of the same size.

    Parameters
    ----------
    source : Blocks
    start, stop : int
    coding : Coding or None
        What the codes in `source` mean, if some of its columns are categories.
    """

    def __init__(
        self, source: Blocks, start: int, stop: int, coding: Coding | None = None
    ) -> None:
        super().__init__(source)
        self._start, self.n_rows = start, stop - start
        self.coding = coding
        names = getattr(source, "feature_names", None)
        if names is not None:
            self.feature_names = names

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        block, inside = divmod(self._start + start, self._source.block_rows)
        if inside == 0 and self.block_rows == self._source.block_rows:
            rows: Array = self._source.read(block)[: stop - start]
            return rows
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken: Array = self._source.take(rows + self._start)
        return taken

    def release(self, start: int, stop: int) -> None:
        super().release(start + self._start, stop + self._start)
