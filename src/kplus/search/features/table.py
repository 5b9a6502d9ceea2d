"""Rows of a table in memory, with their gaps filled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array
from kplus.search.features.rows import Found, Rows
from kplus.search.job import Job
from kplus.search.sample import draw

__all__ = ["Drawn", "draw_rows"]


@dataclass(frozen=True)
class Drawn:
    """A sample of rows, gaps filled with column means; `share` of all rows."""

    rows: Rows
    gaps: NDArray[np.bool_] | None
    share: float

    def features(self, found: Found) -> Array:
        """The features of an allocation found on these rows.

        Gaps take the values that the allocation gives them, and the rows adapt again.
        """
        if not found.K:
            return np.empty((0, self.rows.X.shape[1]))
        found = _oriented(found, self.rows.weights)
        A = self.rows.features(found)
        if self.gaps is None:
            return A
        rows = Rows(np.where(self.gaps, found.Z @ A, self.rows.X), self.rows.weights)
        return rows.features(rows.polish(found.Z.copy(), found.base))


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
    X = np.ascontiguousarray(sample.rows, dtype=np.float64)
    weights = sample.weight()
    gaps = np.isnan(X)
    _check_squares(np.where(gaps, 0.0, X))
    if not gaps.any():
        X, back = np.unique(X, axis=0, return_inverse=True)
        weights = np.bincount(back.ravel(), weights=weights).astype(np.float64)
        return Drawn(Rows(X, weights), None, sample.share)
    known = weights @ ~gaps
    sums = weights @ np.where(gaps, 0.0, X)
    means = np.divide(sums, known, out=np.zeros_like(sums), where=known > 0.0)
    return Drawn(Rows(np.where(gaps, means, X), weights), gaps, sample.share)


def _check_squares(X: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.vdot(X, X)):
            raise NotFiniteError("A row of the sample")
