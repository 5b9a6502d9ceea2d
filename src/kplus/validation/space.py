"""Tables as distances need them: numbers, categories and gaps, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.open import Coder
from kplus.data.selection import FROM_DTYPE

__all__ = ["Points", "Space"]


@dataclass(frozen=True)
class Points:
    """Rows as points: `values` are 0 where `seen` is False; None: all is there."""

    values: Array
    seen: Array | None

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: Any) -> "Points":
        return Points(self.values[rows], None if self.seen is None else self.seen[rows])


@dataclass(frozen=True)
class Space:
    """Where rows are points, so that distances mean something.

    Numbers are taken about their mean and, if asked, divided by their standard
    deviation. A category is a column of 0 and 1 for each level, divided so that all of
    them together have variance 1: it weighs as much as a number. Distances leave out
    what is missing, and are scaled up by its share.

    Attributes
    ----------
    blocks : Blocks
    levels : tuple of (int or None)
        Number of categories of each column; None: numbers.
    mean, scale : arrays of shape (n_numbers,)
    spread : array of shape (n_categories,)
        What the columns of each column of categories are divided by.
    share : array of shape (n_dimensions,)
        Of the table, by dimension.
    """

    blocks: Blocks
    levels: tuple[int | None, ...]
    mean: Array
    scale: Array
    spread: Array
    share: Array

    @classmethod
    def of(
        cls, X: Any, *, scale: bool = True, categorical: Any = FROM_DTYPE
    ) -> "Space":
        """The space of a table; passes over its rows once."""
        blocks, coding = Coder(categorical=categorical).open(X)
        if blocks.n_rows == 0 or blocks.n_features == 0:
            raise DataError(
                "Found array with 0 samples or features; at least 1 is due."
            )
        levels = (None,) * blocks.n_features if coding is None else coding.levels
        mean, variance, frequencies = _moments(blocks, levels)
        deviation = np.sqrt(variance) if scale else np.ones_like(variance)
        spread = np.array([np.sqrt(1.0 - p @ p) for p in frequencies])
        share = [1.0] * len(mean) + [1.0 / n for n in levels if n for _ in range(n)]
        return cls(
            blocks, tuple(levels), mean, _nonzero(deviation), _nonzero(spread),
            np.array(share),
        )  # fmt: skip

    @property
    def n_dimensions(self) -> int:
        return len(self.share)

    def parts(self) -> Iterator[tuple[int, Points]]:
        """The number of the first row of each block, and its points."""
        for start, rows in read_blocks(self.blocks):
            yield start, self.points(rows)

    def take(self, rows: IntArray) -> Points:
        return self.points(self.blocks.take(rows))

    def points(self, rows: Array) -> Points:
        numbers = [j for j, n in enumerate(self.levels) if n is None]
        parts = [(np.float64(rows[:, numbers]) - self.mean) / self.scale]
        coded = [(j, n) for j, n in enumerate(self.levels) if n is not None]
        for (j, n), spread in zip(coded, self.spread, strict=True):
            codes = rows[:, j, None]
            is_level = (codes == np.arange(n)) / spread
            parts.append(np.where(np.isnan(codes), np.nan, is_level))
        values = np.concatenate(parts, axis=1)
        gaps = np.isnan(values)
        if not gaps.any():
            return Points(values, None)
        return Points(np.where(gaps, 0.0, values), (~gaps).astype(np.float64))

    def squared_distances(self, points: Points, centers: Array) -> Array:
        """Of points to centres, which have no gaps."""
        V, square = points.values, centers**2
        own = np.einsum("ij,ij->i", V, V)[:, None]
        share: Array
        if points.seen is None:
            there, share = square.sum(axis=1), np.ones((len(V), 1))
        else:
            there = points.seen @ square.T
            share = self._scaled_up(points.seen @ self.share)[:, None]
        squares: Array = np.maximum(own - 2.0 * V @ centers.T + there, 0.0) * share
        return squares

    def between(self, points: Points) -> Array:
        """Distances between the rows of a sample."""
        V = points.values
        if points.seen is None:
            squares = self.squared_distances(points, V)
        else:
            S = points.seen
            there = (V**2) @ S.T
            common = (S * self.share) @ S.T
            squares = np.maximum(there + there.T - 2.0 * V @ V.T, 0.0)
            squares *= self._scaled_up(common)
            # Rows that have no column in common are as far as rows are on average.
            squares[common == 0.0] = 2.0 * self.n_dimensions
        np.fill_diagonal(squares, 0.0)
        return np.sqrt(squares)

    def _scaled_up(self, seen: Array) -> Array:
        whole = np.full_like(seen, self.share.sum())
        return np.divide(whole, seen, out=np.zeros_like(seen), where=seen > 0.0)


def _nonzero(scale: Array) -> Array:
    """Constant columns count for nothing, whatever they are divided by."""
    return np.where(scale > 0.0, scale, 1.0)


def _moments(
    blocks: Blocks, levels: tuple[int | None, ...]
) -> tuple[Array, Array, list[Array]]:
    """Means and variances of numbers, frequencies of categories; gaps left out."""
    numbers = [j for j, n in enumerate(levels) if n is None]
    counts = {j: np.zeros(n) for j, n in enumerate(levels) if n is not None}
    about = np.zeros(len(numbers))  # a mean near the rows, for large offsets
    n, total, squares = np.zeros((3, len(numbers)))
    for start, rows in read_blocks(blocks):
        part = rows[:, numbers].astype(np.float64)
        if np.isinf(part).any():
            raise DataError("Input X contains infinity; replace or drop those values.")
        seen = ~np.isnan(part)
        if start == 0:
            there = np.maximum(seen.sum(axis=0), 1)
            about = np.where(seen, part, 0.0).sum(axis=0) / there
        part = np.where(seen, part - about, 0.0)
        n += seen.sum(axis=0)
        total += part.sum(axis=0)
        squares += np.einsum("ij,ij->j", part, part)
        for j, count in counts.items():
            codes = rows[:, j]
            count += np.bincount(codes[~np.isnan(codes)].astype(int), None, len(count))
    shift = total / np.maximum(n, 1.0)
    variance = np.maximum(squares / np.maximum(n, 1.0) - shift**2, 0.0)
    noise = np.square(1e-14 * (np.abs(about) + np.abs(shift)))  # of rounding
    frequencies = [count / max(count.sum(), 1.0) for count in counts.values()]
    return about + shift, np.where(variance > noise, variance, 0.0), frequencies
