"""Small tables that cost something to read are read once and kept."""

from typing import Any

import numpy as np

from kplus.core.reading import read_blocks
from kplus.core.types import Blocks
from kplus.data.blocks import ArrayBlocks

__all__ = ["CACHE_BYTES", "cached"]

CACHE_BYTES = 64 * 2**20
"""What a table may take beyond where it comes from, so that passes need no decoding."""


def cached(blocks: Blocks) -> Blocks | None:
    """Blocks of float64 in memory if the table is small, else None."""
    shape = blocks.n_rows, blocks.n_features
    if 8 * shape[0] * shape[1] > CACHE_BYTES:
        return None
    rows = np.empty(shape)
    for start, part in read_blocks(blocks):
        rows[start : start + len(part)] = part
    rows.flags.writeable = False  # blocks are views of it
    kept: Any = ArrayBlocks(rows, blocks.block_rows)
    kept.stamps = getattr(blocks, "stamps", None)
    if hasattr(blocks, "feature_names"):
        kept.feature_names = blocks.feature_names
    return kept  # type: ignore[no-any-return]
