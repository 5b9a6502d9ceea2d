"""Samples of rows, held in memory and seen through a lens."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, Blocks
from kplus.models.dp_means.params import Lens
from kplus.sources.blocks import ArrayBlocks

__all__ = ["Sample", "draw"]


@dataclass(frozen=True)
class Sample:
    """Rows in memory with their weights; `share` of all rows."""

    rows: Array
    weights: Array | None
    share: float

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def blocks(self, block_rows: int | None = None) -> ArrayBlocks:
        return ArrayBlocks(self.rows, block_rows)

    def weight(self) -> Array:
        """Weights as an array, also where every row counts as one."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def seen(self, lens: Lens) -> "Sample":
        """The rows in the units of a lens."""
        return Sample(lens.view(self.rows.astype(np.float64)), self.weights, self.share)


def draw(
    source: Blocks, weights: Array | None, size: int, rng: np.random.Generator
) -> Sample:
    """Draw rows evenly without replacement, in row order; all rows if they are few.

    Rows of no weight are left out.
    """
    rows = np.arange(source.n_rows) if weights is None else np.flatnonzero(weights)
    share = min(1.0, size / len(rows))
    if share < 1.0:
        rows = rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]
    return Sample(source.take(rows), None if weights is None else weights[rows], share)
