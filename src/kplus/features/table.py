"""Rows of a table in memory, with their gaps filled."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.job import Job, draw
from kplus.core.types import Array
from kplus.features.rows import Found, Rows
from kplus.linear.pursuit import fill_gaps

__all__ = ["Drawn", "draw_rows"]


@dataclass(frozen=True)
class Drawn:
    """A sample of rows, gaps filled in.

    Weights are on average 1 and values at most about 1, so that units do not matter;
    `scale` is that of the values. `share` is what the error on these rows is to that
    on all rows.
    """

    rows: Rows
    gaps: NDArray[np.bool_] | None
    scale: float
    share: float

    def features(self, found: Found) -> Array:
        """The features of an allocation found on these rows, in units of the data."""
        if not found.K:
            return np.empty((0, self.rows.X.shape[1]))
        return self.scale * self.rows.features(_oriented(found, self.rows.weights))

    def refilled(self, found: Found) -> "Drawn":
        """The same rows, with the values in gaps that an allocation gives them."""
        if self.gaps is None or not found.K:
            return self
        fitted = found.Z @ self.rows.features(found)
        X = np.where(self.gaps, fitted, self.rows.X)
        return replace(self, rows=Rows(X, self.rows.weights))


def _oriented(found: Found, weights: Array) -> Found:
    """With a base, no other feature is held by more than half the rows.

    A feature may be complemented, the base then has what it had: the fit is the same.
    """
    if not found.base:
        return found
    most = weights @ found.Z > 0.5 * weights.sum()
    most[0] = False
    return Found(found.Z ^ most.astype(np.uint8), True, found.error)


def draw_rows(job: Job, size: int) -> Drawn:
    """Draw rows into memory, as float64, without gaps.

    Equal rows become one with their weights added up, and rows are sorted: the search
    sees the same table whatever the order of rows, and whether a row has weight 2 or
    comes twice.
    """
    sample = draw(job.source, job.weights, size, job.rng)
    X: Array = np.ascontiguousarray(sample.rows, dtype=np.float64)
    weights = sample.weight()
    gaps = np.isnan(X)
    _check_squares(np.where(gaps, 0.0, X))
    if gaps.any():
        X = fill_gaps(X, gaps, weights)
    else:
        distinct = np.unique(X, axis=0, return_inverse=True)
        X = distinct[0]
        counts = np.bincount(distinct[1].ravel(), weights=weights)
        weights = counts.astype(np.float64)
    unit = float(weights.mean())
    known = gaps if gaps.any() else None
    scale = _power_of_two(X)
    rows = Rows(X / scale, weights / unit)
    return Drawn(rows, known, scale, sample.share / unit / scale / scale)


def _power_of_two(X: Array) -> float:
    """About the largest value; dividing by it changes no digit."""
    largest = float(np.max(np.abs(X), initial=0.0))
    return float(2.0 ** np.round(np.log2(largest))) if largest > 0.0 else 1.0


def _check_squares(X: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.vdot(X, X)):
            raise NotFiniteError("A row of the sample")
