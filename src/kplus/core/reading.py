"""Reading a table block by block."""

from collections.abc import Iterator

import numpy as np

from kplus.core.types import Array, Blocks

__all__ = ["n_blocks", "read_all", "read_blocks"]


def n_blocks(source: Blocks) -> int:
    return -(-source.n_rows // source.block_rows)


def read_blocks(source: Blocks) -> Iterator[tuple[int, Array]]:
    """Yield the number of the first row of each block, and its rows."""
    for index in range(n_blocks(source)):
        yield index * source.block_rows, source.read(index)


def read_all(source: Blocks) -> Array:
    """All rows, in memory."""
    return np.concatenate([rows for _, rows in read_blocks(source)])
