"""Blocks of which an offset is taken off as they are read."""

import numpy as np

from kplus.core.types import Array, Blocks, IntArray

__all__ = ["ShiftedBlocks"]


class ShiftedBlocks:
    """The blocks of another table, less an offset for each column; float64."""

    def __init__(self, source: Blocks, offset: Array) -> None:
        self._source, self._offset = source, offset
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.block_rows = source.block_rows
        self.remote = getattr(source, "remote", False)
        self.stamps = getattr(source, "stamps", None)

    def read(self, index: int) -> Array:
        return self._source.read(index).astype(np.float64) - self._offset

    def take(self, rows: IntArray) -> Array:
        return self._source.take(rows).astype(np.float64) - self._offset
