"""Blocks that are made of those of another table: changed, or some of its rows."""

from typing import Any

import numpy as np

from kplus.core.types import Array, Blocks, IntArray
from kplus.data.blocks import Cut
from kplus.data.categories import Coding

__all__ = ["RowRange", "ShiftedBlocks", "WrappedBlocks"]


class WrappedBlocks(Cut):
    """The rows of `source`, changed in `_change`; they can be sent where those can."""

    def __init__(self, source: Blocks) -> None:
        super().__init__(source.n_rows, source.n_features, source.block_rows)
        self._source: Any = source
        self.remote = getattr(source, "remote", False)
        self.stamps = getattr(source, "stamps", None)

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        if self.block_rows != self._source.block_rows:
            return self.take(np.arange(start, stop))
        return self._change(self._source.read(index), start)

    def take(self, rows: IntArray) -> Array:
        return self._change(self._source.take(rows), rows)

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        """Some rows of the source as they shall be: their numbers, or the first one."""
        raise NotImplementedError

    def release(self, start: int, stop: int) -> None:
        """Let go of the memory of some mapped rows; they can be read again."""
        if hasattr(self._source, "release"):
            self._source.release(start, stop)


class ShiftedBlocks(WrappedBlocks):
    """The blocks of another table, less an offset for each column; float64."""

    def __init__(self, source: Blocks, offset: Array) -> None:
        super().__init__(source)
        self._offset = offset

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        return part.astype(np.float64) - self._offset


class RowRange(WrappedBlocks):
    """The rows from `start` to `stop` of other blocks, in blocks of the same size.

    A `coding` says what the codes in `source` mean, if it has some.
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
