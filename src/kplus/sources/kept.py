"""Blocks that cost something to make; of small tables all are made once and kept."""

from kplus.core.types import Array, IntArray
from kplus.sources.blocks import Cut

__all__ = ["KEPT_BYTES", "KeptBlocks", "is_small"]

KEPT_BYTES = 64 * 2**20
"""What a table may take beyond where it comes from, so that passes need no decoding."""


def is_small(n_rows: int, n_features: int) -> bool:
    """Whether a table is so small that its blocks are all kept."""
    return 8 * n_rows * n_features <= KEPT_BYTES


class KeptBlocks(Cut):
    """Blocks of a table that is coded when it is read.

    Who inherits from it says in `gather` how rows are made, and calls
    `keep_if_small` when it can.
    """

    _kept: Array | None = None

    def keep_if_small(self) -> None:
        if is_small(self.n_rows, self.n_features):
            kept = self.gather(slice(0, self.n_rows), self.n_rows)
            kept.flags.writeable = False  # blocks are views of it
            self._kept = kept

    def gather(self, rows: slice | IntArray, n_rows: int) -> Array:
        """Make these rows, which are `n_rows`, C-contiguous."""
        raise NotImplementedError

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        if self._kept is not None:
            return self._kept[start:stop]
        return self.gather(slice(start, stop), stop - start)

    def take(self, rows: IntArray) -> Array:
        if self._kept is not None:
            return self._kept[rows]
        return self.gather(rows, len(rows))
