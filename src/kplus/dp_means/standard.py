"""Columns on one scale: mean 0 and standard deviation 1."""

from dataclasses import dataclass

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.wrapped import WrappedBlocks

__all__ = ["Standard"]


@dataclass(frozen=True)
class Standard:
    """Means and standard deviations of columns; 1 where a column is constant."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, source: Blocks, weights: Array | None) -> "Standard":
        """Those of all rows, by one pass; weight 2 is the same as a row twice."""
        count = 0.0
        mean: Array = np.zeros(source.n_features)
        squares: Array = np.zeros(source.n_features)
        for start, rows in read_blocks(source):
            w: Array = np.ones(len(rows))
            if weights is not None:
                w = weights[start : start + len(rows)]
            n = float(w.sum())
            if n == 0.0:
                continue
            Y = rows.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                part = w @ Y / n
                step = part - mean
                squares += w @ np.square(Y - part)
                squares += np.square(step) * (count * n / (count + n))
                mean += step * (n / (count + n))
            count += n
        if not np.all(np.isfinite(squares)):
            raise NotFiniteError("A row")
        spread = np.sqrt(squares / max(count, 1e-300))
        # What is constant but for rounding stays as it is.
        constant = spread <= 1e-12 * np.abs(mean)
        return cls(mean, np.where(constant | (spread == 0.0), 1.0, spread))

    def transform(self, rows: Array) -> Array:
        out: Array = (rows - self.mean) / self.scale
        return out

    def inverse_transform(self, rows: Array) -> Array:
        out: Array = rows * self.scale + self.mean
        return out

    def blocks(self, source: Blocks) -> "StandardBlocks":
        return StandardBlocks(source, self)


class StandardBlocks(WrappedBlocks):
    """The blocks of another table with its columns on one scale; float64."""

    def __init__(self, source: Blocks, standard: Standard) -> None:
        super().__init__(source)
        self._standard = standard

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        return self._standard.transform(part.astype(np.float64))
