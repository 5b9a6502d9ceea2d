"""What a table holds, from one look at its blocks."""

from dataclasses import dataclass

import numpy as np

from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks

__all__ = ["Survey", "survey"]


@dataclass(frozen=True)
class Survey:
    """Counts, extremes and spread of the observed values.

    Attributes
    ----------
    finite : bool
        Whether values and the sum of their squares are finite.
    rows : int
    observed : int
        Number of entries that are not missing.
    means, lowest : (D,)
        Mean and minimum of each column.
    deviation : float
        Standard deviation of entries about the mean of their column.
    empty_rows : list of int
        Numbers of the rows without any value.
    """

    finite: bool
    rows: int
    observed: int
    means: Array
    lowest: Array
    deviation: float
    empty_rows: list[int]

    @property
    def variance(self) -> float:
        """What a variance may be in the units of the data; above zero."""
        level = float(np.mean(self.means**2))
        return self.deviation**2 or level or 1.0


def survey(source: Blocks) -> Survey:
    """Look at every block once."""
    D = source.n_features
    lowest, origin = np.full(D, np.inf), np.zeros(D)
    known, sums, squares = np.zeros(D), np.zeros(D), np.zeros(D)
    empty: list[int] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for first, block in read_blocks(source):
            rows = block.astype(np.float64, copy=False)
            lowest = np.fmin(lowest, np.fmin.reduce(rows, axis=0))
            # Sums about a value of the column keep their digits.
            origin = np.where(known > 0.0, origin, np.where(lowest < np.inf, lowest, 0))
            values = rows - origin
            if np.isnan(values.sum()):
                missing = np.isnan(rows)
                values = np.where(missing, 0.0, values)
                known += np.count_nonzero(~missing, axis=0)
                empty += (first + np.flatnonzero(missing.all(axis=1))).tolist()
            else:
                known += len(rows)
            sums += values.sum(axis=0)
            squares += np.einsum("nd,nd->d", values, values)
        finite = bool(np.isfinite(squares.sum()))
        count = np.maximum(known, 1.0)
        spread = squares - sums * sums / count if finite else np.zeros(D)
    variance = max(float(spread.sum()), 0.0) / max(float(known.sum()), 1.0)
    return Survey(
        finite=finite,
        rows=source.n_rows,
        observed=int(known.sum()),
        means=origin + sums / count,
        lowest=lowest,
        deviation=float(np.sqrt(variance)),
        empty_rows=empty,
    )
