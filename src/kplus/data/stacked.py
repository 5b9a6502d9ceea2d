"""Several arrays one below the other, as one table."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.data.blocks import Cut, as_floats, release_rows, take_mapped

__all__ = ["StackedBlocks"]


class StackedBlocks(Cut):
    """Blocks of arrays or memory maps with as many columns, their rows in this order.

    Parameters
    ----------
    arrays : sequence of ndarray
        Of any number types; rows are float32 if all are.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    reopen : callable, optional
        Returns the arrays again, so that they need not be pickled.
    """

    def __init__(
        self,
        arrays: Sequence[NDArray[Any]],
        block_rows: int | None = None,
        *,
        reopen: Callable[[], list[NDArray[Any]]] | None = None,
    ) -> None:
        self._arrays = list(arrays)
        self._reopen = reopen
        self.remote = reopen is not None
        self._starts = np.cumsum([0, *map(len, self._arrays)])
        single = all(X.dtype == np.float32 for X in self._arrays)
        self._dtype = np.float32 if single else np.float64
        super().__init__(int(self._starts[-1]), self._arrays[0].shape[1], block_rows)

    def release(self, start: int, stop: int) -> None:
        """As of `ArrayBlocks`."""
        if self._reopen is None:
            return
        for X, offset in zip(self._arrays, self._starts, strict=False):
            first, last = max(start - offset, 0), min(stop - offset, len(X))
            if first < last:
                release_rows(X, int(first), int(last))

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._reopen is not None:
            del state["_arrays"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._reopen is not None:
            self._arrays = self._reopen()

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        if stop <= self._starts[first + 1]:
            offset = self._starts[first]
            rows = self._arrays[first][start - offset : stop - offset]
            return as_floats(rows, self._dtype)
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken = np.empty((len(rows), self.n_features), self._dtype)
        cuts = np.searchsorted(rows, self._starts)
        for number in np.flatnonzero(np.diff(cuts)):
            part = slice(cuts[number], cuts[number + 1])
            inside = rows[part] - self._starts[number]
            taken[part] = take_mapped(self._arrays[number], inside)
        return taken
