"""Blocks of tables whose rows come in pieces, each of which is decoded whole.

The row groups of a Parquet file are such pieces, or the chunks of a Zarr array. A block
takes its rows from the pieces it overlaps, and every thread remembers the piece it
decoded last, so that a walk through the blocks decodes each piece once. Memory holds
one piece a thread: pieces of about 100,000 rows serve best.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.data.blocks import Cut

__all__ = ["PieceBlocks"]


class PieceBlocks(Cut):
    """Blocks made of pieces; who inherits says in `decode` how a piece becomes numbers.

    Parameters
    ----------
    counts : sequence of int
        Rows of each piece.
    n_features : int
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    dtype : type
        float32 or float64.
    """

    def __init__(
        self,
        counts: Sequence[int],
        n_features: int,
        block_rows: int | None,
        dtype: type[Any],
    ) -> None:
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._dtype = dtype
        self._last = threading.local()
        super().__init__(int(self._starts[-1]), n_features, block_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_last"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._last = threading.local()

    def decode(self, piece: int) -> Array:
        """Make the rows of a piece, C-contiguous."""
        raise NotImplementedError

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        piece = int(np.searchsorted(self._starts, start, side="right")) - 1
        offset = int(self._starts[piece])
        if stop <= self._starts[piece + 1]:  # inside one piece: no copy
            return self._decoded(piece)[start - offset : stop - offset]
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken = np.empty((len(rows), self.n_features), self._dtype)
        cuts = np.searchsorted(rows, self._starts)
        for piece in np.flatnonzero(np.diff(cuts)):
            part = slice(cuts[piece], cuts[piece + 1])
            taken[part] = self._decoded(int(piece))[rows[part] - self._starts[piece]]
        return taken

    def _decoded(self, piece: int) -> Array:
        """A decoded piece, from memory if this thread had it last."""
        if getattr(self._last, "piece", None) != piece:
            self._last.piece = self._last.rows = None  # two would double the memory
            self._last.rows, self._last.piece = self._made(piece), piece
        found: Array = self._last.rows
        return found

    def _made(self, piece: int) -> Array:
        rows = self.decode(piece)
        rows.flags.writeable = False  # blocks are views of it
        return rows
